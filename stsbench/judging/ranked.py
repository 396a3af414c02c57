"""What ranking models finds: ranks and groups for each task, the sentence they allow, tables and a figure."""

import html
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from stsbench.base.words import listed
from stsbench.judging.comparison import by_kind, plain_data
from stsbench.records.kinds import AVERAGES, KINDS
from stsbench.render.cells import Named
from stsbench.render.figures import COLUMN_WIDTH, new_figure, shortened, style, svg_of
from stsbench.render.result import Result
from stsbench.render.section import ReportFigure, Section
from stsbench.render.table import Table, Tables
from stsbench.statistics.dependence import Dependence
from stsbench.statistics.ranks import Adjustment

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_FEW = 3
"""So many names fit into a sentence."""

_SHOWN, _BAND = "#0072B2", "#D55E00"


@dataclass(frozen=True)
class RankedScore:
    """A model's place on one task or on average.

    Attributes:
        model: what it is called.
        score: x 100, with the limits `low` and `high` of its own interval; NaN where it has none.
        rank: by the score as it is; 1 is the highest.
        best: the best rank that it can have, and `worst`: the worst.
        letters: models that share a letter cannot be told apart.
        first: how often it is the highest in the bootstrap, from 0 to 1.
    """

    model: str
    score: float
    low: float
    high: float
    rank: int
    best: int
    worst: int
    letters: str
    first: float


@dataclass(frozen=True)
class RankedTask:
    """A ranking of all models on one task or on average.

    Attributes:
        kind: of the task (see `stsbench.records.kinds`).
        task: its name; of an average what that of its kind is called.
        size: the number of pairs or items.
        rows: the models, the highest score first.
        p: the p-values of all differences in the order of `rows`, corrected for all pairs of models.
    """

    kind: str
    task: str
    size: int
    rows: tuple[RankedScore, ...]
    p: tuple[tuple[float, ...], ...]

    @property
    def is_average(self) -> bool:
        """Whether this is the average over tasks."""
        return self.task in AVERAGES


@dataclass(frozen=True)
class RankResult(Result):
    """The order of some models, and how much of it the pairs show.

    Attributes:
        models: their names, in the order given.
        tasks: the ranking of each task; after the tasks of a kind that of their average.
        simultaneous: whether all rank intervals of a task hold at once, or each by itself.
        adjustment: how the differences are corrected for all pairs of models.
        interval: how pairs that share sentences were seen.
        level: of the intervals.
        draws: of the parametric bootstrap, and their `seed`.
        notes: what a reader should know.
    """

    models: tuple[str, ...]
    tasks: tuple[RankedTask, ...]
    simultaneous: bool
    adjustment: Adjustment
    interval: Dependence
    level: float
    draws: int
    seed: int
    notes: tuple[str, ...] = ()

    @property
    def headlines(self) -> list[RankedTask]:
        """The rankings that matter most, of each kind that of the average, or of its tasks where it has none."""
        kinds = by_kind(self.tasks).items()
        return [task for kind, tasks in kinds for task in (tasks[-1:] if KINDS[kind].average else tasks)]

    @property
    def sentence(self) -> str:
        """Who leads, and who cannot be told apart from the first; a sentence for each kind of task."""
        return " ".join(self._sentence(task) for task in self.headlines)

    @property
    def frame(self) -> "pd.DataFrame":
        """One row per task and model, with the columns of `RankedScore`; scores x 100."""
        import pandas as pd

        rows = [
            {"kind": task.kind, "task": task.task, "size": task.size} | asdict(row)
            for task in self.tasks
            for row in task.rows
        ]
        return pd.DataFrame(rows)

    def table(self) -> Tables:
        """Return the ranking by the average of each kind, and one of the scores of all tasks with their groups."""
        return Tables(self._tables())

    def plot(self, task: str | None = None) -> "Figure":
        """Return a figure: the scores with their intervals, and beside them the ranks that each model can have.

        Args:
            task: of which task; by default of the average, or of the only task.

        Raises:
            KeyError: if it was not ranked.
        """
        chosen = self.headlines[0] if task is None else {item.task: item for item in self.tasks}[task]
        return _drawn(chosen, self.level)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data; what is undefined is None."""
        whole: dict[str, Any] = plain_data({"sentence": self.sentence, **asdict(self)})
        return whole

    def section(self, number: int = 1) -> Section:
        """Return it as a report's section.

        Args:
            number: the place among the report's rankings.
        """
        tables = tuple(
            replace(table, name=f"rank-{number}-{place}") for place, table in enumerate(self.table(), 1)
        )
        figure = ReportFigure(f"rank-figure-{number}", self.headlines[0].task, self.sentence, svg_of(self.plot()))
        return Section(f"ranking-{number}", "Ranking", (self.sentence,), tables, (figure,), points=self.notes)

    @property
    def words(self) -> list[str]:
        """What the columns rest on, and the notes; a line each."""
        many = "a max-statistic" if self.adjustment == "max" else "Holm's procedure"
        return [
            f"ranks: {self._kind_of_ranks}; models that share a letter cannot be told apart at "
            f"{100 * (1 - self.level):g} % by these pairs, corrected for all pairs of models by {many}.",
            f"first: how often a model is the highest in a bootstrap of {self.draws} draws: a frequency there, "
            "not the probability of being the best.",
            *(f"note: {note}" for note in self.notes),
        ]

    def __str__(self) -> str:
        """Return what a terminal shows: the tables, the sentence, and what to know."""
        return "\n\n".join([*map(str, self.table()), self.sentence, "\n".join(self.words)])

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{html.escape(line)}</p>" for line in (self.sentence, *self.words))
        return f"{self.table()._repr_html_()}{words}"

    @property
    def _kind_of_ranks(self) -> str:
        kind = "all of them at once" if self.simultaneous else "each by itself"
        return f"{100 * self.level:g} % rank intervals that hold {kind}"

    def _tables(self) -> Iterator[Table]:
        import pandas as pd

        low, high = (f"{100 * share:g} %" for share in ((1 - self.level) / 2, (1 + self.level) / 2))
        for task in self.headlines:
            rows = [
                {
                    "rank": row.rank,
                    "ranks": f"{row.best} to {row.worst}" if row.best < row.worst else f"{row.best}",
                    "model": row.model,
                    Named("task", task.task): row.score,
                    low: row.low,
                    high: row.high,
                    "groups": row.letters,
                    "first": f"{100 * row.first:.0f} %",
                }
                for row in task.rows
            ]
            yield Table(pd.DataFrame(rows), headline=Named("task", task.task))
            tasks = by_kind(self.tasks)[task.kind]
            if len(tasks) == 1 or task is not tasks[-1]:
                continue
            cells = {
                Named("task", item.task): {row.model: f"{row.score:.2f} {row.letters}" for row in item.rows}
                for item in tasks
            }
            yield Table(
                pd.DataFrame(
                    [
                        {"model": row.model} | {column: of_task[row.model] for column, of_task in cells.items()}
                        for row in task.rows
                    ]
                )
            )

    def _sentence(self, task: RankedTask) -> str:
        first, *others = task.rows
        where = f"on {KINDS[task.kind].words} average" if task.is_average else f"on {task.task}"
        alike = [row.model for row, p in zip(others, task.p[0][1:], strict=True) if p >= 1 - self.level]
        leads = f"{first.model} leads {where} with {first.score:.2f}"
        if not alike:
            return f"{leads}, and is told apart from every other at {100 * (1 - self.level):g} %."
        names = (
            listed(alike)
            if len(alike) <= _FEW
            else f"{listed([*alike[: _FEW - 1], f'{len(alike) - _FEW + 1} more'])}"
        )
        apart = len(others) - len(alike)
        rest = f", {apart} {'others are' if apart > 1 else 'other is'} below it" if apart else ""
        return f"{leads}; {names} cannot be told apart from it at {100 * (1 - self.level):g} %{rest}."


def _drawn(task: RankedTask, level: float) -> "Figure":
    count = len(task.rows)
    # A hundred models still have to fit on a page.
    line, size = (0.2, 7.0) if count <= 30 else (0.11, 5.0)
    with style():
        figure = new_figure(2 * COLUMN_WIDTH, 0.9 + line * count)
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        places = range(count)
        for place, row in enumerate(task.rows):
            left.plot([row.low, row.high], [place, place], color=_SHOWN)
            left.plot([row.score], [place], "o", color=_SHOWN, markersize=size / 2)
            right.plot(
                [row.best - 0.35, row.worst + 0.35],
                [place, place],
                color=_BAND,
                linewidth=size,
                alpha=0.35,
                solid_capstyle="butt",
            )
            right.plot([row.rank], [place], "o", color=_BAND, markersize=size / 2)
        if count <= 30:
            letters = right.secondary_yaxis("right")
            letters.set_yticks(list(places), [row.letters if len(row.letters) <= 12 else "" for row in task.rows])
            letters.tick_params(length=0)
        left.set_yticks(list(places), [shortened(row.model, 40) for row in task.rows], fontsize=size)
        left.set_ylim(count - 0.5, -0.5)
        for axes in (left, right):
            axes.grid(visible=False, axis="y")
        right.tick_params(axis="y", length=0, labelleft=False)
        right.set_xlim(0.4, count + 0.6)
        right.xaxis.get_major_locator().set_params(integer=True)
        left.set_xlabel(f"{task.task} with {100 * level:g} % intervals")
        right.set_xlabel("rank, and the ranks it can have")
    return figure
