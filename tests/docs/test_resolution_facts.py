"""The standard errors of encoders and the correlations of their errors, computed again."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

import stsbench as sb
from stsbench.judging.aligned import aligned_scores
from stsbench.published.catalogue import encoder_errors, error_correlations

DOCS = Path(__file__).resolve().parents[2] / "docs"
if not (DOCS / "resolution_facts.py").is_file():
    pytest.skip("needs docs/", allow_module_level=True)

sys.path.insert(0, str(DOCS))
import far_encoders  # noqa: E402 - scripts of the documentation
from resolution_facts import AVERAGE, correlation, facts, measured_tasks  # noqa: E402

sys.path.remove(str(DOCS))

TASKS = ["sts", "STS-B:dev"]


def test_every_pair_of_encoders_is_there_on_every_task():
    errors, correlations = encoder_errors(), error_correlations()
    # Of all-mpnet-base-v2 only the pair with all-MiniLM-L6-v2 is known, without the development set.
    assert len(errors) == 15 * 9 - 1
    assert len(correlations) == math.comb(14, 2) * 9 + 8
    assert (errors["error"] > 0).all()
    assert correlations["correlation"].between(-1, 1).all()


def test_the_correlation_gives_the_standard_error_of_the_difference_pair_by_pair():
    models = {
        name: sb.evaluate(lambda texts, k=k: [[len(s), s.count("e"), k * s.count("o")] for s in texts], "sample")
        for name, k in (("one", 1), ("two", 6))
    }
    (task,) = aligned_scores(models)[0]
    sides = list(zip(task.sharing.first.tolist(), task.sharing.second.tolist(), strict=True))
    shared = np.array([[bool({*p} & {*q}) for q in sides] for p in sides])

    def variance(terms):
        return max(terms @ shared @ terms, terms @ terms)

    a, b = task.terms
    expected = (variance(a) + variance(b) - variance(a - b)) / (2 * math.sqrt(variance(a) * variance(b)))
    assert correlation(task, 0, 1) == pytest.approx(expected)


@pytest.mark.shared
def test_the_tables_of_counts_of_words_are_what_the_data_give(senteval):
    encoders = {"words": far_encoders.words, "trigrams": far_encoders.trigrams}
    hold_against_the_data(
        {name: sb.evaluate(encoder, TASKS, data_dirs=[senteval]) for name, encoder in encoders.items()},
        tolerance=0.0015,
    )


@pytest.mark.shared
@pytest.mark.minilm
@pytest.mark.long
def test_the_tables_of_minilm_are_what_the_data_give(senteval):
    runs = {
        "minilm": sb.evaluate("minilm", TASKS, data_dirs=[senteval]),
        "minilm-128": sb.evaluate(sb.load("minilm", dimensions=128), TASKS, data_dirs=[senteval]),
        "minilm-cls": sb.evaluate(sb.load("minilm", pooling="cls_before_pooler"), TASKS, data_dirs=[senteval]),
        "words": sb.evaluate(far_encoders.words, TASKS, data_dirs=[senteval]),
    }
    hold_against_the_data(runs, tolerance=0.01)


def hold_against_the_data(runs, tolerance):
    errors, correlations = facts(runs)
    known = encoder_errors().set_index(["encoder", "task"])
    assert {task.task for task in measured_tasks(runs)} == set(encoder_errors()["task"])
    assert AVERAGE in errors["task"].to_numpy()
    for name, task, *numbers in errors.itertuples(index=False):
        assert numbers == pytest.approx(known.loc[(name, task)].tolist(), abs=10 * tolerance), (name, task)
    by_pair = error_correlations().itertuples(index=False)
    stored = {(frozenset({a, b}), task): (value, df) for a, b, task, value, df in by_pair}
    for a, b, task, value, df in correlations.itertuples(index=False):
        known_value, known_df = stored[frozenset({a, b}), task]
        assert value == pytest.approx(known_value, abs=tolerance), (a, b, task)
        assert df == pytest.approx(known_df, rel=0.02)
