"""`run --gate`: a lower precision against the same checkpoint in fp32."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import stsbench as sb
from stsbench.cli.app import app

GATE = ("--gate", "--margin")


def gate(checkpoint: Path, out: Path, *options: str, precision: str = "bf16", tasks: str = "sample") -> Any:
    command = ["run", "-m", str(checkpoint), "--tasks", tasks, "--precision", precision, "--out", str(out)]
    return CliRunner().invoke(app, [*command, *options])


def test_a_gate_measures_twice_and_checks(tiny_bert: Path, tmp_path: Path) -> None:
    passed = gate(tiny_bert, tmp_path / "a", *GATE, "50", tasks="sample,sample-sentiment")
    assert passed.exit_code == 0, passed.output
    lower, full = sb.load_run(tmp_path / "a"), sb.load_run(tmp_path / "a-fp32")
    assert [record.scores[0].signature.split("|")[-2] for record in (lower, full)] == ["bf16", "fp32"]
    assert lower.model.weights_sha256 == full.model.weights_sha256
    check = sb.check(lower, baseline=full, margin=50)
    assert [cell.name for cell in check.cells] == ["sample", "sample-sentiment"]
    assert check.sentence in passed.output
    failed = gate(tiny_bert, tmp_path / "b", "--no-intervals", *GATE, "0.000001")
    assert failed.exit_code == 3, failed.output
    assert all((tmp_path / name / "run.json").is_file() for name in ("b", "b-fp32"))


def test_gates_without_a_name_have_a_folder_each(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["run", "-m", str(tiny_bert), "--tasks", "sample", "--precision", "bf16", *GATE, "50"]
    assert CliRunner().invoke(app, command).exit_code == 0
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == ["tiny-bert-avg-sample", "tiny-bert-avg-sample-bf16"]


@pytest.mark.parametrize(
    ("precision", "options", "fragment"),
    [
        ("fp32", (*GATE, "1"), "--precision bf16"),
        ("bf16", ("--margin", "1"), "--margin needs --gate"),
        ("bf16", (*GATE, "0"), "a margin of 0 points"),
    ],
)
def test_mistakes_are_reported_before_anything_is_measured(
    precision: str, options: tuple[str, ...], fragment: str, tiny_bert: Path, tmp_path: Path
) -> None:
    result = gate(tiny_bert, tmp_path / "c", *options, precision=precision)
    assert isinstance(result.exception, sb.UserError)
    assert fragment in str(result.exception)
    assert not list(tmp_path.glob("c*"))


def test_a_function_has_no_gate(tmp_path: Path) -> None:
    command = ["run", "--encoder-module", "operator:itemgetter", "--tasks", "sample", "--gate"]
    result = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "d")])
    assert "operator:itemgetter is not a checkpoint that runs in fp32" in str(result.exception)
