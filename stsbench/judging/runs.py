"""Which runs are judged together: how they are read and named, whether they are models or seeds of one recipe."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.encoders.use import names
from stsbench.records.labels import labels
from stsbench.records.parts import ModelPart
from stsbench.records.record import RunRecord
from stsbench.records.store import load_run

Run = RunRecord | str | Path
"""A record, or the folder or `run.json` that it is in."""

_RECIPE = "recipe.yaml"


def records_of(runs: Iterable[Run]) -> list[RunRecord]:
    """Return records, read where they are folders."""
    return [run if isinstance(run, RunRecord) else load_run(run) for run in runs]


def named_runs(runs: Iterable[Run]) -> dict[str, RunRecord]:
    """Return records by what their models are called."""
    records = records_of(runs)
    return dict(zip(labels(records), records, strict=True))


def matching_runs(patterns: Sequence[str | Path]) -> list[Path]:
    """Return the runs that are named, or match a pattern with `*`, `?` or `[...]`, in order of their names."""
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
    """Return whether a path stands for those that match it."""
    return re.search(r"[*?[]", str(path)) is not None


def require_items(runs: Mapping[str, RunRecord]) -> None:
    """Refuse records of imported scores, which have no items to compare."""
    for name, record in runs.items():
        if record.is_imported:
            raise UserError(
                f"{name} was imported, with scores alone, and pairs are compared: measure it, or hold its scores "
                "against another's with `stsbench check RUN --baseline OTHER`."
            )


def require_distinct_models(runs: Mapping[str, RunRecord]) -> None:
    """Refuse one run named twice, and two runs of the same weights, used alike."""
    for _, name in _twins(runs, lambda record: record.folder and record.folder.resolve()):
        raise UserError(f"{runs[name].folder} is named twice: give each run once.")
    for first, name in _twins(runs, model_of):
        raise UserError(
            f"{first} and {name} are runs of the same weights, used alike, which is one model: name it once."
        )


def model_of(record: RunRecord) -> tuple[str, ...] | None:
    """Return what tells a record's model from others, weights and use; None where no weights are known."""
    if record.model.weights_sha256 is None:
        return None
    without = set(names("place", "nothing"))
    model = record.model.model_dump(exclude={"name": True, "kind": True, "use": without})
    return tuple(sorted(map(repr, model.items())))


def _twins(runs: Mapping[str, RunRecord], identity: Callable[[RunRecord], Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of each run and of an earlier one with the same identity, the earlier first."""
    first_of: dict[Any, str] = {}
    for name, record in runs.items():
        own = identity(record)
        if own is not None and first_of.setdefault(own, name) != name:
            yield first_of[own], name


def require_seeds_of_one_recipe(runs: Mapping[str, RunRecord]) -> None:
    """Refuse runs of one method that are of the same weights, or differ in more than the seed.

    The recipe is compared where a training of stsbench left it in the folder of the run or of the checkpoint.
    """
    for first_name, name in _twins(runs, lambda record: record.model.weights_sha256 or None):
        raise UserError(
            f"{first_name} and {name} are runs of the same weights, which is one seed: give each checkpoint once."
        )
    first_name = next(iter(runs), "")
    for name in list(runs)[1:]:
        for field, here, there in _differences(runs[first_name], runs[name]):
            raise UserError(
                f"{first_name} and {name} are not seeds of one recipe: {field} is {here} in one and {there} in "
                "the other; compare them as two methods, with --a and --b."
            )


def _differences(first: RunRecord, second: RunRecord) -> Iterator[tuple[str, Any, Any]]:
    """Yield in what two runs differ that seeds of one recipe do not, with both values."""
    used = _used(second.model)
    for field, here in _used(first.model).items():
        there = used[field]
        if here is not None and there is not None and here != there:
            yield field, here, there
    recipes = _recipe_of(first), _recipe_of(second)
    if all(recipes):
        yield from _differing(*recipes)


def method_of(record: RunRecord) -> str:
    """Return what the seeds of one recipe agree in, as text; empty where no recipe is beside record or checkpoint.

    Without its recipe nobody knows what a run differs in from another.
    """
    recipe = _recipe_of(record)
    said = {key: value for key, value in recipe.items() if key != "seed"}
    return repr((sorted(_used(record.model).items()), sorted(said.items(), key=str))) if recipe else ""


def _used(model: ModelPart) -> dict[str, object]:
    """Return by name in what of a model the seeds of one recipe agree."""
    use = {name: getattr(model.use, name) for name in names("encoding", "afterwards")}
    more = {"fitted": model.fitted, "tokenizer_sha256": model.tokenizer_sha256}
    return use | {"normalize": model.normalize} | more


def recipe_files(record: RunRecord) -> list[Path]:
    """Return the recipes beside a record and beside its checkpoint, as far as there are any."""
    found = []
    for folder in filter(None, [record.folder, Path(record.model.name).expanduser()]):
        with suppress(OSError):  # too long a name, or a folder that may not be looked into
            if (path := folder / _RECIPE).is_file():
                found.append(path)
    return found


def _recipe_of(record: RunRecord) -> dict[str, Any]:
    """Return the recipe of a run's training; empty if there is none, or it is no recipe."""
    import yaml

    for path in recipe_files(record):
        try:
            recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError):
            continue
        if isinstance(recipe, dict):
            return recipe
    return {}


def _differing(
    first: Mapping[str, Any], second: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the keys that differ, but for the seed, with both values; nested ones with dots."""
    for key in {**first, **second}:
        here, there = first.get(key), second.get(key)
        if here == there or f"{above}{key}" == "seed":
            continue
        if isinstance(here, dict) and isinstance(there, dict):
            yield from _differing(here, there, f"{above}{key}.")
        else:
            yield f"{above}{key}", here, there
