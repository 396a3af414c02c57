"""Records on disk: `items.parquet` and `run.json` in a folder of their own.

Both files are written completely under temporary names. Then the table is renamed, and the rename of
`run.json`, which holds the table's hash, commits the run. A lock keeps two writers apart.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from filelock import FileLock
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import (
    atomic_path,
    fingerprint,
    remove_leftovers,
    require_writable,
    sha256_of,
    writing,
)
from stsbench.base.parsing import first_error
from stsbench.base.words import closest
from stsbench.records.kinds import ITEMS
from stsbench.records.parts import SCHEMA_VERSION, ModelPart, ProtocolPart, Score, TableFile
from stsbench.records.record import RECORD, RunRecord
from stsbench.records.results import read_json


class Measurement(NamedTuple):
    """The identity of a measurement: everything except its date, cost and results.

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
    def of(cls, record: RunRecord) -> "Measurement":
        """Returns the measurement of a record."""
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
    """A folder has another record, which may be replaced only on request."""


def save_run(record: RunRecord, folder: str | Path, *, overwrite: bool = False) -> RunRecord:
    """Writes a record and its items into a folder; returns the record as it can be read from there.

    Its `replaced` shows whether the folder held the same measurement before.

    Raises:
        HeldError: if the folder holds another measurement and `overwrite` is false.
    """
    folder = Path(folder)
    items = None if record.is_imported else record.items
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            held = held_by(folder, Measurement.of(record), record.scores)
            if held is not None and not overwrite:
                raise HeldError(f"{folder} holds {held}")
            replaced = (folder / RECORD).is_file() and held is None
            for name in (ITEMS, RECORD):
                remove_leftovers(folder / name)
            # The contexts end in reverse order, so the table is renamed before the record.
            with (
                atomic_path(folder / RECORD) as path,
                atomic_path(folder / ITEMS) if items is not None else nullcontext() as table,
            ):
                saved = record.model_copy(update={"items_file": _write_table(items, table)})
                path.write_text(saved.model_dump_json(indent=1) + "\n", encoding="utf-8")
            if items is None:
                (folder / ITEMS).unlink(missing_ok=True)
    return saved.with_items(items, folder, replaced=replaced)


def _write_table(items: pd.DataFrame | None, path: Path | None) -> TableFile | None:
    if items is None or path is None:
        return None
    # Opened here, because pyarrow rejects paths that are not UTF-8.
    with path.open("wb") as stream:
        items.to_parquet(stream, index=False)
    return TableFile(file=ITEMS, rows=len(items), sha256=sha256_of(path))


def save_beside(record: RunRecord, folder: Path) -> RunRecord:
    """Writes a record next to a folder with another one, with a few digits added to the folder's name."""
    results = [part.model_dump(mode="json") for part in record.scores]
    return save_run(record, beside(folder, f"-{fingerprint(Measurement.of(record).digits, results)[:6]}"))


def beside(folder: Path, ending: str) -> Path:
    """Returns the folder with an ending added to its name.

    >>> str(beside(Path("runs/a"), "-fp32")), str(beside(Path("."), "")) == str(Path.cwd())
    ('runs/a-fp32', True)
    """
    place = folder.resolve() if folder.name in {"", ".."} else folder  # `.` has no name of its own
    return place.with_name(f"{place.name}{ending}")


def require_free(folder: Path, measurement: Measurement, *, overwrite: bool = False) -> None:
    """Checks, before encoding, that a run can be saved in a folder without loss."""
    require_writable(folder, "--out", as_folder=True)
    for name in (RECORD, ITEMS):
        require_writable(folder / name, "--out")
    held = None if overwrite else held_by(folder, measurement)
    if held is not None:
        raise UserError(
            f"{folder} holds {held}: choose another folder with --out, or replace it with --overwrite."
        )


def held_by(folder: Path, measurement: Measurement, scores: Sequence[Score] = ()) -> str | None:
    """Returns what would be lost if a measurement were saved in a folder; None if nothing would.

    A record of the same measurement may be replaced. If the model has no hash, its scores must be equal, too;
    `scores` is empty before they are known.
    """
    if not (folder / RECORD).is_file():
        return None
    try:
        old = load_run(folder)
    except UserError:
        return "a record that cannot be read"
    if Measurement.of(old) != measurement:
        return f"another measurement ({Measurement.of(old)})"
    if scores and measurement.model.weights_sha256 is None and old.scores != tuple(scores):
        return f"other results of {old.model.name}, a model without a hash, which may have changed"
    return None


def load_run(path: str | Path) -> RunRecord:
    """Reads a record from its folder or from its `run.json`; its items are read on first use.

    Raises:
        UserError: if there is no record, it is damaged, or it has the layout of another version.
    """
    path = Path(path).expanduser()
    file = path / RECORD if path.is_dir() else path
    if not file.exists():
        similar = closest(path.name, [record.parent.name for record in path.parent.glob(f"*/{RECORD}")])
        hint = f"did you mean {path.parent / similar[0]}? " if similar else ""
        raise UserError(f"no run record at {path}: {hint}`stsbench run --out {path}` makes one.")
    content = read_json(file, "record")
    version = content.get("schema_version") if isinstance(content, dict) else None
    if type(version) is not int:
        raise UserError(f"{file} is not a run record: it has no schema version; measure again.")
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{file} has schema version {version}, and this stsbench reads version {SCHEMA_VERSION}: "
            f"{'update stsbench' if version > SCHEMA_VERSION else 'measure again'}."
        )
    try:
        record = RunRecord.model_validate(content)
    except ValidationError as error:
        raise UserError(f"{file} is not a run record: {first_error(error)}; measure again.") from error
    record._folder = file.parent
    return record
