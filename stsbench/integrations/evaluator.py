"""Dev scores for sentence-transformers: in the log, in the model card's table, in a CSV file."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.base.files import writing
from stsbench.integrations.dev_scores import RISE, WITHOUT_RISE, DevScore, DevScores
from stsbench.scoring.settings import Intervals, Protocol
from stsbench.scoring.tasks import AnyTask

try:
    from sentence_transformers.base.evaluation import BaseEvaluator
except ImportError as error:
    raise UserError(
        "StsEvaluator is for sentence-transformers from 6.0 on: pip install 'stsbench[sentence-transformers]'."
    ) from error

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class StsEvaluator(BaseEvaluator):  # type: ignore[misc]
    """An evaluator for `SentenceTransformerTrainer`, `model.fit` and `model.evaluate`.

    Each evaluation measures the current model by `model.encode` and returns its scores with the limits of their
    intervals. During a training it also returns the rise above the last evaluation with a significant rise, with
    its limits (`rise`, `rise_low`, `rise_high`), all between -1 and 1, and the number of evaluations in a row
    without one (`evaluations_without_rise`), which `StopWithoutRise` reads.

    Args:
        tasks: see `DevScores`, also for the parameters up to `out`.
        protocol: see there.
        data: see there.
        subset_column: see there.
        data_dirs: see there.
        intervals: see there.
        out: see there.
        name: the prefix of every metric; by default the name of the tasks (`sts-b-dev`).
        batch_size: the batch size of `model.encode`.
        write_csv: whether to append each evaluation to `stsbench_NAME_results.csv` in the trainer's folder.

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
        write_csv: bool = True,
    ) -> None:
        super().__init__()
        self.dev = DevScores(tasks, protocol, data, subset_column, data_dirs, intervals, out)
        self.name = name or self.dev.name
        self.batch_size, self.write_csv = batch_size, write_csv
        self.greater_is_better = True
        self.primary_metric = f"{self.name}_{self.dev.metric}"
        self.csv_file = f"stsbench_{self.name}_results.csv"
        self._signature = ""

    def __call__(
        self, model: "SentenceTransformer", output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Measures the current model.

        Args:
            model: the model in training.
            output_path: the folder of the CSV file; None writes none.
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
        if output_path is not None and self.write_csv:
            self._append(Path(output_path), epoch, score)
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

    def _append(self, folder: Path, epoch: float, score: DevScore) -> None:
        """Adds a row to the CSV file, whose columns are the same for every evaluation."""
        columns = ["epoch", "steps", *score.scores, *RISE, WITHOUT_RISE]
        path = folder / self.csv_file
        with writing(path):
            folder.mkdir(parents=True, exist_ok=True)
            with path.open("a+", newline="", encoding="utf-8") as file:
                file.seek(0)
                header = next(csv.reader(file), None)
                if header is not None and header != columns:
                    raise UserError(f"{path} has other columns than this evaluation: move it away.")
                writer = csv.DictWriter(file, columns)
                if header is None:
                    writer.writeheader()
                writer.writerow({"epoch": epoch, "steps": score.step, **score.metrics})
