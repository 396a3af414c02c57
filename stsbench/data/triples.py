"""Triples for probes of meaning: a sentence, a paraphrase that keeps its meaning, and a change that does not.

There is the bundled set (`probes/triples.tsv`, described in its `CARD.md`), and your own file.
"""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.data.reading import Column, Schema, as_sentence, read_table

BUNDLED = "bundled"
"""The name of the set that is not a file of yours."""

COLUMNS = ("kind", "sentence", "paraphrase", "changed")
"""The columns of a file of triples, in any case; a file without a header has exactly these, in this order."""

_TRIPLES = Schema(
    "triple",
    [Column(name, as_sentence) for name in COLUMNS],
    COLUMNS,
    f"give {BUNDLED} or a file of triples",
)


class Triple(NamedTuple):
    """A sentence, another that means the same, and another that does not.

    `kind` names what the change changes; or, if the paraphrase is as small an edit as the change (a synonym, a
    typo, another word order), what the paraphrase leaves unchanged.
    """

    kind: str
    sentence: str
    paraphrase: str
    changed: str


class Triples(NamedTuple):
    """Triples, the name of their source, and assumptions about it, one sentence each."""

    name: str
    rows: tuple[Triple, ...]
    notes: tuple[str, ...] = ()


def load_triples(triples: str | Path = BUNDLED, kinds: Sequence[str] = ()) -> Triples:
    """Reads triples, grouped by kind in order of first occurrence.

    Args:
        triples: `bundled`, or a .tsv, .csv, .jsonl or .parquet file with the columns `kind`, `sentence`,
            `paraphrase` and `changed`. Whitespace around a cell is dropped.
        kinds: the kinds to keep, in this order; by default all.

    Raises:
        UserError: with file and line, if a cell is empty or two sentences of a triple are the same text; or if
            there is no triple, or none of a requested kind.

    >>> probes = load_triples(kinds=["typo"])
    >>> len(probes.rows), probes.rows[0].paraphrase
    (40, 'The farmer sold his baot before the winter.')
    """
    if str(triples) == BUNDLED:
        bundled = Path(str(files("stsbench.data").joinpath("probes", "triples.tsv")))
        read = _read_file(bundled)._replace(name=BUNDLED)
    else:
        read = _read_file(Path(triples).expanduser())
    known = list(dict.fromkeys(triple.kind for triple in read.rows))
    for kind in kinds:
        if kind not in known:
            raise UserError(f"{read.name} has no triples of the kind {kind!r}: {suggestion(kind, known)}")
    chosen = list(dict.fromkeys(kinds)) or known
    return read._replace(rows=tuple(triple for kind in chosen for triple in read.rows if triple.kind == kind))


def _read_file(path: Path) -> Triples:
    table = read_table(path, _TRIPLES)
    triples = [Triple(*row) for row in table.frame[[*COLUMNS]].itertuples(index=False)]
    for line, triple in zip(table.frame["line"], triples, strict=True):
        if len({*triple[1:]}) < len(triple[1:]):
            raise UserError(f"{table.rows.at(line)}: two sentences are the same text; fix or delete the line.")
    return Triples(path.name, tuple(triples), table.rows.notes)
