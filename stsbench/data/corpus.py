"""A corpus: sentences to look at (`load_corpus`), or rows of sentences to train on (`read_rows`)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.memory import require_memory
from stsbench.data.benchmarks import sample_sentences
from stsbench.data.catalogue import source
from stsbench.data.locate import bundled_root
from stsbench.data.rows import ending_of, open_rows, text_lines

SAMPLE = "sample"
"""The name of the corpus that comes with stsbench."""

Row = tuple[int, tuple[str, ...]]
"""The line (in Parquet the row) counted from 1, and its sentences without the whitespace around them."""

# The first row of a CSV or TSV file is its header if all its cells are among these (SimCSE's own, and those that
# data sets of pairs and triplets use); a sentence that is one such word would have to stand in every cell.
HEADER_NAMES = frozenset(
    {"sentence", "sentence1", "sentence2", "sentence3", "text", "text1", "text2", "sent0", "sent1", "sent2"}
    | {"hard_neg", "anchor", "positive", "negative", "query", "document"}
    | {"premise", "hypothesis", "entailment", "contradiction"}
)


def load_corpus(corpus: str | Path) -> tuple[str, ...]:
    """Return the sentences of a corpus, each once, in the order of their first occurrence.

    Args:
        corpus: a UTF-8 file with one sentence a line (`.gz` and `.zst` are uncompressed on the way), or `sample`
            for the sample's own sentences. Whitespace around a sentence is dropped, and so are empty lines.

    Raises:
        UserError: if the file cannot be read, is not UTF-8, holds no sentence, or more than memory does.

    >>> len(load_corpus("sample"))
    400
    """
    if str(corpus) == SAMPLE:
        return sample_sentences()
    path = Path(corpus).expanduser()
    require_room_for(path)
    sentences = tuple(dict.fromkeys(filter(None, (text.strip() for _, text in text_lines(path)))))
    if not sentences:
        raise UserError(f"{path} holds no sentence: write one a line.")
    return sentences


def require_room_for(path: Path) -> None:
    """Refuse a corpus to look at whose sentences memory does not hold, before it is read.

    Raises:
        UserError: if it is larger; nothing where there is no such file.
    """
    if path.is_file():
        # At the least: a sentence of 100 letters takes 150 bytes, and as many again to be found once.
        require_memory(2 * path.stat().st_size, f"the sentences of {path}", "look at a part of them")


def corpus_file(path: str) -> Path:
    """Return the file of a corpus to train on.

    Raises:
        UserError: if there is no such file, or its ending says no format.
    """
    if path == SAMPLE:
        return bundled_root(source("sample")) / "sentences.txt"
    file = Path(path).expanduser()
    if not file.is_file():
        raise UserError(f"there is no corpus {file}: check the path given to --corpus.")
    ending_of(file)
    return file


def read_rows(file: Path, columns: int, names: Sequence[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a corpus, its empty ones too; they are read as they are taken.

    Args:
        file: see `corpus_file`; its formats are those of `stsbench.data.rows.open_rows`.
        columns: sentences in a row.
        names: the columns to read, in order; None for all that there are.

    Raises:
        UserError: naming the line, if one has another number of columns or is broken.
    """
    if names is not None and len(names) != columns:
        raise UserError(
            f"corpus.names {', '.join(names)}: the recipe wants {columns} sentences a row (corpus.columns), so "
            f"name {columns} columns."
        )
    table = open_rows(file, is_header=_is_header, names=names)
    for line, cells in table.rows:
        sentences = tuple(_sentence(cell, table.at(line)) for cell in cells)
        if len(sentences) != columns:
            raise UserError(
                f"{table.at(line)}: {len(sentences)} columns found, but the recipe wants {columns} sentences a "
                "row (corpus.columns); name the columns with --columns, or choose another recipe."
            )
        yield line, sentences


def _is_header(cells: Sequence[str]) -> bool:
    return {cell.strip().casefold() for cell in cells} <= HEADER_NAMES


def _sentence(cell: object, where: str) -> str:
    if cell is not None and not isinstance(cell, str):
        raise UserError(f"{where}: {cell!r} is no sentence; name the columns with --columns.")
    return (cell or "").strip()
