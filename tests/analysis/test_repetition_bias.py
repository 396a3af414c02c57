"""The repetition probe against a brute-force version, its corner cases."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import t

from stsbench.analysis.repetition_bias import RepetitionBias, RepetitionProbe
from stsbench.statistics.seeds import generator

WORDS = [*"abcdefghijklmnopqr", "Rain", "rain", "Owl"]


def corpus_of(sentences: int = 120, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    made = (" ".join(rng.choice(WORDS, size=rng.integers(5, 16))) for _ in range(sentences))
    return list(dict.fromkeys(made))


def brute_force(corpus: Sequence[str], query: int, low: float = 0.13, high: float = 0.17) -> list[int]:
    """Return the candidates of a query, sentence by sentence and word by word."""
    wanted = corpus[query].casefold().split()
    shares = [np.mean([word in wanted for word in text.casefold().split()]) for text in corpus]
    return [number for number, share in enumerate(shares) if number != query and low <= share <= high]


@pytest.mark.parametrize(("low", "high"), [(0.13, 0.17), (0.3, 0.5), (1.0, 1.0)])
def test_candidates_are_those_of_brute_force(low: float, high: float) -> None:
    corpus = corpus_of()
    probe = RepetitionProbe(corpus, low, high)
    found = {query: probe.candidates(query).tolist() for query in range(len(corpus))}
    assert found == {query: brute_force(corpus, query, low, high) for query in range(len(corpus))}
    assert any(found.values())


def test_the_words_that_are_shared_are_repeated_in_place_whatever_their_case() -> None:
    query = "I like this apple because it looks very fresh"
    candidate = "This is a VERY tall tree with a nest that nobody else saw before"
    probe = RepetitionProbe([query, candidate], low=0.1, high=0.2)
    # Of the other way round no share lies in the range.
    assert probe.draw(1, generator(0)) == [
        (query, candidate, "This This is a VERY VERY tall tree with a nest that nobody else saw before")
    ]


def cosines_of(seeds: int = 4, queries: int = 50, rise: float = 0.02) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 0.5, size=(seeds, queries))
    return [(before, before + rise + rng.normal(0, 0.01, size=queries)) for before in first]


def test_means_rises_and_intervals_are_those_of_plain_numpy() -> None:
    cosines = cosines_of()
    frame = RepetitionBias().compute({"a": dict(zip((7, 8, 9, 10), cosines, strict=True))}).frame
    for seed, (before, after) in zip((7, 8, 9, 10), cosines, strict=True):
        own = frame[frame["seed"] == str(seed)].set_index("measure")
        assert own["value"].to_dict() == pytest.approx(
            {"q-s1": 100 * before.mean(), "q-s2": 100 * after.mean(), "rise": 100 * (after - before).mean()}
        )
        assert set(own["interval"]) == {"queries"}
        apart = (after - before) - (after - before).mean()
        half = t.ppf(0.975, (apart**2).sum() ** 2 / (apart**4).sum()) * 100 * apart.std() / np.sqrt(len(before))
        assert own.loc["rise", "high"] - own.loc["rise", "value"] == pytest.approx(half)
    means = np.array([100 * (after - before).mean() for before, after in cosines])
    together = frame[(frame["seed"] == "all") & (frame["measure"] == "rise")].set_index("interval")
    assert together["value"].to_list() == pytest.approx([means.mean()] * 2)
    low, high = t.interval(0.95, 3, loc=means.mean(), scale=means.std(ddof=1) / 2)
    assert (together.loc["seeds", "low"], together.loc["seeds", "high"]) == pytest.approx((low, high))
    assert together.loc["queries", "queries"] == 200
    one = RepetitionBias().compute({"a": {0: cosines[0]}}).frame
    assert one.loc[one["interval"] == "seeds", "low"].isna().all()
    half = 1.96 * 100 * np.sqrt(sum((after - before).var() / 50 for before, after in cosines)) / 4
    assert together.loc["queries", "high"] - means.mean() == pytest.approx(half, rel=0.05)
