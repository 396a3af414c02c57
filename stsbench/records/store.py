"""Records on disk: `run.json` and `items.parquet` in a folder of their own.

A new items table is first written under a temporary name. The rename of `run.json`, which holds the table's hash,
commits the run; then the table is moved to its place. In between, and after a kill in between, readers find the
committed table under its temporary name. So a folder always holds either the old record or the new one. A lock
keeps two writers apart.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from filelock import FileLock
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import (
    atomic_path,
    remove_leftovers,
    require_file,
    require_writable,
    sha256_of,
    writing,
)
from stsbench.base.manifest import DIGEST, fingerprint
from stsbench.base.parsing import first_error
from stsbench.base.words import closest
from stsbench.records.items import ITEMS
from stsbench.records.parts import SCHEMA_VERSION, ModelPart, ProtocolPart, RunFields, TableFile, sealed
from stsbench.records.record import RECORD, RunRecord, staged


class Measurement(NamedTuple):
    """What identifies a measurement, but not its date, cost or results.

    A record may replace another one only if both have the same measurement.

    Attributes:
        model: the model and its use.
        protocol: the choices for all tasks.
        tasks: for each task the signature, the hash of its data, and the seed of any training on it.
    """

    model: ModelPart
    protocol: ProtocolPart
    tasks: tuple[tuple[str, str, int | None], ...]

    @classmethod
    def of(cls, record: RunFields) -> "Measurement":
        """Return the measurement of a record."""
        tasks = (
            (score.signature, score.data.sha256, score.training.seed if score.training else None)
            for score in record.scores
        )
        return cls(record.model, record.protocol, tuple(tasks))

    def __str__(self) -> str:
        return f"{self.model.name}, {self.tasks[0][0]}, ..."

    @property
    def digits(self) -> str:
        """Six digits that identify the measurement."""
        model, protocol = (part.model_dump(mode="json") for part in (self.model, self.protocol))
        return fingerprint(model, protocol, self.tasks)[:6]


class HeldError(UserError):
    """A folder holds another record, which may be replaced only on request."""


def save_run(record: RunRecord, folder: str | Path, *, overwrite: bool = False) -> RunRecord:
    """Write a record and its items into a folder; return the record as it can be read from there.

    Its `replaced` shows whether the folder held the same measurement before. After a failure the folder is
    unchanged.

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
    return place.with_name(f"{place.name}{ending}")


def require_free(folder: Path, measurement: Measurement, *, overwrite: bool = False) -> None:
    """Check, before anything is encoded, that a run can be saved in a folder without loss."""
    require_writable(folder, "--out", as_folder=True)
    for name in (RECORD, ITEMS):
        require_writable(folder / name, "--out")
    held = None if overwrite else held_by(folder, measurement)
    if held is not None:
        raise UserError(
            f"{folder} holds {held}: choose another folder with --out, or replace it with --overwrite."
        )


def held_by(folder: Path, measurement: Measurement, saved: RunRecord | None = None) -> str | None:
    """Return what would be lost if a measurement were saved in a folder; None if nothing would.

    A record of the same measurement may be replaced. If the model has no hash, its results must be equal, too.

    Args:
        folder: the folder.
        measurement: the measurement to save.
        saved: its record, once it exists.
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
    if not is_same and measurement.model.weights_sha256 is None:
        return f"other results of {old.model.name}, a model without a hash, which may have changed"
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
        similar = closest(path.name, [record.parent.name for record in path.parent.glob(f"*/{RECORD}")])
        hint = f"did you mean {path.parent / similar[0]}? " if similar else ""
        raise UserError(f"no run record at {path}: {hint}`stsbench run --out {path}` makes one.")
    content = _content(file)
    record = _validated(content, file)
    try:
        is_sealed = content.pop(DIGEST, None) == fingerprint(content)
    except ValueError:  # NaN and infinity are not JSON
        is_sealed = False
    if not is_sealed:
        raise UserError(
            f"{file} was edited after it was written (its digest does not match): restore the file, or measure "
            "again."
        )
    return record


def _content(file: Path) -> dict[str, Any]:
    require_file(file, absent="name a record")
    try:
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {file} ({error.strerror or error}): check its permissions.") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} is not valid JSON ({error}): measure again.") from error
    version = content.get("schema_version") if isinstance(content, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise UserError(f"{file} is not a run record: it has no schema version; measure again.")
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
        raise UserError(f"{file} is not a run record: {first_error(error)}; measure again.") from error
    record._folder = file.parent
    return record


def _stage(table: pd.DataFrame, place: Path) -> TableFile:
    with atomic_path(staged(place)) as path:
        # Opened here, because pyarrow rejects paths that are not UTF-8.
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
    if has_record and file is None:  # the table belongs to the previous record
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
