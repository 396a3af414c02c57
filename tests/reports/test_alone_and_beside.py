"""A result of a run does not depend on what is beside it: judging, board and report."""

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.records.store import save_run

Rows = set[tuple[Any, ...]]


@dataclass(frozen=True)
class Maker:
    """Makes runs on toy tasks below a folder."""

    root: Path
    toy_data: Callable[..., StsData]
    hash_encode: Callable[[list[str]], Any]

    def task(self, name: str, *, seed: int = 0, pairs: int = 60) -> StsData:
        return self.toy_data(name, pairs=pairs, seed=seed)

    def tasks(self) -> list[StsData]:
        return [self.task("x"), self.task("y", seed=1, pairs=50)]

    def run(self, name: str, tasks: Sequence[StsData], weight: float = 0.0, **options: Any) -> sb.RunRecord:
        def encode(sentences: list[str]) -> Any:
            return self.hash_encode(sentences) + weight * np.array([[len(text)] for text in sentences])

        encode.__module__, encode.__qualname__ = "__main__", name
        sb.evaluate(encode, tasks, use_cache=False, out=self.root / name, **options)
        return sb.load_run(self.root / name)

    def other(self, case: str) -> sb.RunRecord:
        """Return the run that is beside the first."""
        x, y = self.tasks()
        if case == "other gold":
            x, y = (_with_gold(task, task.pairs["gold"].to_numpy()[::-1].copy(), (0.0, 5.0)) for task in (x, y))
        elif case == "other gold range":
            x, y = (_with_gold(task, task.pairs["gold"].to_numpy() / 5, (0.0, 1.0)) for task in (x, y))
        elif case == "other similarity":
            return self.run("b", [x, y], 0.2, protocol=sb.protocol(similarity="dot"))
        elif case == "other metric":
            return self.run("b", [x, y], 0.2, protocol=sb.protocol(metric="pearson"))
        elif case == "imported":
            record = self.run("b", [x, y], 0.2)
            model = record.model.model_copy(update={"kind": "imported"})
            (self.root / "b" / "items.parquet").unlink()
            save_run(
                record.model_copy(update={"model": model, "items_file": None, "folder": None}),
                self.root / "b",
                overwrite=True,
            )
            return sb.load_run(self.root / "b")
        chosen = {
            "other tasks": [self.task("z", seed=5), self.task("w", seed=6)],
            "a task more": [x, y, self.task("z", seed=5)],
            "a task fewer": [x],
            "same file name": [self.task("x", seed=7), self.task("y", seed=8)],
            "fewer items": [self.task("x", pairs=40), y],
        }
        return self.run("b", chosen.get(case, [x, y]), 0.2)


CASES = [
    *("another model", "other tasks", "a task more", "a task fewer", "other gold", "other gold range"),
    *("same file name", "fewer items", "other similarity", "other metric", "other intervals", "imported"),
]


def _with_gold(task: StsData, gold: Any, gold_range: tuple[float, float]) -> StsData:
    return replace(task, pairs=task.pairs.assign(gold=gold), gold_range=gold_range, sha256="9" * 64)


@pytest.fixture(params=CASES)
def runs(
    request: pytest.FixtureRequest, tmp_path: Path, toy_data: Any, hash_encode: Any
) -> tuple[sb.RunRecord, sb.RunRecord, sb.RunRecord]:
    """Return the run that is looked at, one that compares with it, and the one beside it."""
    make = Maker(tmp_path / "runs", toy_data, hash_encode)
    own = sb.Intervals("independent", 0.9) if request.param == "other intervals" else None
    return make.run("a", make.tasks(), intervals=own), make.run("c", make.tasks(), 0.05), make.other(request.param)


def _of_a(frame: pd.DataFrame, *columns: str) -> Rows:
    return set(frame[frame["model"] == "a"][list(columns)].itertuples(index=False, name=None))


def test_ranking(runs: tuple[sb.RunRecord, ...]) -> None:
    a, c, b = runs
    columns = "task", "size", "score", "low", "high"
    alone = _of_a(sb.rank([a, c], draws=200).frame, *columns)
    for several in ([a, c, b], [b, a, c]):
        ranking = sb.rank(several, draws=200)
        beside = _of_a(ranking.frame, *columns)
        assert beside
        if "b" not in ranking.models:
            assert beside == alone
        assert {row for row in beside if row[0] != "Avg."} <= alone


@pytest.mark.parametrize("verb", [sb.compare, sb.plan])
def test_comparison_and_plan(verb: Any, runs: tuple[sb.RunRecord, ...]) -> None:
    a, c, b = runs
    alone = {(row.task, row.size, row.a) for row in verb(a, c).rows if row.task != "Avg."}
    try:
        beside = {(row.task, row.size, row.a) for row in verb(a, b).rows if row.task != "Avg."}
    except sb.UserError:
        return
    assert beside
    assert beside <= alone


def test_check(runs: tuple[sb.RunRecord, ...]) -> None:
    a, _, b = runs
    alone = {cell.name: cell.measured for cell in sb.check(a, baseline=a).cells}
    beside = {cell.name: cell.measured for cell in sb.check(a, baseline=b).cells if cell.measured is not None}
    assert beside.items() - {("Avg.", beside.get("Avg."))} <= alone.items()


def test_board(runs: tuple[sb.RunRecord, ...]) -> None:
    a, c, b = runs
    assert a.folder is not None
    assert b.folder is not None
    assert c.folder is not None
    own = [column for column in sb.board(a.folder).frame.columns if column not in {"section", "groups", "run"}]
    alone = _of_a(sb.board(a.folder).frame.fillna("none"), *own)
    assert _of_a(sb.board([a.folder, b.folder]).frame.fillna("none"), *own) == alone
    assert _of_a(sb.board([b.folder, c.folder, a.folder]).frame.fillna("none"), *own) == alone


def _reported(several: Sequence[sb.RunRecord], folder: Path, name: str = "a", *, analyse: bool = False) -> Rows:
    """Return the rows of all tables of a report that are about a run, without missing cells."""
    sb.report(several, folder, analyse=analyse)
    rows: Rows = set()
    for file in sorted((folder / "tables").glob("*.csv")):
        if file.stem.startswith("compare"):
            continue
        with file.open(encoding="utf-8", newline="") as lines:
            for line in csv.DictReader(lines):
                cells = {_plain(column): _plain(cell) for column, cell in line.items() if cell}
                if line.get("model") == name:
                    rows.add((re.sub(r"-\d+$", "", file.stem), *sorted(cells.items())))
                elif name in cells:
                    rows.add((file.stem, *(cells.get(column) for column in ("task", "subset", name))))
    return rows


def _plain(name: str) -> str:
    """Return a label without the number that tells it from an equal one."""
    return re.sub(r" \[\d+\]$", "", name)


def test_report(runs: tuple[sb.RunRecord, ...], tmp_path: Path) -> None:
    a, _, b = runs
    alone = _reported([a], tmp_path / "alone")
    assert len(alone) > 5
    assert _reported([a, b], tmp_path / "before") == alone
    assert _reported([b, a], tmp_path / "after") == alone


@pytest.mark.parametrize("runs", ["other intervals"], indirect=True)
def test_analyses_in_a_report(runs: tuple[sb.RunRecord, ...], tmp_path: Path) -> None:
    a, c, _ = runs

    def length_bias(several: Sequence[sb.RunRecord], folder: str) -> Rows:
        rows = _reported(several, tmp_path / folder, analyse=True)
        return {row for row in rows if row[0].startswith("length-bias")}

    alone = length_bias([a], "alone")
    assert alone
    assert length_bias([a, c], "beside") == alone


def test_report_with_the_papers_tables(as_published: Callable[..., sb.RunRecord], tmp_path: Path) -> None:
    name = "princeton-nlp/unsup-simcse-bert-base-uncased"
    a = as_published("unsup-simcse-bert-base", name)
    alone = _reported([a], tmp_path / "alone", name)
    assert any(file.startswith("simcse") for file, *_ in alone)
    others = [
        as_published("sbert-base", "theirs", ["STS16"]),
        as_published("unsup-simcse-roberta-base", "princeton-nlp/unsup-simcse-roberta-base", **{"STS-B": -5.0}),
    ]
    for number, b in enumerate(others):
        assert _reported([a, b], tmp_path / f"before-{number}", name) == alone
        assert _reported([b, a], tmp_path / f"after-{number}", name) == alone
