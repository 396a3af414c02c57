"""`stsbench published`, as a person types it."""

import json

import pytest
from typer.testing import CliRunner

from stsbench.base.errors import UserError
from stsbench.cli.app import app
from stsbench.published.catalogue import row, rows
from stsbench.published.lookup import list_published, other_prints, show_row, show_table


def output(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["published", *arguments], catch_exceptions=False, env={"COLUMNS": "200"})
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize("what", ["tables", "rows", "systems", "checkpoints"])
def test_list_names_what_there_is(what: str) -> None:
    first = {"tables": "simcse-slides-sts", "rows": "mocose-acl2022-1/glove-avg"}.get(what, "esimcse-bert-base")
    assert first in output("list", what)
    assert json.loads(output("list", what, "--json"))


def test_list_refuses_what_it_does_not_know() -> None:
    with pytest.raises(UserError, match="choose one of tables"):
        output("list", "papers")


def test_show_prints_a_table_as_its_paper_does() -> None:
    lines = output("show", "mocose-acl2022-1", "--quiet").splitlines()
    assert lines[0].split() == ["row", "STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg."]
    assert ["mocose-bert-base", "71.48", "81.40", "74.47", "83.45", "78.99", "78.68", "72.44", "77.27"] in [
        line.split() for line in lines
    ]


def test_show_keeps_the_digits_of_the_print() -> None:
    assert "0.7298" in output("show", "esimcse-arxiv-v1-1")
    assert "79.1 " in output("show", "simcse-slides-supervised-data").replace("\n", " ")


def test_show_in_markdown_latex_and_csv() -> None:
    assert "| esimcse-bert-base | 73.40 |" in output("show", "esimcse-coling2022-3", "--markdown")
    assert r"esimcse-bert-base & 73.40 &" in output("show", "esimcse-coling2022-3", "--latex")
    header, first, *_ = output("show", "esimcse-coling2022-3", "--csv").splitlines()
    assert header.startswith("row,column,system,value,task")
    assert first.startswith("esimcse-coling2022-3/is-bert-base,STS12,is-bert-base,56.77,STS12")


def test_json_tells_where_each_cell_was_read_and_how_it_was_restored() -> None:
    cells = json.loads(output("show", "mocose-acl2022-6", "--json"))
    (cell,) = [cell for cell in cells if cell["row"].endswith("/batch-64")]
    assert (cell["value"], cell["raw"], cell["line"], cell["status"]) == (77.25, "7125", 617, "restored")
    assert "batch 128 prints 76.78" in cell["evidence"]
    (lost,) = [cell for cell in cells if cell["status"] == "lost"]
    assert (lost["value"], lost["raw"]) == (None, "7062")


def test_a_table_that_the_text_lacks_says_so() -> None:
    result = CliRunner().invoke(app, ["published", "show", "esimcse-coling2022-11"])
    assert "no row of it can be read" in result.stderr


def test_row_prints_a_system_s_row_and_other_prints_of_it() -> None:
    shown = output("row", "unsup-simcse-bert-base")
    assert "76.25" in shown
    assert "74.54 simcse-slides-sts/unsup-simcse-bert-base-preprint" in shown
    assert json.loads(output("row", "mocose-acl2022-1/glove-avg", "--json"))[0]["value"] == 55.14


def test_an_unknown_row_is_the_person_s_mistake() -> None:
    with pytest.raises(UserError, match="did you mean"):
        output("row", "esimcse-bert-bse")


def test_a_score_that_was_printed_as_a_fraction_is_shown_like_the_others_and_says_so() -> None:
    result = CliRunner().invoke(app, ["published", "row", "minilm"], env={"COLUMNS": "200"})
    assert ["STS12", "72.37", "test", "spearman", "printed", "0.72369"] in [
        line.split() for line in result.stdout.splitlines()
    ]
    assert "Its source prints scores from 0 to 1 (`raw`): here they are x 100" in result.stderr
    assert "x 100" not in CliRunner().invoke(app, ["published", "row", "esimcse-bert-base"]).stderr
    (first, *_) = json.loads(output("row", "minilm", "--json"))
    assert (first["value"], first["unit"], first["score"]) == (0.72369, "1", 72.369)


@pytest.mark.parametrize("arguments", [["list"], ["show", "mocose-acl2022-1"], ["row", "mocose"]])
@pytest.mark.parametrize("style", ["json", "csv", "markdown", "latex"])
def test_every_command_has_one_format_and_its_old_flags(arguments: list[str], style: str) -> None:
    assert output(*arguments, "--format", style) == output(*arguments, f"--{style}")


def test_results_show_themselves() -> None:
    for result in (list_published("systems"), show_table("mocose-acl2022-1"), show_row("mocose")):
        assert isinstance(result.to_dict(), list)
        assert len(result.to_dict()) == len(result.frame)
        assert "<table>" in result._repr_html_()
        assert str(result) == str(result.table())


def test_other_prints_of_a_cell_are_linked() -> None:
    cell = row("esimcse-coling2022-3/bert-base-flow").cell("Avg.")
    found = {(other.table, other.value) for other in other_prints(cell, rows().values())}
    assert found == {("simcse-slides-sts", 66.55), ("mocose-acl2022-1", 66.55)}
