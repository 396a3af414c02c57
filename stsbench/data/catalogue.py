"""What the catalogue may say: the schema of its TOML entries."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from stsbench.base.errors import UserError
from stsbench.base.words import closest, plain_name, suggestion

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
RelativePath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")]

Label = int | str
"""A class of a labelled task, as the task's own files spell it."""


class _CatalogueModel(BaseModel):
    # A misspelt key in an entry must not pass for an absent one.
    model_config = ConfigDict(frozen=True, extra="forbid")


class CatalogueFile(_CatalogueModel):
    """One file of a data set, as it is read.

    `path` is relative to a root of the file's source; `lines` counts every line, a header included.
    """

    path: RelativePath
    lines: Annotated[int, Field(gt=0)]
    sha256: Sha256


class CataloguePart(_CatalogueModel):
    """The files of one subset and split, and how many scored pairs (or labelled items) they hold.

    `label` is the class of every item, for data sets that keep one file per class.
    """

    split: Literal["train", "dev", "test", "all"]
    count: Annotated[int, Field(gt=0)]
    files: tuple[CatalogueFile, ...]
    subset: str | None = None
    label: Label | None = None


class Columns(_CatalogueModel):
    """Where a tab-separated table keeps what: column numbers from 0."""

    sentence1: int
    value: int
    sentence2: int | None = None
    id: int | None = None
    subset: int | None = None
    split: int | None = None
    design: int | None = None


class TextVariant(_CatalogueModel):
    """One text of a data set (SentEval's tokenised one, the raw one, ...) and how its files are laid out.

    - `pairs-and-gold`: a file of tab-separated pairs, and a file with one gold score a line, empty where
      the pair was not scored.
    - `table`: one tab-separated row per item.
    - `parallel`: one file of first sentences, one of second sentences, one of labels.
    - `one-label`: one sentence a line, the label belongs to the file.
    - `label-first`: a line is a label, a space, a sentence; of a label `A:b` only `A` counts.

    `widths` lists the column counts that a row may have (`pairs-and-gold` and `table`): the raw text carries
    notes on its source behind some sentences.
    """

    source: str
    encoding: Literal["utf-8", "utf-8-sig", "latin-1"]
    layout: Literal["pairs-and-gold", "table", "parallel", "one-label", "label-first"]
    widths: tuple[int, ...] = ()
    columns: Columns | None = None
    header: bool = False
    parts: tuple[CataloguePart, ...]

    @model_validator(mode="after")
    def _layout_is_described(self) -> Self:
        if (self.columns is not None) != (self.layout == "table"):
            raise ValueError("columns belong to the layout 'table', and to it alone")
        if bool(self.widths) != (self.layout in {"table", "pairs-and-gold"}):
            raise ValueError("widths belong to the layouts 'table' and 'pairs-and-gold', and to them alone")
        if self.layout == "pairs-and-gold" and not all(part.subset for part in self.parts):
            raise ValueError("each part of the layout 'pairs-and-gold' names its subset")
        return self


class DataSet(_CatalogueModel):
    """A task: what it is, where it comes from, under which terms, and its files.

    `gold_range` holds the lowest and highest score that the task's annotators could give (kind `sts`);
    `classes` are the labels in SentEval's order, so that a label's index is SentEval's number for it (kind
    `labelled`).
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

    @model_validator(mode="after")
    def _scores_or_classes(self) -> Self:
        if (self.gold_range is not None) != (self.kind == "sts"):
            raise ValueError("gold_range belongs to kind 'sts', and to it alone")
        if (self.classes is not None) != (self.kind == "labelled"):
            raise ValueError("classes belong to kind 'labelled', and to it alone")
        return self


class Source(_CatalogueModel):
    """Where files come from, and where in a data folder they may lie.

    `roots` are tried in order below each data folder. `sha256` is `"unverified"` where nobody could vouch
    for the upstream file; what it unpacks to is still held against the data sets' own hashes.
    """

    name: str
    title: str
    kind: Literal["archive", "file", "by-hand", "bundled"]
    address: str
    sha256: Sha256 | Literal["unverified"]
    roots: tuple[str, ...]
    folder: RelativePath | None = None
    documentation: str
    licence: str

    @property
    def file_name(self) -> str:
        """The downloaded file's name: the last part of the address."""
        return self.address.rsplit("/", 1)[-1]


@cache
def data_sets() -> Mapping[str, DataSet]:
    """Return every data set by its task name, in the catalogue's order."""
    entries = [DataSet.model_validate(_read(path)) for path in _entry_files("tasks")]
    return MappingProxyType({entry.task: entry for entry in entries})


@cache
def sources() -> Mapping[str, Source]:
    """Return every source of files by its name."""
    entries = [Source.model_validate(_read(path)) for path in _entry_files("sources")]
    return MappingProxyType({entry.name: entry for entry in entries})


def data_set(task: str) -> DataSet:
    """Return the data set that a person means by `task`, whatever its case and punctuation.

    Raises:
        UserError: if the catalogue has no such task.

    >>> data_set("stsbenchmark").task
    'STS-B'
    """
    names = _names()
    name = names.get(plain_name(task))
    if name is None:
        close = closest(task, names)
        hint = f"did you mean {names[close[0]]}?" if close else f"choose one of {', '.join(data_sets())}."
        raise UserError(f"there is no task {task!r}: {hint}")
    return data_sets()[name]


def task_split_text(name: str) -> tuple[str, str, str]:
    """Return the parts of `TASK[:split][@text]`, empty where there is none.

    >>> task_split_text("STS-B:dev@raw"), task_split_text("STS12")
    (('STS-B', 'dev', 'raw'), ('STS12', '', ''))
    """
    rest, _, text = name.partition("@")
    task, _, split = rest.partition(":")
    return task, split, text


def is_task(name: str) -> bool:
    """Return whether `TASK[:split][@text]` names a task of the catalogue.

    >>> is_task("sts-b:dev"), is_task("wiki.txt")
    (True, False)
    """
    return plain_name(task_split_text(name)[0]) in _names()


def source(name: str) -> Source:
    """Return the source called `name`.

    Raises:
        UserError: if the catalogue has no such source.
    """
    if name not in sources():
        raise UserError(f"there is no data source {name!r}: {suggestion(name, sources())}")
    return sources()[name]


def text_variant(entry: DataSet, text: str) -> TextVariant:
    """Return the files of one text of a data set.

    Raises:
        UserError: if the data set does not come in that text.
    """
    if text not in entry.texts:
        raise UserError(f"{entry.task} has no text {text!r}: {suggestion(text, entry.texts)}")
    return entry.texts[text]


@cache
def _names() -> Mapping[str, str]:
    return {
        plain_name(name): entry.task for entry in data_sets().values() for name in (entry.task, *entry.aliases)
    }


def _entry_files(folder: str) -> list[Traversable]:
    # The numbers in front of the names give the order in which tables list the entries.
    paths = files("stsbench.data").joinpath("entries", folder).iterdir()
    return sorted((path for path in paths if path.name.endswith(".toml")), key=lambda path: path.name)


def _read(path: Traversable) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
