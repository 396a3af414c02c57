"""Papers, tables, rows, systems and checkpoints by name, and measurements of systems, read from `entries/`."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from io import StringIO
from types import MappingProxyType
from typing import Any, TypeVar

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.published.schema import (
    KnownCheckpoint,
    Paper,
    PublishedCell,
    PublishedTable,
    Row,
    System,
    Usage,
)

_ENTRIES = files("stsbench.published") / "entries"
_MEASURED = _ENTRIES / "measured"

_OWNERS = re.compile(r"^(google-bert|facebookai)/(?=(bert-base-uncased|roberta-base)$)")
"""Owners that the Hub added to models without one."""

Entry = TypeVar("Entry", Paper, PublishedTable, System, KnownCheckpoint)


@dataclass(frozen=True)
class PublishedRow:
    """A row of a table, with its table, paper and system.

    Attributes:
        table: its table.
        row: the entry.
        paper: the paper of the table.
        system: the system that was measured; None for a row of counts.
        cells: its cells in the order of the columns, without empty ones.
    """

    table: PublishedTable
    row: Row
    paper: Paper
    system: System | None
    cells: tuple[PublishedCell, ...]

    @property
    def name(self) -> str:
        """The full name, `table/row`."""
        return f"{self.table.name}/{self.row.name}"

    @property
    def usage(self) -> Usage:
        """How the model was used, as far as the source states."""
        return self.row.usage.over(self.table.usage)

    def cell(self, column: str) -> PublishedCell:
        """Returns the cell of a column.

        Raises:
            UserError: if the row has no such cell.
        """
        cells = {cell.column: cell for cell in self.cells}
        if column not in cells:
            raise UserError(f"{self.name} has no value for {column!r}: {suggestion(column, cells)}")
        return cells[column]


@cache
def papers() -> Mapping[str, Paper]:
    """Returns all papers by name."""
    return _by_name(Paper.model_validate(entry) for entry in _read("papers.toml")["papers"])


@cache
def tables() -> Mapping[str, PublishedTable]:
    """Returns all tables by name, in the order of the papers.

    >>> tables()["esimcse-coling2022-3"].title
    'STS test sets'
    """
    return _by_name(
        PublishedTable.model_validate(_read("tables", paper, name))
        for paper in papers()
        for name in sorted(path.name for path in _ENTRIES.joinpath("tables", paper).iterdir())
    )


@cache
def exhibits() -> Mapping[str, PublishedTable]:
    """Returns all tables and figures by name, in the order of the papers.

    >>> exhibits()["mocose-acl2022-figure-8"].heading
    'Figure 8'
    """
    figures = [PublishedTable.model_validate(entry) for entry in _read("figures.toml")["figures"]]
    order = list(papers())
    return _by_name(sorted([*tables().values(), *figures], key=lambda entry: order.index(entry.paper)))


def exhibit(name: str) -> PublishedTable:
    """Returns a table or figure by name; case and punctuation do not matter.

    >>> exhibit("MoCoSE ACL2022 figure 8").kind
    'figure'
    """
    return _find(name, exhibits(), "table or figure", "stsbench reproduce --list")


@cache
def systems() -> Mapping[str, System]:
    """Returns all systems by name."""
    return _by_name(System.model_validate(entry) for entry in _read("systems.toml")["systems"])


@cache
def checkpoints() -> Mapping[str, KnownCheckpoint]:
    """Returns all known public checkpoints by name."""
    content = _read("checkpoints.toml")
    citations = content["citations"]
    return _by_name(
        KnownCheckpoint.model_validate(entry | {"citation": citations[entry["citation"]].strip()})
        for entry in content["checkpoints"]
    )


@cache
def rows() -> Mapping[str, PublishedRow]:
    """Returns all rows by full name, `table/row`."""
    return MappingProxyType({row.name: row for table in tables().values() for row in rows_of(table)})


def rows_of(table: PublishedTable) -> Iterator[PublishedRow]:
    """Yields the rows of a table with their cells."""
    paper = papers()[table.paper]
    for row in table.rows:
        yield PublishedRow(table, row, paper, systems().get(row.system), tuple(table.cells_of(row, paper.file)))


def table(name: str) -> PublishedTable:
    """Returns a table by name; case and punctuation do not matter.

    Raises:
        UserError: if there is no such table. The message suggests similar names.

    >>> table("ESimCSE COLING2022 3").name
    'esimcse-coling2022-3'
    """
    return _find(name, tables(), "table", "stsbench published list")


def system(name: str) -> System:
    """Returns a system by its name, an alias, or the Hub name of its checkpoint.

    Raises:
        UserError: if there is no such system. The message suggests similar names.

    >>> system("princeton-nlp/unsup-simcse-bert-base-uncased").name
    'unsup-simcse-bert-base'
    """
    if found := systems().get(_system_names().get(_plain(name), "")):
        return found
    hint = _suggest(name, systems(), "stsbench published list systems")
    raise UserError(f"there is no published system {name!r}: {hint}")


def identified_checkpoint(
    name: str, *, pooling: str = "", weights_sha256: str | None = None
) -> KnownCheckpoint | None:
    """Returns the known checkpoint with these weights, or else with this whole Hub name; None if there is none.

    Args:
        name: a Hub name. The Hub's oldest models have two, with and without an owner. The last part of a path
            identifies nothing, because a folder can have any name.
        pooling: the entry to prefer if there are several for the checkpoint; by default the first.
        weights_sha256: hash of the weights.

    >>> identified_checkpoint("google-bert/bert-base-uncased", pooling="avg").name
    'bert-base-avg'
    >>> identified_checkpoint("models/bert-base-uncased") is None
    True
    """
    label, known = _OWNERS.sub("", name.casefold()), checkpoints().values()
    entries = [entry for entry in known if weights_sha256 and entry.weights_sha256 == weights_sha256]
    entries = entries or [entry for entry in known if entry.hub and entry.hub.casefold() == label]
    return next((entry for entry in entries if entry.pooling == pooling), next(iter(entries), None))


def checkpoint_named_like(name: str) -> KnownCheckpoint | None:
    """Returns the first known checkpoint whose Hub name has this last part, as a hint; None if there is none."""
    label = _last_part(name)
    return next((entry for entry in checkpoints().values() if entry.hub and _last_part(entry.hub) == label), None)


@lru_cache(maxsize=4096)
def checkpoint_by_name(name: str) -> KnownCheckpoint | None:
    """Returns the known checkpoint for a name that you type; None if there is none.

    Args:
        name: its Hub name, with or without the owner, its name here, or a name or alias of its system.

    >>> checkpoint_by_name("esimcse-bert-base").hub
    'ffgcc/esimcse-bert-base-uncased'
    """
    of_name = (entry for entry in checkpoints().values() if _plain(entry.name) == _plain(name))
    return (
        identified_checkpoint(name)
        or next(of_name, None)
        or checkpoint_of_system(_system_names().get(_plain(name), ""))
        or (None if "/" in name else checkpoint_named_like(name))
    )


def checkpoint_of_system(name: str) -> KnownCheckpoint | None:
    """Returns the checkpoint of a system, by the system's own name; None if none is known."""
    return next((entry for entry in checkpoints().values() if name and entry.system == name), None)


def _last_part(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].casefold()


def row(name: str) -> PublishedRow:
    """Returns a row by its full name, or the row to expect of a system.

    Args:
        name: `table/row`, or any name that `system` accepts.

    Raises:
        UserError: if there is no such row. The message suggests similar names.

    >>> row("unsup-simcse-bert-base").cell("Avg.").value
    76.25
    >>> row("unsup-simcse-bert-base-preprint").cell("Avg.").value
    74.54
    """
    for key, entry in rows().items():
        if _plain(key) == _plain(name):
            return entry
    measured = systems().get(_system_names().get(_plain(name), ""))
    if measured is None:
        hint = _suggest(name, [*systems(), *rows()], "stsbench published list rows")
        raise UserError(f"there is no published row {name!r}: {hint}")
    if not measured.row:
        raise UserError(f"no row of {measured.name} is included: {measured.note}")
    return rows()[measured.row]


@cache
def _system_names() -> Mapping[str, str]:
    # If several entries share a Hub name, the first is the default.
    entries = [entry for entry in reversed(list(checkpoints().values())) if entry.hub and entry.system]
    names = {_plain(entry.hub): entry.system for entry in entries}
    names |= {_plain(label): entry.name for entry in systems().values() for label in (*entry.aliases, entry.name)}
    return names


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum() or character in "/.+")


def _find(name: str, known: Mapping[str, Entry], what: str, command: str) -> Entry:
    found = next((entry for key, entry in known.items() if _plain(key) == _plain(name)), None)
    if found is None:
        raise UserError(f"there is no {what} {name!r}: {_suggest(name, known, command)}")
    return found


def _suggest(name: str, known: Iterable[str], command: str) -> str:
    return suggestion(name, known, otherwise=f"`{command}` lists them.")


def _by_name(entries: Iterable[Entry]) -> Mapping[str, Entry]:
    return MappingProxyType({entry.name: entry for entry in entries})


def _read(*path: str) -> dict[str, Any]:
    return tomllib.loads(_ENTRIES.joinpath(*path).read_text(encoding="utf-8"))


@dataclass(frozen=True)
class MeasuredSource:
    """The source of measurements, and remarks."""

    title: str
    address: str
    note: str


def source(kind: str) -> MeasuredSource:
    """Returns the source of `training-logs` or `seeds`."""
    return MeasuredSource(**_read("measured", "sources.toml")[kind])


def logged_systems() -> tuple[str, ...]:
    """Returns the systems that have a training log."""
    return _names("training-logs", ".test.csv")


def seeded_systems() -> tuple[str, ...]:
    """Returns the systems that were trained with many seeds.

    >>> seeded_systems()[0]
    'unsup-simcse-bert-base'
    """
    return _names("seeds", ".csv")


def logged_test_scores(system: str) -> pd.DataFrame:
    """Returns the test scores of a training log: `pearson` and `spearman` by `task` and `subset`, from 0 to 1."""
    return _of_system("training-logs", system, ".test.csv", logged_systems())


def logged_dev_scores(system: str) -> pd.DataFrame:
    """Returns the dev scores of a training log: `STS-B` and `SICK-R` by `step`, Spearman from 0 to 1."""
    return _of_system("training-logs", system, ".dev.csv", logged_systems())


def seeds(system: str) -> pd.DataFrame:
    """Returns the scores of a system over many seeds of an independent reproduction, one row per seed.

    They are Spearman x 100 per task, their mean `Avg.`, and `STS-B:dev`; `best_step` is the step of the chosen
    checkpoint.

    >>> round(float(seeds("unsup-simcse-bert-base")["Avg."].mean()), 2)
    75.11
    """
    return _of_system("seeds", system, ".csv", seeded_systems())


def encoder_errors() -> pd.DataFrame:
    """Returns `score` x 100 and its standard `error` by `encoder` and `task`, from `docs/resolution_facts.py`."""
    return _read_measured("encoders", "errors.csv")


def error_correlations() -> pd.DataFrame:
    """Returns the `correlation` of the errors of two encoders, `a` and `b`, by `task`.

    `df` is the degrees of freedom of their difference, infinite if unknown.
    """
    return _read_measured("encoders", "correlations.csv")


def _of_system(kind: str, system: str, suffix: str, known: tuple[str, ...]) -> pd.DataFrame:
    if system not in known:
        raise UserError(f"no {kind} of {system!r} are known: {suggestion(system, known)}")
    return _read_measured(kind, f"{system}{suffix}")


def _read_measured(kind: str, name: str) -> pd.DataFrame:
    return pd.read_csv(StringIO(_MEASURED.joinpath(kind, name).read_text(encoding="utf-8")))


def _names(kind: str, suffix: str) -> tuple[str, ...]:
    paths = (_MEASURED / kind).iterdir()
    return tuple(sorted(path.name.removesuffix(suffix) for path in paths if path.name.endswith(suffix)))
