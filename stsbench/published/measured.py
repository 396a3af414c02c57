"""Measurements beside the papers: training logs, scores over seeds, and errors of encoders."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from io import StringIO

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion


@dataclass(frozen=True)
class MeasuredSource:
    """Where measurements come from, and what a reader should know about them."""

    title: str
    address: str
    note: str


def source(kind: str) -> MeasuredSource:
    """Returns the source of `training-logs` or `seeds`."""
    return MeasuredSource(**tomllib.loads((_folder() / "sources.toml").read_text(encoding="utf-8"))[kind])


def logged_systems() -> tuple[str, ...]:
    """Returns the systems that have a training log."""
    return _names("training-logs", ".test.csv")


def seeded_systems() -> tuple[str, ...]:
    """Returns the systems that were trained with many seeds.

    >>> seeded_systems()[0]
    'unsup-simcse-bert-base'
    """
    return _names("seeds", ".csv")


def logged_test_scores(system: str) -> pd.DataFrame:
    """Returns the test scores of a training log: `pearson` and `spearman` by `task` and `subset`, from 0 to 1."""
    return _of_system("training-logs", system, ".test.csv", logged_systems())


def logged_dev_scores(system: str) -> pd.DataFrame:
    """Returns the dev scores of a training log: `STS-B` and `SICK-R` by `step`, Spearman from 0 to 1."""
    return _of_system("training-logs", system, ".dev.csv", logged_systems())


def seeds(system: str) -> pd.DataFrame:
    """Returns the scores of a system over many seeds of an independent reproduction, one row per seed.

    They are Spearman x 100 per task, their mean `Avg.`, and `STS-B:dev`; `best_step` is the step of the chosen
    checkpoint.

    >>> round(float(seeds("unsup-simcse-bert-base")["Avg."].mean()), 2)
    75.11
    """
    return _of_system("seeds", system, ".csv", seeded_systems())


def encoder_errors() -> pd.DataFrame:
    """Returns `score` x 100 and its standard `error` by `encoder` and `task`, from `docs/resolution_facts.py`."""
    return _read("encoders", "errors.csv")


def error_correlations() -> pd.DataFrame:
    """Returns the `correlation` of the errors of two encoders, `a` and `b`, by `task`.

    `df` is the degrees of freedom of their difference, infinite if unknown.
    """
    return _read("encoders", "correlations.csv")


def _of_system(kind: str, system: str, suffix: str, known: tuple[str, ...]) -> pd.DataFrame:
    if system not in known:
        raise UserError(f"no {kind} of {system!r} are known: {suggestion(system, known)}")
    return _read(kind, f"{system}{suffix}")


def _read(kind: str, name: str) -> pd.DataFrame:
    return pd.read_csv(StringIO((_folder() / kind / name).read_text(encoding="utf-8")))


def _names(kind: str, suffix: str) -> tuple[str, ...]:
    paths = (_folder() / kind).iterdir()
    return tuple(sorted(path.name.removesuffix(suffix) for path in paths if path.name.endswith(suffix)))


def _folder() -> Traversable:
    return files("stsbench.published") / "entries" / "measured"
