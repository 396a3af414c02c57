"""Reads the runs to judge, and checks that they are distinct models or seeds of one recipe."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from os.path import commonprefix
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from stsbench.base.errors import UserError
from stsbench.base.parsing import read_yaml
from stsbench.encoders.use import names
from stsbench.records.labels import labels
from stsbench.records.record import RunRecord
from stsbench.records.store import load_run

Run = RunRecord | str | Path
"""A record, or its folder or `run.json`."""

_RECIPE = "recipe.yaml"


def records_of(runs: Iterable[Run]) -> list[RunRecord]:
    """Reads the records of run folders."""
    return [run if isinstance(run, RunRecord) else load_run(run) for run in runs]


def named_runs(runs: Iterable[Run]) -> dict[str, RunRecord]:
    """Returns records by the labels of their models."""
    records = records_of(runs)
    return dict(zip(labels(records), records, strict=True))


def runs_by_folder(records: Sequence[RunRecord]) -> dict[str, RunRecord]:
    """Returns records by their folders, or by label if they have none.

    Raises:
        UserError: if a folder is named twice.
    """
    named: dict[str, RunRecord] = {}
    for record, label in zip(records, labels(records), strict=True):
        name = str(record.folder or label)
        if name in named:
            raise UserError(f"{name} is named twice: give each run once.")
        named[name] = record
    return named


def shared_name(runs: Sequence[str]) -> str:
    """Returns the common part of the names of runs, without the number of the seed.

    >>> shared_name(["simcse-seed1", "simcse-seed2"])
    'simcse-seed'
    """
    # Character by character: `os.path.commonpath` compares whole folders.
    return commonprefix(runs).rstrip("-_./0123456789")  # noqa: RUF071


def require_distinct_models(runs: Mapping[str, RunRecord]) -> None:
    """Raises a UserError for a run that is named twice, and for two runs of the same weights and use."""
    for _, name in _twins(runs, lambda record: record.folder and record.folder.resolve()):
        raise UserError(f"{runs[name].folder} is named twice: give each run once.")
    for first, name in _twins(runs, model_of):
        raise UserError(f"{first} and {name} are one model: the same weights, used in the same way. Name it once.")


def model_of(record: RunRecord) -> tuple[str, ...] | None:
    """Returns what identifies a record's model, its weights and use; None if no weights are known."""
    if record.model.weights_sha256 is None:
        return None
    without = set(names("place", "nothing"))
    model = record.model.model_dump(exclude={"name": True, "kind": True, "use": without})
    return tuple(sorted(map(repr, model.items())))


def _twins(runs: Mapping[str, RunRecord], identity: Callable[[RunRecord], Any]) -> Iterator[tuple[str, str]]:
    """Yields the names of two runs with the same identity, the earlier first."""
    first_of: dict[Any, str] = {}
    for name, record in runs.items():
        key = identity(record)
        if key is not None and first_of.setdefault(key, name) != name:
            yield first_of[key], name


def require_seeds_of_one_recipe(runs: Mapping[str, RunRecord]) -> None:
    """Raises a UserError for runs of the same weights, and for runs that differ in more than the seed.

    Recipes are compared if trainings left them in the folders of the runs or checkpoints.
    """
    for first, name in _twins(runs, lambda record: record.model.weights_sha256 or None):
        raise UserError(f"{first} and {name} have the same weights, so they are one seed: name it once.")
    first, *others = runs or [""]
    for name in others:
        (model, recipe), (other_model, other_recipe) = map(_settings, (runs[first], runs[name]))
        # What is unknown matches.
        compared = {setting for setting in model if None not in (model[setting], other_model[setting])}
        compared |= {*recipe, *other_recipe} if recipe and other_recipe else set()
        here, there = model | recipe, other_model | other_recipe
        for setting in sorted(compared):
            value, other = here.get(setting), there.get(setting)
            if value != other:
                raise UserError(
                    f"{first} and {name} are not seeds of one recipe: {setting} is {value} in the first and "
                    f"{other} in the second. Compare them as two methods, with --a and --b."
                )


def _settings(record: RunRecord) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the settings of the model and of the recipe that seeds share; None and {} for unknown ones."""
    model = record.model
    use = {name: getattr(model.use, name) for name in names("encoding", "afterwards")}
    recipe = pd.json_normalize({"recipe": _recipe_of(record)}).iloc[0].drop("recipe.seed", errors="ignore")
    others = {name: getattr(model, name) for name in ("normalize", "fitted", "tokenizer_sha256")}
    return use | others, {str(name): value for name, value in recipe.items() if name != "recipe"}


def _recipe_of(record: RunRecord) -> dict[str, Any]:
    """Returns the recipe in a record's folder, or in its checkpoint's; empty without a readable one."""
    for folder in filter(None, [record.folder, Path(record.model.name).expanduser()]):
        # The name of a model can be too long for a path.
        with suppress(OSError, ValueError, yaml.YAMLError):
            recipe = read_yaml((folder / _RECIPE).read_text(encoding="utf-8"))
            if isinstance(recipe, dict):
                return recipe
    return {}
