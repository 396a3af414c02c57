"""The successors' tables, read from pages of repositories: their arithmetic, their sources, what is left out."""

import math
import re

import pytest
from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.encoders.template import read_template
from stsbench.published.catalogue import checkpoints, left_out, papers, row, rows, rows_of, systems, tables
from stsbench.published.lookup import cells_frame, list_published, show_row
from stsbench.published.schema import Paper, PublishedTable

PAGES = {name: paper for name, paper in papers().items() if paper.repository}
MODELS = PAGES.keys() - {"hume"}
ROWS = [row_ for table in tables().values() if table.paper in MODELS for row_ in rows_of(table)]

# Where the source itself disagrees: what it prints as the average, and the mean of its cells.
DISAGREE = {
    "promptbert-sts/promptbert-bert-base": (78.54, 78.523),
    "consert-sts/consert-bert-large": (76.45, 76.444),
}

# Typed from the pages, not copied from the entries.
SAMPLE = {
    ("diffcse-bert-base", "STS14"): 76.47,
    ("diffcse-roberta-base", "Avg."): 78.21,
    ("diffcse-bert-base-trans", "Avg."): 86.86,
    ("promptbert", "SICK-R"): 69.87,
    ("sup-promptbert-roberta-base", "STS-B"): 86.14,
    ("promcse", "STS16"): 79.69,
    ("pcl-roberta-large", "STS12"): 72.76,
    ("pcl-transfer/pcl-bert-large", "TREC"): 93.0,
    ("infocse", "STS15"): 85.10,
    ("gs-infonce", "SICK-R"): 72.70,
    ("distilcse", "STS14"): 84.1,
    ("cot-roberta", "STS13"): 85.47,
    ("whitenedcse-bert-large", "SICK-R"): 75.34,
    ("syncse", "STS16"): 82.87,
    ("angle-llama-13b", "Avg."): 86.52,
    ("prompteol-icl-opt-66b", "STS15"): 80.10,
    ("prompteol-llama-7b", "STS16"): 86.25,
    ("bert-base-avg-top2", "STS12"): 35.20,
    ("cards-roberta-large", "STS13"): 86.27,
    ("denosent", "STS12"): 75.48,
}


@pytest.mark.parametrize("printed", ROWS, ids=lambda printed: printed.name)
def test_each_average_is_the_mean_of_its_cells_unless_the_source_disagrees(printed) -> None:
    cells = {cell.column: cell.value for cell in printed.cells}
    average = cells.pop("Avg.")
    if not cells:
        assert printed.table.name == "diffcse-transfer"
        return
    assert len(cells) == 7
    mean = math.fsum(cells.values()) / 7
    if printed.name in DISAGREE:
        assert (average, round(mean, 3)) == DISAGREE[printed.name]
    else:
        assert abs(mean - average) <= 0.005 + 1e-9


@pytest.mark.parametrize(("place", "value"), SAMPLE.items(), ids=str)
def test_sampled_values_are_those_of_the_pages(place: tuple[str, str], value: float) -> None:
    assert row(place[0]).cell(place[1]).value == value


def test_every_page_names_its_commit_or_says_that_it_has_none() -> None:
    assert len(PAGES) == 16
    assert [name for name, paper in PAGES.items() if not paper.commit] == ["pcl"]
    for paper in PAGES.values():
        assert paper.file == f"{paper.path} of {paper.repository}" + (
            f" at {paper.commit[:8]}" * bool(paper.commit)
        )
    page = PAGES["pcl"].model_dump() | {"note": "", "file": ""}
    with pytest.raises(ValidationError, match="a page without a commit says so"):
        Paper.model_validate(page)
    with pytest.raises(ValidationError, match="names a file, or a repository"):
        Paper.model_validate(page | {"repository": "", "path": ""})


def test_every_row_says_how_the_model_was_used_and_what_is_open() -> None:
    for printed in ROWS:
        usage, known = printed.usage, {"cards-sts"}
        assert printed.table.name in known or usage.pooling, printed.name
        assert usage.precision or "precision" in usage.open, printed.name
        assert usage.template == "" or "{sentence}" in usage.template
        assert ("mask" in usage.pooling) <= (
            "{mask}" in usage.template or printed.name.endswith("cot-bert-roberta-base")
        )
        assert {cell.setting.split for cell in printed.cells} == {"test"}
        checkpoint = checkpoints().get(printed.row.system)
        if checkpoint and usage.pooling and not printed.row.variant:
            assert checkpoint.pooling == usage.pooling
        if checkpoint and checkpoint.hub and usage.checkpoint:
            assert checkpoint.hub == usage.checkpoint


def test_a_checkpoint_s_preset_asks_and_reads_as_its_row_says() -> None:
    """The presets were read from the authors' code by themselves, not made from the rows."""
    presets = {name: entry.template for name, entry in checkpoints().items() if entry.template}
    assert len(presets) == 14
    for name, preset in presets.items():
        template = read_template(preset)
        assert template.reading == checkpoints()[name].pooling
        for expected in checkpoints()[name].expected:
            usage = row(expected).usage
            assert (template.texts, template.rules) == ((usage.template,), usage.rules)


def test_the_two_rows_of_diffcse_are_of_two_checkpoints() -> None:
    for base in ("bert-base", "roberta-base"):
        of_sts, of_transfer = row(f"diffcse-{base}"), row(f"diffcse-{base}-trans")
        assert of_sts.usage.checkpoint.endswith("-sts")
        assert of_transfer.usage.checkpoint.endswith("-trans")
        assert checkpoints()[of_sts.system.name].expected == (of_sts.name,)
        assert checkpoints()[of_transfer.system.name].hub == of_transfer.usage.checkpoint
    with pytest.raises(UserError, match=r"there is no published row 'voidism/diffcse-bert-base'"):
        row("voidism/diffcse-bert-base")


def test_a_spread_behind_a_plus_minus_sign_is_kept_apart_from_the_value() -> None:
    cell = row("promptbert").cell("STS12")
    assert (cell.raw, cell.value, cell.spread, cell.decimals) == ("71.56±0.18", 71.56, 0.18, 2)
    assert row("sup-promptbert-bert-base").cell("STS12").spread is None


def test_a_row_names_a_line_or_its_table_a_section() -> None:
    entry = tables()["infocse-sts"].model_dump()
    with pytest.raises(ValidationError, match="has a line, or its table names the section"):
        PublishedTable.model_validate(entry | {"section": ""})
    entry["rows"][0]["line"] = 3
    with pytest.raises(ValidationError, match="has a line, or its table names the section"):
        PublishedTable.model_validate(entry)


def test_a_row_of_a_page_is_shown_with_its_heading_and_its_usage() -> None:
    shown = show_row("cot-bert")
    assert (
        shown.place == 'cot-bert-sts/cot-bert-bert-base: ReadMe.md of ZBWpro/CoT-BERT at f030f6d4, under "Results"'
    )
    frame = cells_frame([row("promptbert")])
    assert frame.loc[0, "template"] == 'This sentence of "{sentence}" means {mask}.'
    assert frame.loc[0, ["pooling", "precision", "spread"]].tolist() == ["mask", "fp32", 0.18]


def test_what_no_page_prints_is_left_out_and_listed() -> None:
    assert set(left_out()) >= {"sncse", "rankcse"}
    words = " ".join([*systems(), *rows()])
    assert not re.search("sncse|rankcse|metaeol", words)
    listed = list_published("left-out").frame.set_index("result")
    assert "as an image" in listed.loc["sncse", "why"]
    assert "Sense-GVT/SNCSE at 0293abf4" in listed.loc["sncse", "looked in"]


def test_an_average_alone_is_the_checkpoint_s_and_no_row() -> None:
    with pytest.raises(UserError, match="Its page prints its STS average alone"):
        row("infocse-bert-large")
    assert checkpoints()["infocse-bert-large"].listed_average == 80.18
