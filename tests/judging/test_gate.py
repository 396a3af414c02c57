"""`run --gate`: a lower precision is held against the same checkpoint in fp32."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.cli.app import app

GATE = ("--gate", "--margin")


def run(checkpoint: Path, out: Path, *options: str, precision: str = "bf16", tasks: str = "sample") -> object:
    command = ["run", "-m", str(checkpoint), "--tasks", tasks, "--precision", precision, "--out", str(out)]
    return CliRunner().invoke(app, [*command, *options])


def test_a_gate_is_two_runs_and_the_check_of_the_one_against_the_other(tiny_bert: Path, tmp_path: Path) -> None:
    passed = run(tiny_bert, tmp_path / "a", *GATE, "50", tasks="sample,sample-sentiment")
    assert passed.exit_code == 0, passed.output
    lower, full = sb.load_run(tmp_path / "a"), sb.load_run(tmp_path / "a-fp32")
    assert [record.scores[0].signature.split("|")[-2] for record in (lower, full)] == ["bf16", "fp32"]
    assert lower.model.weights_sha256 == full.model.weights_sha256
    # A task of any kind is held against the margin.
    check = sb.check(lower, baseline=full, margin=50)
    assert [cell.name for cell in check.cells] == ["sample", "sample-sentiment"]
    assert check.sentence in passed.output
    assert "loss at most" in passed.output


def test_a_gate_that_does_not_pass_ends_with_3_and_keeps_both_runs(tiny_bert: Path, tmp_path: Path) -> None:
    failed = run(tiny_bert, tmp_path / "b", "--no-intervals", *GATE, "0.000001")
    assert failed.exit_code == 3, failed.output
    assert (tmp_path / "b" / "run.json").is_file()
    assert (tmp_path / "b-fp32" / "run.json").is_file()


def test_without_a_name_each_run_has_its_own_folder(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["run", "-m", str(tiny_bert), "--tasks", "sample", "--precision", "bf16", *GATE, "50"]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "tiny-bert-avg-sample",
        "tiny-bert-avg-sample-bf16",
    ]


@pytest.mark.parametrize(
    ("precision", "options", "sentence"),
    [
        ("fp32", (*GATE, "1"), "but this run uses fp32: add --precision bf16"),
        ("bf16", ("--margin", "1"), "--margin needs --gate: add it"),
        ("bf16", (*GATE, "0"), "a margin of 0 points: give a positive number"),
    ],
)
def test_what_has_no_gate_is_told_before_anything_is_measured(
    precision: str, options: tuple[str, ...], sentence: str, tiny_bert: Path, tmp_path: Path
) -> None:
    refused = run(tiny_bert, tmp_path / "c", *options, precision=precision)
    assert isinstance(refused.exception, UserError)
    assert str(refused.exception).count(sentence) == 1
    assert not list(tmp_path.glob("c*"))


def test_a_function_has_no_gate(tmp_path: Path) -> None:
    command = ["run", "--encoder-module", "operator:itemgetter", "--tasks", "sample", "--gate"]
    refused = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "d")])
    assert "operator:itemgetter is not a checkpoint that runs in fp32" in str(refused.exception)
