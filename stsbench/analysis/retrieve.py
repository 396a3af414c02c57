"""Retrieve: which sentences of a corpus are nearest to a query?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.base import Analysis, Row
from stsbench.analysis.parameters import LARGEST, parameter
from stsbench.base.errors import UserError
from stsbench.base.extras import require
from stsbench.base.progress import Progress
from stsbench.data.corpus import numbered_corpus
from stsbench.encoders.embedded import Embedded
from stsbench.records.record import RunRecord
from stsbench.render.charts import line
from stsbench.render.figures import colours, legend_above, new_figure, shortened, style
from stsbench.render.table import Table, Tables
from stsbench.scoring.subjects import RecordedModel, Subject, vectors_of
from stsbench.statistics.geometry import unit_rows
from stsbench.statistics.neighbours import nearest
from stsbench.statistics.similarity import zero_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Vectors = NDArray[np.floating[Any]]

_AT_ONCE = 50_000
"""Sentences of a corpus that are encoded and searched at once."""

_BLOCK_ROWS = 8192
"""Rows of a corpus whose cosines are in memory at once."""

_TITLE_CHARACTERS = 52
"""Characters of a query in the title of its panel."""


class Neighbours(NamedTuple):
    """The nearest rows of each query, nearest first, and their cosines; both (queries, k)."""

    rows: NDArray[np.int64]
    cosines: NDArray[np.float64]


class Retrieve(Analysis):
    """Find the sentences of a corpus that are closest to a query, for several models side by side.

    Returns:
        One row per model, `query` and `rank` (from 1): `cosine`, and the `sentence` with its `number` among the
        corpus's nonempty lines (from 1; of equal lines the first; among vectors, that of each row).

    Raises:
        UserError: if the corpus has too few sentences, or a sentence without a cached vector cannot be encoded.

    >>> neighbours = retrieve(lambda texts: [[len(s), 1.0] for s in texts], query="A short one.", k=2)
    >>> neighbours.frame["rank"].tolist()
    [1, 2]
    """

    name = "retrieve"
    title = "Nearest neighbours"
    question = "what is near a sentence?"
    look_for = "neighbours that share words and not meaning"
    examples = (
        'stsbench retrieve runs/a runs/b --corpus wiki.txt --query "A dog runs." -k 3',
        'stsbench retrieve --corpus sample --query "The bridge is closed." --markdown',
        'stsbench retrieve -m minilm --corpus wiki.npy --query "A dog runs."',
    )
    columns = ("model", "query", "rank", "cosine", "sentence", "number")

    query: str | Sequence[str] = parameter((), "A query sentence. Repeatable.", kind=str)
    corpus: str | Path = parameter(
        "sample", "A file with one sentence a line, `sample`, or vectors from `stsbench embed` (.npy)."
    )
    k: int = parameter(5, "Neighbours per query.", flags=("--top", "-k"), limits=(1, LARGEST))
    search: str = parameter(
        "exact",
        "`exact`, or `faiss`: an approximate index (`pip install 'stsbench[faiss]'`).",
        choices=("exact", "faiss"),
    )

    sentences: Mapping[int, str] = {}
    """The sentences of the corpus by row."""

    @classmethod
    def in_explain(cls, options: Mapping[str, Any]) -> Row:
        """Returns the options of `explain` for neighbours."""
        return {"query": options["query"], "corpus": options["retrieve_from"]}

    @property
    def _queries(self) -> list[str]:
        return list(dict.fromkeys([self.query] if isinstance(self.query, str) else self.query))

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Neighbours]:
        """Returns the neighbours of each query."""
        queries = self._queries
        if not queries or not all(text.strip() for text in queries):
            raise UserError("no query: give a sentence with --query.")
        if str(self.corpus).endswith(".npy"):
            return self._among_vectors(subjects, queries)
        numbers = numbered_corpus(self.corpus)
        self.sentences = {number: sentence for sentence, number in numbers.items()}
        self._require_sentences(len(numbers))
        models = {}
        for name, subject in subjects.items():
            parts = _vectors_in_parts(subject, [*queries, *numbers], self.progress)
            first = next(parts)
            corpus = chain([first[len(queries) :]], parts)
            rows, cosines = find_neighbours(name, first[: len(queries)], corpus, self.k, self.search)
            models[name] = Neighbours(np.array(list(numbers.values()))[rows], cosines)
        return models

    def _among_vectors(self, subjects: Mapping[str, Subject], queries: Sequence[str]) -> Mapping[str, Neighbours]:
        """Returns the neighbours of queries among the vectors of a file."""
        embedded = Embedded.read(Path(self.corpus).expanduser())
        self._require_sentences(embedded.rows)
        models = {}
        for name, subject in subjects.items():
            encoder = RecordedModel(subject.model) if isinstance(subject, RunRecord) else subject
            embedded.require_of(encoder.identity)
            parts = self._counted(embedded.parts(_AT_ONCE), embedded.rows)
            models[name] = find_neighbours(name, vectors_of(subject, queries).each(), parts, self.k, self.search)
        rows = {int(row) for neighbours in models.values() for row in neighbours.rows.ravel()}
        self.sentences = embedded.sentences(list(rows))
        return models

    def _require_sentences(self, sentences: int) -> None:
        if self.k > sentences:
            raise UserError(f"{self.k} neighbours: the corpus has {sentences:,} sentences; give a smaller -k.")

    def _counted(self, parts: Iterator[Vectors], rows: int) -> Iterator[Vectors]:
        done = 0
        for part in parts:
            self.progress("looking at vectors", done, rows)
            yield part
            done += len(part)
        self.progress("looking at vectors", done, rows)

    def measure(self, model: str, given: Neighbours) -> Iterator[Row]:
        """Yields the neighbours of each query."""
        for query, numbers, cosines in zip(self._queries, *given, strict=True):
            for rank, (number, cosine) in enumerate(zip(numbers.tolist(), cosines, strict=True), 1):
                about = {"sentence": self.sentences[number], "number": number + 1}
                yield {"query": query, "rank": rank, "cosine": float(cosine)} | about

    def table(self) -> Tables:
        """Returns a table for each query: ranks down, models across."""
        tables = []
        for query, part in self.frame.groupby("query", sort=False):
            columns: list[pd.Series[Any]] = [pd.Series(sorted(set(part["rank"])), name="rank")]
            names = ["rank"]
            for model, side in part.groupby("model", sort=False):
                names += ["cosine" if part["model"].nunique() == 1 else f"{model}: cosine", str(model)]
                columns += [side[name].reset_index(drop=True) for name in ("cosine", "sentence")]
            table = pd.concat(columns, axis=1).set_axis(names, axis="columns")
            tables.append(Table(table, f"Nearest to: {query}", 3))
        return Tables(tables)

    def plot(self) -> "Figure":
        """Draws the cosines of the neighbours by rank, a panel for each query."""
        frame = self.frame
        palette = colours(list(frame["model"]))
        queries = list(dict.fromkeys(frame["query"]))
        with style():
            figure = new_figure(height=0.8 + 1.1 * len(queries))
            panels = figure.subplots(len(queries), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
            for axes, query in zip(panels, queries, strict=True):
                for model, part in frame[frame["query"] == query].groupby("model", sort=False):
                    drawn: dict[str, Any] = {"marker": "o", "markersize": 3}
                    drawn["places"] = [f"rank {rank}" for rank in part["rank"]]
                    line(axes, str(model), part["rank"], part["cosine"], palette[str(model)], **drawn)
                axes.set_title(shortened(query, _TITLE_CHARACTERS), loc="left", fontsize=7)
                axes.set_ylabel("cosine")
            panels[-1].set_xlabel("rank of the neighbour")
            panels[-1].xaxis.get_major_locator().set_params(integer=True)
            legend_above(figure, panels[0])
        return figure


def _vectors_in_parts(subject: Subject, texts: Sequence[str], progress: Progress) -> Iterator[Vectors]:
    """Yields the vectors of texts, one row each, in parts that fit into memory.

    Whitening is fitted on all of them, so whitened vectors are one part.
    """
    use = (subject.model if isinstance(subject, RunRecord) else subject.identity).use
    if use.whiten is not None or len(texts) <= _AT_ONCE:
        yield vectors_of(subject, texts, progress).each()
        return
    for start in range(0, len(texts), _AT_ONCE):
        progress("encoding", start, len(texts))
        yield vectors_of(subject, texts[start : start + _AT_ONCE]).each()
    progress("encoding", len(texts), len(texts))


def find_neighbours(
    model: str, queries: Vectors, corpus: Iterable[Vectors], k: int, search: str = "exact"
) -> Neighbours:
    """Returns the k rows of a corpus with the highest cosine to each query, without zero vectors.

    The (n, d) matrix of the corpus comes in blocks of rows; an exact search holds one of them at a time.

    >>> corpus = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    >>> find_neighbours("a model", np.array([[1.0, 0.0]]), [corpus], 2).rows.tolist()
    [[1, 2]]
    """
    if zero_rows(queries).any():
        raise UserError(
            f"{model} gives a query a zero vector, which has no neighbours (does it know any word of it?)."
        )
    if search == "faiss":
        whole = np.concatenate(list(corpus))
        usable = np.flatnonzero(~zero_rows(whole))
        _require_enough(model, k, len(usable))
        neighbours = _nearest_by_faiss(queries, whole[usable], k)
        return Neighbours(usable[neighbours.rows], neighbours.cosines)

    def blocks() -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        first = 0
        for part in corpus:
            usable = np.flatnonzero(~zero_rows(part))
            for start in range(0, len(usable), _BLOCK_ROWS):
                rows = usable[start : start + _BLOCK_ROWS]
                yield first + rows, unit_rows(part[rows])
            first += len(part)

    rows, cosines = nearest(unit_rows(queries), blocks(), k)
    _require_enough(model, k, rows.shape[1])
    return Neighbours(rows, cosines)


def _require_enough(model: str, k: int, count: int) -> None:
    if k > count:
        raise UserError(
            f"{k} neighbours: {model} has nonzero vectors of {count} sentences only; give a smaller -k."
        )


def _nearest_by_faiss(queries: Vectors, corpus: Vectors, k: int) -> Neighbours:
    """Searches an HNSW graph of the FAISS library, which is faster and may miss a neighbour."""
    require("faiss", "--search faiss")
    import faiss

    units = [np.ascontiguousarray(matrix, dtype=np.float32) for matrix in (queries, corpus)]
    for matrix in units:
        faiss.normalize_L2(matrix)
    index = faiss.IndexHNSWFlat(corpus.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = 200, max(128, 2 * k)
    index.add(units[1])
    cosines, rows = index.search(units[0], k)
    return Neighbours(rows.astype(np.int64), np.clip(cosines.astype(np.float64), -1, 1))


retrieve = Retrieve.verb
