"""The places of data.

They are searched in this order: `--data-dir`, the folders in `STSBENCH_DATA`, the folder `data` of a clone of
stsbench, the cache. Nothing is downloaded except by `stsbench.data.fetch`.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.files import cache_dir
from stsbench.data.catalogue import Source


class DataNotFoundError(UserError):
    """The data is in none of the places."""


@dataclass(frozen=True)
class Place:
    """A folder that is searched for data, and the option or variable that named it."""

    origin: str
    folder: Path


def places(data_dirs: Sequence[Path] = ()) -> tuple[Place, ...]:
    """Returns the folders that are searched for data, in order.

    `STSBENCH_DATA` lists folders as PATH does. If it is set to nothing, the clone's folder is skipped, too.

    Args:
        data_dirs: the folders of this call, which come first.
    """
    named = [Place("--data-dir", Path(folder).expanduser()) for folder in data_dirs]
    variable = os.environ.get("STSBENCH_DATA")
    names = variable.split(os.pathsep) if variable else []
    named += [Place("STSBENCH_DATA", Path(name).expanduser()) for name in names if name]
    for place in named:
        if not place.folder.is_dir():
            raise UserError(
                f"{place.origin} names {place.folder}, which is not a folder: "
                "name the folder with the data (in SentEval's layout the one with `downstream/` in it)."
            )
    checkout = None if variable == "" else checkout_data()
    clone = [Place("checkout", checkout)] if checkout is not None else []
    return (*named, *clone, Place("cache", data_cache()))


def checkout_data() -> Path | None:
    """Returns the folder `data` of a clone of stsbench, from any working folder; None for an installed wheel."""
    folder = Path(str(files("stsbench"))).parent
    is_clone = (folder / "pyproject.toml").is_file() and (folder / "data").is_dir()
    return folder / "data" if is_clone else None


def data_cache() -> Path:
    """Returns the folder of downloaded data."""
    return cache_dir(own=True) / "data"


def root_in(place: Place, source: Source, paths: Sequence[str]) -> Path | None:
    """Returns the first of the source's roots below `place` with any of `paths`, or None."""
    for layout in source.roots:
        root = place.folder / layout
        if any((root / path).is_file() for path in paths):
            return root
    return None


def find_root(source: Source, paths: Sequence[str], name: str, data_dirs: Sequence[Path] = ()) -> Path:
    """Returns the folder with all of `paths`: the first with any of them, so that two copies are never mixed.

    Args:
        source: the source of the files.
        paths: the files, relative to the source's root.
        name: what they are, for messages ("STS12").
        data_dirs: see `places`.

    Raises:
        DataNotFoundError: if no place has any of them.
        UserError: if that folder has only some.
    """
    if source.kind == "bundled":
        return bundled_root(source)
    searched = places(data_dirs)
    for place in searched:
        root = root_in(place, source, paths)
        if root is not None:
            absent = next((path for path in paths if not (root / path).is_file()), None)
            if absent is not None:
                raise UserError(
                    f"{name} is incomplete in {root} ({place.origin}): {absent} is missing; "
                    f"put it there, name another folder, or {remedy(source)}."
                )
            return root
    folders = ", ".join(f"{place.folder} ({place.origin})" for place in searched)
    raise DataNotFoundError(f"{name} was not found in {folders}, which lack {paths[0]}: {remedy(source)}.")


def bundled_root(source: Source) -> Path:
    """Returns the folder of a bundled source."""
    return Path(str(files("stsbench.data").joinpath(source.name)))


def remedy(source: Source) -> str:
    """Returns what to do about missing files of a source, as the end of a sentence."""
    if source.kind == "bundled":
        return "it comes with stsbench, so install stsbench again"
    if source.kind == "by-hand":
        return f"get it by hand from {source.address} and set STSBENCH_DATA to its folder"
    return (
        f"run `stsbench data get {source.name}`, or (offline) set STSBENCH_DATA to the folder of a copy, "
        f"to be had from {source.address}"
    )
