"""The public API: every name is there, and asking for none of them loads nothing heavy."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import stsbench as sb


@pytest.mark.parametrize("name", sb.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(sb, name) is not None
    assert name in dir(sb)


def test_every_public_name_and_no_other_has_a_home() -> None:
    assert set(sb.__all__) == {*sb._HOMES, "__version__"}


VERBS = {
    "best_of",
    "board",
    "check",
    "cite",
    "compare",
    "compress",
    "density",
    "diagnose",
    "dimensions",
    "embed_file",
    "evalrank",
    "evaluate",
    "explain",
    "explore",
    "export_results",
    "fit",
    "geometry",
    "hubness",
    "import_results",
    "length_bias",
    "pair_kinds",
    "length_collapse",
    "plan",
    "rank",
    "report",
    "reproduce",
    "repetition_bias",
    "retrieve",
    "show",
    "spectrum",
    "stability",
    "sweep",
    "ties",
    "train",
}


def test_the_public_names_are_the_verbs_and_few_that_scripts_need_beside_them() -> None:
    assert set(sb.__all__) > VERBS
    assert set(sb.__all__) - VERBS == {
        "Classification",
        "Intervals",
        "PairView",
        "RunRecord",
        "SavedVectors",
        "UserError",
        "__version__",
        "default_tasks",
        "embed",
        "load",
        "load_pairs",
        "load_run",
        "model_card",
        "probes",
        "protocol",
        "reproductions",
    }


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_option_of_a_verb_is_spelled_out(verb: str) -> None:
    kinds = {parameter.kind for parameter in inspect.signature(getattr(sb, verb)).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_the_default_tasks_are_the_seven_where_they_are_and_else_the_sample(
    benchmark_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert sb.default_tasks() == "sample"
    assert sb.default_tasks([benchmark_folder]) == "sts"
    (tmp_path / "empty").mkdir()
    with pytest.raises(sb.UserError, match="was not found"):
        sb.default_tasks([tmp_path / "empty"])
    monkeypatch.setenv("STSBENCH_DATA", str(benchmark_folder))
    assert sb.default_tasks() == "sts"


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'stsbench' has no attribute 'evaluat'"):
        _ = sb.evaluat


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, stsbench; print({'numpy', 'torch', 'pandas', 'scipy', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_the_version_is_that_of_the_installed_package() -> None:
    from importlib.metadata import version

    assert version("stsbench") == sb.__version__
