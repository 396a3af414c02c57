"""The scores of a report: tables by kind of task, intervals, subsets, commands to repeat them."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from stsbench.records.kinds import KINDS, Kind
from stsbench.records.labels import interval_remarks, task_labels
from stsbench.records.parts import ModelPart, redact
from stsbench.records.record import RunRecord
from stsbench.records.scores import Row, across_models, column_of, headline_rows, rows_of_kind, score_rows
from stsbench.records.signature import Signature
from stsbench.render.formats import unique_labels
from stsbench.render.page import Section
from stsbench.render.table import Table

Runs = Mapping[str, RunRecord]
"""Records by their labels in the report."""

_HASHES = ("weights_sha256", "tokenizer_sha256", "config_sha256")


def scores(runs: Runs) -> Section:
    """Returns the scores of all runs, one row each, with intervals as tooltips."""
    tables = [
        table
        for kind in KINDS.values()
        for below in dict.fromkeys(("", kind.below))
        for table in _tables(runs, kind, below)
    ]
    hint = " Point at a score for its interval." if any(table.hints for table in tables) else ""
    return Section("scores", "Scores", (f"Scores are x 100.{hint}",), tuple(tables))


def intervals(runs: Runs) -> Section:
    """Returns every score that has an interval, with its limits."""
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
    text = tuple(f"{remark[0].upper()}{remark[1:]}." for remark in interval_remarks(list(runs.items())))
    return Section("intervals", "Intervals", text, (Table(frame, "Scores and limits", name="every-interval"),))


def subsets(runs: Runs) -> Section:
    """Returns the scores of every subset, a column for each run."""
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
    """Returns a name for each task, by run and its label there; the same task on other data has another name."""
    task_of = {
        (label, name): (name, Signature.parse(score.signature).protocol)
        for label, record in runs.items()
        for name, score in zip(task_labels(record.scores), record.scores, strict=True)
    }
    distinct = list(dict.fromkeys(task_of.values()))
    called = dict(zip(distinct, unique_labels([name for name, _ in distinct]), strict=True))
    return {key: called[task] for key, task in task_of.items()}


def _tables(runs: Runs, kind: Kind, below: str) -> Iterator[Table]:
    """Yields a table for each group of runs with the same tasks and protocol, whose scores are comparable."""
    groups: dict[tuple[str, ...], dict[str, list[Row]]] = {}
    for label, record in runs.items():
        rows = rows_of_kind(record, kind.name)
        of_table = [row for row in rows if row["metric"] == below] if below else headline_rows(record, kind.name)
        task_rows = [row for row in of_table if not row["subset"]]
        if task_rows:
            # Averages and dev scores have no signature; the other rows determine them.
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
    """Returns an interval in words.

    >>> interval_text(70.4, 74.36, 0.95)
    '95 % interval 70.40 to 74.36'
    """
    return f"{100 * level:g} % interval {low:.2f} to {high:.2f}"


def reproducibility(runs: Runs) -> Section:
    """Returns signatures, hashes, environments, and the commands that repeat each number."""
    tables = [
        Table(_models(runs), "Models, their settings and hashes", name="models"),
        Table(pd.DataFrame(_signatures(runs)), "Signatures", name="signatures"),
        Table(pd.DataFrame(_data(runs)), "Data files", name="data"),
        Table(_environments(runs), "Environments", name="environment"),
    ]
    text = "Two scores are comparable only if their signatures agree before the double bar."
    notes = [f"{label}: {note}" for label, record in runs.items() for note in record.notes]
    return Section(
        "reproducibility",
        "Reproducibility",
        (text,),
        tuple(table for table in tables if len(table.frame)),
        points=tuple(notes),
        parts=(Section("commands", "Commands that repeat the numbers", commands=_commands(runs)),),
    )


def _settings(model: ModelPart) -> dict[str, object]:
    # `postprocessing` has the whitening.
    use = {name: value for name, value in vars(model.use).items() if name != "whiten"}
    hashes = {name: getattr(model, name) for name in _HASHES}
    return {
        "kind": model.kind,
        **use,
        "normalize": model.normalize,
        "postprocessing": model.postprocessing,
        **hashes,
    }


def _models(runs: Runs) -> pd.DataFrame:
    """Returns a row per run, without empty columns."""
    rows = [
        {"model": label, **{name: str(value) for name, value in _settings(run.model).items() if value}}
        for label, run in runs.items()
    ]
    return pd.DataFrame(rows, dtype=object)


def _signatures(runs: Runs) -> list[dict[str, str]]:
    return [
        {"model": label, "task": part.task, "signature": part.signature}
        for label, record in runs.items()
        for part in record.scores
    ]


def _data(runs: Runs) -> list[dict[str, str]]:
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for record in runs.values():
        for part in record.scores:
            for file in part.data.files:
                key = (part.task, file.name, file.sha256)
                rows[key] = {
                    "task": part.task,
                    "text": part.text,
                    "file": redact(file.name),
                    "status": part.data.status,
                    "SHA-256": file.sha256,
                }
    return list(rows.values())


def _environments(runs: Runs) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for label, record in runs.items():
        environment = record.environment
        row: dict[str, Any] = {"model": label, "date": record.created, "stsbench": record.stsbench}
        row |= {name: str(value) for name, value in environment.items() if name != "packages"}
        row |= {str(name): str(of) for name, of in environment.get("packages", {}).items()}
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def _commands(runs: Runs) -> tuple[str, ...]:
    recorded = [record.command for record in runs.values() if record.command]
    folders = [shlex.quote(redact(str(run.folder))) for run in runs.values() if run.folder is not None]
    checks = [f"stsbench check {folder}" for folder in folders]
    more = [f"stsbench explain {' '.join(folders)}", f"stsbench report {' '.join(folders)}"] if folders else []
    return tuple(dict.fromkeys([*recorded, *checks, *more]))
