"""`sb.report`: a complete, safe page with the numbers of its records."""

import base64
import csv
import filecmp
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from own_runs import write_pairs, write_words

import stsbench as sb
from stsbench.analysis import ANALYSES
from stsbench.published.catalogue import papers, row, tables
from stsbench.records.store import save_run
from stsbench.reports.write import PAGE

Make = Callable[..., sb.RunRecord]

_VOID = {"meta", "link", "img"}


class Page(HTMLParser):
    """The elements of a page, and its text outside style and script."""

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
        return [str(of[attribute]) for _, of in self.elements if attribute in of]


def read(folder: Path, table: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{table}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_page_is_well_formed_and_self_contained(make_record: Make, tmp_path: Path) -> None:
    page = sb.report([make_record(), make_record("theirs", seed=3)], tmp_path / "out")
    parsed, text = Page(page), page.read_text(encoding="utf-8")
    assert not parsed.open
    ids = parsed.all("id")
    assert len(set(ids)) == len(ids)
    for address in [*parsed.all("href"), *parsed.all("src")]:
        assert not re.match(r"(?i)[a-z]+:(?!,$)|//", address)
        if address.startswith("#"):
            assert address[1:] in ids
        elif not address.startswith("data:"):
            assert (page.parent / address).is_file()
    assert all(attributes["aria-label"] for tag, attributes in parsed.elements if tag == "svg")
    assert set(re.findall(r'"url\(#([^)]*)\)', text)) <= set(ids)
    # The policy allows the page's own style and script, by their hashes, and nothing else.
    policy = re.search('<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy[1].split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "'self' data:"
    for element in ("style", "script"):
        (content,) = re.findall(f"<{element}>(.*?)</{element}>", text, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[f"{element}-src"] == f"'sha256-{digest}'"
    assert not re.search(r" (style|on\w+)=", text)


def test_two_builds_are_the_same_bytes(make_record: Make, tmp_path: Path) -> None:
    runs = [make_record(), make_record("theirs", seed=3)]
    for name in ("one", "two"):
        sb.report(runs, tmp_path / name)
    names = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert len(names) > 20
    same, other, broken = filecmp.cmpfiles(tmp_path / "one", tmp_path / "two", map(str, names), shallow=False)
    assert (len(same), other, broken) == (len(names), [], [])


def test_the_date_is_given_or_the_newest_records(
    make_record: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_record(created="2026-01-02T00:00:00+00:00"), make_record(created="2025-01-02T00:00:00+00:00")]

    def dated(**options: Any) -> str:
        return Page(sb.report(runs, tmp_path / "out", analyse=False, **options)).all("datetime")[0]

    assert dated() == "2026-01-02T00:00:00+00:00"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert dated() == "1970-01-01T00:00:00+00:00"
    with pytest.raises(sb.UserError, match="mocose-acl2022"):
        dated(paper="bert")


def test_tables_have_full_precision_and_intervals_are_tooltips(make_record: Make, tmp_path: Path) -> None:
    run = make_record(protocol=make_record().protocol.model_copy(update={"level": 0.9}))
    page = sb.report(run, tmp_path / "out", analyse=False)
    (row,) = read(page.parent, "scores-sts")
    assert float(row["toy"]) == 100 * (run.scores[0].value or 0)
    assert float(row["Avg."]) == 100 * (run.averages[0].value or 0)
    names = {path.stem for path in (page.parent / "tables").glob("*.csv")}
    assert names == {path.stem for path in (page.parent / "tables").glob("*.tex")}
    text = (page.parent / "README.md").read_text(encoding="utf-8")
    assert all(f"tables/{name}.csv" in text for name in names)
    hints = {row["task"]: (float(row["low"]), float(row["high"])) for row in read(page.parent, "every-interval")}
    low, high = (100 * limit for limit in run.scores[0].interval or ())
    assert hints["toy"] == pytest.approx((low, high))
    assert f"90 % interval {low:.2f} to {high:.2f}" in Page(page).all("data-hint")
    assert run.signature.splitlines()[0] in Page(page).text


def test_hostile_names_and_notes_are_text(hostile: sb.RunRecord, make_record: Make, tmp_path: Path) -> None:
    page = sb.report([hostile, make_record(seed=3)], tmp_path / "out")
    parsed = Page(page)
    assert len(parsed.scripts) == 1
    assert "<script>alert('model')</script>" in parsed.text
    assert "{{ 7 * 7 }}" in parsed.text
    assert "\u05e9\u05dc\u05d5\u05dd" in parsed.text
    assert "\u202e" not in parsed.text
    assert not [name for _, attributes in parsed.elements for name in attributes if name.startswith("on")]
    text = (page.parent / "README.md").read_text(encoding="utf-8")
    outside = re.sub(r"(?ms)^(````+)sh\n.*?^\1$", "", text)
    assert outside != text
    assert not re.search(r"<(script|img)", outside)
    for figure in (page.parent / "figures").glob("*.svg"):
        assert "<script" not in figure.read_text(encoding="utf-8")


def test_runs_of_different_protocols_have_tables_of_their_own(
    make_record: Make, hash_encode: Callable[..., Any], toy_data: Callable[..., Any], tmp_path: Path
) -> None:
    other = sb.evaluate(hash_encode, [toy_data("toy", pairs=20)], intervals=sb.Intervals(None))
    runs = [make_record("a"), make_record("a", seed=1), other]
    page = sb.report(runs, tmp_path / "out", analyse=False)
    first, second = read(page.parent, "scores-sts"), read(page.parent, "scores-sts-2")
    assert [len(first), len(second)] == [2, 1]
    assert len({row["model"] for row in [*first, *second]}) == 3
    assert all(all(values.values()) for values in [*first, *second])


def test_a_run_is_below_its_published_row_with_the_difference(as_published: Make, tmp_path: Path) -> None:
    name = "esimcse-coling2022-3/esimcse-bert-base"
    run = as_published(name, "ffgcc/esimcse-bert-base-uncased", STS12=-1.0)
    page = sb.report(run, tmp_path / "out", analyse=False)
    rows = read(page.parent, "esimcse-coling2022-3")
    (place,) = [number for number, found in enumerate(rows) if found["source"] == "here"]
    assert float(rows[place - 1]["STS12"]) == row(name).cell("STS12").value
    assert float(rows[place]["STS12"]) == pytest.approx(float(rows[place - 1]["STS12"]) - 1)
    hints = Page(page).all("data-hint")
    assert any(hint.endswith("published 73.40, difference -1.00: fail") for hint in hints)
    verdict = {of["task"]: of["verdict"] for of in read(page.parent, "check-1")}
    assert (verdict["STS12"], verdict["STS13"]) == ("fail", "pass")
    # No run has a place in a table of another model's variants.
    variants = [of.name for of in tables().values() if of.paper == "mocose-acl2022"][1:]
    assert not any((page.parent / "tables" / f"{name}.csv").exists() for name in variants)


@pytest.mark.parametrize(
    ("paper", "name"),
    [
        ("esimcse", "esimcse-coling2022"),
        ("gaussian-dropout", "gaussian-dropout-simcse-cs224n"),
        ("diffcse", "diffcse"),
    ],
)
def test_a_papers_layout_has_all_its_tables_in_order(
    paper: str, name: str, as_published: Make, tmp_path: Path
) -> None:
    page = sb.report(as_published("mocose-acl2022-1/mocose-bert-base", "mine"), tmp_path / "out", paper=paper)
    parsed, expected = Page(page), [table for table in tables().values() if table.paper == name]
    assert [of for of in parsed.all("id") if of in tables()] == [table.name for table in expected if table.rows]
    for table in expected:
        if table.rows:
            found = read(page.parent, table.name)
            assert set(found[0]) == {"model", "source", *(column.name for column in table.columns)}
            assert [entry["source"] for entry in found].count("published") == len(table.rows)
        else:
            assert all(note in parsed.text for note in table.notes)
    assert papers()[name].title in parsed.text


def test_a_report_is_replaced_as_a_whole_and_anything_else_is_kept(
    make_record: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = tmp_path / "out", tmp_path / "own"
    sb.report(make_record(), folder, title="first", analyse=False)
    (folder / "tables" / "left-over.csv").touch()
    assert "second" in Page(sb.report(make_record(), folder, title="second", analyse=False)).text
    assert not (folder / "tables" / "left-over.csv").exists()
    other.mkdir()
    (other / PAGE).write_text("mine")
    with pytest.raises(sb.UserError, match="something other than a report"):
        sb.report(make_record(), other, analyse=False)
    assert (other / PAGE).read_text() == "mine"

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("stsbench.reports.write.to_html", full)
    with pytest.raises(sb.UserError, match="No space left"):
        sb.report(make_record(), folder, title="half", analyse=False)
    assert "second" in Page(folder / PAGE).text
    assert sorted(path.name for path in tmp_path.iterdir() if "out" in path.name) == ["out"]


def test_own_pairs_have_every_analysis_if_their_sentences_are_given(tmp_path: Path) -> None:
    pairs = tmp_path / "own" / "pairs.tsv"
    write_pairs(pairs)
    run = sb.evaluate(str(write_words(tmp_path / "words.txt")), data=pairs)
    parsed = Page(sb.report(run, tmp_path / "out", data=[pairs]))
    missing = set(ANALYSES) - set(parsed.all("id"))
    assert not missing
    assert "kinds of pairs by their words" not in parsed.text
    cells = [of for tag, of in parsed.elements if tag == "td"]
    intervals = [of for of in cells if re.fullmatch(r"\[\S+, \S+\]", str(of["data-key"]))]
    assert intervals
    assert intervals == [of for of in cells if of["class"] == "text interval"]


def test_training_curves_come_from_the_log_beside_the_record(make_record: Make, tmp_path: Path) -> None:
    save_run(make_record(), tmp_path / "trained")
    lines = [
        {"kind": "dev", "step": 0, "dev": 0.5},
        {"kind": "train", "step": 1, "loss": 0.25},
        {"kind": "dev", "step": 2, "dev": 0.75},
        {"kind": "dev", "step": 4, "dev": 0.625},
    ]
    log = tmp_path / "trained" / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    page = sb.report(sb.load_run(tmp_path / "trained"), tmp_path / "out", analyse=False)
    (row,) = read(page.parent, "training-summary")
    assert (row["steps"], row["best dev x 100"], row["at step"]) == ("4", "75.0", "2")
    assert (page.parent / "figures" / "training-dev.svg").is_file()
    log.write_text("not JSON\n", encoding="utf-8")
    page = sb.report(sb.load_run(tmp_path / "trained"), tmp_path / "out", analyse=False)
    assert "its log.jsonl cannot be read" in Page(page).text


def test_seeds_are_grouped_by_name_and_beside_published_seeds(
    make_record: Make, as_published: Make, tmp_path: Path
) -> None:
    runs = [make_record(f"simcse-seed{number}", seed=number) for number in (1, 2, 3)]
    known = as_published("unsup-simcse-bert-base", "princeton-nlp/unsup-simcse-bert-base-uncased")
    page = sb.report([*runs, make_record("other", seed=9), known], tmp_path / "out", analyse=False)
    rows = {entry["task"]: entry for entry in read(page.parent, "seeds-1")}
    scores = [100 * (run.scores[0].value or 0) for run in runs]
    assert (rows["toy"]["runs"], float(rows["toy"]["mean"])) == ("3", pytest.approx(sum(scores) / 3))
    assert (page.parent / "figures" / "seeds-own.svg").is_file()
    assert {"task", "runs", "mean"} < set(read(page.parent, "seeds-unsup-simcse-bert-base")[0])
