"""`stsbench board`, as a person types it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

Stsbench = Callable[..., Any]


def test_board_writes_one_page_and_names_what_it_leaves_out(
    stsbench: Stsbench, on_sample: Callable[..., None], tmp_path: Path
) -> None:
    on_sample("runs/a", "words")
    on_sample("runs/b", "letters")
    Path("runs/broken").mkdir()
    Path("runs/broken/run.json").write_text("{")
    done = stsbench("board", "runs", "--out", tmp_path / "all.html")
    assert done.code == 0
    note, written = done.err.splitlines()
    assert note.startswith("note: left out: runs/broken/run.json is not valid JSON")
    assert written == f"written to {tmp_path / 'all.html'}"
    assert [path.name for path in tmp_path.glob("*.html")] == ["all.html"]


def test_a_folder_without_runs_is_refused(stsbench: Stsbench, tmp_path: Path) -> None:
    Path("empty").mkdir()
    done = stsbench("board", "empty")
    assert done.code == 2
    assert "there is no run.json below empty" in done.err
    assert not list(tmp_path.glob("*.html"))
