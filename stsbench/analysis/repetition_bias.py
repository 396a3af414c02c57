"""`repetition_bias`: do repeated words make sentences look more alike? (ESimCSE COLING 2022, table 8)"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from stsbench.analysis.result import AnalysisCommand, AnalysisResult
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.cli.options import LARGEST, Seed
from stsbench.render.cells import labels_beside
from stsbench.render.figures import add_tooltips, colours, legend_above, new_figure, spoken, style
from stsbench.render.table import Table, Tables, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.analysis.repetition_pairs import Triple, Units
    from stsbench.encoders.protocol import Encoder
    from stsbench.scoring.settings import Intervals
    from stsbench.scoring.subjects import Subject, Wanted
    from stsbench.statistics.influence import Linear

Q_S1, Q_S2, RISE = "q-s1", "q-s2", "rise"
QUERIES, SEEDS = "queries", "seeds"
TOGETHER = "all"

_PUBLISHED = {"q-s1": Q_S1, "q-s2": Q_S2, "delta": RISE}
"""The columns of the paper's table, and what they hold."""


class RepetitionBias(AnalysisResult):
    """The repetition probe of models, the paper's rows beside them where asked."""

    name = "repetition-bias"
    title = "Repetition bias"
    question = "do repeated words make sentences look more alike?"
    look_for = "a rise whose intervals leave out 0"

    def table(self) -> Tables:
        """Return one row per model, as in the paper, with the intervals of the rise."""
        frame, rows = self.frame, []
        for model, part in frame[frame["seed"] == TOGETHER].groupby("model", sort=False):
            row: dict[str, Any] = {"model": model}
            for measure in (Q_S1, Q_S2, RISE):
                row[measure] = part.loc[part["measure"] == measure, "value"].iloc[0]
            for name in (QUERIES, SEEDS):
                limits = part.loc[(part["measure"] == RISE) & (part["interval"] == name), ["low", "high"]]
                row[f"over {name}"] = interval(*limits.iloc[0]) if len(limits) else ""
            rows.append(row)
        where = f" in {frame['corpus'].iloc[0]}" if "corpus" in frame else ""
        caption = f"Mean cosine x 100 before and after repeating shared words{where}"
        return Tables([Table(pd.DataFrame(rows), caption)])

    def numbers(self) -> dict[str, float]:
        """Return the mean cosines x 100 before and after, and the rise."""
        together = self.frame[self.frame["seed"] == TOGETHER].drop_duplicates("measure")
        return {str(row["measure"]): float(row["value"]) for row in together.to_dict("records")}

    def plot(self) -> "Figure":
        """Draw the rise of each seed with its interval over queries, and the mean over seeds as a line."""
        rises = self.frame[self.frame["measure"] == RISE]
        with_interval = rises[rises["low"].notna()]
        of_seeds = with_interval[with_interval["seed"] != TOGETHER]
        models = list(dict.fromkeys(with_interval["model"]))
        palette = colours(list(self.frame["model"]))
        with style():
            figure = new_figure()
            axes = figure.subplots()
            axes.axhline(0, color="0.4", linewidth=0.8)
            seeds = list(dict.fromkeys(of_seeds["seed"]))
            for number, model in enumerate(models):
                part = of_seeds[of_seeds["model"] == model]
                # Models stand side by side around each seed's place.
                places = np.arange(len(part)) + (number - (len(models) - 1) / 2) * 0.6 / len(models)
                half, colour = (part["high"] - part["low"]) / 2, palette[model]
                axes.errorbar(places, part["value"], yerr=half, fmt="none", color=colour, elinewidth=1, capsize=2)
                axes.plot(places, part["value"], "o", color=colour, markersize=3)
                limits = zip(part["seed"], part["value"], part["low"], part["high"], strict=True)
                texts = [f"{model}, seed {seed}: {spoken(*numbers)}" for seed, *numbers in limits]
                add_tooltips(axes, places.tolist(), part["value"].tolist(), texts)
                together = rises[(rises["model"] == model) & (rises["seed"] == TOGETHER)]
                mean, ends = float(together["value"].iloc[0]), (-0.5, len(seeds) - 0.5)
                axes.plot(ends, (mean, mean), color=colour, linewidth=0.8, linestyle=":", label=model)
            axes.set_xticks(range(len(seeds)), seeds)
            axes.set_xlim(-0.5, max(len(seeds), 1) - 0.5)
            axes.set_xlabel("seed (bars: interval over queries; dotted: mean)")
            axes.set_ylabel("rise of mean cosine (× 100)")
            legend_above(figure, axes)
        return figure


def repetition_bias(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    corpus: str | Path = "sample",
    queries: int = 100,
    seeds: int = 5,
    seed: int = 0,
    low: float = 0.13,
    high: float = 0.17,
    share_of: str = "candidate",
    tokens: str = "words",
    published: bool = False,
    intervals: "Intervals | None" = None,
    progress: Progress = silent,
) -> RepetitionBias:
    """Probe runs or models for repetition bias (ESimCSE COLING 2022, table 8).

    For each query a candidate is drawn among the sentences that share 13 to 17 % of their tokens with it; the
    words they share are repeated in the candidate, and the cosine to the query is compared before and after.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        corpus: a file with one sentence a line, or `sample` for the sample's sentences.
        queries: how many queries for each seed.
        seeds: how many draws of queries and candidates.
        seed: the first of their seeds.
        low: smallest overlap, as a share.
        high: largest overlap.
        share_of: the sentence of whose tokens the overlap is a share: `candidate` (its tokens that occur in the
            query) or `query`.
        tokens: what the overlap counts: `words` (between spaces, whatever their case) or `subwords`, of the first
            model's tokeniser; with them, words all of whose sub-words are shared are repeated.
        published: whether to put the paper's rows (ESimCSE) beside the results.
        intervals: how intervals are computed. Queries are drawn apart, and share nothing.
        progress: told how far it is.

    Returns:
        One row per model, `seed` (one, or `all` for their mean), `measure` (`q-s1`, `q-s2`, and `rise`, their
        difference) and `interval`: over `queries`, which are independent, or, for `all`, over `seeds` (NaN with
        one seed); both by Student's t. `value`, `low` and `high` are x 100. `corpus` names the file.

    Raises:
        UserError: if too few sentences have a candidate (saying how many), or a sentence was never encoded and the
            model is not here.

    >>> probe = repetition_bias(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], queries=10, seeds=2)
    >>> probe.frame["seed"].unique().tolist()
    ['0', '1', 'all']
    """
    from stsbench.analysis.inputs import analysable
    from stsbench.analysis.repetition_pairs import RepetitionProbe
    from stsbench.data.corpus import load_corpus
    from stsbench.scoring.settings import Intervals
    from stsbench.statistics.seeds import generator

    if queries < 1 or seeds < 1:
        raise UserError(f"{queries} queries and {seeds} seeds: give at least one of each.")
    subjects = analysable(runs)
    units = units_of(tokens, next(iter(subjects.values())))
    probe = RepetitionProbe(load_corpus(corpus), units=units, share_of=share_of, low=low, high=high)
    drawn = {
        number: probe.draw(queries, generator(number, "repetition"), progress)
        for number in range(seed, seed + seeds)
    }
    cosines = {
        name: [_cosines(subject, triples, progress) for triples in drawn.values()]
        for name, subject in subjects.items()
    }
    frame = repetition_frame(cosines, list(drawn), intervals or Intervals())
    if published:
        rows = _published_rows()
        rows["model"] = rows["model"].map(labels_beside(rows["model"], cosines))
        frame = pd.concat([frame, rows], ignore_index=True)
    return RepetitionBias(frame.assign(corpus=Path(corpus).name))


def units_of(tokens: str, subject: "Subject") -> "Units":
    """Return what a word consists of when overlap is counted: itself, or a model's sub-words."""
    from stsbench.analysis.repetition_pairs import whole_word
    from stsbench.records.record import RunRecord
    from stsbench.scoring.subjects import RecordedModel

    if tokens == "words":
        return whole_word
    if tokens != "subwords":
        raise UserError(f"overlap in {tokens!r}: choose words or subwords.")
    encoder = RecordedModel(subject.model) if isinstance(subject, RunRecord) else subject
    encoder.prepare(weights=False)
    around = _sequence(encoder, "")

    def subwords(word: str) -> Sequence[Hashable]:
        # What stands around any text, special tokens and prompt, is what the empty text has too.
        sequence = _sequence(encoder, word)
        start = next((at for at, (a, b) in enumerate(zip(sequence, around, strict=False)) if a != b), len(around))
        return sequence[start : len(sequence) - (len(around) - start)]

    return subwords


def _sequence(encoder: "Encoder", text: str) -> tuple[Hashable, ...]:
    (sequence,) = encoder.tokenize([text]).sequences
    if isinstance(sequence, str):
        raise UserError(f"{encoder.identity.name} has no tokeniser: count overlap in words.")
    return sequence


def _cosines(subject: "Subject", triples: "Sequence[Triple]", progress: Progress) -> tuple[Any, Any]:
    from stsbench.scoring.subjects import vectors_of
    from stsbench.statistics.similarity import pair_similarities

    vectors, rows = vectors_of(subject, [text for triple in triples for text in triple], progress)
    query, candidate, repeated = rows.reshape(-1, 3).T
    first, second = (pair_similarities(vectors, query, other)["cosine"] for other in (candidate, repeated))
    return first, second


def _published_rows() -> pd.DataFrame:
    from stsbench.published.catalogue import rows_of, systems, table

    return pd.DataFrame(
        {
            "model": f"{systems()[cell.system].title} (published)",
            "seed": TOGETHER,
            "measure": _PUBLISHED[cell.column],
            "interval": QUERIES,
            "queries": 100,
            "value": cell.score,
        }
        for row in rows_of(table("esimcse-coling2022-8"))
        for cell in row.cells
    )


def repetition_frame(
    cosines: "Mapping[str, Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]]",
    seeds: Sequence[int],
    intervals: "Intervals",
) -> pd.DataFrame:
    """Measure how much repeating the shared words raises the similarity to the query; see `repetition_bias`.

    By model, `cosines` has for each seed the (n,) cosines of query and candidate, and those of query and candidate
    with the shared words repeated.
    """
    from stsbench.statistics.influence import Linear, mean_terms

    rows: list[dict[str, Any]] = []
    for model, of_seeds in cosines.items():
        estimates: dict[str, list[Linear]] = {measure: [] for measure in (Q_S1, Q_S2, RISE)}
        for seed, (first, second) in zip(seeds, of_seeds, strict=True):
            for measure, values in zip(estimates, 100 * np.stack([first, second, second - first]), strict=True):
                # Queries are drawn anew for each seed: blocks that share nothing.
                mean = Linear(float(values.mean()), {str(seed): mean_terms(values)})
                estimates[measure].append(mean)
                about = {"seed": str(seed), "measure": measure, "interval": QUERIES, "queries": len(first)}
                rows.append({"model": model} | about | _over_queries(mean, intervals))
        queries = sum(len(first) for first, _ in of_seeds)
        for measure, by_seed in estimates.items():
            about = {"model": model, "seed": TOGETHER, "measure": measure, "queries": queries}
            overall = reduce(add, by_seed) / len(by_seed)
            rows.append(about | {"interval": QUERIES} | _over_queries(overall, intervals))
            means = np.array([mean.value for mean in by_seed])
            rows.append(about | {"interval": SEEDS} | _over_seeds(means, intervals.level))
    columns = ["model", "seed", "measure", "interval", "queries", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _over_queries(mean: "Linear", intervals: "Intervals") -> dict[str, float]:
    from stsbench.statistics.dependence import Sharing, variance
    from stsbench.statistics.intervals import plain_interval

    if intervals.interval is None:
        return {"value": mean.value, "low": float("nan"), "high": float("nan")}
    terms = np.concatenate(list(mean.terms.values()))
    limits = plain_interval(mean.value, variance(terms, Sharing.independent(len(terms))), intervals.level)
    return {"value": mean.value, "low": limits.low, "high": limits.high}


def _over_seeds(means: "NDArray[np.float64]", level: float) -> dict[str, float]:
    if len(means) < 2:
        return {"value": float(means.mean()), "low": float("nan"), "high": float("nan")}
    from stsbench.statistics.intervals import reach_of_mean

    value, half = float(means.mean()), reach_of_mean(float(means.std(ddof=1)), len(means), level)
    return {"value": value, "low": value - half, "high": value + half}


@dataclass(frozen=True)
class RepetitionBiasCommand(AnalysisCommand):
    """Probe for repetition bias: does repeating shared words make two sentences more similar?

    Examples:
    * `stsbench repetition-bias runs/a --corpus wiki.txt --published`
    * `stsbench repetition-bias --model minilm --queries 50 --overlap 10-20 --figure repetition.png`
    """

    verb = staticmethod(repetition_bias)
    result = RepetitionBias

    corpus: Annotated[str, typer.Option(help="The sentences: a file with one sentence a line, or `sample`.")] = (
        "sample"
    )
    queries: Annotated[int, typer.Option(min=1, max=LARGEST, help="Queries per seed.")] = 100
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Draws of queries and candidates.")] = 5
    seed: Seed = 0
    overlap: Annotated[str, typer.Option(help="The smallest and largest share of common tokens, in per cent.")] = (
        "13-17"
    )
    share_of: Annotated[
        str, typer.Option(help="The overlap is a share of the tokens of the `candidate` or of the `query`.")
    ] = "candidate"
    tokens: Annotated[
        str, typer.Option(help="What the overlap counts: `words`, or `subwords` of the first model's tokeniser.")
    ] = "words"
    published: Annotated[bool, typer.Option("--published", help="Add the rows of the paper (ESimCSE).")] = False

    def keywords(self) -> dict[str, Any]:
        """Return the options as `repetition_bias` takes them."""
        options = super().keywords()
        options["low"], options["high"] = _shares(options.pop("overlap"))
        return options


def _shares(overlap: str) -> tuple[float, float]:
    try:
        low, high = (float(end) / 100 for end in overlap.split("-"))
    except ValueError as error:
        raise UserError(f"--overlap {overlap}: write two percentages, such as 13-17.") from error
    return low, high
