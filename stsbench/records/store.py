"""Records on disk: written whole, read with a check.

A run's folder holds `run.json` and `items.parquet`. The table is written beside its place first; the rename of
`run.json`, which carries its hash, commits the run; then it takes its place. A reader that comes in between, or
after a kill in between, finds a committed table under its first name. So there is always either the old record or
the new one, never a mixture; a lock file keeps two writers apart.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, digest_of, remove_leftovers, sha256_of, told_as_unwritable
from stsbench.base.parsing import parse_json
from stsbench.base.words import closest
from stsbench.records.items import ITEMS
from stsbench.records.parts import SCHEMA_VERSION, ModelPart, ProtocolPart, RunFields, TableFile, sealed
from stsbench.records.record import RECORD, RunRecord, staged


class MeasuredTask(NamedTuple):
    """What a task's score is of: its signature, the whole hash of its data, the seed of what is trained on it."""

    signature: str
    data: str
    seed: int | None


@dataclass(frozen=True)
class Measurement:
    """What makes two measurements the same: what is measured, on what and how.

    When it was, at what cost and what came out does not. Nothing else decides whether a record may take another's
    place.
    """

    model: ModelPart
    protocol: ProtocolPart
    tasks: tuple[MeasuredTask, ...]

    @classmethod
    def of(cls, record: RunFields) -> "Measurement":
        """Return the measurement that a record is of."""
        tasks = tuple(
            MeasuredTask(score.signature, score.data.sha256, score.training.seed if score.training else None)
            for score in record.scores
        )
        return cls(record.model, record.protocol, tasks)

    def __str__(self) -> str:
        return f"{self.model.name}, {self.tasks[0].signature}, ..."

    @property
    def has_hash(self) -> bool:
        """Whether a hash stands for the model: of a function nobody knows whether it is still the same."""
        return self.model.weights_sha256 is not None

    @property
    def digits(self) -> str:
        """Six digits of a hash that stand for the measurement."""
        said = {"model": self.model.model_dump(mode="json"), "protocol": self.protocol.model_dump(mode="json")}
        return digest_of({**said, "tasks": list(map(list, self.tasks))})[:6]


_LARGEST = 2**28
"""Bytes. A record of ten thousand subsets has a hundredth of that."""

_RESTORE = "put the file back as it was written, or measure again"


class HeldError(UserError):
    """A folder holds what would be lost, and nobody asked for that."""


def save_run(record: RunRecord, folder: str | Path, *, overwrite: bool = False) -> RunRecord:
    """Write a record and its table into a folder; return the record as it can be read from there.

    Its `replaced` says whether the same measurement was recorded there before. Where it fails, what was there
    before is untouched.

    Raises:
        HeldError: if the folder holds another one, which may have come there since anybody looked.
    """
    folder = Path(folder)
    items = None if record.is_imported else record.items
    with told_as_unwritable(folder), _alone(folder):
        _settle(folder)
        try:
            file = None if items is None else _stage(items, folder / ITEMS)
            saved = sealed(record.model_copy(update={"items_file": file}))
            held = held_by(folder, Measurement.of(saved), saved)
            if held is not None and not overwrite:
                raise HeldError(f"{folder} holds {held}")
            replaced = (folder / RECORD).is_file() and held is None
            with atomic_path(folder / RECORD) as path:
                path.write_text(saved.model_dump_json(indent=1) + "\n", encoding="utf-8")
        finally:
            _settle(folder)
    return saved.with_items(items, folder, replaced=replaced)


def save_beside(record: RunRecord, folder: Path) -> RunRecord:
    """Write a record beside a folder that is taken, under its name and a few digits that stand for the record."""
    results = [part.model_dump(mode="json") for part in record.scores]
    digits = digest_of({"measurement": Measurement.of(record).digits, "results": results})[:6]
    return save_run(record, beside(folder, f"-{digits}"))


def beside(folder: Path, ending: str) -> Path:
    """Return the folder beside another whose name has an ending more.

    >>> str(beside(Path("runs/a"), "-fp32")), str(beside(Path("."), "")) == str(Path.cwd())
    ('runs/a-fp32', True)
    """
    place = folder.resolve() if folder.name in {"", ".."} else folder  # `.` has no name of its own
    return place.parent / f"{place.name}{ending}"


def require_free(folder: Path, measurement: Measurement, *, overwrite: bool = False) -> None:
    """Raise unless a run can be saved in a folder without a loss: better before encoding than after."""
    _require_writable(folder)
    held = None if overwrite else held_by(folder, measurement)
    if held is not None:
        raise UserError(
            f"{folder} holds {held}: choose another folder with --out, or replace it with --overwrite."
        )


def held_by(folder: Path, measurement: Measurement, saved: RunRecord | None = None) -> str | None:
    """Return what would be lost if a measurement were saved in a folder, None if nothing would.

    Nothing is lost where there is no record, or one of the same measurement. Once its record is made (`saved`), of
    a model without a hash only equal results are the same.
    """
    if not (folder / RECORD).is_file():
        return None
    try:
        old = load_run(folder)
    except UserError:
        # Damaged, or of another version of stsbench: not ours to throw away unasked.
        return "a record that cannot be read"
    if Measurement.of(old) != measurement:
        return f"another measurement ({Measurement.of(old)})"
    is_same = saved is None or (old.scores, old.items_file) == (saved.scores, saved.items_file)
    if not (is_same or measurement.has_hash):
        return f"other results of {old.model.name}, which has no hash to tell whether it is the same"
    return None


def load_run(path: str | Path) -> RunRecord:
    """Read a record from its folder or from its `run.json`; its items are read when they are asked for.

    What the record says is held against its digest.

    Raises:
        UserError: if there is none, it is damaged or was edited after it was written, or another version of
            stsbench wrote its layout.
    """
    path = Path(path).expanduser()
    try:
        file = path / RECORD if path.is_dir() else path
        is_there = file.is_file()
    except OSError as error:  # Too long a name, or a folder on the way that may not be looked into.
        raise UserError(f"cannot read {path} ({error.strerror or error}): check the path.") from error
    if not is_there:
        beside = [record.parent.name for record in path.parent.glob(f"*/{RECORD}")]
        meant = closest(path.name, beside)
        hint = f"did you mean {path.parent / meant[0]}? " if meant else ""
        raise UserError(f"no run record at {path}: {hint}`stsbench run --out {path}` makes one.")
    record, digest = _parsed(file)
    if record.digest is None:
        raise UserError(f"{file} was edited after it was written: its digest is missing; {_RESTORE}.")
    if record.digest != digest:
        raise UserError(f"{file} was edited after it was written: its digest does not match; {_RESTORE}.")
    return record


def _parsed(file: Path) -> tuple[RunRecord, str]:
    """Return a record as its file has it, and the digest of the file's content."""
    try:
        if not file.is_file():  # A pipe would be waited at.
            raise UserError(f"{file} is not a file: name a record.")
        if file.stat().st_size > _LARGEST:
            raise UserError(f"{file} has more than {_LARGEST >> 20} MiB, and no run record has: name a record.")
        # Not by `parse_json`, which takes three times as long, and a thousand records are read at once: what it
        # refuses (a number too large, lists nested deep), the digest and the schema refuse here, and it says why.
        content = json.loads(file.read_bytes())
        digest = digest_of(content) if isinstance(content, dict) else ""
    except OSError as error:
        raise UserError(f"cannot read {file} ({error.strerror or error}): check its permissions.") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} is not valid JSON ({_why(file, error)}): measure again.") from error
    version = content.get("schema_version") if isinstance(content, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise UserError(f"{file} is not a run record: it names no schema version; measure again.")
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{file} has schema version {version}, and this stsbench reads version {SCHEMA_VERSION}: "
            f"{'update stsbench' if version > SCHEMA_VERSION else 'measure again'}."
        )
    try:
        record = RunRecord.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{file} is not a run record: {where}: {first['msg']}; measure again.") from error
    record._folder = file.parent
    return record, digest


def _why(file: Path, error: Exception) -> str:
    """Return why a file is no JSON in the words that are used of all files."""
    try:
        parse_json(file.read_bytes(), nan=False)
    except (OSError, ValueError) as reason:
        return str(reason)
    return str(error)


def _stage(table: pd.DataFrame, place: Path) -> TableFile:
    with atomic_path(staged(place)) as path:
        # Opened here, as pyarrow takes no path that is not UTF-8.
        with path.open("wb") as stream:
            table.to_parquet(stream, index=False)
        return TableFile(file=place.name, rows=len(table), sha256=sha256_of(path))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    # A writer holds it for a second or so: no need to give up, nor to tell anybody of the wait.
    with FileLock(folder / ".lock"):
        yield


def _settle(folder: Path) -> None:
    """Leave no staged table: put a committed one in its place, delete one that nothing refers to."""
    committed = _committed(folder)
    place, waiting = folder / ITEMS, staged(folder / ITEMS)
    if waiting.is_file():
        if committed is not None and committed == sha256_of(waiting):
            waiting.replace(place)
        else:
            waiting.unlink()
    if committed == "":
        # Of the record before, which had a table.
        place.unlink(missing_ok=True)
    remove_leftovers(waiting)
    remove_leftovers(folder / RECORD)


def _committed(folder: Path) -> str | None:
    """Return the hash of the committed record's table; empty if it has none, None if there is no record."""
    try:
        # As it was written, whatever it says: what is committed must take its place.
        record, _ = _parsed(folder / RECORD)
    except UserError as error:
        if isinstance(error.__cause__, OSError):
            raise
        return None
    return record.items_file.sha256 if record.items_file else ""


def _require_writable(folder: Path) -> None:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise UserError(f"cannot write into {folder}: {there} is not a folder; choose another with --out.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"cannot write into {folder}: no permission; choose another folder with --out.")
    for place in (folder / RECORD, folder / ITEMS):
        if place.exists() and not place.is_file():
            raise UserError(f"cannot write {place}, where something is that is no file: move it away.")
