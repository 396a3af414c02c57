"""The repetition-bias probe: do repeated words make sentences look more alike? (ESimCSE COLING 2022, table 8)"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stsbench.render.figures import colours, legend_above, new_figure, style
from stsbench.render.table import Table, interval
from stsbench.statistics.estimates import Resampling, ratio, sums_of, with_interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Q_S1, Q_S2, RISE = "q-s1", "q-s2", "rise"
QUERIES, SEEDS = "queries", "seeds"
TOGETHER = "all"


def repetition_bias(
    cosines: Mapping[str, Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]],
    seeds: Sequence[int],
    resampling: Resampling | None = None,
) -> "pd.DataFrame":
    """Measure how much repeating the shared words raises the similarity to the query.

    Args:
        cosines: by model, for each seed the (n,) cosines of query and candidate and the (n,) cosines of query and
            candidate with the shared words repeated.
        seeds: the seeds that the pairs were drawn with.
        resampling: how the intervals over queries are computed.

    Returns:
        One row per model, `seed` (one, or `all` for their mean), measure (`q-s1`, `q-s2`, and `rise`, their
        difference) and `interval`: over `queries` (bootstrap) or, for `all`, over `seeds` (Student's t of the
        seeds' means; NaN with one seed). `value`, `low` and `high` are x 100.
    """
    import pandas as pd

    resampling = resampling or Resampling()
    rows: list[dict[str, Any]] = []
    for model, of_seeds in cosines.items():
        estimates = {measure: [] for measure in (Q_S1, Q_S2, RISE)}  # type: dict[str, list[NDArray[np.float64]]]
        for seed, (first, second) in zip(seeds, of_seeds, strict=True):
            terms = 100 * np.stack([np.full(len(first), 0.01), first, second, second - first])
            n, *sums = sums_of(terms, resampling, "repetition", str(seed))
            for measure, total in zip(estimates, sums, strict=True):
                estimates[measure].append(ratio(total, n))
                about = {"seed": str(seed), "measure": measure, "interval": QUERIES, "queries": len(first)}
                rows.append({"model": model} | about | with_interval(estimates[measure][-1], resampling))
        queries = sum(len(first) for first, _ in of_seeds)
        for measure, found in estimates.items():
            about = {"model": model, "seed": TOGETHER, "measure": measure, "queries": queries}
            over_queries = with_interval(np.mean(found, axis=0), resampling)
            rows.append(about | {"interval": QUERIES} | over_queries)
            means = np.array([values[0] for values in found])
            rows.append(about | {"interval": SEEDS} | _over_seeds(means, resampling.level))
    columns = ["model", "seed", "measure", "interval", "queries", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _over_seeds(means: NDArray[np.float64], level: float) -> dict[str, float]:
    if len(means) < 2:
        return {"value": float(means.mean()), "low": float("nan"), "high": float("nan")}
    from scipy.stats import t

    half = t.ppf((1 + level) / 2, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    return {"value": float(means.mean()), "low": float(means.mean() - half), "high": float(means.mean() + half)}


def views(frame: "pd.DataFrame") -> list[Table]:
    """Return the table for readers: one row per model, as in the paper, with the intervals of the rise.

    Args:
        frame: what `repetition_bias` returned, published rows included.
    """
    import pandas as pd

    rows = []
    for model, part in frame[frame["seed"] == TOGETHER].groupby("model", sort=False):
        row: dict[str, Any] = {"model": model}
        for measure in (Q_S1, Q_S2, RISE):
            row[measure] = part.loc[part["measure"] == measure, "value"].iloc[0]
        for name in (QUERIES, SEEDS):
            found = part[(part["measure"] == RISE) & (part["interval"] == name)]
            row[f"over {name}"] = interval(*found[["low", "high"]].iloc[0]) if len(found) else ""
        rows.append(row)
    where = f" in {frame['corpus'].iloc[0]}" if "corpus" in frame else ""
    return [Table(pd.DataFrame(rows), f"Mean cosine x 100 before and after repeating shared words{where}")]


def figure(frame: "pd.DataFrame") -> "Figure":
    """Draw the rise of each seed with its interval over queries, and the mean over seeds as a line.

    Args:
        frame: what `repetition_bias` returned.
    """
    own = frame[(frame["measure"] == RISE) & frame["low"].notna()]
    models = list(dict.fromkeys(own["model"]))
    palette = colours(list(frame["model"]))
    with style():
        drawn = new_figure()
        axes = drawn.subplots()
        axes.axhline(0, color="0.4", linewidth=0.8)
        seeds = list(dict.fromkeys(own.loc[own["seed"] != TOGETHER, "seed"]))
        for place, model in enumerate(models):
            part = own[(own["model"] == model) & (own["seed"] != TOGETHER)]
            # Models stand side by side around each seed's place.
            x = np.arange(len(part)) + (place - (len(models) - 1) / 2) * 0.6 / len(models)
            axes.errorbar(
                x,
                part["value"],
                yerr=[part["value"] - part["low"], part["high"] - part["value"]],
                color=palette[model],
                fmt="o",
                markersize=3,
                elinewidth=1,
                capsize=2,
                label=model,
            )
            mean = frame.loc[
                (frame["model"] == model) & (frame["seed"] == TOGETHER) & (frame["measure"] == RISE), "value"
            ].iloc[0]
            axes.axhline(mean, color=palette[model], linewidth=0.8, linestyle=":")
        axes.set_xticks(range(len(seeds)), seeds)
        axes.set_xlabel("seed (bars: interval over queries; dotted: mean)")
        axes.set_ylabel("rise of mean cosine (× 100)")
        legend_above(drawn, axes)
    return drawn
