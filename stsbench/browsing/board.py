"""`board`: a leaderboard page of all runs below a folder."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.files import require_writable
from stsbench.base.machine import cores
from stsbench.base.progress import Progress, silent
from stsbench.browsing.sections import BoardCache, BoardRun, BoardSection, RunSummary, sections_of, summarise
from stsbench.records.labels import labels
from stsbench.records.parts import redact
from stsbench.records.record import RECORD, RunRecord
from stsbench.records.signature import UNKNOWN
from stsbench.records.store import load_run
from stsbench.render import one_line
from stsbench.render.page import PageResult, render_page
from stsbench.render.table import Table, Tables
from stsbench.scoring.settings import Intervals
from stsbench.statistics import DEPENDENCE, LEVEL, Dependence
from stsbench.statistics.ranks import letters_text


@dataclass(frozen=True)
class Fact:
    """A column of a board besides the scores.

    Attributes:
        name: of the column in `Board.frame`, and in the page's address.
        heading: of the column in the page.
        decimals: digits after the point; None for text.
        help: its explanation.
        shown: whether the page shows it initially.
    """

    name: str
    heading: str
    decimals: int | None
    help: str
    shown: bool = False


FACTS = (
    Fact("run", "Run", None, "The folder of the record."),
    Fact("use", "Settings", None, "The settings of the model, as in the signature.", shown=True),
    Fact("weight_mb", "Weights MB", 1, "Size of the weight files, in millions of bytes.", shown=True),
    Fact("dimensions", "Dimensions", 0, "Dimensions of a sentence vector.", shown=True),
    Fact("ms", "ms per sentence", 3, "Encoding time per encoded sentence, without cached ones.", shown=True),
    Fact("seconds", "Seconds", 1, "Duration of the run."),
    Fact("created", "Measured", None, "Date and time of the run (UTC)."),
    Fact("stsbench", "stsbench", None, "Version of stsbench."),
)
"""The columns besides the scores, in order."""


def facts_of(record: RunRecord, run: str) -> dict[str, Any]:
    """Returns the values of `FACTS` for a run; None for those that its record does not have."""
    encoding, seconds = record.encoding, record.seconds
    used = record.signatures[0].model.partition("|stsbench:")[0]
    weights, encoded = encoding.get("weight_bytes"), encoding.get("encoded")
    return {
        "run": run,
        "use": "" if set(used.split("|")) == {UNKNOWN} else used,
        "weight_mb": None if weights is None else weights / 1e6,
        "dimensions": encoding.get("dimensions"),
        "ms": 1000 * seconds["encode"] / encoded if encoded and "encode" in seconds else None,
        "seconds": sum(seconds.values()) if seconds else None,
        "created": record.created[:16].replace("T", " "),
        "stsbench": record.stsbench,
    }


@dataclass(frozen=True)
class Board(PageResult):
    """A leaderboard of all runs below some folders.

    `.html` is the self-contained page, `.save()` writes it, and a notebook shows it. `.frame` has a row per run
    and task.

    Attributes:
        sections: comparable runs; the largest section first.
        interval: which items depend on each other.
        level: level of the intervals.
        notes: which records were left out, and why.
        root: the folder of the runs; empty with several.
    """

    sections: tuple[BoardSection, ...]
    interval: Dependence
    level: float
    notes: tuple[str, ...] = ()
    root: str = ""

    @property
    def title(self) -> str:
        """The title of the page."""
        count = sum(len(section.runs) for section in self.sections)
        return f"{count:,} {'runs' if count > 1 else 'run'}"

    @cached_property
    def html(self) -> str:
        """The page."""
        return render_page(
            "stsbench.browsing",
            "board.html.j2",
            ("page.css", "explore.css", "board.css"),
            ("theme.js", "table.js", "chart.js", "board.js"),
            title=self.title,
            version=__version__,
            notes=self.notes,
            data=self._payload(),
        )

    def _payload(self) -> dict[str, Any]:
        runs = [run for section in self.sections for run in section.runs]
        facts = [fact for fact in FACTS if any(run.facts[fact.name] not in {None, ""} for run in runs)]
        return {
            "facts": [vars(fact) for fact in facts],
            "level": self.level,
            "root": self.root,
            "sections": [section.as_dict() for section in self.sections],
        }

    @property
    def frame(self) -> pd.DataFrame:
        """One row per run and task or average; scores and limits x 100.

        Columns: section (from 1), model, task, score, low, high, groups (runs that share a letter do not differ
        significantly; headlines only), and the names of `FACTS`.
        """
        return pd.DataFrame(
            [
                {
                    "section": number,
                    "model": run.name,
                    "task": column.name,
                    **dict(zip(("score", "low", "high"), score, strict=True)),
                    "groups": section.letters.get(column.name, {}).get(place, ()),
                    **run.facts,
                }
                for number, section in enumerate(self.sections, 1)
                for place, run in enumerate(section.runs)
                for column, score in zip(section.columns, run.scores, strict=True)
            ]
        )

    def table(self) -> Tables:
        """Returns a table per section: the scores, and the groups by each headline."""
        tables = []
        for section in self.sections:
            rows = []
            for place, run in enumerate(section.runs):
                scores = (score[0] for score in run.scores)
                row: dict[Any, Any] = {"model": run.name}
                row |= {c.name: score for c, score in zip(section.columns, scores, strict=True)}
                for name, letters in section.letters.items():
                    row[f"groups of {name}"] = letters_text(letters.get(place, ()))
                rows.append(row)
            tables.append(Table(pd.DataFrame(rows), caption=": ".join(filter(None, [section.name, section.why]))))
        return Tables(tables)


def board(
    runs: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    interval: Dependence = DEPENDENCE,
    level: float = LEVEL,
    progress: Progress = silent,
) -> Board:
    """Show all runs below a folder in one page: scores with intervals, ties, costs, and comparisons.

    Runs with the same tasks, protocol and items share a table; each other table has the reason why it is separate.
    Records that cannot be read, or whose scores differ from their items, are left out with a note. Results are
    cached, so a second board reads new records only.

    Args:
        runs: folders; every `run.json` below them is read.
        out: the page to write; in Python None writes none.
        interval: which items depend on each other, for all runs.
        level: level of the intervals; runs differ significantly at 1 - level.
        progress: receives the progress.

    Returns:
        `.html` is the page, `.save(path)` writes it, `.frame` has a row per run and task.

    Raises:
        UserError: if no record can be shown, or the page cannot be written.

    >>> import tempfile, stsbench as sb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sb.evaluate(lambda texts: [[len(text), 1] for text in texts], "sample", out=f"{folder}/a")
    ...     board(folder).frame.loc[0, "task"]
    'sample'
    """
    intervals, cache = Intervals(interval, level), BoardCache()
    if out is not None:
        require_writable(Path(out).expanduser(), "--out")
    folders = [Path(folder).expanduser() for folder in ([runs] if isinstance(runs, str | Path) else runs)]
    files, notes = _found(folders)

    def read(file: Path) -> tuple[RunRecord, RunSummary] | UserError:
        try:
            record = load_run(file)
            return record, summarise(record, intervals, cache)
        except UserError as error:
            return error

    found: dict[str, tuple[RunRecord, RunSummary]] = {}
    # Hashing, reading Parquet and most of NumPy release the GIL.
    with ThreadPoolExecutor(cores()) as pool:
        for number, (place, result) in enumerate(zip(files, pool.map(read, files.values()), strict=True), 1):
            progress("records", number, len(files))
            if isinstance(result, UserError):
                notes.append(f"left out: {result}")
            else:
                found[place] = result
    if not found:
        raise UserError(notes[0].removeprefix("left out: "))
    names = labels([record for record, _ in found.values()])
    board_runs = [
        BoardRun(one_line(name), record, summary, facts_of(record, place), intervals)
        for name, (place, (record, summary)) in zip(names, found.items(), strict=True)
    ]
    notes += dict.fromkeys(run.summary.note for run in board_runs if run.summary.note)
    sections = sections_of(board_runs, cache, intervals, progress)
    root = redact(str(folders[0])) if len(folders) == 1 else ""
    made = Board(sections, interval, level, tuple(map(redact, notes)), root)
    if out is not None:
        made.save(out)
    # A problem with the cache concerns this machine, so it is not shown on the page.
    return replace(made, notes=(*made.notes, cache.problem)) if cache.problem else made


def _found(folders: Sequence[Path]) -> tuple[dict[str, Path], list[str]]:
    """Returns the `run.json` files below some folders by their relative folders, and notes on unreadable ones."""
    files: dict[Path, tuple[Path, str]] = {}
    notes: list[str] = []

    def unlisted(error: OSError) -> None:
        notes.append(f"left out: {error.filename} cannot be listed ({error.strerror or error}).")

    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is not a folder: name one with runs below it.")
        for above, names, held in os.walk(folder, onerror=unlisted):
            names.sort()
            if RECORD in held:
                inside = Path(above).relative_to(folder)
                place = str(inside if len(folders) == 1 else folder / inside)
                file = Path(above) / RECORD
                files.setdefault(file.resolve(), (file, redact(place)))
    if not files:
        raise UserError(
            f"there is no {RECORD} below {' or '.join(map(str, folders))}: `stsbench run --out` writes one."
        )
    return {place: file for file, place in files.values()}, notes
