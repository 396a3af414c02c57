"""Data of retrieval: queries, documents, qrels (the relevant documents of each query), and TREC runs.

Qrels are tables as in BEIR and MTEB, `query-id, corpus-id, score` (.tsv, .csv, .jsonl, .parquet), or TREC's lines
`query 0 document relevance`; a run is TREC's, `query Q0 document rank score tag`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.data.reading import (
    Column,
    Schema,
    UserTable,
    as_name,
    as_number,
    as_text,
    open_table,
    read_table,
    require_no_mistakes,
)
from stsbench.data.rows import PACKED, TABLES, suffix_of
from stsbench.data.tables import FileRead, Status, combined_sha256

Qrels = Mapping[str, Mapping[str, int]]
"""The relevance of the judged documents of each query; 1 and above is relevant."""

Ranking = Mapping[str, Mapping[str, float]]
"""The scores of the retrieved documents of each query."""

IdenticalIds = Literal["keep", "drop"]
"""Whether documents with the id of their query count."""


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

_DOCUMENTS = Schema(
    "document",
    [
        Column("document", _as_id, ("_id", "id", "corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "docno")),
        Column("title", as_text, optional=True),
        Column("text", as_text, ("text", "contents")),
    ],
    absent="check the path given to --corpus",
)
_QUERIES = Schema(
    "query",
    [
        Column("query", _as_id, ("_id", "id", "query-id", "query_id", "qid")),
        Column("text", as_text, ("text", "query")),
    ],
    absent="check the path given to --queries",
)

_EXTENSIONS = (*TABLES, ".txt", ".qrels", ".qrel", ".trec", "")
"""The suffixes of files of qrels, tables first."""


def read_qrels(path: Path) -> Qrels:
    """Reads the qrels of the queries that have a relevant document: a table, or TREC's lines."""
    return _with_relevant(_qrels_table(path))


def _with_relevant(table: UserTable) -> Qrels:
    return {query: of for query, of in _by_query(table).items() if any(value > 0 for value in of.values())}


def _qrels_table(path: Path) -> UserTable:
    return read_table(path, _QRELS, format="" if suffix_of(path) in TABLES else "trec")


def read_run(path: Path) -> tuple[Ranking, str]:
    """Reads a TREC run: lines of `query Q0 document rank score tag`, compressed or not; scores give the order.

    Returns:
        The documents retrieved for each query, and the system's tag.
    """
    table = read_table(path, _RUN, format="trec")
    tags = list(dict.fromkeys(table.frame["tag"]))
    if len(tags) > 1:
        raise UserError(f"{path} has runs of several systems ({', '.join(tags[:3])}): give each its own file.")
    return _by_query(table), tags[0]


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


def texts_in(folder: Path, name: Literal["corpus", "queries"]) -> Iterator[tuple[str, str]]:
    """Yields id and text of the documents or queries in a folder in BEIR's layout."""
    return _texts(_in(folder, name), _DOCUMENTS if name == "corpus" else _QUERIES)


def _texts(path: Path, schema: Schema) -> Iterator[tuple[str, str]]:
    """Yields id and text of queries or documents: any title, a space and the text."""
    rows, _, values = open_table(path, schema)
    seen = set[str]()
    for line, name, *parts in values:
        text = " ".join(filter(None, parts))
        if not text or name in seen:
            problem = "occurs twice; rename or delete one" if text else "is empty; fill it in, or delete the line"
            raise UserError(f"{rows.at(line)}: {schema.row} {name!r} {problem}.")
        seen.add(name)
        yield name, text


def _in(folder: str | Path | None, name: str) -> Path:
    """Returns the file of a folder in BEIR's layout: `corpus.*`, `queries.*`, `qrels/test.*` or the only qrels."""
    if folder is None:
        raise UserError(f"--corpus, --queries and --qrels belong together: give --{name}, too.")
    files = Path(folder).expanduser().glob("qrels/*" if name == "qrels" else f"{name}.*")
    tables = sorted(path for path in files if suffix_of(path) in TABLES)
    chosen = [path for path in tables if path.name.startswith("test.")] or tables
    if len(chosen) == 1:
        return chosen[0]
    problem = f"several {name} ({', '.join(path.name for path in tables)})" if tables else f"no {name}"
    raise UserError(
        f"{folder} has {problem}: a folder in BEIR's layout has corpus.jsonl, queries.jsonl and qrels/test.tsv; "
        f"name the file with --{name}."
    )


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


@dataclass(frozen=True)
class RetrievalData:
    """Queries, documents, and which of them are relevant; the other attributes are those of `StsData`.

    Attributes:
        queries: the text of each query with a relevant document, by id.
        qrels: the judgements of these queries.
        documents: the ids of all documents, in the order of the file.
        corpus: the file of documents.
        drops_identical: whether documents with the id of their query are left out.
    """

    task: str
    split: str
    queries: Mapping[str, str]
    qrels: Qrels
    documents: Sequence[str]
    corpus: Path
    drops_identical: bool
    sha256: str
    files: tuple[FileRead, ...]
    notes: tuple[str, ...]
    text: str = "user"
    status: Status = "user"
    problems: tuple[str, ...] = ()

    def blocks(self, size: int) -> Iterator[list[str]]:
        """Yields the texts of the documents, `size` at a time."""
        texts = (text for _, text in _texts(self.corpus, _DOCUMENTS))
        while block := list(islice(texts, size)):
            yield block


def load_retrieval(
    folder: str | Path | None = None,
    *,
    corpus: str | Path | None = None,
    queries: str | Path | None = None,
    qrels: str | Path | None = None,
    identical_ids: IdenticalIds | None = None,
) -> RetrievalData:
    """Reads a retrieval task: a folder in BEIR's layout, or three tables.

    Args:
        folder: a folder with `corpus.jsonl` (`_id`, `text` and maybe `title`), `queries.jsonl` (`_id`, `text`) and
            `qrels/test.tsv` (`query-id`, `corpus-id`, `score`); also as .tsv, .csv or .parquet.
        corpus: the documents, instead of those in the folder.
        queries: the queries.
        qrels: the judgements; a score of 1 and above is relevant.
        identical_ids: `keep` or `drop` documents with the id of their query; required if there are any.

    Raises:
        UserError: if a file is missing; or with file, line and remedy for an empty text, an id that occurs twice,
            and judgements of unknown queries or documents.
    """
    given = {"corpus": corpus, "queries": queries, "qrels": qrels}
    paths = {name: Path(path).expanduser() if path else _in(folder, name) for name, path in given.items()}
    documents = [name for name, _ in _texts(paths["corpus"], _DOCUMENTS)]
    texts, judgements, known = dict(_texts(paths["queries"], _QUERIES)), paths["qrels"], set(documents)
    judged, notes = _judged(judgements, texts, known)
    alike = [query for query in judged if query in known]
    if alike and identical_ids is None:
        raise UserError(
            f"{len(alike):,} of {len(judged):,} queries have the id of a document ({alike[0]!r}). Give "
            "--identical-ids drop if it is the query itself (as in BEIR's ArguAna and Quora), or keep if equal "
            "ids mean nothing."
        )
    drops = bool(alike) and identical_ids == "drop"
    task, split = task_of_qrels(judgements)
    files = tuple(FileRead(path.name, sha256_of(path), None) for path in paths.values())
    sha256 = combined_sha256([*files, *[FileRead("identical ids", "drop", None)] * drops])
    queries_used = {query: texts[query] for query in judged}
    return RetrievalData(
        task, split, queries_used, judged, documents, paths["corpus"], drops, sha256, files, notes
    )


def _judged(path: Path, queries: Collection[str], documents: Collection[str]) -> tuple[Qrels, tuple[str, ...]]:
    """Returns the judgements of the queries with a relevant document, and notes; all ids must be known."""
    table = _qrels_table(path)
    columns = [table.frame[name].tolist() for name in ("line", "query", "document")]
    mistakes = [
        f"{table.rows.at(line)}: there is no {what} {name!r}; add it, or delete the line."
        for line, *names in zip(*columns, strict=True)
        for what, name, known in zip(("query", "document"), names, (queries, documents), strict=True)
        if name not in known
    ]
    require_no_mistakes(path, mistakes)
    judged = _with_relevant(table)
    if not judged:
        raise UserError(f"{path} has no relevant document: give a score of 1 or more to those that are.")
    left_out = len(queries) - len(judged)
    note = f"{left_out:,} of {len(queries):,} queries have no relevant document in {path.name}: left out."
    return judged, (*table.rows.notes, *[note] * bool(left_out))
