"""Probes: is a sentence nearer to a paraphrase than to itself with its meaning changed?

Minimal pairs by kind of change, as in HEROS (Chiang et al. 2023, arXiv 2306.05083), each with a paraphrase.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.base import Analysis, Row, with_intervals
from stsbench.analysis.parameters import DATA_DIRS, INTERVALS, parameter
from stsbench.base.errors import UserError
from stsbench.data.triples import load_triples
from stsbench.render.figures import shortened
from stsbench.render.table import Table, Tables
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import Subject, vectors_of
from stsbench.statistics.dependence import Sharing, Variance, variance
from stsbench.statistics.influence import mean_terms
from stsbench.statistics.intervals import Limits, plain_interval, share_difference_interval, share_interval
from stsbench.statistics.similarity import pair_similarities

Floats = NDArray[np.float64]

PARAPHRASE, CHANGED, GAP, ORDER, TIED = MEASURES = "paraphrase", "changed", "gap", "order", "tied"

_SAME_COSINE = 1e-6
"""Cosines that differ by no more are equal: rounding of vectors in fp32 orders no triple."""

_LABEL = 16
"""Characters of a kind's name in a figure."""


def probed(kinds: Sequence[str], sentences: Sequence[str], paraphrase: Floats, changed: Floats) -> pd.DataFrame:
    """Returns a table of n triples of one model: `kind`, `sentence`, and the values whose means are the measures.

    Args:
        kinds: (n,) kinds of change.
        sentences: (n,) sentences; triples of a kind with the same one are dependent.
        paraphrase: (n,) cosines of the sentences with their paraphrases.
        changed: (n,) cosines of the sentences with their changes.
    """
    gap = paraphrase - changed
    right, tied = (gap > _SAME_COSINE).astype(float), (abs(gap) <= _SAME_COSINE).astype(float)
    values = dict(zip(MEASURES, (paraphrase, changed, gap, right, tied), strict=True))
    return pd.DataFrame({"kind": kinds, "sentence": sentences} | values)


class Probes(Analysis):
    """Probe for meaning: is a sentence closer to its paraphrase than to a version with another meaning?

    Nine kinds of changes, from negation to word order, in a set that comes with stsbench; or HEROS, or your own
    triples. A triple is in the right order if the sentence is closer to the paraphrase, by cosine.

    Returns:
        One row per model, `kind` and `measure`: the mean cosine of the sentence with its `paraphrase` and with its
        `changed` version; their `gap`, paraphrase less changed; `order`, the share of triples in the right order;
        `tied`, the share whose cosines differ by at most 0.000001. `value`, `low` and `high`: Student's t for
        means, Wilson's interval for shares; `items` counts triples. For several models also rows of `gap` and
        `order` `against` the first: the mean difference on the same triples, for shares with Newcombe's interval;
        otherwise `against` is empty. `triples` names the set.

    >>> probe = probes(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], kinds=["negation", "typo"])
    >>> probe.frame["kind"].unique().tolist(), probe.frame["measure"].unique().tolist()
    (['negation', 'typo'], ['paraphrase', 'changed', 'gap', 'order', 'tied'])
    """

    name = "probes"
    title = "Probes of meaning"
    question = "is a paraphrase nearer than a small change of the meaning?"
    look_for = "a gap below 0, or a right order below 50 %: common words count for more than meaning"
    examples = (
        "stsbench explain probes runs/a runs/b --figure probes.svg",
        "stsbench explain probes --model minilm --kinds negation,number --json",
        "stsbench explain probes --model minilm --triples mine.tsv",
    )
    columns = ("model", "against", "kind", "measure", "items", "value", "low", "high", "triples")

    triples: str | Path = parameter(
        "bundled", "`bundled`, `heros`, or a file with columns `kind`, `sentence`, `paraphrase`, `changed`."
    )
    kinds: Sequence[str] = parameter(
        (), "The kinds of changes, with commas; by default all.", example="negation,number"
    )
    intervals: Intervals | None = INTERVALS
    data_dirs = DATA_DIRS

    _read_notes: tuple[str, ...] = ()

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, pd.DataFrame]:
        read = load_triples(self.triples, self.kinds, self.data_dirs)
        self.constants, self._read_notes = {"triples": read.name}, tuple(read.notes)
        texts = [text for row in read.rows for text in (row.sentence, row.paraphrase, row.changed)]
        kinds, sentences = [row.kind for row in read.rows], [row.sentence for row in read.rows]
        models = {}
        for name, subject in subjects.items():
            vectors, rows = vectors_of(subject, texts, self.progress)
            sentence, *others = rows.reshape(-1, 3).T
            paraphrase, changed = (pair_similarities(vectors, sentence, other)["cosine"] for other in others)
            if not (np.abs(1 - np.concatenate([paraphrase, changed])) > _SAME_COSINE).any() or not vectors.any():
                raise UserError(
                    f"{name} gives every sentence of the triples ({read.name}) the same vector: check how the "
                    "model is loaded (--pooling, --template)."
                )
            models[name] = probed(kinds, sentences, paraphrase, changed)
        return models

    def compute(self, inputs: Mapping[str, pd.DataFrame]) -> Self:
        kinds = dict.fromkeys(next(iter(inputs.values()))["kind"])
        rows = [row | self.constants for kind in kinds for row in self._rows(kind, inputs)]
        self._frame = pd.DataFrame(rows, columns=list(self.columns))
        return self

    def measure(self, model: str, given: pd.DataFrame) -> Iterator[Row]:
        for kind in dict.fromkeys(given["kind"]):
            yield from self._rows(kind, {model: given})

    def _rows(self, kind: str, models: Mapping[str, pd.DataFrame]) -> Iterator[Row]:
        """Yields the measures of a kind, and the differences to the first model."""
        first, baseline = "", pd.DataFrame()
        for model, triples in models.items():
            values = triples[triples["kind"] == kind]
            sharing = Sharing.of(np.unique(values["sentence"], return_inverse=True)[1])
            about = {"model": model, "kind": kind, "items": len(values)}
            for measure in MEASURES:
                of_measure = values[measure].to_numpy()
                limits = (self._of_share if measure in {ORDER, TIED} else self._of_mean)(of_measure, sharing)
                yield about | {"against": "", "measure": measure} | _row(of_measure, limits)
            if not first:
                first, baseline = model, values
                continue
            for measure in (GAP, ORDER):
                both = values[measure].to_numpy(), baseline[measure].to_numpy()
                limits = self._of_mean(both[0] - both[1], sharing)
                if measure == ORDER:
                    limits = share_difference_interval(*both, *(self._of_share(of, sharing) for of in both))
                yield about | {"against": first, "measure": measure} | _row(both[0] - both[1], limits)

    def _of_mean(self, values: Floats, sharing: Sharing) -> Limits:
        # Values that differ only by rounding have no spread.
        if self._how.interval is None or values.max() - values.min() <= _SAME_COSINE:
            return Limits(nan, nan, "no spread")
        return plain_interval(float(values.mean()), self._variance(values, sharing), self._how.level)

    def _of_share(self, values: Floats, sharing: Sharing) -> Limits:
        if self._how.interval is None:
            return Limits(nan, nan, "undefined")
        # Wilson's interval is normal, as the share determines its variance.
        spread = replace(self._variance(values, sharing), df=inf)
        sentences = len(values) if self._how.interval == "independent" else sharing.sentences
        return share_interval(float(values.mean()), spread, sentences, self._how.level)

    def _variance(self, values: Floats, sharing: Sharing) -> Variance:
        return variance(mean_terms(values), sharing, self._how.interval or "independent")

    @property
    def _own(self) -> pd.DataFrame:
        return self.frame[self.frame["against"] == ""]

    def table(self) -> Tables:
        own, paired = self._own, self.frame[self.frame["against"] != ""]
        where = f"{self.frame['triples'].iloc[0]} triples"
        caption = f"Mean cosine x 100 to a paraphrase, and to the sentence with its meaning changed: {where}"
        names = [PARAPHRASE, CHANGED, GAP, f"{GAP}: interval", ORDER, f"{ORDER}: interval"]
        heads = {"items": "triples", ORDER: "right order %", f"{ORDER}: interval": "right order: interval"}
        table = _by_kind(own)[["kind", "model", "items", *names]].rename(columns=heads)
        tables = [Table(table, caption, notes=self.notes)]
        if len(paired):
            heads |= {ORDER: "right order, points"}
            table = _by_kind(paired)[["kind", "model", *names[2:]]].rename(columns=heads)
            tables.append(Table(table, f"Differences x 100 to {paired['against'].iloc[0]} on the same triples"))
        return Tables(tables)

    @property
    def notes(self) -> tuple[str, ...]:
        own = self._own[self._own["measure"] == TIED]
        tied = (own["value"] * own["items"]).groupby(own["model"], sort=False).sum()
        return self._read_notes + tuple(
            f"{model}: both cosines are equal in {count:.0f} triples, which count as wrong."
            for model, count in tied.items()
            if count
        )

    def numbers(self) -> dict[str, float]:
        right = self._own[self._own["measure"] == ORDER]
        return {f"{row['kind']}, right order": float(row["value"]) for row in right.to_dict("records")}

    def panels(self) -> Mapping[str, pd.DataFrame]:
        rows = self._own.assign(place=[shortened(kind, _LABEL) for kind in self._own["kind"]])
        order = rows[rows["measure"] == ORDER].copy()
        order[["value", "low", "high"]] *= 100
        return {"right order, %": order, "gap of cosines": rows[rows["measure"] == GAP]}


def _by_kind(rows: pd.DataFrame) -> pd.DataFrame:
    """Returns a row for each kind and model, the models of a kind together."""
    scale = dict.fromkeys((PARAPHRASE, CHANGED, GAP, ORDER, TIED), 100)
    return with_intervals(rows, ["kind", "model", "items"], scale=scale)


def _row(values: Floats, limits: Limits) -> Row:
    return {"value": float(values.mean()), "low": limits.low, "high": limits.high}


probes = Probes.verb
