"""What a unit's process works with: folders of data, a cache of the experiment's own, the tasks it measures."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stsbench.data.locate import places
from stsbench.sweeps.jobs import Job

if TYPE_CHECKING:
    from stsbench.scoring.task import Task


def data_folders() -> list[Path]:
    """Return where data is looked for: found before the cache becomes the experiment's own."""
    return [place.folder for place in places() if place.folder.is_dir()]


def read_tasks(job: Job, data_dirs: Sequence[Path], names: str | None = None) -> "list[Task]":
    """Return the tasks that a job measures, in its protocol; none where it measures none.

    Args:
        job: whose protocol it is.
        data_dirs: folders to look for data in.
        names: of other tasks than the job's.

    Raises:
        UserError: if their files are not there, or broken.
    """
    from stsbench.scoring.protocols import choose_protocol
    from stsbench.scoring.tasks import read_data

    wanted = names or job.measure["tasks"]
    if wanted is None:
        return []
    return list(read_data(wanted, protocol=choose_protocol(job.measure["protocol"]), data_dirs=data_dirs))


@contextmanager
def cache_at(path: Path) -> Iterator[None]:
    """Make a folder the cache for as long as the context is open."""
    before = os.environ.get("STSBENCH_CACHE")
    os.environ["STSBENCH_CACHE"] = str(path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["STSBENCH_CACHE"]
        else:
            os.environ["STSBENCH_CACHE"] = before


def log_line(sentence: str) -> None:
    """Write a sentence into the log."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
