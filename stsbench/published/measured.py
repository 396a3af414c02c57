"""Measurements beside the papers: training logs, scores over many seeds, and points to compare geometry with."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from io import StringIO
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion


@dataclass(frozen=True)
class MeasuredSource:
    """Where measurements come from, and what to know about them."""

    title: str
    address: str
    note: str


def source(kind: str) -> MeasuredSource:
    """Return the source of `training-logs` or of `seeds`."""
    return MeasuredSource(**_sources()[kind])


def logged_systems() -> tuple[str, ...]:
    """Return the systems that have a training log."""
    return _names("training-logs", ".test.csv")


def seeded_systems() -> tuple[str, ...]:
    """Return the systems that were trained with many seeds.

    >>> seeded_systems()[0]
    'unsup-simcse-bert-base'
    """
    return _names("seeds", ".csv")


def reference_geometry(task: str, split: str, text: str) -> pd.DataFrame:
    """Return models whose alignment and uniformity on a task's sentences are known, for a reader to compare with.

    >>> reference_geometry("STS-B", "all", "senteval")["model"].tolist()
    ['all-MiniLM-L6-v2', 'its word embeddings, averaged']
    """
    frame = pd.read_csv(StringIO(_folder().joinpath("geometry", "points.csv").read_text(encoding="utf-8")))
    known = (frame["task"] == task) & (frame["split"] == split) & (frame["text"] == text)
    return frame[known].reset_index(drop=True)


def logged_test_scores(system: str) -> pd.DataFrame:
    """Return the test scores of a training log: by `task` and `subset` `pearson` and `spearman`, from 0 to 1."""
    return _frame("training-logs", system, ".test.csv", logged_systems())


def logged_dev_scores(system: str) -> pd.DataFrame:
    """Return the dev scores of a training log: by `step` those of `STS-B` and `SICK-R`, Spearman from 0 to 1."""
    return _frame("training-logs", system, ".dev.csv", logged_systems())


def seeds(system: str) -> pd.DataFrame:
    """Return the scores of a system over many seeds of an independent reproduction, a row a seed.

    They are Spearman x 100 per task (column `Avg.` their mean) and `STS-B:dev`; `best_step` is the step whose
    checkpoint was taken.

    >>> round(float(seeds("unsup-simcse-bert-base")["Avg."].mean()), 2)
    75.11
    """
    return _frame("seeds", system, ".csv", seeded_systems())


def resolution_facts() -> str:
    """Return the JSON of what the tasks' pairs resolve, as `docs/resolution_facts.py` wrote it."""
    return _folder().joinpath("resolution.json").read_text(encoding="utf-8")


def _frame(kind: str, system: str, suffix: str, known: tuple[str, ...]) -> pd.DataFrame:
    if system not in known:
        raise UserError(f"no {kind} of {system!r} are known: {suggestion(system, known)}")
    return pd.read_csv(StringIO((_folder() / kind / f"{system}{suffix}").read_text(encoding="utf-8")))


def _names(kind: str, suffix: str) -> tuple[str, ...]:
    paths = (_folder() / kind).iterdir()
    return tuple(sorted(path.name.removesuffix(suffix) for path in paths if path.name.endswith(suffix)))


@cache
def _sources() -> dict[str, Any]:
    return tomllib.loads((_folder() / "sources.toml").read_text(encoding="utf-8"))


def _folder() -> Traversable:
    return files("stsbench.published") / "entries" / "measured"
