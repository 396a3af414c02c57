"""Kinds of pairs: what is planted is found, nothing where nothing is, and a jackknife confirms the terms."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from own_runs import write_pairs

import stsbench as sb
from stsbench.analysis.ranked_pairs import (
    GOLD,
    LENGTH,
    NEGATION,
    NUMBERS,
    OVERLAP,
    RATINGS,
    RankedPairs,
    cost,
    features_of,
    kinds_by_numbers,
    kinds_by_words,
    shift,
)
from stsbench.data.tables import sentence_ids

KIND = "feature", "kind"


def ranked(size: int, seed: int = 0, *, up: float = 0.0, noise: float = 0.0, name: str = "made") -> RankedPairs:
    """Return pairs of which a third, at random, is lifted in similarity, and another spread wider."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 51, size=size) / 10
    inside = rng.uniform(size=size) < 1 / 3
    similarity = gold / 5 + rng.normal(0, 0.15, size=size) + up * inside + noise * inside * rng.normal(size=size)
    strata = np.clip((2 * gold).astype(np.intp), 0, 9)
    return RankedPairs(name, ranks(similarity), ranks(gold), strata, {KIND: inside})


def ranks(values: Any) -> Any:
    return 100 * (pd.Series(values).rank().to_numpy() - 0.5) / len(values)


def inside(tasks: Sequence[RankedPairs]) -> list[Any]:
    return [task.inside(KIND) for task in tasks]


def leave_out(task: RankedPairs, pair: int) -> RankedPairs:
    kept = np.arange(len(task)) != pair
    kinds = {KIND: task.kinds[KIND][kept]}
    return RankedPairs(task.name, ranks(task.similarity[kept]), ranks(task.gold[kept]), task.strata[kept], kinds)


def plain_shift(tasks: Sequence[RankedPairs]) -> float:
    """Return the coefficient by least squares with a column for each stratum of each task."""
    strata = [f"{task.name} {code}" for task in tasks for code in task.strata]
    design = pd.get_dummies(pd.Series(strata), dtype=float).to_numpy()
    design = np.column_stack([np.concatenate(inside(tasks)), design])
    return float(np.linalg.lstsq(design, np.concatenate([task.similarity for task in tasks]), rcond=None)[0][0])


def plain_cost(tasks: Sequence[RankedPairs]) -> float:
    found = expected = 0.0
    for task, of_task in zip(tasks, inside(tasks), strict=True):
        squares = (task.similarity - task.gold) ** 2
        found += squares[of_task > 0].sum()
        expected += squares.mean() * of_task.sum()
    return found / expected


@pytest.mark.parametrize(("measure", "plain"), [(shift, plain_shift), (cost, plain_cost)])
def test_a_measure_is_what_a_plain_computation_gives_and_its_terms_are_those_of_a_jackknife(
    measure: Any, plain: Any
) -> None:
    tasks = [ranked(150, 1, up=0.1, noise=0.2), ranked(90, 2, name="other", noise=0.1)]
    (estimate, _) = measure(tasks, inside(tasks))
    assert estimate.value == pytest.approx(plain(tasks), rel=1e-9)
    task, other = tasks
    # Left out, a pair takes away what it contributes, to first order.
    jackknife = np.array([estimate.value - plain([leave_out(task, pair), other]) for pair in range(len(task))])
    terms = estimate.terms[task.name]
    assert abs(sum(of.sum() for of in estimate.terms.values())) < 1e-9
    assert np.corrcoef(terms, jackknife)[0, 1] > 0.995
    assert float(terms @ terms) == pytest.approx(float(jackknife @ jackknife), rel=0.12)


def test_kinds_are_told_apart_by_words_as_their_names_say() -> None:
    texts = {
        "plain": "A dog runs in the park",
        "negated": "A dog doesn't run in the park",
        "nothing": "Nothing runs",
        "numbers": "Two dogs run 3 miles",
        "other": "Three dogs run 3 miles",
        "spelled": "2 dogs run three miles",
        "same": "the park A dog runs in",
        "long": "one two three four five six seven eight nine ten a b c d e f g h i j",
    }
    ids = dict(zip(texts, sentence_ids(texts.values()).tolist(), strict=True))
    firsts = ["plain", "negated", "numbers", "numbers", "plain", "plain", "long"]
    seconds = ["negated", "nothing", "other", "spelled", "same", "nothing", "long"]
    table = pd.DataFrame({"gold": [0.0, 0.9, 1.0, 2.5, 5.0, 3.0, 4.0]})
    for side, sentences in (("a", firsts), ("b", seconds)):
        table[f"sentence_{side}"] = [ids[name] for name in sentences]
        table[f"words_{side}"] = [len(texts[name].split()) for name in sentences]
    by_id = {ids[name]: text for name, text in texts.items()}
    kinds = kinds_by_numbers(table, (0.0, 5.0)) | kinds_by_words(table, by_id)
    found = {kind: np.flatnonzero(inside).tolist() for kind, inside in kinds.items()}
    assert found[NEGATION, "a negation in one sentence alone"] == [0, 5]
    assert found[NUMBERS, "different numbers in both"] == [2]
    assert found[OVERLAP, "at least 75 % of their words shared"] == [4, 6]
    assert found[OVERLAP, "less than 25 % of their words shared"] == [1, 5]
    assert found[LENGTH, "lengths more than 3 words apart"] == [1, 5]
    assert found[LENGTH, "at least 20 words in both"] == [6]
    assert found[LENGTH, "at most 8 words in both"] == [0, 1, 2, 3, 4, 5]
    by_gold = [of for (feature, _), of in found.items() if feature == GOLD]
    assert by_gold == [[0, 1], [2], [3], [5], [4, 6]]
    # Each word is looked at whatever stands beside it.
    assert features_of("It is not, I say.")[1]
    assert not features_of("A notable knot")[1]
    assert features_of("Two dogs don't run 1,500 m")[2] == {"2", "1,500"}


def test_ratings_that_are_far_apart_are_a_kind_where_they_are_published() -> None:
    table = pd.DataFrame({"gold": np.linspace(0, 5, 12), "raters": np.array([5.0] * 10 + [1.0, np.nan])})
    assert RATINGS not in {feature for feature, _ in kinds_by_numbers(table, (0.0, 5.0))}
    # Nothing is known of the spread of a single rating, or where there are none.
    variances = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 2.0, 3.0, np.nan, np.nan]
    table = table.assign(rater_variance=variances)
    kinds = kinds_by_numbers(table, (0.0, 5.0))
    (inside,) = (inside for (feature, _), inside in kinds.items() if feature == RATINGS)
    assert np.flatnonzero(inside).tolist() == [7, 8, 9]


def test_what_needs_words_is_left_out_where_the_data_is_not_here(tmp_path: Path) -> None:
    data = tmp_path / "pairs.tsv"
    write_pairs(data, pairs=200)
    run = sb.evaluate(lambda texts: [[len(text), text.count("w")] for text in texts], data=data)
    kinds = sb.pair_kinds(run)
    assert {NEGATION, NUMBERS, OVERLAP}.isdisjoint(kinds.frame["feature"])
    (note,) = kinds.table()[0].notes
    assert "a file of your own with --data" in note
    with_words = sb.pair_kinds(run, data=[data])
    assert OVERLAP in set(with_words.frame["feature"])
    assert not with_words.notes
