"""The command line run in this process, callables to measure, and small data in the benchmarks' layout."""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from stsbench.cli.app import main
from stsbench.data.tables import StsData

SUBSETS = ("FNWN", "headlines", "OnWN")


class Outcome(NamedTuple):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    def demand_one_sentence(self, message: str, *, code: int = 2, records: int = 0) -> None:
        """Assert that one sentence was printed, nothing else, and that there are this many records."""
        assert self.code == code, self.err
        assert self.out == ""
        lines = self.err.strip().splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("stsbench: ")
        assert re.search(message, lines[0]), lines[0]
        assert len(list(Path.cwd().rglob("run.json"))) == records
        assert len(list(Path.cwd().rglob("items*.parquet"))) == records


Stsbench = Callable[..., Outcome]


@pytest.fixture
def stsbench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], toys: ModuleType
) -> Stsbench:
    """Return a function that runs a command in an empty folder of its own."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["stsbench", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def _records(tmp_path_factory: pytest.TempPathFactory) -> Callable[[tuple[str, ...]], Path]:
    """Return a function from a measurement's options to the one folder of its record."""
    folder, known = tmp_path_factory.mktemp("records"), dict[tuple[str, ...], Path]()
    return lambda options: known.setdefault(options, folder / str(len(known)))


@pytest.fixture
def on_sample(stsbench: Stsbench, _records: Callable[[tuple[str, ...]], Path]) -> Callable[..., None]:
    """Return a function that puts the record of one of the toys on the sample in a folder.

    It is measured once for all tests: `on_sample("a", "words", "--metric", "pearson")`.
    """

    def put(name: str | Path, toy: str, *options: str) -> None:
        record = _records((toy, *options))
        if not record.exists():
            done = stsbench("run", "-m", f"toys:{toy}", "--tasks", "sample", "--out", record, *options)
            assert done.code == 0, done.err
        shutil.copytree(record, name)

    return put


@pytest.fixture
def toys(hash_encode: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Put a module `toys` in place, with callables that work and callables that do not."""
    module = ModuleType("toys")

    def interrupted(_sentences: list[str]) -> None:
        raise KeyboardInterrupt

    functions: dict[str, Callable[[list[str]], Any]] = {
        "words": hash_encode,
        "letters": lambda sentences: [[s.count("a") + 0.5, s.count("e"), len(s)] for s in sentences],
        "nan": lambda sentences: np.full((len(sentences), 3), np.nan),
        "one_row_more": lambda sentences: np.ones((len(sentences) + 1, 3)),
        "flat": lambda sentences: np.ones(len(sentences)),
        "text": lambda sentences: ["vector" for _ in sentences],
        "interrupted": interrupted,
    }
    for name, function in functions.items():
        setattr(module, name, function)
    module.number = 3  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toys", module)
    return module


@pytest.fixture
def sts13(tmp_path: Path, toy_data: Callable[..., StsData]) -> Path:
    """Return a data folder with an STS13 of invented sentences."""
    folder = tmp_path / "senteval" / "downstream" / "STS" / "STS13-en-test"
    folder.mkdir(parents=True)
    for number, subset in enumerate(SUBSETS):
        pairs = toy_data(pairs=12, seed=number).pairs
        rows = [f"{a}\t{b}\n" for a, b in zip(pairs["sentence1"], pairs["sentence2"], strict=True)]
        (folder / f"STS.input.{subset}.txt").write_text("".join(rows), encoding="utf-8")
        (folder / f"STS.gs.{subset}.txt").write_text("".join(f"{x}\n" for x in pairs["gold"]), encoding="utf-8")
    return tmp_path / "senteval"


@pytest.fixture
def pairs_file(tmp_path: Path, toy_data: Callable[..., StsData]) -> Path:
    """Return a file of scored pairs as a person would write it."""
    pairs = toy_data(pairs=12).pairs
    path = tmp_path / "pairs.tsv"
    pairs[["sentence1", "sentence2", "gold"]].to_csv(path, sep="\t", index=False, header=False)
    return path
