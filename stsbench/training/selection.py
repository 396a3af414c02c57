"""The dev score of the model in training, by the encoder and the evaluation of `stsbench run`."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stsbench.data.sentences import sentences_in
from stsbench.data.tables import StsData
from stsbench.encoders.network import Network
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import FloatMatrix, Identity, Tokenized, TokenSequence, Wrapper
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.scoring.kinds.sts import StsPairs, compared
from stsbench.scoring.task import Vectors
from stsbench.statistics.correlations import spearman

if TYPE_CHECKING:
    from stsbench.training.model import SentenceModel


@dataclass
class LiveEncoder(Wrapper):
    """The model in training as an encoder, which encodes like a checkpoint of the current step."""

    base: TransformerEncoder
    network: Network
    model: "SentenceModel"
    tokens: int | None = None
    notes: tuple[str, ...] = ()
    _tokenized: dict[tuple[str, ...], Tokenized] = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        """Its identity, without a hash of weights, so that nothing is cached."""
        return replace(self.base.identity, weights_sha256=None)

    @property
    def token_budget(self) -> int:
        """Padded tokens in one batch."""
        return self.tokens or self.base.token_budget

    def prepare(self, *, weights: bool) -> None:
        """Do nothing: it is loaded."""

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return the token ids of texts, tokenised once."""
        key = tuple(texts)
        if key not in self._tokenized:
            self._tokenized[key] = self.base.tokenize(texts)
        return self._tokenized[key]

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return for each pooling an array of shape (len(sequences), dimensions), float32."""
        self.model.eval()
        try:
            return self.network(sequences, poolings)
        finally:
            self.model.train()


@dataclass(frozen=True)
class Best:
    """The best score so far and its step; minus infinity if all are undefined."""

    step: int
    score: float


@dataclass(frozen=True)
class DevScore:
    """A score on the dev set.

    Attributes:
        score: Spearman over all pairs; minus infinity if it is undefined.
        tasks: for each task the score of its head by its measure; NaN if it is undefined.
    """

    score: float
    seconds: float
    tasks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def line(self, step: int, best: Best | None) -> dict[str, Any]:
        """Return it as a line of the log."""
        best_so_far = {} if best is None else {"best": _finite(best.score), "best_step": best.step}
        tasks = {
            name: {measure: _finite(score) for measure, score in scores.items()}
            for name, scores in self.tasks.items()
        }
        return {
            "kind": "dev",
            "step": step,
            "dev": _finite(self.score),
            **best_so_far,
            **({"tasks": tasks} if tasks else {}),
            "time": {"seconds": round(self.seconds, 4)},
        }


def _finite(score: float) -> float | None:
    return score if math.isfinite(score) else None


def best_of(log: Sequence[dict[str, Any]]) -> Best:
    """Return the best score of a training log.

    >>> best_of([{"kind": "dev", "step": 5, "dev": 0.8, "best": 0.8, "best_step": 5}])
    Best(step=5, score=0.8)
    """
    line = next(line for line in reversed(log) if "best_step" in line)
    return Best(line["best_step"], -math.inf if line["best"] is None else line["best"])


@dataclass(frozen=True)
class Selector:
    """Scores the model on the dev set."""

    encoder: LiveEncoder
    data: StsData

    def score(self) -> DevScore:
        """Return the score of the current model."""
        start = time.perf_counter()
        sentences = sentences_in(self.data)
        embeddings = embed(self.encoder, sentences, use_cache=False)
        (vectors,) = embeddings.vectors.values()
        table = compared(StsPairs(self.data), Vectors(vectors, embeddings.rows, embeddings.lengths))
        overall = spearman(table["gold"], table["cosine"])
        return DevScore(overall if math.isfinite(overall) else -math.inf, time.perf_counter() - start)
