"""`sb.report`: a page that is whole, true to its records, and safe whatever they are called."""

import base64
import csv
import filecmp
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.published.catalogue import papers, row, tables
from stsbench.reports.write import PAGE

Make = Callable[..., sb.RunRecord]

_VOID = {"meta", "link", "img"}


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, and the text outside style and script."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data.strip())
        elif not self.open or self.open[-1] != "style":
            self.text += data

    def all(self, attribute: str) -> list[str]:
        return [str(found[attribute]) for _, found in self.elements if attribute in found]


def read(folder: Path, table: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{table}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_page_is_well_formed_and_needs_nothing_from_elsewhere(make_record: Make, tmp_path: Path) -> None:
    page = sb.report([make_record(), make_record("theirs", seed=3)], tmp_path / "out")
    found = Page(page)
    assert not found.open
    ids = found.all("id")
    assert len(set(ids)) == len(ids)
    for address in [*found.all("href"), *found.all("src")]:
        assert not re.match(r"(?i)[a-z]+:(?!,$)|//", address)
        if address.startswith("#"):
            assert address[1:] in ids
        elif not address.startswith("data:"):
            assert (page.parent / address).is_file()
    drawings = [attributes for tag, attributes in found.elements if tag == "svg"]
    assert drawings
    assert all(drawing["aria-label"] for drawing in drawings)
    assert "http" not in "".join(found.scripts)
    # What a drawing takes up is in the page.
    text = page.read_text(encoding="utf-8")
    assert text.count("url(") == text.count('"url(#') > 0
    assert set(re.findall(r'"url\(#([^)]*)\)', text)) <= set(ids)


def test_a_browser_may_run_and_take_nothing_but_the_pages_own(make_record: Make, tmp_path: Path) -> None:
    page = sb.report([make_record()], tmp_path / "out").read_text(encoding="utf-8")
    policy = re.search('<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "'self' data:"
    for element in ("style", "script"):
        (content,) = re.findall(f"<{element}>(.*?)</{element}>", page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[f"{element}-src"] == f"'sha256-{digest}'"
    # Neither would the policy let them pass.
    assert not re.search(r" (style|on\w+)=", page)


def test_two_builds_are_the_same_bytes(make_record: Make, tmp_path: Path) -> None:
    runs = [make_record(), make_record("theirs", seed=3)]
    for name in ("one", "two"):
        sb.report(runs, tmp_path / name)
    found = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert len(found) > 20
    same, other, broken = filecmp.cmpfiles(tmp_path / "one", tmp_path / "two", map(str, found), shallow=False)
    assert (len(same), other, broken) == (len(found), [], [])


def test_the_date_is_the_newest_records_or_what_is_asked_for(
    make_record: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_record(created="2026-01-02T00:00:00+00:00"), make_record(created="2025-01-02T00:00:00+00:00")]

    def dated(**options: Any) -> str:
        found = Page(sb.report(runs, tmp_path / "out", analyse=False, **options))
        return found.all("datetime")[0]

    assert dated() == "2026-01-02T00:00:00+00:00"
    assert dated(date="2020-02-29") == "2020-02-29"
    with pytest.raises(sb.UserError, match="no date"):
        dated(date="today")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert dated() == "1970-01-01T00:00:00+00:00"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "noon")
    with pytest.raises(sb.UserError, match="SOURCE_DATE_EPOCH"):
        dated()


def test_every_table_is_offered_in_full_precision(make_record: Make, tmp_path: Path) -> None:
    run = make_record()
    page = sb.report(run, tmp_path / "out", analyse=False)
    (own,) = read(page.parent, "scores-sts")
    assert float(own["toy"]) == 100 * (run.scores[0].value or 0)
    assert float(own["Avg."]) == 100 * (run.averages[0].value or 0)
    names = {path.stem for path in (page.parent / "tables").glob("*.csv")}
    assert names == {path.stem for path in (page.parent / "tables").glob("*.tex")}
    text = (page.parent / "README.md").read_text(encoding="utf-8")
    assert all(f"tables/{name}.csv" in text for name in names)
    found = Page(page)
    assert "95 % interval" in found.all("data-hint")[0]
    assert run.signature.splitlines()[0] in found.text


def test_hostile_names_and_notes_are_text(hostile: sb.RunRecord, make_record: Make, tmp_path: Path) -> None:
    page = sb.report([hostile, make_record(seed=3)], tmp_path / "out")
    found = Page(page)
    (script,) = found.scripts
    places = {"stsbench.render": "theme.js", "stsbench.reports": "page.js"}
    own = [files(package).joinpath("templates", name).read_text("utf-8") for package, name in places.items()]
    assert script == "".join(own).strip()
    assert "<script>alert('model')</script>" in found.text
    assert "\u05e9\u05dc\u05d5\u05dd" in found.text
    assert "{{ 7 * 7 }}" in found.text
    assert "\u202e" not in found.text
    assert not [name for _, attributes in found.elements for name in attributes if name.startswith("on")]
    text = (page.parent / "README.md").read_text(encoding="utf-8")
    outside = re.sub(r"(?ms)^(````+)sh\n.*?^\1$", "", text)
    assert outside != text
    assert not re.search(r"<(script|img)", outside)
    # What a figure calls a model must not be an element of the drawing either.
    for figure in (page.parent / "figures").glob("*.svg"):
        assert "<script" not in figure.read_text(encoding="utf-8")


def test_runs_of_different_protocols_stand_in_tables_of_their_own(
    make_record: Make, hash_encode: Callable[..., Any], toy_data: Callable[..., Any], tmp_path: Path
) -> None:
    other = sb.evaluate(hash_encode, [toy_data("toy", pairs=20)], intervals=sb.Intervals(None))
    page = sb.report([make_record(), make_record("same", seed=1), other], tmp_path / "out", analyse=False)
    first, second = read(page.parent, "scores-sts"), read(page.parent, "scores-sts-2")
    assert [len(first), len(second)] == [2, 1]
    assert all(all(values.values()) for values in [*first, *second])


def test_a_run_stands_under_its_published_row_with_the_difference(as_published: Make, tmp_path: Path) -> None:
    name = "esimcse-coling2022-3/esimcse-bert-base"
    run = as_published(name, "ffgcc/esimcse-bert-base-uncased", STS12=-1.0)
    page = sb.report(run, tmp_path / "out", analyse=False)
    rows = read(page.parent, "esimcse-coling2022-3")
    (place,) = [number for number, found in enumerate(rows) if found["source"] == "here"]
    assert float(rows[place - 1]["STS12"]) == row(name).cell("STS12").value
    assert float(rows[place]["STS12"]) == pytest.approx(float(rows[place - 1]["STS12"]) - 1)
    hints = Page(page).all("data-hint")
    assert any(hint.endswith("published 73.40, difference -1.00: fail") for hint in hints)
    assert any(hint.endswith("published 83.27, difference +0.00: pass") for hint in hints)
    verdict = {found["task"]: found["verdict"] for found in read(page.parent, "check-1")}
    assert (verdict["STS12"], verdict["STS13"]) == ("fail", "pass")


def test_what_was_not_measured_is_listed_instead_of_empty_cells(as_published: Make, tmp_path: Path) -> None:
    tasks = ("STS12", "STS13")
    run = as_published("esimcse-coling2022-3/esimcse-bert-base", "ffgcc/esimcse-bert-base-uncased", tasks)
    page = sb.report(run, tmp_path / "out", analyse=False)
    rows = read(page.parent, "esimcse-coling2022-3")
    assert set(rows[0]) == {"model", "source", "STS12", "STS13"}
    text = (page.parent / "README.md").read_text(encoding="utf-8").partition("## Not measured")[2]
    assert "Table 3: STS test sets (COLING 2022): STS14, STS15, STS16, STS-B, SICK-R, Avg." in text
    assert "Findings of ACL 2022, table 2: none of the values is a score of these runs" in text


@pytest.mark.parametrize(
    ("paper", "name"),
    [
        ("esimcse", "esimcse-coling2022"),
        ("mocose", "mocose-acl2022"),
        ("simcse", "simcse-slides"),
        ("gaussian-dropout", "gaussian-dropout-simcse-cs224n"),
        ("esimcse-arxiv-v1", "esimcse-arxiv-v1"),
    ],
)
def test_a_papers_layout_has_all_its_tables_in_its_order(
    paper: str, name: str, as_published: Make, tmp_path: Path
) -> None:
    run = as_published("mocose-acl2022-1/mocose-bert-base", "mine")
    page = sb.report(run, tmp_path / "out", paper=paper)
    wanted = [table for table in tables().values() if table.paper == name]
    ids = Page(page).all("id")
    assert [entry for entry in ids if entry in tables()] == [table.name for table in wanted if table.rows]
    for table in wanted:
        if table.rows:
            found = read(page.parent, table.name)
            assert set(found[0]) == {"model", "source", *(column.name for column in table.columns)}
            assert [entry["source"] for entry in found].count("published") == len(table.rows)
        else:
            assert all(note in Page(page).text for note in table.notes)
    assert papers()[name].title in Page(page).text


def test_a_run_stands_in_no_table_of_another_models_variants(as_published: Make, tmp_path: Path) -> None:
    page = sb.report(as_published("mocose-acl2022-1/mocose-bert-base", "mine"), tmp_path / "out", paper="mocose")
    of_mocose = [name for name, table in tables().items() if table.paper == "mocose-acl2022" and table.rows]
    own = {name: sum(found["source"] == "here" for found in read(page.parent, name)) for name in of_mocose}
    assert {name for name, rows in own.items() if rows} == {"mocose-acl2022-1"}


def test_no_run_takes_the_place_of_another_with_its_label(make_record: Make, tmp_path: Path) -> None:
    runs = [make_record("a"), make_record("a"), make_record("a (1)")]
    page = sb.report(runs, tmp_path / "out", analyse=False)
    names = [found["model"] for found in read(page.parent, "scores-sts")]
    assert len(set(names)) == 3


def test_an_unknown_paper_is_told_with_the_known_ones(make_record: Make, tmp_path: Path) -> None:
    with pytest.raises(sb.UserError, match="mocose-acl2022"):
        sb.report(make_record(), tmp_path / "out", paper="bert")
    assert not (tmp_path / "out").exists()


def test_a_report_is_replaced_and_anything_else_is_left_alone(make_record: Make, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    sb.report(make_record(), folder, title="first", analyse=False)
    (folder / "tables" / "left-over.csv").touch()
    page = sb.report(make_record(), folder, title="second", analyse=False)
    assert "second" in Page(page).text
    assert not (folder / "tables" / "left-over.csv").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".out")] == []
    own = tmp_path / "own"
    own.mkdir()
    (own / PAGE).write_text("mine")
    with pytest.raises(sb.UserError, match="something else than a report"):
        sb.report(make_record(), own, analyse=False)
    assert (own / PAGE).read_text() == "mine"


def test_nothing_is_left_of_a_report_that_failed(
    make_record: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    sb.report(make_record(), folder, title="whole", analyse=False)

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("stsbench.reports.write.to_html", full)
    with pytest.raises(sb.UserError, match="No space left"):
        sb.report(make_record(), folder, title="half", analyse=False)
    assert "whole" in Page(folder / PAGE).text
    assert sorted(path.name for path in tmp_path.iterdir() if "out" in path.name) == ["out"]


def test_many_runs_fit_on_a_page_that_says_what_it_leaves_out(make_record: Make, tmp_path: Path) -> None:
    first = make_record()
    runs = [
        first.model_copy(update={"model": first.model.model_copy(update={"name": f"model {number}"})})
        for number in range(50)
    ]
    page = sb.report(runs, tmp_path / "out")
    assert len(read(page.parent, "scores-sts")) == 50
    text = Page(page).text
    assert "analyses: made for at most 5 runs, here are 50" in text
    assert "comparisons: made for at most 5 runs, here are 50" in text


def test_the_report_of_one_model_stays_small(make_record: Make, tmp_path: Path) -> None:
    page = sb.report(make_record(), tmp_path / "out")
    size = sum(path.stat().st_size for path in page.parent.rglob("*") if path.is_file())
    assert size < 5_000_000


def test_training_curves_come_from_the_log_beside_the_record(make_record: Make, tmp_path: Path) -> None:
    from stsbench.records.store import load_run, save_run

    save_run(make_record(), tmp_path / "trained")
    lines = [
        {"kind": "dev", "step": 0, "dev": 0.5},
        {"kind": "train", "step": 1, "loss": 0.25},
        {"kind": "dev", "step": 2, "dev": 0.75},
        {"kind": "dev", "step": 4, "dev": 0.625},
    ]
    log = tmp_path / "trained" / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    run = load_run(tmp_path / "trained")
    page = sb.report(run, tmp_path / "out", analyse=False)
    (found,) = read(page.parent, "training-summary")
    assert (found["steps"], found["best dev x 100"], found["at step"]) == ("4", "75.0", "2")
    assert (page.parent / "figures" / "training-dev.svg").is_file()
    log.write_text("not JSON\n", encoding="utf-8")
    page = sb.report(run, tmp_path / "out", analyse=False)
    assert "its log.jsonl cannot be read" in Page(page).text
    assert not (page.parent / "figures" / "training-dev.svg").exists()


def test_runs_called_alike_but_for_the_seed_are_told_as_seeds(make_record: Make, tmp_path: Path) -> None:
    runs = [make_record(f"simcse-seed{number}", seed=number) for number in (1, 2, 3)]
    page = sb.report([*runs, make_record("other", seed=9)], tmp_path / "out", analyse=False)
    found = {entry["task"]: entry for entry in read(page.parent, "seeds-1")}
    scores = [100 * (run.scores[0].value or 0) for run in runs]
    assert found["toy"]["runs"] == "3"
    assert float(found["toy"]["mean"]) == pytest.approx(sum(scores) / 3)
    assert (page.parent / "figures" / "seeds-own.svg").is_file()


def test_published_seeds_and_logs_stand_beside_a_run_of_their_system(as_published: Make, tmp_path: Path) -> None:
    run = as_published("unsup-simcse-bert-base", "princeton-nlp/unsup-simcse-bert-base-uncased")
    page = sb.report(run, tmp_path / "simcse", analyse=False)
    assert {"task", "runs", "mean"} < set(read(page.parent, "seeds-unsup-simcse-bert-base")[0])
    run = as_published("esimcse-coling2022-3/esimcse-bert-base", "ffgcc/esimcse-bert-base-uncased")
    page = sb.report(run, tmp_path / "esimcse", analyse=False)
    assert (page.parent / "figures" / "training-esimcse-bert-base.svg").is_file()


def test_the_page_says_the_level_that_the_intervals_have(tmp_path: Path) -> None:
    run = sb.evaluate(
        lambda texts: [[len(s), s.count("e"), 1.0] for s in texts],
        "sample",
        intervals=sb.Intervals(level=0.9),
    )
    page = sb.report(run, tmp_path / "report", analyse=False).read_text(encoding="utf-8")
    assert "90 % interval" in page
    assert "95 %" not in page
