"""What there is to do: the cells of an experiment, and its jobs, each known by a hash of what it does.

Jobs that measure one training in several ways (post-processed or not) are one unit: it trains once.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.base.words import suggestion
from stsbench.data.corpus import SAMPLE, corpus_file
from stsbench.experiments.experiment import LOADING, Changes, Experiment, PostprocessingChoice, label_of
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import read_recipe

_DIGITS = 12
_LONGEST_SLUG = 80

_NO_RESULT_OF = ("saving", "log_every")
"""Keys of a recipe that change nothing of what comes out."""


@dataclass(frozen=True)
class GivenCheckpoint:
    """A checkpoint that is measured as it is: what `load` takes, and how."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One cell with one seed: what is trained or taken, and what is measured of it.

    Attributes:
        cell: the label of each axis' value.
        values: each axis' value itself where it is a scalar, else its label.
        seed: of the training; None for a checkpoint.
        recipe: in full, as plain data, its corpus' path absolute; None for a checkpoint.
        corpus_sha256: of the corpus.
        checkpoint: None for a training.
        postprocessing: of the vectors.
        measure: what is measured.
        threads: that it computes with.
    """

    cell: Mapping[str, str]
    values: Mapping[str, Any]
    seed: int | None
    recipe: Mapping[str, Any] | None
    corpus_sha256: str | None
    checkpoint: GivenCheckpoint | None
    postprocessing: Mapping[str, Any]
    measure: Mapping[str, Any]
    threads: int

    @cached_property
    def unit(self) -> str:
        """The hash of what is trained or taken; jobs that share it are done together, and train or encode once."""
        if self.recipe is None:
            return _hash({"checkpoint": asdict(self._checkpoint), "threads": self.threads})
        recipe = {key: value for key, value in self.recipe.items() if key not in _NO_RESULT_OF}
        corpus = {key: value for key, value in self.recipe["corpus"].items() if key != "path"}
        text = {"sha256": self.corpus_sha256}
        return _hash({"recipe": recipe | {"corpus": corpus}, "corpus": text, "threads": self.threads})

    @cached_property
    def id(self) -> str:
        """The hash of all that it does. What axes and labels are called does not count, nor where files lie."""
        return _hash({"unit": self.unit, "postprocessing": self.postprocessing, "measure": self.measure})

    @property
    def _checkpoint(self) -> GivenCheckpoint:
        assert self.checkpoint is not None  # what has no recipe has one
        return self.checkpoint

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

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        plain = {**asdict(self), "id": self.id, "folder": self.folder, "unit": self.unit}
        written: dict[str, Any] = json.loads(json.dumps(plain))
        return written

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Job":
        """Return the job that `to_dict` wrote."""
        kept = {key: value for key, value in plain.items() if key not in {"id", "folder", "unit"}}
        checkpoint = kept["checkpoint"]
        return cls(**{**kept, "checkpoint": GivenCheckpoint(**checkpoint) if checkpoint else None})


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:_DIGITS]


def jobs_of(experiment: Experiment) -> tuple[Job, ...]:
    """Return the jobs of an experiment, cell by cell, the seeds of a cell together.

    Raises:
        UserError: if a recipe or a corpus is not there or a key or value is wrong, naming its line; or two cells
            are the same.

    >>> jobs = jobs_of(Experiment(name="a", recipe="demo", axes={"optimiser.batch": [32, 64]}, seeds=[1, 2]))
    >>> [job.label for job in jobs][:2]
    ['batch 32, seed 1', 'batch 32, seed 2']
    """
    jobs: dict[str, Job] = {}
    hashes: dict[str, str] = {}
    for cell in _cells(experiment):
        for job in _of_cell(experiment, cell, hashes):
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


@dataclass
class _Cell:
    """A cell before its jobs are made: labels and values by axis; its changes, and where each was written."""

    labels: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    changes: Changes = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def chosen(self, axis: str, label: str, value: Any, changes: Changes, places: dict[str, str]) -> "_Cell":
        """Return the cell with a further axis' choice."""
        for key in changes:
            if key in self.changes:
                raise UserError(f"{places[key]}: {key} is changed by two axes; leave it to one of them.")
        return _Cell(
            {**self.labels, axis: label},
            {**self.values, axis: value},
            {**self.changes, **changes},
            {**self.places, **places},
        )


def _cells(experiment: Experiment) -> Iterator[_Cell]:
    """Yield the cells, those of the last axis side by side."""
    axes = [list(_choices(experiment, name)) for name in experiment.axes]
    for choices in product(*axes):
        cell = _Cell()
        for name, choice in zip(experiment.axes, choices, strict=True):
            cell = cell.chosen(name, *choice)
        yield cell


def _choices(experiment: Experiment, axis: str) -> Iterator[tuple[str, Any, Changes, dict[str, str]]]:
    """Yield the label and value of each choice of an axis, its changes, and where each was written."""
    choices = experiment.axes[axis]
    if isinstance(choices, dict):
        for label, changes in choices.items():
            places = {key: experiment.place("axes", axis, label, key) for key in changes}
            yield label, label, changes, places
        return
    for value in choices:
        yield label_of(value), _scalar(value), {axis: value}, {axis: experiment.place("axes", axis)}


def _scalar(value: Any) -> Any:
    return value if isinstance(value, int | float | str) else label_of(value)


def _of_cell(experiment: Experiment, cell: _Cell, hashes: dict[str, str]) -> Iterator[Job]:
    """Yield the jobs of a cell; `hashes` holds those of the corpora that were read before."""
    common: dict[str, Any] = {
        "cell": cell.labels,
        "values": cell.values,
        "postprocessing": _postprocessing(cell).model_dump(),
        "measure": experiment.measure.model_dump(mode="json"),
        "threads": experiment.threads,
    }
    if "checkpoint" in cell.changes:
        yield Job(seed=None, recipe=None, corpus_sha256=None, checkpoint=_checkpoint(cell), **common)
        return
    recipe = _recipe(experiment, cell)
    path = recipe.corpus.path
    if path is not None and path not in hashes:
        hashes[path] = sha256_of(corpus_file(path))
    plain = recipe.model_dump(mode="json")
    if path not in {None, SAMPLE}:
        plain["corpus"]["path"] = str(Path(str(path)).expanduser().absolute())
    for seed in experiment.seeds:
        yield Job(
            seed=seed,
            recipe={**plain, "seed": seed},
            corpus_sha256=hashes.get(str(path)),
            checkpoint=None,
            **common,
        )


def _postprocessing(cell: _Cell) -> PostprocessingChoice:
    try:
        return PostprocessingChoice.model_validate(cell.changes.get("postprocessing"))
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UserError(f"{cell.places['postprocessing']}: postprocessing: {message}.") from error


def _checkpoint(cell: _Cell) -> GivenCheckpoint:
    options = {key: value for key, value in cell.changes.items() if key not in {"checkpoint", "postprocessing"}}
    for key in options:
        if key not in LOADING:
            raise UserError(
                f"{cell.places[key]}: {key} cannot be changed of a checkpoint that is measured as it is: "
                f"{suggestion(key, LOADING)}"
            )
    return GivenCheckpoint(str(cell.changes["checkpoint"]), options)


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
        if key not in {"recipe", "postprocessing"}
    }
    overrides = {f"{key}={json.dumps(value)}": place for key, (value, place) in wanted.items()}
    try:
        return read_recipe(str(name), list(overrides))
    except UserError as error:
        # What the recipe's reader knows as an option was written in the experiment.
        for override, place in overrides.items():
            if str(error).startswith(f"--set {override}"):
                raise UserError(place + str(error).removeprefix(f"--set {override}")) from error
        raise
