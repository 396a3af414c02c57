"""Nearest neighbours by cosine: what does a model find near a sentence?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from stsbench.analysis.result import AnalysisCommand, AnalysisResult
from stsbench.base.errors import UserError
from stsbench.base.extras import require
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.cli.options import LARGEST
from stsbench.render.cells import Key, Named
from stsbench.render.charts import line
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.scoring.subjects import Subject, Wanted

    Vectors = NDArray[np.floating[Any]]

SEARCHES = ("exact", "faiss")

_AT_ONCE = 50_000
"""Sentences of a corpus that are encoded and looked at before the next ones."""

_BLOCK_ROWS = 8192
"""Of a corpus, whose cosines are in memory at once."""

_TITLE_CHARACTERS = 52
"""Of a query, as the title of its panel."""


class Retrieval(AnalysisResult):
    """The sentences of a corpus that models have nearest to each query."""

    name = "retrieve"
    title = "Nearest neighbours"
    question = "what is near a sentence?"
    look_for = "neighbours that share words and not meaning"

    def table(self) -> Tables:
        """Return a table for each query: ranks down, models across."""
        tables = []
        for query, part in self.frame.groupby("query", sort=False):
            columns: list[pd.Series[Any]] = [pd.Series(sorted(set(part["rank"])), name="rank")]
            names: list[Key] = ["rank"]
            for label, side in part.groupby("model", sort=False):
                model = str(label)
                names += [Named("measure", "cosine", of=model), Named("model", model)]
                columns += [side[name].reset_index(drop=True) for name in ("cosine", "sentence")]
            tables.append(
                Table(pd.concat(columns, axis=1).set_axis(names, axis="columns"), f"Nearest to: {query}", 3)
            )
        return Tables(tables)

    def plot(self) -> "Figure":
        """Draw the cosines of the neighbours by rank, a panel for each query."""
        frame = self.frame
        palette = colours(list(frame["model"]))
        queries = list(dict.fromkeys(frame["query"]))
        with style():
            figure = new_figure(height=0.8 + 1.1 * len(queries))
            panels = figure.subplots(len(queries), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
            for axes, query in zip(panels, queries, strict=True):
                for model, part in frame[frame["query"] == query].groupby("model", sort=False):
                    words = [f"rank {rank}" for rank in part["rank"]]
                    drawn: dict[str, Any] = {"places": words, "marker": "o", "markersize": 3}
                    line(axes, str(model), part["rank"], part["cosine"], palette[str(model)], **drawn)
                axes.set_title(_shortened(query), loc="left", fontsize=7)
                axes.set_ylabel("cosine")
            panels[-1].set_xlabel("rank of the neighbour")
            panels[-1].xaxis.get_major_locator().set_params(integer=True)
            legend_above(figure, panels[0])
        return figure


def _shortened(text: str) -> str:
    return text if len(text) <= _TITLE_CHARACTERS else f"{text[: _TITLE_CHARACTERS - 1].rstrip()}…"


def retrieve(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    query: str | Sequence[str] = (),
    corpus: str | Path = "sample",
    k: int = 5,
    search: str = "exact",
    progress: Progress = silent,
) -> Retrieval:
    """Find the sentences of a corpus that are nearest to a sentence by cosine.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        query: a sentence to find neighbours of, or several.
        corpus: a file with one sentence a line, or `sample` for the sample's sentences. A sentence that is there
            twice is found once. Or a file of vectors that `stsbench embed` made (`vectors.npy`), of which some are
            in memory at a time: then nothing but the queries is encoded, and each of its sentences is a row.
        k: how many neighbours.
        search: `exact` looks at every sentence; `faiss` asks an HNSW graph of the FAISS library, which is faster
            for many queries and may miss a neighbour (`pip install 'stsbench[faiss]'`).
        progress: told how far encoding is.

    Returns:
        One row per model, `query` and `rank` (from 1): `cosine`, and the `sentence` with its `number`: which of
        the corpus's lines that are not empty it is (from 1; of equal lines the first, among vectors each).

    Raises:
        UserError: if the corpus has fewer sentences, or one was never encoded and the model is not here.

    >>> neighbours = retrieve(lambda texts: [[len(s), 1.0] for s in texts], query="A short one.", k=2)
    >>> neighbours.frame["rank"].tolist()
    [1, 2]
    """
    from stsbench.analysis.inputs import analysable
    from stsbench.data.corpus import numbered_corpus

    queries = list(dict.fromkeys([query] if isinstance(query, str) else query))
    if not queries or not all(text.strip() for text in queries):
        raise UserError("there is no query: give a sentence with --query.")
    if search not in SEARCHES:
        raise UserError(f"unknown search {search!r}: {suggestion(search, SEARCHES)}")
    subjects = analysable(runs)
    if str(corpus).endswith(".npy"):
        return Retrieval(
            _among_vectors(subjects, queries, Path(corpus).expanduser(), k, search, progress=progress)
        )
    numbers = numbered_corpus(corpus)
    sentences = tuple(numbers)
    _require_neighbours(k, len(sentences))
    models = {}
    for name, subject in subjects.items():
        parts = _vectors_in_parts(subject, [*queries, *sentences], progress)
        first = next(parts)
        of_queries, of_corpus = first[: len(queries)], chain([first[len(queries) :]], parts)
        rows, cosines = find_neighbours(name, of_queries, of_corpus, k, search)
        models[name] = Neighbours(np.array(list(numbers.values()))[rows], cosines)
    texts = {number: sentence for sentence, number in numbers.items()}
    return Retrieval(neighbours_frame(models, queries, texts))


def _require_neighbours(k: int, sentences: int) -> None:
    if not 1 <= k <= sentences:
        raise UserError(f"{k} neighbours: the corpus has {sentences:,} sentences.")


def _among_vectors(
    subjects: "Mapping[str, Subject]",
    queries: Sequence[str],
    file: Path,
    k: int,
    search: str,
    *,
    progress: Progress,
) -> pd.DataFrame:
    """Return the neighbours of queries among vectors that stand in a file; see `neighbours_frame`."""
    from stsbench.encoders.embedded import Embedded
    from stsbench.records.record import RunRecord
    from stsbench.scoring.subjects import RecordedModel, vectors_of

    embedded = Embedded.read(file)
    rows = embedded.rows
    _require_neighbours(k, rows)
    models = {}
    for name, subject in subjects.items():
        identity = (RecordedModel(subject.model) if isinstance(subject, RunRecord) else subject).identity
        embedded.require_of(identity)
        of_queries = vectors_of(subject, queries).each()
        models[name] = find_neighbours(
            name, of_queries, _told(embedded.parts(_AT_ONCE), rows, progress), k, search
        )
    found = {int(row) for neighbours in models.values() for row in neighbours.rows.ravel()}
    return neighbours_frame(models, queries, embedded.sentences(list(found)))


def _told(parts: "Iterator[Vectors]", rows: int, progress: Progress) -> Iterator["Vectors"]:
    done = 0
    for part in parts:
        progress("looking at vectors", done, rows)
        yield part
        done += len(part)
    progress("looking at vectors", done, rows)


def _vectors_in_parts(subject: "Subject", texts: Sequence[str], progress: Progress) -> Iterator["Vectors"]:
    """Yield the vectors of some texts, a row each, in parts that fit into memory however long the corpus is.

    Whitening goes by all of them, so vectors that are whitened come at once.
    """
    from stsbench.records.record import RunRecord
    from stsbench.scoring.subjects import vectors_of

    use = (subject.model if isinstance(subject, RunRecord) else subject.identity).use
    if use.whiten is not None or len(texts) <= _AT_ONCE:
        yield vectors_of(subject, texts, progress).each()
        return
    for start in range(0, len(texts), _AT_ONCE):
        progress("encoding", start, len(texts))
        yield vectors_of(subject, texts[start : start + _AT_ONCE]).each()
    progress("encoding", len(texts), len(texts))


class Neighbours(NamedTuple):
    """For each query its nearest rows, nearest first, and their cosines; both of shape (queries, k)."""

    rows: "NDArray[np.int64]"
    cosines: "NDArray[np.float64]"


def find_neighbours(
    model: str, queries: "Vectors", corpus: "Iterable[Vectors]", k: int, search: str = "exact"
) -> Neighbours:
    """Returns the k rows of a corpus with the highest cosine to each query, without zero vectors.

    The (n, d) matrix of the corpus comes in blocks of rows; an exact search holds one of them at a time.

    >>> import numpy as np
    >>> corpus = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    >>> find_neighbours("a model", np.array([[1.0, 0.0]]), [corpus], 2).rows.tolist()
    [[1, 2]]
    """
    from stsbench.statistics.geometry import unit_rows
    from stsbench.statistics.neighbours import nearest
    from stsbench.statistics.similarity import zero_rows

    if zero_rows(queries).any():
        raise UserError(f"{model} knows no word of a query: its vector is zero, and nothing is near it.")
    if search == "faiss":
        whole = np.concatenate(list(corpus))
        usable = np.flatnonzero(~zero_rows(whole))
        _require_enough(model, k, len(usable))
        neighbours = _nearest_by_faiss(queries, whole[usable], k)
        return Neighbours(usable[neighbours.rows], neighbours.cosines)

    def blocks() -> Iterator[tuple["NDArray[np.int64]", "NDArray[np.float64]"]]:
        first = 0
        for part in corpus:
            usable = np.flatnonzero(~zero_rows(part))
            for start in range(0, len(usable), _BLOCK_ROWS):
                rows = usable[start : start + _BLOCK_ROWS]
                yield first + rows, unit_rows(part[rows])
            first += len(part)

    found = nearest(unit_rows(queries), blocks(), k)
    _require_enough(model, k, found.rows.shape[1])
    return Neighbours(found.rows, found.cosines)


def _require_enough(model: str, k: int, count: int) -> None:
    if k > count:
        raise UserError(f"{k} neighbours: {model} has a vector that is not zero for {count} sentences.")


def _nearest_by_faiss(queries: "Vectors", corpus: "Vectors", k: int) -> Neighbours:
    """Return what an HNSW graph of the FAISS library finds: faster, and it may miss a neighbour."""
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


def neighbours_frame(
    models: "Mapping[str, Neighbours]", queries: Sequence[str], corpus: Mapping[int, str]
) -> pd.DataFrame:
    """Put the neighbours of each query in a corpus, by model, into a table; see `retrieve`."""
    rows = [
        {
            "model": model,
            "query": query,
            "rank": rank,
            "cosine": float(cosine),
            "sentence": corpus[int(number)],
            "number": int(number) + 1,
        }
        for model, neighbours in models.items()
        for query, numbers, cosines in zip(queries, neighbours.rows, neighbours.cosines, strict=True)
        for rank, (number, cosine) in enumerate(zip(numbers, cosines, strict=True), 1)
    ]
    return pd.DataFrame(rows, columns=["model", "query", "rank", "cosine", "sentence", "number"])


@dataclass(frozen=True)
class RetrieveCommand(AnalysisCommand):
    """Find the sentences of a corpus that are closest to a query, for several models side by side.

    Examples:
    * `stsbench retrieve runs/a runs/b --corpus wiki.txt --query "A dog runs." -k 3`
    * `stsbench retrieve --corpus sample --query "The bridge is closed." --markdown`
    * `stsbench retrieve -m minilm --corpus wiki.npy --query "A dog runs."`
    """

    verb = staticmethod(retrieve)
    result = Retrieval

    query: Annotated[list[str] | None, typer.Option(help="A query sentence. Repeatable.")] = None
    corpus: Annotated[
        str,
        typer.Option(help="A file with one sentence a line, `sample`, or vectors from `stsbench embed` (.npy)."),
    ] = "sample"
    k: Annotated[int, typer.Option("--top", "-k", min=1, max=LARGEST, help="Neighbours per query.")] = 5
    search: Annotated[
        str, typer.Option(help="`exact`, or `faiss`: an approximate index (`pip install 'stsbench[faiss]'`).")
    ] = "exact"

    @classmethod
    def explained(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of `explain` that are about neighbours."""
        return {"query": options["query"], "corpus": options["retrieve_from"]}
