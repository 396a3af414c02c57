"""What was measured: one table for each kind of task, every interval, every subset."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stsbench.records import RunRecord
from stsbench.records.table import Row, sts_rows, supervised_rows, transfer_rows
from stsbench.reports.page import ReportTable, Section

if TYPE_CHECKING:
    import pandas as pd

Runs = Mapping[str, RunRecord]
"""Records by the names that the report gives them."""

_KINDS = {
    "sts": ("STS tasks", sts_rows, None),
    "transfer": ("Transfer tasks: accuracy on test, in percent", transfer_rows, "acc"),
    "transfer-dev": ("Transfer tasks: accuracy on dev, in percent (as MoCoSE prints it)", transfer_rows, "devacc"),
    "supervised": ("Relatedness tasks with a trained regressor: Pearson x 100", supervised_rows, "pearson"),
}


def scores(runs: Runs) -> Section:
    """Return the scores of all runs, one row each; an interval is told when a reader points at its score."""
    tables = [table for name in _KINDS if (table := _wide(runs, name)) is not None]
    text = (
        "Scores are x 100. Point at a score, or move to it with the keyboard, for its 95 % interval "
        "(bootstrap over pairs or items)."
    )
    intervals = any(table.hints for table in tables)
    return Section("scores", "Scores", (text,) if intervals else ("Scores are x 100.",), tuple(tables))


def intervals(runs: Runs) -> Section:
    """Return every score that has an interval, with its limits."""
    import pandas as pd

    rows = [
        {"model": label, **{key: row[key] for key in ("task", "metric", "pairs", "score", "low", "high")}}
        for label, row in _rows(runs)
        if not row["subset"] and row["low"] == row["low"]
    ]
    frame = pd.DataFrame(rows)
    if frame.empty:
        return Section("intervals", "Intervals")
    frame = frame.rename(columns={"pairs": "pairs or items"})
    levels = sorted({record.protocol.level for record in runs.values()})
    told = " or ".join(f"{100 * level:g} %" for level in levels)
    text = f"Percentile bootstrap intervals at {told}: how far the score carries to other pairs of the same kind."
    return Section("intervals", "Intervals", (text,), (ReportTable("intervals", "Scores and limits", frame),))


def subsets(runs: Runs) -> Section:
    """Return the scores of every subset of the STS tasks, a column for each run."""
    import pandas as pd

    rows: dict[tuple[Any, ...], dict[str, float]] = {}
    for label, row in _rows(runs):
        if row["subset"]:
            key = (row["task"], row["subset"], row["metric"], row["pairs"])
            rows.setdefault(key, {})[label] = row["score"]
    if not rows:
        return Section("subsets", "Subsets")
    keys = ("task", "subset", "metric", "pairs")
    frame = pd.DataFrame([dict(zip(keys, key, strict=True)) | scores for key, scores in rows.items()])
    return Section("subsets", "Subsets", (), (ReportTable("subsets", "Each subset of the STS tasks", frame),))


def _wide(runs: Runs, kind: str) -> ReportTable | None:
    import pandas as pd

    caption, rows_of, metric = _KINDS[kind]
    found, hints, metrics = [], {}, []
    for label, record in runs.items():
        own = [row for row in rows_of(record) if not row["subset"] and metric in {None, row["metric"]}]
        if not own:
            continue
        for row in own:
            if row["low"] == row["low"]:
                hints[len(found), row["task"]] = interval_text(row["low"], row["high"], record.protocol.level)
        metrics += [record.protocol.metric] if kind == "sts" else []
        found.append({"model": label} | {row["task"]: row["score"] for row in own})
    if not found:
        return None
    if kind == "sts":
        caption = f"{caption}: {' or '.join(dict.fromkeys(metrics)).capitalize()} correlation x 100"
    return ReportTable(f"scores-{kind}", caption, _averages_last(pd.DataFrame(found)), hints=hints)


def interval_text(low: float, high: float, level: float) -> str:
    """Return an interval in words.

    >>> interval_text(70.4, 74.36, 0.95)
    '95 % interval 70.40 to 74.36'
    """
    return f"{100 * level:g} % interval {low:.2f} to {high:.2f}"


def _averages_last(frame: "pd.DataFrame") -> "pd.DataFrame":
    # A run with more tasks than the first brings columns that come after the first's average.
    averages = [column for column in frame if str(column).startswith("Avg.")]
    return frame[[column for column in frame if column not in averages] + averages]


def _rows(runs: Runs) -> Iterator[tuple[str, Row]]:
    for label, record in runs.items():
        for row in (*sts_rows(record), *transfer_rows(record), *supervised_rows(record)):
            yield label, row
