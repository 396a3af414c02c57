"""Reads the runs to judge, and checks that they are distinct models or seeds of one recipe."""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from os.path import commonprefix
from pathlib import Path
from typing import Any, TypeVar

import yaml

from stsbench.base.errors import UserError
from stsbench.encoders.use import names
from stsbench.records.labels import labels
from stsbench.records.parts import ModelPart
from stsbench.records.record import RunRecord
from stsbench.records.store import load_run

Run = RunRecord | str | Path
"""A record, or its folder or `run.json`."""

_RECIPE = "recipe.yaml"

_Name = TypeVar("_Name", bound=Hashable)


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
    """Returns what the names of runs have in common, without the number of the seed.

    >>> shared_name(["simcse-seed1", "simcse-seed2"])
    'simcse-seed'
    """
    # Character by character: `os.path.commonpath` compares whole folders.
    return commonprefix(runs).rstrip("-_./0123456789")  # noqa: RUF071


def matching_runs(patterns: Iterable[str | Path]) -> list[Path]:
    """Expands patterns with `*`, `?` or `[...]`; matches are sorted by name."""
    runs: list[Path] = []
    for pattern in map(Path, patterns):
        path = pattern.expanduser()
        if path.exists() or not is_pattern(path):
            runs.append(path)
            continue
        root = Path(path.anchor)
        matches = sorted(root.glob(str(path.relative_to(root))))
        if not matches:
            raise UserError(f"no run matches {pattern}: check the pattern.")
        runs += matches
    return runs


def is_pattern(path: Path) -> bool:
    """Returns whether a path contains wildcards."""
    return re.search(r"[*?[]", str(path)) is not None


def require_items(runs: Mapping[str, RunRecord]) -> None:
    """Raises a UserError for records of imported scores, which have no items."""
    for name, record in runs.items():
        if record.is_imported:
            raise UserError(
                f"{name} was imported with scores only, and this compares pairs: measure it, or compare its "
                "scores with `stsbench check RUN --baseline OTHER`."
            )


def require_distinct_models(runs: Mapping[str, RunRecord]) -> None:
    """Raises a UserError for a run that is named twice, and for two runs of the same weights used alike."""
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
    for first_name, name in _twins(runs, lambda record: record.model.weights_sha256 or None):
        raise UserError(f"{first_name} and {name} have the same weights, so they are one seed: name it once.")
    first_name = next(iter(runs), "")
    for name in list(runs)[1:]:
        for field, here, there in _differences(runs[first_name], runs[name]):
            raise UserError(
                f"{first_name} and {name} are not seeds of one recipe: {field} is {here} in the first and {there} "
                "in the second. Compare them as two methods, with --a and --b."
            )


def method_of(record: RunRecord) -> str:
    """Returns a text that seeds of one recipe share; empty if no recipe is beside record or checkpoint."""
    recipe = _recipe_of(record)
    shared = sorted(((key, value) for key, value in recipe.items() if key != "seed"), key=str)
    return repr((sorted(_settings(record.model).items()), shared)) if recipe else ""


def group_seeds(
    runs: Mapping[_Name, RunRecord], method: Callable[[RunRecord], str] = method_of
) -> list[list[_Name]]:
    """Groups the runs that are seeds of one method: `method` agrees, the weights do not.

    Returns:
        The names of each method with at least two seeds; of several runs of the same weights the first.
    """
    methods: dict[str, dict[str, _Name]] = {}
    for name, record in runs.items():
        weights = record.model.weights_sha256
        if weights and (text := method(record)):
            methods.setdefault(text, {}).setdefault(weights, name)
    return [list(seeds.values()) for seeds in methods.values() if len(seeds) > 1]


def _differences(first: RunRecord, second: RunRecord) -> Iterator[tuple[str, Any, Any]]:
    """Yields the settings and the keys of the recipes that differ, with both values; unknown ones match."""
    other = _settings(second.model)
    for field, here in _settings(first.model).items():
        there = other[field]
        if here is not None and there is not None and here != there:
            yield field, here, there
    recipes = _recipe_of(first), _recipe_of(second)
    if all(recipes):
        yield from _differing(*recipes)


def _settings(model: ModelPart) -> dict[str, object]:
    """Returns the settings of a model that seeds of one recipe share."""
    use = {name: getattr(model.use, name) for name in names("encoding", "afterwards")}
    more = {"fitted": model.fitted, "tokenizer_sha256": model.tokenizer_sha256}
    return use | {"normalize": model.normalize} | more


def recipe_files(record: RunRecord) -> list[Path]:
    """Returns the recipes beside a record and beside its checkpoint."""
    files = []
    for folder in filter(None, [record.folder, Path(record.model.name).expanduser()]):
        with suppress(OSError):  # too long a name, or a folder that cannot be read
            if (path := folder / _RECIPE).is_file():
                files.append(path)
    return files


def _recipe_of(record: RunRecord) -> dict[str, Any]:
    """Returns the recipe of a run's training; empty without a readable one."""
    for path in recipe_files(record):
        with suppress(OSError, ValueError, yaml.YAMLError):
            recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
            if isinstance(recipe, dict):
                return recipe
    return {}


def _differing(
    first: Mapping[str, Any], second: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """Yields the keys that differ, except the seed, with both values; nested keys are joined by dots."""
    for key in {**first, **second}:
        here, there = first.get(key), second.get(key)
        if here == there or f"{above}{key}" == "seed":
            continue
        if isinstance(here, dict) and isinstance(there, dict):
            yield from _differing(here, there, f"{above}{key}.")
        else:
            yield f"{above}{key}", here, there
