"""Dependencies: every licence is known and compatible, and the lowest versions are those of pyproject."""

import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
CI = ROOT / ".ci"


@pytest.fixture(scope="module")
def check() -> dict[str, Any]:
    """Return the names of the licence check."""
    return runpy.run_path(str(CI / "licences.py"))


def distribution(name: str = "some", **fields: str | list[str]) -> Any:
    metadata = Message()
    metadata["Name"] = name
    for field, values in fields.items():
        for value in [values] if isinstance(values, str) else values:
            metadata[field.replace("_", "-")] = value
    return SimpleNamespace(metadata=metadata, version="1.0", requires=[])


def test_every_installed_dependency_is_named_with_a_compatible_licence() -> None:
    done = subprocess.run(
        [sys.executable, CI / "licences.py"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")
    *rows, last = done.stdout.splitlines()
    names = {row.split()[0].casefold() for row in rows}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {Requirement(line).name.casefold() for line in project["dependencies"]} <= names
    assert "tqdm" in names  # which stsbench does not name itself
    assert last == f"licences: {len(rows)} dependencies, {len(rows)} of them compatible"
    assert "UNKNOWN" not in done.stdout


@pytest.mark.parametrize(
    ("fields", "expression", "compatible"),
    [
        ({"License_Expression": "Apache-2.0 OR GPL-3.0-only"}, "Apache-2.0 OR GPL-3.0-only", True),
        ({"License_Expression": "MIT AND GPL-3.0-only"}, "MIT AND GPL-3.0-only", False),
        ({"License_Expression": "MIT AND (BSD-3-Clause OR AGPL-3.0)"}, "MIT AND (BSD-3-Clause OR AGPL-3.0)", True),
        ({"License_Expression": "AGPL-3.0-only"}, "AGPL-3.0-only", False),
        ({"Classifier": "License :: OSI Approved :: MIT License"}, "MIT", True),
        (
            {
                "Classifier": [
                    "License :: OSI Approved :: MIT License",
                    "License :: OSI Approved :: GNU General (GPL)",
                ]
            },
            "MIT AND GNU General (GPL)",
            False,
        ),
        ({"License": "Apache 2.0"}, "Apache-2.0", True),
        ({"License": "MPL-2.0 AND MIT"}, "MPL-2.0 AND MIT", True),
        ({"License": "see the file"}, "", False),
        ({"License": "GPLv3"}, "", False),
        ({}, "", False),
    ],
)
def test_a_licence_is_read_from_what_a_distribution_says(
    check: dict[str, Any], fields: dict[str, Any], expression: str, compatible: bool
) -> None:
    assert check["expression_of"](distribution(**fields)) == expression
    assert check["is_compatible"](expression) is compatible


def test_a_licence_that_is_unknown_or_not_on_the_list_fails_and_is_named(
    check: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    main: Callable[[], int] = check["main"]
    licence = check["Licence"]
    rows = [
        licence("good", "1", "MIT", "x"),
        licence("silent", "1", "", "x"),
        licence("strict", "2", "GPL-3.0", "x"),
    ]
    main.__globals__["licences"] = lambda: rows
    assert main() == 1
    out, err = capsys.readouterr()
    assert "silent" in out
    assert "licences: silent 1 has no licence that is known" in err
    assert "licences: strict 2 is GPL-3.0, which is not on the list" in err
    assert "good" not in err


@pytest.mark.parametrize(
    ("report", "code", "told"),
    [
        (
            '{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}',
            0,
            "1 of 1 packages looked at, 0 known",
        ),
        (
            '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}]}',
            1,
            "a 1: CVE-1 (mended in 2)",
        ),
        ('{"dependencies": [{"name": "a", "skip_reason": "not found"}]}', 3, "NOT RUN for 1 packages (a, ...)"),
        ('{"dependencies": []}', 3, "0 of 0 packages looked at"),
        ("", 3, "audit: NOT RUN, its service could not be reached (pip-audit ended with 1)"),
    ],
)
def test_an_audit_that_was_not_run_is_no_clean_bill(tmp_path: Path, report: str, code: int, told: str) -> None:
    stand_in = tmp_path / "pip-audit"
    (tmp_path / "answer").write_text(report, encoding="utf-8")
    stand_in.write_text(
        '#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = --output ] && out=$2; shift; done\n'
        f'[ -s "{tmp_path}/answer" ] && cp "{tmp_path}/answer" "$out"\nexit 1\n',
        encoding="utf-8",
    )
    stand_in.chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([CI / "audit"], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, told in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr


def test_the_lowest_versions_are_those_that_pyproject_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.lower().replace("_", "-").split("==") for line in lines if "==" in line and line[0] != "#")
    models = project["optional-dependencies"]["models"]
    for requirement in map(Requirement, [*project["dependencies"], *models]):
        name = requirement.name.lower().replace("_", "-")
        (lowest,) = re.findall(r">=([\d.]+)", str(requirement.specifier))
        tried = Version(pinned[name])
        assert tried in requirement.specifier, f"{requirement}: {tried} was tried"
        assert tried.release[: len(Version(lowest).release)] == Version(lowest).release, f"{requirement}: {tried}"


def test_the_workflow_runs_what_stands_in_the_folder_of_the_gate() -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "gate.yml").read_text(encoding="utf-8"))["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    for script in ("run", "package", "base", "licences.py", "audit", "lowest"):
        assert os.access(CI / script, os.X_OK), script
        assert any(f".ci/{script}" in command for command in commands), script
    # Nobody has run it there: it may fail without failing a change, and its name says so.
    assert jobs["lowest"]["continue-on-error"]
    assert "untried" in jobs["lowest"]["name"]


def test_the_base_is_installed_alone_on_every_python_that_is_supported() -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "gate.yml").read_text(encoding="utf-8"))["jobs"]
    pythons = [row["python"] for row in jobs["base"]["strategy"]["matrix"]["include"]]
    assert pythons == [row["python"] for row in jobs["gate"]["strategy"]["matrix"]["include"]]
    tests = (CI / "base").read_text(encoding="utf-8").partition("tests=(")[2].partition(")")[0].split()
    assert all((ROOT / "tests" / name).exists() for name in tests)


def test_the_sizes_of_what_can_be_installed_grow_with_what_is_brought() -> None:
    done = subprocess.run([sys.executable, CI / "sizes.py"], capture_output=True, text=True, check=True, cwd=ROOT)
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| `")]
    sizes = {name.strip("`"): (int(packages), int(megabytes)) for name, packages, megabytes in rows}
    assert sizes["stsbench"][1] > 100
    assert sizes["stsbench[models]"] > sizes["stsbench"]
    if "stsbench[minilm]" in sizes:
        assert sizes["stsbench[minilm]"] > sizes["stsbench[models]"]
