"""The sentences behind records, which contain only their ids."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.data.sentences import read_corpus_set
from stsbench.data.shared import sentence_ids
from stsbench.data.views import split_and_view
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.scoring.tasks import TaskSpec, read_task


def specs_of(records: Sequence[RunRecord]) -> list[TaskSpec]:
    """Returns the distinct tasks of records, without the results of other tools."""
    scores = (score for record in records for score in record.scores if Signature.parse(score.signature).data)
    return list(
        dict.fromkeys(TaskSpec(score.task, split_and_view(score.split)[0], score.text) for score in scores)
    )


def texts_of(
    specs: Sequence[TaskSpec],
    ids: Collection[int],
    data: Sequence[str | Path] = (),
    data_dirs: Sequence[str | Path] = (),
    *,
    remedy: str = "",
) -> dict[int, str]:
    """Returns sentences by id (`data.shared.sentence_ids`).

    Args:
        specs: the tasks whose data is searched.
        ids: the ids of the sentences.
        data: files with sentences that are not in the catalogue, such as your own pairs.
        data_dirs: folders to look for the tasks' data in.
        remedy: another remedy for the error message, an infinitive.

    Raises:
        UserError: if a sentence is not found.
    """
    ids, reason = set(ids), ""
    texts: dict[int, str] = {}
    for sentences in _sources(specs, data, [Path(folder) for folder in data_dirs]):
        if isinstance(sentences, UserError):
            reason = reason or f" ({str(sentences).rstrip('.')})"
            continue
        known = zip(sentence_ids(sentences).tolist(), sentences, strict=True)
        texts |= {sentence_id: text for sentence_id, text in known if sentence_id in ids}
        if len(texts) == len(ids):
            return texts
    if missing := len(ids) - len(texts):
        advice = "name the folder of the data with --data-dir, or a file of your own with --data"
        raise UserError(
            f"{missing:,} of the runs' {len(ids):,} sentences are not here{reason}: {advice}"
            f"{f', or {remedy}' if remedy else ''}."
        )
    return texts


def _sources(
    specs: Sequence[TaskSpec], data: Sequence[str | Path], folders: Sequence[Path]
) -> "Iterator[Sequence[str] | UserError]":
    """Yields the sentences of each file and task, or the error for a task without data."""
    for path in data:
        yield read_corpus_set(path).texts
    for spec in specs:
        if spec.text == "user":  # your own pairs are not in the catalogue
            continue
        try:
            yield read_task(spec, folders).sentences()
        except UserError as error:
            yield error
