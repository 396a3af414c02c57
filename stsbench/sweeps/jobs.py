"""The jobs of an experiment: its cells with each seed, identified by a hash of everything that they do.

Weights and texts are identified by content, not by name. Jobs that measure one training in several ways (plain and
whitened) form a unit: it trains once.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product, starmap
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import files_below, fingerprint, sha256_of
from stsbench.base.words import suggestion
from stsbench.data.corpus import corpus_file
from stsbench.data.rows import ending_of
from stsbench.encoders.load import load_with
from stsbench.encoders.template import NO_TEMPLATE, Template
from stsbench.encoders.use import ABOUT, Use, names
from stsbench.sweeps.experiment import Experiment, label_of
from stsbench.training.recipe import Recipe, file_places, read_recipe

_DIGITS = 12
_LONGEST_SLUG = 80

_NO_RESULT_OF = ("saving", "log_every", "base")
"""Keys of a recipe that do not change its result; the base is identified by its content."""

_NO_CONTENT = ("revision", "device")
"""Fields of `Use` that do not change a checkpoint's content."""

_INPUT_KEYS = ("base", "pooling", "corpus", "views", "labelled", "tasks")
"""Keys of a recipe that determine what it reads."""

_LOADING = names("encoding", "nothing")
"""The options that can vary for a checkpoint; for a training it is any key of the recipe."""

_POSTPROCESSING = names("afterwards")
"""The options of `postprocessing`."""

_NAMED: dict[Any, dict[str, Any]] = {None: {}, "none": {}, "whiten": {"whiten": 0}}
"""Values of `postprocessing` that are not mappings."""

_USES = TypeAdapter(Use)
_USES.rebuild(_types_namespace={"Template": Template})


@dataclass(frozen=True)
class Job:
    """A cell with a seed: a training or a checkpoint, and its measurements.

    Attributes:
        cell: each axis' value where it is a number or a text, else its label.
        seed: of the training; None for a checkpoint.
        recipe: the full recipe as plain data; None for a checkpoint.
        checkpoint: `name`, and under `use` the options of `load`; None for a training.
        inputs: hashes of its inputs: `checkpoint`, or `base`, `corpus`, `tables` and `views`.
        postprocessing: changes to the vectors.
        measure: what is measured.
        threads: the number of threads.
    """

    cell: Mapping[str, Any]
    seed: int | None
    recipe: Mapping[str, Any] | None
    checkpoint: Mapping[str, Any] | None
    inputs: Mapping[str, Any]
    postprocessing: Mapping[str, Any]
    measure: Mapping[str, Any]
    threads: int

    @cached_property
    def unit(self) -> str:
        """The hash of the training or checkpoint; jobs that share it are done together."""
        content: dict[str, Any] = {"inputs": self.inputs, "threads": self.threads}
        if self.recipe is not None:
            recipe = {key: value for key, value in self.recipe.items() if key not in _NO_RESULT_OF}
            corpus = {key: value for key, value in self.recipe["corpus"].items() if key != "path"}
            content["recipe"] = recipe | {"corpus": corpus}
        return _hash(content)

    @cached_property
    def id(self) -> str:
        """The hash of everything that the job does. Names of axes, labels and files do not count."""
        return _hash({"unit": self.unit, "postprocessing": self.postprocessing, "measure": self.measure})

    @cached_property
    def folder(self) -> str:
        """The name of its folder, with labels and the hash."""
        slug = re.sub(r"[^\w.-]+", "-", "_".join(self._parts)).strip("-._")[:_LONGEST_SLUG]
        return f"{slug}-{self.id}" if slug else self.id

    @property
    def labels(self) -> dict[str, str]:
        """The label of each axis' value."""
        return {axis: str(value) for axis, value in self.cell.items()}

    @property
    def label(self) -> str:
        """Its name in messages, with labels and seed."""
        return ", ".join(self._parts) or "the only job"

    @property
    def _parts(self) -> list[str]:
        labels = self.cell if self.seed is None else {**self.cell, "seed": self.seed}
        return [f"{name.rpartition('.')[2]} {label}" for name, label in labels.items()]

    @property
    def use(self) -> Use:
        """How its checkpoint is used, before post-processing; the defaults for a training."""
        return Use() if self.checkpoint is None else _USES.validate_python(self.checkpoint["use"])


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:_DIGITS]


def jobs_of(experiment: Experiment, *, is_read: bool = True) -> tuple[Job, ...]:
    """Returns the jobs of an experiment, cell by cell.

    Args:
        experiment: the experiment.
        is_read: whether inputs are read, with relative names from the current folder; else hashes are not final.

    Raises:
        UserError: if a key, value or file is wrong, with its cell, or two jobs are the same.

    >>> rates = Experiment(name="a", recipe="demo", axes={"optimiser.batch": [32, 64]}, seeds=[1, 2])
    >>> [job.label for job in jobs_of(rates, is_read=False)][:2]
    ['batch 32, seed 1', 'batch 32, seed 2']
    """
    read: dict[str, Any] = {}
    jobs: dict[str, Job] = {}
    for job in _jobs(experiment):
        key = _hash(job.checkpoint or {key: (job.recipe or {})[key] for key in _INPUT_KEYS})
        if key not in read:
            read[key] = read_inputs(job) if is_read else {"unread": key}
        done = replace(job, inputs=read[key])
        if done.id in jobs:
            raise UserError(
                f"experiment {experiment.name}: {jobs[done.id].label} and {done.label} are the same job: remove "
                "one of the two values."
            )
        jobs[done.id] = done
    return tuple(jobs.values())


def units_of(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    """Returns the jobs by unit."""
    units: dict[str, list[Job]] = {}
    for job in jobs:
        units.setdefault(job.unit, []).append(job)
    return units


def read_inputs(job: Job) -> dict[str, Any]:
    """Returns the hashes of a job's inputs: its checkpoint, or a training's base, corpus, tables and views.

    Checkpoints that are not on this machine are downloaded.
    """
    if job.checkpoint is not None:
        return {"checkpoint": _content(job.checkpoint["name"], job.use)}
    recipe = Recipe.model_validate(job.recipe)
    corpus = None if recipe.corpus.path is None else corpus_file(recipe.corpus.path)
    views = [part[key] for part, key in file_places((job.recipe or {})["views"])]
    tables = [part[key] for part, key in file_places((job.recipe or {})["tasks"])]
    folder = Path(recipe.labelled.folder or ".").expanduser()
    return {
        "base": _content(recipe.base, Use(pooling=recipe.pooling, template=NO_TEMPLATE)),
        # The same bytes contain other sentences if they are read as a table.
        "corpus": None if corpus is None else [sha256_of(corpus), ending_of(corpus)],
        "tables": [_sha256(folder / Path(name).expanduser()) for name in tables],
        "views": [_sha256(Path(name).expanduser()) for name in views],
    }


def _content(name: str, use: Use) -> dict[str, Any]:
    """Returns everything that a checkpoint's vectors depend on."""
    identity = load_with(name, replace(use, device="cpu")).identity
    kept = {key: value for key, value in identity.use.as_dict().items() if key not in _NO_CONTENT}
    content = identity.as_dict() | {"use": kept}
    if identity.weights_sha256:  # A model without weights, such as a function, has only its name.
        del content["name"]
    plain: dict[str, Any] = json.loads(json.dumps(content))
    return plain


def _sha256(path: Path) -> str | None:
    if path.is_dir():
        return fingerprint([[file.relative_to(path).as_posix(), sha256_of(file)] for file in files_below(path)])
    return sha256_of(path) if path.is_file() else None


def _choices(axis: str, values: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, dict[str, Any]]]:
    """Returns the values of an axis, as in `Job.cell`, each with its changes."""
    if isinstance(values, Mapping):
        return list(values.items())
    plain = [isinstance(value, int | float | str) and not isinstance(value, bool) for value in values]
    return [
        (value if is_plain else label_of(value), {axis: value})
        for value, is_plain in zip(values, plain, strict=True)
    ]


def _jobs(experiment: Experiment) -> Iterator[Job]:
    for choices in product(*starmap(_choices, experiment.axes.items())):
        cell, changes = dict(zip(experiment.axes, (value for value, _ in choices), strict=True)), {}
        for key, value in (change for _, of_axis in choices for change in of_axis.items()):
            if key in changes:
                raise UserError(f"{key} is changed by two axes: remove it from one of them.")
            changes[key] = value
        try:
            yield from _jobs_of_cell(experiment, cell, changes)
        except UserError as error:
            place = ", ".join([f"experiment {experiment.name}", *map(str, cell.values())])
            raise UserError(f"{place}: {error}") from error


def _jobs_of_cell(experiment: Experiment, cell: dict[str, Any], changes: dict[str, Any]) -> Iterator[Job]:
    common: dict[str, Any] = {
        "cell": cell,
        "inputs": {},
        "postprocessing": _postprocessing(changes.get("postprocessing")),
        "measure": experiment.measure.model_dump(mode="json"),
        "threads": experiment.threads,
    }
    if "checkpoint" in changes:
        yield Job(seed=None, recipe=None, checkpoint=_checkpoint(changes), **common)
        return
    plain = _recipe(experiment, changes).model_dump(mode="json")
    for seed in experiment.seeds:
        yield Job(seed=seed, recipe={**plain, "seed": seed}, checkpoint=None, **common)


def _postprocessing(options: Any) -> dict[str, Any]:
    if not isinstance(options, Mapping):
        if options not in _NAMED:
            raise UserError(
                f"postprocessing: {options!r}: write none, whiten, or a mapping such as {{whiten: 256}}."
            )
        options = _NAMED[options]
    use = _checked_use(options, _POSTPROCESSING)
    return {key: getattr(use, key) for key in _POSTPROCESSING}


def _checked_use(options: Mapping[str, Any], allowed: Sequence[str]) -> Use:
    for key in options:
        if key not in allowed:
            raise UserError(f"{key} cannot be changed for a checkpoint: {suggestion(key, allowed)}")
    try:
        use: Use = _USES.validate_python(dict(options))
    except ValidationError as error:
        raise UserError(f"{error.errors()[0]['loc'][0]}: {error.errors()[0]['msg']}.") from error
    for key in options:
        least, value = ABOUT[key].least, getattr(use, key)
        if least is not None and value is not None and value < least:
            raise UserError(f"{key}: {value} is too small: give {least} or more.")
    return use


def _checkpoint(changes: Mapping[str, Any]) -> dict[str, Any]:
    options = {key: value for key, value in changes.items() if key not in {"checkpoint", "postprocessing"}}
    _checked_use(options, _LOADING)
    return {"name": str(changes["checkpoint"]), "use": json.loads(json.dumps(options))}


def _recipe(experiment: Experiment, changes: dict[str, Any]) -> Recipe:
    name = changes.get("recipe", experiment.recipe)
    if name is None:
        raise UserError(
            "there is no recipe and no checkpoint: add `recipe: NAME`, or an axis `recipe` or `checkpoint`."
        )
    shortcuts = {"corpus": experiment.corpus, "base": experiment.base}
    merged = {key: value for key, value in shortcuts.items() if value} | experiment.set | changes
    # In the order of the experiment: `negatives.queue` would overwrite an earlier `negatives.queue.size`.
    given = {
        "corpus.path" if key == "corpus" else key: value
        for key, value in merged.items()
        if key not in {"recipe", "postprocessing"}
    }
    return read_recipe(str(name), given)
