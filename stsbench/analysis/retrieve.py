"""Retrieve: which sentences of a corpus are nearest to a query?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from stsbench.analysis.base import Analysis, Row
from stsbench.analysis.inputs import COUNT, Answer, parameter
from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sample
from stsbench.data.corpus import numbered_corpus
from stsbench.encoders.embedded import Embedded
from stsbench.records.record import RunRecord
from stsbench.render.figures import Figure, shortened
from stsbench.render.table import Table, Tables
from stsbench.scoring.kinds.retrieval import BLOCK, search
from stsbench.scoring.subjects import RecordedModel, Subject, vectors_of
from stsbench.statistics.geometry import Vectors
from stsbench.statistics.neighbours import Nearest, zero_rows

_TITLE_CHARACTERS = 52  # Characters of a query in the title of its panel


class Retrieve(Analysis):
    """Find the sentences of a corpus that are closest to a query, for several models side by side.

    Returns:
        One row per model, `query` and `rank` (from 1): `cosine`, and the `sentence` with its `number` among the
        corpus's nonempty lines (from 1; of equal lines the first; among vectors, that of each row).

    >>> from stsbench import retrieve
    >>> neighbours = retrieve(lambda texts: [[len(s), 1.0] for s in texts], query="A short one.", k=2)
    >>> neighbours.frame["rank"].tolist()
    [1, 2]
    """

    answer = Answer("How close is a nearest sentence?", rows={"rank": 1}, column="cosine")
    place_label = "rank of the neighbour"
    title = "Nearest neighbours"
    examples = ('stsbench explain retrieve runs/a runs/b --corpus wiki.txt --query "A dog runs." -k 3',)

    query: str | Sequence[str] = parameter(
        (), "A query sentence; by default three of the sample. Repeatable.", kind=str
    )
    corpus: str | Path = parameter(
        "sample", "A file with one sentence per line, `sample`, or vectors from `stsbench embed` (.npy)."
    )
    k: int = parameter(5, "Neighbours per query.", flags=("--top", "-k"), limits=COUNT)

    sentences: Mapping[int, str] = {}
    """The sentences of the corpus by row."""

    @property
    def _queries(self) -> list[str]:
        queries = [self.query] if isinstance(self.query, str) else list(self.query)
        return list(dict.fromkeys(queries or load_sample().pairs.drop_duplicates("subset")["sentence1"].head(3)))

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Nearest]:
        if not all(text.strip() for text in self._queries):
            raise UserError("--query is empty: give a sentence.")
        if str(self.corpus).endswith(".npy"):
            return self._among_vectors(subjects)
        numbers = numbered_corpus(self.corpus)
        self.sentences = {number: sentence for sentence, number in numbers.items()}
        models, first = {}, len(self._queries)
        for name, subject in subjects.items():
            vectors = vectors_of(subject, [*self._queries, *numbers], self.progress).each()
            parts = (vectors[start : start + BLOCK] for start in range(first, len(vectors), BLOCK))
            rows, cosines = find_neighbours(name, vectors[:first], parts, self.k)
            models[name] = Nearest(np.array(list(numbers.values()))[rows], cosines)
        return models

    def _among_vectors(self, subjects: Mapping[str, Subject]) -> Mapping[str, Nearest]:
        """Returns the neighbours of queries among the vectors of a file."""
        embedded = Embedded.read(Path(self.corpus).expanduser())
        models = {}
        for name, subject in subjects.items():
            encoder = RecordedModel(subject.model) if isinstance(subject, RunRecord) else subject
            embedded.require_of(encoder.identity)
            queries = vectors_of(subject, self._queries).each()
            models[name] = find_neighbours(name, queries, self._counted(embedded), self.k)
        rows = {int(row) for neighbours in models.values() for row in neighbours.rows.ravel()}
        self.sentences = embedded.sentences(list(rows))
        return models

    def _counted(self, embedded: Embedded) -> Iterator[Vectors]:
        for start in range(0, embedded.rows, BLOCK):
            yield embedded.vectors[start : start + BLOCK]
            self.progress("looking at vectors", min(start + BLOCK, embedded.rows), embedded.rows)

    def measure(self, model: str, given: Nearest) -> Iterator[Row]:
        for query, numbers, cosines in zip(self._queries, *given, strict=True):
            for rank, (number, cosine) in enumerate(zip(numbers.tolist(), cosines, strict=True), 1):
                about = {"sentence": self.sentences[number], "number": number + 1}
                yield {"query": query, "rank": rank, "cosine": float(cosine)} | about

    def table(self) -> Tables:
        tables = []
        for query, part in self.frame.groupby("query", sort=False):
            is_one, columns = part["model"].nunique() == 1, {"rank": pd.Series(sorted(set(part["rank"])))}
            for model, side in part.groupby("model", sort=False):
                name = "cosine" if is_one else f"{model}: cosine"
                cells = side.reset_index(drop=True)
                columns |= {name: cells["cosine"], str(model): cells["sentence"]}
            tables.append(Table(pd.DataFrame(columns), f"Nearest to: {query}", 3))
        return Tables(tables)

    def panels(self) -> Mapping[str, pd.DataFrame]:
        rows = self.frame.assign(place=self.frame["rank"], value=self.frame["cosine"], low=np.nan, high=np.nan)
        return {str(query): part for query, part in rows.groupby("query", sort=False)}

    def plot(self) -> Figure:
        """Draws the cosines of the neighbours by rank, a panel for each query."""
        figure = super().plot()
        for axes in figure.axes:
            axes.set_title(shortened(axes.get_ylabel(), _TITLE_CHARACTERS), loc="left", fontsize=7)
            axes.set_ylabel("cosine")
        return figure


def find_neighbours(model: str, queries: Vectors, corpus: Iterable[Vectors], k: int) -> Nearest:
    """Returns the k rows of a corpus with the highest cosine to each query, without zero vectors.

    The (n, d) matrix of the corpus comes in blocks of rows, which are in memory one at a time.
    """
    if zero_rows(queries).any():
        raise UserError(
            f"{model} gives a query a zero vector, which has no neighbours (does it know any word of it?)."
        )
    neighbours = search(queries, corpus, k)
    if k > (count := neighbours.rows.shape[1]):
        raise UserError(
            f"{k} neighbours: {model} has nonzero vectors of {count} sentences only; give a smaller --top."
        )
    return neighbours
