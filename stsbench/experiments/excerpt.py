"""A few rows of the real tasks, as files in a folder of their own: what a scale measures that is done in minutes.

Their hashes are not those of the released files, so that no record of them passes for one of the whole task.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from stsbench.base.files import atomic_folder, cache_dir
from stsbench.data.catalogue import data_set, source
from stsbench.data.locate import DataNotFoundError, find_root
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.tasks import parse_tasks


def excerpt(tasks: str, rows: int, data_dirs: Sequence[Path] = ()) -> Path | None:
    """Return a data folder that holds about so many rows of each split of the tasks, from all over their files.

    Args:
        tasks: as `stsbench run --tasks` names them.
        rows: of each split; its subsets share them.
        data_dirs: folders to look for the whole files in, before `STSBENCH_DATA` and the cache.

    Returns:
        The folder, which is kept in the cache by what it holds; None where a task's files are not here.

    Raises:
        UserError: if a task's files are here in part, or the cache cannot be written.
    """
    held: dict[str, bytes] = {}
    for spec in parse_tasks(tasks, Protocol()):
        variant = data_set(spec.task).texts[spec.text]
        released = source(variant.source)
        paths = [file.path for part in variant.parts for file in part.files]
        try:
            root = find_root(released, paths, spec.task, data_dirs)
        except DataNotFoundError:
            return None
        for part in variant.parts:
            subsets = sum(other.split == part.split for other in variant.parts)
            lines = {file.path: (root / file.path).read_bytes().splitlines(keepends=True) for file in part.files}
            # Files of one part are read side by side, line by line: all of them by the same step.
            step = max(1, len(lines[part.files[0].path]) * subsets // rows)
            held |= {f"{released.roots[0]}/{path}": b"".join(of[::step]) for path, of in lines.items()}
    digest = hashlib.sha256()
    for path, content in sorted(held.items()):
        digest.update(f"{path} {len(content)}\n".encode() + content)
    folder = cache_dir() / "excerpts" / digest.hexdigest()[:12]
    if not folder.is_dir():
        with atomic_folder(folder) as building:
            for path, content in held.items():
                (building / path).parent.mkdir(parents=True, exist_ok=True)
                (building / path).write_bytes(content)
    return folder
