"""Stability: changes that keep the meaning, and what they do to a score."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

import stsbench as sb
from stsbench.analysis.stability import Retyped, Stability, changes, misspell
from stsbench.data.benchmarks import load_sample
from stsbench.data.sentences import sentences_in
from stsbench.statistics.dependence import Sharing

NONE = sb.Intervals(None)


def letters(texts: Sequence[str]) -> Any:
    """Return how often each letter stands in each text, cases apart."""
    return [[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyzAT .,"] for text in texts]


def test_scores_and_moved_pairs_are_those_of_a_plain_computation() -> None:
    found = sb.stability(letters, task="sample", seed=4).frame.set_index("change")
    data = load_sample()
    pairs = list(zip(data.pairs["sentence1"], data.pairs["sentence2"], strict=True))
    gold = np.asarray(data.pairs["gold"], dtype=float)

    def cosines(change: Any) -> Any:
        changed = [[change(text) for text in side] for side in zip(*pairs, strict=True)]
        sides = [np.array(letters(texts), dtype=float) for texts in changed]
        first, second = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
        return (first * second).sum(axis=1).round(12)

    whole = cosines(str)
    for name, change in changes(4).items():
        after, row = cosines(change), found.loc[name]
        assert row["score"] == pytest.approx(100 * spearmanr(gold, after)[0], abs=0.02)
        assert row["difference"] == pytest.approx(row["score"] - 100 * spearmanr(gold, whole)[0], abs=0.02)
        moved = np.abs(rankdata(after) - rankdata(whole)) > len(gold) / 10
        assert row["moved"] == pytest.approx(moved.mean(), abs=0.011)
        texts = {text for pair in pairs for text in pair}
        assert row["changed"] == sum(change(text) != text for text in texts) / len(texts)
    assert found.loc["typos 10 %", "moved"] > 0


def test_the_changes_of_a_sentence_without_typos() -> None:
    changed = {name: change("A cat  sleeps.") for name, change in changes().items() if "typos" not in name}
    expected = ["a cat  sleeps.", "A CAT  SLEEPS.", "A cat  sleeps", " A  cat  sleeps. "]
    assert list(changed.values()) == expected
    toggle = changes()["final punctuation"]
    assert [toggle(text) for text in ("Why? ", "Why ", "?!", " ")] == ["Why", "Why.", "?!", " "]


def test_the_interval_is_that_of_a_difference_on_the_same_pairs() -> None:
    """Against a jackknife over pairs that share nothing."""
    rng = np.random.default_rng(1)
    gold = rng.normal(size=400)
    whole, after = gold + rng.normal(size=400), gold + 2 * rng.normal(size=400)
    given = Retyped(gold, {"": whole, "made": after}, {"made": 1.0}, Sharing.of(np.arange(400)))
    frame = Stability().compute({"a": given}).frame
    (row,) = frame.to_dict("records")
    kept = [np.delete(np.arange(400), out) for out in range(400)]
    differences = [spearmanr(gold[rows], after[rows])[0] - spearmanr(gold[rows], whole[rows])[0] for rows in kept]
    error = np.sqrt(399 / 400 * ((differences - np.mean(differences)) ** 2).sum())
    assert (row["high"] - row["low"]) / 2 == pytest.approx(100 * 1.966 * error, rel=0.02)


def test_typos_depend_on_the_sentence_and_the_seed_alone_and_more_of_them_hold_the_fewer() -> None:
    texts = sentences_in(load_sample())
    few, many = ([misspell(text, share=share, seed=2) for text in texts] for share in (0.05, 0.10))
    assert [misspell(text, share=0.05, seed=2) for text in reversed(texts)] == few[::-1]
    assert few != [misspell(text, share=0.05, seed=3) for text in texts]
    words = [" ".join(side).split() for side in (texts, few, many)]
    triples = list(zip(*words, strict=True))
    assert all(lightly in {whole, heavily} and whole[0] == heavily[0] for whole, lightly, heavily in triples)
    longer = [forms for forms in triples if sum(map(str.isalpha, forms[0])) > 2]
    at_few, at_many = (np.mean([forms[place] != forms[0] for forms in longer]) for place in (1, 2))
    assert (at_few, at_many) == (pytest.approx(0.05, abs=0.02), pytest.approx(0.10, abs=0.03))
