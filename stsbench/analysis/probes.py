"""Probes: is a sentence nearer to a paraphrase than to itself with its meaning changed? (Chiang et al. 2023)"""

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd

from stsbench.analysis.base import Analysis, Row
from stsbench.analysis.inputs import INTERVALS, Answer, parameter, triple_cosines
from stsbench.base.errors import UserError
from stsbench.data.corpus import load_triples
from stsbench.render.figures import shortened
from stsbench.render.table import Table, Tables, note_of, scaled, with_intervals
from stsbench.scoring.subjects import Subject
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.influence import Floats, Linear, mean_terms
from stsbench.statistics.intervals import Limits, share_difference_interval

PARAPHRASE, CHANGED, GAP, ORDER, TIED = MEASURES = "paraphrase", "changed", "gap", "order", "tied"

_SAME_COSINE = 1e-6  # Cosines that differ by no more are equal: rounding of vectors in fp32 orders no triple
_LABEL = 16  # Characters of a kind's name in a figure


def probed(kinds: Sequence[str], sentences: Sequence[str], paraphrase: Floats, changed: Floats) -> pd.DataFrame:
    """Returns a row for each of n triples: `kind`, `sentence`, and the values whose means are the measures.

    Triples of a kind with the same sentence are dependent; `paraphrase` and `changed` are its cosines.
    """
    gap = paraphrase - changed
    right, tied = (gap > _SAME_COSINE).astype(float), (abs(gap) <= _SAME_COSINE).astype(float)
    values = dict(zip(MEASURES, (paraphrase, changed, gap, right, tied), strict=True))
    return pd.DataFrame({"kind": kinds, "sentence": sentences} | values)


class Probes(Analysis):
    """Probe for meaning: is a sentence closer to its paraphrase than to a version with another meaning?

    Nine kinds of changes, from negation to word order, in a set that comes with stsbench; or your own triples.
    A triple is in the right order if the sentence is closer to the paraphrase, by cosine.

    Returns:
        One row per model, `kind` and `measure`, with `value`, `low` and `high`: the mean cosine of the sentence
        with its `paraphrase` and its `changed` version; their `gap`; `order`, the share of triples in the right
        order; `tied`, the share whose cosines differ by at most 0.000001. For several models also rows of `gap`
        and `order` `against` the first, on the same triples. `items` counts triples, `triples` names the set.

    >>> from stsbench import probes
    >>> probe = probes(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], kinds=["negation", "typo"])
    >>> probe.frame["kind"].unique().tolist(), probe.frame["measure"].unique().tolist()
    (['negation', 'typo'], ['paraphrase', 'changed', 'gap', 'order', 'tied'])
    """

    answer = Answer("How often is a paraphrase closer?", ".0%", rows={"against": "", "measure": ORDER})
    title = "Probes of meaning"
    fewest = 1

    triples: str | Path = parameter(
        "bundled", "`bundled`, or a file with columns `kind`, `sentence`, `paraphrase`, `changed`."
    )
    kinds: Sequence[str] = parameter(
        (), "The kinds of changes, with commas; by default all.", example="negation,number"
    )
    intervals = INTERVALS

    _read_notes: tuple[str, ...] = ()

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, pd.DataFrame]:
        read = load_triples(self.triples, self.kinds)
        self.constants, self._read_notes = {"triples": read.name}, tuple(read.notes)
        triples = [(row.sentence, row.paraphrase, row.changed) for row in read.rows]
        models = {}
        for name, subject in subjects.items():
            cosines = triple_cosines(subject, triples, self.progress)
            if not np.any(cosines) or (np.abs(1 - np.array(cosines)) <= _SAME_COSINE).all():
                raise UserError(
                    f"{name} gives every sentence of the triples ({read.name}) the same vector: check how the "
                    "model is loaded (--pooling, --template)."
                )
            models[name] = probed([row.kind for row in read.rows], [row.sentence for row in read.rows], *cosines)
        return models

    def compute(self, inputs: Mapping[str, pd.DataFrame]) -> Self:
        self._first = next(iter(inputs.items()))
        super().compute(inputs)
        kinds = pd.factorize(self._frame["kind"])[0]
        self._frame = self._frame.iloc[np.argsort(kinds, kind="stable")].reset_index(drop=True)
        return self

    def measure(self, model: str, given: pd.DataFrame) -> Iterator[Row]:
        first, baseline = self._first
        for kind, triples in given.groupby("kind", sort=False):
            self.estimates.block("", Sharing.of(triples["sentence"].to_numpy(str)))
            limits = {name: self._limits(name, triples[name].to_numpy()) for name in MEASURES}
            about = {"kind": kind, "items": len(triples)}
            yield from (about | {"against": "", "measure": name} | limits[name] for name in MEASURES)
            if model == first:
                continue
            others = baseline[baseline["kind"] == kind]
            for name in (GAP, ORDER):
                both = triples[name].to_numpy(), others[name].to_numpy()
                row = self._limits(GAP, both[0] - both[1])
                if name == ORDER:
                    wilson = limits[name], self._limits(name, both[1])
                    ends = (Limits(of["low"], of["high"]) for of in wilson)
                    row["low"], row["high"], _ = share_difference_interval(*both, *ends)
                yield about | {"against": first, "measure": name} | row

    def _limits(self, measure: str, values: Floats) -> dict[str, float]:
        estimate, is_share = Linear(float(values.mean()), {"": mean_terms(values)}), measure in {ORDER, TIED}
        if not is_share and np.ptp(values) <= _SAME_COSINE:  # only rounding
            return {"value": estimate.value, "low": nan, "high": nan}
        is_independent = self.estimates.intervals.interval == "independent"
        items = len(values) if is_independent else self.estimates.sharing["",].sentences
        # Wilson's interval uses the normal distribution, because the share determines its variance.
        return self.estimates.limits(estimate, items, share=is_share, normal=is_share)

    def table(self) -> Tables:
        is_single = self.frame["against"] == ""
        where = f"{self.frame['triples'].iloc[0]} triples"
        caption = f"Mean cosine x 100 to a paraphrase, and to the sentence with its meaning changed: {where}"
        differences = [GAP, f"{GAP}: interval", ORDER, f"{ORDER}: interval"]
        heads = {"items": "triples", ORDER: "right order %", f"{ORDER}: interval": "right order: interval"}
        table = _by_kind(self.frame[is_single])[["kind", "model", "items", PARAPHRASE, CHANGED, *differences]]
        tables = [Table(table.rename(columns=heads), caption, notes=self.notes)]
        if len(paired := self.frame[~is_single]):
            table = _by_kind(paired)[["kind", "model", *differences]]
            caption = f"Differences x 100 to {paired['against'].iloc[0]} on the same triples"
            tables.append(Table(table.rename(columns=heads | {ORDER: "right order, points"}), caption))
        return Tables(tables)

    @property
    def notes(self) -> tuple[str, ...]:
        rows = self.frame[self.frame["measure"] == TIED]
        tied = (rows["value"] * rows["items"]).groupby(rows["model"], sort=False).sum()
        counts = tied[tied > 0].round().astype(int)
        return self._read_notes + note_of("Triples with two equal cosines, which count as wrong", counts)

    def panels(self) -> Mapping[str, pd.DataFrame]:
        rows = self.frame[self.frame["against"] == ""]
        rows = rows.assign(place=[shortened(kind, _LABEL) for kind in rows["kind"]])
        gaps = rows[rows["measure"] == GAP]
        return {"right order, %": scaled(rows[rows["measure"] == ORDER]), "gap of cosines": gaps}


def _by_kind(rows: pd.DataFrame) -> pd.DataFrame:
    return with_intervals(rows, ["kind", "model", "items"], scale=dict.fromkeys(MEASURES, 100))
