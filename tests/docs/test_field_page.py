"""The page on which printed differences can be told, and the facts that it stands on, computed again."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stsbench as sb
from stsbench.published.measured import resolution_facts
from stsbench.published.resolution import AVERAGE, facts

DOCS = Path(__file__).resolve().parents[2] / "docs"
if not (DOCS / "field_page.py").is_file():
    pytest.skip("needs docs/", allow_module_level=True)

sys.path.insert(0, str(DOCS))
import far_encoders  # noqa: E402 - scripts of the documentation
from field_page import claims, field_page  # noqa: E402
from resolution_facts import correlation, measured_tasks, printed_pair  # noqa: E402
from resolution_facts import facts as facts_of  # noqa: E402

sys.path.remove(str(DOCS))

TASKS = ["sts", "STS-B:dev"]


def test_the_page_is_up_to_date():
    printed = subprocess.run(
        [sys.executable, str(DOCS / "field_page.py")], check=True, capture_output=True, encoding="utf-8"
    ).stdout
    assert (DOCS / "field.md").read_text(encoding="utf-8") == printed, (
        "run `python docs/field_page.py > docs/field.md`"
    )


def test_the_count_is_of_systems_whose_average_is_above_simcse_s_each_once():
    averages = [claim for claim in claims() if claim.task == AVERAGE]
    assert len({claim.row for claim in averages}) == len(averages)
    assert all(claim.difference > 0 for claim in averages)
    rows = {claim.row for claim in averages}
    assert {"esimcse-coling2022-3/esimcse-bert-base", "angle-sts/angle-bert-base"} <= rows
    # SimCSE itself, a predecessor that scores less, and an encoder that no SimCSE was trained from.
    assert not {name for name in rows if re.search("/unsup-simcse|/is-bert|/prompteol", name)}
    page = field_page()
    counted = re.search(r"Of (\d+) systems .*?, (\d+) are above .*?, (\d+) by less .*? of (\d+) it depends", page)
    assert counted is not None
    every, real, untold, depends = map(int, counted.groups())
    assert every == real + untold + depends == len(averages)
    assert real == sum(claim.difference - 0.01 > claim.high for claim in averages)


def test_a_sceptic_s_range_changes_every_answer_of_the_page():
    alike, unlike = (field_page(facts().with_correlations(value, value)) for value in (0.999, -1.0))
    assert "from 1.00 to 1.00 (as given)" in alike
    real = [int(re.search(r", (\d+) are above", page)[1]) for page in (unlike, field_page(), alike)]
    assert real[0] < real[1] < real[2]


def test_the_correlation_gives_the_standard_error_of_the_difference_pair_by_pair():
    models = {
        name: sb.evaluate(lambda texts, k=k: [[len(s), s.count("e"), k * s.count("o")] for s in texts], "sample")
        for name, k in (("one", 1), ("two", 6))
    }
    from stsbench.judging.aligned import aligned_scores

    (task,) = aligned_scores(models)[0]
    sides = list(zip(task.sharing.first.tolist(), task.sharing.second.tolist(), strict=True))
    shared = np.array([[bool({*p} & {*q}) for q in sides] for p in sides])

    def variance(terms):
        return max(terms @ shared @ terms, terms @ terms)

    a, b = task.terms
    expected = (variance(a) + variance(b) - variance(a - b)) / (2 * math.sqrt(variance(a) * variance(b)))
    assert correlation(task, 0, 1) == pytest.approx(expected)


def test_the_pair_from_the_page_on_error_bars_is_the_one_of_the_facts():
    encoders, (*names, correlations) = printed_pair((DOCS / "error-bars.md").read_text(encoding="utf-8"))
    content = json.loads(resolution_facts())
    assert [*names, correlations] in content["pairs"]
    assert content["encoders"]["all-mpnet-base-v2"] == encoders["all-mpnet-base-v2"]
    # By hand, of its row of SICK-R: 0.68, 0.79 and 0.41.
    assert correlations["SICK-R"] == [round((0.68**2 + 0.79**2 - 0.41**2) / (2 * 0.68 * 0.79), 2), None]


@pytest.mark.shared
def test_the_facts_of_counts_of_words_are_what_the_data_give(senteval):
    encoders = {"words": far_encoders.words, "trigrams": far_encoders.trigrams}
    hold_against_the_data(
        {name: sb.evaluate(encoder, TASKS, data_dirs=[senteval]) for name, encoder in encoders.items()},
        tolerance=0.0015,
    )


@pytest.mark.shared
@pytest.mark.minilm
@pytest.mark.long
def test_the_facts_of_minilm_are_what_the_data_give(senteval):
    runs = {
        "minilm": sb.evaluate("minilm", TASKS, data_dirs=[senteval]),
        "minilm-128": sb.evaluate(sb.load("minilm", dimensions=128), TASKS, data_dirs=[senteval]),
        "minilm-cls": sb.evaluate(sb.load("minilm", pooling="cls_before_pooler"), TASKS, data_dirs=[senteval]),
        "words": sb.evaluate(far_encoders.words, TASKS, data_dirs=[senteval]),
    }
    hold_against_the_data(runs, tolerance=0.01)


def hold_against_the_data(runs, tolerance):
    made, known = facts_of(runs), facts()
    assert [task.task for task in measured_tasks(runs)] == [*known.tasks]
    for name, of in made["encoders"].items():
        for task, numbers in of.items():
            assert numbers == pytest.approx(known.encoders[name][task], abs=10 * tolerance), (name, task)
    stored = {frozenset({a, b}): of for a, b, of in known.pairs}
    for a, b, of in made["pairs"]:
        for task, (value, df) in of.items():
            assert value == pytest.approx(stored[frozenset({a, b})][task][0], abs=tolerance), (a, b, task)
            assert df == pytest.approx(stored[frozenset({a, b})][task][1], rel=0.02)
