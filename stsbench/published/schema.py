"""The schema of the entries: papers, tables, systems and checkpoints."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

NO_VALUE = "-"
"""A cell for which the paper prints no value, or whose value is unreadable. A note says which, if it matters."""

UNVERIFIED = "unverified"
"""The source of a fact that is not in any included document."""


class _PublishedEntry(BaseModel):
    # Most commands read only some kinds of entries, so validators are built on first use.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Paper(_PublishedEntry):
    """A document with printed numbers: a paper, or a page in a public repository.

    Attributes:
        name: the name here.
        title: the paper's title.
        authors: the paper's authors.
        year: year of the paper.
        venue: where it appeared.
        address: its URL.
        file: the text that the cells were read from, with lines counted from 1; a page's path, repository and
            commit.
        commit: the full commit of a page; empty if unknown.
        note: remarks for readers.
    """

    name: str
    title: str
    authors: str
    year: int | None = None
    venue: str
    address: str
    file: str
    commit: str = ""
    note: str = ""


class _Layer(_PublishedEntry):
    def over(self, other: Self) -> Self:
        """Returns `other`, with the fields that are set here replaced."""
        return other.model_copy(update=self.model_dump(exclude_defaults=True))


class Setting(_Layer):
    """What a value measures. A row's setting takes precedence over its column's, and that over the table's.

    Attributes:
        task: the data set, `Avg. STS`, `Avg. transfer`, or `delta` for a difference between other cells.
        metric: `spearman`, `pearson`, `accuracy`, ...
        unit: `x100` (0 to 100), `1` (0 to 1) or `pairs`.
        split: `train`, `dev`, `test`, or `all` for all three.
        aggregation: how subsets of a year are combined, as in the protocols of `stsbench run`.
        similarity: how two vectors are compared.
        text: which text of the data set was encoded.
        group: the part of the data, or the condition, that the value is for.
        variant: the difference from the system's default configuration.
        open: fields that the paper does not state. If they have a value, it is from the authors' code.
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
    """How the model of a row was used, as far as its source states. A row's usage precedes its table's.

    Attributes:
        pooling: as in `stsbench run --pooling`.
        template: the text around the sentence, with `{sentence}` and `{mask}`.
        rules: changes to the sentence before that, in order, named as in templates.
        precision: `fp32`, `fp16` or `bf16`.
        checkpoint: a Hub name, or where the weights are.
        open: fields that the source does not state. If they have a value, it is from the authors' code.
    """

    pooling: str = ""
    template: str = ""
    rules: tuple[str, ...] = ()
    precision: Literal["", "fp32", "fp16", "bf16"] = ""
    checkpoint: str = ""
    open: tuple[str, ...] = ()


class PublishedColumn(_PublishedEntry):
    """A column and what its values measure.

    Attributes:
        name: the name here.
        label: the printed header.
        setting: see `Setting`.
        average_of: columns whose mean it should be.
        difference_of: the column whose difference it is, from the row's `baseline`, or from the column `minus`.
        minus: the column that is subtracted, in the same row.
    """

    name: str
    label: str
    setting: Setting = Setting()
    average_of: tuple[str, ...] = ()
    difference_of: str = ""
    minus: str = ""


class Row(_PublishedEntry):
    """A row of a table.

    Attributes:
        name: its name in the table.
        label: its label in the text.
        system: the system that it measures; empty for a row of counts.
        variant: the difference from that system's default configuration.
        group: the part of the table that it is in.
        line: its line in the paper's text; None on a page.
        cells: the numbers with the printed digits, one per column, with a spread as in `71.56±0.18`. Empty where
            nothing is printed, `-` where there is no value.
        baseline: the row that differences are taken to.
        origin: the source of the paper's values.
        notes: remarks for readers, such as a corrected misreading.
        setting: see `Setting`.
        usage: see `Usage`.
    """

    name: str
    label: str = ""
    system: str = ""
    variant: str = ""
    group: str = ""
    line: int | None = None
    cells: tuple[str, ...]
    baseline: str = ""
    origin: str = ""
    notes: tuple[str, ...] = ()
    setting: Setting = Setting()
    usage: Usage = Usage()


@dataclass(frozen=True)
class PublishedCell:
    """A value and its source.

    Attributes:
        table: name of its table.
        row: name of its row.
        column: name of its column.
        system: the system that was measured.
        setting: the measured quantity.
        value: the number, in the setting's unit; None if there is none.
        decimals: number of printed digits after the point.
        file: the paper's text.
        line: its line in the text; None on a page.
        section: on a page, the heading above the table.
        spread: the number after a plus-minus sign, in the setting's unit.
    """

    table: str
    row: str
    column: str
    system: str
    setting: Setting
    value: float | None
    decimals: int
    file: str
    line: int | None
    section: str = ""
    spread: float | None = None

    @property
    def place(self) -> str:
        """Its source, a line of a text or a heading of a page."""
        return f"{self.file}, line {self.line}" if self.line else f'{self.file}, under "{self.section}"'

    @property
    def row_name(self) -> str:
        """The row's full name, `table/row`."""
        return f"{self.table}/{self.row}"

    @property
    def printed(self) -> str:
        """The number with the printed digits; empty if there is none."""
        return "" if self.value is None else f"{self.value:.{self.decimals}f}"

    @property
    def score(self) -> float | None:
        """The value from 0 to 100, regardless of the printed unit."""
        if self.value is None or self.setting.unit != "1":
            return self.value
        return round(self.value * 100, 10)  # 0.29 * 100 is 28.999999999999996

    @property
    def rounding(self) -> float:
        """How far the printed score can be from the measured one."""
        return 0.5 * 10.0**-self.decimals * (100 if self.setting.unit == "1" else 1)


class PublishedTable(_PublishedEntry):
    """A table of a paper, or a figure whose numbers are not included.

    Attributes:
        name: the name here.
        paper: name of its paper.
        kind: `table` or `figure`.
        number: as printed; empty if it has none.
        title: its subject.
        caption_line: the line of its caption in the paper's text; None if the text has none.
        section: on a page, the heading above it, instead of lines.
        notes: remarks for readers, such as why there are no rows.
        columns: the columns, in printed order.
        setting: what its values measure.
        usage: how its models were used.
        rows: the rows, in printed order.
    """

    name: str
    paper: str
    kind: Literal["table", "figure"] = "table"
    number: str = ""
    title: str
    caption_line: int | None = None
    section: str = ""
    notes: tuple[str, ...] = ()
    columns: tuple[PublishedColumn, ...] = ()
    setting: Setting = Setting()
    usage: Usage = Usage()
    rows: tuple[Row, ...] = ()

    @property
    def heading(self) -> str:
        """Its name in the paper, such as `Table 9`."""
        return f"{self.kind.capitalize()} {self.number or '(unnumbered)'}"

    def cells_of(self, row: Row, file: str) -> Iterator[PublishedCell]:
        """Yields the cells of a row that are not empty; `file` is the paper's text."""
        for column, printed in zip(self.columns, row.cells, strict=True):
            if not printed:
                continue
            setting = row.setting.over(column.setting.over(self.setting))
            if row.variant:
                setting = setting.model_copy(update={"variant": row.variant})
            number, _, spread = printed.partition("±") if printed != NO_VALUE else ("", "", "")
            yield PublishedCell(
                table=self.name,
                row=row.name,
                column=column.name,
                system=row.system,
                setting=setting,
                value=float(number) if number else None,
                decimals=len(number.partition(".")[2]),
                file=file,
                line=row.line,
                section=self.section,
                spread=float(spread) if spread else None,
            )


class System(_PublishedEntry):
    """A system that papers measured.

    Attributes:
        name: the name here.
        title: its name in the papers.
        kind: `static` (word vectors), `pretrained`, `postprocessed`, `unsupervised`, `supervised`, or `people`.
        row: full name of the row to expect; empty if no row is included.
        aliases: other names.
        edition_of: the system of which this is an earlier edition (the numbers of a preprint).
        note: remarks for readers.
    """

    name: str
    title: str
    kind: Literal["static", "pretrained", "postprocessed", "unsupervised", "supervised", "people"]
    row: str
    aliases: tuple[str, ...] = ()
    edition_of: str = ""
    note: str = ""


class KnownCheckpoint(_PublishedEntry):
    """A public checkpoint: what to load, how to use it, which scores to expect, what to cite.

    Attributes:
        name: the name here.
        system: the published system; empty if no table includes one.
        hub: its name on the Hugging Face Hub; empty if it is not there.
        hub_source: the document that states that name, or `unverified`.
        pooling: the pooler of its published numbers, as in `stsbench run --pooling`.
        pooling_source: the document that states it, or `unverified`.
        usage: the paper or card, and how it uses the checkpoint, in words.
        prompt: the text before every sentence in symmetric tasks, from its card.
        template: the template of its published numbers; empty for none.
        max_length: in sub-words, special tokens included.
        max_length_source: the document that states it, or `unverified`.
        weights_sha256: hash of the weights of its published numbers, if known.
        tokenizer_sha256: hash of the tokenizer's files, if known.
        text: the text of the data sets behind its published numbers.
        expected: full names of the rows to expect.
        listed_average: the average that the checkpoint's own page lists.
        listed_source: that page.
        note: remarks for readers.
        citation: BibTeX of its paper.
    """

    name: str
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
        """Yields for each known hash the name of the files, whether yours is the same, and the known hash."""
        if weights and self.weights_sha256:
            yield "weights", weights == self.weights_sha256, self.weights_sha256
        if tokenizer and self.tokenizer_sha256:
            yield "tokenizer's files", tokenizer == self.tokenizer_sha256, self.tokenizer_sha256

    @property
    def unverified(self) -> tuple[str, ...]:
        """Which of `hub`, `pooling` and `max_length` no included document states."""
        sources = {"hub": self.hub_source, "pooling": self.pooling_source, "max_length": self.max_length_source}
        return tuple(name for name, source in sources.items() if source == UNVERIFIED)
