"""Scores to be looked at: records, and the results of SentEval and MTEB."""

import json
from contextlib import suppress
from pathlib import Path

from stsbench.records import RunRecord, load_run, save_run
from stsbench.records.imports import import_results as read_foreign
from stsbench.records.provenance import command_line
from stsbench.records.store import RECORD, require_free

__all__ = ["command_line", "import_results", "read_results"]


def read_results(run: RunRecord | str | Path) -> RunRecord:
    """Return a record: as it is, read from its folder or `run.json`, or imported from results of SentEval or MTEB.

    Raises:
        UserError: if there is nothing of that, or it is damaged.
    """
    if isinstance(run, RunRecord):
        return run
    path = Path(run).expanduser()
    return load_run(path) if not path.exists() or _is_record(path) else read_foreign(path)


def import_results(
    path: str | Path,
    *,
    out: str | Path | None = None,
    model: str = "",
    aggregation: str | None = None,
    metric: str = "spearman",
    overwrite: bool = False,
    command: str = "",
) -> RunRecord:
    """Make a record of results of SentEval or MTEB.

    Args:
        path: SentEval's dictionary of results as JSON, in either shape; a JSON file of MTEB's for one task; or a
            folder of those.
        out: folder to save the record in; None to keep it in memory.
        model: the model's name; by default what the files say.
        aggregation: over subsets; by default `all` if every task has it, else `wmean`.
        metric: `spearman` or `pearson`.
        overwrite: whether a record of another measurement in that folder may be replaced.
        command: the command line, for the record.

    Raises:
        UserError: if the file is none of theirs, or the record cannot be saved.
    """
    record = read_foreign(path, model=model, aggregation=aggregation, metric=metric, command=command)
    if out is None:
        return record
    folder = Path(out).expanduser()
    require_free(folder, record.signatures, record.model, overwrite=overwrite)
    return save_run(record, folder)


def _is_record(path: Path) -> bool:
    if path.is_dir():
        return (path / RECORD).is_file() or not any(path.glob("*.json"))
    with suppress(OSError, ValueError):
        content = json.loads(path.read_bytes())
        return isinstance(content, dict) and "schema_version" in content
    return True
