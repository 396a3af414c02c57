"""`board`: all runs below a folder in one page: what compares side by side, what does not apart."""

import os
from collections.abc import Iterator, Mapping, Sequence
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
from stsbench.browsing.kept import Kept, Shelf, filled_ahead, keep, key_of
from stsbench.browsing.sections import BoardRun, BoardSection, sections_of
from stsbench.records.labels import labels
from stsbench.records.provenance import redact
from stsbench.records.record import RECORD, RunRecord
from stsbench.records.signature import UNKNOWN
from stsbench.records.store import load_run
from stsbench.render.page import PageResult, render_page
from stsbench.render.table import Table, Tables
from stsbench.render.text import one_line
from stsbench.scoring.settings import Intervals
from stsbench.statistics import DEPENDENCE, LEVEL, Dependence
from stsbench.statistics.ranks import letters_text


@dataclass(frozen=True)
class Fact:
    """What a board tells of a run beside its scores.

    Attributes:
        name: of the column in `Board.frame`, and in the page's address.
        heading: of the column in the page.
        decimals: of a number; None for text.
        help: what it is.
        shown: whether the page shows it before somebody chooses.
    """

    name: str
    heading: str
    decimals: int | None
    help: str
    shown: bool = False


FACTS = (
    Fact("run", "Run", None, "The folder of the record, below the one that the board is of."),
    Fact("use", "Used as", None, "How the model was used, as in the signature.", shown=True),
    Fact("kind", "Kind", None, "What kind of model it is."),
    Fact(
        "weight_mb", "Weights MB", 1, "How large the files of its weights are, in millions of bytes.", shown=True
    ),
    Fact("dimensions", "Dimensions", 0, "The width of a sentence's vector.", shown=True),
    Fact("vector_bytes", "Bytes a vector", 0, "What a vector of 32-bit numbers takes."),
    Fact(
        "ms",
        "ms a sentence",
        3,
        "What encoding took for each sentence that was encoded and not cached.",
        shown=True,
    ),
    Fact("encoded", "Encoded", 0, "How many sentences were encoded; the others came from the cache."),
    Fact("tokens", "Tokens", 0, "Tokens that went through the model."),
    Fact("seconds", "Seconds", 1, "What the whole run took."),
    Fact("threads", "Threads", 0, "Threads of the processor that the run could take."),
    Fact("device", "Device", None, "Where the model ran."),
    Fact("created", "Measured", None, "When it was measured, in universal time.", shown=True),
    Fact("stsbench", "stsbench", None, "The version that measured it."),
)
"""What is told of a run, in the order of the columns."""


def facts_of(record: RunRecord, run: str) -> dict[str, Any]:
    """Return what is told of a run, by the names of `FACTS`; None for what its record does not say."""
    encoding, use, seconds = record.encoding, record.model.use, record.seconds
    used = record.signatures[0].model.partition("|stsbench:")[0]
    dimensions, weights = encoding.get("dimensions"), encoding.get("weight_bytes")
    encoded = encoding.get("encoded")
    return {
        "run": run,
        "use": "" if set(used.split("|")) == {UNKNOWN} else used,
        "kind": record.model.kind,
        "weight_mb": None if weights is None else weights / 1e6,
        "dimensions": dimensions,
        "vector_bytes": None if dimensions is None else 4 * dimensions,
        "ms": 1000 * seconds["encode"] / encoded if encoded and "encode" in seconds else None,
        "encoded": encoded,
        "tokens": encoding.get("tokens"),
        "seconds": sum(seconds.values()) if seconds else None,
        "threads": record.environment.get("threads"),
        "device": use.device if encoded else "",
        "created": record.created[:16].replace("T", " "),
        "stsbench": record.stsbench,
    }


@dataclass(frozen=True)
class Board(PageResult):
    """All runs below some folders.

    `.html` is the page, which needs no network, `.save()` writes it, and a notebook shows it in the cell. `.frame`
    has a row for each run and task.

    Attributes:
        sections: the runs that compare with each other; the largest section first.
        interval: how items that share sentences were seen.
        level: of the intervals.
        notes: what a reader should know: which records were left out, and why.
        root: the folder that the runs' places are below, as it was named; empty where there are several.
    """

    sections: tuple[BoardSection, ...]
    interval: Dependence
    level: float
    notes: tuple[str, ...] = ()
    root: str = ""

    @property
    def title(self) -> str:
        """What the page is called."""
        count = sum(len(section.runs) for section in self.sections)
        return f"{count:,} {'runs' if count > 1 else 'run'}"

    @cached_property
    def html(self) -> str:
        """The page."""
        return render_page(
            "stsbench.browsing",
            "board.html.j2",
            ("page.css", "explore.css", "board.css"),
            ("theme.js", "board.js"),
            title=self.title,
            version=__version__,
            notes=self.notes,
            data=self._payload(),
        )

    def _payload(self) -> dict[str, Any]:
        told = [(fact, [run.facts[fact.name] for run in self._runs]) for fact in FACTS]
        return {
            "facts": [vars(fact) for fact, values in told if any(value not in {None, ""} for value in values)],
            "level": self.level,
            "root": self.root,
            "sections": [section.as_dict() for section in self.sections],
        }

    @property
    def _runs(self) -> Iterator["BoardRun"]:
        for section in self.sections:
            yield from section.runs

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each run and task, and each average; scores and limits x 100.

        Columns: section (from 1), model, task, score, low, high, groups (of headlines: those that share a letter
        cannot be told apart), and the names of `FACTS`.
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
        """Return a table for each section: the scores, and the groups of the headlines."""
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
    """Show all runs below a folder in one page: scores with intervals, groups, costs, and any two compared.

    Runs that compare stand in one table: the same tasks by the same protocol on the same items. Others stand
    apart, with the reason. A record that cannot be read, or does not say what its items give, is named and left
    out. What was computed of a record is kept in the cache: a board that is made again reads what is new.

    Args:
        runs: folders; every `run.json` below them is read.
        out: the page to write; in Python None writes none.
        interval: which items depend on each other, for all runs, whatever their own intervals are.
        level: of the intervals; two runs are told apart at 1 - level.
        progress: told how far it is.

    Returns:
        `.html` is the page, `.save(path)` writes it, `.frame` has a row for each run and task.

    Raises:
        UserError: if no record below the folders can be shown, or the page cannot be written.

    >>> import tempfile, stsbench as sb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sb.evaluate(lambda texts: [[len(text), 1] for text in texts], "sample", out=f"{folder}/a")
    ...     board(folder).frame.loc[0, "task"]
    'sample'
    """
    Intervals(interval, level)  # refuses what makes no sense
    if out is not None:
        require_writable(Path(out).expanduser(), "--out")
    folders = [Path(folder).expanduser() for folder in ([runs] if isinstance(runs, str | Path) else runs)]
    files, notes = _found(folders)
    kept: dict[str, Kept] = {}
    with Shelf() as shelf:
        with filled_ahead(list(files.values()), shelf, interval, level, progress):
            records = _read(files, notes, progress)
            with ThreadPoolExecutor(cores()) as pool:  # Most of it is hashing, during which Python's lock is free.
                made_keys = pool.map(lambda record: key_of(record, interval, level), records.values())
                keys = dict(zip(records, made_keys, strict=True))
        for number, (place, record) in enumerate(records.items()):
            progress("records", number, len(records))
            try:
                kept[place] = keep(record, keys[place], shelf, interval, level)
            except UserError as error:
                notes.append(f"left out: {error}")
        progress("records", len(records), len(records))
        if not kept:
            raise UserError(notes[0].removeprefix("left out: "))
        shown = {place: records[place] for place in kept}
        named = labels(list(shown.values()))
        all_runs = [
            BoardRun(one_line(name), record, kept[place], facts_of(record, place), Intervals(interval, level))
            for name, (place, record) in zip(named, shown.items(), strict=True)
        ]
        notes += dict.fromkeys(run.kept.note for run in all_runs if run.kept.note)
        sections = sections_of(all_runs, shelf, interval, level, progress)
        root = redact(str(folders[0])) if len(folders) == 1 else ""
        made = Board(sections, interval, level, tuple(map(redact, notes)), root)
        if out is not None:
            made.save(out)
        # It is about this machine, not about the page.
        return replace(made, notes=(*made.notes, shelf.trouble)) if shelf.trouble else made


def _found(folders: Sequence[Path]) -> tuple[dict[str, Path], list[str]]:
    """Return the files of the records below some folders, by their places, and what could not be looked into."""
    files: dict[Path, tuple[Path, str]] = {}
    notes: list[str] = []

    def unlisted(error: OSError) -> None:
        notes.append(f"left out: {error.filename} cannot be listed ({error.strerror or error}).")

    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder} is no folder: name one with runs below it.")
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


def _read(files: Mapping[str, Path], notes: list[str], progress: Progress) -> dict[str, RunRecord]:
    """Return records by their places; a note is added for each that is left out."""
    records = {}
    for number, (place, file) in enumerate(files.items()):
        progress("reading", number, len(files))
        try:
            records[place] = load_run(file)
        except UserError as error:
            notes.append(f"left out: {error}")
    progress("reading", len(files), len(files))
    if not records:
        raise UserError(notes[0].removeprefix("left out: "))
    return records
