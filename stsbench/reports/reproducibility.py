"""Signatures, hashes, environments, and the commands that repeat each number."""

import shlex
from typing import Any

import pandas as pd

from stsbench.records.parts import ModelPart
from stsbench.records.provenance import redact
from stsbench.render.page import Section
from stsbench.render.table import Table
from stsbench.reports.scores import Runs

_HASHES = ("weights_sha256", "tokenizer_sha256", "config_sha256")


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
