"""What a report opens with: the few sentences, each with a link that leads somewhere, none that says nothing."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from changed_records import with_value

import stsbench as sb
from stsbench.render.section import Pointer, Report, Section
from stsbench.reports.in_short import IN_SHORT, in_short
from stsbench.reports.report import verdicts
from stsbench.reports.scores import scores
from stsbench.reports.write import write_report

Make = Callable[..., sb.RunRecord]


def sentences(*runs: sb.RunRecord) -> list[str]:
    named = {f"run {number}": run for number, run in enumerate(runs, 1)}
    return [pointer.text for pointer in in_short(named, [scores(named)]).pointers]


def test_a_report_opens_with_score_and_interval_and_links_to_its_table(make_record: Make, tmp_path: Path) -> None:
    record = make_record()
    page = sb.report(record, tmp_path / "page", analyse=False)
    text = page.with_name("README.md").read_text(encoding="utf-8")
    opening = text[text.index("## In short") : text.index("## Scores")]
    average = 100 * (record.averages[0].value or 0)
    assert f"mine scores {average:.2f} (95 % [" in opening.replace("\\", "")
    targets = re.findall(r"\(#([\w.-]+)\)", opening)
    assert targets == ["scores-sts"]
    html = page.read_text(encoding="utf-8")
    assert '<a href="#scores-sts">' in html
    assert html.index('id="in-short"') < html.index('id="scores"')


def test_of_many_runs_the_highest_and_the_lowest_are_told(make_record: Make) -> None:
    runs = [make_record(f"r{seed}", seed=seed) for seed in range(4)]
    (told,) = sentences(*runs)
    assert told.startswith("Of 4 runs run ")
    assert "is the highest on average over 2 tasks" in told


def test_what_is_odd_is_said_and_what_is_not_is_not(make_record: Make) -> None:
    plain = make_record()
    assert not any("Odd" in sentence for sentence in sentences(plain))
    first, second = plain.scores
    modified = second.data.model_copy(update={"status": "modified"})
    counts = second.counts | {"zero_pairs": 3}
    of_other_files = second.model_copy(update={"counts": counts, "data": modified})
    odd = plain.model_copy(update={"scores": (with_value(first, None), of_other_files)})
    told = " ".join(sentences(odd))
    assert f"has no score on {first.task}" in told
    assert "3 pairs of run 1 have a zero vector" in told
    assert f"read {second.task} from files that are not the published ones" in told


def test_verdicts_on_two_uses_of_one_model_say_which_is_which(make_record: Make) -> None:
    runs = {f"mine (pooling {pooling})": make_record() for pooling in ("cls", "avg")}
    found = verdicts(runs, against="esimcse-coling2022-3/unsup-simcse-bert-base")
    told = [pointer.text for pointer in in_short(runs, [found.section]).pointers if pointer.to == "checks"]
    assert [next(name for name in runs if name in sentence) for sentence in told] == list(runs)


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    short = Section(IN_SHORT, "In short", pointers=(Pointer("Look there.", "nowhere"),))
    page = Report("A page", "2026-01-01", "1", (short,))
    with pytest.raises(ValueError, match="nowhere"):
        write_report(page, tmp_path / "page")
    assert not (tmp_path / "page").exists()
    fine = replace(page, sections=(replace(short, pointers=(Pointer("Look there."),)),))
    write_report(fine, tmp_path / "page")
    assert "Look there." in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
