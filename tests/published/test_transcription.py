"""Every cell and caption against the text that it was read from."""

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from stsbench.published.catalogue import exhibits, papers, rows_of, tables
from stsbench.published.schema import NO_VALUE, PublishedCell

# Values in sentences or in JSON, not in the order of a table's columns.
NO_TABLE = {"gaussian-dropout-simcse-cs224n", "mteb"}
# Pages of repositories are checked by their averages in `test_entries.py`.
TEXTS = list(dict.fromkeys(table.paper for table in tables().values() if not table.section))
TABLES = [name for name in TEXTS if name not in NO_TABLE]
# A value: 68.40, 79.1, 0.7298, or without its point 6840.
VALUE = re.compile(r"(?<![\d.,/])(?:\d{1,2}\.\d{1,4}|\d{4,5})(?![\d.,]*\d)")
# What the text has in place of a value, beyond lost decimal points.
GARBLED = {
    ("mocose-acl2022-3/ema-0.5", "Avg."): "75776",
    ("mocose-acl2022-6/batch-64", "Avg."): "7125",
    ("mocose-acl2022-6/batch-512", "Avg."): "7062",
    # Computed from these differences.
    ("gaussian-dropout-simcse-cs224n-results/baseline", "sentiment"): "%0.036",
    ("gaussian-dropout-simcse-cs224n-results/baseline", "paraphrase"): "%0.003",
    ("gaussian-dropout-simcse-cs224n-results/baseline", "sts"): "%0.001",
}
# Headers and labels that look like values.
HEADERS = {
    ("simcse-slides", 157): {"0.15", "0.2", "0.5", "0.1"},
    ("simcse-slides", 295): {"0.01"},
    ("simcse-slides", 296): {"0.1"},
    ("esimcse-arxiv-v1", 260): {"1.5"},
    ("esimcse-arxiv-v1", 262): {"2.5"},
    ("esimcse-coling2022", 736): {"1.5"},
    ("esimcse-coling2022", 738): {"2.5"},
    ("mocose-acl2022", 554): {"0.1"},
    ("mocose-acl2022", 555): {"0.01"},
    ("mocose-acl2022", 556): {"0.1"},
    ("mocose-acl2022", 621): {"1024"},
    ("mocose-acl2022", 622): {"2048"},
}
HEADER_LINES = {
    ("simcse-slides-augmentations", 140),
    ("esimcse-arxiv-v1-9", 242),
    ("esimcse-coling2022-9", 694),
}
# Named in a text, without a caption of their own. The slides leave table 3 out.
WITHOUT_CAPTION = {
    "esimcse-coling2022": {("Table", "11")},
    "mocose-acl2022": {("Figure", "2"), ("Figure", "13")},
}
NOT_INCLUDED = {"simcse-slides": {("Table", "3")}}

pytestmark = pytest.mark.shared


def lines_of(shared: Path, paper: str) -> list[str]:
    file = papers()[paper].file
    return (shared / ("golden" if file.endswith(".json") else "papers") / file).read_text("utf-8").split("\n")


def cells_by_line(paper: str) -> dict[int, list[tuple[PublishedCell, str]]]:
    """Return a paper's cells and entered strings by line, in reading order: column by column, row by row."""
    by_line: dict[int, list[tuple[int, int, PublishedCell, str]]] = defaultdict(list)
    for table in tables().values():
        order = [column.name for column in table.columns]
        for number, row in enumerate(rows_of(table)):
            for cell in row.cells:
                place = order.index(cell.column)
                text = GARBLED.get((cell.row_name, cell.column), row.row.cells[place])
                if table.paper == paper and text != NO_VALUE:
                    assert cell.line is not None
                    by_line[cell.line].append((place, number, cell, text))
    return {line: [entry[2:] for entry in sorted(cells, key=lambda c: c[:2])] for line, cells in by_line.items()}


def find(text: str, paper: str, line: str, start: int = 0) -> re.Match[str] | None:
    """Return the first place of a value in a line: as entered, with thousands separated, or as garbled."""
    spellings = [text, f"{int(text):,}" if text.isdigit() else text]
    if paper == "mocose-acl2022":
        spellings.append(text.replace(".", ""))
    if paper == "gaussian-dropout-simcse-cs224n":
        spellings.append(f"%{text.lstrip('+-')}")
    matches = [pattern(spelling).search(line, start) for spelling in spellings]
    return min(filter(None, matches), key=lambda match: match.start(), default=None)


def pattern(text: str) -> re.Pattern[str]:
    return re.compile((r"(?<![\d.,])" if text[0].isdigit() else "") + re.escape(text) + r"(?!\d|[.,]\d)")


@pytest.mark.parametrize("paper", TEXTS)
def test_every_value_is_in_its_line_in_the_order_of_the_columns(paper: str, shared: Path) -> None:
    lines = lines_of(shared, paper)
    for number, cells in cells_by_line(paper).items():
        place = 0
        for cell, text in cells:
            match = find(text, paper, lines[number - 1], place)
            assert match, (cell.row_name, cell.column, number, text)
            place = 0 if paper in NO_TABLE else match.end()


@pytest.mark.parametrize("paper", TABLES)
def test_no_value_in_the_lines_of_a_table_is_left_out(paper: str, shared: Path) -> None:
    lines, by_line = lines_of(shared, paper), cells_by_line(paper)
    for table in tables().values():
        if table.paper != paper or not table.rows:
            continue
        of_rows = [row.line for row in table.rows if row.line is not None]
        for number in range(min(of_rows), max(of_rows) + 1):
            rest = lines[number - 1]
            for _, text in by_line.get(number, []):
                if match := find(text, paper, rest):
                    rest = f"{rest[: match.start()]} {rest[match.end() :]}"
            unread = set(VALUE.findall(rest)) - HEADERS.get((paper, number), set())
            assert not unread or (table.name, number) in HEADER_LINES, (table.name, number, rest)


@pytest.mark.parametrize("paper", sorted(set(TEXTS) - {"mteb"}))
def test_the_captions_of_a_text_are_its_numbered_tables_and_figures(paper: str, shared: Path) -> None:
    lines = lines_of(shared, paper)
    captions = [
        (f"{match[1]} {match[2]}", number)
        for number, line in enumerate(lines, 1)
        if (match := re.match(r"(Table|Figure) (\d+):", line))
    ]
    ours = [entry for entry in exhibits().values() if entry.paper == paper and entry.number]
    entered = [(entry.heading, entry.caption_line) for entry in ours if entry.caption_line]
    assert sorted(entered, key=lambda entry: entry[1]) == captions
    named = re.findall(
        r"\b(Table|Figure) (\d+)\b", " ".join(" ".join(lines).split()).replace("Fig- ure", "Figure")
    )
    assert set(named) - NOT_INCLUDED.get(paper, set()) == {
        (entry.kind.capitalize(), entry.number) for entry in ours
    }
    without = {(entry.kind.capitalize(), entry.number) for entry in ours if not entry.caption_line}
    assert without == WITHOUT_CAPTION.get(paper, set())


def test_mteb_s_values_are_those_of_the_file(shared: Path) -> None:
    scores = json.loads((shared / "golden/all-MiniLM-L6-v2.mteb.json").read_text("utf-8"))["cosine_spearman"]
    (row,) = rows_of(tables()["mteb-all-minilm-l6-v2"])
    labels = {column.name: column.label for column in row.table.columns}
    assert {labels[cell.column]: cell.value for cell in row.cells} == scores
