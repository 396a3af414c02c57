"""Every benchmark and example runs, on so little that it takes seconds: what it prints is not looked at."""

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Those that time whole processes start several of them.
IN_PROCESSES = {"sts_speed": ("--threads", "1"), "diagnose_speed": ("--threads", "1")}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what runs a script of the repository in this process, with some arguments."""

    def run(path: str, *arguments: str | Path) -> None:
        monkeypatch.setattr(sys, "argv", [path, *map(str, arguments)])
        runpy.run_path(str(ROOT / path), run_name="__main__")

    return run


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a corpus in which the repetition probe finds candidates."""
    words = [
        "the",
        "owl",
        "sings",
        "in",
        "a",
        "tree",
        "while",
        "rain",
        "falls",
        "on",
        "red",
        "leaves",
        "and",
        "old",
        "kettles",
        "nap",
    ]
    lines = [" ".join(words[n % 7 :] + words[: n % 5]) for n in range(60)]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.minilm
@pytest.mark.parametrize("name", IN_PROCESSES)
def test_a_benchmark_of_whole_processes_prints_its_ratios(name: str, benchmark_folder: Path) -> None:
    environment = os.environ | {"STSBENCH_DATA": str(benchmark_folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, f"benchmarks/{name}.py", *IN_PROCESSES[name]],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "seconds as median" in done.stdout


@pytest.mark.minilm
def test_the_benchmark_of_transfer_tasks_runs(
    script: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = "sample-movies,sample-questions,sample-sentiment"
    script("benchmarks/transfer_speed.py", "--tasks", tasks, "--against", tasks, "--share", "0.05")
    assert capsys.readouterr().out.count("ratio") == 3


def test_the_benchmark_of_uniformity_runs(script: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    script("benchmarks/uniformity_speed.py", "--vectors", "300", "--dimensions", "8", "--repeat", "1")
    assert "ratio" in capsys.readouterr().out


def test_the_benchmark_of_the_repetition_probe_runs(
    script: Callable[..., None], corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script("benchmarks/repetition_speed.py", corpus, "--sentences", "200", "--queries", "2")
    assert "same candidates: True" in capsys.readouterr().out


@pytest.mark.slow
def test_the_benchmark_of_reports_runs(script: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    script("benchmarks/report_speed.py", "--runs", "6")
    assert " 6 runs" in capsys.readouterr().out


@pytest.mark.slow
def test_the_benchmark_of_training_runs(
    script: Callable[..., None], tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script("benchmarks/train_speed.py", "--base", tiny_bert, "--batch", "4", "--steps", "3", "--rounds", "1")
    assert capsys.readouterr().out.count("ratio") == 2


@pytest.mark.slow
@pytest.mark.minilm
def test_the_benchmark_of_training_on_a_gpu_runs_without_one(
    script: Callable[..., None], corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    little = ("--steps", "1", "--warm", "1", "--layers", "1", "--matrix", "8", "--precision", "fp32")
    script("benchmarks/train_gpu.py", "--corpus", corpus, "--device", "cpu", *little)
    assert "projected" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.minilm
def test_the_example_that_trains_over_seeds_writes_its_table(
    script: Callable[..., None],
    benchmark_folder: Path,
    corpus: Path,
    tiny_bert: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(benchmark_folder))
    little = ("--set", f"base={tiny_bert}", "--set", "optimiser.epochs=1", "--set", "optimiser.batch=32")
    where = ("--out", tmp_path / "out", "--models", tmp_path / "models")
    script("examples/train_table.py", "--corpus", corpus, *where, "--seeds", "1", "--variants", "ESimCSE", *little)
    assert "ESimCSE" in (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
