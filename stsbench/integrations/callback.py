"""Dev scores for Transformers' `Trainer`, and early stopping that asks whether a rise can be told from chance."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.integrations.dev_scores import WITHOUT_RISE, DevScores
from stsbench.integrations.live import ModelEncode, pooled
from stsbench.scoring.settings import Intervals, Protocol
from stsbench.scoring.tasks import AnyTask

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise UserError("StsCallback is for Transformers' Trainer: pip install transformers accelerate.") from error

if TYPE_CHECKING:
    from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments


class StopWithoutRise(TrainerCallback):  # type: ignore[misc]
    """Stops a training after some evaluations in a row whose rise cannot be told from chance.

    It reads what `StsEvaluator` puts among the metrics of `SentenceTransformerTrainer`; `StsCallback` has it built
    in. What it looks at is the paired interval of the difference to the last evaluation that rose, on the same
    pairs: a score that wavers never rises, and a slow climb adds up until it does.

    Args:
        patience: how many such evaluations.

    Raises:
        UserError: if the patience is none.
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
        """Stop the training if the metrics say that it is time."""
        counts = [count for name, count in (metrics or {}).items() if name.endswith(WITHOUT_RISE)]
        self._has_seen = self._has_seen or bool(counts)
        if not self._has_seen and state.global_step > 0:
            raise UserError(
                "nothing among the metrics says how long nothing rose, so this training would never stop early: "
                "give the trainer an StsEvaluator."
            )
        # Of several evaluators one that still rises is enough to go on.
        if counts and min(counts) >= self.patience:
            control.should_training_stop = True


class StsCallback(TrainerCallback):  # type: ignore[misc]
    """Dev scores with intervals in the training of Transformers' `Trainer`.

    Whenever the trainer evaluates, or every so many steps, the model is measured as it is, and its scores go to
    the trainer's log and metrics under `eval_` and the name (`eval_sts-b-dev_spearman_cosine`), for
    `metric_for_best_model` and whatever else reads them; so do how far the score rose and for how many evaluations
    it did not (see `StsEvaluator`). Of several processes the first measures, and all are told.

        trainer = Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=held_out)
        trainer.add_callback(StsCallback(trainer, "STS-B:dev", pooling="avg", patience=3))

    Args:
        trainer: whose model is measured, and whose log gets the scores.
        tasks: as `DevScores` takes them, and so are the others from `protocol` to `out`.
        encode: how vectors are made: a function of the model in training and a list of sentences that returns an
            array or tensor of shape (sentences, dimensions). It is called in evaluation mode, without gradients.
        pooling: instead of `encode`, for a Transformers model: `avg`, `cls_before_pooler` and the like.
        max_length: sub-words that are read with `pooling`; the tokenizer's own limit by default.
        every: steps after each of which to measure, for a training without evaluations of its own; None to measure
            when the trainer evaluates alone.
        patience: evaluations in a row without a rise that can be told from chance after which the training stops;
            None for never.
        name: stands before every metric; by default what the tasks are called (`sts-b-dev`).
        protocol: see `DevScores`.
        data: see there.
        subset_column: see there.
        data_dirs: see there.
        intervals: see there.
        out: see there.

    Attributes:
        dev: the evaluations so far.

    Raises:
        UserError: if nothing says how vectors are made, the data is not here, or one process alone cannot measure.
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
                "the weights of this model are spread over several processes (FSDP, DeepSpeed), and one process "
                "measures here: measure the checkpoints that it saves with `stsbench run`."
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
        """Begin anew: of an earlier training nothing counts."""
        self.dev.begin()

    def on_evaluate(
        self,
        args: "TrainingArguments",
        state: "TrainerState",
        control: "TrainerControl",
        metrics: dict[str, float] | None = None,
        **others: Any,
    ) -> None:
        """Measure, and add the scores to the trainer's metrics before it looks for the best model in them."""
        self._evaluate(args, state, control, {} if metrics is None else metrics)

    def on_step_end(
        self, args: "TrainingArguments", state: "TrainerState", control: "TrainerControl", **others: Any
    ) -> None:
        """Measure every so many steps, unless the trainer is about to evaluate."""
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
        """Return the metrics of the model as it is: measured by the first process, and told to the others."""
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
    """Return how vectors are made of the model in training, as the person says."""
    if (encode is None) == (pooling is None):
        said = "nothing says" if encode is None else "two things say"
        raise UserError(
            f"{said} how vectors are made of the model in training: give a `pooling` (avg, cls_before_pooler, "
            "...) of a Transformers model, or a function `encode(model, sentences)`."
        )
    if encode is not None:
        return encode
    tokenizer = trainer.processing_class
    if tokenizer is None:
        raise UserError("a pooling needs the tokenizer: give it to the trainer as `processing_class`.")
    assert pooling is not None, "one of the two is there"
    return pooled(tokenizer, pooling, max_length)
