"""Ties: how much does a score depend on the order of tied similarities?"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from stsbench.analysis.base import OfTasks, Row, similarity_notes
from stsbench.base.words import listed
from stsbench.records.kinds import AVERAGE
from stsbench.render.table import Table, Tables
from stsbench.scoring.subjects import ScoredTask
from stsbench.statistics.ties import rounded, ties_of

RECORDED = "as recorded"

SIGNIFICANT_BITS = {RECORDED: 53, "fp16": 11, "bf16": 8, "fp8": 4}
"""Significant bits of number formats (fp8 is E4M3)."""

_NUMBERS = ["tied", "score", "expected", "lowest", "highest"]


class Ties(OfTasks):
    """Show how much a score depends on tied similarities.

    The share of pairs with tied similarities, and the lowest and highest Spearman over all ways to break the ties:
    with similarities as recorded, and rounded to fp16, bf16 and fp8.

    Returns:
        One row per model, task (`Avg.` is their mean) and `precision` (`as recorded`, `fp16`, `bf16`, `fp8`), with
        the number of `pairs` and of `distinct` similarities, and the percentage of `tied` pairs. Spearman x 100 is
        the `score` (tied pairs share their average rank), its mean over all ways to break the ties (`expected`),
        and the `lowest` and `highest` of them. `similarity` names the run's own.

    >>> result = ties(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], tasks=["sample"])
    >>> result.frame["tied"].round(1).tolist()
    [0.8, 97.6, 99.6, 100.0]
    """

    name = "ties"
    title = "Ties"
    question = "how much of a score is how ties are broken?"
    look_for = "a range as wide as the differences you compare; many ties although nothing was compressed"
    examples = (
        "stsbench explain ties runs/minilm-avg-sts",
        "stsbench explain ties runs/a runs/b --tasks STS-B --figure ties.svg",
    )

    def measure(self, model: str, given: Sequence[ScoredTask]) -> Iterator[Row]:
        similarity = given[0].statistic.similarity
        for precision, bits in SIGNIFICANT_BITS.items():
            rows: list[Row] = []
            for task in given:
                codes = pd.factorize(task.pairs["subset"])[0]
                of_task = ties_of(
                    task.pairs["gold"], rounded(task.similarity, bits), codes, task.statistic.aggregation
                )
                counts = {"task": task.task, "pairs": len(task.pairs), "distinct": of_task.distinct}
                rows.append(counts | {number: 100 * getattr(of_task, number) for number in _NUMBERS})
            if len(rows) > 1:
                sums = {count: sum(row[count] for row in rows) for count in ("pairs", "distinct")}
                means = {number: float(np.mean([row[number] for row in rows])) for number in _NUMBERS}
                rows.append({"task": AVERAGE} | sums | means)
            for row in rows:
                yield {"precision": precision, "similarity": similarity} | row

    def table(self) -> Tables:
        frame, heads = self.frame, {"tied": "tied pairs %", "score": "Spearman"}
        over_tasks = self.headline
        caption = (
            f"Spearman x 100, {listed(list(dict.fromkeys(over_tasks['task'])))}, and over all ways to break ties"
        )
        rows = over_tasks[["model", "precision", *_NUMBERS]].rename(columns=heads)
        tables = [Table(rows, caption, notes=similarity_notes(frame))]
        if frame["task"].nunique() > 1:
            by_task = frame[(frame["precision"] == RECORDED) & (frame["task"] != AVERAGE)]
            columns = by_task[["model", "task", "pairs", "distinct", *_NUMBERS]].rename(columns=heads)
            tables.append(Table(columns, "Each task, with the similarities as recorded"))
        return Tables(tables)

    def numbers(self) -> dict[str, float]:
        rows = self.headline.to_dict("records")
        shares = {f"tied pairs %, {row['precision']}": float(row["tied"]) for row in rows}
        return shares | {f"range, {row['precision']}": float(row["highest"] - row["lowest"]) for row in rows}

    def panels(self) -> Mapping[str, pd.DataFrame]:
        names = {"precision": "place", "score": "value", "lowest": "low", "highest": "high"}
        return {"Spearman × 100, and its range": self.headline.rename(columns=names)}


ties = Ties.verb
