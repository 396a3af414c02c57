"""Rows of averaged word vectors in a reproduction: of a file that the person has, else why they are empty."""

from pathlib import Path
from typing import Any

import pytest
from small_experiments import in_this_process

import stsbench as sb
from stsbench.data.benchmarks import sample_sentences
from stsbench.reports.report import write_reproduction
from stsbench.reproduction.layout import layout
from stsbench.reproduction.reproduced import Reproduction
from stsbench.reproduction.table_plan import plan_of, plans
from stsbench.reproduction.tables import ReproducedCell

TABLE, ROW = "simcse-slides-sts", "glove-avg"
WITH_ROW = [name for plan in plans().values() if ROW in plan.rows for name in plan.makes]


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """Return a folder with a small file of word vectors in it."""
    folder = tmp_path / "mine"
    folder.mkdir()
    words = dict.fromkeys(word for text in sample_sentences() for word in text.lower().split())
    lines = (f"{word} {len(word)} {place % 7} {place % 5}\n" for place, word in enumerate(words))
    (folder / "glove.tiny.txt").write_text("".join(lines), encoding="utf-8")
    return folder


def cells_of(found: Reproduction | object) -> dict[str, ReproducedCell]:
    assert isinstance(found, Reproduction)
    return {cell.column: cell for cell in found.cells if cell.row == ROW}


@pytest.mark.parametrize("scale", ["demo", "laptop", "paper"])
@pytest.mark.parametrize("name", WITH_ROW)
def test_word_vectors_are_measured_where_a_file_is_here_and_else_the_row_says_what_to_do(
    name: str, scale: Any, vectors: Path
) -> None:
    plan = plan_of(name)
    lacking = layout(plan, name, scale).missing[ROW]
    assert "glove*.txt" in lacking
    assert "--data-dir" in lacking
    what = layout(plan, name, scale, [vectors])
    assert ROW not in what.missing
    assert [made.changes for made in what.made if made.row == ROW] == [
        {"checkpoint": str(vectors / "glove.tiny.txt")}
    ]


def test_the_page_says_which_file_stands_in_and_the_row_is_what_run_measures(
    small: dict[str, Any], vectors: Path, tmp_path: Path
) -> None:
    out = tmp_path / "made"
    with in_this_process():
        found = sb.reproduce(TABLE, scale="demo", out=out, settings=small, seeds=[1], data_dirs=[vectors])
    assert isinstance(found, Reproduction)
    said = "in glove.tiny.txt; the paper does not name its file."
    assert said in str(found)
    assert said in write_reproduction(found).read_text(encoding="utf-8")
    run = sb.evaluate(str(vectors / "glove.tiny.txt"), tasks="sample")
    assert cells_of(found)["Avg."].here == pytest.approx(100 * run.scores[0].value, abs=1e-9)
