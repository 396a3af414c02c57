"""A person's own scored pairs (`--data pairs.tsv`)."""

import numbers
from collections.abc import Sequence
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.data.rows import FORMATS, PACKED, NumberedCells, Rows, ending_of, number, open_rows
from stsbench.data.tables import FileRead, Pair, StsData, combined_sha256, pair_table

COLUMNS = ("sentence1", "sentence2", "score")
"""What a pair has; the columns of a file without a header are exactly these, in this order."""

ALIASES = {
    "sentence1": ("s1", "text1", "sentence_a"),
    "sentence2": ("s2", "text2", "sentence_b"),
    "score": ("gold", "label", "similarity"),
}
"""Other names under which a column is found, whatever their case."""


def load_pairs(path: Path, subset_column: str = "subset") -> StsData:
    """Read a person's own pairs from a .tsv, .csv, .jsonl or .parquet file, the first three also with .gz or .zst.

    Columns are found by name, in any case: sentence1 (or s1, text1, sentence_a), sentence2 (s2, text2,
    sentence_b), score (gold, label, similarity), and the subset column if there is one. A TSV or CSV without
    a header has exactly three columns: sentence1, sentence2, score. Whitespace around a sentence is dropped, and
    so are empty lines at the end. A `pair_id` is the pair's line in the file (Parquet: its row), the split is
    "all", the task is the file's name without its ending (and so is the subset, where there is no such column),
    and the gold range is that of the scores.

    Args:
        path: the file.
        subset_column: the column that names each pair's subset (default "subset", which may be absent).

    Raises:
        UserError: naming file and line of the first thing that is wrong, or what keeps a correlation from
            being defined: fewer than two pairs, or one and the same score, in the file or in a subset.
    """
    path = Path(path)
    table = _open(path)
    task = _storable(Path(path.stem).stem if path.suffix.lower() in PACKED else path.stem)
    pairs = _pairs(table, subset_column, task)
    _demand_variety(pairs, path)

    files = (FileRead(_storable(path.name), sha256_of(path), None),)
    golds = [pair.gold for pair in pairs]
    return StsData(
        task=task,
        split="all",
        text="user",
        pairs=pair_table(pairs),
        gold_range=(min(golds), max(golds)),
        status="user",
        sha256=combined_sha256(files),
        files=files,
        problems=(),
    )


def _open(path: Path) -> Rows:
    if not path.is_file():
        raise UserError(f"there is no file {path}: check the path given to --data.")
    ending_of(path, FORMATS[1:])  # a line of text is no pair
    if path.stat().st_size == 0:
        raise _empty(path)
    return open_rows(path, is_header=_is_header, unnamed=COLUMNS)


def _empty(path: Path) -> UserError:
    return UserError(f"{path} is empty: give it one pair a line, with columns {', '.join(COLUMNS)}.")


def _is_header(cells: Sequence[str]) -> bool:
    return not (len(cells) == len(COLUMNS) and _is_number(cells[2]))


def _is_number(text: str) -> bool:
    # "nan" and "inf" are scores gone wrong, not names of a column.
    return number(text) is not None or text.strip().casefold().lstrip("+-") in {"nan", "inf", "infinity"}


def _pairs(table: Rows, subset_column: str, task: str) -> list[Pair]:
    rows = list(table.rows)
    while rows and _is_blank(rows[-1]):
        rows.pop()
    if not rows and not any(table.columns):
        raise _empty(table.path)
    where1, where2, where_score = (_column(table, role) for role in COLUMNS)
    where_subset = _subset_column(table, subset_column)
    return [
        Pair(
            sentence1=_text(cells[where1], table.columns[where1], table, line),
            sentence2=_text(cells[where2], table.columns[where2], table, line),
            gold=_gold(cells[where_score], table, line),
            subset=task if where_subset is None else _text(cells[where_subset], "subset", table, line),
            split="all",
            pair_id=str(line),
        )
        for line, cells in rows
    ]


def _is_blank(row: NumberedCells) -> bool:
    return all(isinstance(cell, str) and not cell.strip() for cell in row[1])


def _storable(name: str) -> str:
    # The name of a file may be in an encoding that is not UTF-8; what it names is to be stored and printed.
    return name.encode("utf-8", errors="backslashreplace").decode("utf-8")


def _column(table: Rows, role: str) -> int:
    """Return the column that plays `role`: the one of that very name, else the only one of its aliases."""
    names = [name.casefold() for name in table.columns]
    if names.count(role) == 1:
        return names.index(role)
    candidates = [name for name in names if name == role or name in ALIASES[role]]
    if len(candidates) == 1:
        return names.index(candidates[0])
    there = ", ".join(map(repr, table.columns))
    if candidates:
        raise UserError(f"{table.path} has several columns for {role} ({there}): keep one of them.")
    raise UserError(
        f"{table.path} has no column {role} (or {', '.join(ALIASES[role])}), only {there}: rename one, or "
        f"leave out the header and give exactly {', '.join(COLUMNS)}."
    )


def _subset_column(table: Rows, name: str) -> int | None:
    names = [column.casefold() for column in table.columns]
    if name.casefold() in names:
        return names.index(name.casefold())
    if name != "subset":
        there = ", ".join(map(repr, table.columns))
        raise UserError(f"{table.path} has no subset column {name!r}, only {there}: name one of these.")
    return None


def _text(cell: object, column: str, table: Rows, line: int) -> str:
    if not isinstance(cell, str):
        raise UserError(f"{table.at(line)}: {column} is {cell!r}, not text; mend the line.")
    text = cell.strip()
    if not text:
        raise UserError(f"{table.at(line)}: {column} is empty; fill it in or delete the line.")
    try:
        text.encode()
    except UnicodeEncodeError as error:  # JSON can write half of a surrogate pair; no tokenizer reads that
        raise UserError(f"{table.at(line)}: {column} holds half a character; mend the line.") from error
    return text


def _gold(cell: object, table: Rows, line: int) -> float:
    # bool is a number to Python; as a gold score it is a slip.
    plain = isinstance(cell, numbers.Real) and not isinstance(cell, bool)
    value = number(str(cell)) if plain or isinstance(cell, str) else None
    if value is None:
        raise UserError(
            f"{table.at(line)}: the score {cell!r} is not a finite number; mend it or delete the line."
        )
    return value


def _demand_variety(pairs: Sequence[Pair], path: Path) -> None:
    if not pairs:
        raise UserError(f"{path} has a header but no pairs: add one pair a line.")
    _demand_two_scores([pair.gold for pair in pairs], str(path))
    by_subset: dict[str, list[float]] = {}
    for pair in pairs:
        by_subset.setdefault(pair.subset, []).append(pair.gold)
    for subset, golds in by_subset.items():
        _demand_two_scores(golds, f"{path}, subset {subset!r},")


def _demand_two_scores(golds: Sequence[float], where: str) -> None:
    if len(golds) == 1:
        raise UserError(f"{where} has a single pair: a correlation needs at least two; add pairs.")
    if min(golds) == max(golds):
        raise UserError(
            f"{where} has the score {golds[0]:g} for every pair: a correlation needs scores that differ."
        )
