"""Where data is looked for, in which order, and what to do when it is not there.

The order is the same everywhere: the folders that the person names (`--data-dir`), those in `STSBENCH_DATA`, in
a checkout of stsbench its folder `data`, the cache. Nothing is downloaded unless asked for (see
`stsbench.data.fetch`).
"""

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.files import own_cache_dir
from stsbench.data.catalogue import Source


class DataNotFoundError(UserError):
    """No place holds the data: nothing was wrong with it, it is just not here."""


@dataclass(frozen=True)
class Place:
    """A folder in which data is looked for, and who named it."""

    origin: str
    folder: Path


def places(data_dirs: Sequence[Path] = ()) -> tuple[Place, ...]:
    """Return the folders in which data is looked for, in order.

    `STSBENCH_DATA` holds folders as PATH does. Set but empty it names none, and leaves the checkout's out, too.

    Args:
        data_dirs: folders that the person names for this call; they come first.
    """
    named = [Place("--data-dir", Path(folder).expanduser()) for folder in data_dirs]
    variable = os.environ.get("STSBENCH_DATA")
    names = variable.split(os.pathsep) if variable else []
    named += [Place("STSBENCH_DATA", Path(name).expanduser()) for name in names if name]
    for place in named:
        if not place.folder.is_dir():
            raise UserError(
                f"{place.origin} names {place.folder}, which is not a folder: "
                "name the folder that holds the data (in SentEval's layout the one with `downstream/` in it)."
            )
    checkout = None if variable == "" else checkout_data()
    ours = [Place("checkout", checkout)] if checkout is not None else []
    return (*named, *ours, Place("cache", data_cache()))


def checkout_data() -> Path | None:
    """Return the folder `data` beside the package, if it is there and this is a checkout of stsbench.

    It does not depend on where the person works: the package has to lie beside stsbench's own `pyproject.toml`, as
    it does in a clone, installed from it (`pip install -e .`) or not, and does not where a wheel was installed.
    """
    folder = Path(str(files("stsbench"))).parent
    return folder / "data" if _is_checkout(folder) and (folder / "data").is_dir() else None


@cache
def _is_checkout(folder: Path) -> bool:
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    except (OSError, ValueError):
        return False
    return isinstance(project, dict) and project.get("name") == "stsbench"


def data_cache() -> Path:
    """Return the folder that downloaded data is kept in."""
    return own_cache_dir() / "data"


def root_in(place: Place, source: Source, paths: Sequence[str]) -> Path | None:
    """Return the first of the source's layouts below `place` that holds any of `paths`, or None."""
    for layout in source.roots:
        root = place.folder / layout
        if any((root / path).is_file() for path in paths):
            return root
    return None


def find_root(source: Source, paths: Sequence[str], wanted: str, data_dirs: Sequence[Path] = ()) -> Path:
    """Return the folder below which all of `paths` lie.

    The first place that holds any of them is the one: a task is never put together from two places.

    If no place holds any of them, a DataNotFoundError says so; if that place holds only some, a plain UserError.

    Args:
        source: what the files belong to; says which layouts a data folder may have.
        paths: the wanted files, relative to the source's root.
        wanted: what they are, for the message ("STS12").
        data_dirs: see `places`.
    """
    if source.kind == "bundled":
        return bundled_root(source)
    looked = places(data_dirs)
    for place in looked:
        root = root_in(place, source, paths)
        if root is not None:
            absent = next((path for path in paths if not (root / path).is_file()), None)
            if absent is not None:
                raise UserError(
                    f"{wanted} is incomplete in {root} ({place.origin}): {absent} is missing; "
                    f"put it there, name another folder, or {remedy(source)}."
                )
            return root
    folders = ", ".join(f"{place.folder} ({place.origin})" for place in looked)
    raise DataNotFoundError(f"{wanted} was not found in {folders}, which lack {paths[0]}: {remedy(source)}.")


def bundled_root(source: Source) -> Path:
    """Return the folder of a source that comes with the package."""
    return Path(str(files("stsbench.data").joinpath(source.name)))


def remedy(source: Source) -> str:
    """Return what to do about missing files of a source, as the end of a sentence.

    It names the address too, for machines without a network: what is fetched elsewhere is used as it is.
    """
    if source.kind == "bundled":
        return "it comes with stsbench, so install stsbench again"
    if source.kind == "by-hand":
        return f"get it by hand from {source.address} and set STSBENCH_DATA to its folder"
    return (
        f"run `stsbench data get {source.name}`, or (offline) set STSBENCH_DATA to the folder of a copy, "
        f"to be had from {source.address}"
    )
