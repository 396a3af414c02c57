"""The doctor finds what is there, and what keeps a measurement from working."""

import os
from pathlib import Path

import pytest

from stsbench.doctor import doctor as room
from stsbench.doctor.doctor import doctor


def found() -> dict[str, tuple[str, str]]:
    return {finding.subject: (finding.status, finding.detail) for finding in doctor().findings}


def test_on_a_bare_machine_only_the_data_is_missing_and_it_is_said_how_to_get_it() -> None:
    findings = found()
    assert {subject for subject, (status, _) in findings.items() if status == "problem"} == {
        "STS data, text senteval",
        "transfer data, text senteval",
    }
    assert findings["torch"][0] == "ok"
    status, detail = findings["STS data, text senteval"]
    assert detail.startswith("0 of 7 tasks: run `stsbench data get senteval`, or download https://huggingface.co/")
    assert detail.endswith("senteval.tar by hand and set STSBENCH_DATA to its folder")
    status, detail = findings["STS data, text raw"]
    assert (status, detail[:30]) == ("note", "0 of 6 tasks: get it by hand f")
    assert findings["embedding cache"][1].startswith("0 files")


def test_a_task_with_a_file_missing_or_changed_is_a_problem_that_names_the_file(
    benchmark_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(benchmark_folder))
    first = benchmark_folder / "downstream" / "STS" / "STS12-en-test" / "STS.input.MSRpar.txt"
    status, detail = found()["STS data, text senteval"]
    assert status == "problem"
    assert f"the first is {first} (modified)" in detail
    first.unlink()
    assert f"the first is {first} (missing)" in found()["STS data, text senteval"][1]


def test_a_package_older_than_stsbench_asks_for_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "version", lambda package: "1.0" if package == "pandas" else "99")
    monkeypatch.setattr(room, "requires", lambda _name: ["pandas>=2.2", "numpy>=1.26", "faiss>=1; extra == 'f'"])
    findings = found()
    assert findings["pandas"] == ("problem", "1.0, but stsbench needs pandas>=2.2: pip install 'pandas>=2.2'")
    assert findings["numpy"] == ("ok", "99")
    assert "faiss" not in findings


def test_a_library_that_cannot_be_loaded_is_a_problem_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_device: str) -> str:
        raise ImportError("libcudart.so.13: cannot open shared object file\nand more")

    monkeypatch.setattr(room, "resolve_device", broken)
    assert found()["device"] == ("problem", "libcudart.so.13: cannot open shared object file")


def test_a_cache_that_is_a_file_or_holds_what_cannot_be_read_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "file"))
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert found()["embedding cache"][0] == "problem"
    assert f"{tmp_path / 'file'} is not a folder; choose another folder" in found()["embedding cache"][1]
    broken = tmp_path / "cache" / "embeddings" / "broken.vectors"
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "cache"))
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no blocks")
    assert found()["embedding cache"] == (
        "problem",
        f"1 cannot be read, the first is {broken}: `stsbench cache clear`",
    )


def test_a_data_folder_that_is_not_there_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(tmp_path / "nowhere"))
    assert found()["data"][0] == "problem"
    assert "which is not a folder" in found()["data"][1]


def test_a_cache_that_cannot_be_written_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    status, detail = found()["embedding cache"]
    assert status == "problem"
    assert detail.endswith("no permission; choose another folder with STSBENCH_CACHE.")


def test_a_package_that_is_missing_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise room.PackageNotFoundError(package)

    monkeypatch.setattr(room, "version", version)
    assert found()["pandas"][0] == "problem"
    assert found()["pandas"][1].startswith("not installed: pip install 'pandas")
