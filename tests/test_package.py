"""The project as others meet it: the wheel outside the checkout, the files that hosts and citations read."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb

ROOT = Path(__file__).resolve().parents[1]


def from_yaml(path: str) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built wheel."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "stsbench"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not listed:
        pytest.skip("needs git")
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert set(listed) <= packed


@pytest.mark.long
@pytest.mark.minilm
def test_the_wheel_measures_the_sample_and_reports_it_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(place)
    work = tmp_path / "work"
    work.mkdir()
    env = os.environ | {"PYTHONPATH": str(place), "STSBENCH_CACHE": str(tmp_path / "cache")}

    def python(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=work, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert str(place) in python("-c", "import stsbench; print(stsbench.__file__)")
    assert "STS16" in python("-m", "stsbench", "data", "list")
    assert "78.27" in python("-m", "stsbench", "published", "row", "esimcse-bert-base")
    python("-m", "stsbench", "run", "--tasks", "sample", "--out", "run")
    python("-m", "stsbench", "report", "run", "--out", "report", "--no-analyses")
    assert (work / "report" / "index.html").is_file()


def test_the_citation_is_of_this_version() -> None:
    citation = from_yaml("CITATION.cff")
    assert citation["version"] == sb.__version__
    dated = f"## [{sb.__version__}] - {citation['date-released']}"
    assert dated in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()


def test_the_gate_runs_on_every_python_that_is_supported() -> None:
    rows = from_yaml(".github/workflows/gate.yml")["jobs"]["gate"]["strategy"]["matrix"]["include"]
    named = [name for name in project()["project"]["classifiers"] if "Python :: 3." in name]
    assert [f"Programming Language :: Python :: {row['python']}" for row in rows] == named
    tried = [row["python"] for row in rows if not row["untried"]]
    assert tried == ["3.11"]


def test_issue_templates_ask_for_commands_that_exist() -> None:
    from stsbench.cli.app import commands

    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"):
        template = from_yaml(str(path.relative_to(ROOT)))
        text = path.read_text(encoding="utf-8")
        asked = [words.split()[0].strip("`") for words in text.split("stsbench ")[1:]]
        assert asked
        assert set(asked) <= set(commands()), path
        assert all(part["validations"]["required"] for part in template["body"])
