"""Every benchmark and example runs, on so little that it takes seconds: what it prints is not looked at."""

import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from stsbench.data.benchmarks import sample_sentences

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what runs a script of the repository in this process, with some arguments."""

    def run(path: str, *arguments: str | Path) -> None:
        monkeypatch.setattr(sys, "argv", [path, *map(str, arguments)])
        runpy.run_path(str(ROOT / path), run_name="__main__")

    return run


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return the sample's sentences as a corpus."""
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(sample_sentences()) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run here what a benchmark would start as a process: importing torch in each takes most of a gate's time."""

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        _, *arguments = command
        module = arguments[0] == "-m"
        with monkeypatch.context() as patched, redirect_stdout(StringIO()) as printed, suppress(SystemExit):
            patched.setattr(sys, "argv", arguments[1:] if module else arguments)
            if module:
                runpy.run_module(arguments[1], run_name="__main__")
            else:
                runpy.run_path(arguments[0], run_name="__main__")
        return subprocess.CompletedProcess(command, 0, printed.getvalue(), "")

    monkeypatch.setattr(subprocess, "run", run)


@pytest.mark.long
@pytest.mark.minilm
@pytest.mark.usefixtures("without_processes")
@pytest.mark.parametrize("benchmark_folder", [6], indirect=True)
@pytest.mark.parametrize("name", ["sts_speed", "diagnose_speed"])
def test_a_benchmark_of_whole_runs_prints_its_ratios(
    name: str,
    script: Callable[..., None],
    benchmark_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(benchmark_folder))
    script(f"benchmarks/{name}.py", "--threads", "1")
    printed = capsys.readouterr().out
    assert "seconds as median" in printed
    assert "goal" in printed


@pytest.mark.minilm
def test_the_benchmark_of_transfer_tasks_runs(
    script: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = "sample-questions,sample-sentiment"
    script("benchmarks/transfer_speed.py", "--tasks", tasks, "--against", tasks, "--share", "0.05")
    assert capsys.readouterr().out.count("ratio") == 2


def test_the_benchmark_of_uniformity_runs(script: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    script("benchmarks/uniformity_speed.py", "--vectors", "300", "--dimensions", "8", "--repeat", "1")
    assert "ratio" in capsys.readouterr().out


def test_the_benchmark_of_the_repetition_probe_runs(
    script: Callable[..., None], corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script("benchmarks/repetition_speed.py", corpus, "--sentences", "600", "--queries", "2")
    assert "same candidates: True" in capsys.readouterr().out


def test_the_benchmark_of_rankings_runs(script: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    script("benchmarks/rank_speed.py", "--models", "3", "--tasks", "sample", "--rounds", "1")
    assert "3 models" in capsys.readouterr().out


@pytest.mark.usefixtures("without_processes")
def test_the_benchmark_of_large_inputs_runs_in_small(
    script: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    script("benchmarks/scale.py", "--parts", "pairs,retrieve,show,rank", "--rows", "12", "--sizes", "2")
    assert capsys.readouterr().out.count("growth: time") == 4


def test_the_benchmark_of_back_ends_runs_on_little(
    script: Callable[..., None], tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on_little = ("--task", "sample", "--rounds", "1", "--precisions", "fp32", "bf16", "--models", tiny_bert)
    script("benchmarks/backend_speed.py", *on_little)
    printed = capsys.readouterr().out
    assert "504 sequences, 1 rounds" in printed
    assert "cos 1.0000 >= 1.0000" in printed


@pytest.mark.long
def test_the_benchmark_of_commands_from_the_shell_runs_against_another_version(
    script: Callable[..., None], tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    little = ("--model", tiny_bert, "--tasks", "sample", "--only", "show,run", "--repeat", "1")
    script("benchmarks/shell_speed.py", *little, "--against", sys.executable)
    assert capsys.readouterr().out.count("ratio") == 2


@pytest.mark.slow
def test_the_benchmark_of_reports_runs(script: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    script("benchmarks/report_speed.py", "--runs", "6")
    assert " 6 runs" in capsys.readouterr().out


@pytest.mark.long
def test_the_benchmark_of_sweeps_runs(script: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    script("benchmarks/sweep_speed.py", "--parts", "scheduling,tables", "--wait", "0.01")
    assert capsys.readouterr().out.count("100 jobs") == 2


@pytest.mark.slow
def test_the_benchmark_of_training_runs(
    script: Callable[..., None], tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script("benchmarks/train_speed.py", "--base", tiny_bert, "--batch", "4", "--steps", "3", "--rounds", "1")
    assert capsys.readouterr().out.count(" x, grouped by length ") == 4


@pytest.mark.long
def test_the_benchmark_of_methods_runs_and_counts_the_passes_that_each_needs(
    script: Callable[..., None],
    tiny_bert: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    little = ("--batch", "40", "--max-length", "6", "--steps", "1", "--rounds", "1")
    methods = ("--methods", "gaussian,esimcse,multitask,mocose,mocose-no-fgsm")
    script("benchmarks/train_methods.py", "--base", tiny_bert, *little, *methods)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "passes" in line and "ratio" in line]
    passes = {line[0]: float(line[line.index("passes") + 1]) for line in lines}
    # At 2 for a backward pass: SimCSE 2 x 3; ESimCSE 1 more; MoCoSE 3 + 1, and a clean pass of 2 + 1.
    # Multi-task: 3 for each of the 40 x 2 sentences, and for the 8 x (1 + 2 + 2) of its tasks.
    tasks = 1 + 8 * 5 / (40 * 2)
    expected = {
        "simcse": 1,
        "gaussian": 1,
        "esimcse": 7 / 6,
        "multitask": tasks,
        "mocose": 7 / 6,
        "mocose-no-fgsm": 4 / 6,
    }
    assert passes == pytest.approx(expected, rel=0.1)


@pytest.mark.slow
@pytest.mark.minilm
def test_the_benchmark_of_training_on_a_gpu_runs_without_one(
    script: Callable[..., None], corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    little = ("--steps", "1", "--warm", "1", "--layers", "1", "--width", "48", "--matrix", "8")
    one = ("--recipe", "esimcse-bert-base", "--precision", "fp32")
    script("benchmarks/train_gpu.py", "--corpus", corpus, "--device", "cpu", *little, *one)
    assert "projected" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.minilm
def test_the_benchmark_of_encoding_on_a_gpu_runs_without_one(
    script: Callable[..., None], corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    little = ("--layers", "1", "--width", "48", "--repeat", "1", "--precision", "fp32")
    script("benchmarks/encode_gpu.py", "--sentences", corpus, "--device", "cpu", *little)
    assert "encoding / bare" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.minilm
@pytest.mark.parametrize("benchmark_folder", [6], indirect=True)
def test_the_example_that_trains_over_seeds_writes_its_tables(
    script: Callable[..., None],
    benchmark_folder: Path,
    corpus: Path,
    tiny_bert: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(benchmark_folder))
    seeds = ("--seeds", "1", "2", "3", "4", "5", "--variants", "base", "ESimCSE", "Gaussian dropout")
    little = ("--set", f"base={tiny_bert}", "--set", "optimiser.batch=32", "--set", "corpus.rows=64")
    other = ("--set", "ESimCSE:dropout=0.2", "--tasks", "STS-B,STS16")
    where = ("--out", tmp_path / "out", "--models", tmp_path / "models")
    script("examples/train_table.py", "--corpus", corpus, *where, *seeds, *little, *other)
    table = pd.read_csv(tmp_path / "out" / "seeds.csv")
    assert table["variant"].value_counts().to_dict() == {"base": 5, "ESimCSE": 5, "Gaussian dropout": 5}
    assert "ESimCSE" in (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    pairs = pd.read_csv(tmp_path / "out" / "pairs.csv")
    of_scores = pairs[pairs["measure"] == "Avg."]
    assert list(zip(of_scores["A"], of_scores["B"], strict=True)) == [
        ("base", "ESimCSE"),
        ("base", "Gaussian dropout"),
        ("ESimCSE", "Gaussian dropout"),
    ]
    tested = pairs.dropna()
    assert len(tested)
    assert (tested["p_holm"] >= tested["p"]).all()
    dropout = {
        name: "dropout: 0.2" in (tmp_path / "out" / f"{name}-seed1" / "recipe.yaml").read_text(encoding="utf-8")
        for name in ("esimcse", "gaussian-dropout")
    }
    assert dropout == {"esimcse": True, "gaussian-dropout": False}


@pytest.mark.long
@pytest.mark.minilm
@pytest.mark.parametrize("benchmark_folder", [6], indirect=True)
def test_the_probes_of_mocose_write_their_tables(
    script: Callable[..., None],
    benchmark_folder: Path,
    corpus: Path,
    tiny_bert: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(benchmark_folder))
    monkeypatch.syspath_prepend(ROOT / "examples")
    little = ("--set", f"base={tiny_bert}", "--set", "corpus.rows=32")
    where = ("--out", tmp_path / "out", "--models", tmp_path / "models")
    for probe in ("collapse", "fgsm"):
        script("examples/mocose_probes.py", probe, "--corpus", corpus, *where, *little)
    assert pd.read_csv(tmp_path / "out" / "collapse.csv")["training"].nunique() == 8
    assert (tmp_path / "out" / "collapse.png").is_file()
    fgsm = pd.read_csv(tmp_path / "out" / "fgsm.csv").set_index("training")["difference"]
    assert fgsm["no step, again"] == 0 < fgsm["no step, another seed"]
