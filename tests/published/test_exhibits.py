"""The inventory of the papers' tables and figures, against their texts and the numbers that are entered."""

import re
from collections import Counter
from pathlib import Path

import pytest
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.published.catalogue import exhibit, exhibits, papers, table, tables
from stsbench.published.lookup import list_published
from stsbench.published.schema import Exhibit

TEXTS = Path(__file__).parents[2].parent / "shared" / "papers"
CAPTION = re.compile(r"^(?P<kind>Table|Figure) (?P<number>\d+):")
MENTION = re.compile(r"\b(?P<kind>Table|Figure)\s(?P<number>\d+)\b")
DOCUMENTS = [name for name, paper in papers().items() if paper.file.endswith(".txt")]

with_texts = pytest.mark.skipif(not TEXTS.is_dir(), reason="the papers' texts are not in ../shared/papers")

LOST = {
    ("esimcse-coling2022", "Table", "11"),
    ("mocose-acl2022", "Figure", "2"),
    ("mocose-acl2022", "Figure", "13"),
}
"""Exhibits that the texts name without their caption."""

ELSEWHERE = {("simcse-slides", "Table", "3")}
"""Named in a text that does not have them: the slides leave the paper's table 3 out."""


def of(paper: str) -> list[Exhibit]:
    return [entry for entry in exhibits().values() if entry.paper == paper]


@with_texts
@pytest.mark.parametrize("paper", DOCUMENTS)
def test_the_captions_of_a_text_are_the_exhibits_of_its_paper_line_by_line(paper: str) -> None:
    lines = (TEXTS / papers()[paper].file).read_text(encoding="utf-8").splitlines()
    captions = [
        (match["kind"].lower(), match["number"], place)
        for place, line in enumerate(lines, 1)
        if (match := CAPTION.match(line))
    ]
    entered = [(entry.kind, entry.number, entry.line) for entry in of(paper) if entry.line is not None]
    # Read by line: the slides' and appendices' order in the inventory is that of the paper.
    assert sorted(entered, key=lambda entry: entry[2]) == captions


@with_texts
@pytest.mark.parametrize("paper", DOCUMENTS)
def test_every_table_and_figure_that_a_text_names_is_in_the_inventory(paper: str) -> None:
    text = " ".join((TEXTS / papers()[paper].file).read_text(encoding="utf-8").split()).replace(
        "Fig- ure", "Figure"
    )
    named = {(paper, match["kind"], match["number"]) for match in MENTION.finditer(text)} - ELSEWHERE
    numbered = {(paper, entry.kind.capitalize(), entry.number) for entry in of(paper) if entry.number}
    assert named == numbered
    unlined = {(entry.paper, entry.kind.capitalize(), entry.number) for entry in of(paper) if entry.line is None}
    assert {entry for entry in unlined if entry[2]} == {entry for entry in LOST if entry[0] == paper}


def test_the_inventory_has_as_many_as_the_documents() -> None:
    assert Counter((entry.paper, entry.kind) for entry in exhibits().values()) == {
        ("simcse-slides", "table"): 9,
        ("simcse-slides", "figure"): 3,
        ("esimcse-arxiv-v1", "table"): 11,
        ("esimcse-arxiv-v1", "figure"): 2,
        ("esimcse-coling2022", "table"): 11,
        ("esimcse-coling2022", "figure"): 1,
        ("mocose-acl2022", "table"): 9,
        ("mocose-acl2022", "figure"): 13,
        ("gaussian-dropout-simcse-cs224n", "table"): 1,
        ("gaussian-dropout-simcse-cs224n", "figure"): 1,
    }


def test_each_exhibit_has_numbers_or_says_why_not() -> None:
    for entry in exhibits().values():
        assert (entry.name in tables()) != bool(entry.without_numbers), entry.name


def test_each_table_of_the_documents_is_an_exhibit_with_its_number_and_line() -> None:
    for entry in tables().values():
        if entry.paper not in DOCUMENTS:
            continue
        found = exhibits()[entry.name]
        assert (found.paper, found.number) == (entry.paper, entry.number)
        if found.line is not None:
            assert found.line == entry.caption_line


def test_an_exhibit_without_line_and_reason_is_refused() -> None:
    entry = exhibits()["esimcse-coling2022-9"].model_dump()
    with pytest.raises(ValidationError, match="says why it has none"):
        Exhibit.model_validate(entry | {"line": None})


def test_an_exhibit_is_found_by_name_and_a_misspelt_one_names_close_ones() -> None:
    assert exhibit("esimcse coling2022 9").title == "Table 9"
    with pytest.raises(UserError, match=r"did you mean .*mocose-acl2022-figure-1"):
        exhibit("mocose-acl2022-figur-1")


def test_the_list_says_what_each_shows_and_whether_its_numbers_are_entered() -> None:
    frame = list_published("exhibits").frame.set_index("exhibit")
    assert len(frame) == len(exhibits())
    assert frame.loc["esimcse-coling2022-9", "numbers"] == "entered"
    assert "ends at line 834" in frame.loc["esimcse-coling2022-11", "why not"]
    assert frame.loc["mocose-acl2022-figure-8", "numbers"] == ""


def test_the_similarities_of_table_2_are_those_of_the_print() -> None:
    printed = {row.name: row.cells for row in table("esimcse-coling2022-2").rows}
    assert printed["random-deletion"] == ("0.32",)
    assert {row.name: row.cells for row in table("esimcse-arxiv-v1-2").rows}["random-insertion"] == ("0.76",)
