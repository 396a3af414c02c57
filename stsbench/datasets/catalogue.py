"""The catalogue: every data set and every source that stsbench knows, read from the TOML entries."""

import difflib
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any

from stsbench.datasets.schema import DataSet, Source, TextVariant
from stsbench.foundation.errors import UserError


@cache
def data_sets() -> Mapping[str, DataSet]:
    """Return every data set by its task name, in the catalogue's order."""
    entries = [DataSet.model_validate(_read(path)) for path in _entry_files("tasks")]
    return MappingProxyType({entry.task: entry for entry in entries})


@cache
def sources() -> Mapping[str, Source]:
    """Return every source of files by its name."""
    entries = [Source.model_validate(_read(path)) for path in _entry_files("sources")]
    return MappingProxyType({entry.name: entry for entry in entries})


def data_set(task: str) -> DataSet:
    """Return the data set that a person means by `task`, whatever its case and punctuation.

    Raises:
        UserError: if the catalogue has no such task.

    >>> data_set("stsbenchmark").task
    'STS-B'
    """
    names = _names()
    found = names.get(_plain(task))
    if found is None:
        close = difflib.get_close_matches(_plain(task), names, n=1)
        hint = f"did you mean {names[close[0]]}?" if close else f"choose one of {', '.join(data_sets())}."
        raise UserError(f"there is no task {task!r}: {hint}")
    return data_sets()[found]


def source(name: str) -> Source:
    """Return the source called `name`.

    Raises:
        UserError: if the catalogue has no such source.
    """
    if name not in sources():
        raise UserError(f"there is no data source {name!r}: choose one of {', '.join(sources())}.")
    return sources()[name]


def text_variant(entry: DataSet, text: str) -> TextVariant:
    """Return the files of one text of a data set.

    Raises:
        UserError: if the data set does not come in that text.
    """
    if text not in entry.texts:
        raise UserError(f"{entry.task} has no text {text!r}: choose one of {', '.join(entry.texts)}.")
    return entry.texts[text]


@cache
def _names() -> Mapping[str, str]:
    return {_plain(name): entry.task for entry in data_sets().values() for name in (entry.task, *entry.aliases)}


def _plain(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "").replace(" ", "")


def _entry_files(folder: str) -> list[Traversable]:
    # The numbers in front of the names give the order in which tables list the entries.
    found = files("stsbench.datasets").joinpath("entries", folder).iterdir()
    return sorted((path for path in found if path.name.endswith(".toml")), key=lambda path: path.name)


def _read(path: Traversable) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
