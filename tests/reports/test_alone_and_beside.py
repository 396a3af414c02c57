"""The numbers of a run do not depend on the runs beside it: ranking, comparison, board and report."""

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stsbench as sb

Rows = set[tuple[Any, ...]]
CASES = ["other model", "other tasks", "task more", "task fewer", "other gold", "fewer items", "other similarity"]


@pytest.fixture(params=[*CASES, "other intervals"])
def runs(request: pytest.FixtureRequest, tmp_path: Path, toy_data: Any, hash_encode: Any) -> list[sb.RunRecord]:
    """Returns the run under test, a comparable one, and the one of the case."""
    x, y = toy_data("x", pairs=60), toy_data("y", pairs=50, seed=1)
    z, w = toy_data("z", pairs=60, seed=5), toy_data("w", pairs=60, seed=6)

    def run(name: str, tasks: Sequence[Any], weight: float, **options: Any) -> sb.RunRecord:
        def encode(sentences: list[str]) -> Any:
            return hash_encode(sentences) + weight * np.array([[len(text)] for text in sentences])

        encode.__module__, encode.__qualname__ = "__main__", name
        return sb.evaluate(encode, tasks, use_cache=False, out=tmp_path / "runs" / name, **options)

    def reversed_gold(task: Any) -> Any:
        gold = task.pairs["gold"].to_numpy()[::-1].copy()
        return replace(task, pairs=task.pairs.assign(gold=gold), sha256="9" * 64)

    tasks = {
        "other tasks": [z, w],
        "task more": [x, y, z],
        "task fewer": [x],
        "other gold": [reversed_gold(x), reversed_gold(y)],
        "fewer items": [toy_data("x", pairs=40), y],
    }
    protocol = sb.protocol(similarity="dot") if request.param == "other similarity" else None
    own = sb.Intervals("independent", 0.9) if request.param == "other intervals" else None
    other = run("b", tasks.get(request.param, [x, y]), 0.2, protocol=protocol)
    return [run("a", [x, y], 0.0, intervals=own), run("c", [x, y], 0.05), other]


def of_a(frame: pd.DataFrame, *columns: str) -> Rows:
    return set(frame[frame["model"] == "a"][list(columns)].itertuples(index=False, name=None))


def test_ranking(runs: list[sb.RunRecord]) -> None:
    a, c, b = runs
    columns = "task", "size", "score", "low", "high"
    alone = of_a(sb.rank([a, c], draws=200).frame, *columns)
    for several in ([a, c, b], [b, a, c]):
        ranking = sb.rank(several, draws=200)
        beside = of_a(ranking.frame, *columns)
        assert {row for row in beside if row[0] != "Avg."} <= alone
        assert beside == alone or "b" in ranking.models


@pytest.mark.parametrize("verb", [sb.compare, sb.plan])
def test_comparison_and_plan(verb: Callable[..., Any], runs: list[sb.RunRecord]) -> None:
    a, c, b = runs

    def numbers(other: sb.RunRecord) -> Rows:
        rows = verb(a, other).rows
        return set(rows[rows["task"] != "Avg."][["task", "size", "a"]].itertuples(index=False, name=None))

    alone = numbers(c)
    try:
        beside = numbers(b)
    except sb.UserError:
        return
    assert beside
    assert beside <= alone


def test_board(runs: list[sb.RunRecord]) -> None:
    a, c, b = (run.folder for run in runs)
    own = [column for column in sb.board(a).frame.columns if column not in {"section", "groups", "run"}]
    alone = of_a(sb.board(a).frame.fillna("none"), *own)
    assert alone
    assert of_a(sb.board([b, c, a]).frame.fillna("none"), *own) == alone


def rows_about(name: str, folder: Path) -> Rows:
    """Returns the rows of all tables of a report that are about a run, without missing cells."""
    rows: Rows = set()
    for file in sorted((folder / "tables").glob("*.csv")):
        if file.stem == "runs" or file.stem.startswith("compare"):
            continue
        with file.open(encoding="utf-8", newline="") as lines:
            for line in csv.DictReader(lines):
                # Labels of equal names end in a number.
                cells = {
                    re.sub(r" \[\d+\]$", "", key): re.sub(r" \[\d+\]$", "", of) for key, of in line.items() if of
                }
                if line.get("model") == name:
                    rows.add((re.sub(r"-\d+$", "", file.stem), *sorted(cells.items())))
                elif name in cells:
                    rows.add((file.stem, *(cells.get(column) for column in ("task", "subset", name))))
    return rows


def test_report(runs: list[sb.RunRecord], tmp_path: Path) -> None:
    a, _, b = runs
    for name, several in (("alone", [a]), ("before", [a, b]), ("after", [b, a])):
        sb.report(several, tmp_path / name, analyse=False)
    alone = rows_about("a", tmp_path / "alone")
    assert len(alone) > 5
    assert rows_about("a", tmp_path / "before") == alone == rows_about("a", tmp_path / "after")
