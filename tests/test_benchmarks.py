"""Every benchmark and example runs on very little data; the times it prints are not checked."""

import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from small_server import serving

from stsbench.data.corpus import load_corpus

ROOT = Path(__file__).resolve().parents[1]

GPU = "--layers 1 --width 48 --device cpu --precision fp32"
ONCE, COSINE = "--steps 1 --warm 1 --matrix 8", "cos 1.0000 >= 1.0000"

# A script with its arguments, what it prints and how often, and markers.
SCRIPTS: list[tuple[str, str, int, str]] = [
    ("sts_speed.py --threads 1", "goal", 0, "long minilm"),
    ("diagnose_speed.py --threads 1", "goal", 0, "long minilm"),
    ("transfer_speed.py --tasks sample-questions --against sample-questions --share 0.05", "ratio", 1, "minilm"),
    ("uniformity_speed.py --vectors 300 --dimensions 8 --repeat 1", "ratio", 0, ""),
    ("repetition_speed.py CORPUS --sentences 600 --queries 2", "same candidates: True", 1, ""),
    ("rank_speed.py --models 3 --tasks sample --rounds 1", "3 models", 0, ""),
    ("retrieval.py --documents 200 9000 --queries 300 --width 8", "peak memory", 2, ""),
    ("retrieval.py --coverage BERT --task sample --draws 3", "coverage", 3, ""),
    ("scale.py --parts pairs,retrieve,show,rank --rows 12 --sizes 2", "growth: time", 4, ""),
    ("backend_speed.py --task sample --rounds 1 --precisions fp32 bf16 --models BERT", COSINE, 0, ""),
    ("shell_speed.py --model BERT --tasks sample --only show,run --repeat 1 --against PYTHON", "ratio", 2, "long"),
    ("report_speed.py --runs 6", " 6 runs", 0, "slow"),
    ("sweep_speed.py --parts scheduling,tables --wait 0.01", "100 jobs", 2, "long"),
    ("train_speed.py --base BERT --batch 4 --steps 3 --rounds 1", " x, grouped by length ", 4, "slow"),
    (f"train_gpu.py --corpus CORPUS {ONCE} --recipe esimcse-bert-base {GPU}", "projected", 0, "slow minilm"),
    ("endpoint.py --model SERVER --tasks sample --repeat 1", "run / alone", 1, ""),
    (f"encode_gpu.py --sentences CORPUS --repeat 1 {GPU}", "encoding / bare", 0, "slow minilm"),
]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_bert: Path) -> Iterator[Callable[[str], None]]:
    """Return a function that runs a script in this process; CORPUS, BERT and OUT stand for paths."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(load_corpus("sample")) + "\n", encoding="utf-8")
    paths = {"CORPUS": str(corpus), "BERT": str(tiny_bert), "OUT": str(tmp_path / "out"), "PYTHON": sys.executable}

    def run(line: str) -> None:
        words = [paths.get(word, word.replace("BERT", paths["BERT"])) for word in line.split()]
        monkeypatch.setattr(sys, "argv", words)
        monkeypatch.syspath_prepend(ROOT / Path(words[0]).parent)
        runpy.run_path(str(ROOT / words[0]), run_name="__main__")

    with serving() as server:
        paths["SERVER"] = server.model
        yield run


@pytest.fixture
def without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in this process what a benchmark would start: importing torch in each takes most of a gate's time."""

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


@pytest.mark.parametrize("benchmark_folder", [6], indirect=True)
@pytest.mark.parametrize(
    ("line", "words", "count"),
    [
        pytest.param(*row, marks=[getattr(pytest.mark, mark) for mark in marks.split()], id=row[0].split(".")[0])
        for *row, marks in SCRIPTS
    ],
)
def test_a_benchmark_runs(
    line: str,
    words: str,
    count: int,
    script: Callable[[str], None],
    benchmark_folder: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "--threads" in line:
        monkeypatch.setenv("STSBENCH_DATA", str(benchmark_folder))
    if not line.startswith("shell"):
        request.getfixturevalue("without_processes")
    script(f"benchmarks/{line}")
    printed = capsys.readouterr().out
    assert printed.count(words) == count if count else words in printed


@pytest.mark.long
@pytest.mark.minilm
@pytest.mark.parametrize("benchmark_folder", [6], indirect=True)
def test_the_examples_that_train_write_their_tables(
    script: Callable[[str], None], benchmark_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(benchmark_folder))
    monkeypatch.chdir(tmp_path)
    where = "--corpus CORPUS --out OUT --models models --set base=BERT"
    little = "--set optimiser.batch=32 --set corpus.rows=64 --set ESimCSE:dropout=0.2 --tasks STS-B,STS16"
    script(f"examples/train_table.py {where} {little} --seeds 1 2 3 4 5 --variants base SimCSE ESimCSE")
    out = tmp_path / "out"
    seeds = pd.read_csv(out / "seeds.csv")["variant"].value_counts().to_dict()
    assert seeds == {"base": 1, "SimCSE": 5, "ESimCSE": 5}
    assert "ESimCSE" in (out / "table.md").read_text(encoding="utf-8")
    tested = pd.read_csv(out / "pairs.csv").dropna()
    assert len(tested)
    assert (tested["p_holm"] >= tested["p"]).all()
    assert "dropout: 0.2" in (out / "esimcse-seed1" / "recipe.yaml").read_text(encoding="utf-8")
    for probe in ("collapse", "fgsm"):
        script(f"examples/mocose_probes.py {probe} {where} --set corpus.rows=32")
    assert pd.read_csv(out / "collapse.csv")["training"].nunique() == 8
    assert (out / "collapse.png").is_file()
    fgsm = pd.read_csv(out / "fgsm.csv").set_index("training")["difference"]
    assert fgsm["no step, again"] == 0 < fgsm["no step, another seed"]
