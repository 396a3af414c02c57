"""The project around the package: gate, workflows, release, wheel, licences and lowest versions."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import stsbench as sb

ROOT = Path(__file__).resolve().parents[1]
CI = ROOT / ".ci"
pytestmark = pytest.mark.skipif(not CI.is_dir(), reason="needs .ci")

TOOLS = ("lint-imports", "mypy", "oxlint", "pytest", "ruff", "sphinx-build")
TOOL = """#!/usr/bin/env bash
echo "$(basename "$0") speaks"
[ -z "${PYTHONDONTWRITEBYTECODE+set}" ] || exit 4
[ "$(basename "$0")" != "$FAILING" ] || exit 3
[ "$(basename "$0")" != sphinx-build ] || mkdir -p "${@: -1}"
"""
README = """<!-- ci: tests -->
```bash
cp -r tools .venv && echo made >>environments && pytest -n 2
```
"""
STEPS = {
    "ruff": ["lint", "format"],
    "oxlint": ["scripts"],
    "lint-imports": ["imports"],
    "mypy": ["types"],
    "sphinx-build": ["site"],
    "pytest": ["pages", "tests"],
}


def project() -> dict[str, Any]:
    content: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return content


def read_yaml(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the gate and stand-ins for its tools."""
    for name in (".ci", "tools/bin", "stsbench"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(CI / "run", tmp_path / ".ci")
    for name in TOOLS:
        (tmp_path / "tools/bin" / name).write_text(TOOL, encoding="utf-8")
        (tmp_path / "tools/bin" / name).chmod(0o755)
    for name, text in (("README.md", README), ("pyproject.toml", "[project]\n"), ("constraints.txt", "a==1\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "stsbench/_version.py").write_text("__version__ = '1'\n", encoding="utf-8")
    return tmp_path


def gate(folder: Path, *, failing: str = "", ci: str = "") -> subprocess.CompletedProcess[str]:
    env = os.environ | {"FAILING": failing, "CI": ci, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [folder / ".ci/run"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("tool", ["", *STEPS])
def test_the_gate_lists_its_steps_and_fails_with_the_output_of_one_that_fails(checkout: Path, tool: str) -> None:
    done, failing = gate(checkout, failing=tool), STEPS.get(tool, [])
    assert done.returncode == bool(failing), done.stderr
    ends = {line.split()[0]: line.split(maxsplit=3)[-1] for line in done.stdout.splitlines() if " s  " in line}
    expected = {
        step: "FAILED with 3" if step in failing else "passed" for steps in STEPS.values() for step in steps
    }
    if tool == "sphinx-build":
        del expected["pages"]
    assert ends == expected
    for step in set(failing) - {"tests"}:
        assert f"--- {step} failed:\n{tool} speaks\n" in done.stdout


@pytest.fixture(scope="module")
def release() -> dict[str, Any]:
    return runpy.run_path(str(CI / "release.py"))


def test_a_release_has_its_notes_and_the_date_of_its_citation(
    release: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert release["main"]([f"v{sb.__version__}"]) == 0
    assert len(capsys.readouterr().out) > 1000
    assert release["main"](["v0.0.0"]) == 1
    assert capsys.readouterr().err.startswith("release: ")
    citation = read_yaml("CITATION.cff")
    dated = f"## [{sb.__version__}] - {citation['date-released']}"
    assert dated in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert citation["version"] == sb.__version__


@pytest.mark.slow
def test_the_wheel_holds_every_file_and_measures_outside_the_checkout(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    files = subprocess.run(["git", "ls-files", "stsbench"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert set(files.stdout.split()) <= set(zipfile.ZipFile(wheel).namelist())
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    env = os.environ | {"PYTHONPATH": str(tmp_path / "installed"), "STSBENCH_CACHE": str(tmp_path / "cache")}
    work = tmp_path / "work"
    work.mkdir()
    (work / "mine.py").write_text("def encode(texts):\n    return [[len(text), 1.0] for text in texts]\n")
    for line, printed in (
        ("published row esimcse-bert-base", "78.27"),
        ("run --encoder-module mine:encode --tasks sample --out run", "sample"),
        ("report run --out report --no-analyses", ""),
    ):
        python = [sys.executable, "-m", "stsbench", *line.split()]
        done = subprocess.run(python, cwd=work, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert printed in done.stdout
    assert (work / "report/index.html").is_file()


@pytest.fixture(scope="module")
def licences() -> dict[str, Any]:
    return runpy.run_path(str(CI / "licences.py"))


def test_every_installed_dependency_has_a_compatible_licence(
    licences: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert licences["main"]() == 0
    *rows, last = capsys.readouterr().out.splitlines()
    names = {row.split()[0].casefold() for row in rows}
    assert {"tqdm", *(Requirement(line).name.casefold() for line in project()["dependencies"])} <= names
    assert last == f"licences: {len(rows)} dependencies, {len(rows)} of them compatible"
    licence = licences["Licence"]
    found = [licence(name, "1", text, "x") for name, text in (("a", "MIT"), ("b", ""), ("c", "GPL-3.0"))]
    licences["main"].__globals__["licences"] = lambda: found
    assert licences["main"]() == 1
    assert re.findall(r"licences: (\w) 1", capsys.readouterr().err) == ["b", "c"]


def test_the_lowest_versions_are_those_that_pyproject_allows() -> None:
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.lower().replace("_", "-").split("==") for line in lines if "==" in line and line[0] != "#")
    for requirement in map(
        Requirement, [*project()["dependencies"], *project()["optional-dependencies"]["models"]]
    ):
        (lowest,) = re.findall(r">=([\d.]+)", str(requirement.specifier))
        tested = Version(pinned[requirement.name.lower().replace("_", "-")])
        assert tested in requirement.specifier, requirement
        assert tested.release[: len(Version(lowest).release)] == Version(lowest).release, requirement


EXAMPLE = "examples/github-actions.yml"
ACTION = "action.yml"


def action_steps() -> dict[str, str]:
    """Return the commands of the action by the names of its steps."""
    return {step["name"]: step["run"] for step in read_yaml(ACTION)["runs"]["steps"] if "run" in step}


def test_the_example_workflow_has_five_lines_of_steps_and_gives_what_the_action_takes() -> None:
    (job,) = read_yaml(EXAMPLE)["jobs"].values()
    assert len((ROOT / EXAMPLE).read_text(encoding="utf-8").partition("steps:\n")[2].splitlines()) <= 5
    inputs = read_yaml(ACTION)["inputs"]
    assert set() < set(job["steps"][-1]["with"]) <= set(inputs)
    for step in read_yaml(ACTION)["runs"]["steps"]:
        named = re.findall(
            r"inputs\.([\w-]+)", " ".join(map(str, [*step.get("env", {}).values(), step.get("with")]))
        )
        assert set(named) <= set(inputs)


@pytest.mark.parametrize(
    ("changes", "code", "answer", "changed"),
    [
        ({"MARGIN": "1"}, 1, "worse: minilm (dimensions 16): 0 of 1 scores are within a margin of 1", True),
        ({"MARGIN": "40"}, 0, "within margin: minilm (dimensions 16): 1 of 1 scores", True),
        ({"BASELINE": "", "AGAINST": "auto"}, 2, "minilm is not comparable with mteb-all", False),
        ({"BASELINE": "runs/none"}, 2, "stsbench: no run record at runs/none", False),
        (
            {"RUN": "made", "MEASURE": "--encoder-module lengths:encode --tasks 'sample'"},
            1,
            "worse: lengths",
            True,
        ),
    ],
)
def test_the_steps_of_the_action_run_as_they_are(
    changes: dict[str, str], code: int, answer: str, changed: bool, tmp_path: Path
) -> None:
    """pip alone is not the real one: it writes what it was asked to install."""
    bin_folder, summary = tmp_path / "bin", tmp_path / "summary.md"
    bin_folder.mkdir()
    for name, line in {
        "pip": f'echo "$@" > {tmp_path}/installed',
        "stsbench": f'exec {sys.executable} -m stsbench "$@"',
        "python": f'exec {sys.executable} "$@"',
    }.items():
        (bin_folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (bin_folder / name).chmod(0o755)
    (tmp_path / "lengths.py").write_text("def encode(texts):\n    return [[len(text), 1.0] for text in texts]\n")
    records = ROOT / "examples" / "records"
    given = {"RUN": str(records / "minilm-dim16"), "BASELINE": str(records / "minilm")}
    given |= {"MARGIN": "", "AGAINST": "", "DATA": "", "EXTRA": "minilm", "MEASURE": ""} | changes
    github = {"GITHUB_ACTION_PATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(summary), "RUNNER_TEMP": str(tmp_path)}
    env = (
        os.environ
        | given
        | github
        | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    )
    steps = action_steps()
    for name in ("Install", *(["Measure"] if given["MEASURE"] else []), "Check"):
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps[name]]
        done = subprocess.run(shell, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == (code if name == "Check" else 0), done.stderr
    assert (tmp_path / "installed").read_text() == f"install --quiet {ROOT}[minilm]\n"
    assert f"::{'error' if code else 'notice'} title=stsbench::{answer}" in done.stdout
    text = summary.read_text(encoding="utf-8")
    assert text.startswith(f"### {answer}")
    rows = text.partition("The five that changed the score most:")[2].splitlines()
    assert len([row for row in rows if row.startswith("| sample")]) == 5 * changed
    assert ("| sentence_a | sentence_b |" in text) is changed
