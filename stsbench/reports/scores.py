"""What was measured: one table for each kind of task, every interval, every subset, and what tasks share."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.data.shared import FOLDED, unordered_pairs
from stsbench.records.kinds import KINDS, Kind
from stsbench.records.labels import interval_remarks, task_labels
from stsbench.records.record import RunRecord
from stsbench.records.scores import Row, across_models, column_of, headline_rows, rows_of_kind, score_rows
from stsbench.records.signature import Signature
from stsbench.render.cells import unique_labels
from stsbench.render.section import Section
from stsbench.render.table import Table
from stsbench.reports.pictures import pictures

Runs = Mapping[str, RunRecord]
"""Records by the names that the report gives them."""

MOST_DRAWN = 5
"""Of more runs there are no small pictures."""


def scores(runs: Runs) -> Section:
    """Return the scores of all runs, one row each; a score's interval shows when a reader points at it."""
    tables = [
        table
        for kind in KINDS.values()
        for below in dict.fromkeys(("", kind.below))
        for table in _tables(runs, kind, below)
    ]
    text = ["Scores are x 100."]
    if any(table.hints for table in tables):
        text[0] += f" Point at a score, or move to it with the keyboard, for its {_levels(runs)} interval."
    return Section("scores", "Scores", tuple(text), tuple(tables))


def intervals(runs: Runs) -> Section:
    """Return every score that has an interval, with its limits, and a small picture of each STS task's pairs."""
    rows = [
        {"model": label, **{key: row[key] for key in ("task", "metric", "items", "score", "low", "high")}}
        for label, record in runs.items()
        for row in score_rows(record)
        if not row["subset"] and row["low"] == row["low"]
    ]
    frame = pd.DataFrame(rows)
    if frame.empty:
        return Section("intervals", "Intervals")
    frame = frame.rename(columns={"items": "pairs or items"})
    drawn = {
        (label, task): picture
        for number, (label, record) in enumerate(runs.items() if len(runs) <= MOST_DRAWN else (), 1)
        for task, picture in pictures(record, f"pairs-{number}").items()
    }
    # A task's picture stands beside its headline, which is its first row.
    keys = list(zip(frame["model"], frame["task"], strict=True))
    beside = {keys.index(key): picture for key, picture in drawn.items() if key in keys}
    text = tuple(f"{remark[0].upper()}{remark[1:]}." for remark in interval_remarks(list(runs.items())))
    return Section(
        "intervals",
        "Intervals",
        text,
        (Table(frame, "Scores and limits", name="every-interval", pictures=beside),),
    )


def subsets(runs: Runs) -> Section:
    """Return the scores of every subset, a column for each run."""
    called = task_names(runs)
    wide = across_models(
        (label, row | {"task": called[label, row["task"]]})
        for label, record in runs.items()
        for row in score_rows(record)
        if row["subset"]
    )
    table = Table(wide, "Each subset of the STS tasks", name="every-subset")
    return Section("subsets", "Subsets", tables=() if wide.empty else (table,))


def task_names(runs: Runs) -> dict[tuple[str, str], str]:
    """Return what to call each run's tasks, by the run and its own label: on other data it is another task."""
    task_of = {
        (label, name): (name, Signature.parse(score.signature).protocol)
        for label, record in runs.items()
        for name, score in zip(task_labels(record.scores), record.scores, strict=True)
    }
    distinct = list(dict.fromkeys(task_of.values()))
    called = dict(zip(distinct, unique_labels([name for name, _ in distinct]), strict=True))
    return {key: called[task] for key, task in task_of.items()}


def _levels(runs: Runs) -> str:
    return " or ".join(f"{100 * level:g} %" for level in sorted({run.protocol.level for run in runs.values()}))


def _tables(runs: Runs, kind: Kind, below: str) -> Iterator[Table]:
    """Yield a table for all runs that were measured on the same tasks by the same protocol: they alone compare."""
    groups: dict[tuple[str, ...], dict[str, list[Row]]] = {}
    for label, record in runs.items():
        rows = rows_of_kind(record, kind.name)
        of_table = [row for row in rows if row["metric"] == below] if below else headline_rows(record, kind.name)
        task_rows = [row for row in of_table if not row["subset"]]
        if task_rows:
            # Rows without a signature (averages, the dev scores) are fixed by those that have one.
            protocols = (Signature.parse(row["signature"]).protocol for row in rows if row["signature"])
            groups.setdefault(tuple(protocols), {})[label] = task_rows
    for number, group in enumerate(groups.values(), 1):
        caption = (kind.below_caption if below else kind.caption).format(_metric(group))
        heading = f"{caption} (protocol {number})" if len(groups) > 1 else caption
        name = f"scores-{kind.name}-dev" if below else f"scores-{kind.name}"
        name = name if number == 1 else f"{name}-{number}"
        yield _wide(name, heading, group, {label: runs[label].protocol.level for label in group})


def _wide(name: str, caption: str, group: Mapping[str, Sequence[Row]], levels: Mapping[str, float]) -> Table:
    rows = [
        {"model": label, **{column_of(row): row["score"] for row in of_run}} for label, of_run in group.items()
    ]
    hints = {
        (place, column_of(row)): interval_text(row["low"], row["high"], levels[label])
        for place, (label, of_run) in enumerate(group.items())
        for row in of_run
        if row["low"] == row["low"]
    }
    return Table(pd.DataFrame(rows, dtype=object), caption, name=name, hints=hints)


def _metric(group: Mapping[str, Sequence[Row]]) -> str:
    return str(next(iter(group.values()))[0]["metric"]).capitalize()


def interval_text(low: float, high: float, level: float) -> str:
    """Return an interval in words.

    >>> interval_text(70.4, 74.36, 0.95)
    '95 % interval 70.40 to 74.36'
    """
    return f"{100 * level:g} % interval {low:.2f} to {high:.2f}"


_SHARED = (
    "Distinct pairs and sentences that both tasks have, by letters and digits, in either order; %: of the "
    "distinct pairs of each. An average over both counts them twice: stsbench run --exclude-overlap counts each "
    "pair once."
)


def shared_sentences(runs: Runs) -> Section:
    """Return a row for each two tasks of a record that share pairs, from the items tables that are there.

    A record without an items table has no rows: its scores stand elsewhere.
    """
    called = task_names(runs)
    rows: dict[tuple[str, str], dict[str, object]] = {}
    seen: set[tuple[str, ...]] = set()
    for label, record in runs.items():
        tasks = tuple(called[label, name] for name in task_labels(record.scores))
        # Tasks that are called alike are of the same pairs.
        if tasks in seen or (shared := _shared_pairs(record)) is None:
            continue
        seen.add(tasks)
        for first, second, counts in shared:
            a, b = called[label, first], called[label, second]
            rows.setdefault((a, b), {"a": a, "b": b} | counts)
    frame = pd.DataFrame(list(rows.values()))
    table = Table(frame, "Pairs that stand in two tasks", decimals=1, name="shared-pairs", notes=(_SHARED,))
    return Section("shared", "Shared sentences", tables=(table,) if rows else ())


def _shared_pairs(record: RunRecord) -> list[tuple[str, str, dict[str, object]]] | None:
    """Return what each two tasks of a record share; None if it has one task alone, or its items are not there."""
    if len(record.scores) < 2 or record.is_imported:
        return None
    try:
        rows = record.rows_by_score()
    except UserError:
        return None
    by_key = {
        key: set(unordered_pairs(*(of_task[name].to_numpy() for name in FOLDED))) for key, of_task in rows.items()
    }
    compared = [score for score in record.scores if score.about.by_similarity and not score.training]
    labels = dict(zip(task_labels(compared), compared, strict=True))
    sets = {label: by_key[score.key] for label, score in labels.items()}
    shared: list[tuple[str, str, dict[str, object]]] = []
    for a, b in combinations(sets, 2):
        pairs = sets[a] & sets[b]
        # One task in two texts, or a part of it in another split, is no overlap of tasks.
        if not pairs or labels[a].task == labels[b].task:
            continue
        sentences = set(chain(*sets[a])) & set(chain(*sets[b]))
        shares = {"% of a": 100 * len(pairs) / len(sets[a]), "% of b": 100 * len(pairs) / len(sets[b])}
        shared.append((a, b, {"pairs": len(pairs), "sentences": len(sentences), **shares}))
    return shared
