"""Many records at once: processes fill the shelf, and the board is the same."""

import numpy as np
import pandas as pd
import pytest

import stsbench as sb
from stsbench.browsing import kept
from stsbench.browsing.kept import Shelf, keep, key_of
from stsbench.records.store import load_run
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
        with kept.filled_ahead(paths, shelf, "dyadic", 0.95, lambda *said: told.append(said)):
            assert not told
        assert told
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
