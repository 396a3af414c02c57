"""Where no screen shows bars, long work says how far it is in lines, and short work nothing."""

import pytest

from stsbench.cli import output
from stsbench.cli.output import Lines, progress_bars


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list whose one number is the time."""
    now = [0.0]
    monkeypatch.setattr(output, "monotonic", lambda: now[0])
    return now


def test_long_work_tells_a_log_after_five_seconds_and_then_each_minute(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines()
    for second in range(150):
        clock[0] = second
        lines("encoding 500 sentences", 10 * second, 3000)
    assert capsys.readouterr().err.splitlines() == [
        "encoding 500 sentences: 1 %, about 5 min to go",
        "encoding 500 sentences: 21 %, about 4 min to go",
        "encoding 500 sentences: 41 %, about 3 min to go",
    ]


def test_short_work_and_the_end_of_work_tell_a_log_nothing(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines()
    for second, done in ((0.0, 1), (4.9, 5), (70.0, 10)):
        clock[0] = second
        lines("scoring", done, 10)
    assert capsys.readouterr().err == ""


def test_a_stage_that_begins_again_is_told_anew_and_one_without_end_by_its_count(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines()
    for second, done in ((0.0, 0), (6.0, 50), (7.0, 0), (8.0, 10), (13.0, 25)):
        clock[0] = second
        lines("encoding", done, 100)
    for second, done in ((14.0, 0), (20.0, 4000)):
        clock[0] = second
        lines("tokenising", done, 0)
    assert capsys.readouterr().err.splitlines() == [
        "encoding: 50 %, about 6 s to go",
        "encoding: 25 %, about 18 s to go",
        "tokenising: 4,000",
    ]


def test_work_whose_first_part_takes_minutes_tells_a_log_what_is_running(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bars() as progress:
        for second in range(100):
            clock[0] = second
            progress("jobs", 0, 2)
            progress.describe("jobs", f"minilm-1: step {second} of 100")
    assert capsys.readouterr().err.splitlines() == [
        "jobs: 0 of 2 (minilm-1: step 4 of 100)",
        "jobs: 0 of 2 (minilm-1: step 64 of 100)",
    ]


def test_quiet_work_tells_a_log_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (True, False):
        with progress_bars(quiet=quiet) as progress:
            for second in (0.0, 6.0):
                clock[0] += second
                progress("encoding", int(second), 10)
        assert bool(capsys.readouterr().err) == (not quiet)
