"""Corpora: sentences (`load_corpus`), rows to train on (`read_rows`), triples to probe (`load_triples`)."""

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.machine import require_memory
from stsbench.base.words import suggestion
from stsbench.data.catalogue import source
from stsbench.data.reading import Column, Schema, as_sentence, bundled_root, read_table
from stsbench.data.rows import ending_of, open_rows, text_lines

SAMPLE = "sample"
"""The name of the bundled corpus."""

Row = tuple[int, tuple[str, ...]]
"""The line (Parquet: the row) from 1, and its sentences without the whitespace around them."""

# SimCSE's own names, and those of data sets of pairs and triplets.
_HEADER_NAMES = frozenset(
    {"sentence", "sentence1", "sentence2", "sentence3", "text", "text1", "text2", "sent0", "sent1", "sent2"}
    | {"hard_neg", "anchor", "positive", "negative", "query", "document"}
    | {"premise", "hypothesis", "entailment", "contradiction"}
)


def load_corpus(corpus: str | Path) -> tuple[str, ...]:
    """Returns the distinct sentences of a corpus in order of first occurrence.

    Args:
        corpus: a UTF-8 file with one sentence per line, also with `.gz` or `.zst`, or `sample` for the bundled
            sentences. Whitespace around a sentence is dropped, blank lines are skipped.

    Raises:
        UserError: if the file cannot be read, is not UTF-8, has no sentences, or more than fit into memory.

    >>> len(load_corpus("sample"))
    400
    """
    return tuple(numbered_corpus(corpus))


def numbered_corpus(corpus: str | Path) -> dict[str, int]:
    """Returns the sentences of a corpus as `load_corpus` does, each with its number.

    Lines that are not blank are numbered from 0, like the rows of a vector file. Of equal sentences the first is
    kept.
    """
    path = corpus_file(SAMPLE) if str(corpus) == SAMPLE else Path(corpus).expanduser()
    require_room_for(path)
    numbers: dict[str, int] = {}
    for number, sentence in enumerate(sentences_in(path)):
        numbers.setdefault(sentence, number)
    if not numbers:
        raise UserError(f"{path} has no sentences: give one per line.")
    return numbers


def sentences_in(path: Path) -> Iterator[str]:
    """Yields the lines of a text file without surrounding whitespace; blank ones are left out."""
    return filter(None, (text.strip() for _, text in text_lines(path)))


def require_room_for(path: Path) -> None:
    """Checks that the sentences of a file fit into memory."""
    if path.is_file():
        require_memory(2 * path.stat().st_size, f"the sentences of {path}", "use a part of them")


def corpus_file(path: str) -> Path:
    """Returns the file of a training corpus, which must exist and have a known format."""
    if path == SAMPLE:
        return bundled_root(source("sample")) / "sentences.txt"
    file = Path(path).expanduser()
    if not file.is_file():
        raise UserError(f"there is no corpus {file}: check the path given to --corpus.")
    ending_of(file)
    return file


def read_rows(file: Path, columns: int, names: Sequence[str] | None = None) -> Iterator[Row]:
    """Yields the rows of a corpus as a stream, including empty ones.

    Args:
        file: see `corpus_file`.
        columns: the number of sentences per row.
        names: the columns to read, in order; by default all.
    """
    if names is not None and len(names) != columns:
        raise UserError(f"corpus.names {', '.join(names)}: the recipe needs {columns} columns (corpus.columns).")
    table = open_rows(file, is_header=is_header, names=names)
    for line, cells in table.rows:
        sentences = tuple(_sentence(cell, table.at(line)) for cell in cells)
        if len(sentences) != columns:
            raise UserError(
                f"{table.at(line)}: found {len(sentences)} columns, but the recipe needs {columns} sentences per "
                "row (corpus.columns); name the columns with --columns, or choose another recipe."
            )
        yield line, sentences


def is_header(cells: Sequence[str]) -> bool:
    """Returns whether the first row of a table of sentences has column names: all, or several of them, are known.

    >>> is_header(["sentence"]), is_header(["id", "sentence1", "sentence2"]), is_header(["A dog.", "text"])
    (True, True, False)
    """
    known = sum(cell.strip().casefold() in _HEADER_NAMES for cell in cells)
    return known == len(cells) or known > 1


def _sentence(cell: object, where: str) -> str:
    if cell is not None and not isinstance(cell, str):
        raise UserError(f"{where}: {cell!r} is not a sentence; name the columns with --columns.")
    return (cell or "").strip()


BUNDLED = "bundled"
"""The name of the triples in `probes/triples.tsv`, which `probes/CARD.md` describes."""

COLUMNS = ("kind", "sentence", "paraphrase", "changed")
"""The columns of a file of triples, in any case; a file without a header has exactly these, in this order."""

_TRIPLES = Schema(
    "triple",
    [Column(name, as_sentence) for name in COLUMNS],
    COLUMNS,
    f"give {BUNDLED} or a file of triples",
)


class Triple(NamedTuple):
    """A sentence, a second one with the same meaning, and a third one with a different meaning.

    `kind` names what the change alters; or, if the paraphrase is an edit as small as the change (a synonym, a
    typo, another word order), the paraphrase's edit.
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
    bundled = Path(str(files("stsbench.data").joinpath("probes", "triples.tsv")))
    is_bundled = str(triples) == BUNDLED
    path = bundled if is_bundled else Path(triples).expanduser()
    table, name = read_table(path, _TRIPLES), BUNDLED if is_bundled else path.name
    rows = [Triple(*row) for row in table.frame[[*COLUMNS]].itertuples(index=False)]
    for line, triple in zip(table.frame["line"], rows, strict=True):
        if len({*triple[1:]}) < len(triple[1:]):
            raise UserError(f"{table.rows.at(line)}: two sentences are the same text; fix or delete the line.")
    known = list(dict.fromkeys(triple.kind for triple in rows))
    for kind in kinds:
        if kind not in known:
            raise UserError(f"{name} has no triples of the kind {kind!r}: {suggestion(kind, known)}")
    chosen = list(dict.fromkeys(kinds)) or known
    of_kinds = tuple(triple for kind in chosen for triple in rows if triple.kind == kind)
    return Triples(name, of_kinds, table.rows.notes)
