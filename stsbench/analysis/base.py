"""The base class of analyses: one declaration defines verb, command, tables, figure and report section.

An analysis is a subclass with a question, its parameters, and `measure`, which yields the rows of a model.
`OfTasks`, `OfVectors` and `OfSentences` read the inputs of most analyses. `stsbench.analysis` lists all analyses.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import Parameter as Argument
from inspect import Signature, cleandoc
from math import nan
from typing import Any, ClassVar, Self, TypeVar, cast, get_type_hints

import numpy as np
import pandas as pd

from stsbench.analysis.inputs import (
    DATA_DIRS,
    INTERVALS,
    OWN_DATA,
    SPLIT,
    TASK,
    TASKS,
    TEXT,
    Answer,
    Estimates,
    PairVectors,
    Parameter,
    ScoredVectors,
    analysable,
)
from stsbench.base.progress import Progress, silent
from stsbench.data.sentences import sentences_in
from stsbench.data.tables import FOLDED, SENTENCES, StsData
from stsbench.data.views import split_and_view
from stsbench.published.catalogue import rows_of, systems
from stsbench.published.catalogue import table as published_table
from stsbench.records.kinds import ALL_TASKS, AVERAGE
from stsbench.records.record import RunRecord
from stsbench.render.charts import draw_by_model
from stsbench.render.figures import Figure, colours, legend_above, new_figure, style, svg_of
from stsbench.render.formats import labels_beside
from stsbench.render.page import ReportFigure, Section
from stsbench.render.table import Result, in_columns, note_of
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import (
    ScoredTask,
    SentenceVectors,
    Subject,
    Wanted,
    scored_tasks,
    texts_of,
    vectors_of,
)
from stsbench.scoring.tasks import TaskSpec, read_pairs_of
from stsbench.statistics.correlations import CORRELATIONS
from stsbench.statistics.dependence import Sharing

Row = dict[str, Any]
Read = TypeVar("Read")

_KEYS = ("model", "task", "query", "rank", "seed", "against", "feature", "kind", "measure", "group", "interval")


def _verb(cls: "type[Analysis]") -> Any:
    """Returns the function that runs an analysis, with the parameters in its signature and docstring."""
    hints = get_type_hints(cls)
    keywords = [
        Argument(name, Argument.KEYWORD_ONLY, default=about.default, annotation=hints.get(name, Any))
        for name, about in cls.parameters.items()
    ]
    runs = Argument("runs", Argument.POSITIONAL_OR_KEYWORD, default=None)
    progress = Argument("progress", Argument.KEYWORD_ONLY, default=silent)
    signature = Signature([runs, *keywords, progress], return_annotation=cls)

    # Sphinx reads defaults from the source, so the source has none.
    def verb(*arguments: Any, **options: Any) -> "Analysis":
        given = signature.bind(*arguments, **options).arguments
        runs, progress = given.pop("runs", None), given.pop("progress", silent)
        return cls(**given).run(runs, progress)

    verb.__signature__ = signature  # type: ignore[attr-defined]
    verb.__name__ = verb.__qualname__ = cls.name.replace("-", "_")
    verb.__module__ = "stsbench"
    summary, returns, rest = cleandoc(cls.__doc__ or "").partition("\nReturns:")
    arguments = {
        "runs": "Records or their folders, loaded encoders, or models that `load` accepts.",
        **{name: about.help for name, about in cls.parameters.items()},
        "progress": "Called with the progress.",
    }
    lines = "".join(f"\n    {name}: {text}" for name, text in arguments.items())
    raises = "UserError: if data, items or vectors are missing, or a measure is undefined for a model."
    verb.__doc__ = f"{summary}\nArgs:{lines}\n\nRaises:\n    {raises}\n{returns}{rest}"
    return verb


class Analysis(Result):
    """An analysis with its parameters and, after `run`, its result.

    The docstring of a subclass is the help of its command and, with `Returns`, the documentation of its verb.

    Attributes:
        name: the name of the command; with underscores, of the verb; by default that of the class.
        answer: its question, and the number that answers it.
        title: the heading in pages and reports, by default the name of the class.
        examples: command lines for `--help`, by default one that draws two runs.
        counts: columns of whole numbers in which some rows are empty.
        place_label: the label below the figure.
        reference: the value at which the figure draws a reference line.
        fewest: the least number of items of an interval.
        estimates: the intervals of the model that is measured.
    """

    name: ClassVar[str]
    answer: ClassVar[Answer]
    title: ClassVar[str]
    examples: ClassVar[tuple[str, ...]]
    counts: ClassVar[tuple[str, ...]] = ()
    place_label: str = ""
    reference: ClassVar[float | None] = None
    fewest: ClassVar[int] = 4
    intervals: Intervals | None = None
    estimates: Estimates
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    verb: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        own = vars(cls)
        words = re.findall("[A-Z][a-z]*", cls.__name__)
        cls.name = own.get("name", "-".join(words).lower())
        cls.title = own.get("title", " ".join(words).capitalize())
        cls.examples = own.get("examples", (f"stsbench explain {cls.name} runs/a runs/b --figure {cls.name}.svg",))
        parameters = {**cls.parameters, **own}
        cls.parameters = {key: of for key, of in parameters.items() if isinstance(of, Parameter)}
        cls.verb = staticmethod(_verb(cls))

    def __init__(self, frame: pd.DataFrame | None = None, **options: Any) -> None:
        """Sets and checks the parameters; `frame` is a result that was computed before."""
        if unknown := [name for name in options if name not in self.parameters]:
            raise TypeError(f"{self.name}: got an unexpected keyword argument {unknown[0]!r}")
        for name, about in self.parameters.items():
            value = options.get(name, about.default)
            about.check(name, value)
            setattr(self, name, value)
        self.constants: Row = {}  # columns with the same value in all rows
        self.progress: Progress = silent
        self.shared: dict[str, Any] = {}  # tasks and vectors that analyses of the same subjects share
        self._frame = pd.DataFrame() if frame is None else frame

    @property
    def frame(self) -> pd.DataFrame:
        """The result as a tidy table."""
        return self._frame

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes under the table."""
        return ()

    def run(self, runs: Wanted | Sequence[Wanted] | None = None, progress: Progress = silent) -> Self:
        """Analyses runs and models; returns self with the result."""
        self.progress = progress
        return self.compute(self.inputs(analysable(runs)))

    def read_once(self, read: Callable[[], Read], *key: Any) -> Read:
        """Returns the shared input of a key, and reads it the first time."""
        if repr(key) not in self.shared:
            self.shared[repr(key)] = read()
        return cast("Read", self.shared[repr(key)])

    @abstractmethod
    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Any]:
        """Returns the inputs by model."""

    @abstractmethod
    def measure(self, model: str, given: Any) -> Iterable[Row]:
        """Yields the rows of a model without the column `model`."""

    def compute(self, inputs: Mapping[str, Any]) -> Self:
        """Measures the inputs of all models, and adds the papers' rows; returns self with the result."""
        rows = []
        for model, given in inputs.items():
            self.estimates = Estimates(self.intervals or Intervals(), self.fewest)
            rows += [{"model": model} | row | self.constants for row in self.measure(model, given)]
        frame = pd.DataFrame(rows)
        if getattr(self, "published", False):
            printed = self._published_rows().assign(**self.constants)
            printed["model"] = printed["model"].map(labels_beside(printed["model"], inputs))
            frame = pd.concat([frame, printed], ignore_index=True)
        keys = [name for name in _KEYS if name in frame]
        frame = frame[[*keys, *frame.columns.drop(keys)]]
        self._frame = frame.astype(dict.fromkeys(self.counts, "Int64"))
        return self

    def _published_rows(self) -> pd.DataFrame:
        """Returns the papers' rows, for an analysis with the parameter `published`."""
        raise NotImplementedError

    @property
    def headline(self) -> pd.DataFrame:
        """The rows of each model's average or of all its tasks together; for a model with one task, all rows."""
        return headline(self.frame) if "task" in self.frame else self.frame

    def numbers(self) -> dict[str, float]:
        """Returns the measures of one model by name: all of a single row, or else the answer."""
        if len(self.frame) == 1:
            row = self.frame.select_dtypes("float").iloc[0]
            return {str(name).replace("_", " "): float(value) for name, value in row.items()}
        return {"answer": float(next(iter(self.answer.of(self.headline)), nan))}

    def panels(self) -> Mapping[str, pd.DataFrame]:
        """Returns the rows of each panel of the figure by the label of its axis.

        Their columns are `model`, `place`, `value`, and `low` and `high`, which may be NaN.
        """
        raise NotImplementedError

    def plot(self) -> Figure:
        """Draws the values of each panel with their intervals by place, the models side by side."""
        panels = self.panels()
        drawn = {model for rows in panels.values() for model in rows["model"]}
        palette = {model: colour for model, colour in colours(list(self.frame["model"])).items() if model in drawn}
        places = {tuple(dict.fromkeys(rows["place"])) for rows in panels.values()}
        with style():
            figure = new_figure(height=2.4 + 1.4 * (len(panels) - 1))
            axes = figure.subplots(len(panels), 1, sharex=len(places) == 1, squeeze=False)[:, 0]
            for panel, (label, rows) in zip(axes, panels.items(), strict=True):
                if self.reference is not None:
                    panel.axhline(self.reference, color="0.4", linewidth=0.8, zorder=0)
                draw_by_model(panel, rows, palette)
                panel.set_ylabel(label)
            axes[-1].set_xlabel(self.place_label)
            legend_above(figure, axes[0])
        return figure

    def section(self) -> Section:
        """Returns the section of a report."""
        named = enumerate(self.table(), 1)
        tables = tuple(replace(table, name=f"{self.name}-{place}") for place, table in named if len(table.frame))
        alt = f"{self.title}; the numbers are in the tables above."
        figure = ReportFigure(f"figure-{self.name}", self.title, alt, svg_of(self.plot()))
        return Section(self.name, self.title, tables=tables, figures=(figure,))


class OfTasks(Analysis):
    """An analysis of the scored pairs of tasks, a list of `ScoredTask` per model."""

    statistics: ClassVar[tuple[str, ...]] = tuple(CORRELATIONS)  # which scores it analyses

    tasks = TASKS
    data_dirs = DATA_DIRS

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Any]:
        return {name: self.scored(name, subject)[1] for name, subject in subjects.items()}

    def scored(self, name: str, subject: Subject) -> tuple[RunRecord, list[ScoredTask]]:
        """Returns the record of a model and its scored tasks."""
        # A model is measured by a correlation; only a record can have other statistics.
        statistics = self.statistics if isinstance(subject, RunRecord) else OfTasks.statistics
        how: dict[str, Any] = {"statistics": statistics, "data_dirs": self.data_dirs, "progress": self.progress}
        key = "tasks", id(subject), self.tasks, self.data_dirs, statistics
        return self.read_once(lambda: scored_tasks(name, subject, self.tasks, **how), *key)


class OfTexts(OfTasks):
    """An analysis of the scored pairs of tasks with their sentences, which records lack."""

    data = OWN_DATA
    intervals = INTERVALS

    def texts(self, task: ScoredTask) -> dict[int, str]:
        """Returns the distinct sentences of a scored task by id."""
        name, split, text = (str(task.pairs[column].iloc[0]) for column in ("task", "split", "text"))
        spec = TaskSpec(name, split_and_view(split)[0], text)
        ids = {number for side in SENTENCES for number in task.pairs[side].tolist()}
        read = partial(texts_of, [spec], ids, self.data, self.data_dirs)
        return self.read_once(read, "texts", task.data, spec, len(ids), self.data, self.data_dirs)


class OfVectors(OfTexts):
    """An analysis of the distinct sentences of tasks, a list of `ScoredVectors` per model."""

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Any]:
        key = self.tasks, self.data, self.data_dirs
        return {
            name: self.read_once(partial(self._vectors, name, subject), "vectors", id(subject), *key)
            for name, subject in subjects.items()
        }

    def _vectors(self, name: str, subject: Subject) -> list[ScoredVectors]:
        record, scored = self.scored(name, subject)
        sides = [np.concatenate([task.pairs[side] for task in scored]) for side in FOLDED]
        ends = np.cumsum([len(task.pairs) for task in scored])[:-1]
        chains = np.split(Sharing.of(*sides).components, ends)
        return [
            ScoredVectors.of(name, task, vectors, of_task)
            for task, vectors, of_task in zip(scored, self.embedded(record, subject, scored), chains, strict=True)
        ]

    def embedded(self, record: RunRecord, subject: Subject, scored: Sequence[ScoredTask]) -> list[SentenceVectors]:
        """Returns the vectors of the first and then the second sentences of each task, as rows of one matrix."""
        texts = [
            [known[number] for side in SENTENCES for number in task.pairs[side].tolist()]
            for task, known in zip(scored, map(self.texts, scored), strict=True)
        ]
        if record.model.use.whiten is not None:
            # Whitening is fitted on the sentences of one task, as often as they occur.
            return [vectors_of(subject, of_task, self.progress) for of_task in texts]
        every = [text for of_task in texts for text in of_task]
        read = partial(vectors_of, subject, every, self.progress)
        vectors, rows = self.read_once(read, "embedded", id(subject), self.tasks, self.data, self.data_dirs)
        return [SentenceVectors(vectors, part) for part in np.split(rows, np.cumsum(list(map(len, texts)))[:-1])]


class OfSentences(Analysis):
    """An analysis of the sentences of one task, a `PairVectors` per model."""

    task = TASK
    split = SPLIT
    text = TEXT
    data_dirs = DATA_DIRS

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Any]:
        key = "pairs", *map(id, subjects.values()), self.task, self.split, self.text, self.data_dirs
        self.constants, vectors = self.read_once(partial(self._vectors, subjects), *key)
        return vectors

    def read(self) -> StsData:
        """Reads the pairs of the task, which all rows name."""
        data = read_pairs_of(self.task, self.split, self.text, self.data_dirs)
        self.constants = {"task": data.task, "split": data.split, "text": data.text}
        return data

    def _vectors(self, subjects: Mapping[str, Subject]) -> tuple[Row, dict[str, PairVectors]]:
        data = self.read()
        sentences, gold = sentences_in(data), data.pairs["gold"].to_numpy(float)
        texts, _ = pd.factorize(np.array(sentences, dtype=object))
        return self.constants, {
            name: PairVectors(*vectors_of(subject, sentences, self.progress), gold, texts)
            for name, subject in subjects.items()
        }


def published_cells(*tables: str) -> Iterator[tuple[str, Any, Row]]:
    """Yields the table, the cell, and the columns `model` and `value` of each number in tables of papers."""
    for name in tables:
        for row in rows_of(published_table(name)):
            for cell in row.cells:
                yield name, cell, {"model": f"{systems()[cell.system].title} (published)", "value": cell.score}


def headline(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of each model's average or of all its tasks together; for a model with one task, all."""
    over_tasks = frame["task"].isin([AVERAGE, ALL_TASKS])
    has_several = over_tasks.groupby(frame["model"]).transform("any")
    return frame[over_tasks | ~has_several]


def similarity_notes(frame: pd.DataFrame) -> tuple[str, ...]:
    """Returns a note if models have a similarity other than the cosine."""
    kinds = frame.dropna(subset="similarity").drop_duplicates("model").set_index("model")["similarity"]
    return note_of("Similarity", kinds[kinds != "cosine"])


def by_task(rows: pd.DataFrame, keys: list[str], values: str = "value") -> pd.DataFrame:
    """Pivots to a column for each task, with their average last."""
    wide = in_columns(rows, keys, "task", values)
    tasks = [task for task in dict.fromkeys(rows["task"]) if task != AVERAGE]
    return wide[[*keys, *tasks, *([AVERAGE] if AVERAGE in wide else [])]]
