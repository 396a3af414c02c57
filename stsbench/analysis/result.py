"""What an analysis is made of: a result with a table, a figure and a report section, and a command.

An analysis is a file with a function that gets its input and returns such a result, and a class for its command,
which is made from the function; `stsbench.analysis` has a line for it. The command line, `explain`, reports and
the documentation find it there. The files are imported to print a command's help: what is slow to import is so
where it is used.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from stsbench.cli.options import IntervalChoice, names
from stsbench.encoders.use import Use
from stsbench.records.kinds import ALL_TASKS, AVERAGE
from stsbench.render.figures import svg_of
from stsbench.render.result import Result
from stsbench.render.section import ReportFigure, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class AnalysisResult(Result):
    """What an analysis returns: its tidy table, and the ways to show it."""

    name: ClassVar[str]
    """The command's name."""

    title: ClassVar[str]
    """The heading in pages and reports."""

    question: ClassVar[str]
    """What it answers, for the documentation."""

    look_for: ClassVar[str]
    """What a reader should look for."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    @property
    def frame(self) -> pd.DataFrame:
        """The tidy table."""
        return self._frame

    @abstractmethod
    def plot(self) -> "Figure":
        """Draw it."""

    def numbers(self) -> dict[str, float]:
        """Return the few numbers that stand for it, by name, where it is of one model; by default none."""
        return {}

    def section(self) -> Section:
        """Return it as a part of a report."""
        tables = tuple(
            replace(table, name=f"{self.name}-{number}")
            for number, table in enumerate(self.table(), 1)
            if len(table.frame)
        )
        alt = f"{self.title}; the numbers stand in the tables above it."
        figure = ReportFigure(f"figure-{self.name}", self.title, alt, svg_of(self.plot()))
        return Section(self.name, self.title, tables=tables, figures=(figure,))


@dataclass(frozen=True)
class AnalysisCommand:
    """The command of an analysis: its docstring is the help, its fields are the command's own options."""

    verb: ClassVar[Callable[..., AnalysisResult]]
    """The function that makes the analysis."""

    result: ClassVar[type[AnalysisResult]]
    """What that function returns."""

    of_pairs: ClassVar[bool] = False
    """Whether it analyses the scored pairs of a run. If not, a run's tasks do not determine the sentences."""

    def models(self, use: Use) -> dict[str, Any]:
        """Returns the options that name models, with the models loaded; by default there is no such option."""
        return {}

    def keywords(self) -> dict[str, Any]:
        """Returns the options as the function takes them; None leaves the function's own default."""
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        if isinstance(options.get("tasks"), str):
            options["tasks"] = names(options["tasks"])
        return {name: value for name, value in options.items() if value is not None}

    @classmethod
    def explained(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return those options of `explain` that the function has, too."""
        own = signature(cls.verb).parameters
        return {name: value for name, value in options.items() if name in own}

    def names_data(self, *, runs: bool) -> bool:
        """Return whether the data was chosen explicitly: by an option, or by naming runs."""
        choices = [getattr(self, name) for name in ("task", "tasks") if hasattr(self, name)]
        return not choices or any(choices) or (runs and self.of_pairs)


@dataclass(frozen=True)
class CommandWithIntervals(AnalysisCommand, IntervalChoice):
    """The command of an analysis whose function takes `intervals`, with `--interval` and `--no-intervals`."""

    def keywords(self) -> dict[str, Any]:
        """Returns the options as the function takes them."""
        from stsbench.scoring.settings import Intervals

        options = super().keywords()
        del options["interval"], options["no_intervals"]
        return {"intervals": Intervals(self.dependence), **options}


def headline(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each model's average or of all its tasks together; of a model with one task, all rows."""
    over_tasks = frame["task"].isin([AVERAGE, ALL_TASKS])
    has_several = over_tasks.groupby(frame["model"]).transform("any")
    return frame[over_tasks | ~has_several]


def similarity_notes(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return a note for each model whose similarity is not the cosine."""
    models = frame.drop_duplicates("model")
    others = models[models["similarity"].notna() & (models["similarity"] != "cosine")]
    return tuple(
        f"{model}: the similarity is {similarity}."
        for model, similarity in zip(others["model"], others["similarity"], strict=True)
    )


def in_columns(rows: pd.DataFrame, keys: list[str], columns: str, values: str) -> pd.DataFrame:
    """Return a row for each of the keys that is there, and its values by what they have in another column.

    Both stand in the order in which they first occur. pandas would make every combination of the keys, ordered by
    where each part of them first stood.
    """
    wide = rows.pivot_table(index=keys, columns=columns, values=values, sort=False, aggfunc="first", dropna=False)
    return wide.reindex(pd.MultiIndex.from_frame(rows[keys].drop_duplicates())).dropna(how="all")
