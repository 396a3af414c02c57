"""Where a run stands among published models, and what is told of it: by the rules that the documentation has."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from changed_records import with_value

import stsbench as sb
from stsbench.analysis.pair_kinds import COST, SHIFT, PairKinds
from stsbench.published.catalogue import row, systems
from stsbench.reports.findings import findings
from stsbench.reports.standing import NEAREST, STANDING, Standing, residuals, standing, strip
from stsbench.scoring.tasks import STS_TASKS

SIMCSE = "esimcse-coling2022-3/unsup-simcse-bert-base"
NOBODY = "someone/model"


@pytest.fixture
def on_test_sets(as_published: Callable[..., sb.RunRecord]) -> Callable[..., sb.RunRecord]:
    """Return a maker of records of a row's scores of which SICK-R is on the test set, too, with their average."""

    def make(name: str, model: str) -> sb.RunRecord:
        record = as_published(name, model)
        scores = tuple(
            score.model_copy(update={"signature": score.signature.replace("SICK-R:all:", "SICK-R:test:")})
            for score in record.scores
        )
        return record.model_copy(update={"scores": scores})

    return make


def test_the_published_models_that_compare_are_one_a_system_and_have_all_the_tasks(
    on_test_sets: Callable[..., sb.RunRecord],
) -> None:
    places = standing(on_test_sets(SIMCSE, NOBODY))
    assert [place.task for place in places] == ["Avg. STS", *STS_TASKS]
    average, *tasks = places
    assert average.value == pytest.approx(76.25, abs=0.005)
    assert len(average.scores) > 60
    for name, score in average.scores.items():
        assert not systems()[name].edition_of
        assert score == pytest.approx(np.mean([task.scores[name] for task in tasks]), abs=0.06)
    assert average.below == sum(score < average.value for score in average.scores.values())
    cell = row("esimcse-coling2022-3/esimcse-bert-base").cell("STS16")
    assert next(place for place in tasks if place.task == "STS16").scores["esimcse-bert-base"] == cell.score


def test_a_run_does_not_stand_beside_the_published_scores_of_its_own_checkpoint(
    on_test_sets: Callable[..., sb.RunRecord],
) -> None:
    known, *_ = standing(on_test_sets(SIMCSE, "princeton-nlp/unsup-simcse-bert-base-uncased"))
    unknown, *_ = standing(on_test_sets(SIMCSE, NOBODY))
    assert set(unknown.scores) - set(known.scores) == {"unsup-simcse-bert-base"}


def test_a_run_of_other_pairs_stands_nowhere(make_record: Callable[..., sb.RunRecord]) -> None:
    assert standing(make_record()) == []
    assert strip({"mine": []}) is None


def test_a_task_that_compares_with_none_leaves_the_others_where_they_stand(
    as_published: Callable[..., sb.RunRecord],
) -> None:
    # Another program's SICK-R is of all its pairs: so the average compares with none, either.
    places = standing(as_published(SIMCSE, NOBODY))
    assert [place.task for place in places] == [task for task in STS_TASKS if task != "SICK-R"]
    assert len(places[0].scores) > 60


def test_of_two_scores_of_a_task_the_one_that_the_published_ones_are_of_stands(
    as_published: Callable[..., sb.RunRecord],
) -> None:
    record = as_published(SIMCSE, NOBODY, ["STS-B"])
    (place,), (score,) = standing(record), record.scores
    signature = score.signature.replace("STS-B:test:", "STS-B:dev:")
    dev = with_value(score.model_copy(update={"split": "dev", "signature": signature}), 0.5)
    (beside,) = standing(record.model_copy(update={"scores": (dev, score)}))
    assert beside == place
    assert place.value == pytest.approx(76.85, abs=0.005)


def test_a_run_of_some_tasks_stands_on_them_and_has_no_average(as_published: Callable[..., sb.RunRecord]) -> None:
    places = standing(as_published(SIMCSE, NOBODY, ["STS16", "STS-B"]))
    assert [place.task for place in places] == ["STS16", "STS-B"]
    assert list(residuals(places)) == []


def test_a_residual_is_what_plain_least_squares_leaves_and_its_interval_that_of_prediction() -> None:
    import scipy.stats

    rng = np.random.default_rng(0)
    x = rng.uniform(60, 90, size=50)
    y = 3 + 0.9 * x + rng.normal(0, 2, size=50)
    names = [f"system-{number}" for number in range(50)]
    places = [Standing("Avg. STS", 75.0, None, dict(zip(names, x, strict=True)))]
    places += [Standing(task, 80.0, None, dict(zip(names, y, strict=True))) for task in STS_TASKS]
    of, *others = residuals(places)
    assert len(others) == 6
    near = np.argsort(np.abs(x - 75))[:NEAREST]
    fit = scipy.stats.linregress(x[near], y[near])
    left = y[near] - fit.intercept - fit.slope * x[near]
    error = np.sqrt(left @ left / (NEAREST - 2))
    spread = ((x[near] - x[near].mean()) ** 2).sum()
    reach = error * np.sqrt(1 + 1 / NEAREST + (75 - x[near].mean()) ** 2 / spread)
    value = 80 - fit.intercept - 75 * fit.slope
    assert of.value == pytest.approx(value)
    t = scipy.stats.t(NEAREST - 2)
    assert of.limits[:2] == pytest.approx((value - t.ppf(0.975) * reach, value + t.ppf(0.975) * reach))
    assert of.p == pytest.approx(2 * t.sf(abs(value) / reach))
    assert of.models == NEAREST


@pytest.mark.parametrize(("average", "models"), [(95.0, 50), (75.0, 9)])
def test_nothing_is_said_of_an_average_beyond_the_published_ones_or_of_few_models(
    average: float, models: int
) -> None:
    x = dict(zip(map(str, range(models)), np.linspace(60, 90, models), strict=True))
    places = [Standing(task, average, None, x) for task in ("Avg. STS", *STS_TASKS)]
    assert list(residuals(places)) == []


def some_kinds(*rows: tuple[str, str, str, float, float, float], model: str = "mine") -> PairKinds:
    """Return kinds of pairs from feature, kind, measure, value, p and weight each."""
    columns = ("feature", "kind", "measure", "value", "p", "weight")
    frame = pd.DataFrame([dict(zip(columns, row, strict=True)) for row in rows])
    value = frame["value"]
    return PairKinds(
        frame.assign(task="sample", model=model, pairs=50, share=0.1, low=value - 0.1, high=value + 0.1)
    )


ALL_FOUND = (
    ("negation", "a negation", COST, 1.5, 1e-5, 0.02),
    ("negation", "a negation", SHIFT, -4.0, 1e-5, 0.01),
    ("numbers", "other numbers", COST, 0.5, 1e-9, 0.30),
    ("length", "few words", SHIFT, 3.0, 1e-5, 0.05),
    ("gold score", "a gold score", COST, 1.2, 0.04, 0.50),
)


def test_a_finding_is_what_holm_leaves_one_a_feature_the_heaviest_first() -> None:
    *told, count = findings({"mine": []}, some_kinds(*ALL_FOUND), 0.95)
    assert [pointer.text for pointer in told] == [
        "Pairs with a gold score hold 1.20 times their share of the rank error (95 % [1.10, 1.30]).",
        "Pairs with few words are ranked 3.0 points too high among pairs of like gold score (95 % [2.9, 3.1]).",
        "Pairs with a negation hold 1.50 times their share of the rank error (95 % [1.40, 1.60]).",
    ]
    assert {pointer.to for pointer in told} == {"pair-kinds"}
    # That other numbers cost less than their share counts, and is no news.
    assert count.text.startswith("5 of 5 numbers that were looked at stand out")


def test_what_is_within_its_interval_after_correction_for_all_looks_is_no_finding() -> None:
    alone = [("length", "few words", SHIFT, 3.0, 0.02, 0.05)]
    told, count = findings({"mine": []}, some_kinds(*alone), 0.95)
    assert "few words" in told.text
    assert count.text.startswith("1 of 1 numbers")
    many = [*alone, *(("numbers", f"kind {number}", COST, 1.1, 0.5, 0.01) for number in range(9))]
    (nothing,) = findings({"mine": []}, some_kinds(*many), 0.95)
    assert nothing.text.startswith("0 of 10 numbers that were looked at stand out")
    # Without p-values nothing was looked at.
    assert findings({"mine": []}, some_kinds(("length", "few", SHIFT, 3.0, float("nan"), 0.1)), 0.95) == ()


def test_tasks_of_several_runs_share_the_correction_and_the_places() -> None:
    rng = np.random.default_rng(1)
    x = np.linspace(60, 90, 40)
    names = list(map(str, range(40)))

    def places(lift: float) -> list[Standing]:
        scores = {task: x + rng.normal(0, 0.5, size=40) for task in STS_TASKS}
        of = [Standing("Avg. STS", 75.0, None, dict(zip(names, x, strict=True)))]
        return of + [
            Standing(task, 75.0 + lift * place, None, dict(zip(names, scores[task], strict=True)))
            for place, task in enumerate(STS_TASKS)
        ]

    *told, count = findings({"one": places(1.0), "two": places(-1.0)}, None, 0.95)
    assert [re.sub(r" is [\d.]+ points", "", pointer.text).partition(" (")[0] for pointer in told] == [
        "one above models of its average on SICK-R",
        "one above models of its average on STS-B",
        "two below models of its average on SICK-R",
        "two below models of its average on STS-B",
    ]
    assert {pointer.to for pointer in told} == {STANDING}
    assert " of 14 numbers" in count.text


def test_the_report_opens_with_the_strip_and_folds_all_papers_but_the_one_that_fits(
    on_test_sets: Callable[..., sb.RunRecord], tmp_path: Path
) -> None:
    known = on_test_sets("esimcse-coling2022-3/esimcse-bert-base", "ffgcc/esimcse-bert-base-uncased")
    page = sb.report(known, tmp_path / "page", analyse=False)
    html, text = page.read_text(encoding="utf-8"), page.with_name("README.md").read_text(encoding="utf-8")
    opening = html[html.index('id="in-short"') : html.index('id="scores"')]
    assert "<svg" in opening
    assert "esimcse-bert-base-uncased: Avg. STS 78.27, above " in opening
    assert f'id="{STANDING}"' in opening
    assert (page.parent / "figures" / "standing.svg").is_file()
    compared = len(standing(known)[0].scores)
    below = standing(known)[0].below
    assert f"(Avg.), above {below} of {compared} published models that compare" in opening
    folds = re.findall(r'<section id="paper-([\w-]+)"[^>]*>\s*<details( open)?>', html)
    assert len(folds) > 5
    assert [name for name, is_open in folds if is_open] == ["esimcse-coling2022"]
    assert folds[0][0] == "esimcse-coling2022"
    assert text.count("<details open>") == 1
    assert text.count("<details>") == len(folds) - 1
    assert text.count("</details>") == len(folds)


def test_a_report_tells_findings_of_pairs_and_what_was_not_looked_at(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    gold, far = rng.uniform(0, 5, size=200).round(1), np.arange(200) % 4 == 0
    rows = [f"{'a ' * 9}{n}\t{'c ' * (15 if far[n] else 9)}{n}\t{gold[n]}" for n in range(200)]
    data, similarities = tmp_path / "own.tsv", tmp_path / "own.npy"
    data.write_text("sentence1\tsentence2\tscore\n" + "\n".join(rows) + "\n", encoding="utf-8")
    # Similar as people say, but for pairs of unlike length.
    np.save(similarities, gold / 10 - 0.2 * far)
    record = sb.import_results(similarities, gold=data)
    text = sb.report(record, tmp_path / "page").with_name("README.md").read_text(encoding="utf-8")
    opening = text[text.index("## In short") : text.index("## Scores")]
    assert "Pairs with lengths more than 3 words apart are ranked " in opening
    assert "points too low among pairs of like gold score" in opening
    assert "(#pair-kinds)" in opening
    assert "kinds of pairs by their words: own is your own file" in text[text.index("## Not measured") :]


def test_a_paper_that_was_asked_for_is_not_folded(
    as_published: Callable[..., sb.RunRecord], tmp_path: Path
) -> None:
    page = sb.report(as_published(SIMCSE, NOBODY), tmp_path / "page", paper="esimcse")
    assert '<section id="paper-esimcse-coling2022"' in page.read_text(encoding="utf-8")
    assert "<details open>" not in page.read_text(encoding="utf-8")


def test_each_task_has_a_small_picture_of_its_pairs_that_says_what_it_shows(
    make_record: Callable[..., sb.RunRecord], tmp_path: Path
) -> None:
    page = sb.report(make_record(), tmp_path / "page", analyse=False)
    html = page.read_text(encoding="utf-8")
    table = html[html.index('id="every-interval"') :]
    found = re.findall(r'<img class="small" src="(figures/pairs-1-\d\.svg)" alt="(\w+): the 12 pairs', table)
    assert [task for _, task in found] == ["toy", "other"]
    for name, _ in found:
        drawn = (page.parent / name).read_text(encoding="utf-8")
        # As many cells are shaded as hold a pair.
        assert 1 < drawn.count("M") <= 12
        assert f"({name})" in page.with_name("README.md").read_text(encoding="utf-8")


def test_a_picture_shows_where_the_pairs_lie() -> None:
    from stsbench.reports.pictures import draw

    gold, similarity = np.array([0.0, 5.0, 5.0, 5.0]), np.array([0.1, 0.9, 0.9, 0.9])
    svg: Any = draw(gold, similarity)
    cells = dict(re.findall(r'fill-opacity="([\d.]+)" d="(M[^"]+)"', svg))
    # The lowest stands at the left end of the lowest row, the three at the right end of the highest.
    assert cells == {"0.5": "M0 15h1v1h-1z", "1": "M23 0h1v1h-1z"}
