"""A release: its notes are the changelog's, it is one version everywhere, and its workflows hold no password."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
CHANGELOG = """# Changelog

## [Unreleased]

- Later.

## [1.0.0] - 2026-01-31

What it is.

### Added

- **A**: [see](a.md).
  More of it.

## [0.9.0] - 2025-12-01

- Earlier.

[1.0.0]: https://example.org
"""


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """Return the names of the release script."""
    if not (ROOT / ".ci" / "release.py").is_file():
        pytest.skip("needs .ci/release.py")
    return runpy.run_path(str(ROOT / ".ci" / "release.py"))


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """Return a maker of a project that is ready to be released as 1.0.0, but for what is changed."""

    def make(version: str = "1.0.0", changelog: str = CHANGELOG, citation: str = "") -> Path:
        (tmp_path / "stsbench").mkdir(exist_ok=True)
        (tmp_path / "stsbench" / "_version.py").write_text(f'"""x"""\n\n__version__ = "{version}"\n')
        (tmp_path / "CHANGELOG.md").write_text(changelog)
        (tmp_path / "CITATION.cff").write_text(citation or "version: 1.0.0\ndate-released: 2026-01-31\n")
        return tmp_path

    return make


def test_the_notes_of_a_release_are_its_section_of_the_changelog(
    script: dict[str, Any], project: Callable[..., Path]
) -> None:
    notes = script["released"](project(), "v1.0.0")
    assert notes == "What it is.\n\n### Added\n\n- **A**: [see](a.md).\n  More of it.\n"


def test_the_last_section_ends_before_the_links(script: dict[str, Any]) -> None:
    assert script["notes_of"](CHANGELOG, "0.9.0") == ("2025-12-01", "- Earlier.\n")


@pytest.mark.parametrize(
    ("tag", "changes", "sentence"),
    [
        ("v1.0.1", {}, "the tag is v1.0.1 and stsbench/_version.py says 1.0.0"),
        ("1.0.0", {}, "the tag is 1.0.0 and"),
        ("v2.0.0", {"version": "2.0.0"}, r"no section `## \[2.0.0\] - YYYY-MM-DD`"),
        ("v1.0.0", {"changelog": "## [1.0.0]\n\n- A.\n"}, "date what is released"),
        ("v1.0.0", {"changelog": "## [1.0.0] - 2026-01-31\n\n## [0.9.0] - 2025-12-01\n"}, "says nothing of 1.0.0"),
        ("v1.0.0", {"citation": "version: 0.9.0\ndate-released: 2026-01-31\n"}, "`version: 1.0.0`"),
        ("v1.0.0", {"citation": "version: 1.0.0\ndate-released: 2026-01-30\n"}, "`date-released: 2026-01-31`"),
    ],
)
def test_what_does_not_name_one_version_is_not_released(
    script: dict[str, Any], project: Callable[..., Path], tag: str, changes: dict[str, str], sentence: str
) -> None:
    with pytest.raises(script["NotReadyError"], match=sentence):
        script["released"](project(**changes), tag)


def test_the_released_version_has_notes(script: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert script["main"]([f"v{sb.__version__}"]) == 0
    assert len(capsys.readouterr().out) > 1000
    assert script["main"](["v0.0.0"]) == 1
    assert capsys.readouterr().err.startswith("release: the tag is v0.0.0 and stsbench/_version.py says ")


def workflow(name: str) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    if not (WORKFLOWS / name).is_file():
        pytest.skip(f"needs .github/workflows/{name}")
    # YAML reads the key `on` as true.
    content: dict[Any, Any] = yaml.safe_load((WORKFLOWS / name).read_text(encoding="utf-8"))
    return {"on" if key is True else key: value for key, value in content.items()}


def test_a_tag_is_published_only_after_the_gate_and_without_a_password() -> None:
    release = workflow("release.yml")
    jobs = release["jobs"]
    assert release["on"] == {"push": {"tags": ["v*"]}}
    assert jobs["gate"]["uses"] == "./.github/workflows/gate.yml"
    assert "workflow_call" in workflow("gate.yml")["on"]
    assert set(jobs["pypi"]["needs"]) == {"gate", "build"}
    assert jobs["github"]["needs"] == "pypi"
    assert jobs["pypi"]["permissions"] == {"id-token": "write"}
    assert jobs["pypi"]["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")
    # Only the job that needs a right has it, and none has a secret.
    assert release["permissions"] == {"contents": "read"}
    assert [name for name, job in jobs.items() if "contents" in job.get("permissions", {})] == ["github"]
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text(encoding="utf-8")
    commands = [step.get("run", "") for job in jobs.values() for step in job.get("steps", ())]
    assert any(".ci/release.py" in command for command in commands)


def test_the_documentation_is_built_with_warnings_as_errors_and_goes_to_pages() -> None:
    docs = workflow("docs.yml")
    commands = [step.get("run", "") for step in docs["jobs"]["build"]["steps"]]
    assert any(command.startswith("sphinx-build -W") for command in commands)
    assert docs["jobs"]["deploy"]["permissions"] == {"pages": "write", "id-token": "write"}
    assert docs["on"]["push"] == {"tags": ["v*"]}


@pytest.mark.parametrize("name", ["gate.yml", "release.yml", "docs.yml"])
def test_every_action_is_pinned_to_a_version(name: str) -> None:
    steps = [step for job in workflow(name)["jobs"].values() for step in job.get("steps", ())]
    for action in (step["uses"] for step in steps if "uses" in step):
        assert action.partition("@")[2] not in {"", "main", "master", "latest"}, action
