"""Records that were saved, for looking at again."""

from collections.abc import Sequence
from pathlib import Path

from stsbench.records import RunRecord, load_run
from stsbench.workflows.tables import require_comparable


def show(paths: Sequence[str | Path]) -> list[RunRecord]:
    """Read records that are to stand side by side.

    Args:
        paths: run folders or `run.json` files.

    Raises:
        UserError: if one is missing or damaged, or they do not compare.
    """
    records = [load_run(path) for path in paths]
    require_comparable(records)
    return records
