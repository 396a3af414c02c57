"""Ties: how much does a score depend on the order of tied similarities?"""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from stsbench.analysis.base import OfTasks, Row, similarity_notes
from stsbench.analysis.inputs import Answer, averaged, with_overall
from stsbench.base.words import listed
from stsbench.render.table import Table, Tables
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.ranks import rounded, ties_of

RECORDED = "as recorded"

SIGNIFICANT_BITS = {RECORDED: 53, "fp16": 11, "bf16": 8, "fp8": 4}
"""Significant bits of number formats (fp8 is E4M3)."""

_NUMBERS = ["tied", "score", "expected", "lowest", "highest"]


class Ties(OfTasks):
    """Show how much a score depends on tied similarities.

    The share of pairs with tied similarities, and the lowest and highest Spearman over all ways to break the ties:
    with similarities as recorded, and rounded to fp16, bf16 and fp8.

    Returns:
        One row per model, task (`Avg.` is their mean) and `precision`: the number of `pairs` and of `distinct`
        similarities, the percentage of `tied` pairs, and Spearman x 100: the `score` (tied pairs share their
        average rank), and over all ways to break the ties its mean (`expected`), `lowest` and `highest` value.

    >>> from stsbench import ties
    >>> result = ties(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], tasks=["sample"])
    >>> result.frame["tied"].round(1).tolist()
    [0.8, 97.6, 99.6, 100.0]
    """

    answer = Answer("How many pairs are tied?", ".1f", "%", {"precision": RECORDED}, "tied")

    def measure(self, model: str, given: Sequence[ScoredTask]) -> Iterator[Row]:
        for precision, bits in SIGNIFICANT_BITS.items():
            tasks = {task.task: _of_task(task, bits) for task in given}
            about = {"precision": precision, "similarity": given[0].statistic.similarity}
            yield from (about | {"task": name} | row for name, row in with_overall(tasks, averaged).items())

    def table(self) -> Tables:
        heads = {"tied": "tied pairs %", "score": "Spearman"}
        rows, numbers = self.headline.rename(columns=heads), [heads.get(name, name) for name in _NUMBERS]
        tasks = listed(list(dict.fromkeys(rows["task"])))
        caption = f"Spearman x 100, {tasks}, and over all ways to break ties"
        return Tables([Table(rows[["model", "precision", *numbers]], caption, notes=similarity_notes(self.frame))])

    def panels(self) -> Mapping[str, pd.DataFrame]:
        names = {"precision": "place", "score": "value", "lowest": "low", "highest": "high"}
        return {"Spearman × 100, and its range": self.headline.rename(columns=names)}


def _of_task(task: ScoredTask, bits: int) -> Row:
    codes, similarity = pd.factorize(task.pairs["subset"])[0], rounded(task.similarity, bits)
    ties = ties_of(task.pairs["gold"], similarity, codes, task.statistic.aggregation)
    counts = {"pairs": len(task.pairs), "distinct": ties.distinct}
    return counts | {number: 100 * getattr(ties, number) for number in _NUMBERS}
