"""A plain corpus: one sentence a line."""

import csv
import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import sample_sentences
from stsbench.data.catalogue import source
from stsbench.data.lines import decode, json_object, read_bytes, split_lines
from stsbench.data.locate import bundled_root

SAMPLE = "sample"
"""The name of the corpus that comes with stsbench."""


def load_corpus(corpus: str | Path) -> tuple[str, ...]:
    """Return the sentences of a corpus, each once, in the order of their first occurrence.

    Args:
        corpus: a UTF-8 file with one sentence a line, or `sample` for the sample's own sentences. Whitespace
            around a sentence is dropped, and so are empty lines.

    Raises:
        UserError: if the file cannot be read, is not UTF-8, or holds no sentence.

    >>> len(load_corpus("sample"))
    400
    """
    if str(corpus) == SAMPLE:
        return sample_sentences()
    path = Path(corpus).expanduser()
    lines = split_lines(decode(read_bytes(path), path, "utf-8-sig"))
    sentences = tuple(dict.fromkeys(filter(None, map(str.strip, lines))))
    if not sentences:
        raise UserError(f"{path} holds no sentence: write one a line.")
    return sentences


Row = tuple[int, tuple[str, ...]]
"""The line (in Parquet the row) counted from 1, and its sentences without the whitespace around them."""

# The first row of a CSV or TSV file is its header if all its cells are among these (SimCSE's own, and those that
# data sets of pairs and triplets use); a sentence that is one such word would have to stand in every cell.
_HEADER_NAMES = frozenset(
    {"sentence", "sentence1", "sentence2", "sentence3", "text", "text1", "text2", "sent0", "sent1", "sent2"}
    | {"hard_neg", "anchor", "positive", "negative", "query", "document"}
    | {"premise", "hypothesis", "entailment", "contradiction"}
)
_SUFFIXES = (".txt", ".csv", ".tsv", ".jsonl", ".parquet")


def corpus_file(path: str) -> Path:
    """Return the file of a corpus.

    Raises:
        UserError: if there is no such file, or its ending says no format.
    """
    if path == SAMPLE:
        return bundled_root(source("sample")) / "sentences.txt"
    file = Path(path).expanduser()
    if not file.is_file():
        raise UserError(f"there is no corpus {file}: check the path given to --corpus.")
    _format(file)
    return file


def read_rows(file: Path, columns: int, names: Sequence[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a corpus, its empty ones too.

    Text has one sentence a line. TSV has no quotes, CSV is as spreadsheets write it; either may have a header.
    JSON Lines holds an object a line, Parquet one table. `.gz` and `.zst` are uncompressed on the way.

    Args:
        file: see `corpus_file`.
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
    try:
        for line, cells in _READERS[_format(file)](file, names):
            if len(cells) != columns:
                raise UserError(
                    f"{file}, line {line}: {len(cells)} columns found, but the recipe wants {columns} sentences a "
                    "row (corpus.columns); name the columns with --columns, or choose another recipe."
                )
            yield line, tuple(cell.strip() for cell in cells)
    except (OSError, EOFError) as error:
        raise UserError(f"cannot read {file} ({error}): check the file.") from error


def _format(file: Path) -> str:
    suffixes = [suffix.lower() for suffix in file.suffixes]
    packed = suffixes[-1:] in (["." + "gz"], [".zst"])
    found = suffixes[-2:-1] if packed else suffixes[-1:]
    if not found or found[0] not in _SUFFIXES or (packed and found[0] == ".parquet"):
        raise UserError(
            f"{file}: unknown ending; use {', '.join(_SUFFIXES)}, the first four also with .gz or .zst."
        )
    return found[0]


def _open(file: Path) -> BinaryIO:
    if file.suffix.lower() == ".gz":
        return cast(BinaryIO, gzip.open(file, "rb"))
    if file.suffix.lower() == ".zst":
        import pyarrow as pa

        return io.BufferedReader(pa.input_stream(file, compression="zstd"))
    return file.open("rb")


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    # Lines end at the line feed alone: other separators of Unicode occur inside sentences.
    with _open(file) as stream:
        for line, data in enumerate(stream, start=1):
            text = decode(data, file, "utf-8-sig" if line == 1 else "utf-8", first_line=line)
            yield line, text.removesuffix("\n").removesuffix("\r")


def _read_text(file: Path, names: Sequence[str] | None) -> Iterator[tuple[int, list[str]]]:
    if names is not None:
        raise UserError(f"{file} is text, one sentence a line: it has no columns to name.")
    return ((line, [text]) for line, text in _lines(file))


def _read_tsv(file: Path, names: Sequence[str] | None) -> Iterator[tuple[int, list[str]]]:
    return _without_header(file, ((line, text.split("\t")) for line, text in _lines(file)), names)


def _read_csv(file: Path, names: Sequence[str] | None) -> Iterator[tuple[int, list[str]]]:
    def rows() -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader((text + "\n" for _, text in _lines(file)), strict=True)
        while True:
            line = reader.line_num + 1
            try:
                yield line, next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise UserError(f"{file}, line {line}: not valid CSV ({error}); mend its quotes.") from error

    return _without_header(file, rows(), names)


def _without_header(
    file: Path, rows: Iterator[tuple[int, list[str]]], names: Sequence[str] | None
) -> Iterator[tuple[int, list[str]]]:
    line, first = next(rows, (1, []))
    header = [cell.strip() for cell in first]
    if names is None:
        if first and not {cell.casefold() for cell in header} <= _HEADER_NAMES:
            yield line, first
        # An empty line is an empty row here as in text, whatever its columns.
        yield from ((line, cells if any(cells) else [""] * len(header)) for line, cells in rows)
        return
    places = [_place(file, header, name) for name in names]
    for line, cells in rows:
        if any(cells) and len(cells) != len(header):
            raise UserError(f"{file}, line {line}: {len(header)} columns expected, {len(cells)} found; mend it.")
        yield line, [cells[place] for place in places] if any(cells) else [""] * len(places)


def _place(file: Path, header: Sequence[str], name: str) -> int:
    if name not in header:
        raise UserError(f"{file} has no column {name!r}: choose from {', '.join(header)}.")
    return list(header).index(name)


def _read_jsonl(file: Path, names: Sequence[str] | None) -> Iterator[tuple[int, list[str]]]:
    for line, text in _lines(file):
        if not text.strip():
            continue
        record = json_object(text, file, line, "row")
        names = names or tuple(record)
        missing = [name for name in names if name not in record]
        if missing:
            raise UserError(f"{file}, line {line}: {missing[0]!r} is missing; add it.")
        yield line, [_as_text(record[name], file, line) for name in names]


def _read_parquet(file: Path, names: Sequence[str] | None) -> Iterator[tuple[int, list[str]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(file)
        wanted = list(names or table.schema_arrow.names)
        for name in wanted:
            _place(file, table.schema_arrow.names, name)
        row = 0
        for batch in table.iter_batches(columns=wanted):
            for cells in zip(*(batch.column(name).to_pylist() for name in wanted), strict=True):
                row += 1
                yield row, [_as_text(cell, file, row) for cell in cells]
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{file} cannot be read as Parquet ({reason}): write it again.") from error


def _as_text(cell: object, file: Path, line: int) -> str:
    if cell is not None and not isinstance(cell, str):
        raise UserError(f"{file}, line {line}: {cell!r} is no sentence; name the columns with --columns.")
    return cell or ""


_READERS: dict[str, Callable[[Path, Sequence[str] | None], Iterator[tuple[int, list[str]]]]] = {
    ".txt": _read_text,
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".jsonl": _read_jsonl,
    ".parquet": _read_parquet,
}
