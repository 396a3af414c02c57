"""What holds for every analysis: one declaration gives verb, tables, figure, section, command and page."""

import inspect
import json
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from own_runs import OWN_SIMILARITY, analyse, options_of, write_pairs, write_words

import stsbench as sb
from stsbench.analysis import ANALYSES, analysis
from stsbench.analysis.base import Analysis
from stsbench.analysis.explain import Explanation, references
from stsbench.analysis.inputs import parameter
from stsbench.analysis.ties import Ties
from stsbench.cli.app import main
from stsbench.data.benchmarks import load_sample
from stsbench.data.tables import load_pairs
from stsbench.reports.report import analyses as report_section

ROOT = Path(__file__).resolve().parents[2]
A, B = "first.txt", "second.txt"
"""The files of word vectors of two models."""

every_analysis = pytest.mark.parametrize("name", ANALYSES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two models, files of pairs, and a run of the first model on one of them."""
    folder = tmp_path_factory.mktemp("world")
    for seed, name in enumerate((A, B)):
        write_words(folder / name, seed)
    pairs = write_pairs(folder / "a" / "pairs.tsv", pairs=200)
    sb.evaluate(str(folder / A), [pairs], out=folder / "run")
    return folder


@pytest.fixture(scope="module")
def runs(folder: Path) -> dict[str, sb.RunRecord]:
    """Return runs of the second model that differ from the first run in tasks, data, similarity or origin."""

    def measure(*tasks: Any, **protocol: str) -> sb.RunRecord:
        return sb.evaluate(str(folder / B), list(tasks), protocol=sb.protocol(**protocol))

    pairs = load_pairs(folder / "a" / "pairs.tsv")
    np.save(folder / "second.npy", np.random.default_rng(4).uniform(size=200))
    scores = [{"main_score": 0.6, "cosine_spearman": 0.6, "hf_subset": "default"}]
    results = {"task_name": "STS16", "mteb_version": "1.14.0", "scores": {"test": scores}}
    (folder / "STS16.json").write_text(json.dumps(results), encoding="utf-8")
    return {
        "other tasks": measure(write_pairs(folder / "other" / "other.tsv", seed=1), load_sample()),
        "more tasks": measure(pairs, write_pairs(folder / "more" / "more.tsv", seed=2)),
        "other gold scores": measure(write_pairs(folder / "range" / "pairs.tsv", seed=3, top=5.0)),
        "other similarity": measure(pairs, similarity="dot"),
        "fewer items": measure(write_pairs(folder / "few" / "pairs.tsv", pairs=40)),
        "given similarities": sb.import_results(folder / "second.npy", gold=folder / "a" / "pairs.tsv"),
        "imported": sb.import_results(folder / "STS16.json", model="second"),
    }


@pytest.fixture(scope="module")
def alone_of(folder: Path, runs: dict[str, sb.RunRecord]) -> Callable[[str], Analysis]:
    """Return a function that analyses the first run alone, once for all tests."""
    return cache(lambda name: analyse(name, folder, folder / "run"))


Alone = Callable[[str], Analysis]


@every_analysis
def test_a_result_has_frame_tables_figure_section_and_json(
    name: str, folder: Path, alone_of: Alone, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    result = alone_of(name)
    assert type(result) is analysis(name)
    assert len(result.frame) == len(result.to_dict()) > 0
    assert result.to_dict() == json.loads(result.to("json"))
    tables = result.table()
    assert all(table.caption and len(table.frame) for table in tables)
    assert all(note in str(result) for note in result.notes)
    assert all(isinstance(number, float) for number in result.numbers().values())
    answers = result.answer.of(result.headline)
    assert result.answer.question.endswith("?")
    assert (list(answers.index), answers.notna().all()) == ([A], True)
    section = result.section()
    assert (section.name, section.title, len(section.tables)) == (name, result.title, len(tables))
    assert section.figures[0].svg.startswith("<?xml")
    words = [word for option in options_of(name, folder).items() for word in typed(*option)]
    run_command(monkeypatch, name, folder / "run", *words, "--json")
    assert json.loads(capsys.readouterr().out) == result.to_dict()


@pytest.mark.parametrize(
    ("about", "references", "cells"),
    [
        ({}, (-1.0, 1.0), ["# *", "#", "-1.00..1.00"]),
        ({}, (0.0, 3.0), ["#", "# *", "0.00..3.00"]),
        ({"analysis": "density"}, (-1.0, 1.0), ["#", "#"]),
        ({"tasks": "STS16"}, (-1.0, 1.0), ["#", "#"]),
    ],
    ids=["above", "below", "another analysis", "other tasks"],
)
def test_answers_outside_the_range_of_the_references_have_a_mark(
    about: dict[str, str], references: tuple[float, float], cells: list[str], alone_of: Alone, monkeypatch: Any
) -> None:
    part = alone_of("geometry")
    values = {"a": 2.0, "b": -0.5}
    frame = pd.concat([part.frame.assign(mean_cosine=value, model=name) for name, value in values.items()])
    known = {"analysis": "geometry", "tasks": frame["task"].iloc[0]} | about
    rows = pd.DataFrame([{**known, "model": str(value), "value": value} for value in references])
    monkeypatch.setattr("stsbench.analysis.explain.references", lambda: rows)
    explanation = Explanation({"geometry": type(part)(frame)}, {"ties": "no pairs"}, {"a": None, "b": None})
    (table,) = explanation.table()
    _, _, *found = table.frame.iloc[0]
    assert found == [cell.replace("#", number) for cell, number in zip(cells, ("2.00", "-0.50", ""), strict=False)]
    assert list(table.frame["analysis"]) == ["geometry", "ties"]
    assert (cells[-1] == "#") == table.notes[0].startswith("No reference models")


def test_references_answer_every_question_on_the_seven_tasks_and_the_sample() -> None:
    rows = references()
    answered = rows.groupby("model")["analysis"].value_counts().unstack()
    assert set(answered.columns) == set(ANALYSES)
    assert set(answered.to_numpy().ravel()) == {1, 2}
    assert rows["value"].notna().all()


def typed(key: str, value: Any) -> list[str]:
    """Return an option as you type it."""
    if key in {"data", "query"}:
        values = [value] if isinstance(value, str) else value
        return [word for item in values for word in (f"--{key}", str(item))]
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return ["--top" if key == "k" else f"--{key.replace('_', '-')}", text]


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["stsbench", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code


def test_analyses_are_public_verbs_and_documented() -> None:
    how_to = (ROOT / "docs" / "how-to" / "explain.md").read_text(encoding="utf-8")
    for name in ANALYSES:
        assert getattr(sb, name.replace("-", "_")) is analysis(name).verb
        assert re.search(rf"^{name} +{re.escape(analysis(name).answer.question)} ", how_to, re.MULTILINE)


@every_analysis
def test_a_run_its_record_and_its_model_give_the_same_numbers(name: str, folder: Path) -> None:
    options = options_of(name, folder) | {key: "sample" for key in ("task",) if key in analysis(name).parameters}
    options |= {"tasks": ["sample"]} if "tasks" in analysis(name).parameters else {}
    run = sb.evaluate(str(folder / A), "sample")
    frames = [analysis(name).verb(subject, **options).frame for subject in (run, str(folder / A))]
    expected, found = (frame.drop(columns=["model", *(["sts"] if "sts" in frame else [])]) for frame in frames)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


OF_RECORDS = ("pair-kinds", "length-bias", "density", "dimensions", "length-collapse")
"""Analyses that use a run's items, gold scores or tasks; others use the model alone, so three runs suffice."""

SIMILAR = ("more tasks", "other similarity")
BESIDE = (*SIMILAR, "other tasks", "other gold scores", "fewer items", "given similarities")


@pytest.mark.parametrize(
    ("name", "beside"),
    [(name, beside) for name in ANALYSES for beside in (*(BESIDE if name in OF_RECORDS else SIMILAR), "imported")],
)
def test_a_run_has_the_same_rows_alone_and_beside_another(
    name: str, beside: str, folder: Path, runs: dict[str, sb.RunRecord], alone_of: Alone
) -> None:
    needs_vectors = beside == "given similarities" and name not in OWN_SIMILARITY
    if beside == "imported" or needs_vectors or (name, beside) == ("density", "other tasks"):
        with pytest.raises(sb.UserError, match="second"):
            analyse(name, folder, runs[beside], folder / "run")
        return
    alone, together = alone_of(name), analyse(name, folder, runs[beside], folder / "run")
    assert len(rows_of_first(alone.frame)) == len(alone.frame)
    pd.testing.assert_frame_equal(rows_of_first(together.frame), rows_of_first(alone.frame), check_exact=True)
    tables = [rows_of_first(table.frame) for table in together.table() if "model" in table.frame]
    for table in alone.table():
        if "model" in table.frame:
            assert any(has_rows(other, rows_of_first(table.frame)) for other in tables), table.caption
    assert "second" in str(together)
    if beside in {"other tasks", "more tasks"}:
        # A figure of one model does not name it.
        assert A in words_of(together.plot()) or set(together.frame["model"]) == {A}


def rows_of_first(frame: pd.DataFrame) -> pd.DataFrame:
    rows = frame[frame["model"] == A]
    rows = rows[rows["against"] == ""] if "against" in rows else rows
    return rows.reset_index(drop=True)


def has_rows(other: pd.DataFrame, table: pd.DataFrame) -> bool:
    """Return whether a table has the rows of another, perhaps with further columns."""
    return set(table) <= set(other) and table.equals(other[list(table)].astype(table.dtypes))


def words_of(figure: Any) -> str:
    texts = [artist.get_text() for artist in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
    return "\n".join([*texts, *(str(artist.get_label()) for artist in figure.findobj())])


class ToyTies(Ties):
    """Count ties.

    Returns:
        One row per model.
    """

    times: int = parameter(1, "How often.", limits=(1, 9))
    published: bool = parameter(False, "Add the rows of a paper.", flags=("--published",))

    def _published_rows(self) -> pd.DataFrame:
        return pd.DataFrame({"model": ["paper"], "task": ["sample"], "precision": ["as recorded"]})


def test_parameters_are_arguments_of_the_verb_and_are_checked() -> None:
    names = ["runs", "tasks", "data_dirs", "times", "published", "progress"]
    assert list(inspect.signature(ToyTies.verb).parameters) == names
    assert ToyTies.verb.__doc__.index("times: How often.") < ToyTies.verb.__doc__.index("Returns:")
    with pytest.raises(sb.UserError, match="--times 10: expected 1 to 9"):
        ToyTies(times=10)
    with pytest.raises(TypeError, match="unexpected keyword argument 'time'"):
        ToyTies.verb(time=2)


def test_a_registered_analysis_has_a_command_a_part_of_explain_and_a_section_of_the_report(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "toy", SimpleNamespace(ToyTies=ToyTies))
    monkeypatch.setitem(ANALYSES, "toy-ties", "toy:ToyTies")
    run_command(monkeypatch, "toy-ties", folder / "run", "--times", "3", "--published", "--json")
    assert json.loads(capsys.readouterr().out)[-1]["model"] == "paper"
    record = sb.evaluate(str(folder / A), "sample")
    assert "toy-ties" in sb.explain(record).parts
    report, _ = report_section({"a": record})
    assert report.section.parts[-1].title == "Toy ties"
