"""Dev scores for sentence-transformers: in the log and in the model card's table.

An evaluator of the library shows means over its items. `WithIntervals` runs it, records its embeddings or results,
and lets it score each item alone, so that the numbers are the evaluator's.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.files import fingerprint
from stsbench.data.tables import Pair, StsData, pair_table
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import own_use
from stsbench.integrations.dev_scores import RISE, WITHOUT_RISE, DevScores, Rises
from stsbench.records.record import RunRecord
from stsbench.scoring.kinds.given import GivenItems, measured_items
from stsbench.scoring.kinds.sts import PairClassification, StsPairs, compared_elsewhere
from stsbench.scoring.measure import Recording
from stsbench.scoring.settings import GIVEN_SIMILARITY, Intervals, Protocol, Settings, Stages
from stsbench.scoring.task import Items
from stsbench.scoring.tasks import AnyTask

try:
    from sentence_transformers import SimilarityFunction
    from sentence_transformers.base.evaluation import BaseEvaluator
    from sentence_transformers.sentence_transformer import evaluation as library
except ImportError as error:
    raise UserError(
        "StsEvaluator is for sentence-transformers from 6.0 on: pip install 'stsbench[sentence-transformers]'."
    ) from error

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


_Task = GivenItems | StsPairs | PairClassification
_Seen = dict[Any, Any]
"""The embeddings of an evaluator, by embedding function and text, or the results of its queries."""


class WithIntervals(BaseEvaluator):  # type: ignore[misc]
    """Adds the interval of the primary metric, and its rise, to an evaluator of sentence-transformers.

    It returns the evaluator's metrics, the limits of the primary one (`..._low`, `..._high`), and in a training
    the rise above the last evaluation that rose, on the same items, as `StsEvaluator` does.

        evaluator = WithIntervals(InformationRetrievalEvaluator(queries, corpus, relevant_docs, name="dev"))

    Args:
        evaluator: an InformationRetrieval, NanoBEIR, Reranking, EmbeddingSimilarity, BinaryClassification or
            Triplet evaluator of texts.
        intervals: how intervals are computed.

    Attributes:
        history: the evaluations so far.

    Raises:
        UserError: if the evaluator has no numbers by item.
    """

    def __init__(self, evaluator: Any, *, intervals: Intervals | None = None) -> None:
        super().__init__()
        names = ("InformationRetrieval", "NanoBEIR", "Reranking", "EmbeddingSimilarity", "BinaryClassification")
        known = [f"{name}Evaluator" for name in (*names, "Triplet")]
        is_known = any(isinstance(evaluator, getattr(library, name)) for name in known)
        if not is_known or getattr(evaluator, "precision", None):
            name = type(evaluator).__name__
            raise UserError(f"{name} gives no numbers by item at full precision: wrap one of {', '.join(known)}.")
        self.evaluator: Any = evaluator
        self.intervals, self._rises = intervals or Intervals(), Rises(intervals)
        self.history = self._rises.history
        self.primary_metric = self.evaluator.primary_metric

    def __call__(
        self, model: "SentenceTransformer", output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Runs the evaluator, with its arguments."""
        parts = getattr(self.evaluator, "evaluators", [self.evaluator])
        with _watched(parts) as seen:
            metrics: dict[str, float] = dict(self.evaluator(model, output_path, epoch, steps))
        self.primary_metric = str(self.evaluator.primary_metric)
        prefix = f"{self.evaluator.name}_" if self.evaluator.name else ""
        name = self.primary_metric.removeprefix(prefix)
        scored = [
            _scored(part, of_part, model, name, {key.removeprefix(prefix): of for key, of in metrics.items()})
            for part, of_part in zip(parts, seen, strict=True)
        ]
        score = self._rises.judge(model, steps, name, self._record(scored, f"step {steps}"))
        # The first three numbers are the primary one and its limits.
        added = dict(zip((f"{name}_low", f"{name}_high"), list(score.scores.values())[1:3], strict=True))
        added |= {key: value for key, value in score.metrics.items() if key in {*RISE, WITHOUT_RISE}}
        return metrics | {f"{prefix}{key}": value for key, value in added.items()}

    @property
    def description(self) -> str:
        """The name of the task in the model card."""
        return str(self.evaluator.description)

    def get_config_dict(self) -> dict[str, Any]:
        return dict(self.evaluator.get_config_dict())

    def _record(self, scored: Sequence[tuple[_Task, Items]], name: str) -> RunRecord:
        protocol = Protocol("given", similarity=GIVEN_SIMILARITY)
        settings = Settings(protocol=protocol, intervals=self.intervals)
        recording = Recording.of(
            [task for task, _ in scored], Identity(name, "function", own_use("own")), settings
        )
        return recording.finish([items for _, items in scored], Stages())


@contextmanager
def _watched(evaluators: Sequence[Any]) -> Iterator[list[_Seen]]:
    """Stores the embeddings of evaluators, or for retrieval the results of each query by similarity."""
    seen: list[_Seen] = [{} for _ in evaluators]
    names = ["compute_metrics" if hasattr(part, "score_functions") else "embed_inputs" for part in evaluators]
    for part, name, of_part in zip(evaluators, names, seen, strict=True):
        setattr(part, name, partial(_watch, part, getattr(part, name), of_part))
    try:
        yield seen
    finally:
        for part, name in zip(evaluators, names, strict=True):
            delattr(part, name)


def _watch(evaluator: Any, method: Any, seen: _Seen, *inputs: Any, **how: Any) -> Any:
    outputs = method(*inputs, **how)
    if hasattr(evaluator, "score_functions"):  # called for each similarity in turn
        seen[list(evaluator.score_functions)[len(seen)]] = inputs[0]
    else:
        seen |= zip(((how.get("encode_fn_name"), text) for text in inputs[1]), outputs, strict=True)
    return outputs


def _scored(
    evaluator: Any, seen: _Seen, model: Any, name: str, metrics: Mapping[str, float]
) -> tuple[_Task, Items]:
    """Returns the items of an evaluator's task: its queries, samples or triples scored alone, or its pairs.

    Names of metrics are without the evaluator's; `name` is the primary one.
    """
    task = evaluator.name or "dev"
    similarity, _, metric = name.rpartition("_")
    if hasattr(evaluator, "score_functions"):
        measure, _, k = metric.partition("@")
        by_item = {
            query: type(evaluator).compute_metrics(_with(evaluator, queries_ids=[query], queries=[text]), [result])
            for query, text, result in zip(evaluator.queries_ids, evaluator.queries, seen[similarity], strict=True)
        }
        values = {str(query): float(of[f"{measure}@k"][int(k)]) for query, of in by_item.items()}
        return _given(task, values, metric)

    def embed(_: Any, texts: Sequence[str], **how: Any) -> Any:
        return _stacked([seen[how.get("encode_fn_name"), text] for text in texts])

    if hasattr(evaluator, "samples"):
        alone = (_with(evaluator, samples=[sample], embed_inputs=embed) for sample in evaluator.samples)
        measure, _, _ = name.partition("@")
        return _given(task, {str(row): one.compute_metrics(model)[measure] for row, one in enumerate(alone)}, name)
    functions = evaluator.similarity_fn_names if "max" in name else [""]
    name = max((name.replace("max", of) for of in functions), key=lambda key: metrics[key])
    if hasattr(evaluator, "anchors"):
        silent = {"embed_inputs": embed, "store_metrics_in_model_card_data": lambda *_: None, "name": ""}
        triples = zip(evaluator.anchors, evaluator.positives, evaluator.negatives, strict=True)
        alone = (_with(evaluator, anchors=[a], positives=[p], negatives=[n], **silent) for a, p, n in triples)
        return _given(task, {str(row): one(model)[name] for row, one in enumerate(alone)}, name)
    gold = evaluator.labels if hasattr(evaluator, "labels") else evaluator.scores
    sides = evaluator.sentences1, evaluator.sentences2
    rows = enumerate(zip(gold, *sides, strict=True))
    pairs = pair_table(Pair(task, "dev", str(row), float(of), *texts) for row, (of, *texts) in rows)
    sha256, limits = fingerprint(pairs.values.tolist()), (float(min(gold)), float(max(gold)))
    data = StsData(task, "dev", "user", pairs, limits, "user", sha256, (), ())
    of_pairs: _Task = PairClassification(data) if hasattr(evaluator, "labels") else StsPairs(data)
    (kind,) = [of for of in ("cosine", "dot", "euclidean", "manhattan") if of in name]
    compare = SimilarityFunction.to_similarity_pairwise_fn(kind)
    vectors = (np.asarray([seen[None, text] for text in side]) for side in sides)
    similarities = {GIVEN_SIMILARITY: compare(*vectors).cpu().double().numpy()}
    return of_pairs, Items(compared_elsewhere(of_pairs, similarities))


def _with(evaluator: Any, **changes: Any) -> Any:
    changed = copy(evaluator)
    vars(changed).update(changes)
    return changed


def _stacked(vectors: Sequence[Any]) -> Any:
    import torch

    return torch.stack(list(vectors)) if isinstance(vectors[0], torch.Tensor) else np.stack(vectors)


def _given(task: str, values: Mapping[str, float], metric: str) -> tuple[_Task, Items]:
    items = measured_items(task, values, measure=metric.replace("@", "_at_"), split="dev", truth=None)
    return items, Items(items.table)


class StsEvaluator(BaseEvaluator):  # type: ignore[misc]
    """An evaluator for `SentenceTransformerTrainer`, `model.fit` and `model.evaluate`.

    Each evaluation measures the current model by `model.encode` and returns its scores with the limits of their
    intervals. During a training it also returns the rise above the last evaluation with a significant rise, with
    its limits (`rise`, `rise_low`, `rise_high`), all between -1 and 1, and the number of evaluations in a row
    without one (`evaluations_without_rise`), which `StopWithoutRise` reads.

    Args:
        tasks: see `DevScores`, also for `protocol`, `data`, `subset_column`, `data_dirs`, `intervals` and `out`.
        name: the prefix of every metric; by default the name of the tasks (`sts-b-dev`).
        batch_size: the batch size of `model.encode`.

    Attributes:
        dev: the evaluations so far.
        primary_metric: the score that selects the best model: `sts-b-dev_spearman_cosine`.

    Raises:
        UserError: if the data is missing, or the tasks have no common score.
    """

    def __init__(
        self,
        tasks: str | AnyTask | Sequence[str | AnyTask] | None = None,
        *,
        protocol: Protocol | None = None,
        data: str | Path | None = None,
        subset_column: str = "subset",
        data_dirs: Sequence[str | Path] = (),
        intervals: Intervals | None = None,
        out: str | Path | None = None,
        name: str = "",
        batch_size: int = 32,
    ) -> None:
        super().__init__()
        self.dev = DevScores(tasks, protocol, data, subset_column, data_dirs, intervals, out)
        self.name = name or self.dev.name
        self.batch_size, self.greater_is_better = batch_size, True
        self.primary_metric = f"{self.name}_{self.dev.metric}"
        self._signature = ""

    def __call__(
        self, model: "SentenceTransformer", output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Measures the current model.

        Args:
            model: the model in training.
            output_path: not used.
            epoch: the epoch of the training; -1 outside of one.
            steps: the step of the training; -1 outside of one.

        Returns:
            The metrics, with the evaluator's name as prefix.
        """

        def encode(sentences: list[str]) -> Any:
            return model.encode(
                sentences, batch_size=self.batch_size, show_progress_bar=False, convert_to_numpy=True
            )

        score = self.dev.measure(model, encode, steps)
        self._signature = score.record.signature
        # A model card has no undefined scores.
        defined = {metric: value for metric, value in score.scores.items() if not math.isnan(value)}
        self.store_metrics_in_model_card_data(model, self.prefix_name_to_metrics(defined, self.name), epoch, steps)
        metrics: dict[str, float] = self.prefix_name_to_metrics(score.metrics, self.name)
        return metrics

    @property
    def description(self) -> str:
        """The name of the task in the model card."""
        return "Semantic Similarity"

    def get_config_dict(self) -> dict[str, Any]:
        """Returns the signature of the scores, for the model card."""
        return {"signature": self._signature} if self._signature else {}
