"""Repetition bias: does repeating shared words make two sentences more similar? (ESimCSE COLING 2022, table 8)"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csc_array

from stsbench.analysis.base import Analysis, Row, published_cells
from stsbench.analysis.inputs import CORPUS, COUNT, SEED, Answer, mean, parameter, triple_cosines
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.corpus import load_corpus
from stsbench.render.table import Table, Tables, in_columns, intervals_of
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import Subject
from stsbench.statistics import LEVEL
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.influence import Floats, Linear, mean_terms
from stsbench.statistics.intervals import reach_of_mean
from stsbench.statistics.seeds import generator

Q_S1, Q_S2, RISE = "q-s1", "q-s2", "rise"
QUERIES, SEEDS, TOGETHER = "queries", "seeds", "all"
Triple = tuple[str, str, str]


class RepetitionBias(Analysis):
    """Probe for repetition bias: does repeating shared words make two sentences more similar?

    Each query gets a random candidate that shares 13 to 17 % of its tokens; the shared words are repeated in the
    candidate, and its cosines to the query are compared.

    Returns:
        One row per model, `seed` (or `all`, their mean), `measure` (`q-s1`, `q-s2`, and their difference `rise`)
        and `interval`: over `queries`, or, for `all`, over `seeds`. `value`, `low` and `high` are x 100.

    >>> from stsbench import repetition_bias
    >>> probe = repetition_bias(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], queries=10, seeds=2)
    >>> probe.frame["seed"].unique().tolist()
    ['0', '1', 'all']
    """

    answer = Answer("What do repeated words add?", unit="points", rows={"measure": RISE, "interval": SEEDS})
    reference = 0
    fewest = 1
    intervals = Intervals("independent")
    place_label = "seed"
    corpus = CORPUS
    queries: int = parameter(100, "Queries per seed.", limits=COUNT)
    seeds: int = parameter(5, "Draws of queries and candidates.", limits=(1, 1000))
    seed = SEED
    published: bool = parameter(False, "Add the rows of the paper (ESimCSE).", flags=("--published",))

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Mapping[int, tuple[Floats, Floats]]]:
        self.constants = {"corpus": Path(self.corpus).name}
        probe, seeds = RepetitionProbe(load_corpus(self.corpus)), range(self.seed, self.seed + self.seeds)
        drawn = {seed: probe.draw(self.queries, generator(seed, "repetition"), self.progress) for seed in seeds}
        return {
            name: {seed: triple_cosines(subject, triples, self.progress) for seed, triples in drawn.items()}
            for name, subject in subjects.items()
        }

    def measure(self, model: str, given: Mapping[int, tuple[Floats, Floats]]) -> Iterator[Row]:
        by_seed, queries = dict[str, list[Linear]](), sum(len(before) for before, _ in given.values())
        for seed, (before, after) in given.items():
            self.estimates.block(str(seed), Sharing.of(np.arange(len(before))))
            for measure, values in ((Q_S1, before), (Q_S2, after), (RISE, after - before)):
                estimate = Linear(float((100 * values).mean()), {str(seed): mean_terms(100 * values)})
                by_seed.setdefault(measure, []).append(estimate)
                about = {"seed": str(seed), "measure": measure, "interval": QUERIES, "queries": len(before)}
                yield about | self.estimates.limits(estimate)
        for measure, of_seeds in by_seed.items():
            about = {"seed": TOGETHER, "measure": measure, "queries": queries}
            yield about | {"interval": QUERIES} | self.estimates.limits(mean(of_seeds))
            values = np.array([estimate.value for estimate in of_seeds])
            spread = float(values.std(ddof=1)) if len(values) > 1 else nan
            value, half = float(values.mean()), reach_of_mean(spread, len(values), LEVEL)
            yield about | {"interval": SEEDS, "value": value, "low": value - half, "high": value + half}

    def _published_rows(self) -> pd.DataFrame:
        about = {"seed": TOGETHER, "interval": QUERIES, "queries": 100}
        cells = published_cells("esimcse-coling2022-8")
        rows = (about | row | {"measure": cell.column.replace("delta", RISE)} for _, cell, row in cells)
        return pd.DataFrame(rows)

    def table(self) -> Tables:
        together = self.frame[self.frame["seed"] == TOGETHER]
        table = in_columns(together, ["model"], "measure", "value")
        for name in (QUERIES, SEEDS):
            rows = together[(together["measure"] == RISE) & (together["interval"] == name)]
            limits = dict(zip(rows["model"], intervals_of(rows), strict=True))
            table[f"over {name}"] = table["model"].map(limits).fillna("")
        caption = f"Mean cosine x 100 before and after repeating shared words in {self.frame['corpus'].iloc[0]}"
        return Tables([Table(table, caption)])

    def panels(self) -> Mapping[str, pd.DataFrame]:
        rises = self.frame[(self.frame["measure"] == RISE) & self.frame["low"].notna()]
        shown = rises[(rises["seed"] != TOGETHER) | (rises["interval"] == SEEDS)]
        return {"rise of mean cosine (× 100)": shown.assign(place=shown["seed"].replace(TOGETHER, "mean"))}


class RepetitionProbe:
    """Draws the triples of the probe from a corpus of distinct sentences.

    ESimCSE (COLING 2022), section 5.5: "We use the query to randomly recall a candidate sentence with 13%-17%
    overlap tokens". It does not define the percentage; here it is a share of the candidate's words, ignoring case.
    """

    def __init__(self, corpus: Sequence[str], low: float = 0.13, high: float = 0.17) -> None:
        self.corpus, self.low, self.high = corpus, low, high
        words = [sentence.casefold().split() for sentence in corpus]
        self._lengths = np.array(list(map(len, words)))
        codes, _ = pd.factorize(np.array([word for of in words for word in of], dtype=object))
        self._words = np.split(codes, np.cumsum(self._lengths)[:-1])
        owners = np.repeat(np.arange(len(corpus)), self._lengths)
        # Occurrences of each word (columns) in each sentence (rows): a query reads only the columns of its words.
        self._counts = csc_array((np.ones(len(owners), dtype=np.int64), (owners, codes)))

    def candidates(self, query: int) -> NDArray[np.int64]:
        """Returns the numbers of the sentences whose overlap with a query of the corpus is in the range."""
        shares = self._counts[:, np.unique(self._words[query])].sum(axis=1) / np.maximum(self._lengths, 1)
        others = np.arange(len(shares)) != query
        return np.flatnonzero((shares >= self.low) & (shares <= self.high) & others)

    def draw(self, queries: int, rng: np.random.Generator, progress: Progress = silent) -> list[Triple]:
        """Draws distinct queries in random order, each with a candidate; queries without one are skipped."""
        triples: list[Triple] = []
        order = map(int, rng.permutation(len(self.corpus)))
        paired = ((query, candidates) for query in order if len(candidates := self.candidates(query)))
        for query, candidates in islice(paired, queries):
            texts = self.corpus[query], self.corpus[int(rng.choice(candidates))]
            triples.append((*texts, _repeated(*texts)))
            progress("candidates", len(triples), queries)
        if len(triples) < queries:
            raise UserError(
                f"{len(triples)} of the {len(self.corpus)} sentences of the corpus have a candidate with "
                f"{100 * self.low:g} to {100 * self.high:g} % overlap, fewer than {queries} queries: give a "
                "larger corpus or fewer --queries."
            )
        return triples


def _repeated(query: str, candidate: str) -> str:
    known = set(query.casefold().split())
    return " ".join(f"{word} {word}" if word.casefold() in known else word for word in candidate.split())
