"""Which test sentences stand in a training corpus."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent

EVERYWHERE = "all tasks"

_NOT_LETTERS = re.compile(r"[\W_]+")
_LINES_A_STEP = 50_000


@dataclass(frozen=True)
class Overlap:
    """How much of a task's sentences stands in a corpus.

    Attributes:
        corpus: the file's name.
        task: its name; `EVERYWHERE` for the distinct sentences of all tasks.
        sentences: distinct test sentences, by `same_words`.
        found: those that are a text of the corpus, by `same_words`; `share` of all.
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


def same_words(text: str) -> str:
    """Return what two texts share that differ in letter case and white space alone.

    >>> same_words(" A man  plays.")
    'a man plays.'
    """
    return " ".join(text.split()).casefold()


def same_letters(text: str) -> str:
    """Return what two texts share that differ in case, white space, punctuation and tokenisation alone.

    >>> same_letters("It's a dog.") == same_letters("it 's a dog .")
    True
    """
    return _NOT_LETTERS.sub("", text.casefold())


def overlap(
    corpus: Path, sentences: Mapping[str, Iterable[str]], progress: Progress = silent
) -> tuple[Overlap, ...]:
    """Look for test sentences in a training corpus, which is read once and never held.

    Args:
        corpus: one text a line, or a .csv file each of whose cells is a text; either may end in .gz.
        sentences: the test sentences of each task.
        progress: told how many bytes are read.

    Returns:
        One entry a task and, if there are several, one for all of them.

    Raises:
        UserError: if the corpus cannot be read.
    """
    tasks = {task: {same_words(text) for text in texts} for task, texts in sentences.items()}
    if len(tasks) > 1:
        tasks[EVERYWHERE] = set().union(*tasks.values())
    missing = set().union(*tasks.values())
    by_letters: dict[str, list[str]] = {}
    for sentence in missing:
        by_letters.setdefault(same_letters(sentence), []).append(sentence)
    # A sentence of punctuation alone would be found in any line of such.
    by_letters.pop("", None)
    found: set[str] = set()
    alike: set[str] = set()
    for text in _texts(corpus, progress):
        words = same_words(text)
        if words in missing:
            missing.remove(words)
            found.add(words)
        alike.update(by_letters.pop(same_letters(text), ()))
    alike |= found
    return tuple(
        Overlap(
            corpus.name,
            task,
            sentences=len(own),
            found=len(own & found),
            share=len(own & found) / len(own),
            found_by_letters=len(own & alike),
            share_by_letters=len(own & alike) / len(own),
        )
        for task, own in tasks.items()
        if own
    )


def _texts(corpus: Path, progress: Progress) -> Iterator[str]:
    """Yield the texts of a corpus; what is not UTF-8 becomes a character that matches nothing.

    Raises:
        UserError: if it cannot be read.
    """
    try:
        size = corpus.stat().st_size
        with corpus.open("rb") as raw:
            packed = corpus.suffix.lower() == ".gz"
            kind = Path(corpus.stem if packed else corpus.name).suffix.lower()
            is_table = kind == ".csv"
            stream = gzip.GzipFile(fileobj=raw) if packed else raw
            lines = io.TextIOWrapper(stream, "utf-8", errors="replace", newline="" if is_table else "\n")
            for number, cells in enumerate(csv.reader(lines) if is_table else ([line] for line in lines)):
                if number % _LINES_A_STEP == 0:
                    progress("corpus", raw.tell(), size)
                yield from cells
        progress("corpus", size, size)
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        told = getattr(error, "strerror", None) or error
        raise UserError(f"cannot read the corpus {corpus} ({told}): check the file.") from error
