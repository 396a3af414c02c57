"""Nearest neighbours of a sentence, of several models side by side (SimCSE 2021, table 10)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stsbench.analysis.views import View
from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.statistics.neighbours import Neighbours

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def retrieve(models: Mapping[str, Neighbours], queries: Sequence[str], corpus: Sequence[str]) -> "pd.DataFrame":
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


def views(frame: "pd.DataFrame") -> list[View]:
    """Return a table per query for readers: ranks down, models across.

    Args:
        frame: what `retrieve` returned.
    """
    import pandas as pd

    found = []
    for query, part in frame.groupby("query", sort=False):
        sides: list[pd.Series] = [pd.Series(sorted(set(part["rank"])), name="rank")]
        for model, side in part.groupby("model", sort=False):
            sides.append(side["cosine"].reset_index(drop=True).rename("cosine"))
            sides.append(side["sentence"].reset_index(drop=True).rename(str(model)))
        found.append(View(f"Nearest to: {query}", pd.concat(sides, axis=1), 3))
    return found


def figure(frame: "pd.DataFrame") -> "Figure":
    """Draw the cosines of the neighbours by rank, a panel per query.

    Args:
        frame: what `retrieve` returned.
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
