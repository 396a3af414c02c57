"""The entries are complete, refer to each other, and have the values of the papers."""

import math
import re
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

import stsbench.published
from stsbench.encoders.poolers import parse_pooling
from stsbench.encoders.template import read_template
from stsbench.published.catalogue import checkpoints, exhibits, papers, row, rows, rows_of, systems, tables
from stsbench.published.schema import NO_VALUE, UNVERIFIED, PublishedTable

ENTRIES = Path(stsbench.published.__path__[0]) / "entries"
RANGES = {"x100": 100.0, "1": 1.0, "pairs": math.inf}
PAGES = {table.paper for table in tables().values() if table.section}
ROWS = [row_ for table in tables().values() if table.paper in PAGES - {"hume"} for row_ in rows_of(table)]

# Typed from the pages, not copied from the entries; `test_transcription.py` compares the papers' texts.
SAMPLE = """
mocose-acl2022-1/mocose-bert-base STS12 71.48; mocose-acl2022-7/initial-half queue-4096 38.74;
gaussian-dropout-simcse-cs224n-results/gaussian sentiment-delta -0.029; diffcse-bert-base STS14 76.47;
diffcse-bert-base-trans Avg. 86.86; promptbert SICK-R 69.87; sup-promptbert-roberta-base STS-B 86.14;
promcse STS16 79.69; pcl-roberta-large STS12 72.76; pcl-transfer/pcl-bert-large TREC 93.0; infocse STS15 85.10;
gs-infonce SICK-R 72.70; distilcse STS14 84.1; cot-roberta STS13 85.47; whitenedcse-bert-large SICK-R 75.34;
syncse STS16 82.87; angle-llama-13b Avg. 86.52; prompteol-icl-opt-66b STS15 80.10;
bert-base-avg-top2 STS12 35.20; denosent STS12 75.48
"""

# Pages whose average is not the mean of the cells.
DISAGREE = {"promptbert-sts/promptbert-bert-base": 78.523, "consert-sts/consert-bert-large": 76.444}


@pytest.mark.parametrize("entry", [entry.strip() for entry in SAMPLE.split(";")])
def test_sampled_values_are_those_of_the_papers(entry: str) -> None:
    name, column, value = entry.split()
    assert row(name).cell(column).value == float(value)


def test_entries_have_distinct_names_pages_a_commit_and_a_misspelt_key_is_refused() -> None:
    for kind in ("papers", "systems", "checkpoints", "figures"):
        entries = tomllib.loads((ENTRIES / f"{kind}.toml").read_text(encoding="utf-8"))[kind]
        assert len({entry["name"] for entry in entries}) == len(entries), kind
    assert len(tables()) == len(list(ENTRIES.glob("tables/*/*.toml")))
    assert set(papers()) == {path.name for path in (ENTRIES / "tables").iterdir()}
    figures = tomllib.loads((ENTRIES / "figures.toml").read_text(encoding="utf-8"))["figures"]
    assert len(exhibits()) == len(tables()) + len(figures)
    for name in (*papers(), *exhibits(), *systems(), *checkpoints(), *(name.partition("/")[2] for name in rows())):
        assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name), name
    assert len(PAGES) == 16
    assert [name for name in papers() if name in PAGES and not papers()[name].commit] == ["pcl"]
    for name in PAGES:
        path, _, repository = papers()[name].file.partition(" of ")
        assert (bool(path), repository.partition(" at ")[2]) == (True, papers()[name].commit[:8]), name
    with pytest.raises(ValidationError, match="captionline"):
        PublishedTable.model_validate(tables()["mocose-acl2022-6"].model_dump() | {"captionline": 3})


@pytest.mark.parametrize("entry", tables().values(), ids=lambda entry: entry.name)
def test_a_table_has_whole_rows_of_numbers_in_range_and_its_references_exist(entry: PublishedTable) -> None:
    columns = [column.name for column in entry.columns]
    names = [row_.name for row_ in entry.rows]
    assert len(set(columns)) == len(columns)
    assert len(set(names)) == len(names)
    assert entry.rows or entry.notes
    referred = {
        name for column in entry.columns for name in (*column.average_of, column.difference_of, column.minus)
    }
    assert referred - {""} <= set(columns)
    for row_ in entry.rows:
        assert len(row_.cells) == len(columns), row_.name
        assert (row_.line is None) == bool(entry.section), row_.name
        assert row_.baseline in {*names, ""}, row_.name
        assert row_.system in {*systems(), ""}, row_.name
        for text in row_.cells:
            assert re.fullmatch(rf"([+-]?\d+(\.\d+)?(±\d+(\.\d+)?)?|{NO_VALUE})?", text), (row_.name, text)
        for cell in entry.cells_of(row_, "a.txt"):
            assert abs(cell.value or 0) <= RANGES[cell.setting.unit], (row_.name, cell.column)


def test_only_these_cells_have_no_value_and_the_unreadable_ones_have_a_note() -> None:
    missing = {
        cell.row_name: row_.row.notes for row_ in rows().values() for cell in row_.cells if cell.value is None
    }
    unreadable = {
        "simcse-slides-dropout/lost-column",
        "simcse-slides-supervised-data/anli",
        "mocose-acl2022-6/batch-512",
    }
    assert {name for name, notes in missing.items() if notes} == unreadable
    assert len(missing) == 5
    assert [table.name for table in tables().values() if not table.rows] == ["esimcse-coling2022-11"]


def test_systems_and_checkpoints_refer_to_what_exists() -> None:
    measured = {row_.row.system for row_ in rows().values()}
    for name, system in systems().items():
        assert system.row in {*rows(), ""}, name
        assert not system.row or name in measured, name
        assert system.row or system.note, name
        assert system.edition_of in {*systems(), ""}, name
    for name, checkpoint in checkpoints().items():
        parse_pooling(checkpoint.pooling)
        assert checkpoint.system in systems() if checkpoint.system else checkpoint.prompt, name
        assert checkpoint.expected or checkpoint.listed_average or not checkpoint.system, name
        assert all(row(expected).row.system == checkpoint.system for expected in checkpoint.expected), name
        assert checkpoint.hub or "Not on the Hub" in checkpoint.note, name
        assert checkpoint.citation.startswith("@"), name
        for source in (checkpoint.hub_source, checkpoint.pooling_source, checkpoint.max_length_source):
            assert source == UNVERIFIED or len(source) > 8, name


@pytest.mark.parametrize("printed", ROWS, ids=lambda printed: printed.name)
def test_each_average_of_a_page_is_the_mean_of_its_cells(printed) -> None:
    cells = {cell.column: cell.value for cell in printed.cells}
    average = cells.pop("Avg.")
    if printed.table.name == "diffcse-transfer":
        assert not cells
        return
    assert len(cells) == 7
    mean = math.fsum(cells.values()) / 7
    if printed.name in DISAGREE:
        assert round(mean, 3) == DISAGREE[printed.name]
    else:
        assert abs(mean - average) <= 0.005 + 1e-9


@pytest.mark.parametrize("printed", ROWS, ids=lambda printed: printed.name)
def test_a_row_of_a_page_states_how_the_model_was_used(printed) -> None:
    usage = printed.usage
    assert usage.pooling or printed.table.name == "cards-sts"
    assert usage.precision or "precision" in usage.open
    assert usage.template == "" or "{sentence}" in usage.template
    has_mask = "{mask}" in usage.template or printed.name.endswith("cot-bert-roberta-base")
    assert has_mask or "mask" not in usage.pooling
    assert {cell.setting.split for cell in printed.cells} == {"test"}
    checkpoint = checkpoints().get(printed.row.system)
    if checkpoint and usage.pooling and not printed.row.variant:
        assert checkpoint.pooling == usage.pooling
    if checkpoint and checkpoint.hub and usage.checkpoint:
        assert checkpoint.hub == usage.checkpoint


def test_the_templates_of_checkpoints_are_those_of_their_rows() -> None:
    """The templates were read from the authors' code, not made from the rows."""
    with_template = [entry for entry in checkpoints().values() if entry.template]
    assert len(with_template) == 14
    for entry in with_template:
        template = read_template(entry.template)
        assert template.reading == entry.pooling
        for expected in entry.expected:
            usage = row(expected).usage
            assert (template.texts, template.rules) == ((usage.template,), usage.rules)
