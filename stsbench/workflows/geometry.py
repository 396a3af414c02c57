"""`geometry`: alignment, uniformity, and the mean cosine of random pairs."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stsbench.analysis.geometry import PairVectors, figure, views
from stsbench.analysis.geometry import geometry as analyse
from stsbench.evaluation.tasks import sentences_of
from stsbench.foundation.errors import UserError
from stsbench.foundation.progress import Progress, silent
from stsbench.records import RunRecord
from stsbench.workflows.analysed_data import read_pairs_of, vectors_of
from stsbench.workflows.subjects import Subject, Wanted, named_subjects

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["checkpoints_in", "figure", "geometry", "views"]


def geometry(
    runs: Wanted | Sequence[Wanted] | None = None,
    *,
    task: str | None = None,
    split: str | None = None,
    text: str = "senteval",
    positive: float = 4.0,
    distinct: bool = False,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
    **options: Any,
) -> "pd.DataFrame":
    """Measure alignment, uniformity and the mean cosine of random pairs for runs or models.

    Args:
        runs: records or their folders (their model's vectors come from the cache); or encoders, or what `load`
            makes one of.
        task: whose sentences; by default STS-B, or the sample where its data is not here.
        split: by default all that the task has, as SimCSE's authors took STS-B.
        text: the text variant.
        positive: pairs whose gold score is above are positive pairs.
        distinct: whether a sentence that occurs several times counts once.
        data_dirs: folders to look for data in.
        progress: told how far it is.
        options: how to load models, as in `load`.

    Returns:
        One row per model; see `stsbench.analysis.geometry.geometry`. `task`, `split` and `text` say of what, and
        `sts` is a run's own score x 100: the average, or else that of this task, where it has one.

    Raises:
        UserError: if the data is missing, or a sentence was never encoded and the model is not here.

    >>> geometry(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")["sentences"].tolist()
    [504]
    """
    subjects = named_subjects(runs, **options)
    data = read_pairs_of(task, split, text, data_dirs)
    texts, gold = sentences_of(data), data.pairs["gold"].to_numpy(float)
    models = {}
    for name, subject in subjects.items():
        vectors, rows = vectors_of(subject, texts, progress)
        left, right = np.split(rows, 2)
        models[name] = PairVectors(vectors, left, right, gold)
    found = {name: score_beside(subject, data.task) for name, subject in subjects.items()}
    scores = {name: score for name, score in found.items() if score is not None}
    frame = analyse(models, scores, positive=positive, distinct=distinct, progress=progress)
    return frame.assign(task=data.task, split=data.split, text=data.text)


def score_beside(subject: Subject, task: str) -> float | None:
    """Return the score x 100 to name beside the geometry of a task's sentences.

    That is a run's average, or its score of this very task: another task's would mislead.
    """
    if not isinstance(subject, RunRecord):
        return None
    scored = subject.average or next((one for one in subject.tasks if one.task == task), None)
    return None if scored is None or scored.score is None else 100 * scored.score


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints of a training run, in the order of the last number in their names.

    Args:
        folder: one that `stsbench train` made, or any whose folders are checkpoints.

    Raises:
        UserError: if there are none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as made:
    ...     for step in (1000, 250):
    ...         (Path(made) / f"step-{step}").mkdir()
    ...         _ = (Path(made) / f"step-{step}" / "config.json").write_text("{}")
    ...     [path.name for path in checkpoints_in(Path(made))]
    ['step-250', 'step-1000']
    """
    from stsbench.training.state import RunFolder

    folder = folder.expanduser().resolve()
    kept = RunFolder(folder).checkpoints
    folder = kept if kept.is_dir() else folder
    found = [path.parent for path in folder.glob("*/config.json")]
    found += [path.parent for path in folder.glob("*/modules.json") if path.parent not in found]
    if not found:
        raise UserError(f"{folder} has no checkpoints in it: name the folder whose folders are checkpoints.")
    return sorted(found, key=lambda path: (int((re.findall(r"\d+", path.name) or ["0"])[-1]), path.name))
