"""Sentences by the name of where they are from: a task as `--tasks` names it, NLI, the sample, or a file."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled, load_sts, sample_sentences
from stsbench.data.catalogue import data_set, is_task, paper_tasks, task_split_text
from stsbench.data.corpus import load_corpus
from stsbench.data.tables import LabelledData, StsData

_GROUP = "sts"
_NLI, _NLI_TASK = "nli", "SNLI"
_SAMPLE_CORPUS = "sample-sentences"
_FIRST_CHOICE = "senteval"


@dataclass(frozen=True)
class Sentences:
    """Sentences, and where they are from.

    Attributes:
        name: of their source: tasks with their split (`STS-B:test`), or the file's name; several with commas.
        texts: as often as they stand there; of pairs all first sides, then all second sides.
    """

    name: str
    texts: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """One hash over the texts in their order."""
        digest = hashlib.sha256()
        for text in self.texts:
            digest.update(text.encode(errors="surrogatepass") + b"\n")
        return digest.hexdigest()


def read_sentences(source: str | Path, data_dirs: Sequence[Path] = ()) -> Sentences:
    """Return the sentences of one or several sources.

    A task comes before a file of that name (`./STS12` is the file). A task's sentences come as often as they stand
    in its pairs; those of a file each once, as `load_corpus` reads them.

    Args:
        source: `TASK[:split][@text]` (by default the test split; a labelled task has one), `sts` for all STS
            tasks, `nli` for SNLI's dev and test, which is the NLI of SentEval's data, `sample-sentences` for the
            sample's corpus, or a text file with a sentence a line; several with commas.
        data_dirs: folders to look for data in first (default: the places of `stsbench.data.locate`).

    Raises:
        UserError: if there is no such task and no such file, its data is not here, or it is broken.

    >>> sentences = read_sentences("sample")
    >>> sentences.name, len(sentences.texts)
    ('sample', 504)
    """
    path = Path(source).expanduser()
    if isinstance(source, Path) or (_is_file(path) and not any(map(_is_name, str(source).split(",")))):
        return Sentences(path.name, load_corpus(path))
    parts = [_read(name, data_dirs) for name in filter(None, map(str.strip, source.split(",")))]
    if not parts:
        raise UserError("no sentences were named: give a task, such as STS-B, or a file with a sentence a line.")
    return Sentences(",".join(part.name for part in parts), tuple(text for part in parts for text in part.texts))


def sentences_in(data: StsData | LabelledData) -> list[str]:
    """Return the sentences of a task: of pairs all first sides, then all second sides."""
    if isinstance(data, StsData):
        return [*data.table["sentence1"], *data.table["sentence2"]]
    paired = data.items["sentence2"].notna().all()
    return [*data.items["sentence1"], *(data.items["sentence2"] if paired else [])]


def _read(name: str, data_dirs: Sequence[Path]) -> Sentences:
    folded = name.casefold()
    if folded == _SAMPLE_CORPUS:
        return Sentences(_SAMPLE_CORPUS, sample_sentences())
    if folded == _GROUP:
        parts = [_of_task(task, data_dirs) for task in paper_tasks()]
        return Sentences(_GROUP, tuple(text for part in parts for text in part.texts))
    if folded == _NLI:
        return _of_task(_NLI_TASK, data_dirs)
    path = Path(name).expanduser()
    if not is_task(name) and (_is_file(path) or path.suffix or len(path.parts) > 1):
        return Sentences(path.name, load_corpus(path))
    return _of_task(name, data_dirs)


def _of_task(name: str, data_dirs: Sequence[Path]) -> Sentences:
    task, split, text = task_split_text(name)
    entry = data_set(task)
    usual = _FIRST_CHOICE if _FIRST_CHOICE in entry.texts else next(iter(entry.texts))
    other_text = f"@{text}" if text not in {"", usual} else ""
    if entry.kind == "labelled":
        if split:
            raise UserError(f"{entry.task} is read with all of its splits: leave out ':{split}'.")
        labelled = load_labelled(task, data_dirs, text=text or usual)
        return Sentences(entry.task + other_text, tuple(sentences_in(labelled)))
    several = len({part.split for part in entry.texts[usual].parts}) > 1
    pairs = load_sts(task, split or "test", text or usual, data_dirs)
    shown = f":{split or 'test'}" if several or split not in {"", "test"} else ""
    return Sentences(f"{entry.task}{shown}{other_text}", tuple(sentences_in(pairs)))


def _is_name(name: str) -> bool:
    return name.strip().casefold() in {_GROUP, _NLI, _SAMPLE_CORPUS} or is_task(name)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for any file, or with a NUL character
        return False
