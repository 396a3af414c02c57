"""`retrieve`: the nearest sentences of a corpus, of several models side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stsbench.analysis.retrieve import figure, views
from stsbench.analysis.retrieve import retrieve as analyse
from stsbench.datasets import load_corpus
from stsbench.foundation.errors import UserError
from stsbench.foundation.progress import Progress, silent
from stsbench.statistics import zero_rows
from stsbench.statistics.neighbours import Neighbours, nearest
from stsbench.workflows.analysed_data import vectors_of
from stsbench.workflows.subjects import Wanted, named_subjects

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["figure", "retrieve", "views"]

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
    return analyse(models, queries, sentences)


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
