"""Sentences by the name of their source: a task as in `--tasks`, NLI, the sample, or a file.

`read_sentences` returns sentences to encode; `read_sets` and `read_corpus_set` return sets, whose shared sentences
and pairs `overlap` counts.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled, load_sts
from stsbench.data.catalogue import (
    SENTEVAL,
    data_set,
    data_sets,
    is_task,
    paper_tasks,
    task_split_text,
    text_variant,
)
from stsbench.data.corpus import SAMPLE, is_header, load_corpus, require_room_for
from stsbench.data.rows import TABLES, number, open_rows, suffix_of
from stsbench.data.tables import IDS, LETTERS, RELEASED, DataOverview, LabelledData, StsData, pair_ids, shared_ids
from stsbench.render.formats import unique_labels
from stsbench.render.table import Table, Tables

_KINDS = {"sts": ("sts",), "transfer": ("labelled",), "all": ("sts", "labelled")}


@dataclass(frozen=True)
class Sentences:
    """Sentences, or pairs of sentences, and the name of their source.

    Attributes:
        name: a task with its split (`STS-B:test`), several joined by `+` or commas, or a file's name.
        first: n sentences, repetitions included, or the first ones of n pairs.
        second: the second ones of n pairs; None for single sentences.
    """

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """All sentences; of pairs all first ones, then all second ones."""
        return self.first + (self.second or ())

    @property
    def sha256(self) -> str:
        """A hash of the texts in their order."""
        digest = hashlib.sha256()
        for text in self.texts:
            digest.update(text.encode(errors="surrogatepass") + b"\n")
        return digest.hexdigest()


def read_sentences(source: str | Path, data_dirs: Sequence[Path] = ()) -> Sentences:
    """Reads the sentences of one or several sources.

    A task takes precedence over a file with its name (`./STS12` is the file). Sentences of tasks are repeated as
    in their pairs; those of a file are distinct, see `load_corpus`.

    Args:
        source: `TASK[:split][@text]` (by default the test split; all splits of a labelled task), `sts` for all STS
            tasks, `nli` for SNLI's dev and test, `sample-sentences` for the sample's corpus, or a text file with
            one sentence per line; several with commas.
        data_dirs: folders to search for data first (default: the places of `stsbench.data.reading`).

    Raises:
        UserError: if there is no such task or file, or its data is missing or broken.

    >>> sentences = read_sentences("sample")
    >>> sentences.name, len(sentences.texts)
    ('sample', 504)
    """
    if isinstance(source, Path):
        return Sentences(source.name, load_corpus(source))
    parts = [_read(name, data_dirs) for name in filter(None, map(str.strip, source.split(",")))]
    if not parts:
        raise UserError("there are no sentences to read: give a task, such as STS-B, or a file with one per line.")
    return _joined(",".join(part.name for part in parts), parts)


def sentences_in(data: StsData | LabelledData) -> list[str]:
    """Returns the sentences of a task; of pairs all first ones, then all second ones."""
    table = data.pairs if isinstance(data, StsData) else data.items
    paired = table["sentence2"].notna().all()
    return [*table["sentence1"], *(table["sentence2"] if paired else [])]


def _read(name: str, data_dirs: Sequence[Path]) -> Sentences:
    match name.casefold():
        case "sample-sentences":
            return Sentences("sample-sentences", load_corpus(SAMPLE))
        case "sts":
            return _joined("sts", [_of_task(task, data_dirs) for task in paper_tasks()])
        case "nli":
            return _of_task("SNLI", data_dirs)
    path = Path(name).expanduser()
    if not is_task(name) and (path.is_file() or path.suffix or len(path.parts) > 1):
        return Sentences(path.name, load_corpus(path))
    return _of_task(name, data_dirs)


def _joined(name: str, parts: Sequence[Sentences]) -> Sentences:
    return Sentences(name, tuple(text for part in parts for text in part.texts))


def _of_task(name: str, data_dirs: Sequence[Path]) -> Sentences:
    task, split, text = task_split_text(name)
    entry = data_set(task)
    chosen = text or entry.usual_text
    other_text = "" if chosen == entry.usual_text else f"@{text}"
    if entry.kind == "labelled":
        if split:
            raise UserError(f"{entry.task} is read with all of its splits: leave out ':{split}'.")
        labelled = load_labelled(task, data_dirs, text=chosen)
        return Sentences(entry.task + other_text, tuple(sentences_in(labelled)))
    pairs = load_sts(task, split or "test", chosen, data_dirs)
    several = len(entry.texts[entry.usual_text].splits) > 1
    shown = f":{pairs.split}" if several or pairs.split != "test" else ""
    return Sentences(f"{entry.task}{shown}{other_text}", tuple(sentences_in(pairs)))


def read_sets(names: Sequence[str], data_dirs: Sequence[Path] = ()) -> list[Sentences]:
    """Reads distinct sets of sentences or pairs.

    Args:
        names: `TASK[:split][@text]`, where a task without a split means all of its splits, one set each; several
            joined by `+` for one set; `sts`, `transfer` or `all`.
        data_dirs: folders to search for data first (default: the places of `stsbench.data.reading`).

    >>> [texts.name for texts in read_sets(["sample", "sample-questions"])]
    ['sample', 'sample-questions:train', 'sample-questions:test']
    """
    sets: dict[str, Sentences] = {}
    for name in names:
        kinds = _KINDS.get(name.casefold(), ())
        tasks = [task for task, entry in data_sets().items() if entry.kind in kinds and SENTEVAL in entry.texts]
        members = [texts for task in tasks or name.split("+") for texts in _splits_of(task.strip(), data_dirs)]
        for texts in [_as_one(name, members)] if "+" in name else members:
            sets.setdefault(texts.name, texts)
    return list(sets.values())


def _as_one(name: str, members: Sequence[Sentences]) -> Sentences:
    if len({texts.second is None for texts in members}) > 1:
        raise UserError(f"{name}: sets of pairs and of single sentences cannot be joined; name them separately.")
    first = tuple(text for texts in members for text in texts.first)
    second = tuple(text for texts in members for text in texts.second or ())
    return Sentences(name, first, second or None)


def _splits_of(name: str, data_dirs: Sequence[Path]) -> list[Sentences]:
    task, split, text = task_split_text(name)
    entry = data_set(task)
    chosen = text or entry.usual_text
    if entry.kind == "sts":
        table = load_sts(task, split or text_variant(entry, chosen).whole, chosen, data_dirs).pairs
    else:
        table = load_labelled(task, data_dirs, text=chosen).items
    # A few sentences of CR and MPQA are empty.
    table = table[table["sentence1"] != ""]
    splits = {str(name): rows for name, rows in table.groupby("split", sort=False)}
    if split not in {"", "all", *splits}:
        raise UserError(f"{entry.task} has no split {split!r}: choose one of {', '.join(splits)}.")
    other_text = f"@{text}" if text not in {"", SENTEVAL} else ""
    sets = []
    for part in splits if split in {"", "all"} else [split]:
        first, second = splits[part]["sentence1"], splits[part]["sentence2"]
        shown = "" if part == "all" or [*splits] == ["test"] else f":{part}"
        name = f"{entry.task}{shown}{other_text}"
        sets.append(Sentences(name, tuple(first), None if second.isna().any() else tuple(second)))
    return sets


def read_corpus_set(corpus: str | Path, columns: Sequence[str] | None = None) -> Sentences:
    """Reads a training corpus: its lines, or its rows, whose first sentence is paired with each of the others.

    Args:
        corpus: a text file with one sentence per line (distinct ones are kept), a .tsv, .csv, .jsonl or .parquet
            file, or `sample`.
        columns: the columns with sentences, in order; by default all cells but numbers.

    >>> corpus = read_corpus_set("sample")
    >>> corpus.name, len(corpus.first), corpus.second
    ('sample', 400, None)
    """
    path = Path(corpus).expanduser()
    # A file without a known suffix is likely to be text; if it is not, reading it fails.
    if str(corpus) == SAMPLE or suffix_of(path) not in TABLES:
        if columns is not None:
            raise UserError(f"{path} has one sentence per line: it has no columns to name.")
        return Sentences(path.name, load_corpus(corpus))
    require_room_for(path)
    rows = []
    for _, cells in open_rows(path, is_header=is_header, names=columns).rows:
        texts = [cell.strip() for cell in cells if isinstance(cell, str) and cell.strip()]
        if row := [text for text in texts if columns is not None or number(text) is None]:
            rows.append(row)
    if not rows:
        raise UserError(f"{path} has no sentences: name the columns with --columns.")
    if all(len(row) > 1 for row in rows):
        pairs = [(first, other) for first, *others in rows for other in others]
        return Sentences(path.name, *map(tuple, zip(*pairs, strict=True)))
    return Sentences(path.name, tuple(text for row in rows for text in row))


SENTENCES, PAIRS = "sentences", "pairs"

_NOTES = (
    "letters: equal by letters and digits; the column before it: as released. Pairs match in either order.",
    "%: of the distinct pairs of a set (sentences, if a set has no pairs), by letters and digits.",
)


def overlap(
    tasks: Sequence[str] = (),
    *,
    corpora: Sequence[str | Path] = (),
    columns: Sequence[str] | None = None,
    data_dirs: Sequence[Path] = (),
) -> DataOverview:
    """Counts the sentences and pairs that data sets share, one row per two sets, unit and way of comparing.

    Columns: a, b, unit ("sentences" or "pairs"), same ("as released" or "letters and digits"), distinct a,
    distinct b (distinct units in each), shared a, shared b (how many of them the other set also has), rows a, rows
    b (the rows with them: a pair may be repeated, and a sentence may be in several pairs). If a and b are the same
    set, those in several rows are shared.

    Args:
        tasks: the tasks, such as `STS16` (each split is a set), `STS-B:train`, `STS12@raw` or, as one set,
            `STS12+STS13`; `sts`, `transfer` or `all`. Default: `sts`.
        corpora: training corpora to compare with the tasks, instead of these with each other: files, or `sample`.
        columns: the corpora's columns with sentences; by default all cells but numbers.
        data_dirs: folders to search for data first.

    Raises:
        UserError: if a task or its data is missing, or a corpus cannot be read.

    >>> shared = overlap(["sample"], corpora=["sample"])
    >>> shared.frame[["a", "b", "unit", "same", "shared a"]].values.tolist()
    [['sample', 'corpus sample', 'sentences', 'as released', 1],
     ['sample', 'corpus sample', 'sentences', 'letters and digits', 1]]
    """
    sets = [(texts.name, _ids(texts)) for texts in read_sets(tasks or ["sts"], data_dirs)]
    labels = unique_labels([Path(corpus).name for corpus in corpora])
    # A corpus may have the name of a task.
    read = [
        (f"corpus {label}", _ids(read_corpus_set(corpus, columns)))
        for label, corpus in zip(labels, corpora, strict=True)
    ]
    compared = product(sets, read) if read else combinations_with_replacement(sets, 2)
    rows = pd.DataFrame([row for a, b in compared for row in _compare(a, b)])
    inside = rows["a"] == rows["b"]
    captions = {
        "Shared by two sets: distinct sentences and pairs": _wide(rows[~inside]),
        "Repeated within a set: distinct sentences or pairs of several rows": _wide(rows[inside]),
    }
    shown = [(frame, caption) for caption, frame in captions.items() if len(frame)]
    notes = [()] * (len(shown) - 1) + [_NOTES]
    tables = (Table(*of, decimals=1, notes=below) for of, below in zip(shown, notes, strict=False))
    return DataOverview(rows, Tables(tables))


def _wide(rows: pd.DataFrame) -> pd.DataFrame:
    shown = []
    for (a, b), group in rows.groupby(["a", "b"], sort=False):
        counts = {(row["unit"], row["same"]): row for row in group.to_dict("records")}
        if not group["shared a"].any():
            continue
        shared = {key: row["shared a"] for key, row in counts.items()}
        main = counts.get((PAIRS, LETTERS)) or counts[SENTENCES, LETTERS]
        row: dict[str, object] = {"a": a, "b": b} if a != b else {"set": a}
        for unit in (SENTENCES, PAIRS):
            row |= {unit: shared.get((unit, RELEASED)), f"{unit}, letters": shared.get((unit, LETTERS))}
        row["% of a" if a != b else "%"] = 100 * main["shared a"] / main["distinct a"]
        row |= {"% of b": 100 * main["shared b"] / main["distinct b"]} if a != b else {"rows": main["rows a"]}
        shown.append(row)
    frame = pd.DataFrame(shown).dropna(axis="columns", how="all")
    counted = [name for name in frame if not str(name).startswith(("%", "a", "b", "set"))]
    return frame.astype(dict.fromkeys(counted, "Int64"))


_Ids = dict[tuple[str, str], NDArray[np.uint64]]
"""For each unit and way of comparing, the ids of each row, (n, k): its pair, or its one or two sentences."""


def _ids(texts: Sentences) -> _Ids:
    ids: _Ids = {}
    for same, ids_of in IDS.items():
        sides = [ids_of(side) for side in (texts.first, texts.second) if side is not None]
        ids[SENTENCES, same] = np.stack(sides, axis=1)
        if len(sides) > 1:
            ids[PAIRS, same] = pair_ids(*sides)[:, np.newaxis]
    return ids


def _compare(a: tuple[str, _Ids], b: tuple[str, _Ids]) -> Iterator[dict[str, Any]]:
    (name_a, ids_a), (name_b, ids_b) = a, b
    is_within = ids_a is ids_b
    keys = [key for key in product((SENTENCES, PAIRS), IDS) if key in ids_a and key in ids_b]
    # Within a set of pairs, sentences repeat by design.
    for unit, same in keys[-len(IDS) :] if is_within else keys:
        rows = ids_a[unit, same], ids_b[unit, same]
        if is_within:
            distinct, times = np.unique(rows[0], return_counts=True)
            rows = rows[0], distinct[times > 1]
        of_a = shared_ids(*rows)
        of_b = of_a if is_within else shared_ids(*rows[::-1])
        yield (
            {"a": name_a, "b": name_b, "unit": unit, "same": same}
            | {"distinct a": of_a.distinct, "distinct b": of_b.distinct}
            | {"shared a": of_a.shared, "shared b": of_b.shared}
            | {f"rows {side}": int(of.mask.any(axis=1).sum()) for side, of in (("a", of_a), ("b", of_b))}
        )
