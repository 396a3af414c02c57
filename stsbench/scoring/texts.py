"""The sentences behind records, which hold numbers in their place: found among the data that is here."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.data.sentences import read_corpus_set
from stsbench.data.shared import sentence_ids
from stsbench.data.views import split_and_view
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.scoring.tasks import TaskSpec, read_task


def texts_of(
    records: Sequence[RunRecord],
    wanted: Collection[int],
    data: Sequence[str | Path] = (),
    data_dirs: Sequence[str | Path] = (),
    *,
    otherwise: str = "",
) -> dict[int, str]:
    """Return sentences of some records by their numbers (`data.shared.sentence_ids`).

    Args:
        records: whose tasks' data is looked through.
        wanted: the numbers.
        data: files with the sentences of a person's own pairs, which are in no catalogue.
        data_dirs: folders to look for the tasks' data in.
        otherwise: what else the person may do where one is missing, as the end of a sentence.

    Raises:
        UserError: if one is not among the data that is here.
    """
    wanted = set(wanted)
    texts: dict[int, str] = {}
    missing: UserError | None = None
    for sentences in _sources(records, data, [Path(folder) for folder in data_dirs]):
        if isinstance(sentences, UserError):
            missing = missing or sentences
            continue
        numbers = sentence_ids(sentences).tolist()
        texts |= {number: text for number, text in zip(numbers, sentences, strict=True) if number in wanted}
        if len(texts) == len(wanted):
            return texts
    if lacking := len(wanted) - len(texts):
        reason = f" ({str(missing).rstrip('.')})" if missing else ""
        # A choice of two has no comma before its `or`, one of three has.
        remedies = ["name the folder of the data with --data-dir", "a file of your own with --data"]
        advice = f"{', '.join(remedies)}, or {otherwise}" if otherwise else " or ".join(remedies)
        raise UserError(f"{lacking:,} of the runs' {len(wanted):,} sentences are not here{reason}: {advice}.")
    return texts


def _sources(
    records: Sequence[RunRecord], data: Sequence[str | Path], folders: Sequence[Path]
) -> "Iterator[Sequence[str] | UserError]":
    """Yield the sentences of each task and file, or why a task's are not here."""
    for path in data:
        yield read_corpus_set(path).texts
    seen = set()
    for score in (score for record in records for score in record.scores):
        spec = TaskSpec(score.task, split_and_view(score.split)[0], score.text)
        # Of one's own pairs and of what another tool gave nothing is catalogued.
        if spec in seen or score.text == "user" or not Signature.parse(score.signature).data:
            continue
        seen.add(spec)
        try:
            yield read_task(spec, folders).sentences()
        except UserError as error:
            yield error
