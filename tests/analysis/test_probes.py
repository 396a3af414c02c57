"""Probes of meaning: cosines, gaps, right orders and their intervals, against NumPy's plainest computation."""

from collections.abc import Callable
from itertools import pairwise
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

import stsbench as sb
from stsbench.analysis.probes import Probes, probed
from stsbench.data.corpus import load_triples

Encode = Callable[[list[str]], Any]
KINDS = ["negation", "typo", "reordering"]


def bigrams(texts: list[str]) -> NDArray[np.float64]:
    """Return 16 counts of two letters in a row, which a change of any kind can move."""
    counts = np.ones((len(texts), 16))
    for row, text in enumerate(texts):
        for pair in pairwise(text):
            counts[row, (31 * ord(pair[0]) + ord(pair[1])) % 16] += 1
    return counts


def letters(texts: list[str]) -> NDArray[np.float64]:
    """Return how often each letter is there, whatever their order."""
    return np.array([[0.1 + text.casefold().count(letter) for letter in ascii_lowercase] for text in texts])


def cosine(u: NDArray[np.float64], v: NDArray[np.float64]) -> float:
    return float(u @ v / np.sqrt((u @ u) * (v @ v)))


def plain(encode: Encode, kind: str) -> NDArray[np.float64]:
    """Return the cosines of a kind's triples, a row each: with the paraphrase, and with the change."""
    rows = []
    for triple in load_triples(kinds=[kind]).rows:
        sentence, paraphrase, changed = (np.asarray(encode([text]), float)[0] for text in triple[1:])
        rows.append((cosine(sentence, paraphrase), cosine(sentence, changed)))
    return np.array(rows)


def by_t(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return a mean and its interval by Student's t, with Satterthwaite's degrees of freedom."""
    n, mean = len(values), values.mean()
    squares = (values - mean) ** 2
    if np.ptp(values) <= 1e-6:
        return mean, np.nan, np.nan
    half = stats.t.ppf(0.975, squares.sum() ** 2 / (squares**2).sum()) * np.sqrt(squares.sum()) / n
    return mean, mean - half, mean + half


def newcombe(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return a difference of paired shares and its interval from the table of both (Newcombe 1998, method 10)."""
    a, b = ((one == 1) & (other == 1)).sum(), ((one == 1) & (other == 0)).sum()
    c, d = ((one == 0) & (other == 1)).sum(), ((one == 0) & (other == 0)).sum()
    n = a + b + c + d
    low, high = proportion_confint(a + b, n, method="wilson")
    other_low, other_high = proportion_confint(a + c, n, method="wilson")
    p, q, difference = (a + b) / n, (a + c) / n, (b - c) / n
    margins = float((a + b) * (c + d) * (a + c) * (b + d)) ** 0.5
    counted = a * d - b * c if a * d <= b * c else max(a * d - b * c - n / 2, 0)
    phi = counted / margins if margins else 0
    below = (p - low) ** 2 - 2 * phi * (p - low) * (other_high - q) + (other_high - q) ** 2
    above = (high - p) ** 2 - 2 * phi * (high - p) * (q - other_low) + (q - other_low) ** 2
    return difference, difference - below**0.5, difference + above**0.5


def numbers(frame: Any, **chosen: str) -> tuple[float, float, float]:
    for column, value in ({"against": ""} | chosen).items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return tuple(frame[["value", "low", "high"]].iloc[0])


def test_every_number_is_the_plain_one_with_its_interval() -> None:
    frame = sb.probes([bigrams, letters], kinds=KINDS).frame
    first, second = frame["model"].unique()
    assert len(frame) == len(KINDS) * (5 + 5 + 2)
    for kind in KINDS:
        sides = {name: plain(encode, kind) for name, encode in ((first, bigrams), (second, letters))}
        gaps = {name: of[:, 0] - of[:, 1] for name, of in sides.items()}
        right = {name: (gap > 1e-6).astype(float) for name, gap in gaps.items()}
        for name, of in sides.items():
            for values, measure in zip((*of.T, gaps[name]), ("paraphrase", "changed", "gap"), strict=True):
                found = numbers(frame, model=name, kind=kind, measure=measure)
                assert found == pytest.approx(by_t(values), nan_ok=True, abs=1e-7)
            share = right[name].mean()
            limits = proportion_confint(right[name].sum(), 40, method="wilson")
            assert numbers(frame, model=name, kind=kind, measure="order") == pytest.approx((share, *limits))
            tied = (np.abs(gaps[name]) <= 1e-6).mean()
            assert numbers(frame, model=name, kind=kind, measure="tied")[0] == tied
        paired = numbers(frame, model=second, kind=kind, measure="gap", against=first)
        assert paired == pytest.approx(by_t(gaps[second] - gaps[first]), nan_ok=True, abs=1e-7)
        paired = numbers(frame, model=second, kind=kind, measure="order", against=first)
        assert paired == pytest.approx(newcombe(right[second], right[first]))
    # All that could happen does: the numbers above are no constants.
    assert len(set(frame.loc[(frame["measure"] == "order") & (frame["against"] == ""), "value"])) > 3
    assert (frame.loc[frame["measure"] == "tied", "value"] > 0).any()


def test_triples_of_one_sentence_count_as_dependent() -> None:
    base = np.repeat(np.random.default_rng(2).uniform(0, 1, size=20), 3)
    thrice = probed(["k"] * 60, [str(number // 3) for number in range(60)], base, np.full(60, 0.5))
    shared, alone, once = (
        Probes(intervals=sb.Intervals(how)).compute({"a": given}).frame
        for given, how in ((thrice, "dyadic"), (thrice, "independent"), (thrice[::3], "dyadic"))
    )
    # Three copies of a triple say what one does.
    for measure in ("gap", "order"):
        assert numbers(shared, measure=measure) == pytest.approx(numbers(once, measure=measure))
        low, high = numbers(alone, measure=measure)[1:]
        assert high - low < 0.7 * (numbers(shared, measure=measure)[2] - numbers(shared, measure=measure)[1])
