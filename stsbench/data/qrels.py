"""What retrieval is judged by: qrels (which document answers which query), runs of TREC's, and lists of labels.

Qrels are read as BEIR and MTEB have them, a table of `query-id, corpus-id, score` (.tsv, .csv, .jsonl, .parquet),
and as TREC has them, `query 0 document relevance` in lines of text; a run is TREC's, `query Q0 document rank score
tag`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from stsbench.base.errors import UserError
from stsbench.base.files import require_file
from stsbench.base.words import storable
from stsbench.data.rows import FORMATS, PACKED, Rows, ending_of, number, open_rows, text_lines

Qrels = Mapping[str, Mapping[str, int]]
"""The relevance of the judged documents of each query; 1 and above is relevant."""

Ranking = Mapping[str, Mapping[str, float]]
"""The scores of the documents that were found for each query."""

_Value = TypeVar("_Value", int, float)

_NAMES = {
    "query-id": ("query-id", "query_id", "qid", "query"),
    "corpus-id": ("corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "docno"),
    "score": ("score", "relevance", "rel", "label"),
}
"""What the columns of qrels are called, whatever their case."""

_HIGHEST_RELEVANCE = 1_000_000
"""trec_eval reserves memory for each relevance up to the highest."""

_LABELS = ("label", "labels", "gold", "target")

_TREC_QRELS = ("query-id", "iteration", "corpus-id", "score")
_TREC_RUN = ("query", "Q0", "document", "rank", "score", "tag")
_EXTENSIONS = (*FORMATS[1:], ".txt", ".qrels", ".qrel", ".trec", "")
"""The endings that a file of qrels or labels may have, those of tables first."""


class Run(NamedTuple):
    """A run of TREC's: the documents found for each query, and the tag of whoever made it."""

    ranking: Ranking
    tag: str


def read_qrels(path: Path) -> Qrels:
    """Read qrels: a table with the columns `query-id`, `corpus-id` and `score`, or TREC's lines.

    Raises:
        UserError: naming file and line, if a relevance is no whole number, or a document is judged twice in two
            ways.
    """
    require_file(path, absent="check the path given to --gold")
    rows = _table_rows(path) if _is_table(path) else _lines(path, _TREC_QRELS, (0, 2, 3))
    qrels = _by_query(path, rows, _relevance)
    if not qrels:
        raise UserError(f"{path} judges no document: give `query-id, corpus-id, score`, one a line.")
    return qrels


def read_run(path: Path) -> Run:
    """Read a run of TREC's: lines of `query Q0 document rank score tag`, packed or not; the scores give the order.

    Raises:
        UserError: naming file and line, if a line is none of these, or a document stands twice for one query.
    """
    require_file(path, absent="name a run, one of MTEB's prediction files, or a folder of those")
    tags: dict[str, None] = {}

    def rows() -> Iterator[tuple[int, tuple[str, str, str]]]:
        for line, (query, document, score, tag) in _lines(path, _TREC_RUN, (0, 2, 4, 5)):
            tags[tag] = None
            yield line, (query, document, score)

    ranking = _by_query(path, rows(), _score)
    if not ranking:
        raise UserError(f"{path} has no line: give `{' '.join(_TREC_RUN)}`, a document a line.")
    if len(tags) > 1:
        raise UserError(f"{path} holds runs of several systems ({', '.join(list(tags)[:3])}): give each a file.")
    return Run(ranking, storable(next(iter(tags))))


def task_of_qrels(path: Path) -> tuple[str, str]:
    """Return the task and the split that the path of qrels names.

    >>> task_of_qrels(Path("beir/nfcorpus/qrels/test.tsv")), task_of_qrels(Path("robust04.qrels.gz"))
    (('nfcorpus', 'test'), ('robust04', 'all'))
    """
    name = path.name
    for ending in (*PACKED, *filter(None, _EXTENSIONS)):
        name = name.removesuffix(ending)
    if path.parent.name == "qrels" and path.parent.absolute().parent.name:
        return storable(path.parent.absolute().parent.name), storable(name)
    return storable(name), "all"


def gold_file(folder: Path, name: str) -> Path | None:
    """Return the only file of a name in a folder, whatever its ending; None if there is none.

    Raises:
        UserError: if there are several.
    """
    places = [folder / f"{name}{ending}{packed}" for ending in _EXTENSIONS for packed in ("", *PACKED)]
    there = [place for place in places if place.is_file()]
    if len(there) > 1:
        raise UserError(f"{folder} holds {there[0].name} and {there[1].name}: keep one of them.")
    return next(iter(there), None)


def read_labels(path: Path) -> list[str]:
    """Read the labels of items in the order of the data: a column `label`, or a text with one a line."""
    require_file(path, absent="check the path given to --gold")
    if ending_of(path) == ".txt":
        return [_text(text, "label", f"{path}, line {line}") for line, text in text_lines(path)]
    table = open_rows(path, is_header=lambda cells: bool({cell.strip().casefold() for cell in cells} & {*_LABELS}))
    place = _only_place(table, "label", _LABELS)
    return [_text(cells[place], "label", table.at(line)) for line, cells in table.rows]


def _is_table(path: Path) -> bool:
    name = path.stem if path.suffix.lower() in PACKED else path.name
    return Path(name).suffix.lower() in FORMATS[1:]


def _table_rows(path: Path) -> Iterator[tuple[int, tuple[object, ...]]]:
    table = open_rows(
        path,
        is_header=lambda cells: bool({cell.strip().casefold() for cell in cells} & {*_NAMES["corpus-id"]}),
        unnamed=_TREC_QRELS,
    )
    places = [_only_place(table, role, names) for role, names in _NAMES.items()]
    for line, cells in table.rows:
        yield line, tuple(cells[place] for place in places)


def _only_place(table: Rows, role: str, names: Sequence[str]) -> int:
    columns = [column.strip().casefold() for column in table.columns]
    places = [place for place, column in enumerate(columns) if column in names]
    if len(places) == 1:
        return places[0]
    there = ", ".join(map(repr, table.columns)) or "none that are named"
    if places:
        raise UserError(f"{table.path} has several columns for {role} ({there}): rename all but one.")
    raise UserError(f"{table.path} has no column {role!r} (its columns: {there}): rename the one that it is.")


def _lines(path: Path, columns: Sequence[str], kept: Sequence[int]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield some of the fields of a text's lines, which white space separates."""
    for line, text in text_lines(path):
        fields = text.split()
        if not fields:
            continue
        if len(fields) != len(columns):
            raise UserError(
                f"{path}, line {line}: {len(columns)} fields expected ({' '.join(columns)}), {len(fields)} found; "
                "mend the line."
            )
        yield line, tuple(fields[place] for place in kept)


def _by_query(
    path: Path, rows: Iterator[tuple[int, tuple[object, ...]]], valued: Callable[[object, str], _Value]
) -> dict[str, dict[str, _Value]]:
    queries: dict[str, dict[str, _Value]] = {}
    for line, (query, document, given) in rows:
        where = f"{path}, line {line}"
        value = valued(given, where)
        of_query = queries.setdefault(_id(query, "query", where), {})
        known = of_query.setdefault(_id(document, "document", where), value)
        if known != value:
            raise UserError(
                f"{where}: document {document!r} stands twice for query {query!r}, with {known} and {value}: keep "
                "one of them."
            )
    return queries


def _id(cell: object, column: str, where: str) -> str:
    # Spaces are part of an id, as they are in predictions and to MTEB.
    return cell if isinstance(cell, str) and cell.strip() else _text(cell, column, where)


def _text(cell: object, column: str, where: str) -> str:
    # What JSON calls true is the label 1 of everybody else.
    text = str(int(cell) if isinstance(cell, bool) else cell).strip() if isinstance(cell, str | int) else ""
    if not text:
        raise UserError(f"{where}: {column} is {cell!r}; give a name or a whole number.")
    return text


def _relevance(cell: object, where: str) -> int:
    value = number(str(cell))
    if value is None or value != int(value):
        raise UserError(f"{where}: the relevance {cell!r} is not a whole number; correct the line.")
    if abs(value) > _HIGHEST_RELEVANCE:
        raise UserError(f"{where}: the relevance {cell!r} is above {_HIGHEST_RELEVANCE:,}; correct the line.")
    return int(value)


def _score(cell: object, where: str) -> float:
    value = number(str(cell))
    if value is None:
        raise UserError(f"{where}: the score {cell!r} is not a finite number; mend the line.")
    return value
