"""Gold data and runs of retrieval: qrels (which document answers which query), and TREC runs.

Qrels are tables as in BEIR and MTEB, `query-id, corpus-id, score` (.tsv, .csv, .jsonl, .parquet), or TREC's lines
`query 0 document relevance`; a run is TREC's, `query Q0 document rank score tag`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from stsbench.base.errors import UserError
from stsbench.base.files import require_file
from stsbench.base.words import storable
from stsbench.data.reading import Column, Schema, as_name, as_number, read_table
from stsbench.data.rows import PACKED, TABLES, text_lines

Qrels = Mapping[str, Mapping[str, int]]
"""The relevance of the judged documents of each query; 1 and above is relevant."""

Ranking = Mapping[str, Mapping[str, float]]
"""The scores of the retrieved documents of each query."""

_Value = TypeVar("_Value", int, float)
_Parsed = TypeVar("_Parsed")

_GOLD = "check the path given to --gold"
_HIGHEST_RELEVANCE = 1_000_000
"""trec_eval reserves memory for each relevance up to the highest."""


def _as_id(cell: object) -> str:
    # Spaces are part of an id, as in predictions and in MTEB.
    return cell if isinstance(cell, str) and cell.strip() else as_name(cell)


_TREC_QRELS = ("query-id", "iteration", "corpus-id", "score")
_TREC_RUN = ("query", "Q0", "document", "rank", "score", "tag")
_EXTENSIONS = (*TABLES, ".txt", ".qrels", ".qrel", ".trec", "")
"""The suffixes of files of qrels, tables first."""

_QRELS = Schema(
    "judgement",
    [
        Column("query-id", _as_id, ("query-id", "query_id", "qid", "query")),
        Column("corpus-id", _as_id, ("corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "docno")),
        Column("score", as_number, ("score", "relevance", "rel", "label")),
    ],
    _TREC_QRELS,
    _GOLD,
)


class Run(NamedTuple):
    """A TREC run: the documents retrieved for each query, and the system's tag."""

    ranking: Ranking
    tag: str


def read_qrels(path: Path) -> Qrels:
    """Reads qrels: a table with the columns `query-id`, `corpus-id` and `score`, or TREC's lines.

    Raises:
        UserError: with file and line, if a relevance is not a whole number, or a document has two relevances.
    """
    if (Path(path.stem) if path.suffix.lower() in PACKED else path).suffix.lower() in TABLES:
        frame = read_table(path, _QRELS).frame
        return _by_query(
            path, frame[["line", "query-id", "corpus-id", "score"]].itertuples(index=False), _relevance
        )
    rows = ((line, query, doc, score) for line, (query, _, doc, score) in _fields(path, _TREC_QRELS, _GOLD))
    return _by_query(path, rows, _relevance)


def read_run(path: Path) -> Run:
    """Reads a TREC run: lines of `query Q0 document rank score tag`, compressed or not; scores give the order.

    Raises:
        UserError: with file and line, if a line has other fields, or a document occurs twice for a query.
    """
    absent = "name a run, one of MTEB's prediction files, or a folder of those"
    lines = list(_fields(path, _TREC_RUN, absent))
    tags = list(dict.fromkeys(fields[5] for _, fields in lines))
    ranking = _by_query(path, ((line, fields[0], fields[2], fields[4]) for line, fields in lines), as_number)
    if len(tags) > 1:
        raise UserError(f"{path} has runs of several systems ({', '.join(tags[:3])}): give each its own file.")
    return Run(ranking, storable(tags[0]))


def task_of_qrels(path: Path) -> tuple[str, str]:
    """Returns the task and the split in the path of qrels.

    >>> task_of_qrels(Path("beir/nfcorpus/qrels/test.tsv")), task_of_qrels(Path("robust04.qrels.gz"))
    (('nfcorpus', 'test'), ('robust04', 'all'))
    """
    name = path.name
    for ending in (*PACKED, *filter(None, _EXTENSIONS)):
        name = name.removesuffix(ending)
    if path.parent.name == "qrels" and path.parent.absolute().parent.name:
        return storable(path.parent.absolute().parent.name), storable(name)
    return storable(name), "all"


def _fields(path: Path, columns: Sequence[str], absent: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the fields of each line, which whitespace separates."""
    require_file(path, absent=absent)
    for line, text in text_lines(path):
        fields = text.split()
        if fields and len(fields) != len(columns):
            raise UserError(
                f"{path}, line {line}: {len(columns)} fields expected ({' '.join(columns)}), found {len(fields)}; "
                "fix the line."
            )
        if fields:
            yield line, fields


def _by_query(
    path: Path, rows: Iterable[tuple[int, str, str, object]], parse: Callable[[object], _Value]
) -> dict[str, dict[str, _Value]]:
    queries: dict[str, dict[str, _Value]] = {}
    for line, query, document, cell in rows:
        value = _value(parse, cell, f"{path}, line {line}: score")
        known = queries.setdefault(query, {}).setdefault(document, value)
        if known != value:
            raise UserError(
                f"{path}, line {line}: document {document!r} has two scores for query {query!r}, {known} and "
                f"{value}: keep one of them."
            )
    if not queries:
        raise UserError(f"{path} is empty: give one document per line.")
    return queries


def _value(parse: Callable[[object], _Parsed], cell: object, where: str) -> _Parsed:
    try:
        return parse(cell)
    except ValueError as error:
        raise UserError(f"{where} {error}") from error


def _relevance(cell: object) -> int:
    value = as_number(cell)
    if value != int(value) or abs(value) > _HIGHEST_RELEVANCE:
        raise ValueError(f"{cell!r} is not a whole number up to {_HIGHEST_RELEVANCE:,}; fix the line.")
    return int(value)
