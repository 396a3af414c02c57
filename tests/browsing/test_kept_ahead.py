"""Many records at once: processes fill the shelf, and the board is the same."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import stsbench as sb
from stsbench.browsing import kept
from stsbench.browsing.kept import Shelf, keep, key_of
from stsbench.records.store import load_run
from stsbench.statistics.dependence import Dependence
from tests.browsing.conftest import Runs


def test_processes_of_their_own_keep_what_one_would_and_leave_what_cannot_be_trusted(
    board_runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = board_runs(alpha=0.0, beta=0.4, gamma=0.7, delta=2.0)
    alone = sb.board(root)
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(kept, "_WORTH_A_PROCESS", 1)
    monkeypatch.setattr(kept, "cores", lambda: 2)
    (root / "gamma" / "items.parquet").write_bytes(b"")
    records = [load_run(root / name) for name in ("alpha", "beta", "gamma", "delta")]
    told: list[tuple[str, int, int]] = []
    by_key = {key_of(record, "dyadic", 0.95): record for record in records}
    with Shelf() as shelf:
        paths = [root / name / "run.json" for name in ("alpha", "beta", "gamma", "delta")]
        with kept.filled_ahead(paths, shelf, None, 0.95, lambda *said: told.append(said)) as assumed:
            assert not told
        assert told
        assert assumed == "dyadic"
        found = {key: shelf.get(key) for key in by_key}
        assert [kept is not None for kept in found.values()] == [True, True, False, True]
        for key, before in found.items():
            if before is not None:
                made = keep(by_key[key], key, shelf, "dyadic", 0.95, anew=True)
                assert [list(vars(task).values()) for task in made.tasks] == before[0][0]
                now = shelf.get(key)
                assert now is not None
                np.testing.assert_array_equal(before[1], now[1])
    together = sb.board(root)
    assert any("gamma" in note for note in together.notes)
    rest = alone.frame[~alone.frame["run"].str.contains("gamma")].reset_index(drop=True)
    pd.testing.assert_frame_equal(
        together.frame.drop(columns=["groups"]), rest.drop(columns=["groups"]), check_exact=True
    )


def test_where_some_records_said_another_interval_than_all_do_they_are_kept_by_that_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    intervals: list[Dependence] = ["components", "independent", "independent"]
    for number, interval in enumerate(intervals):
        name = f"count {number}"

        def encode(sentences: list[str], number: int = number) -> list[list[float]]:
            return [[len(text), text.count("e"), 1 + number] for text in sentences]

        encode.__module__, encode.__qualname__ = "__main__", name
        sb.evaluate(encode, "sample", intervals=sb.Intervals(interval), use_cache=False, out=tmp_path / name)
    monkeypatch.setattr(kept, "_WORTH_A_PROCESS", 1)  # of the records, the first alone is asked
    monkeypatch.setattr(kept, "cores", lambda: 2)
    here: list[sb.RunRecord] = []

    def item_table(self: sb.RunRecord) -> None:
        here.append(self)

    monkeypatch.setattr(sb.RunRecord, "item_table", item_table)
    board = sb.board(tmp_path)
    assert board.interval == "dyadic"
    assert board.frame["low"].notna().all()
    assert here == [], "processes of their own kept all of them"
