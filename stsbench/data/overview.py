"""What there is, where it is, and whether it is what the catalogue says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import plain_name, storable, suggestion
from stsbench.data.catalogue import (
    UNVERIFIED,
    CatalogueFile,
    DataSet,
    Source,
    TextVariant,
    data_sets,
    source,
    sources,
)
from stsbench.data.fetch import catalogued_files
from stsbench.data.layouts import read_catalogued
from stsbench.data.locate import Place, bundled_root, places, remedy, root_in
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables

_GOOD = ("ok", UNVERIFIED)
"""What `verify` says of files that are no reason to do anything."""

_SHOWN_SPLITS = 3


@dataclass(frozen=True)
class DataOverview(Result):
    """What `stsbench data list`, `verify` and `where` show.

    Attributes:
        rows: all of it.
        headlines: the rows and columns that readers are shown.
    """

    rows: pd.DataFrame
    headlines: pd.DataFrame

    @property
    def frame(self) -> pd.DataFrame:
        """All of it; see the verbs for its columns."""
        return self.rows

    def table(self) -> Tables:
        """Return what readers are shown; no table at all if there is nothing to show."""
        return Tables([Table(self.headlines)] if len(self.headlines) else [])


@dataclass(frozen=True)
class DataVerification(DataOverview):
    """What `stsbench data verify` shows: a `DataOverview` with a status for each file."""

    @property
    def is_whole(self) -> bool:
        """Whether every file is here and, where its hash is known, is the catalogued one."""
        return bool(self.rows["status"].isin(_GOOD).all())

    def counts(self) -> dict[str, int]:
        """Return how many rows have each status, the commonest first."""
        return {str(status): int(count) for status, count in self.rows["status"].value_counts().items()}

    def advice(self) -> list[str]:
        """Return a sentence for each source of which something is not "ok": what, where, and what to do."""
        sentences = []
        # Two tasks may read one file.
        for name, files in self.rows.drop_duplicates(["source", "file"]).groupby("source", sort=False):
            wrong = files[~files["status"].isin(_GOOD)]
            if len(wrong):
                first = wrong.iloc[0]
                path = str(Path(first["folder"]) / first["file"])
                sentences.append(
                    f"{name}: {len(wrong)} of {len(files)} files are not the catalogued ones, the first is {path} "
                    f"({first['status']}): {remedy(source(str(name)))}."
                )
        return sentences


def list_data(data_dirs: Sequence[Path] = ()) -> DataOverview:
    """Return what the catalogue holds, one row per data set and text.

    Columns: task, text, kind ("sts" or "labelled"), splits ("train 5749, dev 1500, test 1379"), subsets
    (their names with counts, empty where there are none), scale (the lowest and highest gold score), raters
    (whether ratings are published one by one), assurance ("verified" where the files were read here, "hash known"
    where somebody else says their hashes, or "unverified"), note (what of the files was seen), title, licence,
    documentation, source, address (where its source comes from), found (the folder that it would be read from,
    empty where it is nowhere). Readers are shown some of them, and whether it is here.

    Args:
        data_dirs: folders to look for data in first.

    Raises:
        UserError: if a named folder does not exist.

    >>> frame = list_data().frame
    >>> frame[frame["task"] == "STS-B"]["splits"].to_list()[:2]
    ['train 5749, dev 1500, test 1379', 'train 5749, dev 1500, test 1379']
    """
    rows = pd.DataFrame(
        {
            "task": entry.task,
            "text": text,
            "kind": entry.kind,
            "splits": _counts((part.split, part.count) for part in variant.parts),
            "subsets": _counts((part.subset, part.count) for part in variant.parts if part.subset),
            "scale": "" if entry.gold_range is None else "{:g} to {:g}".format(*entry.gold_range),
            "raters": bool(variant.named and variant.named.raters),
            "assurance": variant.assurance,
            "note": variant.note,
            "title": entry.title,
            "licence": entry.licence,
            "documentation": entry.documentation,
            "source": variant.source,
            "address": source(variant.source).address,
            "found": storable(str(_root(variant, data_dirs) or "")),
        }
        for entry, text, variant in _variants()
    )
    headlines = rows[["task", "text", "kind"]].assign(
        splits=rows["splits"].map(_shortened),
        files=rows["assurance"],
        here=rows["found"].map(lambda folder: "yes" if folder else "no"),
    )
    return DataOverview(rows, headlines)


def verify(data_dirs: Sequence[Path] = (), *, what: Sequence[str] = ()) -> DataVerification:
    """Hold every catalogued file against what is on disk, one row per data set and file.

    Columns: task, text, source, file (its path below the root), status ("ok", "unverified" where it is here and
    nobody knows its hash, "modified", "missing" or "unreadable"), expected_lines and found_lines (nullable
    integers), expected_sha256 and found_sha256 (empty where the file is missing), folder (the root, empty where
    there is none). Readers are shown what is not "ok".

    Args:
        data_dirs: folders to look for data in first.
        what: sources (`senteval`, `sts-raw`) or tasks (`STS12`) to look at; by default what the default groups of
            tasks need, and whatever else is here. Of a task that they have, too, other texts count if they are
            here.

    Raises:
        UserError: if a named folder does not exist, or what is asked for is no source and no task.

    >>> verify(what=["sample"]).is_whole
    True
    """
    rows = pd.DataFrame(
        {"task": entry.task, "text": text, "source": variant.source} | _verdict(_root(variant, data_dirs), file)
        for entry, text, variant in _chosen(what, data_dirs)
        for file in variant.files
    ).astype({"expected_lines": "Int64", "found_lines": "Int64"})
    # Several parts may lie in one file. Of a source that is not here at all, the advice says enough.
    rows = rows.drop_duplicates(["task", "text", "file"], ignore_index=True)
    wrong = (rows["status"] != "ok") & (rows["folder"] != "")
    return DataVerification(rows, rows.loc[wrong, ["task", "text", "file", "status"]])


def where(data_dirs: Sequence[Path] = ()) -> DataOverview:
    """Return the order in which data is looked for, and what each place holds of each source.

    Columns: order (from 1), origin ("--data-dir", "STSBENCH_DATA", "checkout" or "cache"), folder, source,
    found (the root, empty where there is none), files ("78 of 78"). The bundled sample is not looked for. Readers
    are shown what the default groups of tasks need, and whatever else is here.

    Args:
        data_dirs: folders to look for data in first.

    Raises:
        UserError: if a named folder does not exist.
    """
    rows = pd.DataFrame(
        {"order": order, "origin": place.origin, "folder": storable(str(place.folder))} | _holding(place, chosen)
        for order, place in enumerate(places(data_dirs), start=1)
        for chosen in sources().values()
        if chosen.kind != "bundled"
    )
    default = rows["source"].map(lambda name: source(name).of_default_tasks)
    return DataOverview(rows, rows[default | (rows["found"] != "")].reset_index(drop=True))


def _variants() -> Iterator[tuple[DataSet, str, TextVariant]]:
    for entry in data_sets().values():
        for text, variant in entry.texts.items():
            yield entry, text, variant


def _chosen(what: Sequence[str], data_dirs: Sequence[Path]) -> Iterator[tuple[DataSet, str, TextVariant]]:
    """Yield the texts whose source or task was named, or those that the default groups of tasks need.

    Of a task, and where nothing was named, also what is here; a text that is made of another's files is not among
    them.
    """
    chosen = _names_of(what)
    for entry, text, variant in _variants():
        if variant.drop_repeated or (chosen and not {entry.task, variant.source} & chosen):
            continue
        others = [source(other.source).of_default_tasks for other in entry.texts.values()]
        if (
            variant.source in chosen
            or source(variant.source).of_default_tasks
            or (chosen and not any(others))
            or _root(variant, data_dirs) is not None
        ):
            yield entry, text, variant


def _names_of(what: Sequence[str]) -> set[str]:
    """Return tasks and sources as the catalogue spells them."""
    names = list(dict.fromkeys(variant.source for _, _, variant in _variants())) + list(data_sets())
    by_plain_name = {plain_name(name): name for name in names}
    for name in what:
        if plain_name(name) not in by_plain_name:
            lists = "`stsbench data list` lists the tasks, with --json their sources."
            hint = suggestion(name, names, otherwise=lists)
            raise UserError(f"there is no task or source {name!r} to verify: {hint}")
    return {by_plain_name[plain_name(name)] for name in what}


def _root(variant: TextVariant, data_dirs: Sequence[Path]) -> Path | None:
    chosen = source(variant.source)
    if chosen.kind == "bundled":
        return bundled_root(chosen)
    roots = (root_in(place, chosen, [file.path for file in variant.files]) for place in places(data_dirs))
    return next((root for root in roots if root is not None), None)


def _verdict(root: Path | None, file: CatalogueFile) -> dict[str, object]:
    verdict: dict[str, object] = {
        "file": file.path,
        "status": "missing",
        "expected_lines": file.lines,
        "found_lines": None,
        "expected_sha256": file.sha256,
        "found_sha256": "",
        "folder": storable(str(root or "")),
    }
    if root is None or not (root / file.path).is_file():
        return verdict
    # Latin-1 takes any byte: what is wanted here are lines and hash, whatever the file holds.
    try:
        read = read_catalogued(root, file, "latin-1")
    except UserError:
        return verdict | {"status": "unreadable"}
    status = UNVERIFIED if file.expected is None else "ok" if read.sha256 == file.expected else "modified"
    return verdict | {"status": status, "found_lines": len(read.lines), "found_sha256": read.sha256}


def _holding(place: Place, chosen: Source) -> dict[str, object]:
    paths = [file.path for file in catalogued_files(chosen.name)] or [chosen.file_name]
    root = root_in(place, chosen, paths)
    count = sum((root / path).is_file() for path in paths) if root else 0
    return {"source": chosen.name, "found": storable(str(root or "")), "files": f"{count} of {len(paths)}"}


def _counts(named: Iterable[tuple[str, int]]) -> str:
    counts = Counter[str]()
    for name, count in named:
        counts[name] += count
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _shortened(splits: str) -> str:
    """Return splits as they are, or the first of many languages and how many there are."""
    names = splits.split(", ")
    if len(names) <= _SHOWN_SPLITS:
        return splits
    return f"{', '.join(names[:_SHOWN_SPLITS])}, ... ({len(names)} in all)"
