"""The catalogue's data sets, the places of their files, and whether the files are the catalogued ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.words import plain_name, suggestion
from stsbench.data.catalogue import UNVERIFIED, CatalogueFile, DataSet, TextVariant, data_sets, source, sources
from stsbench.data.layouts import read_catalogued
from stsbench.data.locate import bundled_root, places, remedy, root_in
from stsbench.render.table import Result, Table, Tables

_GOOD = ("ok", UNVERIFIED)
"""The statuses of `verify` that need no action."""

_SPLITS_SHOWN = 3


@dataclass(frozen=True)
class DataOverview(Result):
    """The result of `stsbench data list` and `verify`.

    Attributes:
        rows: all rows and columns.
        headlines: those in the table for readers.
    """

    rows: pd.DataFrame
    headlines: pd.DataFrame

    @property
    def frame(self) -> pd.DataFrame:
        """All rows and columns; see the functions."""
        return self.rows

    def table(self) -> Tables:
        """Returns the headlines; no table if there are none."""
        return Tables([Table(self.headlines)] if len(self.headlines) else [])

    @property
    def is_whole(self) -> bool:
        """Of `verify`, whether every file is present and, if its hash is known, the catalogued one."""
        return bool(self.rows["status"].isin(_GOOD).all())

    def advice(self) -> list[str]:
        """Returns, of `verify`, a sentence for each source with wrong files: the first of them, and what to do."""
        # Two tasks may have a file in common.
        files = self.rows.drop_duplicates(["source", "file"])
        wrong = files[~files["status"].isin(_GOOD)]
        return [
            f"{name}: {len(of_source)} of {(files['source'] == name).sum()} files are not the catalogued ones, "
            f"the first is {Path(first['folder']) / first['file']} ({first['status']}): "
            f"{remedy(source(str(name)))}."
            for name, of_source in wrong.groupby("source", sort=False)
            for first in of_source.head(1).to_dict("records")
        ]


def list_data(data_dirs: Sequence[Path] = ()) -> DataOverview:
    """Lists the catalogue, one row per data set and text.

    Columns: task, text, kind ("sts" or "labelled"), splits ("train 5749, dev 1500, test 1379"), subsets (with
    counts), scale (the lowest and highest gold score), raters (whether single ratings are published), assurance
    ("verified" if the files were read for the catalogue, "hash known" if only their hashes are known, or
    "unverified"), note, title, licence, documentation, source, address (of the source), found (the folder with the
    data, or empty).

    Args:
        data_dirs: folders to search for data first.

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
            "raters": bool(variant.columns.raters),
            "assurance": variant.assurance,
            "note": variant.note,
            "title": entry.title,
            "licence": entry.licence,
            "documentation": entry.documentation,
            "source": variant.source,
            "address": source(variant.source).address,
            "found": str(_root(variant, data_dirs) or ""),
        }
        for entry, text, variant in _variants()
    )
    headlines = rows[["task", "text", "kind"]].assign(
        splits=rows["splits"].map(_shortened),
        files=rows["assurance"],
        here=rows["found"].map(lambda folder: "yes" if folder else "no"),
    )
    return DataOverview(rows, headlines)


def verify(data_dirs: Sequence[Path] = (), *, what: Sequence[str] = ()) -> DataOverview:
    """Compares files with the catalogue, one row per data set and file.

    Columns: task, text, source, file (its path below the root), status ("ok", "unverified" if its hash is unknown,
    "modified", "missing" or "unreadable"), expected_lines and found_lines (nullable integers), expected_sha256 and
    found_sha256, folder (the root; empty if there is none). The table for readers has those that are not "ok".

    Args:
        data_dirs: folders to search for data first.
        what: sources (`senteval`, `sts-raw`) or tasks (`STS12`); by default the sources of the default tasks, and
            all others whose data is here.

    Raises:
        UserError: if a named folder does not exist, or there is no such source or task.

    >>> verify(what=["sample"]).is_whole
    True
    """
    rows = pd.DataFrame(
        {"task": entry.task, "text": text, "source": variant.source} | _verdict(_root(variant, data_dirs), file)
        for entry, text, variant in _chosen(what, data_dirs)
        for file in variant.files
    ).astype({"expected_lines": "Int64", "found_lines": "Int64"})
    # Several parts may be in one file. For an absent source the advice is enough.
    rows = rows.drop_duplicates(["task", "text", "file"], ignore_index=True)
    wrong = (rows["status"] != "ok") & (rows["folder"] != "")
    return DataOverview(rows, rows.loc[wrong, ["task", "text", "file", "status"]])


def _variants() -> Iterator[tuple[DataSet, str, TextVariant]]:
    for entry in data_sets().values():
        for text, variant in entry.texts.items():
            yield entry, text, variant


def _chosen(what: Sequence[str], data_dirs: Sequence[Path]) -> Iterator[tuple[DataSet, str, TextVariant]]:
    """Yields the texts of named sources; of named tasks (by default all) those that are usual or here."""
    names = {plain_name(name): name for name in (*sources(), *data_sets())}
    for name in what:
        if plain_name(name) not in names:
            lists = "`stsbench data list` lists the tasks, with --json their sources."
            hint = suggestion(name, names.values(), otherwise=lists)
            raise UserError(f"there is no task or source {name!r} to verify: {hint}")
    chosen = {names[plain_name(name)] for name in what}
    for entry, text, variant in _variants():
        # The files of a text without repeated pairs are those of another text.
        if variant.drop_repeated or (chosen and not chosen & {entry.task, variant.source}):
            continue
        is_usual = source(variant.source).of_default_tasks or (entry.task in chosen and text == entry.usual_text)
        if is_usual or variant.source in chosen or _root(variant, data_dirs) is not None:
            yield entry, text, variant


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
        "folder": str(root or ""),
    }
    if root is None or not (root / file.path).is_file():
        return verdict
    try:
        # Latin-1 decodes any byte; only lines and hash are needed.
        read = read_catalogued(root, file, "latin-1")
    except UserError:
        return verdict | {"status": "unreadable"}
    status = UNVERIFIED if file.expected is None else "ok" if read.sha256 == file.expected else "modified"
    return verdict | {"status": status, "found_lines": len(read.lines), "found_sha256": read.sha256}


def _counts(named: Iterable[tuple[str, int]]) -> str:
    counts = Counter[str]()
    for name, count in named:
        counts[name] += count
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _shortened(splits: str) -> str:
    names = splits.split(", ")
    if len(names) <= _SPLITS_SHOWN:
        return splits
    return f"{', '.join(names[:_SPLITS_SHOWN])}, ... ({len(names)} in all)"
