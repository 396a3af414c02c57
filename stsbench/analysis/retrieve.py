"""The nearest vectors by cosine: exact search in blocks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.corpus import load_corpus
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table
from stsbench.scoring.subjects import Wanted, named_subjects
from stsbench.scoring.vectors import vectors_of
from stsbench.statistics.geometry import unit_rows
from stsbench.statistics.similarity import zero_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_BLOCK_ROWS = 8192


class Neighbours(NamedTuple):
    """For each query its nearest rows, nearest first, and their cosines; both of shape (queries, k)."""

    rows: NDArray[np.int64]
    cosines: NDArray[np.float64]


def nearest(queries: NDArray[np.floating[Any]], corpus: NDArray[np.floating[Any]], k: int) -> Neighbours:
    """Return the k rows of a corpus with the highest cosine to each query, by looking at every one.

    Of equal cosines the earlier row comes first. Memory does not grow with the corpus.

    Args:
        queries: (q, d) matrix.
        corpus: (n, d) matrix.
        k: how many, at most n.

    Raises:
        ValueError: if there are not so many, or a vector is zero or not finite.

    Example:
        >>> nearest(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]), 2).rows.tolist()
        [[1, 2]]
    """
    if not 1 <= k <= len(corpus):
        raise ValueError(f"{k} neighbours of {len(corpus)} vectors")
    units = unit_rows(queries)
    rows = np.empty((len(units), 0), dtype=np.int64)
    cosines = np.empty((len(units), 0))
    for start in range(0, len(corpus), _BLOCK_ROWS):
        block = np.clip(units @ unit_rows(corpus[start : start + _BLOCK_ROWS]).T, -1.0, 1.0)
        numbers = np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)
        # The best so far stand before the block: a stable order keeps the earlier row of equal cosines first.
        rows, cosines = np.hstack([rows, numbers]), np.hstack([cosines, block])
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
        rows, cosines = np.take_along_axis(rows, best, axis=1), np.take_along_axis(cosines, best, axis=1)
    return Neighbours(rows, cosines)


def neighbours_frame(
    models: Mapping[str, Neighbours], queries: Sequence[str], corpus: Sequence[str]
) -> "pd.DataFrame":
    """Put neighbours into a table.

    Args:
        models: by model the neighbours of each query.
        queries: the sentences that neighbours were looked for.
        corpus: the sentences that neighbours were looked for among.

    Returns:
        One row per model, `query` and `rank` (from 1): `cosine`, and the `sentence` with its `number` in the
        corpus (from 1).
    """
    import pandas as pd

    rows = [
        {
            "model": model,
            "query": query,
            "rank": rank,
            "cosine": float(cosine),
            "sentence": corpus[number],
            "number": int(number) + 1,
        }
        for model, found in models.items()
        for query, numbers, cosines in zip(queries, found.rows, found.cosines, strict=True)
        for rank, (number, cosine) in enumerate(zip(numbers, cosines, strict=True), 1)
    ]
    return pd.DataFrame(rows, columns=["model", "query", "rank", "cosine", "sentence", "number"])


def views(frame: "pd.DataFrame") -> list[Table]:
    """Return a table per query for readers: ranks down, models across.

    Args:
        frame: what `neighbours_frame` returned.
    """
    import pandas as pd

    found = []
    for query, part in frame.groupby("query", sort=False):
        sides: list[pd.Series] = [pd.Series(sorted(set(part["rank"])), name="rank")]
        for model, side in part.groupby("model", sort=False):
            sides.append(side["cosine"].reset_index(drop=True).rename("cosine"))
            sides.append(side["sentence"].reset_index(drop=True).rename(str(model)))
        found.append(Table(pd.concat(sides, axis=1), f"Nearest to: {query}", 3))
    return found


def figure(frame: "pd.DataFrame") -> "Figure":
    """Draw the cosines of the neighbours by rank, a panel per query.

    Args:
        frame: what `neighbours_frame` returned.
    """
    palette = colours(list(frame["model"]))
    queries = list(dict.fromkeys(frame["query"]))
    with style():
        drawn = new_figure(height=0.8 + 1.1 * len(queries))
        panels = drawn.subplots(len(queries), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, query in zip(panels, queries, strict=True):
            for model, part in frame[frame["query"] == query].groupby("model", sort=False):
                axes.plot(
                    part["rank"], part["cosine"], color=palette[str(model)], marker="o", markersize=3, label=model
                )
            axes.set_title(_shortened(query), loc="left", fontsize=7)
            axes.set_ylabel("cosine")
        panels[-1].set_xlabel("rank of the neighbour")
        panels[-1].xaxis.get_major_locator().set_params(integer=True)
        legend_above(drawn, panels[0])
    return drawn


def _shortened(text: str, width: int = 52) -> str:
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


SEARCHES = ("exact", "faiss")


def retrieve(
    runs: Wanted | Sequence[Wanted] | None = None,
    *,
    query: str | Sequence[str],
    corpus: str | Path = "sample",
    k: int = 5,
    search: str = "exact",
    progress: Progress = silent,
    **options: Any,
) -> "pd.DataFrame":
    """Find the sentences of a corpus that are nearest to a sentence by cosine.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        query: one sentence or several.
        corpus: a file with one sentence a line, or `sample`. A sentence that is there twice is found once.
        k: how many neighbours.
        search: `exact` looks at every sentence; `faiss` asks an HNSW graph of the FAISS library, which is faster
            for many queries and may miss a neighbour.
        progress: told how far encoding is.
        options: how to load models, as in `load`.

    Returns:
        A tidy table; see `stsbench.analysis.retrieve.retrieve`.

    Raises:
        UserError: if the corpus has fewer sentences, or one was never encoded and the model is not here.

    >>> found = retrieve(lambda texts: [[len(s), 1.0] for s in texts], query="A short one.", k=2)
    >>> found["rank"].tolist()
    [1, 2]
    """
    queries = list(dict.fromkeys([query] if isinstance(query, str) else query))
    if not queries or not all(text.strip() for text in queries):
        raise UserError("there is no query: give a sentence with --query.")
    if search not in SEARCHES:
        raise UserError(f"unknown search {search!r}: choose one of {', '.join(SEARCHES)}.")
    sentences = load_corpus(corpus)
    if not 1 <= k <= len(sentences):
        raise UserError(f"{k} neighbours: the corpus has {len(sentences)} sentences.")
    models = {}
    for name, subject in named_subjects(runs, **options).items():
        vectors = vectors_of(subject, [*queries, *sentences], progress).each()
        models[name] = _neighbours(name, vectors[: len(queries)], vectors[len(queries) :], k, search)
    return neighbours_frame(models, queries, sentences)


def _neighbours(
    name: str, queries: NDArray[np.floating[Any]], corpus: NDArray[np.floating[Any]], k: int, search: str
) -> Neighbours:
    if zero_rows(queries).any():
        raise UserError(f"{name} knows no word of a query: its vector is zero, and nothing is near it.")
    usable = np.flatnonzero(~zero_rows(corpus))
    if k > len(usable):
        raise UserError(f"{k} neighbours: {name} has a vector that is not zero for {len(usable)} sentences.")
    find = _faiss if search == "faiss" else nearest
    found = find(queries, corpus[usable], k)
    return Neighbours(usable[found.rows], found.cosines)


def _faiss(queries: NDArray[np.floating[Any]], corpus: NDArray[np.floating[Any]], k: int) -> Neighbours:
    try:
        import faiss
    except ImportError as error:
        raise UserError("FAISS is not installed: pip install 'stsbench[faiss]', or use --search exact.") from error
    units = [np.ascontiguousarray(matrix, dtype=np.float32) for matrix in (queries, corpus)]
    for matrix in units:
        faiss.normalize_L2(matrix)
    index = faiss.IndexHNSWFlat(corpus.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction, index.hnsw.efSearch = 200, max(128, 2 * k)
    index.add(units[1])
    cosines, rows = index.search(units[0], k)
    return Neighbours(rows.astype(np.int64), np.clip(cosines.astype(np.float64), -1, 1))
