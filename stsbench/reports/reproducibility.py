"""What fixes each number, and how to get it again."""

import shlex
from collections.abc import Callable
from typing import Any

import pandas as pd

from stsbench.records.parts import ModelPart
from stsbench.records.provenance import redact
from stsbench.render.section import Section
from stsbench.render.table import Table
from stsbench.reports.scores import Runs

_HASHES = ("weights_sha256", "tokenizer_sha256", "config_sha256")


def reproducibility(runs: Runs) -> Section:
    """Return signatures, hashes, environments, and the commands that repeat each number."""
    tables = [
        Table(_frame(runs, _used), "Models as they were used", name="models"),
        Table(_frame(runs, _hashes), "SHA-256 of weights, tokenizer and configuration", name="weights"),
        Table(pd.DataFrame(_signatures(runs)), "Signatures: what fixes each score", name="signatures"),
        Table(pd.DataFrame(_data(runs)), "Data that was read", name="data"),
        Table(_environments(runs), "Where it was measured", name="environment"),
    ]
    text = "Two scores compare only if what stands before the double bar of their signatures is equal."
    notes = [f"{label}: {note}" for label, record in runs.items() for note in record.notes]
    return Section(
        "reproducibility",
        "Reproducibility",
        (text,),
        tuple(table for table in tables if len(table.frame)),
        points=tuple(notes),
        parts=(Section("commands", "Commands that repeat the numbers", commands=_commands(runs)),),
    )


def _used(model: ModelPart) -> dict[str, object]:
    # The whitening of the run stands with what was fitted.
    use = {name: value for name, value in vars(model.use).items() if name != "whiten"}
    return {"kind": model.kind, **use, "normalize": model.normalize, "postprocessing": model.postprocessing}


def _hashes(model: ModelPart) -> dict[str, object]:
    return {name: getattr(model, name) for name in _HASHES}


def _frame(runs: Runs, told_of: Callable[[ModelPart], dict[str, object]]) -> pd.DataFrame:
    """Return a row per run, without the columns in which no run says anything."""
    rows: list[dict[str, str | None]] = [
        {"model": label, **{name: _told(value) for name, value in told_of(run.model).items()}}
        for label, run in runs.items()
    ]
    frame = pd.DataFrame(rows)
    return frame[[name for name in frame if frame[name].notna().any()]]


def _told(value: object) -> str | None:
    return None if value in {None, "", False} else str(value)


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
