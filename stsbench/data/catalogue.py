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
RelativePath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/ -]*$")]
SplitName = Annotated[str, StringConstraints(pattern=r"^[a-z]+(-[a-z]+)?$")]

SENTEVAL = "senteval"
"""The text that the papers score: SentEval's release."""

UNVERIFIED: Literal["unverified"] = "unverified"
"""What stands for a hash that nobody could vouch for."""

Label = int | str
"""A class of a labelled task, as the task's own files spell it."""


class _CatalogueModel(BaseModel):
    # A misspelt key in an entry must not pass for an absent one.
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Hashed(_CatalogueModel):
    sha256: Sha256 | Literal["unverified"]

    @property
    def expected(self) -> str | None:
        """The hash that the file must have, None if nobody knows it."""
        return None if self.sha256 == UNVERIFIED else self.sha256


class CatalogueFile(_Hashed):
    """One file of a data set, as it is read.

    `path` is relative to a root of the file's source; `lines` counts every line, a header included, and is None
    where nobody counted. A file that was never seen whole has the hash `"unverified"`.
    """

    path: RelativePath
    lines: Annotated[int, Field(gt=0)] | None = None
    sha256: Sha256 | Literal["unverified"] = UNVERIFIED


class CataloguePart(_CatalogueModel):
    """The files of one subset and split, and how many scored pairs (or labelled items) they hold.

    `split` is train, dev, test or all; where each language is a task of its own, the language ("en", "es-en").
    `label` is the class of every item, for data sets that keep one file per class. `only` names the rows that
    belong to the part, for data sets that keep several in one file: columns with the value that they must have.
    """

    split: SplitName
    count: Annotated[int, Field(gt=0)]
    files: tuple[CatalogueFile, ...]
    subset: str | None = None
    label: Label | None = None
    only: dict[str, str] = {}


class Columns(_CatalogueModel):
    """Where a tab-separated table keeps what: column numbers from 0."""

    sentence1: int
    value: int
    sentence2: int | None = None
    id: int | None = None
    subset: int | None = None
    split: int | None = None
    design: int | None = None


class NamedColumns(_CatalogueModel):
    """Which columns of a table hold what, by name; a dot leads into an object inside (`labels.label`).

    - `pair`: the column of both sentences, with a tab or a line feed between them, instead of the two.
    - `raters`: the columns with one rating each, or the only column with a list of them. Without a column
      `value` the gold score is their mean.
    - `may_be_empty`: whether some sentences are empty, in everyone's copy.
    """

    sentence1: str = ""
    sentence2: str = ""
    pair: str = ""
    value: str = ""
    id: str = ""
    raters: tuple[str, ...] = ()
    may_be_empty: bool = False

    @model_validator(mode="after")
    def _has_a_pair_and_a_score(self) -> Self:
        if bool(self.pair) == bool(self.sentence1 and self.sentence2):
            raise ValueError("name both sentences, or the one column that holds the pair")
        if not self.value and not self.raters:
            raise ValueError("name the column of the score, or those of the ratings that it is the mean of")
        return self


class TextVariant(_CatalogueModel):
    """One text of a data set (SentEval's tokenised one, the raw one, ...) and how its files are laid out.

    - `pairs-and-gold`: a file of tab-separated pairs, and a file with one gold score a line, empty where
      the pair was not scored.
    - `table`: one tab-separated row per item.
    - `parallel`: one file of first sentences, one of second sentences, one of labels.
    - `one-label`: one sentence a line, the label belongs to the file.
    - `label-first`: a line is a label, a space, a sentence; of a label `A:b` only `A` counts.
    - `named`: rows whose columns have names, in one of the formats of `stsbench.data.rows` (UTF-8).

    `widths` lists the column counts that a row may have (`pairs-and-gold` and `table`): the raw text carries
    notes on its source behind some sentences. `names` are the columns' names of the layout `named` where the file
    has no header. `drop_repeated` leaves out of dev and test every pair that stands twice in its split, or in
    another split too, whichever sentence comes first: then `count` is what is left. `note` says how much of the
    files was seen, for texts that were not read here.
    """

    source: str
    encoding: Literal["utf-8", "utf-8-sig", "latin-1"] = "utf-8"
    layout: Literal["pairs-and-gold", "table", "parallel", "one-label", "label-first", "named"]
    widths: tuple[int, ...] = ()
    columns: Columns | None = None
    header: bool = False
    format: Literal["", "tsv", "csv", "jsonl", "json", "parquet"] = ""
    named: NamedColumns | None = None
    names: tuple[str, ...] = ()
    drop_repeated: bool = False
    note: str = ""
    parts: tuple[CataloguePart, ...]

    @model_validator(mode="after")
    def _layout_is_described(self) -> Self:
        if (self.columns is not None) != (self.layout == "table"):
            raise ValueError("columns belong to the layout 'table', and to it alone")
        if bool(self.widths) != (self.layout in {"table", "pairs-and-gold"}):
            raise ValueError("widths belong to the layouts 'table' and 'pairs-and-gold', and to them alone")
        if self.layout == "pairs-and-gold" and not all(part.subset for part in self.parts):
            raise ValueError("each part of the layout 'pairs-and-gold' names its subset")
        if (self.named is not None) != (self.layout == "named") or bool(self.format) != (self.layout == "named"):
            raise ValueError("named and format belong to the layout 'named', and to it alone")
        if not self.is_verified and not self.note:
            raise ValueError("a text with unverified files says in its note what of them was seen")
        return self

    @property
    def files(self) -> tuple[CatalogueFile, ...]:
        """The files of all parts, in order; one that several parts lie in is there several times."""
        return tuple(file for part in self.parts for file in part.files)

    @property
    def is_verified(self) -> bool:
        """Whether the hash of every file is known."""
        return all(file.expected for file in self.files)

    @property
    def assurance(self) -> Literal["verified", "hash known", "unverified"]:
        """Whether the files were read here; else whether anybody says their hashes."""
        return UNVERIFIED if not self.is_verified else "hash known" if self.note else "verified"

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits, in the catalogue's order."""
        return tuple(dict.fromkeys(part.split for part in self.parts))

    @property
    def whole(self) -> str:
        """The name of all splits together: `all`, or the only one."""
        return "all" if len(self.splits) > 1 else self.splits[0]


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

    @property
    def usual_text(self) -> str:
        """The text that is meant where nobody names one: SentEval's, or the first."""
        return SENTEVAL if SENTEVAL in self.texts else next(iter(self.texts))


class Source(_Hashed):
    """Where files come from, and where in a data folder they may lie.

    `roots` are tried in order below each data folder. `sha256` is `"unverified"` where nobody could vouch
    for the upstream file; what it unpacks to is still held against the data sets' own hashes. Of the kind `files`
    the address ends in a slash, and the paths of the catalogue's files follow it. `of_default_tasks` is False
    for what no default group of tasks needs.
    """

    name: str
    title: str
    kind: Literal["archive", "file", "files", "by-hand", "bundled"]
    address: str
    roots: tuple[str, ...]
    folder: RelativePath | None = None
    documentation: str
    licence: str
    of_default_tasks: bool = True

    @property
    def is_fetchable(self) -> bool:
        """Whether `stsbench data get` can get it."""
        return self.kind in {"archive", "file", "files"}

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


def paper_tasks() -> tuple[str, ...]:
    """Return the names of the STS tasks of the papers, those of SentEval's release, in the papers' order.

    >>> len(paper_tasks())
    7
    """
    return tuple(name for name, entry in data_sets().items() if entry.kind == "sts" and SENTEVAL in entry.texts)


MTEB_TASKS = {
    "STS12": "STS12",
    "STS13": "STS13",
    "STS14": "STS14",
    "STS15": "STS15",
    "STS16": "STS16",
    "STSBenchmark": "STS-B",
    "SICK-R": "SICK-R",
}
"""MTEB's names of the tasks, and the catalogue's."""


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
    """Return the source called `name`."""
    if name not in sources():
        raise UserError(f"there is no data source {name!r}: {suggestion(name, sources())}")
    return sources()[name]


def text_variant(entry: DataSet, text: str) -> TextVariant:
    """Return the files of one text of a data set."""
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
