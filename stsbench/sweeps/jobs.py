"""What there is to do: the cells of an experiment, and its jobs, each known by a hash of what it does.

Jobs that measure one training in several ways (post-processed or not) are one unit: it trains once.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, reduce
from itertools import product
from typing import Any

from pydantic import TypeAdapter, ValidationError

from stsbench.base.errors import UserError
from stsbench.base.words import listed, suggestion
from stsbench.encoders.checkpoint import PACKAGED
from stsbench.encoders.use import ABOUT, USUAL, Use, names
from stsbench.sweeps.experiment import Changes, Experiment, choices_of
from stsbench.sweeps.inputs import checkpoint_inputs, training_inputs, with_paths
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import read_recipe, recipe_names

_DIGITS = 12
_LONGEST_SLUG = 80

_NO_RESULT_OF = ("saving", "log_every")
"""Keys of a recipe that do not change its result."""

_RECIPE_FILE = re.compile(r"(.+\.ya?ml)((?::[^:]*)?)")
"""A file, and which of the variants in it."""

_LOADING = names("encoding", "nothing")
"""The options of a checkpoint that a sweep may vary: all but its device, which depends on where its job runs. Of a
training it may vary any key of the recipe."""

_POSTPROCESSING = names("afterwards")
"""The options that a sweep may vary of a checkpoint and of a training."""

_NAMED: dict[Any, dict[str, Any]] = {None: {}, "none": {}, "whiten": {"whiten": 0}}
"""Values of `postprocessing` that are no mappings."""


@dataclass(frozen=True)
class GivenCheckpoint:
    """A checkpoint that is not trained, and how it is used before post-processing."""

    name: str
    use: Use = USUAL


@dataclass(frozen=True)
class Job:
    """One cell with one seed: what is trained or taken, and what is measured of it.

    Attributes:
        cell: the label of each axis' value; no two values of an axis have the same.
        values: each axis' value itself where it is a scalar, else its label.
        seed: of the training; None for a checkpoint.
        recipe: in full, as plain data, its paths absolute; None for a checkpoint.
        checkpoint: None for a training.
        inputs: what it reads, by content: `checkpoint`, or `base`, `corpus`, `tables` and `views`.
        postprocessing: of the vectors.
        measure: what is measured.
        threads: that it computes with.
    """

    cell: Mapping[str, str]
    values: Mapping[str, Any]
    seed: int | None
    recipe: Mapping[str, Any] | None
    checkpoint: GivenCheckpoint | None
    inputs: Mapping[str, Any]
    postprocessing: Mapping[str, Any]
    measure: Mapping[str, Any]
    threads: int

    @cached_property
    def unit(self) -> str:
        """The hash of what is trained or taken; jobs that share it are done together, and train or encode once."""
        what: dict[str, Any] = {"inputs": self.inputs, "threads": self.threads}
        if self.checkpoint is not None:
            # What is not here is known by its name, until it is.
            return _hash(what | ({"checkpoint": asdict(self.checkpoint)} if self.is_unknown else {}))
        assert self.recipe is not None  # what is no checkpoint has one
        unnamed = _NO_RESULT_OF if self.is_unknown else (*_NO_RESULT_OF, "base")
        recipe = {key: value for key, value in self.recipe.items() if key not in unnamed}
        corpus = {key: value for key, value in self.recipe["corpus"].items() if key != "path"}
        return _hash(what | {"recipe": recipe | {"corpus": corpus}})

    @cached_property
    def id(self) -> str:
        """The hash of all that it does. What axes and labels are called does not count, nor where files lie."""
        return _hash({"unit": self.unit, "postprocessing": self.postprocessing, "measure": self.measure})

    @property
    def is_unknown(self) -> bool:
        """Whether its checkpoint, or its training's base, is not here yet, so that nobody knows its content."""
        return self.inputs["base" if self.checkpoint is None else "checkpoint"] is None

    @cached_property
    def asked(self) -> str:
        """The hash of the names in the experiment, whatever lies behind them."""
        return _hash({**asdict(self), "cell": None, "values": None, "inputs": None})

    @cached_property
    def folder(self) -> str:
        """The name of its folder, with its labels for people and its hash for sure."""
        parts = [f"{name.rpartition('.')[2]}-{label}" for name, label in self.cell.items()]
        parts += [] if self.seed is None else [f"seed-{self.seed}"]
        slug = re.sub(r"[^\w.-]+", "-", "_".join(parts)).strip("-._")[:_LONGEST_SLUG]
        return f"{slug}-{self.id}" if slug else self.id

    @property
    def label(self) -> str:
        """What people call it."""
        parts = [f"{name.rpartition('.')[2]} {label}" for name, label in self.cell.items()]
        return ", ".join([*parts, *([] if self.seed is None else [f"seed {self.seed}"])]) or "the one job"


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:_DIGITS]


def jobs_of(experiment: Experiment, *, fetch: bool = False) -> tuple[Job, ...]:
    """Return the jobs of an experiment, cell by cell, the seeds of a cell together.

    Checkpoints that are not here are fetched, or else their jobs are known by names alone, and none is done.

    >>> jobs = jobs_of(Experiment(name="a", recipe="demo", axes={"optimiser.batch": [32, 64]}, seeds=[1, 2]))
    >>> [job.label for job in jobs][:2]
    ['batch 32, seed 1', 'batch 32, seed 2']
    """
    jobs: dict[str, Job] = {}
    known: dict[str, dict[str, Any]] = {}

    def once(what: Any, read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        key = _hash(what)
        if key not in known:
            known[key] = read()
        return known[key]

    for cell in _cells(experiment):
        for job in _of_cell(experiment, cell, once, fetch=fetch):
            if job.id in jobs:
                raise UserError(
                    f"experiment {experiment.name}: {jobs[job.id].label} and {job.label} are the same job: remove "
                    "one of the two values."
                )
            jobs[job.id] = job
    return tuple(jobs.values())


def units_of(jobs: Sequence[Job]) -> list[tuple[Job, ...]]:
    """Return the jobs that share a training together, in their order."""
    units: dict[str, list[Job]] = {}
    for job in jobs:
        units.setdefault(job.unit, []).append(job)
    return list(map(tuple, units.values()))


def inputs_now(job: Job) -> dict[str, Any]:
    """Return what a job reads, as it is now."""
    if job.checkpoint is not None:
        return checkpoint_inputs(job.checkpoint.name, job.checkpoint.use, fetch=True)
    return training_inputs(Recipe.model_validate(job.recipe), fetch=True)


def recalled(jobs: Sequence[Job], held: Sequence[Job]) -> tuple[Job, ...]:
    """Return jobs, each whose checkpoint or base is not here with the content that it had when it was planned."""
    before = {job.asked: job.inputs for job in held}
    return tuple(replace(job, inputs=before.get(job.asked, job.inputs)) if job.is_unknown else job for job in jobs)


def outdated(jobs: Sequence[Job], held: Sequence[Job]) -> dict[str, list[Job]]:
    """Return by what changed behind its name the jobs that were planned with something else.

    >>> job = jobs_of(Experiment(name="a", recipe="demo", measure={"tasks": "sample"}))[0]
    >>> outdated([job], [replace(job, inputs={**job.inputs, "base": {}})]).keys()
    dict_keys(['the base (minilm)'])
    """
    before = {job.asked: job for job in held}
    changes: dict[str, list[Job]] = {}
    for job in jobs:
        old = before.get(job.asked, job)
        changed = [key for key, content in job.inputs.items() if old.inputs.get(key) != content]
        if changed:
            what = listed([f"the {key}{_called(job, key)}" for key in changed])
            changes.setdefault(what, []).append(old)
    return changes


def _called(job: Job, key: str) -> str:
    """Return the name of one of a job's inputs, in brackets; nothing for an input that is several files."""
    names = {"checkpoint": job.checkpoint.name} if job.checkpoint else {}
    if job.recipe is not None:
        names = {"base": job.recipe["base"], "corpus": job.recipe["corpus"]["path"]}
    return f" ({names[key]})" if key in names else ""


@dataclass
class _Cell:
    """A cell before its jobs are made: labels and values by axis; its changes, and where each was written."""

    labels: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    changes: Changes = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def with_choice(self, choice: "_Cell") -> "_Cell":
        """Return the cell with a choice of a further axis."""
        for key in choice.changes:
            if key in self.changes:
                raise UserError(f"{choice.places[key]}: {key} is changed by two axes; leave it to one of them.")
        return _Cell(*(mine | its for mine, its in zip(vars(self).values(), vars(choice).values(), strict=True)))


def _cells(experiment: Experiment) -> Iterator[_Cell]:
    """Yield the cells, those of the last axis side by side."""
    for choices in product(*(_choices(experiment, axis) for axis in experiment.axes)):
        yield reduce(_Cell.with_choice, choices, _Cell())


def _choices(experiment: Experiment, axis: str) -> Iterator[_Cell]:
    """Yield each choice of an axis, as a cell of this axis alone."""
    choices = experiment.axes[axis]
    if isinstance(choices, dict):
        for label, changes in choices.items():
            places = {key: experiment.place("axes", axis, label, key) for key in changes}
            yield _Cell({axis: label}, {axis: label}, changes, places)
        return
    for value, (label, shown) in zip(choices, choices_of(choices), strict=True):
        yield _Cell({axis: label}, {axis: shown}, {axis: value}, {axis: experiment.place("axes", axis)})


def _of_cell(
    experiment: Experiment,
    cell: _Cell,
    once: Callable[[Any, Callable[[], dict[str, Any]]], dict[str, Any]],
    *,
    fetch: bool,
) -> Iterator[Job]:
    """Yield the jobs of a cell; what several cells read is read `once`."""
    common: dict[str, Any] = {
        "cell": cell.labels,
        "values": cell.values,
        "postprocessing": _postprocessing(cell),
        "measure": experiment.measure.model_dump(mode="json"),
        "threads": experiment.threads,
    }
    if "checkpoint" in cell.changes:
        checkpoint = _checkpoint(experiment, cell)
        name, use = checkpoint.name, checkpoint.use
        inputs = once(asdict(checkpoint), lambda: checkpoint_inputs(name, use, fetch=fetch))
        yield Job(seed=None, recipe=None, checkpoint=checkpoint, inputs=inputs, **common)
        return
    recipe = with_paths(_recipe(experiment, cell), experiment.path)
    plain = recipe.model_dump(mode="json")
    read = {key: plain[key] for key in ("base", "pooling", "corpus", "views", "labelled", "tasks")}
    inputs = once(read, lambda: training_inputs(recipe, fetch=fetch))
    for seed in experiment.seeds:
        yield Job(seed=seed, recipe={**plain, "seed": seed}, checkpoint=None, inputs=inputs, **common)


def _postprocessing(cell: _Cell) -> dict[str, Any]:
    """Returns what is done to a cell's vectors, from `postprocessing` as a whole or from its parts."""
    whole = cell.changes.get("postprocessing")
    if whole is None or isinstance(whole, str):
        if whole not in _NAMED:
            place = cell.places["postprocessing"]
            raise UserError(
                f"{place}: postprocessing: {whole!r}: write none, whiten, or a mapping such as {{whiten: 256}}."
            )
        whole = _NAMED[whole]
    parts = {key: cell.changes[key] for key in _POSTPROCESSING if key in cell.changes}
    for key in parts:
        if key in whole:
            raise UserError(f"{cell.places[key]}: {key} is changed by postprocessing, too: leave it to one.")
    use = _use(cell, whole, _POSTPROCESSING, "postprocessing").processed(_use(cell, parts, _POSTPROCESSING))
    return {key: getattr(use, key) for key in _POSTPROCESSING}


def _use(cell: _Cell, options: Mapping[str, Any], allowed: Sequence[str], whole: str = "") -> Use:
    """Returns the use with some options of a cell, which are the values of its key `whole` or its own keys."""

    def mistake(key: str, message: str) -> UserError:
        return UserError(f"{cell.places[whole or key]}: {key}{message}")

    for key in options:
        if key not in allowed:
            raise mistake(key, f" cannot be changed of a checkpoint: {suggestion(key, allowed)}")
    from stsbench.encoders.template import Template  # noqa: F401 - TypeAdapter looks for the type of a field here

    try:
        use: Use = TypeAdapter(Use).validate_python(dict(options))
    except ValidationError as error:
        raise mistake(str(error.errors()[0]["loc"][0]), f": {error.errors()[0]['msg']}.") from error
    for key in options:
        least, value = ABOUT[key].least, getattr(use, key)
        if least is not None and value is not None and value < least:
            raise mistake(key, f": {value} is too small: give {least} or more.")
    return use


def _checkpoint(experiment: Experiment, cell: _Cell) -> GivenCheckpoint:
    """Returns the checkpoint of a cell and how it is used."""
    options = {
        key: value
        for key, value in cell.changes.items()
        if key not in {"checkpoint", "postprocessing", *_POSTPROCESSING}
    }
    use = _use(cell, options, _LOADING)
    if isinstance(use.template, str) and use.template.endswith((".yaml", ".yml")):
        use = replace(use, template=experiment.path(use.template))
    name = str(cell.changes["checkpoint"])
    return GivenCheckpoint(name if name == PACKAGED else experiment.path(name), use)


def _recipe(experiment: Experiment, cell: _Cell) -> Recipe:
    name = cell.changes.get("recipe", experiment.recipe)
    if name is None:
        raise UserError(
            f"experiment {experiment.name}: neither a recipe nor a checkpoint is named: add `recipe: NAME`, or an "
            "axis `recipe` or `checkpoint`."
        )
    settings = {"corpus.path": experiment.corpus, "base": experiment.base}
    wanted = {key: (value, experiment.place(key.partition(".")[0])) for key, value in settings.items() if value}
    wanted |= {key: (value, experiment.place("set", key)) for key, value in experiment.set.items()}
    wanted |= {
        "corpus.path" if key == "corpus" else key: (value, cell.places[key])
        for key, value in cell.changes.items()
        if key not in {"recipe", "postprocessing", *_POSTPROCESSING}
    }
    overrides = {f"{key}={json.dumps(value)}": place for key, (value, place) in wanted.items()}
    file = None if name in recipe_names() else _RECIPE_FILE.fullmatch(str(name))
    try:
        return read_recipe(experiment.path(file[1]) + file[2] if file else str(name), list(overrides))
    except UserError as error:
        # What the recipe's reader knows as an option was written in the experiment.
        for override, place in overrides.items():
            if str(error).startswith(f"--set {override}"):
                raise UserError(place + str(error).removeprefix(f"--set {override}")) from error
        raise
