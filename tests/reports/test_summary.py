"""The top of a report: standing among published models, findings, warnings, and what people score."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from changed_records import with_value
from scipy.stats import linregress, norm, t

import stsbench as sb
from stsbench.analysis.pair_kinds import PairKinds
from stsbench.analysis.ranked_pairs import COST, SHIFT
from stsbench.encoders.use import Use
from stsbench.published import catalogue
from stsbench.records.parts import RaterPart
from stsbench.reports.summary import (
    NEAREST,
    Standing,
    answer,
    findings,
    human_raters,
    residuals,
    standing,
    strip,
    summary,
)
from stsbench.scoring.tasks import STS_TASKS

Make = Callable[..., sb.RunRecord]
SIMCSE, UNKNOWN = "esimcse-coling2022-3/unsup-simcse-bert-base", "someone/model"
ESIMCSE = "esimcse-coling2022-3/esimcse-bert-base"


@pytest.fixture
def on_test_sets(as_published: Make) -> Make:
    """Returns a maker of records with the scores of a row, with SICK-R on its test set."""

    def make(name: str, model: str) -> sb.RunRecord:
        record = as_published(name, model)
        scores = tuple(
            score.model_copy(update={"signature": score.signature.replace("SICK-R:all:", "SICK-R:test:")})
            for score in record.scores
        )
        return record.model_copy(update={"scores": scores})

    return make


def test_a_run_stands_among_systems_that_have_all_its_tasks(on_test_sets: Make) -> None:
    average, *tasks = places = standing(on_test_sets(SIMCSE, UNKNOWN))
    assert [place.task for place in places] == ["Avg. STS", *STS_TASKS]
    assert average.value == pytest.approx(76.25, abs=0.005)
    assert len(average.scores) > 60
    for name, score in average.scores.items():
        assert not catalogue.systems()[name].edition_of
        assert score == pytest.approx(np.mean([task.scores[name] for task in tasks]), abs=0.06)
    cell = catalogue.row("esimcse-coling2022-3/esimcse-bert-base").cell("STS16")
    assert tasks[4].scores["esimcse-bert-base"] == cell.score
    known, *_ = standing(on_test_sets(SIMCSE, "princeton-nlp/unsup-simcse-bert-base-uncased"))
    assert set(average.scores) - set(known.scores) == {"unsup-simcse-bert-base"}


def test_incomparable_tasks_are_left_out(as_published: Make, make_record: Make) -> None:
    assert standing(make_record()) == []
    assert strip({"mine": []}) is None
    # SICK-R of another program is on all its pairs, so the average is not comparable, either.
    places = standing(as_published(SIMCSE, UNKNOWN))
    assert [place.task for place in places] == [task for task in STS_TASKS if task != "SICK-R"]
    some = standing(as_published(SIMCSE, UNKNOWN, ["STS16", "STS-B"]))
    assert [place.task for place in some] == ["STS16", "STS-B"]
    assert list(residuals(some)) == []


def test_a_residual_has_the_prediction_interval_of_least_squares() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(60, 90, size=50)
    y = 3 + 0.9 * x + rng.normal(0, 2, size=50)
    names = [f"system-{number}" for number in range(50)]
    places = [Standing("Avg. STS", 75.0, None, dict(zip(names, x, strict=True)))]
    places += [Standing(task, 80.0, None, dict(zip(names, y, strict=True))) for task in STS_TASKS]
    (_, of, models), *others = residuals(places)
    assert len(others) == 6
    near = np.argsort(np.abs(x - 75))[:NEAREST]
    fit = linregress(x[near], y[near])
    errors = y[near] - fit.intercept - fit.slope * x[near]
    spread = ((x[near] - x[near].mean()) ** 2).sum()
    reach = np.sqrt(errors @ errors / (NEAREST - 2) * (1 + 1 / NEAREST + (75 - x[near].mean()) ** 2 / spread))
    value, distribution = 80 - fit.intercept - 75 * fit.slope, t(NEAREST - 2)
    limits = value - distribution.ppf(0.975) * reach, value + distribution.ppf(0.975) * reach
    assert (of.value, *of.interval(0.95)[:2]) == pytest.approx((value, *limits))
    assert of.p == pytest.approx(2 * distribution.sf(abs(value) / reach))
    assert models == NEAREST
    # No prediction beyond the published averages, or from few models.
    for average, models in ((95.0, 50), (75.0, 9)):
        few = dict(zip(map(str, range(models)), np.linspace(60, 90, models), strict=True))
        assert not list(residuals([Standing(task, average, None, few) for task in ("Avg. STS", *STS_TASKS)]))


def some_kinds(*rows: tuple[str, str, str, float, float, float]) -> PairKinds:
    """Returns kinds of pairs from feature, kind, measure, value, p and weight each."""
    columns = ("feature", "kind", "measure", "value", "p", "weight")
    frame = pd.DataFrame([dict(zip(columns, row, strict=True)) for row in rows])
    limits = {"low": frame["value"] - 0.1, "high": frame["value"] + 0.1}
    return PairKinds(frame.assign(task="sample", model="mine", pairs=50, share=0.1, **limits))


def texts(*arguments: Any) -> list[str]:
    return [pointer.text for pointer in findings(*arguments, 0.95)]


def test_findings_are_what_holm_leaves_one_per_feature_the_heaviest_first() -> None:
    kinds = some_kinds(
        ("negation", "a negation", COST, 1.5, 1e-5, 0.02),
        ("negation", "a negation", SHIFT, -4.0, 1e-5, 0.01),
        ("numbers", "other numbers", COST, 0.5, 1e-9, 0.30),
        ("length", "few words", SHIFT, 3.0, 1e-5, 0.05),
        ("gold score", "a gold score", COST, 1.2, 0.04, 0.50),
    )
    # That other numbers cost less than their share is no news, but it was examined.
    gold, length, negation, count = texts({"mine": []}, kinds)
    assert gold.startswith("Pairs with a gold score cause 1.20 times as much rank error")
    assert length.startswith("Pairs with few words are ranked 3.0 points too high")
    assert length.endswith("(95 % [2.9, 3.1]).")
    assert negation.startswith("Pairs with a negation cause 1.50 times")
    assert count == "5 of 5 examined numbers are significant (Holm, 5 %)."
    many = [("length", "few", SHIFT, 3.0, 0.02, 0.05), *(("a", f"{n}", COST, 1.1, 0.5, 0.01) for n in range(9))]
    assert texts({"mine": []}, some_kinds(*many)) == ["0 of 10 examined numbers are significant (Holm, 5 %)."]


def test_the_summary_warns_of_changed_data_undefined_scores_and_zero_vectors(make_record: Make) -> None:
    plain = make_record()
    assert not summary({"mine": plain}, {}, {}).pointers
    first, second = plain.scores
    modified = second.data.model_copy(update={"status": "modified"})
    changed = second.model_copy(update={"counts": second.counts | {"zero_pairs": 3}, "data": modified})
    odd = plain.model_copy(update={"scores": (with_value(first, None), changed)})
    words = " ".join(pointer.text for pointer in summary({"mine": odd}, {}, {}).pointers)
    assert f"no score on {first.task}" in words
    assert "3 pairs have a zero vector" in words
    assert f"the files of {second.task} differ" in words


def test_a_report_opens_with_numbers_and_the_picture(on_test_sets: Make, tmp_path: Path) -> None:
    known = on_test_sets("esimcse-coling2022-3/esimcse-bert-base", "ffgcc/esimcse-bert-base-uncased")
    page = sb.report(known, tmp_path / "page", analyse=False)
    html = page.read_text(encoding="utf-8")
    opening = html[html.index('id="summary"') : html.index('id="scores"')]
    assert f'<dd dir="auto">{standing(known)[0].words}</dd>' in opening
    assert "Avg. STS 78.27, above " in opening
    assert "Tasks that match the published row</dt>" in opening
    assert (page.parent / "figures" / "standing.svg").is_file()
    assert re.findall(r'<section id="(paper[\w-]+)"[^>]*>\s*<details open>', html) == ["paper-esimcse-coling2022"]


@pytest.fixture(scope="module")
def measured() -> sb.RunRecord:
    """Returns a record that claims to be of STS12, of which people rated a sample."""
    record = sb.evaluate(lambda texts: [[len(text), text.count("e"), 1.0] for text in texts], "sample")
    score = record.scores[0]
    signature = score.signature.replace("sample:test:", "STS12:test:")
    changes = {
        "task": "STS12",
        "signature": signature,
        "data": score.data.model_copy(update={"status": "verified"}),
        "raters": RaterPart(pairs=252, ratings=5.0, reliability=0.81, ceiling=0.9),
    }
    return record.model_copy(update={"scores": (score.model_copy(update=changes),)})


@pytest.mark.parametrize(("row", "word", "command"), [(SIMCSE, "pass", "explain"), (ESIMCSE, "fail", "diagnose")])
def test_a_run_ends_with_its_standing_its_row_and_the_next_command(
    row: str, word: str, command: str, on_test_sets: Make
) -> None:
    record = on_test_sets(row, "princeton-nlp/unsup-simcse-bert-base-uncased")
    standing_line, check, following = answer([record])
    assert f"{standing(record)[0].words} comparable published models" in standing_line
    assert check.startswith(word)
    assert following.startswith(f"Next: stsbench {command} ")
    assert list(answer([record, record]))[-1].startswith("Next: stsbench compare ")


def test_a_run_with_another_pooling_than_its_row_ends_with_the_difference(as_published: Make) -> None:
    record = as_published("mteb-all-minilm-l6-v2/all-minilm-l6-v2", "sentence-transformers/all-MiniLM-L6-v2")
    model = record.model.model_copy(update={"kind": "transformer", "use": Use(pooling="cls")})
    *_, check, following = answer([record.model_copy(update={"model": model})])
    assert "pooling is cls, expected avg" in check
    assert following.startswith("Next: stsbench diagnose ")


def test_human_raters_and_the_ceiling_are_beside_the_models(measured: sb.RunRecord) -> None:
    section = human_raters({"mine": measured})
    assert section is not None
    (row,) = section.tables[0].frame.to_dict("records")
    pearson, printed = measured.scores[0].number("pearson", "all"), row["raters"]
    assert pearson is not None
    assert printed == catalogue.row("hume-sts/two-raters-pearson").cell("STS12").score
    assert (row["ceiling"], row["mine"]) == pytest.approx((90.0, 100 * (pearson.value or 0)))
    # With 50 pairs, Fisher's z of a Pearson correlation has the variance 1 / 47.
    ends = 100 * np.tanh(np.arctanh(printed / 100) + norm.ppf([0.025, 0.975]) / math.sqrt(47))
    assert (row["low"], row["high"]) == pytest.approx(tuple(ends))
    # The raters scored released test sets only.
    (score,) = measured.scores
    user, dev = score.data.model_copy(update={"status": "user"}), score.signature.replace(":test:", ":dev:")
    for changes in ({"data": user}, {"signature": dev}):
        other = score.model_copy(update=changes | {"raters": None})
        assert human_raters({"mine": measured.model_copy(update={"scores": (other,)})}) is None
