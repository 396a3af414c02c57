"""Every registered analysis is complete, and one that is registered appears wherever analyses do."""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib.figure
import pandas as pd
import pytest

import stsbench as sb
from stsbench.analysis import ANALYSES, analyses, analysis
from stsbench.analysis.base import OfTasks
from stsbench.analysis.command import Subjects
from stsbench.analysis.parameters import parameter
from stsbench.base.progress import silent
from stsbench.cli.app import main
from stsbench.encoders.use import Use
from stsbench.render.figures import new_figure
from stsbench.render.table import Table, Tables
from stsbench.reports.report import analyses as report_section

ROOT = Path(__file__).resolve().parents[2]
NEEDED: dict[str, dict[str, Any]] = {
    "retrieve": {"query": "A dog runs."},
    "repetition-bias": {"queries": 5, "seeds": 1},
}
each_analysis = pytest.mark.parametrize("name", ANALYSES)


@each_analysis
def test_an_analysis_has_numbers_a_table_a_figure_and_a_section(
    name: str, hash_encode: Callable[..., Any]
) -> None:
    result = analysis(name).verb(hash_encode, **NEEDED.get(name, {}))
    assert type(result) is analysis(name)
    assert isinstance(result.frame, pd.DataFrame)
    assert len(result.frame)
    assert result.to_dict() == json.loads(result.to("json"))
    assert len(result.to_dict()) == len(result.frame)
    tables = result.table()
    assert all(table.caption for table in tables)
    assert str(tables) == str(result)
    assert result._repr_html_().startswith("<table>")
    assert isinstance(result.plot(), matplotlib.figure.Figure)
    section = result.section()
    assert (section.name, section.title) == (name, result.title)
    assert [table.name for table in section.tables] == [f"{name}-{n}" for n, _ in enumerate(tables, 1)]
    (figure,) = section.figures
    assert figure.svg.startswith("<?xml")


@each_analysis
def test_an_analysis_is_a_public_verb_and_has_its_place_in_the_documentation(name: str) -> None:
    verb = name.replace("-", "_")
    assert getattr(sb, verb) is analysis(name).verb
    assert verb in sb.__all__
    how_to = (ROOT / "docs" / "how-to" / "explain.md").read_text(encoding="utf-8")
    result = analysis(name)
    assert f"| `{name}` | {result.question} | {result.look_for} |" in how_to
    assert re.search(
        rf"autofunction:: {verb}$",
        (ROOT / "docs" / "reference" / "api" / "stsbench.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )


class Counts(OfTasks):
    """Count pairs.

    Returns:
        One row per model.
    """

    name = "toy-counts"
    title = "Toy counts"
    question = "how many?"
    look_for = "ones"
    examples = ("stsbench toy-counts runs/a",)

    times: int = parameter(1, "What each model counts.", limits=(1, 9))
    kinds: list[str] = parameter((), "Names, with commas.", example="a,b")
    published: bool = parameter(False, "Say so.", flags=("--published",))

    def measure(self, model: str, given: Any) -> Any:
        yield {"task": given[0].task, "count": self.times, "kinds": len(self.kinds), "published": self.published}

    def table(self) -> Tables:
        return Tables([Table(self.frame, "Models counted")])

    def plot(self) -> Any:
        return new_figure()


def test_parameters_are_checked_and_named_in_the_verb() -> None:
    assert list(inspect.signature(Counts.verb).parameters) == [
        "runs",
        "tasks",
        "data_dirs",
        "times",
        "kinds",
        "published",
        "progress",
    ]
    assert "times: What each model counts." in Counts.verb.__doc__
    with pytest.raises(sb.UserError, match="times 10: expected 1 to 9"):
        Counts(times=10)
    with pytest.raises(TypeError, match="unexpected keyword argument 'time'"):
        Counts.verb(time=2)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register an analysis: its own module, and one line."""
    module = ModuleType("toy_counts")
    module.Counts = Counts  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toy_counts", module)
    monkeypatch.setitem(ANALYSES, "toy-counts", "toy_counts:Counts")
    yield
    assert list(analyses())[-1] == "toy-counts"


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["stsbench", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code


@pytest.mark.usefixtures("toy")
def test_a_registered_analysis_has_a_command_a_part_of_explain_and_a_section_of_the_report(
    hash_encode: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    record = sb.evaluate(hash_encode, "sample", intervals=sb.Intervals(None), out=tmp_path / "run")
    run_command(monkeypatch, "--help")
    listed = capsys.readouterr().out
    assert "toy-counts" in listed[listed.index("Analyses") :]
    run_command(monkeypatch, "toy-counts", tmp_path / "run", "--times", 3, "--kinds", "a,b", "--json")
    assert [(row["count"], row["kinds"]) for row in json.loads(capsys.readouterr().out)] == [(3, 2)]
    run_command(monkeypatch, "toy-counts", tmp_path / "run", "--markdown", "--figure", tmp_path / "toy.svg")
    assert "**Models counted**" in capsys.readouterr().out
    assert (tmp_path / "toy.svg").is_file()

    explanation = sb.explain(record, leave_out=True, published=True)
    assert explanation["toy-counts"].frame["published"].all()
    sections = report_section({"a": record}, sb.Intervals(), (), silent).section.parts
    assert [section.title for section in sections][-1] == "Toy counts"
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    try:
        import site_links
    finally:
        sys.path.pop(0)
    assert "| `toy-counts` | how many? | ones |" in site_links.rows()
    linked = "| [`toy-counts`](../reference/commands/toy-counts.md) | how many? | ones |"
    assert linked in site_links.in_site(f"\n{site_links.rows()}", "how-to/explain")


@pytest.mark.parametrize(
    ("options", "name"), [(Use(pooling="cls"), "--pooling"), (Use(max_length=9), "--max-length")]
)
def test_an_option_of_loading_is_refused_if_there_is_no_model_to_load(
    options: Use, name: str, hash_encode: Callable[..., Any], tmp_path: Path
) -> None:
    sb.evaluate(hash_encode, "sample", out=tmp_path, intervals=sb.Intervals(None))
    folder = str(tmp_path)
    for runs, models in (([folder], []), ([], [folder])):
        with pytest.raises(sb.UserError, match=f"^{name} applies only to models that are loaded"):
            Subjects(runs, models).load(options)
        assert Subjects(runs, models).load(Use()) == [folder]
    assert Subjects([folder]).load(options, has_others=True) == [folder]
