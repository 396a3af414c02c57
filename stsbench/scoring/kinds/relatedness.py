"""Supervised STS-B and SICK-R: SentEval's regressor on the vectors of sentence pairs.

Its scores are up to twenty points above those of cosine on the same vectors. The features are |u - v| and u * v.
A softmax layer predicts the distribution of a score over the bins 1 to 5 (Tai et al., 2015); the prediction is the
mean bin. STS-B's scores are from 0 to 5, and SentEval spreads them over the same bins, so scores below 1 are cut
off.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import MODELS, UserError, require
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData
from stsbench.records.kinds import SUPERVISED
from stsbench.records.parts import Number, Training
from stsbench.records.signature import Signature
from stsbench.scoring.classifiers import token_counts
from stsbench.scoring.kinds.classification import pair_features
from stsbench.scoring.kinds.sts import demand_spread
from stsbench.scoring.settings import SEED, Settings
from stsbench.scoring.statistic import Correlation, ItemsEstimate
from stsbench.scoring.task import Items, Meaning, Numbers, Rows, Scoring, Vectors, item_columns
from stsbench.statistics.correlations import pearson, spearman

BINS = 5
_BATCH = 64
_PASSES = 50
"""Passes over train between two checks on dev."""

_MOST_PASSES = 1000
_TENACITY = 3
"""The number of checks without a better correlation that are allowed in total; the next one stops."""

StopBy = Literal["pearson", "spearman"]
"""The correlation on dev that stops training: Pearson in SentEval, Spearman in the SimCSE fork's fine-tuning."""

_CORRELATE: Mapping[StopBy, Callable[[NDArray[np.float64], NDArray[np.float64]], float]] = {
    "pearson": pearson,
    "spearman": spearman,
}


@dataclass(frozen=True)
class Regressed:
    """The predictions of a trained regressor.

    Attributes:
        dev: the best correlation on dev.
        ndev: the number of pairs in dev.
        tested: (ntest,) positions of the test pairs in the data, in the order of scoring.
        predicted: (ntest,) predicted scores.
    """

    dev: float
    ndev: int
    tested: NDArray[np.int64]
    predicted: NDArray[np.float64]


@dataclass(frozen=True)
class Relatedness:
    """A relatedness task scored by a trained regressor, with the pairs of all three splits."""

    data: StsData

    kind: ClassVar[str] = SUPERVISED
    is_trained: ClassVar[bool] = True
    streams: ClassVar[bool] = False
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
        u, v = np.split(vectors.of_sentences, 2)
        seed = settings.classification.seed
        result = regress(self.data, u, v, seed=seed, device=vectors.device)
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
        """Returns Pearson, Spearman and the mean squared error on test."""
        tested = rows.scored
        values = scores_on_test(tested[SUPERVISED].to_numpy(), tested["gold"].to_numpy())
        estimates = {
            name: ItemsEstimate.of(Correlation(name, "all", SUPERVISED), tested, how.intervals)
            for name in _CORRELATE
        }
        intervals = {str(name): estimate.interval for name, estimate in estimates.items()}
        numbers = [
            Number(
                statistic=name,
                value=value if math.isfinite(value) else None,
                items=len(tested),
                interval=intervals.get(name),
            )
            for name, value in values.items()
        ]
        return Numbers(tuple(numbers), estimates["pearson"])


def regress(
    data: StsData,
    vectors1: NDArray[np.floating],
    vectors2: NDArray[np.floating],
    *,
    stop_by: StopBy = "pearson",
    seed: int = SEED,
    device: str = "cpu",
) -> Regressed:
    """Trains the regressor on train, stops it by dev, and predicts test.

    Args:
        data: the n pairs of all three splits (`load_sts(task, "all")`).
        vectors1: (n, d) vectors of the first sentences, in the order of the pairs.
        vectors2: (n, d) vectors of the second sentences.
        stop_by: the correlation on dev that stops training.
        seed: the seed of the weights and of the order of rows.
        device: where to train.
    """
    pairs = data.pairs
    if not len(vectors1) == len(vectors2) == len(pairs):
        raise ValueError(f"expected {len(pairs)} pairs of vectors, got {len(vectors1)} and {len(vectors2)}")
    order = pair_order(pairs)
    u, v = (np.asarray(side, dtype=np.float32)[order] for side in (vectors1, vectors2))
    gold = pairs["gold"].to_numpy(dtype=np.float64)[order]
    splits = pairs["split"].to_numpy().astype(str)[order]
    train, dev, test = (np.flatnonzero(splits == split) for split in ("train", "dev", "test"))
    if not (len(train) and len(dev) and len(test)):
        raise UserError(f"supervised {data.task} needs its train, dev and test splits: read it with split 'all'.")
    correlate, best, predicted, misses = _CORRELATE[stop_by], -1.0, np.zeros(len(test)), 0
    for on_dev, on_test in _checks(pair_features(u, v), gold, (train, dev, test), seed, device):
        correlation = _defined(correlate(on_dev, gold[dev]))
        if correlation > best:
            best, predicted = correlation, on_test
        elif misses >= _TENACITY:
            break
        else:
            misses += 1
    return Regressed(best, len(dev), order[test], predicted)


def _checks(
    features: NDArray[np.float32],
    gold: NDArray[np.float64],
    splits: Sequence[NDArray[np.int64]],
    seed: int,
    device: str,
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Trains a softmax layer with Adam on the squared error; yields predictions on dev and test at each check."""
    import torch

    stream = np.random.RandomState(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(features.shape[1], BINS).to(device)
    optimizer = torch.optim.Adam(layer.parameters())
    train, dev, test = (torch.as_tensor(features[rows], device=device) for rows in splits)
    shares = torch.as_tensor(spread_over_bins(gold[splits[0]]), device=device)

    def predict(x: torch.Tensor) -> NDArray[np.float64]:
        with torch.no_grad():
            predicted = layer(x).softmax(dim=1).cpu().numpy()
        means: NDArray[np.float64] = predicted.astype(np.float64) @ np.arange(1.0, BINS + 1)
        return means

    for passes in range(1, _MOST_PASSES + _PASSES + 1):
        order = torch.as_tensor(stream.permutation(len(train)), device=device)
        for rows in order.split(_BATCH):  # type: ignore[no-untyped-call]
            loss = (layer(train[rows]).softmax(dim=1) - shares[rows]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if passes % _PASSES == 0:
            yield predict(dev), predict(test)


def spread_over_bins(scores: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float32]:
    """Returns the (n, 5) shares of scores in the bins 1 to 5: a score of 3.25 has 3/4 in 3 and 1/4 in 4.

    >>> spread_over_bins([3.25, 5.0, 0.5]).tolist()
    [[0.0, 0.0, 0.75, 0.25, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0], [0.5, 0.0, 0.0, 0.0, 0.0]]
    """
    values = np.asarray(scores, dtype=np.float64)
    lower = np.floor(values)
    # SentEval has no bins 0 and 6: they are cut off.
    shares = np.zeros((len(values), BINS + 2))
    rows, columns = np.arange(len(values)), lower.astype(np.int64)
    shares[rows, columns] = lower - values + 1
    shares[rows, columns + 1] = values - lower
    return shares[:, 1:-1].astype(np.float32)


def pair_order(pairs: pd.DataFrame) -> NDArray[np.int64]:
    """Returns the order of pairs in SentEval: by the numbers of tokens of both sentences, then by gold score."""
    first, second = (token_counts(pairs[side]) for side in ("sentence1", "sentence2"))
    return np.lexsort((pairs["gold"].to_numpy(dtype=np.float64), second, first))


def scores_on_test(predicted: NDArray[np.float64], actual: NDArray[np.float64]) -> dict[str, float]:
    """Returns `pearson`, `spearman` and `mse` of (n,) predictions and (n,) gold scores."""
    scores = {name: _defined(correlate(predicted, actual)) for name, correlate in _CORRELATE.items()}
    return scores | {"mse": float(np.mean((predicted - actual) ** 2))}


def _defined(correlation: float) -> float:
    # As in SentEval, a constant prediction has a correlation of 0.
    return 0.0 if np.isnan(correlation) else float(correlation)
