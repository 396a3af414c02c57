"""Dev scores for Transformers' `Trainer`, and early stopping when no rise is significant."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.integrations.dev_scores import WITHOUT_RISE, DevScores, ModelEncode, pooled
from stsbench.scoring.settings import Intervals, Protocol
from stsbench.scoring.tasks import AnyTask

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise UserError("StsCallback is for Transformers' Trainer: pip install transformers accelerate.") from error

if TYPE_CHECKING:
    from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments


class StopWithoutRise(TrainerCallback):  # type: ignore[misc]
    """Stops a training after several evaluations in a row without a significant rise.

    It reads the metrics that `StsEvaluator` and `WithIntervals` add to those of `SentenceTransformerTrainer`;
    `StsCallback` includes it. A rise is significant if the paired interval of the difference to the last
    evaluation that rose excludes 0. So a score that fluctuates never rises, and a slow climb adds up until it
    does.

    Args:
        patience: the number of evaluations.

    Raises:
        UserError: if the patience is below 1.
    """

    def __init__(self, patience: int = 3) -> None:
        if patience < 1:
            raise UserError(f"a patience of {patience} evaluations: give 1 or more.")
        self.patience = patience
        self._has_seen = False

    def on_evaluate(
        self,
        args: "TrainingArguments",
        state: "TrainerState",
        control: "TrainerControl",
        metrics: Mapping[str, float] | None = None,
        **others: Any,
    ) -> None:
        """Stops the training once `patience` evaluations show no rise."""
        counts = [count for name, count in (metrics or {}).items() if name.endswith(WITHOUT_RISE)]
        self._has_seen = self._has_seen or bool(counts)
        if not self._has_seen and state.global_step > 0:
            raise UserError(
                "no metric counts the evaluations without a rise, so this training would never stop early: give "
                "the trainer an StsEvaluator, or its evaluator in WithIntervals."
            )
        # The training continues as long as one of several evaluators shows a rise.
        if counts and min(counts) >= self.patience:
            control.should_training_stop = True


class StsCallback(TrainerCallback):  # type: ignore[misc]
    """Dev scores with intervals in the training of Transformers' `Trainer`.

    The model is measured whenever the trainer evaluates, or every `every` steps. Its scores are added to the
    trainer's log and metrics under `eval_` and the name (`eval_sts-b-dev_spearman_cosine`), for example for
    `metric_for_best_model`, together with the rise and the number of evaluations without one (see `StsEvaluator`).
    With several processes the first one measures and sends the metrics to the others.

        trainer = Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=held_out)
        trainer.add_callback(StsCallback(trainer, "STS-B:dev", pooling="avg", patience=3))

    Args:
        trainer: the trainer, whose model is measured.
        tasks: see `DevScores`, also for `protocol`, `data`, `subset_column`, `data_dirs`, `intervals` and `out`.
        encode: a function of the model in training and a list of sentences that returns an array or tensor of
            shape (sentences, dimensions). It is called in evaluation mode, without gradients.
        pooling: instead of `encode`, the pooling of a Transformers model, for example `avg` or
            `cls_before_pooler`.
        max_length: with `pooling`, the maximum length in sub-words; by default the tokenizer's limit.
        every: also measures after every this many steps; None measures only when the trainer evaluates.
        patience: evaluations in a row without a significant rise after which the training stops; None for never.
        name: the prefix of every metric; by default the name of the tasks (`sts-b-dev`).

    Attributes:
        dev: the evaluations so far.

    Raises:
        UserError: if neither `encode` nor `pooling` is given, the data is missing, or the weights are sharded.
    """

    def __init__(
        self,
        trainer: "Trainer",
        tasks: str | AnyTask | Sequence[str | AnyTask] | None = None,
        *,
        encode: ModelEncode | None = None,
        pooling: str | None = None,
        max_length: int | None = None,
        every: int | None = None,
        patience: int | None = None,
        name: str = "",
        protocol: Protocol | None = None,
        data: str | Path | None = None,
        subset_column: str = "subset",
        data_dirs: Sequence[str | Path] = (),
        intervals: Intervals | None = None,
        out: str | Path | None = None,
    ) -> None:
        if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
            raise UserError(
                "the weights of this model are sharded over several processes (FSDP, DeepSpeed), but one process "
                "measures: measure the saved checkpoints with `stsbench run`."
            )
        if every is not None and every < 1:
            raise UserError(f"an evaluation after every {every} steps: give 1 or more.")
        self.trainer, self.every = trainer, every
        self._encode = _encode_of(trainer, encode, pooling, max_length)
        self._stop = None if patience is None else StopWithoutRise(patience)
        self.dev = DevScores(tasks, protocol, data, subset_column, data_dirs, intervals, out)
        self.name = name or self.dev.name

    def on_train_begin(
        self, args: "TrainingArguments", state: "TrainerState", control: "TrainerControl", **others: Any
    ) -> None:
        """Discards the evaluations of an earlier training."""
        self.dev.rises.begin()

    def on_evaluate(
        self,
        args: "TrainingArguments",
        state: "TrainerState",
        control: "TrainerControl",
        metrics: dict[str, float] | None = None,
        **others: Any,
    ) -> None:
        """Measures, and adds the scores to the metrics, from which the trainer chooses the best model."""
        self._evaluate(args, state, control, {} if metrics is None else metrics)

    def on_step_end(
        self, args: "TrainingArguments", state: "TrainerState", control: "TrainerControl", **others: Any
    ) -> None:
        """Measures every `every` steps, unless the trainer is about to evaluate."""
        if self.every is not None and state.global_step % self.every == 0 and not control.should_evaluate:
            self._evaluate(args, state, control, {})

    def _evaluate(
        self,
        args: "TrainingArguments",
        state: "TrainerState",
        control: "TrainerControl",
        metrics: dict[str, float],
    ) -> None:
        measured = {f"eval_{self.name}_{metric}": value for metric, value in self._measured(state).items()}
        metrics |= measured
        self.trainer.log(dict(measured))
        if self._stop is not None and self.trainer.is_in_train:
            self._stop.on_evaluate(args, state, control, metrics=measured)

    def _measured(self, state: "TrainerState") -> dict[str, float]:
        """Returns the metrics of the current model, which the first process measures and broadcasts."""
        metrics: dict[str, float] = {}
        if self.trainer.is_world_process_zero():
            model = self.trainer.model
            step = state.global_step if self.trainer.is_in_train else -1
            metrics = self.dev.measure(model, partial(self._encode, model), step).metrics
        if self.trainer.args.world_size > 1:
            from accelerate.utils import broadcast_object_list  # type: ignore[import-untyped]

            (metrics,) = broadcast_object_list([metrics])
        return metrics


def _encode_of(
    trainer: "Trainer", encode: ModelEncode | None, pooling: str | None, max_length: int | None
) -> ModelEncode:
    if (encode is None) == (pooling is None):
        problem = "there is neither a `pooling` nor" if encode is None else "there are both a `pooling` and"
        raise UserError(
            f"{problem} a function `encode`: give a `pooling` (avg, cls_before_pooler, ...) of a Transformers "
            "model, or a function `encode(model, sentences)`."
        )
    if encode is not None:
        return encode
    tokenizer = trainer.processing_class
    if tokenizer is None:
        raise UserError("a pooling needs the tokenizer: give it to the trainer as `processing_class`.")
    assert pooling is not None
    return pooled(tokenizer, pooling, max_length)
