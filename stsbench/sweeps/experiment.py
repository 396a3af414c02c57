"""The experiment file: trainings or checkpoints, axes, seeds and tasks.

A cell is one choice of every axis; a job is a cell with one seed. `docs/how-to/sweep.md` has examples.
"""

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from stsbench.base.errors import UserError
from stsbench.base.parsing import first_mistake, known_keys, read_draft
from stsbench.base.words import suggestion

EXPERIMENT = "experiment.yaml"
"""The name of the experiment's file; a folder with it is an experiment."""

COLUMNS = ("job", "seed", "state", "seconds", "threads", "folder")
"""Columns of the table of jobs, besides the axes and the measures."""

OF_CELLS = ("cell", "measure", "runs", "mean", "sd", "low", "high", "interval", "seed_share", "pair_share")
"""Columns of the table of cells, besides the axes."""

_RESERVED = {*COLUMNS, *OF_CELLS, "seeds", "value", "hours", "95 %"}

_SET_BY_SWEEPS = {"runs", "progress", "data_dirs"}
"""Arguments of an analysis that an experiment cannot set."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Measure(_Part):
    """The measurements of every checkpoint.

    Attributes:
        tasks: names as in `stsbench run --tasks`; None for none.
        protocol: a name as in `stsbench run --protocol`.
        classifier: the classifier of the transfer tasks.
        kfold: the number of folds of the transfer tasks.
        analyses: analyses with their options (`{geometry: {task: STS-B}}`), or a list of names.
        last: also measures the last step of a training on the tasks, as `last: STS16`.
    """

    tasks: str | None = "sts"
    protocol: str = "simcse"
    classifier: Literal["logreg", "mlp-adam"] = "logreg"
    kfold: int = Field(10, ge=2)
    analyses: dict[str, dict[str, Any]] = {}
    last: bool = False

    @field_validator("analyses", mode="before")
    @classmethod
    def _check_analyses(cls, value: Any) -> Any:
        from stsbench.analysis import ANALYSES, analysis

        options = {str(name): {} for name in value} if isinstance(value, list | tuple) else value
        if not isinstance(options, dict):
            raise ValueError("name analyses in a list, or as a mapping to their options")  # noqa: TRY004
        for name, chosen in options.items():
            if name not in ANALYSES:
                raise ValueError(f"unknown analysis {name!r}; {suggestion(name, ANALYSES).rstrip('.')}")
            known = [key for key in signature(analysis(name).verb).parameters if key not in _SET_BY_SWEEPS]
            for option in chosen or {}:
                if option not in known:
                    raise ValueError(f"{name} has no option {option!r}; {suggestion(option, known).rstrip('.')}")
        return {name: chosen or {} for name, chosen in options.items()}

    @model_validator(mode="after")
    def _require_a_measure(self) -> Self:
        if self.tasks is None and not self.analyses:
            raise ValueError("there is nothing to measure: add tasks or analyses")
        return self


class Experiment(_Part):
    """An experiment: recipes or checkpoints, along axes and over seeds.

    An axis is a list of values of the key that it is named after (`optimiser.batch: [32, 64]`, `recipe: [a, b]`,
    `checkpoint: [minilm, my/folder]`, `postprocessing: [none, whiten]`), or a mapping whose labels each change
    several keys (`method: {plain: {recipe: simcse-bert-base}, no queue: {negatives.queue: null}}`).

    Attributes:
        name: its folder is `runs/NAME` by default.
        about: its purpose, in a sentence.
        recipe: the recipe to train; an axis may name others.
        corpus: the training corpus; by default the recipe's.
        base: the checkpoint that training starts from; by default the recipe's.
        set: changes to the recipe in all cells.
        axes: by name.
        seeds: of the trainings. A checkpoint that is measured without training has none, and is one job.
        measure: the measurements of each checkpoint.
        threads: per job, wherever it runs.
        slurm: parameters of `submitit.AutoExecutor`, such as `{slurm_partition: gpu, timeout_min: 600}`.
        ray: options of `ray.remote`, such as `{num_gpus: 1}`.
        relative_to: the folder that relative file names start from; None for the one where the sweep is started,
            which is then stored in the experiment's folder.

    >>> Experiment(name="a", recipe="demo", axes={"optimiser.batch": [32, 64]}, measure={"tasks": "sample"}).seeds
    (42,)
    """

    name: str = Field(pattern=r"^[\w.-]+$")
    about: str = ""
    recipe: str | None = None
    corpus: str | None = None
    base: str | None = None
    set: dict[str, Any] = {}
    axes: dict[str, tuple[Any, ...] | dict[str, dict[str, Any]]] = {}
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**32)], ...] = Field((42,), min_length=1)
    measure: Measure = Measure()
    threads: int = Field(1, ge=1, le=1024)
    slurm: dict[str, Any] = {}
    ray: dict[str, Any] = {}
    relative_to: str | None = None

    @model_validator(mode="after")
    def _check_axes(self) -> Self:
        for name, values in self.axes.items():
            if name in _RESERVED:
                why = "seeds belong under `seeds`" if "seed" in name else "a column has this name: choose another"
                raise ValueError(f"axes.{name}: {why}")
            if not values:
                raise ValueError(f"axes.{name} has no value: add some")
            if isinstance(values, dict):
                continue
            labels = list(map(label_of, values))
            if twice := [label for label in labels if labels.count(label) > 1]:
                raise ValueError(f"axes.{name} has the value {twice[0]} twice: remove one")
        return self


def read_experiment(path: str | Path) -> Experiment:
    """Reads an experiment from a YAML file.

    Raises:
        UserError: if there is no such file, or a mistake in it, with its line.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise UserError(f"there is no experiment {file}: check the path.")
    draft = read_draft(file, "an experiment", "`stsbench sweep --help`")
    try:
        return Experiment.model_validate(draft.values)
    except ValidationError as error:
        raise UserError(first_mistake(error, draft, str(file), known_keys(Experiment))) from error


def label_of(value: Any) -> str:
    """Returns the label of an axis' value.

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
