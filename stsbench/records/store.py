"""Records on disk: written whole, read with a check.

A run's folder holds `pairs.parquet` and `run.json`. The pair table is written beside its place first; the
rename of `run.json`, which carries the table's hash, commits the run; then the table takes its place. A reader
that comes in between, or after a kill in between, finds the committed table under its first name. So there is
always either the old record or the new one, never a mixture; a lock file keeps two writers apart.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from stsbench.foundation.errors import UserError
from stsbench.foundation.files import atomic_path, remove_leftovers, sha256_of, told_as_unwritable
from stsbench.records.record import SCHEMA_VERSION, ModelPart, PairsFile, RunRecord
from stsbench.records.signature import Signature

if TYPE_CHECKING:
    import pandas as pd

RECORD = "run.json"
PAIRS = "pairs.parquet"
_STAGED = "pairs.next.parquet"


def save_run(record: RunRecord, folder: str | Path) -> RunRecord:
    """Write a record and its pair table into a folder; return the record as it can be read from there.

    Raises:
        UserError: if the disk is full or the folder cannot be written. What was there before is untouched.
    """
    folder, pairs = Path(folder), None if record.is_imported else record.pairs
    with told_as_unwritable(folder), _alone(folder):
        _settle(folder)
        try:
            file = None
            if pairs is not None:
                with atomic_path(folder / _STAGED) as path:
                    pairs.to_parquet(path, index=False)
                    file = PairsFile(file=PAIRS, rows=len(pairs), sha256=sha256_of(path))
            saved = record.model_copy(update={"pairs_file": file})
            with atomic_path(folder / RECORD) as path:
                path.write_text(saved.model_dump_json(indent=1) + "\n", encoding="utf-8")
        finally:
            _settle(folder)
    return saved.with_pairs(pairs, folder)


def require_free(
    folder: Path, signatures: Sequence[Signature], model: ModelPart, *, overwrite: bool = False
) -> None:
    """Make sure that a run can be saved in a folder and nothing is lost there: better before encoding than after.

    A run of the same model under the same signatures replaces the one before it.

    Raises:
        UserError: if the folder cannot be written, or holds another record and `overwrite` is false.
    """
    _require_writable(folder)
    held = None if overwrite else held_by(folder, signatures, model)
    if held is not None:
        raise UserError(
            f"{folder} holds {held}: choose another folder with --out, or replace it with --overwrite."
        )


def held_by(folder: Path, signatures: Sequence[Signature], model: ModelPart) -> str | None:
    """Return what would be lost if this measurement were saved in a folder, None if nothing would.

    Nothing is lost where there is no record, or one of the same model under the same signatures.
    """
    if not (folder / RECORD).is_file():
        return None
    try:
        old = load_run(folder)
    except UserError:
        # Damaged, or of another version of stsbench: not ours to throw away unasked.
        return "a record that cannot be read"
    if old.model == model and old.signature == "\n".join(map(str, signatures)):
        return None
    return f"another measurement ({old.model.name}, {old.tasks[0].signature}, ...)"


def load_run(path: str | Path) -> RunRecord:
    """Read a record from its folder or from its `run.json`; its pair table is read when asked for.

    Raises:
        UserError: if there is none, it is damaged, or another version of stsbench wrote its layout.
    """
    path = Path(path).expanduser()
    file = path / RECORD if path.is_dir() else path
    if not file.is_file():
        raise UserError(f"no run record at {path}: `stsbench run --out {path}` makes one.")
    try:
        written = file.read_bytes()
        content = json.loads(written)
    except OSError as error:
        raise UserError(f"cannot read {file} ({error.strerror or error}): check its permissions.") from error
    except ValueError as error:
        raise UserError(f"{file} is not valid JSON ({error}): measure again.") from error
    version = content.get("schema_version") if isinstance(content, dict) else None
    if not isinstance(version, int):
        raise UserError(f"{file} is not a run record: it names no schema version; measure again.")
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{file} has schema version {version}, this stsbench reads version {SCHEMA_VERSION}: "
            f"{'update stsbench' if version > SCHEMA_VERSION else 'measure again'}."
        )
    try:
        record = RunRecord.model_validate_json(written)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{file} is not a run record: {where}: {first['msg']}; measure again.") from error
    record._folder = file.parent
    return record


def read_pairs(record: RunRecord, folder: Path | None) -> "pd.DataFrame":
    """Return the pair table of a record that was read from a folder.

    Raises:
        UserError: if it is missing, or not the one the record was computed from.
    """
    import pandas as pd

    if record.is_imported:
        raise UserError(f"{record.model.name} was imported: there are scores and no pairs; measure it for those.")
    if folder is None or record.pairs_file is None:
        raise UserError("this record has no pair table: measure again.")
    # The first name is looked at twice: the table may be moved there from the second while we look.
    for path in (folder / PAIRS, folder / _STAGED, folder / PAIRS):
        with suppress(FileNotFoundError):
            if path.is_file() and sha256_of(path) == record.pairs_file.sha256:
                return pd.read_parquet(path)
    if not (folder / PAIRS).is_file():
        raise UserError(f"{folder / PAIRS} is missing: copy it beside {RECORD}, or measure again.")
    raise UserError(f"{folder / PAIRS} is not the table that {RECORD} was computed from: measure again.")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    from filelock import FileLock

    folder.mkdir(parents=True, exist_ok=True)
    # A writer holds it for a second or so: no need to give up, nor to tell anybody of the wait.
    with FileLock(folder / ".lock"):
        yield


def _settle(folder: Path) -> None:
    """Leave no staged table: put a committed one in its place, delete one that nothing refers to."""
    staged = folder / _STAGED
    if staged.is_file():
        if _committed_sha256(folder) == sha256_of(staged):
            staged.replace(folder / PAIRS)
        else:
            staged.unlink()
    for target in (staged, folder / RECORD):
        remove_leftovers(target)


def _committed_sha256(folder: Path) -> str | None:
    try:
        file = load_run(folder).pairs_file
    except UserError:
        return None
    return file.sha256 if file else None


def _require_writable(folder: Path) -> None:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise UserError(f"cannot write into {folder}: {there} is not a folder; choose another with --out.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"cannot write into {folder}: no permission; choose another folder with --out.")
