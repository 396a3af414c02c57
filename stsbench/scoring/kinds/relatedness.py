"""Supervised STS-B and SICK-R: the regressor that the original SentEval trains on pairs of vectors.

Another measurement than the STS protocols' cosine, up to twenty points above it on the same vectors. Features
are |u - v| and u * v; a softmax layer predicts how a score is spread over the bins 1 to 5 (Tai et al. 2015);
the prediction is the mean bin. STS-B's scores go from 0 to 5, and the original spreads them over the same five
bins: a score below 1 has only its fraction in the first, and 0 nothing at all.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.extras import MODELS, require
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData
from stsbench.records.kinds import SUPERVISED
from stsbench.records.parts import Number, Training
from stsbench.records.signature import Signature
from stsbench.scoring.kinds.classification import pair_features
from stsbench.scoring.kinds.sts import demand_spread
from stsbench.scoring.settings import SEED, Settings
from stsbench.scoring.statistic import Correlation, interval_of
from stsbench.scoring.task import Items, Meaning, Numbers, Rows, Scoring, Vectors, item_columns
from stsbench.statistics.correlations import pearson, spearman

if TYPE_CHECKING:
    import torch

BINS = 5
_BATCH = 64
_PASSES = 50
_MOST_PASSES = 1000
_TENACITY = 3

StopBy = Literal["pearson", "spearman"]
"""What training stops by on dev: the original by Pearson, the SimCSE fork's fine-tuning tasks by Spearman."""

_CORRELATE: Mapping[StopBy, Callable[[NDArray[np.float64], NDArray[np.float64]], float]] = {
    "pearson": pearson,
    "spearman": spearman,
}


@dataclass(frozen=True)
class Regressed:
    """What a trained regressor gave.

    Attributes:
        dev: the correlation on the `ndev` pairs of dev that training stopped by.
        tested: the places of the test pairs in the data, in the order in which they were scored.
        predicted: (ntest,) the estimates of these.
    """

    dev: float
    ndev: int
    tested: NDArray[np.int64]
    predicted: NDArray[np.float64]


@dataclass(frozen=True)
class Relatedness:
    """A relatedness task that is scored by a trained regressor: the pairs of all three splits."""

    data: StsData

    kind: ClassVar[str] = SUPERVISED
    is_trained: ClassVar[bool] = True
    sides: ClassVar[int] = 2
    pairs: ClassVar[None] = None

    def sentences(self) -> list[str]:
        return sentences_in(self.data)

    def demand_scorable(self) -> None:
        require(MODELS, f"the trained regressor of {self.data.task}")
        demand_spread(self.data)

    def meaning(self, settings: Settings) -> Meaning:
        return Meaning("test", "all", "pearson", SUPERVISED)

    def items(self, vectors: Vectors, settings: Settings) -> Items:
        of_sentences, half = vectors.of_sentences, len(vectors.rows) // 2
        seed = settings.classification.seed
        result = regress(self.data, of_sentences[:half], of_sentences[half:], seed=seed, device=vectors.device)
        rows = self.data.pairs.iloc[result.tested]
        sides = [rows["sentence1"], rows["sentence2"]]
        columns = item_columns(self.kind, self.data, "test", [""] * len(rows), rows["pair_id"], sides=sides)
        table = pd.DataFrame({**columns, "gold": rows["gold"].to_numpy(np.float64), SUPERVISED: result.predicted})
        training = Training(method=SUPERVISED, design="split", kfold=0, seed=seed, stop_by="pearson")
        return Items(table, training, (Number(statistic="dev", value=result.dev, items=result.ndev),))

    @staticmethod
    def statistic(signature: Signature) -> Correlation:
        return Correlation.of(signature)

    @staticmethod
    def numbers(rows: Rows, how: Scoring) -> Numbers:
        """Return Pearson, Spearman and the mean squared error on test."""
        tested = rows.scored
        values = scores_on_test(tested[SUPERVISED].to_numpy(), tested["gold"].to_numpy())
        results = {
            metric: interval_of(Correlation(metric, "all", SUPERVISED), tested, how.intervals)
            for metric in _CORRELATE
        }
        numbers = [
            Number(
                statistic=name,
                value=value if math.isfinite(value) else None,
                items=len(tested),
                interval=results[name][0] if name in results else None,
            )
            for name, value in values.items()
        ]
        return Numbers(tuple(numbers), results["pearson"][1])


def regress(
    data: StsData,
    vectors1: NDArray[np.floating],
    vectors2: NDArray[np.floating],
    *,
    stop_by: StopBy = "pearson",
    seed: int = SEED,
    device: str = "cpu",
) -> Regressed:
    """Train the regressor on train, stop it by dev, and predict test.

    Args:
        data: the n pairs of all three splits (`load_sts(task, "all")`).
        vectors1: (n, d) vectors of the first sentences, in the pairs' order.
        vectors2: (n, d) vectors of the second.
        stop_by: the correlation on dev that training stops by.
        seed: of the weights and the order of rows.
        device: where it is trained.
    """
    pairs = data.pairs
    if not len(vectors1) == len(vectors2) == len(pairs):
        raise ValueError(f"expected {len(pairs)} pairs of vectors, got {len(vectors1)} and {len(vectors2)}")
    order = pair_order(pairs)
    u, v = (np.asarray(side, dtype=np.float32)[order] for side in (vectors1, vectors2))
    x, gold = pair_features(u, v), pairs["gold"].to_numpy(dtype=np.float64)[order]
    splits = pairs["split"].to_numpy().astype(str)[order]
    train, dev, test = (np.flatnonzero(splits == split) for split in ("train", "dev", "test"))
    if not (len(train) and len(dev) and len(test)):
        raise UserError(f"supervised {data.task} needs its train, dev and test splits: read it with split 'all'.")
    best, predicted = _Regressor(x, gold, train, seed, device).fit(dev, test, stop_by)
    return Regressed(best, len(dev), order[test], predicted)


def spread_over_bins(scores: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the (n, 5) shares of scores in the bins 1 to 5: a score of 3.25 has 3/4 in 3 and 1/4 in 4.

    >>> spread_over_bins([3.25, 5.0, 0.5]).tolist()
    [[0.0, 0.0, 0.75, 0.25, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0], [0.5, 0.0, 0.0, 0.0, 0.0]]
    """
    values = np.asarray(scores, dtype=np.float64)
    lower = np.floor(values)
    # A bin 0 and a bin 6, which the original does not have, are cut off.
    shares = np.zeros((len(values), BINS + 2))
    rows, columns = np.arange(len(values)), lower.astype(np.int64)
    shares[rows, columns] = lower - values + 1
    shares[rows, columns + 1] = values - lower
    return shares[:, 1:-1].astype(np.float32)


class _Regressor:
    """A softmax layer, trained with Adam on the squared error of the shares."""

    def __init__(
        self, x: NDArray[np.float32], gold: NDArray[np.float64], train: NDArray[np.int64], seed: int, device: str
    ) -> None:
        import torch

        self.stream = np.random.RandomState(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.layer = torch.nn.Linear(x.shape[1], BINS).to(device)
        self.optimizer = torch.optim.Adam(self.layer.parameters())
        self.x = torch.as_tensor(x, device=device)
        self.shares = torch.as_tensor(spread_over_bins(gold[train]), device=device)
        self.train, self.gold = torch.as_tensor(train, device=device), gold

    def fit(
        self, dev: NDArray[np.int64], test: NDArray[np.int64], stop_by: StopBy
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the best correlation on dev, and the predictions on test at that moment."""
        best, predicted, spent, passes = -1.0, np.zeros(len(test)), 0, 0
        while passes <= _MOST_PASSES:
            for _ in range(_PASSES):
                self._one_pass()
            passes += _PASSES
            on_dev = _defined(_CORRELATE[stop_by](self._predict(dev), self.gold[dev]))
            if on_dev > best:
                best, predicted = on_dev, self._predict(test)
                continue
            if spent >= _TENACITY:
                break
            spent += 1
        return best, predicted

    def _one_pass(self) -> None:
        import torch

        order = torch.as_tensor(self.stream.permutation(len(self.train)), device=self.x.device)
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            loss = (self._shares_of(self.train[rows]) - self.shares[rows]).square().mean()
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()

    def _shares_of(self, rows: "torch.Tensor") -> "torch.Tensor":
        outputs: torch.Tensor = self.layer(self.x[rows])
        return outputs.softmax(dim=1)

    def _predict(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        import torch

        with torch.no_grad():
            shares = self._shares_of(torch.as_tensor(rows, device=self.x.device)).cpu().numpy()
        means: NDArray[np.float64] = shares.astype(np.float64) @ np.arange(1.0, BINS + 1)
        return means


def pair_order(pairs: pd.DataFrame) -> NDArray[np.int64]:
    """Return the pairs in SentEval's order: by numbers of tokens of either sentence, then by gold."""
    first, second = (np.array([len(text.split()) for text in pairs[side]]) for side in ("sentence1", "sentence2"))
    return np.lexsort((pairs["gold"].to_numpy(dtype=np.float64), second, first))


def scores_on_test(predicted: NDArray[np.float64], actual: NDArray[np.float64]) -> dict[str, float]:
    """Return `pearson`, `spearman` and `mse` of (n,) predictions and (n,) gold scores."""
    scores = {name: _defined(correlate(predicted, actual)) for name, correlate in _CORRELATE.items()}
    return scores | {"mse": float(np.mean((predicted - actual) ** 2))}


def _defined(correlation: float) -> float:
    # As the original: a constant prediction has the correlation 0.
    return 0.0 if np.isnan(correlation) else float(correlation)
