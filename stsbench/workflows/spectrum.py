"""`spectrum`: how many directions a model's sentence vectors use."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.analysis.spectrum import figure, views
from stsbench.analysis.spectrum import spectrum as analyse
from stsbench.evaluation.tasks import sentences_of
from stsbench.foundation.progress import Progress, silent
from stsbench.workflows.analysed_data import read_pairs_of, vectors_of
from stsbench.workflows.subjects import Wanted, named_subjects

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["figure", "spectrum", "views"]


def spectrum(
    runs: Wanted | Sequence[Wanted] | None = None,
    *,
    task: str | None = None,
    split: str | None = None,
    text: str = "senteval",
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
    **options: Any,
) -> "pd.DataFrame":
    """Measure the singular values of the sentence vectors of runs or models, and what they amount to.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        task: whose sentences; by default STS-B, or the sample where its data is not here.
        split: by default all that the task has.
        text: the text variant.
        data_dirs: folders to look for data in.
        progress: told how far encoding is.
        options: how to load models, as in `load`.

    Returns:
        A tidy table, uncentred and centred; see `stsbench.analysis.spectrum.spectrum`.

    Raises:
        UserError: if the data is missing, or a sentence was never encoded and the model is not here.

    >>> frame = spectrum(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> frame.loc[frame["measure"] == "singular value", "k"].unique().tolist()
    [1, 2, 3]
    """
    subjects = named_subjects(runs, **options)
    data = read_pairs_of(task, split, text, data_dirs)
    texts = sentences_of(data)
    vectors = {name: vectors_of(subject, texts, progress).each() for name, subject in subjects.items()}
    return analyse(vectors).assign(task=data.task, split=data.split, text=data.text)
