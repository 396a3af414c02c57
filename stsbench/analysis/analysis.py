"""What an analysis is made of: a result with a table, a figure and a report section, and a command.

An analysis is a file (or a folder) with a function that gets its input and returns such a result, and a class of
its command's own options; `registry` has a line for it. The command line, `explain`, reports and the documentation
find it there. The files are imported to print a command's help: what is slow to import is so where it is used.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from typer import Option

from stsbench.cli.options import DATA, DataDirs
from stsbench.render.figures import svg_of
from stsbench.render.result import Result
from stsbench.render.section import ReportFigure, Section

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from stsbench.scoring.settings import Intervals


class AnalysisResult(Result):
    """What an analysis returns: its tidy table, and the ways to show it.

    Args:
        frame: the tidy table.
    """

    name: ClassVar[str]
    """The command's name."""

    title: ClassVar[str]
    """The heading in pages and reports."""

    question: ClassVar[str]
    """What it answers, for the documentation."""

    look_for: ClassVar[str]
    """What a reader should look for."""

    def __init__(self, frame: "pd.DataFrame") -> None:
        self._frame = frame

    @property
    def frame(self) -> "pd.DataFrame":
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
class Asked:
    """What `explain` is asked, for each analysis to take what it has a use for.

    Attributes:
        corpus: of the repetition probe.
        retrieve_from: the corpus that neighbours are looked for in.
        query: sentences to look for neighbours of.
        published: whether the papers' rows stand beside ours.
        intervals: how intervals are computed.
        data_dirs: folders to look for data in.
    """

    corpus: str | Path
    retrieve_from: str | Path
    query: Sequence[str]
    published: bool
    intervals: "Intervals | None"
    data_dirs: Sequence[str | Path]


@dataclass(frozen=True)
class AnalysisCommand:
    """The command of an analysis: its fields are the command's own options, its docstring the command's help."""

    verb: ClassVar[Callable[..., AnalysisResult]]
    """The function that makes the analysis."""

    result: ClassVar[type[AnalysisResult]]
    """What that returns."""

    def keywords(self) -> dict[str, Any]:
        """Return the options as the function takes them: by default as they are."""
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        if "data_dir" in options:
            options["data_dirs"] = options.pop("data_dir") or ()
        return options

    @classmethod
    def explained(cls, asked: Asked) -> dict[str, Any]:
        """Return what `explain` was asked as the function takes it: by default what it has an option of."""
        own = signature(cls.verb).parameters
        return {name: value for name, value in vars(asked).items() if name in own}

    def names_data(self, *, runs: bool) -> bool:
        """Return whether the person chose the data: by an option, or by naming runs, which bring their pairs."""
        return True


@dataclass(frozen=True)
class TaskOptions(AnalysisCommand):
    """The options of an analysis of one task."""

    task: Annotated[
        str | None,
        Option(
            help="Whose sentences. Default: `STS-B`, or the sample where its data is not here.",
            rich_help_panel=DATA,
        ),
    ] = None
    data_dir: DataDirs = None

    def names_data(self, *, runs: bool) -> bool:
        """Return whether a task was named: by default a run's own tasks do not decide what is looked at."""
        return self.task is not None


@dataclass(frozen=True)
class SentenceOptions(TaskOptions):
    """The options of an analysis of the sentences of a task."""

    split: Annotated[str | None, Option(help="Default: all that the task has.", rich_help_panel=DATA)] = None
    text: Annotated[str, Option(help="`senteval` or `raw` text.", rich_help_panel=DATA)] = "senteval"


Corpus = Annotated[str, Option(help="A file with one sentence a line, or `sample` for the sample's sentences.")]
