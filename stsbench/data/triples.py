"""Triples for probes of meaning: a sentence, a paraphrase that keeps its meaning, and a change that does not.

There is the bundled set (`probes/triples.tsv`, described in its `CARD.md`), HEROS (Chiang et al. 2023, arXiv
2306.05083), which `stsbench data get heros` downloads, and your own file.
"""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.data.catalogue import source
from stsbench.data.locate import find_root
from stsbench.data.reading import Column, Schema, as_sentence, as_text, read_table

BUNDLED, HEROS = "bundled", "heros"
"""The names of the sets that are not files of yours."""

COLUMNS = ("kind", "sentence", "paraphrase", "changed")
"""The columns of a file of triples, in any case; a file without a header has exactly these, in this order."""

_TRIPLES = Schema(
    "triple",
    [Column(name, as_sentence) for name in COLUMNS],
    COLUMNS,
    f"give {BUNDLED}, {HEROS} or a file of triples",
)

HEROS_TRIPLES = {
    "antonym": ("synonym", "antonym"),
    "negation": ("synonym", "negation"),
    "random word": ("synonym", "random"),
    "typo": ("typo", "antonym"),
}
"""The columns of HEROS for the paraphrase and the change of its column `Original`, by kind.

HEROS pairs an original with one edit each, and compares its columns by their mean cosines. Its synonyms and typos
keep the meaning, so they are the paraphrases here.
"""

_HEROS = Schema(
    "triple",
    [Column(name, as_text) for name in ("original", "synonym", "antonym", "negation", "random", "typo")],
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

    @property
    def repeated(self) -> str:
        """The names of two columns with the same text, or an empty string."""
        for first, second in (("sentence", "paraphrase"), ("sentence", "changed"), ("paraphrase", "changed")):
            if getattr(self, first) == getattr(self, second):
                return f"{first} and {second}"
        return ""


class Triples(NamedTuple):
    """Triples, the name of their source, and assumptions about it, one sentence each."""

    name: str
    rows: tuple[Triple, ...]
    notes: tuple[str, ...] = ()


def load_triples(
    triples: str | Path = BUNDLED, kinds: Sequence[str] = (), data_dirs: Sequence[str | Path] = ()
) -> Triples:
    """Reads triples, grouped by kind in order of first occurrence.

    Args:
        triples: `bundled`, `heros`, or a .tsv, .csv, .jsonl or .parquet file with the columns `kind`, `sentence`,
            `paraphrase` and `changed`. Whitespace around a cell is dropped.
        kinds: the kinds to keep, in this order; by default all.
        data_dirs: folders to search for HEROS.

    Raises:
        UserError: with file and line, if a cell is empty or two sentences of a triple are the same text; or if
            there is no triple, or none of a requested kind.

    >>> probes = load_triples(kinds=["typo"])
    >>> len(probes.rows), probes.rows[0].paraphrase
    (40, 'The farmer sold his baot before the winter.')
    """
    if str(triples) == HEROS:
        read = _read_heros([Path(folder) for folder in data_dirs])
    elif str(triples) == BUNDLED:
        read = _read_file(Path(str(files("stsbench.data").joinpath("probes", "triples.tsv"))))._replace(
            name=BUNDLED
        )
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
        if triple.repeated:
            raise UserError(f"{table.rows.at(line)}: {triple.repeated} are the same text; fix or delete the line.")
    return Triples(path.name, tuple(triples), table.rows.notes)


def _read_heros(data_dirs: Sequence[Path]) -> Triples:
    heros = source(HEROS)
    path = find_root(heros, [heros.file_name], "HEROS", data_dirs) / heros.file_name
    rows = read_table(path, _HEROS).frame.to_dict("records")
    triples = [
        Triple(kind, row["original"], row[paraphrase], row[changed])
        for row in rows
        for kind, (paraphrase, changed) in HEROS_TRIPLES.items()
    ]
    usable = tuple(triple for triple in triples if all(triple) and not triple.repeated)
    if not usable:
        raise UserError(f"{path} has no triple: get it again with `stsbench data get {HEROS}`.")
    notes = ["HEROS is unverified: its file was not available when this reader was written."]
    if unusable := len(triples) - len(usable):
        notes.append(f"Left out {unusable:,} of {len(triples):,} triples with an empty or repeated sentence.")
    return Triples("HEROS", usable, tuple(notes))
