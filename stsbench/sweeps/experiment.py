"""The experiment file: what is trained or taken, along which axes, with which seeds, and what is measured of each.

A cell is one choice of every axis; a job is a cell with one seed. See `docs/how-to/sweep.md` for an example.
"""

import json
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator, model_validator

from stsbench.base.errors import UserError
from stsbench.base.parsing import Keys, first_mistake, known_keys, read_draft
from stsbench.base.words import listed, suggestion

EXPERIMENT = "experiment.yaml"
"""The name of the experiment's file in its folder; it makes a folder one."""

_GIVEN = {"runs", "progress", "data_dirs"}
"""Arguments of an analysis' verb that an experiment does not set."""

Value = Any
"""Of a key: a scalar, a list or a mapping, as YAML has them."""

Changes = dict[str, Value]
"""Keys with their values: `recipe`, `checkpoint`, `corpus`, `base`, `postprocessing` and its parts, and keys of
the recipe (`optimiser.batch`), or for a checkpoint how it is loaded (`template`)."""


class _Part(BaseModel):
    """A part of an experiment: it cannot be changed, and takes no key that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Measure(_Part):
    """What is measured of every job's checkpoint.

    Attributes:
        tasks: as `stsbench run --tasks` names them, with commas; None for none.
        protocol: as `stsbench run --protocol` names it.
        classifier: of the transfer tasks.
        kfold: folds of the transfer tasks.
        analyses: by name, with the options that the analysis' function takes (`{geometry: {task: STS-B}}`, or a
            list of names).
        last: whether the checkpoint of a training's last step is measured on the tasks, too; its measures are
            named `last: STS16`.
    """

    tasks: str | None = "sts"
    protocol: str = "simcse"
    classifier: Literal["logreg", "mlp-adam"] = "logreg"
    kfold: int = Field(10, ge=2)
    analyses: dict[str, dict[str, Any]] = {}
    last: bool = False

    @field_validator("tasks", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return ",".join(map(str, value))
        return value

    @field_validator("analyses", mode="before")
    @classmethod
    def _analyses(cls, value: Any) -> Any:
        from stsbench.analysis import ANALYSES, analysis

        if isinstance(value, str):
            value = [value]
        options = {str(name): {} for name in value} if isinstance(value, list | tuple) else value
        if not isinstance(options, dict):
            raise ValueError("name analyses in a list, or as a mapping to their options")  # noqa: TRY004
        for name, chosen in options.items():
            if name not in ANALYSES:
                raise ValueError(f"unknown analysis {name!r}; {suggestion(name, ANALYSES).rstrip('.')}")
            for option in chosen or {}:
                known = [key for key in signature(analysis(name).verb).parameters if key not in _GIVEN]
                if option not in known:
                    raise ValueError(f"{name} has no option {option!r}; {suggestion(option, known).rstrip('.')}")
        return {name: chosen or {} for name, chosen in options.items()}

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.tasks is None and not self.analyses:
            raise ValueError("neither tasks nor analyses are named: there is nothing to measure")
        return self


class Slurm(_Part):
    """What Slurm is asked for, for each job of the array.

    Attributes:
        partition: where to; None for the cluster's own.
        time: minutes that a job may take.
        memory: gigabytes.
        gpus: of a job.
        array: how many run at once at most.
        setup: shell lines before a job: `module load ...`.
        more: further parameters of `sbatch`, as submitit's `slurm_additional_parameters`.
    """

    partition: str | None = None
    time: int = Field(24 * 60, ge=1)
    memory: float | None = Field(None, gt=0)
    gpus: int = Field(0, ge=0)
    array: int = Field(64, ge=1)
    setup: tuple[str, ...] = ()
    more: dict[str, Any] = {}


class Ray(_Part):
    """What a Ray cluster is asked for, for each job.

    Attributes:
        address: of a running cluster; None for the one that `RAY_ADDRESS` names, or a new one on this machine.
        gpus: of a job; may be a share.
        memory: gigabytes that a job needs; None for unknown.
        retries: how often a job is started again whose worker was lost.
    """

    address: str | None = None
    gpus: float = Field(0, ge=0)
    memory: float | None = Field(None, gt=0)
    retries: int = Field(3, ge=0)


class Experiment(_Part):
    """An experiment: recipes, or checkpoints as they are, along axes and over seeds.

    An axis is a list of values of the key that it is named after (`optimiser.batch: [32, 64]`, `recipe: [a, b]`,
    `checkpoint: [minilm, my/folder]`, `postprocessing: [none, whiten]`), or a mapping whose labels each stand for
    changes of several keys (`method: {plain: {recipe: simcse-bert-base}, no queue: {negatives.queue: null}}`).

    Attributes:
        name: of the experiment; its folder is `runs/NAME` by default.
        about: what it is for, in a sentence.
        recipe: what is trained, where no axis names another.
        corpus: what is trained on; by default the recipe's.
        base: what training starts from; by default the recipe's.
        set: changes to the recipe for all cells.
        axes: by name.
        seeds: of the trainings. A checkpoint that is measured as it is has none, and is one job.
        measure: what is measured of each.
        keep: `record` alone (the checkpoint is deleted when it was measured), or `checkpoint` too.
        threads: of every job, wherever it runs.
        slurm: what Slurm is asked for.
        ray: what Ray is asked for.
        relative_to: the folder that relative names of files start from; None for the one where the sweep is begun,
            whose name is then written into the experiment's folder.

    >>> Experiment(name="a", recipe="demo", axes={"optimiser.batch": [32, 64]}, measure={"tasks": "sample"}).seeds
    (42,)
    """

    name: str = Field(pattern=r"^[\w.-]+$")
    about: str = ""
    recipe: str | None = None
    corpus: str | None = None
    base: str | None = None
    set: dict[str, Any] = {}
    axes: dict[str, tuple[Value, ...] | dict[str, Changes]] = {}
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**32)], ...] = Field((42,), min_length=1)
    measure: Measure = Measure()
    keep: Literal["record", "checkpoint"] = "record"
    threads: int = Field(1, ge=1, le=1024)
    slurm: Slurm = Slurm()
    ray: Ray = Ray()
    relative_to: str | None = None

    _places: dict[Keys, str] = PrivateAttr(default_factory=dict)

    @field_validator("seeds", mode="before")
    @classmethod
    def _a_seed_once(cls, seeds: Any) -> Any:
        seeds = [seeds] if isinstance(seeds, int) and not isinstance(seeds, bool) else seeds
        if isinstance(seeds, list | tuple):
            twice = [seed for place, seed in enumerate(seeds) if seed in seeds[:place]]
            if twice:
                raise ValueError(f"{twice[0]} stands there twice, and would be counted twice: remove one")
        return seeds

    @model_validator(mode="after")
    def _axes_vary(self) -> Self:
        for name, values in self.axes.items():
            if name in {"seed", "seeds"}:
                raise ValueError(f"axes.{name}: seeds are no axis, they stand under `seeds`")
            if not values:
                raise ValueError(f"axes.{name} has no value: give it some")
            if isinstance(values, dict):
                continue
            if len(values) == 1:
                raise ValueError(f"axes.{name} has one value, and an axis needs two: put a single one under `set`")
            texts = [json.dumps(value, sort_keys=True, default=str) for value in values]
            twice = next((text for text in texts if texts.count(text) > 1), None)
            if twice is not None:
                raise ValueError(f"axes.{name} has the value {twice} twice: remove one")
        return self

    def path(self, name: str) -> str:
        """Return a name as an absolute path if a file or folder of that name exists; else unchanged.

        A relative name starts from `relative_to`, not from where this process happens to run.
        """
        named = Path(name).expanduser()
        path = Path(self.relative_to or ".").expanduser().absolute() / named
        return str(path) if path.exists() or named.exists() else name

    def place(self, *keys: str) -> str:
        """Return where a key was written: file and line, or the experiment's name if it was made in Python."""
        path = keys
        while path and path not in self._places:
            path = path[:-1]
        return self._places.get(path, f"experiment {self.name}")


def read_experiment(path: str | Path) -> Experiment:
    """Read an experiment from a YAML file."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise UserError(f"there is no experiment {file}: check the path.")
    draft = read_draft(file, "an experiment", "`stsbench sweep --help`")
    try:
        experiment = Experiment.model_validate(draft.values)
    except ValidationError as error:
        raise UserError(first_mistake(error, draft, str(file), known_keys(Experiment))) from error
    experiment._places = draft.places
    return experiment


def label_of(value: Value) -> str:
    """Return a value of an axis as its label.

    >>> label_of(0.32), label_of({"whiten": 256}), label_of(None), label_of([3, 5])
    ('0.32', 'whiten 256', 'none', '3 5')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {label_of(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(label_of, value))
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def choices_of(values: Sequence[Value]) -> list[tuple[str, Value]]:
    """Return the label of each value of an axis, and what stands for it in tables; no two are alike.

    Where two values would have one label, each is written as JSON writes it; what is no number and no text has its
    label in its place.

    >>> choices_of([0.1, 0.2]), choices_of([None, {"whiten": 8}])
    ([('0.1', 0.1), ('0.2', 0.2)], [('none', 'none'), ('whiten 8', 'whiten 8')])
    >>> choices_of([None, "none"]), choices_of([1, True])
    ([('null', 'null'), ('"none"', '"none"')], [('1', '1'), ('yes', 'yes')])
    """
    labels = list(map(label_of, values))
    are_alike = len(set(labels)) < len(labels)
    if are_alike:
        labels = [json.dumps(value, ensure_ascii=False, sort_keys=True) for value in values]
    plain = [
        value if isinstance(value, int | float | str) else label
        for value, label in zip(values, labels, strict=True)
    ]
    # To Python 1 is True.
    return list(zip(labels, labels if are_alike or len(set(plain)) < len(plain) else plain, strict=True))


def described(experiment: Experiment) -> str:
    """Return the axes and seeds as a phrase.

    >>> described(Experiment(name="a", recipe="demo", axes={"optimiser.batch": [32, 64]}, seeds=[1, 2]))
    'optimiser.batch (2 values) x 2 seeds'
    """
    axes = [f"{name} ({len(values)} values)" for name, values in experiment.axes.items()]
    seeds = f"{len(experiment.seeds)} seed{'s' if len(experiment.seeds) > 1 else ''}"
    return f"{listed(axes)} x {seeds}" if axes else seeds
