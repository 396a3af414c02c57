"""`stsbench explore`, as a person types it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

Stsbench = Callable[..., Any]


def test_explore_writes_one_page(stsbench: Stsbench, on_sample: Callable[..., None], tmp_path: Path) -> None:
    on_sample("a", "words", "--no-intervals")
    on_sample("b", "letters", "--no-intervals")
    page = tmp_path / "pairs.html"
    done = stsbench("explore", "a", "b", "--out", page)
    assert done.code == 0
    assert "do not publish it" in done.err
    assert done.err.endswith(f"written to {page}\n")
    assert "Gain B over A" in page.read_text()
    assert [path.name for path in tmp_path.glob("*.html")] == ["pairs.html"]


def test_explore_of_three_runs_is_refused(stsbench: Stsbench, on_sample: Callable[..., None]) -> None:
    on_sample("a", "words", "--no-intervals")
    done = stsbench("explore", "a", "a", "a")
    assert done.code == 2
    assert "explore one, or two side by side" in done.err
