"""A person's own scored pairs (`--data pairs.tsv`)."""

import numbers
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.files import require_file, sha256_of
from stsbench.base.machine import require_memory
from stsbench.base.words import storable, suggestion
from stsbench.data.rows import FORMATS, PACKED, NumberedCells, RowError, Rows, ending_of, number, open_rows
from stsbench.data.shared import sentence_ids, unordered_pairs
from stsbench.data.tables import FileRead, Pair, StsData, combined_sha256, pair_table

COLUMNS = ("sentence1", "sentence2", "score")
"""What a pair has; the columns of a file without a header are exactly these, in this order."""

ALIASES = {
    "sentence1": ("s1", "text1", "sentence_a"),
    "sentence2": ("s2", "text2", "sentence_b"),
    "score": ("gold", "label", "similarity"),
}
"""Other names under which a column is found, whatever their case."""

_SENTENCE_NAMES = frozenset(name for role in COLUMNS[:2] for name in (role, *ALIASES[role]))

PAIR_BYTES = 1500
"""What measuring needs for a pair besides the vectors: 1.2 kB were measured with sentences of ten words."""

_PAIRS_AT_ONCE = 50_000
_MISTAKES_TOLD = 10
_EMPTY = f"{{}} is empty: give it one pair a line, with columns {', '.join(COLUMNS)}."
_IN_PARTS = "measure a part of them, or use a machine with more"


def load_pairs(path: str | Path, subset_column: str = "subset") -> StsData:
    """Read a person's own pairs from a .tsv, .csv, .jsonl or .parquet file, the first three also with .gz or .zst.

    Columns are found by name, in any case: sentence1 (or s1, text1, sentence_a), sentence2 (s2, text2,
    sentence_b), score (gold, label, similarity), and the subset column if there is one. A TSV or CSV without
    a header has exactly three columns: sentence1, sentence2, score. Whitespace around a sentence is dropped, and
    so are empty lines at the end. What was assumed of the file, and how many rows repeat a pair, are notes.

    A `pair_id` is the pair's line in the file (Parquet: its row), the split is "all", the task is the file's name
    without its ending (and so is the subset, where there is no such column), and the gold range is that of the
    scores. A subset column of another name than `subset` stands with the file's name in `files`, so that the
    data's hash, and with it a score's signature, says which subsets there are.

    Args:
        path: the file.
        subset_column: the column that names each pair's subset (default "subset", which may be absent).

    Raises:
        UserError: naming file and line of all rows that are wrong (the first ten, and how many more), or what
            keeps a correlation from being defined: fewer than two pairs, or one and the same score, in the file
            or in a subset.
    """
    path = Path(path).expanduser()
    table = _open(path)
    task = storable(Path(path.stem).stem if path.suffix.lower() in PACKED else path.stem)
    pairs = pair_table(_pairs(table, subset_column, task))
    _demand_variety(pairs, path)

    files = (FileRead(storable(path.name) + _subsets_by(table, subset_column), sha256_of(path), None),)
    return StsData(
        task=task,
        split="all",
        text="user",
        pairs=pairs,
        gold_range=(float(pairs["gold"].min()), float(pairs["gold"].max())),
        status="user",
        sha256=combined_sha256(files),
        files=files,
        problems=(),
        notes=tuple(map(storable, [*table.notes, *_repeated(pairs, path)])),
    )


def _subsets_by(table: Rows, subset_column: str) -> str:
    column = _subset_column(table, subset_column)
    name = "subset" if column is None else table.columns[column]
    return "" if name.casefold() == "subset" else f", subsets by {storable(name)}"


def _repeated(pairs: pd.DataFrame, path: Path) -> Iterator[str]:
    """Yield how many rows hold the two sentences of an earlier row."""
    both = unordered_pairs(*(sentence_ids(pairs[side]) for side in ("sentence1", "sentence2")))
    repeated = len(both) - len(set(both))
    if repeated:
        yield (
            f"{path.name}: {repeated:,} of {len(both):,} rows {'repeats' if repeated == 1 else 'repeat'} the two "
            "sentences of an earlier one, in either order; each counts as a pair of its own."
        )


def _open(path: Path) -> Rows:
    require_file(path, absent="check the path given to --data")
    ending_of(path, FORMATS[1:])  # a line of text is no pair
    size = path.stat().st_size
    if size == 0:
        raise UserError(_EMPTY.format(path))
    require_memory(size, f"the pairs of {path}", _IN_PARTS)
    return open_rows(path, is_header=_is_header, unnamed=COLUMNS)


def _is_header(cells: Sequence[str]) -> bool:
    if any(cell.strip().casefold() in _SENTENCE_NAMES for cell in cells[:2]):
        return True  # Also if the third is a number: a column called 2023 is refused as a score later.
    return not (len(cells) == len(COLUMNS) and _is_number(cells[2]))


def _is_number(text: str) -> bool:
    # "nan" and "inf" are scores gone wrong, not names of a column.
    return number(text) is not None or text.strip().casefold().lstrip("+-") in {"nan", "inf", "infinity"}


def _pairs(table: Rows, subset_column: str, task: str) -> Iterator[Pair]:
    mistakes = _Mistakes(table.path)
    rows = _without_blank_end(mistakes.readable(table.rows))
    if not any(table.columns) and next(rows, None) is None:
        raise UserError(_EMPTY.format(table.path))
    where1, where2, where_score = (_column(table, role) for role in COLUMNS)
    where_subset = _subset_column(table, subset_column)
    for count, (line, cells) in enumerate(rows, start=1):
        try:
            pair = Pair(
                sentence1=_text(cells[where1], table.columns[where1], table, line),
                sentence2=_text(cells[where2], table.columns[where2], table, line),
                gold=_gold(cells[where_score], table, line),
                subset=task if where_subset is None else _text(cells[where_subset], "subset", table, line),
                split="all",
                pair_id=str(line),
            )
        except RowError as error:
            mistakes.keep(error)
            continue
        yield pair
        if count % _PAIRS_AT_ONCE == 0:
            require_memory(count * PAIR_BYTES, f"the first {count:,} pairs of {table.path}", _IN_PARTS)
    mistakes.demand_none()


class _Mistakes:
    """What is wrong with the rows of a file, collected to be told together."""

    def __init__(self, path: Path) -> None:
        self.path, self.first, self.count = path, list[str](), 0

    def keep(self, error: RowError) -> None:
        self.count += 1
        if len(self.first) < _MISTAKES_TOLD:
            self.first.append(str(error))

    def readable(self, rows: Iterator[NumberedCells]) -> Iterator[NumberedCells]:
        """Yield the rows that can be read."""
        while True:
            try:
                yield next(rows)
            except StopIteration:
                return
            except RowError as error:
                self.keep(error)

    def demand_none(self) -> None:
        if self.count == 1:
            raise UserError(self.first[0])
        if self.count:
            more = self.count - len(self.first)
            last = [f"and {more:,} more."] if more else []
            raise UserError(f"{self.path} has {self.count:,} mistakes:", *self.first, *last)


def _without_blank_end(rows: Iterator[NumberedCells]) -> Iterator[NumberedCells]:
    blank: NumberedCells | None = None
    for row in rows:
        if all(isinstance(cell, str) and not cell.strip() for cell in row[1]):
            blank = blank or row
            continue
        if blank is not None:  # it stands in the middle, and is refused as a row without sentences
            yield blank
        yield row


def _column(table: Rows, role: str) -> int:
    """Return the only column that may play a role, by that very name or an alias."""
    names = [name.casefold() for name in table.columns]
    candidates = [name for name in names if name == role or name in ALIASES[role]]
    if len(candidates) == 1:
        return names.index(candidates[0])
    columns = ", ".join(map(repr, table.columns))
    if candidates:
        both = ", ".join(map(repr, dict.fromkeys(candidates)))
        raise UserError(
            f"{table.path} has several columns for {role} ({both}): rename or delete all but one, for which of "
            "them counts is not to be guessed."
        )
    raise UserError(
        f"{table.path} has no column {role} (or {', '.join(ALIASES[role])}), only {columns}: rename one, or "
        f"leave out the header and give exactly {', '.join(COLUMNS)}."
    )


def _subset_column(table: Rows, name: str) -> int | None:
    names = [column.casefold() for column in table.columns]
    if names.count(name.casefold()) > 1:
        raise UserError(f"{table.path} has several columns {name!r}: rename or delete all but one.")
    if name.casefold() in names:
        return names.index(name.casefold())
    if name != "subset":
        columns = ", ".join(map(repr, table.columns))
        hint = suggestion(name, table.columns, otherwise="name one of these.")
        raise UserError(f"{table.path} has no subset column {name!r}, only {columns}: {hint}")
    return None


def _text(cell: object, column: str, table: Rows, line: int) -> str:
    if not isinstance(cell, str):
        raise RowError(f"{table.at(line)}: {column} is {cell!r}, not text; mend the line.")
    text = cell.strip()
    if not text:
        raise RowError(f"{table.at(line)}: {column} is empty; fill it in or delete the line.")
    if "\0" in text:
        raise RowError(f"{table.at(line)}: {column} holds a NUL character; mend the line.")
    try:
        text.encode()
    except UnicodeEncodeError as error:  # JSON can write half of a surrogate pair; no tokenizer reads that
        raise RowError(f"{table.at(line)}: {column} holds half a character; mend the line.") from error
    return text


def _gold(cell: object, table: Rows, line: int) -> float:
    # bool is a number to Python; as a gold score it is a slip.
    plain = isinstance(cell, numbers.Real) and not isinstance(cell, bool)
    value = number(str(cell)) if plain or isinstance(cell, str) else None
    if value is None:
        raise RowError(f"{table.at(line)}: the score {cell!r} is not a finite number; mend it or delete the line.")
    return value


def _demand_variety(pairs: pd.DataFrame, path: Path) -> None:
    if not len(pairs):
        raise UserError(f"{path} has a header but no pairs: add one pair a line.")
    by_subset = pairs.groupby("subset", sort=False)["gold"]
    parts = ((f"{path}, subset {subset!r},", golds) for subset, golds in by_subset)
    for where, golds in chain([(str(path), pairs["gold"])], parts):
        if len(golds) == 1:
            raise UserError(f"{where} has a single pair: a correlation needs at least two; add pairs.")
        if golds.min() == golds.max():
            raise UserError(
                f"{where} has the score {golds.iloc[0]:g} for every pair: a correlation needs scores that differ."
            )
