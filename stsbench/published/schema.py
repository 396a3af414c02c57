"""What the entries may say: the schema of papers, tables, systems and checkpoints."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=80)]
Number = Annotated[str, StringConstraints(pattern=r"^[+-]?\d+(\.\d+)?$")]
Status = Literal["printed", "restored", "derived", "lost", "not reported"]

NOT_REPORTED = "-"
"""What a paper prints where it has no value."""

UNVERIFIED = "unverified"
"""The source of what no document at hand gives."""

_PRINTED = re.compile(r"^\(?(?P<number>[+-]?\d[\d,]*(?:\.\d+)?)(?:±(?P<spread>\d+(?:\.\d+)?))?%?\)?$")
_RANGES = {"x100": 100.0, "1": 1.0, "pairs": float("inf")}


class _PublishedEntry(BaseModel):
    # A misspelt key in an entry must not pass for an absent one. What checks entries of a kind is built when one
    # is read: many commands import this, and few read more than one kind.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Paper(_PublishedEntry):
    """Where numbers were printed: a text, or a page of a public repository.

    Attributes:
        name: its name here.
        title: the paper's, whoever prints its numbers.
        authors: of the paper.
        year: of the paper.
        venue: where it appeared.
        address: where to find it.
        file: the text that the cells were read from, in which lines are counted from 1. Of a page it is made of
            the next three, and its cells name a heading instead.
        repository: the repository of a page, as `owner/name`.
        path: the page in it.
        commit: the commit that was read; empty, with `note` saying so, where the copy that was read names none.
        note: what a reader should know.
    """

    name: Name
    title: str
    authors: str
    year: int | None = None
    venue: str
    address: str
    file: str = ""
    repository: str = ""
    path: str = ""
    commit: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40})?$")] = ""
    note: str = ""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, entry: Any) -> Any:
        if isinstance(entry, dict) and entry.get("repository") and not entry.get("file"):
            commit = f" at {entry['commit'][:8]}" if entry.get("commit") else ""
            entry = entry | {"file": f"{entry.get('path', '')} of {entry['repository']}{commit}"}
        return entry

    @model_validator(mode="after")
    def _has_a_text(self) -> Self:
        if not self.file or bool(self.repository) != bool(self.path):
            raise ValueError("a paper names a file, or a repository and a path in it")
        if self.repository and not self.commit and "commit" not in self.note:
            raise ValueError("a page without a commit says so in its note")
        return self


class _Layer(_PublishedEntry):
    # What a row says goes before what its column or its table says.

    def over(self, other: Self) -> Self:
        """Return the entry in which this one's fields hide the other's."""
        return other.model_copy(update=self.model_dump(exclude_defaults=True))


class Setting(_Layer):
    """What a value is a measurement of. A row's setting goes before its column's, that before the table's.

    Attributes:
        task: the data set, `Avg. STS`, `Avg. transfer`, or `delta` for a difference between other cells.
        metric: `spearman`, `pearson`, `accuracy`, ...
        unit: `x100` (0 to 100), `1` (0 to 1) or `pairs`.
        split: `train`, `dev`, `test`, or `all` for the three together.
        aggregation: over the subsets of one year, as in the protocols of `stsbench run`.
        similarity: how two vectors were compared.
        text: which text of the data set was encoded.
        group: the part of the data or the condition that the value is of.
        variant: what differs from the system's own configuration.
        open: fields that the paper does not state; where they have a value, the authors' released code does.
    """

    task: str = ""
    metric: str = ""
    unit: str = ""
    split: str = ""
    aggregation: str = ""
    similarity: str = ""
    text: str = ""
    group: str = ""
    variant: str = ""
    open: tuple[str, ...] = ()


class Usage(_Layer):
    """How the model of a row was used, as far as its source says. A row's usage goes before its table's.

    Attributes:
        pooling: where the vector was read, as in `stsbench run --pooling`.
        template: the text around the sentence, with `{sentence}` and `{mask}` in their places.
        rules: what was done to the sentence before, in order, named as in templates.
        precision: `fp32`, `fp16` or `bf16`.
        checkpoint: what was measured: a Hub name, or where the weights are.
        open: fields that the source does not state; where they have a value, the authors' released code does.
    """

    pooling: str = ""
    template: str = ""
    rules: tuple[str, ...] = ()
    precision: Literal["", "fp32", "fp16", "bf16"] = ""
    checkpoint: str = ""
    open: tuple[str, ...] = ()


class PublishedColumn(_PublishedEntry):
    """A column as printed, and what its values are.

    `average_of` names the columns whose mean it should be; `difference_of` the column whose difference to the
    same column of the row's `baseline` it should be, or to the column `minus` of the same row.
    """

    name: str
    label: str
    setting: Setting = Setting()
    average_of: tuple[str, ...] = ()
    difference_of: str = ""
    minus: str = ""


class Restored(_PublishedEntry):
    """A value that the text at hand does not hold as it was printed, and how it was found again.

    Each piece of `evidence` is `average` (the row's printed average then is the mean of its cells), the full
    name of a row in which another paper prints the same value, or a word (`format`, `text`, `derived`), a
    colon and a reason.
    """

    column: str
    value: Number
    how: Literal[
        "lost decimal point",
        "decimal point read as a digit",
        "lost decimal point and a misread digit",
        "merged cells",
        "stray character",
        "sign, from the words of the sentence",
        "derived",
    ]
    evidence: Annotated[tuple[str, ...], Field(min_length=1)]


class Lost(_PublishedEntry):
    """A cell of the print whose value cannot be had from the text at hand."""

    column: str
    why: str


class Row(_PublishedEntry):
    """A row as printed.

    Attributes:
        name: its name in the table.
        label: its head as the text at hand spells it.
        system: which system it measures; empty for a row of counts.
        variant: what differs from that system's own configuration.
        group: the part of the table it stands in.
        line: the line of the paper's text that the cells were read from; None on a page, where the table's
            section and the label find the row.
        cells: the strings that the values were read from, in the order of the columns; empty where the paper
            prints nothing.
        restored: values that extraction garbled.
        lost: values that extraction lost.
        baseline: the row that differences are taken to.
        origin: where the paper says that it has the values from.
        notes: what a reader should know.
        setting: see `Setting`.
        usage: see `Usage`.
    """

    name: Name
    label: str = ""
    system: str = ""
    variant: str = ""
    group: str = ""
    line: Annotated[int, Field(gt=0)] | None = None
    cells: tuple[str, ...]
    restored: tuple[Restored, ...] = ()
    lost: tuple[Lost, ...] = ()
    baseline: str = ""
    origin: str = ""
    notes: tuple[str, ...] = ()
    setting: Setting = Setting()
    usage: Usage = Usage()


@dataclass(frozen=True)
class PublishedCell:
    """One value, and where it was read.

    Attributes:
        table: name of its table.
        row: name of its row.
        column: name of its column.
        system: the system that was measured.
        setting: what the value is a measurement of.
        value: the number as printed, in the setting's unit; None where it is lost or was not reported.
        decimals: how many digits after the point were printed.
        raw: the string that it was read from.
        file: the paper's text.
        line: the line in it; None on a page.
        section: on a page, the heading that the table stands under.
        spread: what is printed behind a plus-minus sign, in the setting's unit.
        status: `printed`, `restored` (garbled by extraction), `derived` (computed from what is printed), `lost`
            or `not reported`.
        how: how it was restored, or why it is lost.
        evidence: what speaks for the restored value.
    """

    table: str
    row: str
    column: str
    system: str
    setting: Setting
    value: float | None
    decimals: int
    raw: str
    file: str
    line: int | None
    status: Status
    how: str = ""
    evidence: tuple[str, ...] = ()
    section: str = ""
    spread: float | None = None

    @property
    def place(self) -> str:
        """The place it was read at, which is a line of a text or a heading of a page."""
        return f"{self.file}, line {self.line}" if self.line else f'{self.file}, under "{self.section}"'

    @property
    def row_name(self) -> str:
        """The row's full name, `table/row`."""
        return f"{self.table}/{self.row}"

    @property
    def printed(self) -> str:
        """The number with as many digits as were printed; empty where there is none."""
        return "" if self.value is None else f"{self.value:.{self.decimals}f}"

    @property
    def score(self) -> float | None:
        """The value on the scale from 0 to 100, whatever the unit it was printed in."""
        if self.value is None:
            return None
        # Not value * 100, whose noise would show: 28.999999999999996.
        return round(self.value * 100, 10) if self.setting.unit == "1" else self.value

    @property
    def rounding(self) -> float:
        """How far the printed score can be from the measured one."""
        return 0.5 * 10.0**-self.decimals * (100 if self.setting.unit == "1" else 1)


class PublishedTable(_PublishedEntry):
    """A numeric table of a paper.

    `number` is empty where the paper gives none; `missing` says why there are no rows where there are none;
    `section` is the heading that a table of a page stands under, in place of its rows' lines.
    """

    name: Name
    paper: Name
    number: str = ""
    title: str
    caption_line: int | None = None
    section: str = ""
    missing: str = ""
    notes: tuple[str, ...] = ()
    columns: tuple[PublishedColumn, ...]
    setting: Setting = Setting()
    usage: Usage = Usage()
    rows: tuple[Row, ...] = ()

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        names = [column.name for column in self.columns]
        rows = [row.name for row in self.rows]
        if bool(self.rows) == bool(self.missing):
            raise ValueError("a table has rows, or says why they are missing")
        if len(set(names)) < len(names) or len(set(rows)) < len(rows):
            raise ValueError("two columns or two rows have the same name")
        for column in self.columns:
            for source in (*column.average_of, column.difference_of, column.minus):
                if source and source not in names:
                    raise ValueError(f"column {column.name} refers to {source!r}, which is no column")
        for row in self.rows:
            self._require_row(row, names, rows)
            # Reading every cell once makes sure that each is a number or says why it is none.
            list(self.cells_of(row, ""))
        return self

    def _require_row(self, row: Row, columns: Sequence[str], rows: Sequence[str]) -> None:
        if len(row.cells) != len(columns):
            raise ValueError(f"row {row.name} has {len(row.cells)} cells for {len(columns)} columns")
        if (row.line is None) != bool(self.section):
            raise ValueError(f"row {row.name} has a line, or its table names the section that it stands in")
        if row.baseline and row.baseline not in rows:
            raise ValueError(f"row {row.name} has the baseline {row.baseline!r}, which is no row")
        for name in (*(entry.column for entry in row.restored), *(entry.column for entry in row.lost)):
            if name not in columns:
                raise ValueError(f"row {row.name} restores or loses {name!r}, which is no column")

    def cells_of(self, row: Row, file: str) -> Iterator[PublishedCell]:
        """Yield the cells of a row in which the paper, whose text is `file`, prints something."""
        restored = {entry.column: entry for entry in row.restored}
        lost = {entry.column: entry for entry in row.lost}
        for column, raw in zip(self.columns, row.cells, strict=True):
            number, status, how, evidence = _read(raw, restored.get(column.name), lost.get(column.name))
            spread = _PRINTED.match(raw)
            if status is None:
                continue
            setting = row.setting.over(column.setting.over(self.setting))
            if row.variant:
                setting = setting.model_copy(update={"variant": row.variant})
            value = float(number) if number else None
            if value is not None and abs(value) > _RANGES[setting.unit]:
                raise ValueError(f"row {row.name}, {column.name}: {raw!r} is outside the unit {setting.unit!r}")
            yield PublishedCell(
                table=self.name,
                row=row.name,
                column=column.name,
                system=row.system,
                setting=setting,
                value=value,
                decimals=len(number.partition(".")[2]),
                raw=raw,
                file=file,
                line=row.line,
                status=status,
                how=how,
                evidence=evidence,
                section=self.section,
                spread=float(spread["spread"]) if spread and spread["spread"] else None,
            )


def _read(
    raw: str, restored: Restored | None, lost: Lost | None
) -> tuple[str, Status | None, str, tuple[str, ...]]:
    """Return a cell's number as printed, its status (None for an empty cell), how it came about, evidence."""
    if restored is not None:
        status: Status = "derived" if restored.how == "derived" else "restored"
        return restored.value, status, restored.how, restored.evidence
    if lost is not None:
        return "", "lost", lost.why, ()
    if not raw:
        return "", None, "", ()
    if raw == NOT_REPORTED:
        return "", "not reported", "", ()
    match = _PRINTED.match(raw)
    if match is None:
        raise ValueError(f"{raw!r} is no number: restore it, or say why it is lost")
    return match["number"].replace(",", ""), "printed", "", ()


class LeftOut(_PublishedEntry):
    """A result that people compare with and that no document at hand prints as text. None is recalled from memory.

    `looked_in` names the pages that were read, each with its commit where it names one; `usage` says how the
    authors' code uses the model, where that can be read.
    """

    name: Name
    title: str
    looked_in: Annotated[tuple[str, ...], Field(min_length=1)]
    why: str
    usage: str = ""


class Exhibit(_PublishedEntry):
    """A table or figure of a paper, whether its numbers are entered or not.

    Attributes:
        name: its name; that of its `PublishedTable` where there is one.
        number: as printed; empty where the paper gives none.
        caption: what it shows, in our words.
        section: the section (or the heading of the slide) that it belongs to.
        line: the line of the paper's text that its caption is in; None where the text has none.
        without_line: why there is no such line.
        without_numbers: why no number of it is entered; empty where a `PublishedTable` has them, or says why not.
    """

    name: Name
    paper: Name
    kind: Literal["table", "figure"]
    number: str = ""
    caption: str
    section: str
    line: Annotated[int, Field(gt=0)] | None = None
    without_line: str = ""
    without_numbers: str = ""

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        if (self.line is None) != bool(self.without_line):
            raise ValueError("an exhibit has a line, or says why it has none")
        return self

    @property
    def title(self) -> str:
        """Its kind and number, as the paper calls it: `Table 9`."""
        return f"{self.kind.capitalize()} {self.number or '(unnumbered)'}"


class System(_PublishedEntry):
    """Something that was measured.

    Attributes:
        name: its name here.
        title: its name in the papers.
        kind: `static` (word vectors), `pretrained`, `postprocessed`, `unsupervised` or `supervised`; `people` are
            no model.
        row: the row to expect of it, full name; empty where it has none of its own.
        aliases: other names.
        edition_of: the system whose earlier edition this is (a preprint's numbers).
        note: what a reader should know.
    """

    name: Name
    title: str
    kind: Literal["static", "pretrained", "postprocessed", "unsupervised", "supervised", "people"]
    row: str
    aliases: tuple[str, ...] = ()
    edition_of: str = ""
    note: str = ""


class KnownCheckpoint(_PublishedEntry):
    """A public checkpoint: what to load, how to use it, what to expect of it, what to cite.

    Attributes:
        name: what a person calls it.
        system: the published system that it is a checkpoint of; empty where no table at hand has one.
        hub: its name on the Hugging Face Hub; empty where it is not there.
        hub_source: the document that gives that name, or `unverified`.
        pooling: the pooler that its numbers were taken with, named as in `stsbench run --pooling`.
        pooling_source: the document that gives it, or `unverified`.
        usage: the paper (or card) and how it uses the checkpoint, in words.
        prompt: what its card says to put before every sentence in symmetric tasks.
        template: the preset that its numbers were taken with; empty for none.
        max_length: in sub-words with the special tokens.
        max_length_source: the document that gives it, or `unverified`.
        weights_sha256: the hash of the weights that its numbers were taken with, where it is known.
        tokenizer_sha256: that of its tokenizer's files, likewise.
        text: the text of the data sets that its numbers were taken on.
        expected: full names of the rows to expect.
        listed_average: the average that the checkpoint's own page lists.
        listed_source: that page.
        note: what a reader should know.
        citation: BibTeX of its paper.
    """

    name: Name
    system: str = ""
    hub: str
    hub_source: str
    pooling: str
    pooling_source: str
    usage: str
    prompt: str = ""
    template: str = ""
    max_length: int | None = None
    max_length_source: str = UNVERIFIED
    weights_sha256: str = ""
    tokenizer_sha256: str = ""
    text: str = ""
    expected: tuple[str, ...] = ()
    listed_average: float | None = None
    listed_source: str = ""
    note: str = ""
    citation: str

    def files_compared(self, weights: str | None, tokenizer: str | None) -> Iterator[tuple[str, bool, str]]:
        """Yield for weights and tokenizer's files, where hashes are known: which, whether the same, its own."""
        if weights and self.weights_sha256:
            yield "weights", weights == self.weights_sha256, self.weights_sha256
        if tokenizer and self.tokenizer_sha256:
            yield "tokenizer's files", tokenizer == self.tokenizer_sha256, self.tokenizer_sha256

    @property
    def unverified(self) -> tuple[str, ...]:
        """What of `hub`, `pooling` and `max_length` no document at hand gives."""
        sources = {"hub": self.hub_source, "pooling": self.pooling_source, "max_length": self.max_length_source}
        return tuple(name for name, source in sources.items() if source == UNVERIFIED)
