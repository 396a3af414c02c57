"""Every cell against the text that it was read from."""

import json
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from stsbench.published.catalogue import papers, rows_of, tables
from stsbench.published.schema import PublishedCell

# In these the values stand in sentences, or as a JSON object: not in the order of a table's columns.
NO_TABLE = {"gaussian-dropout-simcse-cs224n", "mteb"}
# Pages of repositories are not at hand as files: `test_successors.py` holds their cells against their averages.
TEXTS = [name for name, paper in papers().items() if not paper.repository]
TABLES = [name for name in TEXTS if name not in NO_TABLE]
# A value of a table: 68.40, 79.1, 0.7298, or with its point lost, 6840.
VALUE = re.compile(r"(?<![\d.,/])(?:\d{1,2}\.\d{1,4}|\d{4,5})(?![\d.,]*\d)")
# Heads and labels of that form.
HEADS = {
    ("simcse-slides", 157): {"0.15", "0.5", "0.1"},
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

pytestmark = pytest.mark.shared


def lines_of(shared: Path, file: str) -> list[str]:
    folder = shared / ("golden" if file.endswith(".json") else "papers")
    return (folder / file).read_text(encoding="utf-8").split("\n")


def cells_by_line(paper: str) -> dict[int, list[PublishedCell]]:
    """Return a paper's cells by line, in each line as a reader meets them: column by column, row by row."""
    found: dict[int, list[tuple[int, int, PublishedCell]]] = defaultdict(list)
    for table in tables().values():
        order = [column.name for column in table.columns]
        for number, row in enumerate(rows_of(table)):
            for cell in row.cells:
                if table.paper == paper and cell.raw:
                    found[cell.line].append((order.index(cell.column), number, cell))
    return {line: [cell for *_, cell in sorted(cells, key=lambda c: c[:2])] for line, cells in found.items()}


def pattern(raw: str) -> re.Pattern[str]:
    before = r"(?<![\d.,])" if raw[0].isdigit() else ""
    after = r"(?!\d|[.,]\d)" if raw[-1].isdigit() else ""
    return re.compile(before + re.escape(raw) + after)


@pytest.mark.parametrize("paper", TEXTS)
def test_every_cell_s_string_stands_in_the_line_that_the_cell_names(paper: str, shared: Path) -> None:
    text = lines_of(shared, papers()[paper].file)
    for line, cells in cells_by_line(paper).items():
        for cell in cells:
            assert pattern(cell.raw).search(text[line - 1]), (cell.row_name, cell.column, line, cell.raw)


@pytest.mark.parametrize("paper", TABLES)
def test_the_strings_of_a_line_stand_there_in_the_order_of_columns_each_at_a_place_of_its_own(
    paper: str, shared: Path
) -> None:
    text = lines_of(shared, papers()[paper].file)
    for line, cells in cells_by_line(paper).items():
        place = 0
        for cell in cells:
            match = pattern(cell.raw).search(text[line - 1], place)
            assert match, (cell.row_name, cell.column, line, cell.raw)
            place = match.end()


@pytest.mark.parametrize("paper", TABLES)
def test_no_value_in_the_lines_of_a_table_is_left_unread(paper: str, shared: Path) -> None:
    text = lines_of(shared, papers()[paper].file)
    by_line = cells_by_line(paper)
    for table in tables().values():
        if table.paper == paper and table.rows:
            lines = [row.line for row in table.rows]
            # Between a table's first and last line stand its heads, and rows that must not be skipped.
            for line in range(min(lines), max(lines) + 1):
                rest = text[line - 1]
                for cell in by_line.get(line, []):
                    rest = pattern(cell.raw).sub(" ", rest, count=1)
                unread = set(VALUE.findall(rest)) - HEADS.get((paper, line), set())
                assert not unread or is_head(table.name, line), (table.name, line, rest)


def is_head(table: str, line: int) -> bool:
    # Heads that lie between the rows of their table.
    return (table, line) in {
        ("simcse-slides-augmentations", 140),
        ("esimcse-arxiv-v1-9", 242),
        ("esimcse-coling2022-9", 694),
    }


@pytest.mark.parametrize("paper", TABLES)
def test_captions_stand_where_the_tables_say(paper: str, shared: Path) -> None:
    text = lines_of(shared, papers()[paper].file)
    for table in tables().values():
        if table.paper == paper and table.number:
            if table.caption_line is None:
                assert table.missing
                assert not any(line.startswith(f"Table {table.number}:") for line in text)
            else:
                assert text[table.caption_line - 1].startswith(f"Table {table.number}:"), table.name


@pytest.mark.parametrize("paper", TABLES)
def test_every_numbered_table_of_the_text_is_there_but_those_of_sentences(paper: str, shared: Path) -> None:
    of_sentences = {"simcse-slides": {"10"}}
    captions = {
        match[1] for line in lines_of(shared, papers()[paper].file) if (match := re.match(r"Table (\d+):", line))
    }
    there = {
        table.number for table in tables().values() if table.paper == paper and table.number and not table.missing
    }
    assert there == captions - of_sentences.get(paper, set())


def test_rows_follow_the_order_of_the_text() -> None:
    # Two tables stand side by side there, and are kept one after the other.
    side_by_side = {"mocose-acl2022-4", "mocose-acl2022-6", "simcse-slides-dropout"}
    for table in tables().values():
        if table.name not in side_by_side and table.paper in TEXTS:
            assert all(one.line <= other.line for one, other in pairwise(table.rows)), table.name


def test_mteb_values_are_those_of_the_file(shared: Path) -> None:
    text = (shared / "golden/all-MiniLM-L6-v2.mteb.json").read_text(encoding="utf-8")
    scores = json.loads(text)["cosine_spearman"]
    (row,) = rows_of(tables()["mteb-all-minilm-l6-v2"])
    labels = {column.name: column.label for column in row.table.columns}
    assert {labels[cell.column]: cell.value for cell in row.cells} == scores
