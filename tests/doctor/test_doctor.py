"""The doctor finds what is there, and what keeps a measurement from working."""

import os
from pathlib import Path

import pytest

from stsbench.doctor import doctor as room
from stsbench.doctor.doctor import doctor


def found() -> dict[str, tuple[str, str]]:
    return {finding.subject: (finding.status, finding.detail) for finding in doctor().findings}


def test_on_a_bare_machine_nothing_is_broken() -> None:
    findings = found()
    assert {status for status, _ in findings.values()} <= {"ok", "note"}
    assert findings["torch"][0] == "ok"
    missing = ("note", "0 of 7 tasks: `stsbench data get senteval`, or set STSBENCH_DATA")
    assert findings["STS data, text senteval"] == missing
    assert findings["transfer data, text senteval"] == missing
    assert findings["embedding cache"][1].startswith("0 files")


def test_a_data_folder_that_is_not_there_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(tmp_path / "nowhere"))
    assert found()["data"][0] == "problem"
    assert "which is not a folder" in found()["data"][1]


def test_a_cache_that_cannot_be_written_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    status, detail = found()["embedding cache"]
    assert status == "problem"
    assert detail.endswith("cannot be written: set STSBENCH_CACHE")


def test_a_package_that_is_missing_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise room.PackageNotFoundError(package)

    monkeypatch.setattr(room, "version", version)
    assert found()["torch"] == ("problem", "not installed: pip install torch")


@pytest.mark.shared
def test_the_benchmark_data_is_found_where_the_variable_says(
    senteval: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(senteval))
    findings = found()
    assert findings["STS data, text senteval"][0] == "ok"
    assert findings["transfer data, text senteval"][0] == "ok"


def test_an_examination_shows_itself_and_is_well_without_problems() -> None:
    examination = doctor()
    assert examination.is_well
    assert str(examination).startswith("subject ")
    assert list(examination.frame) == ["subject", "status", "detail"]
