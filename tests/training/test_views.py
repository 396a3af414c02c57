"""The views draw as the papers' equations say, and keep the sentence's order."""

import numpy as np
import pytest
from scipy import stats

from stsbench.training.views import SubwordRepetition, Unchanged, WordRepetition, doubled

DRAWS = 20_000


def lengths(view: SubwordRepetition, size: int) -> np.ndarray:
    rng, tokens = np.random.default_rng(0), np.arange(size)
    return np.array([len(view.tokens(tokens, rng)) - size for _ in range(DRAWS)])


@pytest.mark.parametrize(("size", "rate", "most"), [(25, 0.32, 8), (4, 0.32, 2), (30, 0.2, 6), (9, 1.0, 9)])
def test_the_paper_doubles_uniformly_up_to_equation_3(size, rate, most):
    view = SubwordRepetition(kind="subword-repetition", rate=rate)
    counts = np.bincount(lengths(view, size), minlength=most + 1)
    assert len(counts) == most + 1
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(("size", "rate", "most"), [(25, 0.32, 7), (60, 0.32, 9), (4, 0.32, 0), (1, 0.32, 0)])
def test_the_released_code_doubles_at_most_nine(size, rate, most):
    # int(0.32 * 27) = 8, less one; capped at 10, less one; int(0.32 * 6) = 1, less one.
    view = SubwordRepetition(kind="subword-repetition", rate=rate, variant="released")
    counts = np.bincount(lengths(view, size), minlength=most + 1)
    assert len(counts) == most + 1
    assert most == 0 or stats.chisquare(counts).pvalue > 1e-3


def test_every_position_is_doubled_equally_often_as_equation_4_says():
    rng, size, most = np.random.default_rng(1), 12, 5
    marks = np.array([doubled(size, most, rng) for _ in range(DRAWS)])
    assert stats.chisquare(marks.sum(0)).pvalue > 1e-3
    # And given how many, every set of positions is as likely as any other.
    pairs = marks[marks.sum(1) == 2]
    codes = [tuple(np.flatnonzero(row)) for row in pairs]
    counts = [codes.count((i, j)) for i in range(size) for j in range(i + 1, size)]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_no_more_positions_are_doubled_than_there_are():
    rng = np.random.default_rng(0)
    assert {int(doubled(1, 2, rng).sum()) for _ in range(100)} == {0, 1}
    assert doubled(0, 2, rng).tolist() == []


def test_a_doubled_subword_stands_beside_itself_and_the_order_is_kept():
    view, rng = SubwordRepetition(kind="subword-repetition", rate=0.5), np.random.default_rng(2)
    tokens = np.arange(10)
    for _ in range(50):
        seen = view.tokens(tokens, rng)
        assert (np.diff(seen) >= 0).all()
        assert np.unique(seen).tolist() == tokens.tolist()
        assert np.bincount(seen).max() <= 2


def test_words_are_doubled_whole_and_by_the_same_law():
    view, rng = WordRepetition(kind="word-repetition", rate=0.32), np.random.default_rng(3)
    sentence = "the long word microbiology stands in this one sentence , as said"
    counts = np.zeros(4, dtype=int)
    for _ in range(4000):
        words = view.text(sentence, rng).split()
        assert list(dict.fromkeys(words)) == sentence.split()
        counts[len(words) - len(sentence.split())] += 1
    assert stats.chisquare(counts).pvalue > 1e-3  # int(0.32 * 12) = 3


def test_identity_changes_nothing():
    assert Unchanged().tokens(np.arange(5), np.random.default_rng(0)).tolist() == [0, 1, 2, 3, 4]
