"""The reproductions kept in `reports/examples/reproductions`: whole, small, and what their records say."""

import re
from pathlib import Path

import pandas as pd
import pytest

from stsbench.reproduction.reproduce import read_reproduction
from stsbench.reproduction.table_plan import plan_of
from stsbench.sweeps.result import read_sweep

ROOT = Path(__file__).parents[2]
KEPT = sorted((ROOT / "reports" / "examples" / "reproductions").glob("*/experiment.yaml"))
PAGE = ROOT / "docs" / "reproduced-here.md"

_PLACE = re.compile(r"""[\s"'=:(]/(?:[\w.-]+/)+""")


def test_there_are_some() -> None:
    assert KEPT


@pytest.mark.parametrize("folder", [path.parent for path in KEPT], ids=lambda folder: folder.name)
def test_a_kept_reproduction_says_what_its_records_say(folder: Path) -> None:
    experiment = read_sweep(folder)
    jobs = pd.read_csv(folder / "jobs.csv")
    measured = [column for column in jobs if column in experiment.measures]
    pd.testing.assert_frame_equal(
        jobs[["job", "seed", *measured]], experiment.frame[["job", "seed", *measured]], check_dtype=False
    )
    result = read_reproduction(plan_of(folder.name), folder.name, "laptop", experiment)
    assert f"{result.cost.sentence}\n" == (folder / "status.md").read_text(encoding="utf-8")
    cells = pd.read_csv(folder / "report" / "tables" / f"{folder.name}-table.csv")
    here = {cell.column: {} for cell in result.cells if cell.runs}
    for cell in result.cells:
        if cell.runs:
            here[cell.column][cell.row] = cell.here
    assert here
    shown = cells if "source" not in cells else cells[cells["source"] == "here"]
    for column, rows in here.items():
        values = shown["here" if "source" not in cells else column].dropna().tolist()
        assert values == pytest.approx(list(rows.values()), abs=0.005)
    # The pairs are not kept, so only what does not rest on them can be answered again.
    verdicts = pd.read_csv(folder / "report" / "tables" / f"{folder.name}-claims.csv")["answer"].tolist()
    assert [verdict == "not answered" for verdict in verdicts] == [
        answer.verdict == "not answered" for answer in result.answers
    ]


@pytest.mark.parametrize("folder", [path.parent for path in KEPT], ids=lambda folder: folder.name)
def test_a_kept_reproduction_is_small_and_holds_no_sentence_and_no_place_of_a_machine(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1_000_000
    assert {path.suffix for path in files} <= {
        ".json",
        ".jsonl",
        ".yaml",
        ".csv",
        ".tex",
        ".md",
        ".html",
        ".svg",
        ".png",
    }
    for path in files:
        if path.suffix in {".json", ".jsonl", ".yaml", ".csv"}:
            assert not _PLACE.search(path.read_text(encoding="utf-8")), path
    page = (folder / "report" / "README.md").read_text(encoding="utf-8")
    assert page.index("## In short") < page.index("## Table")
