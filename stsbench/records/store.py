"""Records on disk: `run.json` and `items.parquet` in a folder of their own.

A new items table is written beside its place first. The rename of `run.json`, which holds the table's hash,
commits the run; then the table takes its place. A reader in between, or after a kill in between, finds the
committed table under its first name. So a folder always holds either the old record or the new one. A lock keeps
writers apart.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from filelock import FileLock
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, remove_leftovers, sha256_of, writing
from stsbench.base.manifest import DIGEST, fingerprint
from stsbench.base.words import closest
from stsbench.records.items import ITEMS
from stsbench.records.parts import SCHEMA_VERSION, ModelPart, ProtocolPart, RunFields, TableFile, sealed
from stsbench.records.record import RECORD, RunRecord, staged


class MeasuredTask(NamedTuple):
    """What identifies a task's score: its signature, the hash of its data, and the seed of any training on it."""

    signature: str
    data: str
    seed: int | None


@dataclass(frozen=True)
class Measurement:
    """What identifies a measurement: model, protocol and tasks, but not its date, cost or results.

    A record may replace another one only if both have the same measurement.
    """

    model: ModelPart
    protocol: ProtocolPart
    tasks: tuple[MeasuredTask, ...]

    @classmethod
    def of(cls, record: RunFields) -> "Measurement":
        """Return the measurement of a record."""
        tasks = tuple(
            MeasuredTask(score.signature, score.data.sha256, score.training.seed if score.training else None)
            for score in record.scores
        )
        return cls(record.model, record.protocol, tasks)

    def __str__(self) -> str:
        return f"{self.model.name}, {self.tasks[0].signature}, ..."

    @property
    def has_hash(self) -> bool:
        """Whether the model has a hash; a function has none, so it may have changed unnoticed."""
        return self.model.weights_sha256 is not None

    @property
    def digits(self) -> str:
        """Six digits that identify the measurement."""
        model, protocol = (part.model_dump(mode="json") for part in (self.model, self.protocol))
        return fingerprint(model, protocol, self.tasks)[:6]


class HeldError(UserError):
    """A folder holds another record, which may be replaced only on request."""


def save_run(record: RunRecord, folder: str | Path, *, overwrite: bool = False) -> RunRecord:
    """Write a record and its items into a folder; return the record as it can be read from there.

    Its `replaced` tells whether the folder held the same measurement before. After a failure the folder is as it
    was.

    Raises:
        HeldError: if the folder holds another measurement and `overwrite` is false.
    """
    folder = Path(folder)
    items = None if record.is_imported else record.items
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"), _settled(folder):
            file = None if items is None else _stage(items, folder / ITEMS)
            saved = sealed(record.model_copy(update={"items_file": file}))
            held = held_by(folder, Measurement.of(saved), saved)
            if held is not None and not overwrite:
                raise HeldError(f"{folder} holds {held}")
            replaced = (folder / RECORD).is_file() and held is None
            with atomic_path(folder / RECORD) as path:
                path.write_text(saved.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return saved.with_items(items, folder, replaced=replaced)


def save_beside(record: RunRecord, folder: Path) -> RunRecord:
    """Write a record beside a folder that holds another one, with a few digits added to the folder's name."""
    results = [part.model_dump(mode="json") for part in record.scores]
    return save_run(record, beside(folder, f"-{fingerprint(Measurement.of(record).digits, results)[:6]}"))


def beside(folder: Path, ending: str) -> Path:
    """Return the folder with an ending added to its name.

    >>> str(beside(Path("runs/a"), "-fp32")), str(beside(Path("."), "")) == str(Path.cwd())
    ('runs/a-fp32', True)
    """
    place = folder.resolve() if folder.name in {"", ".."} else folder  # `.` has no name of its own
    return place.parent / f"{place.name}{ending}"


def require_free(folder: Path, measurement: Measurement, *, overwrite: bool = False) -> None:
    """Check, before anything is encoded, that a run can be saved in a folder without loss."""
    _require_writable(folder)
    held = None if overwrite else held_by(folder, measurement)
    if held is not None:
        raise UserError(
            f"{folder} holds {held}: choose another folder with --out, or replace it with --overwrite."
        )


def held_by(folder: Path, measurement: Measurement, saved: RunRecord | None = None) -> str | None:
    """Return what would be lost if a measurement were saved in a folder; None if nothing would.

    A record of the same measurement may be replaced. If the model has no hash, its results must be the same, too.

    Args:
        folder: the folder.
        measurement: what is to be saved.
        saved: its record, once it is made.
    """
    if not (folder / RECORD).is_file():
        return None
    try:
        old = load_run(folder)
    except UserError:
        return "a record that cannot be read"
    if Measurement.of(old) != measurement:
        return f"another measurement ({Measurement.of(old)})"
    is_same = saved is None or (old.scores, old.items_file) == (saved.scores, saved.items_file)
    if not (is_same or measurement.has_hash):
        return f"other results of {old.model.name}, which has no hash to tell whether it is the same"
    return None


def load_run(path: str | Path) -> RunRecord:
    """Read a record from its folder or from its `run.json`; its items are read on first use.

    Raises:
        UserError: if there is no record, it is damaged or was edited, or it has the layout of another version.
    """
    path = Path(path).expanduser()
    try:
        file = path / RECORD if path.is_dir() else path
        exists = file.exists()
    except OSError as error:  # the name is too long, or a folder may not be entered
        raise UserError(f"cannot read {path} ({error.strerror or error}): check the path.") from error
    if not exists:
        names = [record.parent.name for record in path.parent.glob(f"*/{RECORD}")]
        similar = closest(path.name, names)
        hint = f"did you mean {path.parent / similar[0]}? " if similar else ""
        raise UserError(f"no run record at {path}: {hint}`stsbench run --out {path}` makes one.")
    content = _content(file)
    record = _validated(content, file)
    if not _is_sealed(content):
        raise UserError(
            f"{file} was edited after it was written: its digest does not match; put the file back as it was "
            "written, or measure again."
        )
    return record


def _is_sealed(content: dict[str, Any]) -> bool:
    digest = content.pop(DIGEST, None)
    try:
        return bool(digest == fingerprint(content))
    except ValueError:  # NaN and infinity are not JSON
        return False


def _content(file: Path) -> dict[str, Any]:
    if not file.is_file():  # reading a pipe would wait
        raise UserError(f"{file} is not a file: name a record.")
    try:
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {file} ({error.strerror or error}): check its permissions.") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} is not valid JSON ({error}): measure again.") from error
    version = content.get("schema_version") if isinstance(content, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise UserError(f"{file} is not a run record: it names no schema version; measure again.")
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{file} has schema version {version}, and this stsbench reads version {SCHEMA_VERSION}: "
            f"{'update stsbench' if version > SCHEMA_VERSION else 'measure again'}."
        )
    return dict(content)


def _validated(content: dict[str, Any], file: Path) -> RunRecord:
    try:
        record = RunRecord.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{file} is not a run record: {where}: {first['msg']}; measure again.") from error
    record._folder = file.parent
    return record


def _stage(table: pd.DataFrame, place: Path) -> TableFile:
    with atomic_path(staged(place)) as path:
        # Opened here, as pyarrow takes no path that is not UTF-8.
        with path.open("wb") as stream:
            table.to_parquet(stream, index=False)
        return TableFile(file=place.name, rows=len(table), sha256=sha256_of(path))


@contextmanager
def _settled(folder: Path) -> Iterator[None]:
    """Finish what a killed writer left, before and after a write."""
    _settle(folder)
    try:
        yield
    finally:
        _settle(folder)


def _settle(folder: Path) -> None:
    """Move a committed table to its place, and delete one that no record refers to."""
    place, waiting = folder / ITEMS, staged(folder / ITEMS)
    file, has_record = _committed(folder)
    if waiting.is_file():
        if file is not None and file.sha256 == sha256_of(waiting):
            waiting.replace(place)
        else:
            waiting.unlink()
    if has_record and file is None:  # the table is of the record before
        place.unlink(missing_ok=True)
    remove_leftovers(waiting)
    remove_leftovers(folder / RECORD)


def _committed(folder: Path) -> tuple[TableFile | None, bool]:
    """Return the items file that a folder's record names, and whether it has a record that can be parsed."""
    try:
        return _validated(_content(folder / RECORD), folder / RECORD).items_file, True
    except UserError as error:
        if isinstance(error.__cause__, OSError):  # unknown: nothing may be deleted
            raise
        return None, False


def _require_writable(folder: Path) -> None:
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise UserError(f"cannot write into {folder}: {existing} is not a folder; choose another with --out.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"cannot write into {folder}: no permission; choose another folder with --out.")
    for place in (folder / RECORD, folder / ITEMS):
        if place.exists() and not place.is_file():
            raise UserError(f"cannot write {place}: it is not a file; move it away.")
