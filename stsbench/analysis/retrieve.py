"""Nearest neighbours: what does a model find near a sentence?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from stsbench.analysis.analysis import AnalysisCommand, AnalysisResult, Asked
from stsbench.base.errors import UserError
from stsbench.base.options import Count, NameOrPath, Spelled
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.encoders.use import Use, UseOptions, takes_use
from stsbench.render.cells import Key, Named
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, Tables

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from stsbench.analysis.neighbours import Neighbours, Vectors
    from stsbench.scoring.subjects import Subject, Wanted

SEARCHES = ("exact", "faiss")

_AT_ONCE = 50_000
"""Sentences of a corpus that are encoded and looked at before the next ones."""

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
        import pandas as pd

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
                    colour = palette[str(model)]
                    axes.plot(part["rank"], part["cosine"], color=colour, marker="o", markersize=3, label=model)
                axes.set_title(_shortened(query), loc="left", fontsize=7)
                axes.set_ylabel("cosine")
            panels[-1].set_xlabel("rank of the neighbour")
            panels[-1].xaxis.get_major_locator().set_params(integer=True)
            legend_above(figure, panels[0])
        return figure


def _shortened(text: str) -> str:
    return text if len(text) <= _TITLE_CHARACTERS else f"{text[: _TITLE_CHARACTERS - 1].rstrip()}…"


@takes_use
def retrieve(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    query: str | Sequence[str] = (),
    corpus: NameOrPath = "sample",
    k: Annotated[Count, Spelled("--top", "-k")] = 5,
    search: str = "exact",
    progress: Progress = silent,
    **use: Unpack[UseOptions],
) -> Retrieval:
    """Find the sentences of a corpus that are nearest to a sentence by cosine.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        query: a sentence to find neighbours of, or several.
        corpus: a file with one sentence a line, or `sample` for the sample's sentences. A sentence that is there
            twice is found once.
        k: how many neighbours.
        search: `exact` looks at every sentence; `faiss` asks an HNSW graph of the FAISS library, which is faster
            for many queries and may miss a neighbour (`pip install 'stsbench[faiss]'`).
        progress: told how far encoding is.
        **use: how models are used; an error where only records are named.

    Returns:
        A row for each model, query and rank; see `neighbours_frame`.

    Raises:
        UserError: if the corpus has fewer sentences, or one was never encoded and the model is not here.

    >>> found = retrieve(lambda texts: [[len(s), 1.0] for s in texts], query="A short one.", k=2)
    >>> found.frame["rank"].tolist()
    [1, 2]
    """
    from stsbench.analysis.inputs import analysable
    from stsbench.analysis.neighbours import find_neighbours
    from stsbench.data.corpus import load_corpus

    queries = list(dict.fromkeys([query] if isinstance(query, str) else query))
    if not queries or not all(text.strip() for text in queries):
        raise UserError("there is no query: give a sentence with --query.")
    if search not in SEARCHES:
        raise UserError(f"unknown search {search!r}: {suggestion(search, SEARCHES)}")
    sentences = load_corpus(corpus)
    if not 1 <= k <= len(sentences):
        raise UserError(f"{k} neighbours: the corpus has {len(sentences)} sentences.")
    models = {}
    for name, subject in analysable(runs, Use(**use)).items():
        parts = _vectors_in_parts(subject, [*queries, *sentences], progress)
        first = next(parts)
        asked, rest = first[: len(queries)], chain([first[len(queries) :]], parts)
        models[name] = find_neighbours(name, asked, rest, k, search)
    return Retrieval(neighbours_frame(models, queries, sentences))


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


def neighbours_frame(
    models: "Mapping[str, Neighbours]", queries: Sequence[str], corpus: Sequence[str]
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
        for model, neighbours in models.items()
        for query, numbers, cosines in zip(queries, neighbours.rows, neighbours.cosines, strict=True)
        for rank, (number, cosine) in enumerate(zip(numbers, cosines, strict=True), 1)
    ]
    return pd.DataFrame(rows, columns=["model", "query", "rank", "cosine", "sentence", "number"])


@dataclass(frozen=True)
class RetrieveCommand(AnalysisCommand):
    """Find the sentences of a corpus that are nearest to a query, for several models side by side.

    Examples:
    * `stsbench retrieve runs/a runs/b --corpus wiki.txt --query "A dog runs." -k 3`
    * `stsbench retrieve --corpus sample --query "The bridge is closed." --markdown`
    """

    verb = staticmethod(retrieve)
    result = Retrieval

    @classmethod
    def explained(cls, asked: Asked) -> dict[str, Any]:
        """Return what `explain` was asked about neighbours."""
        return {"query": asked.query, "corpus": asked.retrieve_from}
