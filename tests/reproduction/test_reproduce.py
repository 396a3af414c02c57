"""`reproduce` from a table's name to its page, with a tiny base in this process."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.cli.app import app
from stsbench.published.catalogue import exhibits
from stsbench.reproduction.reproduce import read_reproduction
from stsbench.reproduction.reproduced import Cost, ReproducedCell, Reproduction
from stsbench.reproduction.table_plan import plan_of, plans
from stsbench.sweeps.folder import ExperimentFolder
from stsbench.sweeps.result import read_sweep

TABLE = "esimcse-coling2022-9"


def again(result: Reproduction) -> Reproduction:
    """Read a reproduction from its folder alone."""
    return read_reproduction(result.plan, result.exhibit.name, result.scale, read_sweep(result.folder))


def test_from_the_command_to_the_page_and_a_second_time_does_nothing(
    small: dict[str, Any], serial: list[str], tmp_path: Path
) -> None:
    changes = [option for key, value in small.items() for option in ("--set", f"{key}={json.dumps(value)}")]
    command = ["reproduce", TABLE, "--scale", "demo", "--out", str(tmp_path / "made"), *changes]
    result = CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    cells = {cell["row"]: cell for cell in found["cells"]}
    assert len(cells) == 8
    made = [row for row, cell in cells.items() if cell["runs"]]
    assert made == ["dup_rate-0.08", "dup_rate-0.2", "dup_rate-0.32"]
    cell = cells["dup_rate-0.32"]
    assert cell["printed"] == 84.85
    assert cell["difference"] == pytest.approx(cell["here"] - 84.85)
    assert cell["low"] < cell["here"] < cell["high"]
    assert "only a few rows" in cells["dup_rate-0.12"]["why"]
    (claim,) = found["claims"]
    # Three steps teach a model nothing, whatever their numbers are.
    assert claim["verdict"] == "not answered"
    assert claim["in_print"] is True
    assert claim["line"] == 711
    assert len(claim["differences"]) == 2
    assert found["cost"]["steps"] == 12
    assert found["cost"]["jobs"] == found["cost"]["planned"] == 6
    assert len(serial) == 6

    page = (tmp_path / "made" / "report" / "README.md").read_text(encoding="utf-8")
    first = page.index("## Summary")
    assert first < page.index("## Table 9 of COLING 2022")
    short = [line for line in page[first : page.index("## Table 9")].splitlines() if line.startswith("- ")]
    linked = [re.findall(r"\(#([\w.-]+)\)", line) for line in short]
    assert [len(links) for links in linked] == [1] * len(short)
    linked = [link for links in linked for link in links]
    assert linked == [f"{TABLE}-{of}" for of in ("table", "table", "claims")]
    # Of ten sub-words a share of 0.08 and of 0.2 repeat as many, and 0.32 more.
    assert short[1].startswith("- 0.08 and 0.2 have equal weights with every seed")
    assert short[2].startswith("- No claim is answered at the scale demo: three steps teach")
    html = (tmp_path / "made" / "report" / "index.html").read_text(encoding="utf-8")
    for anchor in linked:
        assert f'id="{anchor}"' in html
        assert f'id="{anchor}"' in page
    for told in ("84.85", "0.32 is the best rate", "minilm-esimcse for esimcse-bert-base", "12 steps"):
        assert told in page

    ran = len(serial)
    second = CliRunner().invoke(app, command, catch_exceptions=False)
    assert second.exit_code == 0
    assert len(serial) == ran
    assert "of 1 claim 1 not answered" in second.output
    shown = [line.split() for line in second.stdout.splitlines()]
    # By the label in print, not by our name of the row.
    assert ["0.32", "84.85", f"{cell['here']:.2f}"] in [words[:3] for words in shown]

    for job in (tmp_path / "made" / "jobs").glob("*0.32*"):
        job.rename(tmp_path / job.name)
    half = read_reproduction(plan_of(TABLE), TABLE, "demo", read_sweep(tmp_path / "made"))
    assert half.pointers[1].text.startswith("Unfinished: 4 of 6 jobs are done")
    assert {cell.why for cell in half.cells if cell.row == "dup_rate-0.32"} == {"not done yet"}
    (answer,) = half.answers
    assert answer.verdict == "not answered"
    for unit in serial:
        failure = ExperimentFolder(tmp_path / "made").failure(unit)
        failure.parent.mkdir(exist_ok=True)
        failure.write_text("the disk is full", encoding="utf-8")
    assert CliRunner().invoke(app, command).exit_code == 1
    assert len(serial) == ran


def made_again(table: str, cells: tuple[ReproducedCell, ...]) -> Reproduction:
    """Return a reproduction of some cells."""
    cost = Cost(jobs=1, planned=1, failed=0, steps=1, hours=0.1, threads=1)
    return Reproduction(exhibits()[table], plan_of(table), "laptop", cells, (), cost, Path(), {})


def test_a_figure_at_another_scale_leaves_out_levels_and_the_pairs_that_all_rows_share() -> None:
    rows = {"dropout-0.0": 64.9, "dropout-0.1": 79.1, "fixed-0.1": 45.2}
    cells = [
        ReproducedCell(row, "STS-B", printed, 80.0 + place, 0.1, 70.0, 90.0, "seeds and pairs", 3)
        for place, (row, printed) in enumerate(rows.items())
    ]
    result = made_again("simcse-slides-dropout", tuple(cells))
    (axes,) = result.plot().axes
    # A row without a value on the axis is drawn with the others.
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0.0", "0.1", "Fixed 0.1"]
    spans = [line.get_xdata() for line in axes.get_lines() if len(line.get_xdata()) == 2]
    known = [(low, high) for low, high in spans if high > low]
    half = 4.302653 * 0.1 / 3**0.5
    assert known == [pytest.approx((middle - half, middle + half)) for middle in (-1, 0, 1)]
    assert result.section().figures[0].caption.endswith("with 95 % over other seeds")
    curve = made_again("simcse-slides-dropout", (*cells[:2], replace(cells[1], row="dropout-0.2"))).plot().axes[0]
    assert curve.get_lines()[0].get_xdata().tolist() == [0.0, 0.1, 0.2]


def test_every_row_has_a_label_of_its_own_in_plain_words() -> None:
    for plan in plans().values():
        for name in () if plan.cannot else plan.makes:
            labels = [*plan.names_of(name).rows.values()]
            assert len(set(labels)) == len(labels), name
            for label in [*labels, *plan.names_of(name).columns.values()]:
                assert not set(label) & set("${}^\\♣♡♢♠♯△*"), (name, label)
    assert plan_of("esimcse-arxiv-v1-4").names_of("esimcse-arxiv-v1-4").rows["unsup-simcse-bert-base"] == (
        "unsup-SimCSE-BERT base"
    )
    assert plan_of("mocose-acl2022-9").names_of("mocose-acl2022-9").rows["fgsm-5e-9"] == "5e-9 (restored)"


@pytest.mark.slow
def test_a_table_whose_rows_are_tasks_has_one_row_of_the_sample_and_both_of_its_columns(
    small: dict[str, Any], serial: list[str], tmp_path: Path
) -> None:
    found = sb.reproduce("esimcse-arxiv-v1-1", out=tmp_path / "made", seeds=(1,), settings=small)
    assert isinstance(found, Reproduction)
    filled = {(cell.row, cell.column) for cell in found.cells if cell.runs}
    assert filled == {("sts12", "le3"), ("sts12", "gt3")}
    assert {cell.why for cell in found.cells if cell.row == "sts13"} == {
        "not measured: the paper's tasks are not here, and the sample in their place has no such number"
    }
    shown = str(found)
    assert "lengths up to 3 words apart" in shown


def test_nothing_made_is_nothing_to_draw() -> None:
    result = made_again(TABLE, (ReproducedCell("dup_rate-0.08", "STS-B", 83.5, why="not done yet"),))
    with pytest.raises(
        UserError, match="no row of esimcse-coling2022-9 was made on STS-B: there is nothing to draw"
    ):
        result.plot()
    assert result.section().figures == ()


@pytest.mark.slow
def test_the_length_bias_of_what_was_trained_fills_the_groups_of_table_7(
    small: dict[str, Any], serial: list[str], tmp_path: Path
) -> None:
    found = sb.reproduce("esimcse-coling2022-7", out=tmp_path / "made", seeds=(1, 2), settings=small)
    assert isinstance(found, Reproduction)
    assert len(serial) == 4
    held = {(cell.row, cell.column): cell for cell in found.cells}
    # The sample has one task, so the average alone is filled.
    assert {column for (_, column), cell in held.items() if cell.runs} == {"Avg."}
    (missing,) = [table for table in found.table() if table.caption.startswith("Missing")]
    assert missing.frame["what"].tolist() == ["every row on STS12, STS13, STS14, STS15, STS16, STS-B and SICK-R"]
    assert "the sample in their place" in missing.frame["why"].iloc[0]
    assert held["simcse-gt3", "Avg."].printed == 16.34
    assert held["simcse-gt3", "Avg."].here != held["simcse-le3", "Avg."].here
    verdicts = {answer.claim.name: answer for answer in found.answers}
    assert set(verdicts) == {"like-length-looks-alike", "gap-shrinks"}
    assert "seed by seed" in verdicts["like-length-looks-alike"].evidence
    assert verdicts["gap-shrinks"].in_print is True
    assert again(found).to_dict() == found.to_dict()
    assert found.section().tables
    assert found.plot().axes


@pytest.mark.long
def test_cells_that_are_trainings_of_their_own_fill_row_and_column(
    small: dict[str, Any], serial: list[str], tmp_path: Path
) -> None:
    settings = small | {"optimiser.batch": 16}
    found = sb.reproduce("mocose-acl2022-7", out=tmp_path / "made", seeds=(3,), settings=settings)
    assert isinstance(found, Reproduction)
    assert len(serial) == 5
    filled = {(cell.row, cell.column) for cell in found.cells if cell.runs}
    assert filled == {("initial-quarter", f"queue-{size}") for size in (128, 256, 512, 1024, 4096)}
    assert "Queue size and its initial share" in str(found)
    assert any("One seed does not show" in note for note in found.notes)
    by_claim = {answer.claim.name: answer for answer in found.answers}
    # A step or two collapse nothing; and what one seed shows is of its checkpoints alone.
    too_long = by_claim["too-long-hurts"]
    assert too_long.verdict == "not answered"
    assert too_long.decisive is not None
    assert "not of other seeds" in too_long.decisive.over
    assert by_claim["best-start"].verdict == "not answered"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["esimcse-coling2022-99"], "did you mean"),
        (["esimcse-coling2022-9", "--scale", "desktop"], "there is no scale 'desktop'"),
        (["esimcse-coling2022-2"], "cannot be made at the scale demo: its sentences are the papers' own"),
        (["mocose-acl2022-figure-12"], "only BERT-base has a small replacement"),
        ([], "No table is named"),
        (["gaussian-dropout-simcse-cs224n-results"], "name their folder with --set labelled.folder=FOLDER"),
        (["esimcse-coling2022-9", "--seeds", "one"], "'one' is not a whole number"),
        (["esimcse-coling2022-9", "--seeds", "1,2,1"], "seed 1 are the same job"),
        (["esimcse-coling2022-9", "--seeds", "4294967296"], "--seeds 4294967296: use numbers up to"),
        (["esimcse-coling2022-9", "--set", "optimiser.batch"], "write key=value"),
        (["esimcse-coling2022-9", "--set", "optimiser.bach=8"], "did you mean 'batch'"),
        (["esimcse-coling2022-9", "--on", "moon"], "--on moon"),
        (["esimcse-coling2022-9", "--scale", "laptop", "--corpus", "nowhere.txt"], "there is no corpus"),
        (["esimcse-coling2022-9", "--scale", "laptop"], "stsbench data get wiki1m"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(arguments: list[str], says: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=re.escape(says)):
        CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path / "made")], catch_exceptions=False)
    assert not (tmp_path / "made").exists()
