"""Every table and figure that can be made, to its page, by random encoders: no field, column or task fails it."""

import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_experiments import in_this_process
from wiring import wiring, word_vectors

import stsbench as sb
from stsbench.reports.report import write_reproduction
from stsbench.reproduction.layout import layout, on_sample
from stsbench.reproduction.reproduced import Reproduction
from stsbench.reproduction.table_plan import plan_of, plans
from stsbench.sweeps.result import read_sweep

ROOT = Path(__file__).parents[2]
LABELLED = ROOT.parent / "shared" / "data" / "cs224n"
CAN_BE_MADE = [name for plan in plans().values() if not plan.cannot and not plan.counts for name in plan.makes]
PARTS = 10


def part_of_this_commit() -> int:
    """Return which tenth the gate makes: each commit another, whoever runs it."""
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return int(told.stdout.strip() or "0", 16) % PARTS


@pytest.fixture(autouse=True)
def _scale() -> Iterator[None]:
    with wiring():
        yield


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache in which stand-ins are made once."""
    return tmp_path_factory.mktemp("cache")


def made(name: str, folder: Path, cache: Path, patch: pytest.MonkeyPatch) -> Reproduction:
    """Return a table that was made, with its page."""
    patch.setenv("STSBENCH_CACHE", str(cache))
    named = {"labelled.folder": str(LABELLED)} if plan_of(name).labelled and LABELLED.is_dir() else None
    with in_this_process():
        found = sb.reproduce(
            name, scale="wiring", out=folder, settings=named, data_dirs=[word_vectors(folder.with_name("words"))]
        )
    assert isinstance(found, Reproduction)
    return found


def demand_whole(found: Reproduction) -> None:
    """Make sure that every row that the paper's plan makes has a number, and the page stands."""
    name = found.exhibit.name
    assert found.cost.failed == 0, [cell.why for cell in found.cells if cell.why.startswith("failed")]
    what = layout(found.plan, name, "paper")
    filled, rows = {cell.row for cell in found.cells if cell.runs}, {made.row for made in what.made}
    # The sample is one task, and fills one row of a table whose rows are tasks.
    if (
        not on_sample(read_sweep(found.folder).experiment)
        or "task" not in next(iter(found.plan.rows.values())).where
    ):
        assert filled >= {row for row in found.plan.rows_of(name) if what.shares.get(row, row) in rows}
    assert any(cell.runs for cell in found.cells if cell.column == found.headline)
    page = write_reproduction(found)
    text = page.with_name("README.md").read_text(encoding="utf-8")
    assert {answer.verdict for answer in found.answers} <= {"not answered"}
    if found.answers:
        assert "random weights say nothing of a method" in text
    lacking, is_sample = set(what.missing), on_sample(read_sweep(found.folder).experiment)
    for answer in found.answers:
        # A claim about one task has no number on the sample, which is another.
        asks_a_task = is_sample and answer.why.endswith("it was not made")
        assert answer.differences or asks_a_task or any(row in lacking for row in answer.claim.rows), answer
    rows = {cell.row for cell in found.cells if cell.column == found.headline and cell.runs}
    assert len(list(page.parent.glob("**/*.svg"))) == (len(rows) > 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in CAN_BE_MADE if zlib.crc32(name.encode()) % PARTS == part_of_this_commit()]
)
def test_a_tenth_of_all_tables_is_made_to_its_page(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_ins: Path
) -> None:
    demand_whole(made(name, tmp_path / "made", stand_ins, monkeypatch))


@pytest.mark.long
@pytest.mark.parametrize("name", CAN_BE_MADE)
def test_every_table_is_made_to_its_page_on_a_few_rows_of_the_real_tasks(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_ins: Path, senteval: Path
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(senteval))
    demand_whole(made(name, tmp_path / "made", stand_ins, monkeypatch))


def test_the_scores_of_task_heads_fill_the_columns_of_the_multi_task_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_ins: Path
) -> None:
    found = made("gaussian-dropout-simcse-cs224n-results", tmp_path / "made", stand_ins, monkeypatch)
    filled = {(cell.row, cell.column) for cell in found.cells if cell.runs}
    columns = ("sentiment", "paraphrase", "sts")
    assert filled == {(row, column) for row in ("baseline", "simcse", "gaussian") for column in columns}
    assert all(0 <= abs(cell.here) <= 100 for cell in found.cells if cell.runs)
