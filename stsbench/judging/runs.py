"""Chooses the runs to judge, finds the scores that they have in common, and groups the seeds of a method."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

import pandas as pd
import yaml

from stsbench.base.errors import UserError
from stsbench.base.parsing import read_yaml
from stsbench.base.words import listed
from stsbench.encoders.use import names
from stsbench.records.imports import read_results
from stsbench.records.labels import labels, task_labels
from stsbench.records.parts import Score
from stsbench.records.record import RunRecord
from stsbench.records.signature import Signature, require_same_protocol

Run = RunRecord | str | Path
"""A record, its folder or `run.json`, or a file of results of SentEval or MTEB."""

_SEED = re.compile(r"[-_. ]?seed[-_.= ]?\d+", re.IGNORECASE)


def choose_runs(
    runs: Iterable[Run],
    least: int = 1,
    most: float = math.inf,
    *,
    may_repeat: bool = False,
    comparable: bool = False,
) -> tuple[dict[str, RunRecord], tuple[str, ...]]:
    """Reads the runs to judge, and returns them by the labels of their models, and notes.

    Args:
        runs: the runs.
        least: smallest number of runs.
        most: largest number of runs.
        may_repeat: accepts a run that is named twice.
        comparable: keeps the first largest group of comparable and distinct models. Others are left out, as are
            folders of experiments; the notes say why.

    Raises:
        UserError: if a run cannot be read or is named twice, if there are too few or too many, or if no two are
            comparable and have to be.
    """
    chosen, notes = list(runs), []
    if comparable:
        # `runs/*` also matches the folders of experiments.
        experiments = list(filter(_is_experiment, chosen))
        chosen = [run for run in chosen if run not in experiments]
        notes += [f"left out: {path} is an experiment; its runs are in {path}/jobs." for path in experiments]
    if not least <= len(chosen) <= most:
        expected = f"at least {least}" if most == math.inf else f"{least} to {most}"
        raise UserError(" ".join([f"expected {expected} runs, got {len(chosen)}.", *notes]))
    records = [read_results(run) for run in chosen]
    named = dict(zip(labels(records), records, strict=True))
    if not may_repeat:
        for _, name in _twins(named, lambda record: record.folder and record.folder.resolve()):
            raise UserError(f"{named[name].folder} is named twice: give each run once.")
    if comparable:
        named, obstacles = _largest_group(named)
        notes += [f"left out: {' '.join(obstacles)}"] if obstacles else []
    return named, tuple(notes)


def _is_experiment(run: Run) -> bool:
    return not isinstance(run, RunRecord) and (Path(run).expanduser() / "experiment.yaml").is_file()


def _largest_group(runs: Mapping[str, RunRecord]) -> tuple[dict[str, RunRecord], list[str]]:
    """Returns the first largest group of comparable models, and why others are not in it."""
    groups: list[dict[str, RunRecord]] = []
    for name, record in runs.items():
        home = next((group for group in groups if not _obstacle(group, name, record)), None)
        if home is None:
            groups.append(home := {})
        home[name] = record
    chosen = max(groups, key=len)
    obstacles = [_obstacle(chosen, name, record) for name, record in runs.items() if name not in chosen]
    if len(chosen) == 1:
        raise UserError(obstacles[0])
    return chosen, obstacles


def _obstacle(group: Mapping[str, RunRecord], name: str, record: RunRecord) -> str:
    """Returns why a run cannot be ranked in a group; empty if it can."""
    first = next(iter(group))
    if record.is_imported or group[first].is_imported:
        return f"{name if record.is_imported else first} was imported with scores only."
    try:
        common_scores({first: group[first], name: record})
    except UserError as error:
        return str(error)
    for twin, _ in _twins({**group, name: record}, _model_of):
        return f"{name} is the same model as {twin}, used in the same way: name it once."
    return ""


def common_scores(runs: Mapping[str, RunRecord]) -> tuple[dict[str, dict[str, Score]], tuple[str, ...]]:
    """Returns the scores of the tasks that all runs have, by label and run, and notes.

    Raises a UserError if runs have no task in common, or differ in its split, text or protocol.
    """
    held = {name: {score.key: score for score in record.scores} for name, record in runs.items()}
    every = {key: score for scores in held.values() for key, score in scores.items()}
    (first_name, first), *others = held.items()
    shared: list[dict[str, Score]] = []
    for key, score in first.items():
        by_run = {first_name: score}
        for name, scores in others:
            namesakes = [score for score in scores.values() if score.key[:2] == key[:2]]
            # A run with only another split of the task is rejected below, unless the first run has that split too.
            if match := scores.get(key) or next((score for score in namesakes if score.key not in first), None):
                by_run[name] = match
        if len(by_run) == len(runs):
            shared.append(by_run)
    if not shared:
        raise UserError(f"{listed(list(runs))} have no task in common: measure them on the same tasks.")
    common = dict(zip(task_labels([by_run[first_name] for by_run in shared]), shared, strict=True))
    for label, by_run in common.items():
        for name, score in by_run.items():
            signatures = Signature.parse(by_run[first_name].signature), Signature.parse(score.signature)
            require_same_protocol(
                *signatures, names=(first_name, name), task=label, remedy="measure both by one protocol"
            )
    kept = {score.key for by_run in common.values() for score in by_run.values()}
    named = zip(every, task_labels(list(every.values())), strict=True)
    missing = [label for key, label in named if key not in kept]
    return common, ((f"not all records hold {', '.join(missing)}: left out.",) if missing else ())


def _model_of(record: RunRecord) -> tuple[str, ...] | None:
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


def group_seeds(
    runs: Mapping[str, RunRecord], methods: Mapping[str, str] | None = None
) -> tuple[dict[str, dict[str, RunRecord]], tuple[str, ...]]:
    """Groups runs of one recipe with different seeds by their method.

    Recipes are compared if trainings left them in the folders of the runs or checkpoints.

    Args:
        runs: records by name.
        methods: the method of each run. By default it is the run's name without `seed<number>`; runs without one,
            and methods with one run, are left out.

    Returns:
        The runs by method, and notes on runs that are not seeds of their method's recipe.

    Raises:
        UserError: if `methods` names such a run.
    """
    chosen = _methods_by_name(runs) if methods is None else methods
    groups: dict[str, dict[str, RunRecord]] = {method: {} for method in chosen.values()}
    notes = []
    for name, method in chosen.items():
        if reason := _other_recipe(groups[method], name, runs[name]):
            notes.append(reason)
        else:
            groups[method][name] = runs[name]
    if methods is not None and notes:
        raise UserError(notes[0])
    return {name: group for name, group in groups.items() if methods or len(group) > 1}, tuple(notes)


def _methods_by_name(runs: Mapping[str, RunRecord]) -> dict[str, str]:
    methods = {}
    for label, record in runs.items():
        names = [label, record.folder.name if record.folder else "", PurePath(record.model.name).name]
        if name := next(filter(_SEED.search, names), ""):
            methods[label] = _SEED.sub("", name)
    return methods


def _other_recipe(group: Mapping[str, RunRecord], name: str, record: RunRecord) -> str:
    """Returns why a run is not another seed of a group's recipe; empty if it is."""
    for twin, _ in _twins({**group, name: record}, lambda run: run.model.weights_sha256 or None):
        return f"{twin} and {name} have the same weights, so they are one seed: name it once."
    first = next(iter(group), name)
    (model, recipe), (other_model, other_recipe) = (_settings(run) for run in (group.get(first, record), record))
    # What is unknown matches.
    compared = {setting for setting in model if None not in (model[setting], other_model[setting])}
    compared |= {*recipe, *other_recipe} if recipe and other_recipe else set()
    here, there = model | recipe, other_model | other_recipe
    for setting in sorted(compared):
        value, other = here.get(setting), there.get(setting)
        if value != other:
            return (
                f"{first} and {name} are not seeds of one recipe: {setting} is {value} in the first and "
                f"{other} in the second. Compare them as two methods, with --a and --b."
            )
    return ""


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
            recipe = read_yaml((folder / "recipe.yaml").read_text(encoding="utf-8"))
            if isinstance(recipe, dict):
                return recipe
    return {}
