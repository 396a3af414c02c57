"""`stsbench data describe`, `list` and `verify`: scored pairs, the catalogue, and the state of files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.words import plain_name, suggestion
from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import (
    CatalogueFile,
    DataSet,
    TextVariant,
    data_set,
    data_sets,
    is_task,
    source,
    sources,
    task_split_text,
)
from stsbench.data.reading import bundled_root, places, remedy, root_in
from stsbench.data.rows import read_bytes
from stsbench.data.tables import DataOverview, StsData, folded_ids, load_pairs, pair_ids
from stsbench.render.table import Table, Tables
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.intervals import detectable, difference_error

CORRELATION, BETWEEN = 0.8, 0.9
"""The smallest difference is computed for two models with these correlations: with gold, and with each other."""

_Numbers = list[tuple[str, str, float]]
"""Rows of `describe`."""


def describe(data: str | Path, *, subset_column: str = "subset", data_dirs: Sequence[Path] = ()) -> DataOverview:
    """Describes scored pairs: counts, lengths, scores, repetitions, shared sentences.

    Columns: about (the subject of a number), what, value.

    The smallest detectable difference is given for an assumed pair of models, as two limits: if all pairs were
    independent, and if each chain of pairs with shared sentences counted as one. For real models, use `plan` with
    their records.

    Args:
        data: your own pairs (.tsv, .csv, .jsonl, .parquet), or a task (`STS-B:dev`).
        subset_column: the column of that file with the subsets.
        data_dirs: folders to search for data first.

    Raises:
        UserError: if the file cannot be read, or no correlation is defined on it.

    >>> describe("sample").frame.head(2).values.tolist()
    [['pairs', 'all', 252.0], ['pairs', 'subsets', 7.0]]
    """
    pairs = _read(data, subset_column, data_dirs)
    name = pairs.task if pairs.split in {"all", "test"} else f"{pairs.task}:{pairs.split}"
    gold = pairs.pairs["gold"].to_numpy()
    sides = [pairs.pairs[side].tolist() for side in ("sentence1", "sentence2")]
    ids = np.array([folded_ids(side) for side in sides])
    rows = [
        *_counted(pairs.pairs, sides, ids),
        *_scored(gold),
        *_depending(Sharing.of(*ids)),
    ]
    by_subset = pairs.pairs.groupby("subset", sort=False)["gold"].agg(pairs="size", mean="mean", sd="std")
    rows += [(f"subset {subset}", what, row[what]) for subset, row in by_subset.iterrows() for what in by_subset]
    counts, edges = np.histogram(gold, bins=10)
    bins = zip(edges[:-1], edges[1:], counts, strict=True)
    rows += [("histogram", f"{low:g} to {high:g}", int(count)) for low, high, count in bins]
    frame = pd.DataFrame(rows, columns=["about", "what", "value"])
    shown = frame.assign(value=[f"{round(value, 2):,.12g}" for value in frame["value"]])
    notes = (
        "repeated: pairs whose sentences are another pair, too, by letters and digits, in either order.",
        f"smallest difference: with 80 % power at 5 %, for two models that correlate {CORRELATION:g} with the "
        f"scores and {BETWEEN:g} with each other; for two records, use `stsbench plan`.",
    )
    return DataOverview(frame, Tables([Table(shown, name, notes=notes)]))


def _read(data: str | Path, subset_column: str, data_dirs: Sequence[Path]) -> StsData:
    path = Path(data).expanduser()
    if isinstance(data, Path) or not is_task(data) or path.is_file():
        return load_pairs(path, subset_column)
    task, split, text = task_split_text(data)
    return load_sts(task, split or "test", text or data_set(task).usual_text, data_dirs)


def _counted(table: pd.DataFrame, sides: Sequence[Sequence[str]], ids: NDArray[np.uint64]) -> _Numbers:
    words = np.array([[len(text.split()) for text in side] for side in sides], dtype=np.float64)
    characters = np.array([len(text) for side in sides for text in side], dtype=float)
    by_pair = table["gold"].groupby(pair_ids(*ids))
    return [
        ("pairs", "all", len(table)),
        ("pairs", "subsets", len(set(table["subset"]))),
        ("pairs", "repeated", int((by_pair.transform("size") > 1).sum())),
        ("pairs", "repeated with other scores", int((by_pair.transform("nunique") > 1).sum())),
        ("pairs", "of one sentence twice", int((ids[0] == ids[1]).sum())),
        ("sentences", "distinct", len(set(sides[0]) | set(sides[1]))),
        ("sentences", "distinct by letters and digits", len(np.unique(ids))),
        *_spread("words of a sentence", words.ravel()),
        *_spread("difference in words", np.abs(words[0] - words[1])),
        *_spread("characters of a sentence", characters),
    ]


def _spread(about: str, values: NDArray[np.float64]) -> _Numbers:
    numbers = {"mean": values.mean(), "median": np.median(values), "lowest": values.min(), "highest": values.max()}
    return [(about, what, float(number)) for what, number in numbers.items()]


def _scored(gold: NDArray[np.float64]) -> _Numbers:
    _, times = np.unique(gold, return_counts=True)
    return [
        *_spread("scores", gold),
        ("scores", "standard deviation", float(gold.std(ddof=1))),
        ("scores", "distinct", len(times)),
        ("scores", "% of pairs with the commonest", 100 * float(times.max() / len(gold))),
    ]


def _depending(sharing: Sharing) -> _Numbers:
    first, second, chains = sharing.first, sharing.second, np.bincount(sharing.components)
    times = np.bincount(np.concatenate([first, second[first != second]]), minlength=sharing.sentences)
    is_shared = np.maximum(times[first], times[second]) > 1
    smallest = [
        100 * detectable(difference_error(size, CORRELATION, BETWEEN)) for size in (sharing.pairs, len(chains))
    ]
    return [
        ("shared sentences", "% of pairs that share one", 100 * float(is_shared.mean())),
        ("shared sentences", "chains of such pairs", len(chains)),
        ("shared sentences", "pairs of the longest chain", int(chains.max())),
        ("shared sentences", "pairs of the most frequent sentence", int(times.max())),
        ("smallest difference", "if pairs are independent", smallest[0]),
        ("smallest difference", "if each chain counts as one pair", smallest[1]),
    ]


_SPLITS_SHOWN = 3


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
    return DataOverview(rows, Tables([Table(headlines)]))


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

    >>> verify(what=["sample"]).advice
    ()
    """
    rows = pd.DataFrame(
        {"task": entry.task, "text": text, "source": variant.source} | _verdict(_root(variant, data_dirs), file)
        for entry, text, variant in _chosen(what, data_dirs)
        for file in variant.files
    ).astype({"expected_lines": "Int64", "found_lines": "Int64"})
    # Several parts may be in one file. For a missing source the advice is enough.
    rows = rows.drop_duplicates(["task", "text", "file"], ignore_index=True)
    shown = rows.loc[(rows["status"] != "ok") & (rows["folder"] != ""), ["task", "text", "file", "status"]]
    return DataOverview(rows, Tables([Table(shown)] * bool(len(shown))), tuple(_advice(rows)))


def _advice(rows: pd.DataFrame) -> Iterator[str]:
    # Two tasks may have a file in common.
    wrong = rows[~rows["status"].isin(["ok", "unverified"])].drop_duplicates(["source", "file"])
    for name, of_source in wrong.groupby("source", sort=False):
        first = of_source.iloc[0]
        files = rows.loc[rows["source"] == name, "file"].nunique()
        yield (
            f"{name}: {len(of_source)} of {files} files are not the catalogued ones, the first is "
            f"{Path(first['folder']) / first['file']} ({first['status']}): {remedy(source(str(name)))}."
        )


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
        "expected_sha256": file.sha256 or "unverified",
        "found_sha256": "",
        "folder": str(root or ""),
    }
    if root is None or not (root / file.path).is_file():
        return verdict
    try:
        data = read_bytes(root / file.path)
    except UserError:
        return verdict | {"status": "unreadable"}
    found = hashlib.sha256(data).hexdigest()
    status = {None: "unverified", found: "ok"}.get(file.sha256, "modified")
    return verdict | {"status": status, "found_lines": len(BytesIO(data).readlines()), "found_sha256": found}


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
