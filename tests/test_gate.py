"""The gate with stand-ins for its tools: what it keeps, what it runs, and how it says what failed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

GATE = Path(__file__).resolve().parents[1] / ".ci" / "run"
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


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the gate and nothing behind its tools."""
    if not GATE.is_file():
        pytest.skip("needs .ci/run")
    for name in (".ci", "tools/bin", "stsbench"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(GATE, tmp_path / ".ci")
    for name in TOOLS:
        (tmp_path / "tools" / "bin" / name).write_text(TOOL, encoding="utf-8")
        (tmp_path / "tools" / "bin" / name).chmod(0o755)
    for name, text in (("README.md", README), ("pyproject.toml", "[project]\n"), ("constraints.txt", "a==1\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "stsbench" / "_version.py").write_text("__version__ = '1'\n", encoding="utf-8")
    return tmp_path


def gate(folder: Path, *, failing: str = "", ci: str = "") -> subprocess.CompletedProcess[str]:
    surroundings = os.environ | {"FAILING": failing, "CI": ci, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [folder / ".ci" / "run"], env=surroundings, capture_output=True, text=True, check=False, timeout=60
    )


def environments(folder: Path) -> int:
    """Return how many environments the gate made."""
    return (folder / "environments").read_text(encoding="utf-8").count("made")


def test_the_gate_passes_if_every_step_does_and_lists_them(checkout: Path) -> None:
    done = gate(checkout)
    assert done.returncode == 0, done.stderr
    steps = {line.split()[0]: line.split()[-1] for line in done.stdout.splitlines() if " s  " in line}
    names = ("lint", "format", "scripts", "imports", "types", "site", "pages", "tests")
    assert steps == dict.fromkeys(names, "passed")


@pytest.mark.parametrize(
    ("tool", "steps"),
    [
        ("ruff", ["lint", "format"]),
        ("oxlint", ["scripts"]),
        ("lint-imports", ["imports"]),
        ("mypy", ["types"]),
        ("sphinx-build", ["site"]),
        ("pytest", ["pages", "tests"]),
    ],
)
def test_a_step_that_fails_is_named_with_its_output_and_fails_the_gate(
    checkout: Path, tool: str, steps: list[str]
) -> None:
    done = gate(checkout, failing=tool)
    assert done.returncode == 1
    failed = [line.split()[0] for line in done.stdout.splitlines() if line.endswith("FAILED with 3")]
    assert sorted(failed) == sorted(steps)
    assert f"{tool} speaks" in done.stdout
    for step in set(steps) - {"tests"}:
        assert f"--- {step} failed:\n{tool} speaks\n" in done.stdout


def test_the_environment_is_kept_until_what_it_is_made_of_changes(checkout: Path) -> None:
    gate(checkout)
    gate(checkout)
    assert environments(checkout) == 1
    for number, name in enumerate(("pyproject.toml", "constraints.txt", "stsbench/_version.py"), start=2):
        with (checkout / name).open("a", encoding="utf-8") as file:
            file.write("# another\n")
        gate(checkout)
        assert environments(checkout) == number
    (checkout / "README.md").write_text(README.replace(">>", ">> "), encoding="utf-8")
    gate(checkout)
    assert environments(checkout) == number + 1


def test_in_ci_the_environment_is_always_a_fresh_one(checkout: Path) -> None:
    gate(checkout)
    (checkout / ".venv" / "left-behind").touch()
    gate(checkout, ci="true")
    assert environments(checkout) == 2
    assert not (checkout / ".venv" / "left-behind").exists()


def test_an_environment_that_could_not_be_made_ends_the_gate_and_is_not_kept(checkout: Path) -> None:
    (checkout / "README.md").write_text(README.replace("cp -r", "false &&"), encoding="utf-8")
    assert gate(checkout).returncode != 0
    assert not (checkout / "build").exists()
    assert not (checkout / ".venv" / ".pins").exists()


def test_a_readme_without_the_command_ends_the_gate(checkout: Path) -> None:
    (checkout / "README.md").write_text("# Nothing\n", encoding="utf-8")
    done = gate(checkout)
    assert done.returncode == 1
    assert "README.md has no" in done.stdout
