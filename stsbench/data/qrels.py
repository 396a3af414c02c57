"""Gold data and runs of retrieval: qrels (which document answers which query), and TREC runs.

Qrels are tables as in BEIR and MTEB, `query-id, corpus-id, score` (.tsv, .csv, .jsonl, .parquet), or TREC's lines
`query 0 document relevance`; a run is TREC's, `query Q0 document rank score tag`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stsbench.base.errors import UserError
from stsbench.data.reading import Column, Schema, UserTable, as_name, as_number, read_table
from stsbench.data.rows import PACKED, TABLES, suffix_of

Qrels = Mapping[str, Mapping[str, int]]
"""The relevance of the judged documents of each query; 1 and above is relevant."""

Ranking = Mapping[str, Mapping[str, float]]
"""The scores of the retrieved documents of each query."""


def _as_id(cell: object) -> str:
    # Spaces are part of an id, as in predictions and in MTEB.
    return cell if isinstance(cell, str) and cell.strip() else as_name(cell)


def _as_relevance(cell: object) -> int:
    value = as_number(cell)
    if value != int(value):
        raise ValueError(f"{cell!r} is not a whole number; fix the line.")
    return int(value)


_QRELS = Schema(
    "judgement",
    [
        Column("query", _as_id, ("query-id", "query_id", "qid", "query")),
        Column("document", _as_id, ("corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "docno")),
        Column("score", _as_relevance, ("score", "relevance", "rel", "label")),
    ],
    ("query-id", "iteration", "corpus-id", "score"),
    "check the path given to --gold",
)
_RUN = Schema(
    "document",
    [Column("query", _as_id), Column("document", _as_id), Column("score", as_number), Column("tag", as_name)],
    ("query", "Q0", "document", "rank", "score", "tag"),
    "name a run, one of MTEB's prediction files, or a folder of those",
)

_EXTENSIONS = (*TABLES, ".txt", ".qrels", ".qrel", ".trec", "")
"""The suffixes of files of qrels, tables first."""


class Run(NamedTuple):
    """A TREC run: the documents retrieved for each query, and the system's tag."""

    ranking: Ranking
    tag: str


def read_qrels(path: Path) -> Qrels:
    """Reads qrels: a table with the columns `query-id`, `corpus-id` and `score`, or TREC's lines.

    Raises:
        UserError: with file and line, if a relevance is not a whole number, or a document has two relevances.
    """
    return _by_query(read_table(path, _QRELS, format="" if suffix_of(path) in TABLES else "trec"))


def read_run(path: Path) -> Run:
    """Reads a TREC run: lines of `query Q0 document rank score tag`, compressed or not; scores give the order.

    Raises:
        UserError: with file and line, if a line has other fields, or a document occurs twice for a query.
    """
    table = read_table(path, _RUN, format="trec")
    tags = list(dict.fromkeys(table.frame["tag"]))
    if len(tags) > 1:
        raise UserError(f"{path} has runs of several systems ({', '.join(tags[:3])}): give each its own file.")
    return Run(_by_query(table), tags[0])


def task_of_qrels(path: Path) -> tuple[str, str]:
    """Returns the task and the split in the path of qrels.

    >>> task_of_qrels(Path("beir/nfcorpus/qrels/test.tsv")), task_of_qrels(Path("robust04.qrels.gz"))
    (('nfcorpus', 'test'), ('robust04', 'all'))
    """
    name = path.name
    for ending in (*PACKED, *filter(None, _EXTENSIONS)):
        name = name.removesuffix(ending)
    if path.parent.name == "qrels" and path.parent.absolute().parent.name:
        return path.parent.absolute().parent.name, name
    return name, "all"


def _by_query(table: UserTable) -> dict[str, dict[str, Any]]:
    queries: dict[str, dict[str, Any]] = {}
    columns = (table.frame[name].tolist() for name in ("line", "query", "document", "score"))
    for line, query, document, score in zip(*columns, strict=True):
        known = queries.setdefault(query, {}).setdefault(document, score)
        if known != score:
            raise UserError(
                f"{table.rows.at(line)}: document {document!r} has two scores for query {query!r}, {known} and "
                f"{score}: keep one of them."
            )
    return queries
