"""Repetition bias: does repeating shared words make two sentences more similar? (ESimCSE COLING 2022, table 8)"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.base import Analysis, Row, draw_panels, mean
from stsbench.analysis.parameters import INTERVALS, LARGEST, SEED, Parameter, parameter
from stsbench.analysis.repetition_pairs import SHARE_OF, RepetitionProbe, Units, whole_word
from stsbench.base.errors import UserError
from stsbench.data.corpus import load_corpus
from stsbench.encoders.protocol import Encoder
from stsbench.published.catalogue import rows_of, systems
from stsbench.published.catalogue import table as published_table
from stsbench.records.record import RunRecord
from stsbench.render.cells import labels_beside
from stsbench.render.table import Table, Tables, interval
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import RecordedModel, Subject, vectors_of
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import Linear, mean_terms
from stsbench.statistics.intervals import plain_interval, reach_of_mean
from stsbench.statistics.seeds import generator
from stsbench.statistics.similarity import pair_similarities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cosines = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(n,) cosines of query and candidate, before and after the shared words are repeated."""

Q_S1, Q_S2, RISE = "q-s1", "q-s2", "rise"
QUERIES, SEEDS = "queries", "seeds"
TOGETHER = "all"

_PUBLISHED = {"q-s1": Q_S1, "q-s2": Q_S2, "delta": RISE}
"""The measures in the columns of the paper's table."""


class RepetitionBias(Analysis):
    """Probe for repetition bias: does repeating shared words make two sentences more similar?

    Each query gets a random candidate that shares 13 to 17 % of its tokens; the shared words are repeated in the
    candidate, and its cosines to the query are compared.

    Returns:
        One row per model, `seed` (or `all`, their mean), `measure` (`q-s1`, `q-s2`, and their difference `rise`)
        and `interval`: over `queries`, which are independent, or, for `all`, over `seeds` (NaN with one seed), by
        Student's t. `value`, `low` and `high` are x 100. `corpus` names the file.

    Raises:
        UserError: if too few sentences have a candidate, or a sentence without a cached vector cannot be encoded.

    >>> probe = repetition_bias(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], queries=10, seeds=2)
    >>> probe.frame["seed"].unique().tolist()
    ['0', '1', 'all']
    """

    name = "repetition-bias"
    title = "Repetition bias"
    question = "do repeated words make sentences look more alike?"
    look_for = "a rise whose intervals exclude 0"
    examples = (
        "stsbench repetition-bias runs/a --corpus wiki.txt --published",
        "stsbench repetition-bias --model minilm --queries 50 --overlap 10-20 --figure repetition.png",
    )
    has_interval_options = False  # queries are independent
    columns = ("model", "seed", "measure", "interval", "queries", "value", "low", "high", "corpus")

    corpus: str | Path = parameter("sample", "The sentences: a file with one sentence a line, or `sample`.")
    queries: int = parameter(100, "Queries per seed.", limits=(1, LARGEST))
    seeds: int = parameter(5, "Draws of queries and candidates.", limits=(1, 1000))
    seed = SEED
    low: float = parameter(0.13, "The smallest share of common tokens.", has_option=False)
    high: float = parameter(0.17, "The largest share of common tokens.", has_option=False)
    share_of: str = parameter(
        "candidate", "The overlap is a share of the tokens of the `candidate` or of the `query`.", choices=SHARE_OF
    )
    tokens: str = parameter(
        "words",
        "What the overlap counts: `words`, or `subwords` of the first model's tokeniser.",
        choices=("words", "subwords"),
    )
    published: bool = parameter(False, "Add the rows of the paper (ESimCSE).", flags=("--published",))
    intervals: Intervals | None = INTERVALS

    @classmethod
    def own_options(cls) -> dict[str, Parameter]:
        """Returns the options of the command; `--overlap` sets both `low` and `high`."""
        overlap = Parameter("13-17", "The smallest and largest share of common tokens, in per cent.")
        return super().own_options() | {"overlap": overlap}

    @classmethod
    def from_options(cls, options: Row, use: Any) -> Row:
        """Splits `--overlap`."""
        overlap = options.pop("overlap")
        try:
            low, high = (float(end) / 100 for end in overlap.split("-"))
        except ValueError as error:
            raise UserError(f"--overlap {overlap}: write two percentages, such as 13-17.") from error
        return super().from_options(options | {"low": low, "high": high}, use)

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Mapping[int, Cosines]]:
        """Returns the cosines by model and seed."""
        self.constants = {"corpus": Path(self.corpus).name}
        units = units_of(self.tokens, next(iter(subjects.values())))
        probe = RepetitionProbe(
            load_corpus(self.corpus), units=units, share_of=self.share_of, low=self.low, high=self.high
        )
        drawn = {
            seed: probe.draw(self.queries, generator(seed, "repetition"), self.progress)
            for seed in range(self.seed, self.seed + self.seeds)
        }
        models: dict[str, dict[int, Cosines]] = {}
        for name, subject in subjects.items():
            models[name] = {}
            for seed, triples in drawn.items():
                texts = [text for triple in triples for text in triple]
                vectors, rows = vectors_of(subject, texts, self.progress)
                query, *others = rows.reshape(-1, 3).T
                first, second = (pair_similarities(vectors, query, other)["cosine"] for other in others)
                models[name][seed] = first, second
        return models

    def measure(self, model: str, given: Mapping[int, Cosines]) -> Iterator[Row]:
        """Yields the means of each seed, and over seeds."""
        estimates: dict[str, list[Linear]] = {measure: [] for measure in (Q_S1, Q_S2, RISE)}
        for seed, (first, second) in given.items():
            for measure, values in zip(estimates, 100 * np.stack([first, second, second - first]), strict=True):
                # Each seed draws new queries, so blocks share nothing.
                estimate = Linear(float(values.mean()), {str(seed): mean_terms(values)})
                estimates[measure].append(estimate)
                about = {"seed": str(seed), "measure": measure, "interval": QUERIES, "queries": len(first)}
                yield about | self._over_queries(estimate)
        queries = sum(len(first) for first, _ in given.values())
        for measure, by_seed in estimates.items():
            about = {"seed": TOGETHER, "measure": measure, "queries": queries}
            yield about | {"interval": QUERIES} | self._over_queries(mean(by_seed))
            values = np.array([estimate.value for estimate in by_seed])
            value, half = float(values.mean()), float("nan")
            if len(values) > 1:
                half = reach_of_mean(float(values.std(ddof=1)), len(values), self.how.level)
            yield about | {"interval": SEEDS, "value": value, "low": value - half, "high": value + half}

    def _over_queries(self, estimate: Linear) -> dict[str, float]:
        low = high = float("nan")
        if self.how.interval is not None:
            terms = np.concatenate(list(estimate.terms.values()))
            spread = variance(terms, Sharing.independent(len(terms)))
            low, high, _ = plain_interval(estimate.value, spread, self.how.level)
        return {"value": estimate.value, "low": low, "high": high}

    def compute(self, inputs: Mapping[str, Mapping[int, Cosines]]) -> Self:
        """Measures all models, and adds the paper's rows."""
        super().compute(inputs)
        if self.published:
            rows = _published_rows().assign(**self.constants)
            rows["model"] = rows["model"].map(labels_beside(rows["model"], inputs))
            self._frame = pd.concat([self._frame, rows], ignore_index=True)
        return self

    def table(self) -> Tables:
        """Returns a row for each model, as in the paper, with the intervals of the rise."""
        frame, rows = self.frame, []
        for model, part in frame[frame["seed"] == TOGETHER].groupby("model", sort=False):
            row: Row = {"model": model}
            for measure in (Q_S1, Q_S2, RISE):
                row[measure] = part.loc[part["measure"] == measure, "value"].iloc[0]
            for name in (QUERIES, SEEDS):
                limits = part.loc[(part["measure"] == RISE) & (part["interval"] == name), ["low", "high"]]
                row[f"over {name}"] = interval(*limits.iloc[0]) if len(limits) else ""
            rows.append(row)
        caption = f"Mean cosine x 100 before and after repeating shared words in {frame['corpus'].iloc[0]}"
        return Tables([Table(pd.DataFrame(rows), caption)])

    def numbers(self) -> dict[str, float]:
        """Returns the mean cosines x 100 before and after, and the rise."""
        together = self.frame[self.frame["seed"] == TOGETHER].drop_duplicates("measure")
        return {str(row["measure"]): float(row["value"]) for row in together.to_dict("records")}

    def plot(self) -> "Figure":
        """Draws the rise of each seed with its interval over queries, and their mean with that over seeds."""
        rises = self.frame[(self.frame["measure"] == RISE) & self.frame["low"].notna()]
        shown = rises[(rises["seed"] != TOGETHER) | (rises["interval"] == SEEDS)]
        rows = shown.assign(place=shown["seed"].replace(TOGETHER, "mean"))
        figure = draw_panels(self.frame, {"rise of mean cosine (× 100)": rows}, height=2.4, shared=True)
        figure.axes[0].axhline(0, color="0.4", linewidth=0.8, zorder=0)
        figure.axes[0].set_xlabel("seed")
        return figure


def units_of(tokens: str, subject: Subject) -> Units:
    """Returns the function that splits a word into units of overlap: itself, or its sub-words."""
    if tokens == "words":
        return whole_word
    encoder = RecordedModel(subject.model) if isinstance(subject, RunRecord) else subject
    encoder.prepare(weights=False)
    around = _sequence(encoder, "")

    def subwords(word: str) -> Sequence[Hashable]:
        # The special tokens and the prompt around any text are the sequence of the empty text.
        sequence = _sequence(encoder, word)
        start = next((at for at, (a, b) in enumerate(zip(sequence, around, strict=False)) if a != b), len(around))
        return sequence[start : len(sequence) - (len(around) - start)]

    return subwords


def _sequence(encoder: Encoder, text: str) -> tuple[Hashable, ...]:
    (sequence,) = encoder.tokenize([text]).sequences
    if isinstance(sequence, str):
        raise UserError(f"{encoder.identity.name} has no tokeniser: count overlap in words.")
    return sequence


def _published_rows() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": f"{systems()[cell.system].title} (published)",
            "seed": TOGETHER,
            "measure": _PUBLISHED[cell.column],
            "interval": QUERIES,
            "queries": 100,
            "value": cell.score,
        }
        for row in rows_of(published_table("esimcse-coling2022-8"))
        for cell in row.cells
    )


repetition_bias = RepetitionBias.verb
