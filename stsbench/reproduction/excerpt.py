"""A few rows of the real tasks, as files in a folder of their own: what a scale measures that is done in minutes.

Their hashes are not those of the released files, so that no record of them passes for one of the whole task.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from stsbench.base.files import atomic_folder, cache_dir
from stsbench.data.catalogue import TextVariant, data_set, source
from stsbench.data.locate import DataNotFoundError, find_root
from stsbench.scoring.settings import Protocol
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
            subsets = sum(subset.split == part.split for subset in variant.parts)
            files = {file.path: (root / file.path).read_bytes().splitlines(keepends=True) for file in part.files}
            for path, lines in zip(files, _some(variant, list(files.values()), rows // subsets), strict=True):
                held[f"{released.roots[0]}/{path}"] = b"".join(lines)
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


def _some(variant: TextVariant, files: Sequence[Sequence[bytes]], rows: int) -> Iterator[list[bytes]]:
    """Yield for each of the files of a part, which are read side by side, about so many of its lines.

    They are from all over it, as many of each class where a line begins with one, and no pair that nobody scored.
    """
    first = 1 if variant.header else 0
    classes: dict[bytes, list[int]] = {}
    for place, lines in enumerate(zip(*files, strict=False)):
        if place >= first and all(line.strip() for line in lines):
            label = lines[0].partition(b":")[0] if variant.layout == "label-first" else b""
            classes.setdefault(label, []).append(place)
    kept = list(range(first))
    for places in classes.values():
        kept += places[:: max(1, len(places) * len(classes) // max(1, rows))]
    for file in files:
        yield [file[place] for place in sorted(kept)]
