"""Every possible table and figure up to its page, with random encoders."""

import subprocess
from collections.abc import Hashable
from pathlib import Path

import pytest
from labelled_sample import write_labelled
from small_experiments import in_this_process
from wiring import wiring

import stsbench as sb
from stsbench.reports.report import write_reproduction
from stsbench.reproduction.layout import layout, tasks_of
from stsbench.reproduction.reproduced import Reproduction
from stsbench.reproduction.table_plan import plan_of, plans

ROOT = Path(__file__).parents[2]
POSSIBLE = [name for plan in plans().values() if not plan.cannot for name in plan.makes]


def shape_of(name: str) -> Hashable:
    """Returns which code a table's plan runs."""
    plan, planned = plan_of(name), layout(plan_of(name), name, "paper")
    of_transfer = "transfer" in (tasks_of(plan, name, "paper") or "")
    cells, kinds = any(made.column for made in planned.made), frozenset(made.is_trained for made in planned.made)
    return plan.analysis, of_transfer, plan.last, cells, bool(planned.shares), plan.labelled, kinds


def one_of_each_shape() -> list[str]:
    """Returns a table for each shape of plan, which varies by commit; labelled tables have their own test."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    shapes: dict[Hashable, list[str]] = {}
    for name in POSSIBLE:
        shapes.setdefault(shape_of(name), []).append(name)
    chosen = [names[int(head.stdout.strip() or "0", 16) % len(names)] for names in shapes.values()]
    return [name for name in chosen if not plan_of(name).labelled]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a cache that keeps the random encoders."""
    return tmp_path_factory.mktemp("cache")


def reproduced(name: str, folder: Path, cache: Path, *data_dirs: Path) -> Reproduction:
    """Reproduces a table at the scale `wiring`, on the sample or on the paper's tasks in the data folders."""
    settings = None
    if plan_of(name).labelled:
        write_labelled(cache / "labelled")
        settings = {"labelled.folder": str(cache / "labelled"), "labelled.test_pairs": "kept"}
    with pytest.MonkeyPatch.context() as patch, in_this_process(), wiring(on_sample=not data_dirs):
        patch.setenv("STSBENCH_CACHE", str(cache))
        result = sb.reproduce(name, scale="wiring", out=folder, settings=settings, data_dirs=data_dirs)
        assert isinstance(result, Reproduction)
        require_complete(result, is_sample=not data_dirs)
    return result


def require_complete(result: Reproduction, *, is_sample: bool) -> None:
    """Checks that every row of the paper's plan has a number, and that the page is written."""
    name = result.exhibit.name
    assert result.cost.failed == 0, [cell.why for cell in result.cells if cell.why.startswith("failed")]
    what = layout(result.plan, name, "paper")
    filled, made = {cell.row for cell in result.cells if cell.runs}, {made.row for made in what.made}
    # The sample is one task, and fills one row of a table whose rows are tasks.
    if not is_sample or "task" not in next(iter(result.plan.rows.values())).where:
        assert filled >= {row for row in result.plan.rows_of(name) if what.shares.get(row, row) in made}
    of_headline = {cell.row for cell in result.cells if cell.column == result.headline and cell.runs}
    assert of_headline
    page = write_reproduction(result)
    text = page.with_name("README.md").read_text(encoding="utf-8")
    assert {answer.verdict for answer in result.answers} <= {"not answered"}
    assert not result.answers or "random weights say nothing of a method" in text
    for answer in result.answers:
        # A claim about one task has no number on the sample, which is another.
        asks_a_task = is_sample and answer.why.endswith("it was not made")
        assert answer.differences or asks_a_task or set(answer.claim.rows) & set(what.missing), answer
    assert len(list(page.parent.glob("**/*.svg"))) == (len(of_headline) > 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_each_shape())
def test_a_table_of_each_shape_of_plan_on_the_sample(name: str, tmp_path: Path, cache: Path) -> None:
    reproduced(name, tmp_path / "made", cache)


@pytest.mark.long
@pytest.mark.parametrize("benchmark_folder", [60], indirect=True)
@pytest.mark.parametrize(
    "name", [name for name in POSSIBLE if "transfer" not in (tasks_of(plan_of(name), name, "paper") or "")]
)
def test_every_table_of_sts_tasks_on_their_names(
    name: str, tmp_path: Path, cache: Path, benchmark_folder: Path
) -> None:
    reproduced(name, tmp_path / "made", cache, benchmark_folder)


def test_scores_of_task_heads_fill_the_multi_task_table(tmp_path: Path, cache: Path) -> None:
    result = reproduced("gaussian-dropout-simcse-cs224n-results", tmp_path / "made", cache)
    filled = {(cell.row, cell.column) for cell in result.cells if cell.runs}
    columns = ("sentiment", "paraphrase", "sts")
    assert filled == {(row, column) for row in ("baseline", "simcse", "gaussian") for column in columns}
    assert all(0 <= abs(cell.here) <= 100 for cell in result.cells if cell.runs)
