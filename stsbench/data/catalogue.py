"""The catalogue of data sets and their sources: the models of its TOML entries."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from stsbench.base.errors import UserError
from stsbench.base.words import plain_name, suggestion

SENTEVAL = "senteval"
"""The text that the papers score: SentEval's release."""

Label = int | str
"""A class of a labelled task, as spelled in its files."""


class _CatalogueModel(BaseModel):
    # A misspelt key must not count as absent.
    model_config = ConfigDict(frozen=True, extra="forbid")


class CatalogueFile(_CatalogueModel):
    """A file of a data set.

    `path` is relative to a root of the file's source; `lines` includes a header. Lines and hash are None if they
    are unknown.
    """

    path: str
    lines: int | None = None
    sha256: str | None = None


class CataloguePart(_CatalogueModel):
    """The files of one subset and split, and their number of scored pairs or labelled items.

    `split` is train, dev, test or all; if each language is a task of its own, the language ("en", "es-en").
    `label` is the class of all items, for data sets with one file per class. `only` selects the rows of the part,
    for data sets with several parts in one file: columns and their values.
    """

    split: str
    count: int
    files: tuple[CatalogueFile, ...]
    subset: str | None = None
    label: Label | None = None
    only: dict[str, str] = {}


class Columns(_CatalogueModel):
    """The columns of a table: numbers from 0 (`table`), or names (`named`), where a dot leads into an object.

    - `pair`: the column with both sentences, separated by a tab or a line feed, instead of two columns.
    - `raters`: the columns with one rating each, or the only column with a list of them. Without `value` the gold
      score is their mean.
    - `may_be_empty`: whether sentences in named columns may be empty.
    """

    sentence1: int | str | None = None
    sentence2: int | str | None = None
    pair: str | None = None
    value: int | str | None = None
    id: int | str | None = None
    subset: int | str | None = None
    split: int | str | None = None
    design: int | str | None = None
    raters: tuple[str, ...] = ()
    may_be_empty: bool = False


class TextVariant(_CatalogueModel):
    """A text of a data set (SentEval's tokenised one, the raw one, ...) and the layout of its files.

    - `pairs-and-gold`: a file of tab-separated pairs, and a file with one gold score per line, empty if the pair
      was not scored.
    - `table`: one tab-separated row per item.
    - `parallel`: a file of first sentences, one of second sentences, one of labels.
    - `one-label`: one sentence per line, one label per file.
    - `label-first`: lines of a label, a space and a sentence; of a label `A:b` only `A` counts.
    - `named`: rows with named columns, in one of the formats of `stsbench.data.rows` (UTF-8).

    `widths` lists the allowed numbers of columns (`pairs-and-gold` and `table`): some rows of the raw text have
    notes after the sentences. `names` are the columns of the layout `named` if the file has no header.
    `drop_repeated` leaves out each pair of dev and test that occurs twice in its split, or in another split, in
    either order; `count` is without them. `note` describes files that were not available.
    """

    source: str
    encoding: Literal["utf-8", "latin-1"] = "utf-8"
    layout: Literal["pairs-and-gold", "table", "parallel", "one-label", "label-first", "named"]
    widths: tuple[int, ...] = ()
    columns: Columns = Columns()
    header: bool = False
    format: Literal["", "tsv", "csv", "jsonl", "json", "parquet"] = ""
    names: tuple[str, ...] = ()
    drop_repeated: bool = False
    note: str = ""
    parts: tuple[CataloguePart, ...]

    @property
    def files(self) -> tuple[CatalogueFile, ...]:
        """The files of all parts, in order, with repetitions."""
        return tuple(file for part in self.parts for file in part.files)

    @property
    def assurance(self) -> Literal["verified", "hash known", "unverified"]:
        """Whether the files were read for this catalogue; if not, whether their hashes are known."""
        if not all(file.sha256 for file in self.files):
            return "unverified"
        return "hash known" if self.note else "verified"

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits, in the catalogue's order."""
        return tuple(dict.fromkeys(part.split for part in self.parts))

    @property
    def whole(self) -> str:
        """The name of all splits together: `all`, or the only one."""
        return "all" if len(self.splits) > 1 else self.splits[0]


class DataSet(_CatalogueModel):
    """A task: its title, origin, licence and files.

    `gold_range` has the lowest and highest possible score (kind `sts`); `classes` are the labels in SentEval's
    order, so a label's index is SentEval's number for it (kind `labelled`).
    """

    task: str
    kind: Literal["sts", "labelled"]
    title: str
    aliases: tuple[str, ...] = ()
    gold_range: tuple[float, float] | None = None
    classes: tuple[Label, ...] | None = None
    documentation: str
    address: str
    licence: str
    citation: str
    texts: dict[str, TextVariant]

    @property
    def usual_text(self) -> str:
        """The default text: SentEval's, or the first."""
        return SENTEVAL if SENTEVAL in self.texts else next(iter(self.texts))


class Source(_CatalogueModel):
    """The origin of files, and their places in a data folder.

    `roots` are tried in order below each data folder. `sha256` is None if the hash of the download is unknown;
    unpacked files are still compared with their own hashes. The address of the kind `files` ends in a
    slash and is followed by the paths of the files. `of_default_tasks` is False if no default group of tasks needs
    the source.
    """

    name: str
    title: str
    kind: Literal["archive", "file", "files", "by-hand", "bundled"]
    address: str
    roots: tuple[str, ...]
    sha256: str | None = None
    folder: str | None = None
    documentation: str
    licence: str
    of_default_tasks: bool = True

    @property
    def is_fetchable(self) -> bool:
        """Whether `stsbench data get` can download it."""
        return self.kind in {"archive", "file", "files"}

    @property
    def file_name(self) -> str:
        """The downloaded file's name: the last part of the address."""
        return self.address.rsplit("/", 1)[-1]


@cache
def data_sets() -> Mapping[str, DataSet]:
    """Returns every data set by its task name, in the catalogue's order."""
    return {entry["task"]: DataSet.model_validate(entry) for entry in _entries("tasks")}


@cache
def sources() -> Mapping[str, Source]:
    """Returns every source of files by its name."""
    return {entry["name"]: Source.model_validate(entry) for entry in _entries("sources")}


def data_set(task: str) -> DataSet:
    """Returns a data set by its name or an alias, ignoring case and punctuation.

    >>> data_set("stsbenchmark").task
    'STS-B'
    """
    names = _names()
    name = names.get(plain_name(task))
    if name is None:
        known = suggestion(task, data_sets(), otherwise=f"choose one of {', '.join(data_sets())}.")
        raise UserError(f"there is no task {task!r}: {known}")
    return data_sets()[name]


def paper_tasks() -> tuple[str, ...]:
    """Returns the names of the STS tasks of the papers, those of SentEval's release, in the papers' order.

    >>> len(paper_tasks())
    7
    """
    return tuple(name for name, entry in data_sets().items() if entry.kind == "sts" and SENTEVAL in entry.texts)


MTEB_TASKS = {f"STS{year}": f"STS{year}" for year in range(12, 17)} | {"STSBenchmark": "STS-B", "SICK-R": "SICK-R"}
"""MTEB's names of the tasks, and the catalogue's."""


def task_split_text(name: str) -> tuple[str, str, str]:
    """Returns the parts of `TASK[:split][@text]`, empty where there is none.

    >>> task_split_text("STS-B:dev@raw"), task_split_text("STS12")
    (('STS-B', 'dev', 'raw'), ('STS12', '', ''))
    """
    rest, _, text = name.partition("@")
    task, _, split = rest.partition(":")
    return task, split, text


def is_task(name: str) -> bool:
    """Returns whether `TASK[:split][@text]` names a task of the catalogue.

    >>> is_task("sts-b:dev"), is_task("wiki.txt")
    (True, False)
    """
    return plain_name(task_split_text(name)[0]) in _names()


def source(name: str) -> Source:
    """Returns the source called `name`."""
    if name not in sources():
        raise UserError(f"there is no data source {name!r}: {suggestion(name, sources())}")
    return sources()[name]


def text_variant(entry: DataSet, text: str) -> TextVariant:
    """Returns the files of one text of a data set."""
    if text not in entry.texts:
        raise UserError(f"{entry.task} has no text {text!r}: {suggestion(text, entry.texts)}")
    return entry.texts[text]


@cache
def _names() -> Mapping[str, str]:
    return {
        plain_name(name): entry.task for entry in data_sets().values() for name in (entry.task, *entry.aliases)
    }


def _entries(folder: str) -> list[dict[str, Any]]:
    # The numbers before the names give the order of the entries.
    paths = Path(str(files("stsbench.data").joinpath("entries", folder))).glob("*.toml")
    return [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(paths)]
