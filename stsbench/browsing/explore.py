"""`explore`: a page with all pairs of one or two runs, to see which of them cost the most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import require_writable
from stsbench.base.progress import Progress, silent
from stsbench.browsing.items import MODELS, TaskItems, Total, items_of, payload
from stsbench.data.tables import SENTENCES
from stsbench.judging.aligned import AlignedScores, aligned_scores
from stsbench.judging.runs import Run, named_runs
from stsbench.records.kinds import KINDS
from stsbench.records.record import RunRecord
from stsbench.render.cells import labels_beside
from stsbench.render.page import PageResult, render_page
from stsbench.render.table import Table, Tables
from stsbench.scoring.recompute import require_recomputed
from stsbench.scoring.subjects import specs_of, texts_of


@dataclass(frozen=True)
class Explored(PageResult):
    """All items of one or two runs.

    `.html` is the self-contained page, `.save()` writes it, and a notebook shows it. `.frame` has a row per item,
    with task, sentences and the columns of `stsbench.browsing.items.TaskItems`.

    Attributes:
        models: the labels of the runs, one or two.
        tasks: their items.
        averages: the averages over tasks.
        texts: each sentence by its number; None for a page without text.
        notes: remarks for readers.
    """

    models: tuple[str, ...]
    tasks: tuple[TaskItems, ...]
    averages: tuple[Total, ...] = ()
    texts: Mapping[int, str] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    @cached_property
    def html(self) -> str:
        """The page."""
        data = payload(self.tasks, self.averages, self.models, self.texts)
        return render_page(
            "stsbench.browsing",
            "explore.html.j2",
            ("page.css", "explore.css"),
            ("theme.js", "table.js", "explore.js"),
            title=self.title,
            version=__version__,
            data=data,
            notes=self.notes,
            models=self.models,
            has_text=self.texts is not None,
        )

    @property
    def title(self) -> str:
        """The title of the page."""
        are_pairs = all(task.unit == "pairs" for task in self.tasks)
        return f"{' and '.join(self.models)}: {'pairs' if are_pairs else 'items'}"

    @property
    def frame(self) -> pd.DataFrame:
        """One row per item, with its task and sentences."""
        frames = []
        for task in self.tasks:
            frame = task.table.copy()
            if self.texts is not None:
                for side in SENTENCES:
                    frame[side] = frame[side].map(self.texts)
            frame.insert(0, "task", task.total.name)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def table(self) -> Tables:
        """Returns the scores of the page."""
        called = labels_beside(self.models, ("task", "items"))
        rows = [
            {
                "task": total.name,
                "items": next((len(task.table) for task in self.tasks if task.total is total), None),
                **dict(zip(called.values(), total.scores, strict=True)),
            }
            for total in (*(task.total for task in self.tasks), *self.averages)
        ]
        return Tables([Table(pd.DataFrame(rows))])


def explore(
    runs: Run | Sequence[Run],
    out: str | Path | None = None,
    *,
    data: Sequence[str | Path] = (),
    without_text: bool = False,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Explored:
    """Show all pairs of one run, or of two side by side, to see which of them cost the most.

    Args:
        runs: one or two run folders or `run.json` files. In Python also records.
        out: the page to write; in Python None writes none.
        data: files with the sentences of runs on your own pairs; repeatable. Records hold no sentences.
        without_text: leave the sentences out, so that you may publish the page.
        data_dirs: folders to search for the tasks' data, before `STSBENCH_DATA` and the cache.
        progress: receives the progress.

    Returns:
        `.html` is the page, `.save(path)` writes it, `.frame` has a row per pair.

    Raises:
        UserError: if there are more than two runs, they are not comparable, or their sentences are missing.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> bool(explore(run).frame["residual_a"].abs().max() > 50)
    True
    """
    if out is not None:
        require_writable(Path(out).expanduser(), "--out")
    named = named_runs([runs] if isinstance(runs, Run) else runs)
    if not 1 <= len(named) <= len(MODELS):
        raise UserError(f"{len(named)} runs are named: explore one, or two side by side.")
    records = list(named.values())
    notes = require_recomputed(*records, intervals=False)
    aligned, left_out = aligned_scores(named, may_be_undefined=True, whole=True, progress=progress)
    tasks = tuple(items_of(task) for task in aligned if not task.is_average)
    averages = tuple(Total.of(task) for task in aligned if task.is_average)
    texts = None if without_text else _texts_of(aligned, records, data, data_dirs) or None
    explored = Explored(tuple(named), tasks, averages, texts, (*left_out, *notes))
    if out is not None:
        explored.save(out)
    return explored


def _texts_of(
    tasks: Sequence[AlignedScores],
    records: Sequence[RunRecord],
    data: Sequence[str | Path],
    data_dirs: Sequence[str | Path],
) -> dict[int, str]:
    """Returns each sentence of some tasks by its number."""
    tables = [table for task in tasks if KINDS[task.kind].has_text for table in task.items]
    wanted = {number for table in tables for side in SENTENCES for number in table[side].tolist()}
    return texts_of(specs_of(records), wanted, data, data_dirs, remedy="make a page --without-text")
