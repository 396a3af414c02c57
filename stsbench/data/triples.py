"""Triples for probes of meaning: a sentence, a paraphrase that keeps its meaning, and a change that does not.

There is the set that comes with stsbench (`probes/triples.tsv`, described in its `CARD.md`), HEROS (Chiang et al.
2023, arXiv 2306.05083), which `stsbench data get heros` fetches, and a person's own file.
"""

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.files import require_file
from stsbench.base.words import storable, suggestion
from stsbench.data.catalogue import source
from stsbench.data.locate import find_root
from stsbench.data.rows import FORMATS, NumberedCells, Rows, ending_of, open_rows

BUNDLED, HEROS = "bundled", "heros"
"""The names of the sets that are no files of the person's."""

COLUMNS = ("kind", "sentence", "paraphrase", "changed")
"""What a file of triples has, under these names in any case; without a header exactly these, in this order."""

HEROS_TRIPLES = {
    "antonym": ("synonym", "antonym"),
    "negation": ("synonym", "negation"),
    "random word": ("synonym", "random"),
    "typo": ("typo", "antonym"),
}
"""Which columns of HEROS stand for the paraphrase and for the change of its column `Original`, by kind.

HEROS pairs an original with one edit each, and compares its columns by their mean cosines. Its synonyms and typos
keep the meaning, so that they are the paraphrases here.
"""


class Triple(NamedTuple):
    """A sentence, another that means the same, and another that does not.

    `kind` names what is tried: what the change changes; or, where the paraphrase is as small an edit as the change
    is (a synonym, a typo, another order of the words), what the paraphrase leaves as it was.
    """

    kind: str
    sentence: str
    paraphrase: str
    changed: str


class Triples(NamedTuple):
    """Triples, the name of what they are from, and what was assumed of it, a sentence each."""

    name: str
    rows: tuple[Triple, ...]
    notes: tuple[str, ...] = ()


def load_triples(
    triples: str | Path = BUNDLED, kinds: Sequence[str] = (), data_dirs: Sequence[str | Path] = ()
) -> Triples:
    """Read triples, those of a kind together, kinds in the order of their first triples.

    Args:
        triples: `bundled`, `heros`, or a .tsv, .csv, .jsonl or .parquet file with the columns `kind`, `sentence`,
            `paraphrase` and `changed`. Whitespace around a cell is dropped.
        kinds: the kinds to keep, in this order; by default all.
        data_dirs: folders to look for HEROS in.

    Raises:
        UserError: naming file and line, if a cell is empty or two of a triple's sentences are the same text; or if
            there is no triple, or none of a kind that was asked for.

    >>> probes = load_triples(kinds=["typo"])
    >>> len(probes.rows), probes.rows[0].paraphrase
    (40, 'The farmer sold his baot before the winter.')
    """
    if str(triples) == HEROS:
        read = _heros([Path(folder) for folder in data_dirs])
    elif str(triples) == BUNDLED:
        read = _own_file(Path(str(files("stsbench.data").joinpath("probes", "triples.tsv"))))._replace(
            name=BUNDLED
        )
    else:
        read = _own_file(Path(triples).expanduser())
    there = list(dict.fromkeys(triple.kind for triple in read.rows))
    for kind in kinds:
        if kind not in there:
            raise UserError(f"{read.name} has no triples of the kind {kind!r}: {suggestion(kind, there)}")
    wanted = list(dict.fromkeys(kinds)) or there
    return read._replace(rows=tuple(triple for kind in wanted for triple in read.rows if triple.kind == kind))


def _own_file(path: Path) -> Triples:
    require_file(path, absent=f"give {BUNDLED}, {HEROS} or a file of triples")
    ending_of(path, FORMATS[1:])  # A line of text is no triple.
    table = open_rows(path, is_header=_is_header, unnamed=COLUMNS)
    places: list[int] | None = None
    rows = []
    for line, cells in _filled(table):
        places = places or [_place(table, name) for name in COLUMNS]
        where = table.at(line)
        triple = Triple(*(_text(cells[place], name, where) for place, name in zip(places, COLUMNS, strict=True)))
        if alike := _alike(triple):
            raise UserError(f"{where}: {' and '.join(alike)} are the same text; mend the line or delete it.")
        rows.append(triple)
    if not rows:
        raise UserError(f"{path} has no triple: give it one a line, with the columns {', '.join(COLUMNS)}.")
    return Triples(storable(path.name), tuple(rows), tuple(map(storable, table.notes)))


def _is_header(cells: Sequence[str]) -> bool:
    return bool({cell.strip().casefold() for cell in cells} & {*COLUMNS[1:]})


def _heros(data_dirs: Sequence[Path]) -> Triples:
    heros = source(HEROS)
    path = find_root(heros, [heros.file_name], "HEROS", data_dirs) / heros.file_name
    table = open_rows(path, is_header=lambda cells: any(cell.strip().casefold() == "original" for cell in cells))
    rows, unusable = list[Triple](), 0
    for triple in _heros_rows(table):
        if all(triple) and not _alike(triple):
            rows.append(triple)
        else:
            unusable += 1
    if not rows:
        raise UserError(f"{path} has no triple: get it again with `stsbench data get {HEROS}`.")
    notes = ["HEROS is unverified: its file is read by what its authors say of it.", *table.notes]
    if unusable:
        notes.append(
            f"{path.name}: {unusable:,} of {unusable + len(rows):,} triples are left out, as a sentence of theirs "
            "is empty or stands there twice."
        )
    return Triples("HEROS", tuple(rows), tuple(map(storable, notes)))


def _heros_rows(table: Rows) -> Iterator[Triple]:
    columns: dict[str, int] = {}
    for line, cells in _filled(table):
        if not columns:
            names = dict.fromkeys(["original", *(name for pair in HEROS_TRIPLES.values() for name in pair)])
            columns = {name: _place(table, name) for name in names}
        row = {name: _as_text(cells[place], name, table.at(line)) for name, place in columns.items()}
        for kind, (paraphrase, changed) in HEROS_TRIPLES.items():
            yield Triple(kind, row["original"], row[paraphrase], row[changed])


def _filled(table: Rows) -> Iterator[NumberedCells]:
    """Yield the rows that hold anything: an empty line is none."""
    for line, cells in table.rows:
        if any(not isinstance(cell, str) or cell.strip() for cell in cells):
            yield line, cells


def _place(table: Rows, name: str) -> int:
    columns = [column.strip().casefold() for column in table.columns]
    if columns.count(name) == 1:
        return columns.index(name)
    there = ", ".join(map(repr, table.columns)) or "none that are named"
    if name in columns:
        raise UserError(f"{table.path} has several columns {name!r} ({there}): rename or delete all but one.")
    raise UserError(f"{table.path} has no column {name!r} (its columns: {there}): rename the one that it is.")


def _as_text(cell: object, column: str, where: str) -> str:
    if cell is not None and not isinstance(cell, str):
        raise UserError(f"{where}: {column} is {cell!r}, not text; mend the line.")
    text = (cell or "").strip()
    if "\0" in text or storable(text) != text:
        raise UserError(f"{where}: {column} holds a character that is none; mend the line.")
    return text


def _text(cell: object, column: str, where: str) -> str:
    text = _as_text(cell, column, where)
    if not text:
        raise UserError(f"{where}: {column} is empty; fill it in or delete the line.")
    return text


def _alike(triple: Triple) -> tuple[str, str] | None:
    """Return the names of two of a triple's sentences that are one text."""
    for one, other in (("sentence", "paraphrase"), ("sentence", "changed"), ("paraphrase", "changed")):
        if getattr(triple, one) == getattr(triple, other):
            return one, other
    return None
