"""Sentences by the name of where they are from: a task as `--tasks` names it, NLI, the sample, a corpus or a file.

`read_sentences` gives them to compute on, `read_sets` and `read_corpus_set` to hold sets against each other.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled, load_sts, sample_sentences
from stsbench.data.catalogue import (
    SENTEVAL,
    data_set,
    data_sets,
    is_task,
    paper_tasks,
    task_split_text,
    text_variant,
)
from stsbench.data.corpus import HEADER_NAMES, SAMPLE, load_corpus, require_room_for
from stsbench.data.rows import ending_of, number, open_rows
from stsbench.data.tables import LabelledData, StsData

_GROUP = "sts"
_NLI, _NLI_TASK = "nli", "SNLI"
_SAMPLE_CORPUS = "sample-sentences"
_KINDS = {"sts": ("sts",), "transfer": ("labelled",), "all": ("sts", "labelled")}


@dataclass(frozen=True)
class Sentences:
    """Sentences, or pairs of them, and where they are from.

    Attributes:
        name: of their source: a task with its split (`STS-B:test`), several with `+` or commas, or a file's name.
        first: n sentences, as often as they stand there, or the first ones of n pairs.
        second: n second ones of pairs; None where nothing is paired.
        origin: the task, or the path of the corpus.
    """

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...] | None = None
    origin: str = ""

    @classmethod
    def of_pairs(cls, data: StsData) -> "Sentences":
        """Return the pairs of a task or of a person's file."""
        name = data.task if data.split == "all" else f"{data.task}:{data.split}"
        return cls(name, tuple(data.pairs["sentence1"]), tuple(data.pairs["sentence2"]), data.task)

    @property
    def texts(self) -> tuple[str, ...]:
        """All sentences, of pairs all first sides and then all second sides."""
        return self.first + (self.second or ())

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
    return _side_by_side(",".join(part.name for part in parts), parts)


def sentences_in(data: StsData | LabelledData) -> list[str]:
    """Return the sentences of a task: of pairs all first sides, then all second sides."""
    if isinstance(data, StsData):
        return [*data.pairs["sentence1"], *data.pairs["sentence2"]]
    paired = data.items["sentence2"].notna().all()
    return [*data.items["sentence1"], *(data.items["sentence2"] if paired else [])]


def _read(name: str, data_dirs: Sequence[Path]) -> Sentences:
    folded = name.casefold()
    if folded == _SAMPLE_CORPUS:
        return Sentences(_SAMPLE_CORPUS, sample_sentences())
    if folded == _GROUP:
        return _side_by_side(_GROUP, [_of_task(task, data_dirs) for task in paper_tasks()])
    if folded == _NLI:
        return _of_task(_NLI_TASK, data_dirs)
    path = Path(name).expanduser()
    if not is_task(name) and (_is_file(path) or path.suffix or len(path.parts) > 1):
        return Sentences(path.name, load_corpus(path))
    return _of_task(name, data_dirs)


def _side_by_side(name: str, parts: Sequence[Sentences]) -> Sentences:
    return Sentences(name, tuple(text for part in parts for text in part.texts))


def _of_task(name: str, data_dirs: Sequence[Path]) -> Sentences:
    task, split, text = task_split_text(name)
    entry = data_set(task)
    other_text = f"@{text}" if text not in {"", entry.usual_text} else ""
    if entry.kind == "labelled":
        if split:
            raise UserError(f"{entry.task} is read with all of its splits: leave out ':{split}'.")
        labelled = load_labelled(task, data_dirs, text=text or entry.usual_text)
        return Sentences(entry.task + other_text, tuple(sentences_in(labelled)))
    several = len(entry.texts[entry.usual_text].splits) > 1
    pairs = load_sts(task, split or "test", text or entry.usual_text, data_dirs)
    shown = f":{split or 'test'}" if several or split not in {"", "test"} else ""
    return Sentences(f"{entry.task}{shown}{other_text}", tuple(sentences_in(pairs)))


def _is_name(name: str) -> bool:
    return name.strip().casefold() in {_GROUP, _NLI, _SAMPLE_CORPUS} or is_task(name)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for any file, or with a NUL character
        return False


def read_sets(names: Sequence[str], data_dirs: Sequence[Path] = ()) -> list[Sentences]:
    """Return the sets that a person names, each once.

    Args:
        names: `TASK[:split][@text]`, where a task without a split stands for all of its splits, one set each;
            several of those joined by `+`, for one set of them all; `sts`, `transfer` or `all`.
        data_dirs: folders to look for data in first (default: the places of `stsbench.data.locate`).

    >>> [texts.name for texts in read_sets(["sample", "sample-questions"])]
    ['sample', 'sample-questions:train', 'sample-questions:test']
    """
    sets: dict[str, Sentences] = {}
    for name in names:
        for texts in _named(name, data_dirs):
            sets.setdefault(texts.name, texts)
    return list(sets.values())


def _named(name: str, data_dirs: Sequence[Path]) -> list[Sentences]:
    if kinds := _KINDS.get(name.casefold()):
        tasks = [task for task, entry in data_sets().items() if entry.kind in kinds and SENTEVAL in entry.texts]
        return [texts for task in tasks for texts in _splits_of(task, data_dirs)]
    members = [texts for part in name.split("+") for texts in _splits_of(part.strip(), data_dirs)]
    if "+" not in name:
        return members
    if len({texts.second is None for texts in members}) > 1:
        raise UserError(f"{name}: sets of pairs and of single sentences cannot be joined; name them one by one.")
    first = tuple(text for texts in members for text in texts.first)
    second = tuple(text for texts in members for text in texts.second or ())
    return [Sentences(name, first, second or None, name)]


def _splits_of(name: str, data_dirs: Sequence[Path]) -> list[Sentences]:
    task, split, text = task_split_text(name)
    entry = data_set(task)
    chosen = text or entry.usual_text
    if entry.kind == "sts":
        table = load_sts(task, split or text_variant(entry, chosen).whole, chosen, data_dirs).pairs
    else:
        table = load_labelled(task, data_dirs, text=chosen).items
    # A few sentences of CR and MPQA are empty: nothing that could be shared.
    table = table[table["sentence1"] != ""]
    splits = list(dict.fromkeys(table["split"]))
    if split not in {"", "all", *splits}:
        raise UserError(f"{entry.task} has no split {split!r}: choose one of {', '.join(splits)}.")
    other_text = f"@{text}" if text not in {"", SENTEVAL} else ""
    sets = []
    for part in splits if split in {"", "all"} else [split]:
        rows = table[table["split"] == part]
        second = None if rows["sentence2"].isna().any() else tuple(rows["sentence2"])
        is_whole = part == "all" or splits == ["test"]
        shown = "" if is_whole else f":{part}"
        sets.append(Sentences(f"{entry.task}{shown}{other_text}", tuple(rows["sentence1"]), second, entry.task))
    return sets


def read_corpus_set(corpus: str | Path, columns: Sequence[str] | None = None) -> Sentences:
    """Return a training corpus: its lines, or the sentences of its rows, the first with each of the others a pair.

    Args:
        corpus: a text file with a sentence a line (each counts once), a .tsv, .csv, .jsonl or .parquet file, or
            `sample`.
        columns: the columns that hold sentences, in order; by default all cells but numbers.

    >>> corpus = read_corpus_set("sample")
    >>> corpus.name, len(corpus.first), corpus.second
    ('sample', 400, None)
    """
    path = Path(corpus).expanduser()
    if str(corpus) == SAMPLE or _ending(path) == ".txt":
        if columns is not None:
            raise UserError(f"{path} is text, one sentence a line: it has no columns to name.")
        return Sentences(path.name, load_corpus(corpus), None, str(corpus))
    require_room_for(path)
    rows = list(_sentences_of_rows(path, columns))
    if not rows:
        raise UserError(f"{path} holds no sentence: name the columns that hold some with --columns.")
    if all(len(row) > 1 for row in rows):
        firsts = [row[0] for row in rows for _ in row[1:]]
        return Sentences(path.name, tuple(firsts), tuple(text for row in rows for text in row[1:]), str(path))
    return Sentences(path.name, tuple(text for row in rows for text in row), None, str(path))


def _ending(path: Path) -> str:
    try:
        return ending_of(path)
    except UserError:
        # A file whose name says no format is likely to be text; if it is not, reading it says so.
        return ".txt"


def _sentences_of_rows(path: Path, columns: Sequence[str] | None) -> Iterator[tuple[str, ...]]:
    for _, cells in open_rows(path, is_header=_is_header, names=columns).rows:
        texts = tuple(
            cell.strip()
            for cell in cells
            if isinstance(cell, str) and cell.strip() and (columns is not None or number(cell) is None)
        )
        if texts:
            yield texts


def _is_header(cells: Sequence[str]) -> bool:
    # Tables of pairs name an id or a score beside the sentences.
    known = [cell for cell in cells if cell.strip().casefold() in HEADER_NAMES]
    return len(known) == len(cells) or len(known) > 1
