"""Records on disk: written whole, read with a check.

A run's folder holds `pairs.parquet` and `run.json`. The pair table is written beside its place first; the
rename of `run.json`, which carries the table's hash, commits the run; then the table takes its place. A reader
that comes in between, or after a kill in between, finds the committed table under its first name. So there is
always either the old record or the new one, never a mixture.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from stsbench.foundation.errors import UserError
from stsbench.foundation.files import atomic_path, sha256_of
from stsbench.records.record import SCHEMA_VERSION, ModelPart, PairsFile, RunRecord
from stsbench.records.signature import Signature

if TYPE_CHECKING:
    import pandas as pd

RECORD = "run.json"
PAIRS = "pairs.parquet"
_STAGED = "pairs.next.parquet"


def save_run(record: RunRecord, folder: Path) -> RunRecord:
    """Write a record and its pair table into a folder; return the record as it can be read from there.

    Raises:
        UserError: if the disk is full or the folder cannot be written. What was there before is untouched.
    """
    pairs = record.pairs
    staged = folder / _STAGED
    with atomic_path(staged) as path:
        pairs.to_parquet(path, index=False)
    file = PairsFile(file=PAIRS, rows=len(pairs), sha256=sha256_of(staged))
    saved = record.model_copy(update={"pairs_file": file})
    with atomic_path(folder / RECORD) as path:
        path.write_text(saved.model_dump_json(indent=1) + "\n", encoding="utf-8")
    staged.replace(folder / PAIRS)
    return saved.with_pairs(pairs, folder)


def prepare_folder(
    out: str | Path | None, signatures: Sequence[Signature], model: ModelPart, *, overwrite: bool
) -> Path | None:
    """Return the folder to save a run in, having made sure that no other measurement is lost there.

    A run of the same model under the same signatures replaces the one before it.

    Raises:
        UserError: if the folder holds the record of another measurement and `overwrite` is false.
    """
    if out is None:
        return None
    folder = Path(out).expanduser()
    if overwrite or not (folder / RECORD).is_file():
        return folder
    old = load_run(folder)
    if old.model != model or old.signature != "\n".join(map(str, signatures)):
        raise UserError(
            f"{folder} holds another measurement ({old.model.name}, {old.tasks[0].signature}, ...): "
            "choose another folder with --out, or replace it with --overwrite."
        )
    return folder


def load_run(path: Path) -> RunRecord:
    """Read a record from its folder or from its `run.json`; its pair table is read when asked for.

    Raises:
        UserError: if there is none, it is damaged, or another version of stsbench wrote its layout.
    """
    file = path / RECORD if path.is_dir() else path
    if not file.is_file():
        raise UserError(f"no run record at {path}: `stsbench run --out {path}` makes one.")
    try:
        content = json.loads(file.read_bytes())
    except ValueError as error:
        raise UserError(f"{file} is not valid JSON ({error}): measure again.") from error
    version = content.get("schema_version") if isinstance(content, dict) else None
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{file} has schema version {version}, this stsbench reads version {SCHEMA_VERSION}: "
            f"{'update stsbench' if isinstance(version, int) and version > SCHEMA_VERSION else 'measure again'}."
        )
    try:
        record = RunRecord.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{file} is not a run record: {where}: {first['msg']}: measure again.") from error
    record._folder = file.parent
    return record


def read_pairs(record: RunRecord, folder: Path | None) -> "pd.DataFrame":
    """Return the pair table of a record that was read from a folder.

    Raises:
        UserError: if it is missing, or not the one the record was computed from.
    """
    import pandas as pd

    if folder is None or record.pairs_file is None:
        raise UserError("this record has no pair table: measure again.")
    candidates = [path for path in (folder / PAIRS, folder / _STAGED) if path.is_file()]
    if not candidates:
        raise UserError(f"{folder / PAIRS} is missing: copy it beside {RECORD}, or measure again.")
    for path in candidates:
        if sha256_of(path) == record.pairs_file.sha256:
            return pd.read_parquet(path)
    raise UserError(f"{folder / PAIRS} is not the table that {RECORD} was computed from: measure again.")
