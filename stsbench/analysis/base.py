"""The base class of analyses: one declaration gives verb, command, tables, figure and report section.

An analysis is a subclass with a question, its parameters, and `measure`, which yields the rows of a model.
`OfTasks`, `OfVectors` and `OfSentences` provide what most analyses measure. `stsbench.analysis` lists all
analyses.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter as Argument
from inspect import Signature, cleandoc
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import pandas as pd

from stsbench.analysis.estimates import Estimates
from stsbench.analysis.inputs import PairVectors, ScoredVectors, analysable, scored_vectors, task_vectors
from stsbench.analysis.parameters import DATA_DIRS, INTERVALS, OWN_DATA, SPLIT, TASK, TASKS, TEXT, Parameter
from stsbench.base.progress import Progress, silent
from stsbench.records.kinds import ALL_TASKS, AVERAGE
from stsbench.render.charts import draw_by_model
from stsbench.render.figures import colours, legend_above, new_figure, style, svg_of
from stsbench.render.result import Result
from stsbench.render.section import ReportFigure, Section
from stsbench.render.table import interval
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import Subject, Wanted, tasks_by_model
from stsbench.statistics.influence import Linear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]
Key = tuple[str, str]
"""Measure and group of an estimate."""


class Analysis(Result):
    """An analysis with its parameters and, after `run`, its result.

    The docstring of a subclass is the help of its command and, with `Returns`, the documentation of its verb.
    """

    name: ClassVar[str]
    """The name of the command; with underscores, of the verb."""

    title: ClassVar[str]
    """The heading in pages and reports."""

    question: ClassVar[str]
    """The question it answers, for the documentation."""

    look_for: ClassVar[str]
    """The result that deserves attention, for the documentation."""

    examples: ClassVar[tuple[str, ...]]
    """Command lines for `--help`."""

    columns: ClassVar[tuple[str, ...]] = ()
    """The columns of `frame` in order; by default those of the rows."""

    parameters: ClassVar[Mapping[str, Parameter]] = {}
    """The parameters by name, collected from the class attributes."""

    verb: ClassVar[Any]
    """The function that runs the analysis."""

    has_interval_options: ClassVar[bool] = True
    """Whether the command of an analysis with `intervals` has options for them."""

    measures_pairs: ClassVar[bool] = False
    """Whether the tasks of a run determine the sentences."""

    def __init_subclass__(cls) -> None:
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Parameter)}
        cls.parameters = {**cls.parameters, **own}
        if "name" in vars(cls):
            cls.verb = staticmethod(_verb(cls))

    def __init__(self, frame: pd.DataFrame | None = None, **options: Any) -> None:
        """Sets and checks the parameters.

        Args:
            frame: a result that was computed before.
            **options: the parameters.
        """
        for name in options:
            if name not in self.parameters:
                raise TypeError(f"{self.name.replace('-', '_')}() got an unexpected keyword argument {name!r}")
        for name, about in self.parameters.items():
            value = options.get(name, about.default)
            about.check(name, value)
            setattr(self, name, value)
        self.constants: Row = {}
        """Columns with the same value in all rows."""
        self.progress: Progress = silent
        self._frame = pd.DataFrame() if frame is None else frame

    @property
    def frame(self) -> pd.DataFrame:
        """The result as a tidy table."""
        return self._frame

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes under the table."""
        return ()

    @property
    def how(self) -> Intervals:
        """How intervals are computed."""
        return getattr(self, "intervals", None) or Intervals()

    def run(self, runs: Wanted | Sequence[Wanted] | None = None, progress: Progress = silent) -> Self:
        """Analyses runs and models; returns self with the result."""
        self.progress = progress
        return self.compute(self.inputs(analysable(runs)))

    @abstractmethod
    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Any]:
        """Returns what is measured, by model."""

    @abstractmethod
    def measure(self, model: str, given: Any) -> Iterable[Row]:
        """Yields the rows of a model without the column `model`."""

    def compute(self, inputs: Mapping[str, Any]) -> Self:
        """Measures the inputs of all models; returns self with the result."""
        rows = [
            {"model": model} | row | self.constants
            for model, given in inputs.items()
            for row in self.measure(model, given)
        ]
        self._frame = pd.DataFrame(rows, columns=list(self.columns) or None)
        return self

    @classmethod
    def in_explain(cls, options: Mapping[str, Any]) -> Row:
        """Returns the options of `explain` that are parameters, too."""
        return {name: value for name, value in options.items() if name in cls.parameters}

    @classmethod
    def own_options(cls) -> dict[str, Parameter]:
        """Returns the options of the command."""
        return {name: about for name, about in cls.parameters.items() if about.has_option}

    @classmethod
    def from_options(cls, options: Row, use: Any) -> Row:  # noqa: ARG003 (for subclasses that load models)
        """Returns the parameters that the options of the command set."""
        return options

    @property
    def headline(self) -> pd.DataFrame:
        """The rows of each model's average or of all its tasks together; for a model with one task, all rows."""
        return headline(self.frame)

    def numbers(self) -> dict[str, float]:
        """Returns the main numbers of one model by name; by default none."""
        return {}

    @abstractmethod
    def plot(self) -> "Figure":
        """Returns the figure."""

    def section(self) -> Section:
        """Returns the section of a report."""
        tables = tuple(
            replace(table, name=f"{self.name}-{number}")
            for number, table in enumerate(self.table(), 1)
            if len(table.frame)
        )
        alt = f"{self.title}; the numbers are in the tables above."
        figure = ReportFigure(f"figure-{self.name}", self.title, alt, svg_of(self.plot()))
        return Section(self.name, self.title, tables=tables, figures=(figure,))


class OfTasks(Analysis):
    """An analysis of the scored pairs of tasks, a list of `ScoredTask` per model."""

    measures_pairs = True

    tasks = TASKS
    data_dirs = DATA_DIRS

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Any]:
        """Returns the scored tasks of each model."""
        return tasks_by_model(subjects, self.tasks, data_dirs=self.data_dirs, progress=self.progress)


class TaskEstimates(NamedTuple):
    """The estimates of a task by measure and group, and the other columns of their rows."""

    estimates: Mapping[Key, Linear]
    about: Row


class OfVectors(OfTasks):
    """An analysis of the distinct sentences of tasks, a list of `ScoredVectors` per model.

    By default each task is measured by `measure_task`, and several tasks are averaged.
    """

    data = OWN_DATA
    intervals: Intervals | None = INTERVALS

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Any]:
        """Returns the vectors of the tasks' sentences."""
        return scored_vectors(
            subjects, self.tasks, data=self.data, data_dirs=self.data_dirs, progress=self.progress
        )

    def measure(self, model: str, given: Sequence[ScoredVectors]) -> Iterator[Row]:
        """Yields the rows of each task and of the average over several."""
        estimates = Estimates(self.how)
        for task in given:
            task.require_directions(model)
        measured = self.measure_tasks(model, given, estimates)
        for task, (of_task, about) in zip(given, measured, strict=True):
            yield from self.rows(task.task, of_task, about, estimates)
        if len(given) > 1:
            means = {key: mean([of_task[key] for of_task, _ in measured]) for key in measured[0].estimates}
            yield from self.rows(AVERAGE, means, self.about_average(given, measured), estimates)

    def measure_tasks(
        self, model: str, tasks: Sequence[ScoredVectors], estimates: Estimates
    ) -> list[TaskEstimates]:
        """Returns the estimates of each task."""
        return [self.measure_task(model, task, estimates) for task in tasks]

    def measure_task(self, model: str, task: ScoredVectors, estimates: Estimates) -> TaskEstimates:
        """Returns the estimates of a task, whose dependent items it registers with `estimates.block`."""
        raise NotImplementedError

    def about_average(self, tasks: Sequence[ScoredVectors], measured: Sequence[TaskEstimates]) -> Row:
        """Returns the other columns of an average."""
        raise NotImplementedError

    def rows(self, task: str, of_task: Mapping[Key, Linear], about: Row, estimates: Estimates) -> Iterator[Row]:
        """Yields a row with value and interval for each estimate."""
        raise NotImplementedError


class OfSentences(Analysis):
    """An analysis of the sentences of one task, a `PairVectors` per model."""

    task = TASK
    split = SPLIT
    text = TEXT
    data_dirs = DATA_DIRS

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, PairVectors]:
        """Returns the vectors of the task's sentences."""
        data, vectors = task_vectors(
            subjects, self.task, self.split, self.text, data_dirs=self.data_dirs, progress=self.progress
        )
        self.constants = {"task": data.task, "split": data.split, "text": data.text}
        return vectors


def _verb(cls: type[Analysis]) -> Any:
    """Returns the function that runs an analysis, with the parameters in its signature and docstring."""
    annotations = {
        name: hint
        for kind in reversed(cls.__mro__)
        for name, hint in vars(kind).get("__annotations__", {}).items()
    }
    keywords = [
        Argument(name, Argument.KEYWORD_ONLY, default=about.default, annotation=annotations.get(name, Any))
        for name, about in cls.parameters.items()
    ]
    runs = Argument("runs", Argument.POSITIONAL_OR_KEYWORD, default=None)
    progress = Argument("progress", Argument.KEYWORD_ONLY, default=silent)
    signature = Signature([runs, *keywords, progress], return_annotation=cls)

    # Sphinx reads defaults from the source, so there are none in it.
    def verb(*arguments: Any, **options: Any) -> Analysis:
        others = {name: options.pop(name) for name in ("runs", "progress") if name in options}
        given = signature.bind(*arguments, **others).arguments
        return cls(**options).run(given.get("runs"), given.get("progress", silent))

    verb.__signature__ = signature  # type: ignore[attr-defined]
    verb.__name__ = verb.__qualname__ = cls.name.replace("-", "_")
    verb.__module__ = cls.__module__
    summary, returns, rest = cleandoc(cls.__doc__ or "").partition("\nReturns:")
    arguments = {
        "runs": "Records or their folders, loaded encoders, or models that `load` accepts.",
        **{name: about.help for name, about in cls.parameters.items()},
        "progress": "Called with the progress.",
    }
    lines = "".join(f"\n    {name}: {text}" for name, text in arguments.items())
    verb.__doc__ = f"{summary}\nArgs:{lines}\n{returns}{rest}"
    return verb


def mean(estimates: Sequence[Linear]) -> Linear:
    """Returns the mean of estimates with its terms."""
    return total(estimates) / len(estimates)


def total(estimates: Sequence[Linear]) -> Linear:
    """Returns the sum of estimates with its terms."""
    first, *others = estimates
    return sum(others, first)


def headline(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of each model's average or of all its tasks together; for a model with one task, all."""
    over_tasks = frame["task"].isin([AVERAGE, ALL_TASKS])
    has_several = over_tasks.groupby(frame["model"]).transform("any")
    return frame[over_tasks | ~has_several]


def similarity_notes(frame: pd.DataFrame) -> tuple[str, ...]:
    """Returns a note for each model whose similarity is not the cosine."""
    models = frame.drop_duplicates("model")
    others = models[models["similarity"].notna() & (models["similarity"] != "cosine")]
    return tuple(
        f"{model}: the similarity is {similarity}."
        for model, similarity in zip(others["model"], others["similarity"], strict=True)
    )


def with_intervals(
    rows: pd.DataFrame, keys: Sequence[str], *, scale: Mapping[str, float] | None = None, digits: int = 2
) -> pd.DataFrame:
    """Returns a row for each combination of the keys, with value and interval of each measure.

    Args:
        rows: the keys, `measure`, `value`, `low` and `high`.
        keys: columns that identify a row of the table; others that it repeats.
        scale: factors of measures.
        digits: decimals of the intervals.
    """
    table: dict[tuple[Any, ...], Row] = {}
    for row in rows.to_dict("records"):
        key = {name: row[name] for name in keys}
        name, factor = row["measure"], (scale or {}).get(row["measure"], 1)
        value, low, high = (factor * row[column] for column in ("value", "low", "high"))
        table.setdefault(tuple(key.values()), key).update(
            {name: value, f"{name}: interval": interval(low, high, digits)}
        )
    return pd.DataFrame(list(table.values()))


def in_columns(rows: pd.DataFrame, keys: list[str], columns: str, values: str) -> pd.DataFrame:
    """Pivots to wide format, keeping the order in which keys and columns first occur."""
    wide = rows.pivot_table(index=keys, columns=columns, values=values, sort=False, aggfunc="first", dropna=False)
    return wide.reindex(pd.MultiIndex.from_frame(rows[keys].drop_duplicates())).dropna(how="all")


def draw_panels(
    frame: pd.DataFrame, panels: Mapping[str, pd.DataFrame], *, height: float, shared: bool
) -> "Figure":
    """Draws values with intervals by place, with the models side by side, in panels below each other.

    Args:
        frame: the frame of the analysis, for the colours of its models.
        panels: by label of the vertical axis: columns `model`, `place`, `value`, `low` and `high`.
        height: of the figure, in inches.
        shared: whether the panels share their places.
    """
    drawn = {model for rows in panels.values() for model in rows["model"]}
    palette = {model: colour for model, colour in colours(list(frame["model"])).items() if model in drawn}
    with style():
        figure = new_figure(height=height)
        axes = figure.subplots(len(panels), 1, sharex=shared, squeeze=False)[:, 0]
        for panel, (label, rows) in zip(axes, panels.items(), strict=True):
            draw_by_model(panel, rows, palette)
            panel.set_ylabel(label)
        legend_above(figure, axes[0])
    return figure
