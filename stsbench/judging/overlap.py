"""Which test sentences stand in a training corpus."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.rows import open_rows
from stsbench.data.sentences import sentences_in
from stsbench.data.shared import keys_met, same_case, same_letters
from stsbench.data.tables import LabelledData
from stsbench.data.views import split_and_view
from stsbench.records.kinds import ALL_TASKS, SUPERVISED
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature
from stsbench.render.cells import file_labels
from stsbench.render.table import Table
from stsbench.scoring.task import Task
from stsbench.scoring.tasks import TaskSpec, read_task

_LINES_A_STEP = 50_000


@dataclass(frozen=True)
class Overlap:
    """How much of a task's sentences stands in a corpus.

    Attributes:
        corpus: the file's name, of several called alike its path.
        task: its name; `all tasks` for the distinct sentences of all tasks.
        sentences: distinct test sentences, whatever their case and white space.
        found: those that are a text of the corpus, likewise; `share` of all.
        found_by_letters: those that are one by `same_letters`, which counts them whatever the tokenisation;
            `share_by_letters` of all.
    """

    corpus: str
    task: str
    sentences: int
    found: int
    share: float
    found_by_letters: int
    share_by_letters: float


def overlaps_of(
    records: Sequence[RunRecord],
    corpora: Sequence[str | Path],
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> tuple[tuple[Overlap, ...], tuple[str, ...]]:
    """Return what of the records' test sentences stands in each corpus, and what a reader should know."""
    sentences: dict[str, list[str]] = {}
    notes = []
    folders = [Path(folder) for folder in data_dirs]
    scores = [score for record in records for score in record.scores if score.kind != SUPERVISED]
    for score in {score.signature.partition("||")[0]: score for score in scores}.values():
        if score.text == "user":
            notes.append(f"the sentences of {score.task} are in a file of your own: not looked for in the corpus.")
            continue
        # The sentences of a view are looked for among those of its whole split.
        task = read_task(TaskSpec(score.task, split_and_view(score.split)[0], score.text), folders)
        if not task.data.sha256.startswith(Signature.parse(score.signature).data):
            notes.append(
                f"the sentences of {score.task} that are here are not those that the runs were scored on."
            )
        sentences.setdefault(score.task, []).extend(_test_sentences(task))
    paths = [Path(corpus).expanduser() for corpus in corpora]
    entries = [
        replace(entry, corpus=name)
        for path, name in zip(paths, file_labels(paths), strict=True)
        for entry in overlap(path, sentences, progress)
    ]
    return tuple(entries), tuple(notes)


def _test_sentences(task: Task) -> list[str]:
    data = task.data
    if isinstance(data, LabelledData) and (is_test := data.items["split"] == "test").any():
        return sentences_in(replace(data, items=data.items[is_test]))
    return task.sentences()


def _same_words(text: str) -> str:
    """Return what two texts share that differ as in `same_case` and in white space alone.

    >>> _same_words(" A man  plays.")
    'a man plays.'
    """
    return same_case(" ".join(text.split()))


def overlap(
    corpus: Path, sentences: Mapping[str, Iterable[str]], progress: Progress = silent
) -> tuple[Overlap, ...]:
    """Look for test sentences in a training corpus, which is read once and never held; tell it for each task.

    Args:
        corpus: one text a line, or a table (.csv, .tsv, .jsonl, .parquet) each of whose cells is a text; all but
            Parquet may be packed (.gz).
        sentences: the test sentences of each task; if there are several, all of them come last.
        progress: told how many bytes are read.
    """
    if not sentences:
        return ()
    tasks = {task: {_same_words(text) for text in texts} for task, texts in sentences.items()}
    if len(tasks) > 1:
        tasks[ALL_TASKS] = set().union(*tasks.values())
    # A sentence of punctuation alone would be found in any line of such.
    letters = {sentence: same_letters(sentence) for sentence in set().union(*tasks.values())}
    met, letters_met = keys_met(
        _texts(corpus, progress), (_same_words, letters), (same_letters, filter(None, letters.values()))
    )
    met_by_letters = met | {sentence for sentence, key in letters.items() if key in letters_met}
    entries = []
    for task, members in tasks.items():
        if members:
            size, found, by_letters = len(members), len(members & met), len(members & met_by_letters)
            shares = found / size, by_letters / size
            entries.append(Overlap(corpus.name, task, size, found, shares[0], by_letters, shares[1]))
    return tuple(entries)


def overlap_sentences(overlaps: Sequence[Overlap]) -> list[str]:
    """Return what was found in each corpus, in a sentence each."""
    # The last entry of a corpus is of all tasks, or of the only one.
    totals = {entry.corpus: entry for entry in overlaps}
    return [
        f"{corpus} holds {total.found} of {total.sentences} test sentences ({total.share:.1%}); whatever the "
        f"tokenisation and punctuation, {total.found_by_letters} ({total.share_by_letters:.1%})."
        for corpus, total in totals.items()
    ]


def overlap_table(overlaps: Sequence[Overlap]) -> Table:
    """Return what was found, a row a corpus and task."""
    rows = [
        {
            "corpus": entry.corpus,
            "task": entry.task,
            "sentences": entry.sentences,
            "found": entry.found,
            "% found": 100 * entry.share,
            "by letters": entry.found_by_letters,
            "% by letters": 100 * entry.share_by_letters,
        }
        for entry in overlaps
    ]
    return Table(pd.DataFrame(rows))


def _texts(corpus: Path, progress: Progress) -> Iterator[str]:
    """Yield the texts of a corpus, of tables each cell.

    Of text and CSV a file of any name is taken, and nothing broken inside it keeps the rest from being looked at:
    what is not UTF-8 becomes a character that matches nothing. That is why these are not read as data to measure
    or to train on is (`stsbench.data.rows`), as the other formats are.
    """
    if {".tsv", ".jsonl", ".parquet"} & {suffix.lower() for suffix in corpus.suffixes[-2:]}:
        for number, (_, cells) in enumerate(open_rows(corpus, is_header=lambda _: False).rows):
            if number % _LINES_A_STEP == 0:
                progress("corpus", number, 0)
            yield from map(str, cells)
        return
    try:
        size = corpus.stat().st_size
        with corpus.open("rb") as raw:
            packed = corpus.suffix.lower() == ".gz"
            is_table = Path(corpus.stem if packed else corpus.name).suffix.lower() == ".csv"
            stream = gzip.GzipFile(fileobj=raw) if packed else raw
            lines = io.TextIOWrapper(stream, "utf-8", errors="replace", newline="" if is_table else "\n")
            for number, cells in enumerate(csv.reader(lines) if is_table else ([line] for line in lines)):
                if number % _LINES_A_STEP == 0:
                    progress("corpus", raw.tell(), size)
                yield from cells
        progress("corpus", size, size)
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot read the corpus {corpus} ({reason}): check the file.") from error
