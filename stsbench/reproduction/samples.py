"""Small data for the scale `demo`: tables of the sample for labelled tasks, and excerpts of the papers' tasks.

Excerpts are files of their own, whose hashes are not those of the released files, so that no record of them passes
for one of the whole task.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from stsbench.base.files import atomic_folder, cache_dir
from stsbench.data.benchmarks import load_labelled, load_sts
from stsbench.data.catalogue import TextVariant, data_set, source
from stsbench.data.locate import DataNotFoundError, find_root
from stsbench.scoring.settings import Protocol
from stsbench.scoring.tasks import parse_tasks


def labelled_path() -> Path:
    """Returns the folder of the sample's tables for the three labelled tasks, in the cache."""
    return cache_dir() / "stand-ins" / "labelled"


def make_labelled() -> None:
    """Writes the sample as tables of the three labelled tasks, laid out like the course's files, if missing."""
    if labelled_path().is_dir():
        return
    with atomic_folder(labelled_path()) as folder:
        _write_tables(folder)


def _write_tables(folder: Path) -> None:
    sentiment = load_labelled("sample-sentiment", text="sample").items
    paraphrases = load_labelled("sample-paraphrases", text="sample").items
    pairs = load_sts("sample", text="sample").pairs
    tables = {
        "ids-sst": (["sentence", "sentiment"], zip(sentiment["sentence1"], sentiment["label"], strict=True)),
        "quora": (
            ["sentence1", "sentence2", "is_duplicate"],
            zip(paraphrases["sentence1"], paraphrases["sentence2"], paraphrases["label"], strict=True),
        ),
        "sts": (
            ["sentence1", "sentence2", "similarity"],
            zip(pairs["sentence1"], pairs["sentence2"], pairs["gold"], strict=True),
        ),
    }
    for name, (columns, cells) in tables.items():
        rows = list(cells)
        # Every fourth row is for scoring; the course has one file of questions.
        whole = {"dev": rows} if name == "quora" else {"train": rows, "dev": rows[::4]}
        if name != "quora":
            whole["train"] = [row for place, row in enumerate(rows) if place % 4]
        for part, of_part in whole.items():
            lines = ["\t".join(columns), *("\t".join(map(str, row)) for row in of_part)]
            (folder / f"{name}-{part}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def excerpt(tasks: str, rows: int, data_dirs: Sequence[Path] = ()) -> Path | None:
    """Returns a data folder, in the cache, with about `rows` rows of each split, spread over the tasks' files.

    None if the files of a task are not found.
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
    """Yields about `rows` lines of each parallel file of a part, balanced by class, without unscored pairs."""
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
