"""Data of retrieval: queries, documents, qrels (which document answers which query), and TREC runs.

Qrels are tables as in BEIR and MTEB, `query-id, corpus-id, score` (.tsv, .csv, .jsonl, .parquet), or TREC's lines
`query 0 document relevance`; a run is TREC's, `query Q0 document rank score tag`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.data.reading import (
    Column,
    Schema,
    UserTable,
    as_name,
    as_number,
    as_sentence,
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
    "query text",
    [
        Column("query", _as_id, ("_id", "id", "query-id", "query_id", "qid")),
        Column("text", as_sentence, ("text", "query")),
    ],
    absent="check the path given to --queries",
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
    return _by_query(_qrels_table(path))


def _qrels_table(path: Path) -> UserTable:
    return read_table(path, _QRELS, format="" if suffix_of(path) in TABLES else "trec")


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


def _documents(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yields line, id and text of the documents in a file."""
    rows, _, values = open_table(path, _DOCUMENTS)
    for line, document, *parts in values:
        text = " ".join(filter(None, parts))
        if not text:
            raise UserError(f"{rows.at(line)}: document {document!r} is empty; fill it in, or delete the line.")
        yield line, document, text


def _require_new(name: str, known: Mapping[str, object], what: str) -> None:
    if name in known:
        raise UserError(f"{what} {name!r} occurs twice; delete one, or rename it.")


def _in(folder: str | Path | None, name: str) -> Path:
    """Returns the file of a folder in BEIR's layout: `corpus.*`, `queries.*`, `qrels/test.*` or the only qrels."""
    if folder is None:
        raise UserError(f"--corpus, --queries and --qrels belong together: give --{name}, too.")
    files = Path(folder).expanduser().glob("qrels/*" if name == "qrels" else f"{name}.*")
    tables = sorted(path for path in files if suffix_of(path) in TABLES)
    chosen = [path for path in tables if path.name.startswith("test.")] or tables
    if len(chosen) != 1:
        problem = f"several {name} ({', '.join(path.name for path in tables)})" if tables else f"no {name}"
        raise UserError(
            f"{folder} has {problem}: a folder in BEIR's layout has corpus.jsonl, queries.jsonl and "
            f"qrels/test.tsv. Name the file with --{name}."
        )
    return chosen[0]


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
    """Queries, documents, and which of them are relevant.

    Attributes:
        task: the name of the folder, or of the file of qrels.
        split: the name of the file of qrels in a folder, such as `test`; else `all`.
        queries: the text of each query with a relevant document, by id.
        qrels: the judgements of these queries.
        documents: the ids of all documents, in the order of the file.
        corpus: the file of documents.
        drops_identical: whether documents with the id of their query are left out.
        notes: what was left out, one sentence each.

    `text`, `status`, `sha256`, `files` and `problems` are those of `StsData`.
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
        """Yields the texts of the documents, `size` at a time: any title, a space and the text."""
        texts = (text for _, _, text in _documents(self.corpus))
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
    ids, texts = dict[str, int](), dict[str, str]()
    for line, document, _ in _documents(paths["corpus"]):
        _require_new(document, ids, f"{paths['corpus']}, line {line}: document")
        ids[document] = 1
    rows, _, values = open_table(paths["queries"], _QUERIES)
    for line, query, text in values:
        _require_new(query, texts, f"{rows.at(line)}: query")
        texts[query] = text
    table = _qrels_table(paths["qrels"])
    columns = [table.frame[name].tolist() for name in ("line", "query", "document")]
    mistakes = [
        f"{table.rows.at(line)}: {what} is not in {paths[of]}; add it, or delete the line."
        for line, query, document in zip(*columns, strict=True)
        for of, what in (("queries", f"query {query!r}"), ("corpus", f"document {document!r}"))
        if (query if of == "queries" else document) not in (texts if of == "queries" else ids)
    ]
    require_no_mistakes(paths["qrels"], mistakes)
    judged = {query: of for query, of in _by_query(table).items() if any(value > 0 for value in of.values())}
    if not judged:
        raise UserError(f"{paths['qrels']} has no relevant document: give a score of 1 or more to those that are.")
    alike = [query for query in judged if query in ids]
    if alike and identical_ids is None:
        raise UserError(
            f"{len(alike):,} of {len(judged):,} queries have the id of a document ({alike[0]!r}). Give "
            "--identical-ids drop if it is the query itself (as in BEIR's ArguAna and Quora), or keep if equal "
            "ids mean nothing."
        )
    left_out = len(texts) - len(judged)
    notes = [
        f"{left_out:,} of {len(texts):,} queries have no relevant document in {paths['qrels'].name}: left out."
    ]
    drops = bool(alike) and identical_ids == "drop"
    task, split = task_of_qrels(paths["qrels"])
    names = {**{name: path.name for name, path in paths.items()}, "qrels": f"qrels/{paths['qrels'].name}"}
    files = [FileRead(names[name], sha256_of(path), None) for name, path in paths.items()]
    return RetrievalData(
        task,
        split,
        {query: texts[query] for query in judged},
        judged,
        list(ids),
        paths["corpus"],
        drops,
        combined_sha256([*files, *[FileRead("identical ids", "drop", None)] * drops]),
        tuple(files),
        (*table.rows.notes, *notes * bool(left_out)),
    )
