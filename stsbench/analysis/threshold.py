"""Threshold: which cutoff separates matches from other pairs at a rate that you choose?"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench.analysis import cutoffs
from stsbench.analysis.base import OfTasks, Row, similarity_notes
from stsbench.analysis.cutoffs import FALSE, RATES, TARGETS, LabelledPairs
from stsbench.analysis.inputs import INTERVALS, Answer, analysable, parameter, with_overall
from stsbench.base.errors import UserError
from stsbench.cli.options import DATA, LARGEST
from stsbench.data.benchmarks import labelled_pairs
from stsbench.data.catalogue import data_sets
from stsbench.data.tables import load_pairs
from stsbench.records.kinds import ALL_TASKS
from stsbench.records.record import RunRecord
from stsbench.records.store import load_run
from stsbench.render.table import Table, Tables, note_of, with_intervals
from stsbench.scoring.measure import evaluate
from stsbench.scoring.settings import AVERAGE_PRECISION, Intervals, choose_protocol
from stsbench.scoring.subjects import RecordedModel, ScoredTask, Subject, scored_tasks
from stsbench.scoring.tasks import canonical
from stsbench.statistics.correlations import CORRELATIONS

CUTOFF, PROBABILITY = "cutoff", "probability"
FITTED, CARRIED, KEPT = "fitted", "carried", "kept"

_RATE: dict[str, Any] = {"kind": float, "limits": (0, 1)}
_NUMBER: dict[str, Any] = {"kind": float, "limits": (-LARGEST, LARGEST)}


class Threshold(OfTasks):
    """Find the cutoff of the similarity that meets a target on new pairs with 90 % confidence.

    A match has a gold score in the top fifth of the scale (`--positive`). The figure shows how likely one is.

    Returns:
        One row per model, task (and `all tasks`), measure and group, with `value`, `low` and `high`. Group
        `fitted`: the `cutoff` (NaN if none meets the `target`), and on other pairs the rate of `false matches`
        among non-matches, `precision`, `recall`, the share `matched` and `balanced accuracy`. With `carry` also
        `carried` (as many false matches as in `origin`) and `kept`. Groups of `probability` are similarities.

    >>> from stsbench import threshold
    >>> cut = threshold(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], tasks=["sample"])
    >>> cut.frame.loc[cut.frame["measure"] == "cutoff", "value"].round(3).tolist()
    [1.0]
    """

    answer = Answer("Which similarity means a match?", rows={"measure": CUTOFF, "group": FITTED})
    place_label = "similarity"
    examples = (
        "stsbench explain threshold runs/new --carry 0.70 --from runs/old --max-false-match 0.01",
        "stsbench explain threshold runs/new --data pairs.tsv --positive 0.5 --min-recall 0.9",
    )

    data: Sequence[str | Path] = parameter(
        (), "Your own pairs, with labels or gold scores. Repeatable.", flags=("--data",), kind=Path, panel=DATA
    )
    max_false_match: float | None = parameter(None, "The largest rate of false matches; by default 0.05.", **_RATE)
    min_precision: float | None = parameter(None, "The smallest share of matches above the cutoff.", **_RATE)
    min_recall: float | None = parameter(None, "The smallest share of the matches that are found.", **_RATE)
    positive: float | None = parameter(None, "The smallest gold score of a match.", **_NUMBER)
    carry: float | None = parameter(None, "A cutoff of the run in --from, to translate to this model.", **_NUMBER)
    origin: str | Path | None = parameter(None, "The run that has the cutoff.", flags=("--from",), kind=Path)
    intervals = INTERVALS
    statistics = (*CORRELATIONS, AVERAGE_PRECISION)

    @property
    def goal(self) -> tuple[str, float]:
        """The target and its rate; a UserError if several are given."""
        rates = zip(TARGETS, (self.max_false_match, self.min_precision, self.min_recall), strict=True)
        chosen = [(target, rate) for target, rate in rates if rate is not None] or [(FALSE, 0.05)]
        if len(chosen) > 1:
            raise UserError("give one of --max-false-match, --min-precision and --min-recall.")
        return chosen[0]

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Sequence[LabelledPairs]]:
        if (self.carry is None) != (self.origin is None):
            raise UserError("give --carry and --from together: a cutoff and its run.")
        target, rate = self.goal
        self.constants = {"target": f"{target} {'<=' if target == FALSE else '>='} {rate:g}"}
        origin = self.origin if isinstance(self.origin, RunRecord | None) else load_run(self.origin)
        items = analysable(origin).items() if origin else ()
        self._origin = {of.name: of for item in items for of in self._pairs(*item)}
        return {name: self._pairs(name, subject) for name, subject in subjects.items()}

    def _pairs(self, name: str, subject: Subject) -> list[LabelledPairs]:
        parts = {task.task: LabelledPairs.of(task, self.positive) for task in self.scored(name, subject)[1]}
        return list(with_overall(parts, partial(LabelledPairs.join, ALL_TASKS), ALL_TASKS).values())

    def scored(self, name: str, subject: Subject) -> tuple[RunRecord, list[ScoredTask]]:
        """Returns scored tasks; the model of a run measures labelled pairs and files that the run lacks."""
        kinds = {task: getattr(data_sets().get(canonical(task)), "kind", "") for task in self.tasks}
        labelled = [task for task, kind in kinds.items() if kind == "labelled"]
        run = subject if isinstance(subject, RunRecord) else None
        known = {score.data.sha256 for score in run.scores} if run else set()
        own = self.read_once(lambda: list(map(load_pairs, self.data)), "own", self.data)
        if not labelled and all(pairs.sha256 in known for pairs in own):
            return super().scored(name, subject)
        sets: list[Any] = [*own, *(task for task in self.tasks if task not in labelled)]
        sets += [labelled_pairs(task, list(map(Path, self.data_dirs))) for task in labelled]
        model: Any = RecordedModel(run.model) if run else subject
        how = choose_protocol(similarity=run.protocol.similarity if run else None)
        options: dict[str, Any] = {"data_dirs": self.data_dirs, "progress": self.progress}
        return scored_tasks(name, evaluate(model, sets, protocol=how, intervals=Intervals(None), **options))

    def measure(self, model: str, given: Sequence[LabelledPairs]) -> Iterator[Row]:
        estimates, how = self.estimates, self.estimates.intervals
        goal, level = (*self.goal, how.interval or "dyadic"), None if how.interval is None else how.level
        for pairs in given:
            estimates.block(pairs.name, pairs.sharing)
            about = {"task": pairs.name, "pairs": len(pairs.matches), "matches": int(pairs.matches.sum())}
            about["similarity"] = pairs.kind
            groups = {FITTED: {"value": cutoffs.cutoff_of(pairs, *goal)}}
            if self.carry is not None:
                carried = cutoffs.carried_cutoff(pairs, self._origin.get(pairs.name), self.carry, estimates)
                groups |= {CARRIED: carried, KEPT: {"value": self.carry}}
            for group, cutoff in groups.items():
                yield about | {"group": group, "measure": CUTOFF} | cutoff
                is_fitted, value = group == FITTED, cutoff["value"]
                matched = cutoffs.cross_fitted(pairs, *goal) if is_fitted else pairs.similarity >= value
                rates = cutoffs.rates_of(pairs, None if isnan(value) else matched)
                for measure, rate in rates.items():
                    yield about | {"group": group, "measure": measure} | estimates.limits(*rate, share=True)
            yield from (about | {"measure": PROBABILITY} | row for row in cutoffs.match_probability(pairs, level))

    def table(self) -> Tables:
        rows = self.frame[self.frame["measure"] != PROBABILITY]
        hidden = ["group", f"{CUTOFF}: interval"] if self.carry is None else []
        hidden += [f"{name}: interval" for name in RATES[4:]]
        table = with_intervals(rows, ["model", "task", "group"], digits=3).drop(columns=hidden)
        caption = f"The cutoff for {self.constants['target']}, and its rates"
        return Tables([Table(table, caption, 3, notes=self.notes)])

    @property
    def notes(self) -> tuple[str, ...]:
        rows = self.frame[(self.frame["group"] == FITTED) & (self.frame["measure"] == FALSE)]
        tasks = rows[rows["value"].isna()].groupby("model", sort=False)["task"].agg(", ".join)
        none = note_of("No cutoff separates the pairs, or four fifths of them, at this rate", tasks)
        about = "A fitted cutoff meets its target on new pairs with 90 % confidence; its rates are on other pairs."
        return (about, *none, *similarity_notes(self.frame))

    def panels(self) -> Mapping[str, pd.DataFrame]:
        rows = self.headline[self.headline["measure"] == PROBABILITY].sort_values("group", key=pd.to_numeric)
        return {"probability of a match": rows.assign(place=rows["group"])}
