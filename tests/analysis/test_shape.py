"""The shape of vectors behind a score: dimensions, hubness, length collapse, against the plainest computation."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import skew, spearmanr

import stsbench as sb
from stsbench.analysis.length_collapse import unrelated_cosine
from stsbench.data.benchmarks import load_sample, load_sts
from stsbench.data.tables import same_letters

Encode = Callable[[list[str]], Any]
NO_INTERVALS = sb.Intervals(None)
VERBS = (sb.dimensions, sb.hubness, sb.length_collapse)


def numbers_of(frame: pd.DataFrame, *key: str, task: str | None = None) -> float:
    """Return the one value of a measure (and a group)."""
    rows = frame[frame["measure"] == key[0]]
    rows = rows if task is None else rows[rows["task"] == task]
    rows = rows if len(key) == 1 else rows[rows["group"] == key[1]]
    (value,) = rows["value"]
    return float(value)


class Plain:
    """The sentences of a task with their vectors, found without the package's own ways."""

    def __init__(self, pairs: pd.DataFrame, encode: Encode) -> None:
        self.pairs = pairs
        self.texts = list(dict.fromkeys([*pairs["sentence1"], *pairs["sentence2"]]))
        self.vectors: NDArray[np.float64] = np.asarray(encode(self.texts), dtype=np.float64)
        self.units = self.vectors / np.linalg.norm(self.vectors, axis=1, keepdims=True)
        place = {text: number for number, text in enumerate(self.texts)}
        self.left, self.right = ([place[text] for text in pairs[f"sentence{side}"]] for side in (1, 2))

    def chains(self) -> list[int]:
        """Return which chain of pairs each sentence is in, those alike by letters and digits being one."""
        keys = [same_letters(text) or text for text in self.texts]
        chain = {key: number for number, key in enumerate(keys)}
        for _ in keys:
            for a, b in zip(self.left, self.right, strict=True):
                chain[keys[a]] = chain[keys[b]] = min(chain[keys[a]], chain[keys[b]])
        return [chain[key] for key in keys]

    def spearman(self, vectors: NDArray[np.float64]) -> float:
        """Return the score x 100 of the cosines of some vectors of the sentences."""
        left, right = vectors[self.left], vectors[self.right]
        cosines = (left * right).sum(axis=1) / (np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1))
        return float(100 * spearmanr(self.pairs["gold"], cosines).statistic)


def hold_dimensions(plain: Plain, frame: pd.DataFrame, top: tuple[int, ...], tolerance: float = 1e-6) -> None:
    """Hold shares and scores against sums over dimensions, one after the other."""
    units, n = plain.units, len(plain.units)
    # Of all pairs i < j at once: what is left of the square of the sum.
    made = (units.sum(axis=0) ** 2 - (units**2).sum(axis=0)) / (n * (n - 1))
    assert numbers_of(frame, "mean cosine") == pytest.approx(made.sum(), abs=tolerance)
    order = sorted(range(len(made)), key=lambda k: -made[k])
    for count in top:
        assert numbers_of(frame, "share", str(count)) == pytest.approx(
            made[order[:count]].sum() / made.sum(), abs=1e-4
        )
        kept = [k for k in range(len(made)) if k not in order[:count]]
        expected = plain.spearman(plain.vectors[:, kept])
        assert numbers_of(frame, "spearman", f"without top {count}") == pytest.approx(expected, abs=1e-3)
    standard = (plain.vectors - plain.vectors.mean(axis=0)) / plain.vectors.std(axis=0)
    assert numbers_of(frame, "spearman", "standardised") == pytest.approx(plain.spearman(standard), abs=1e-3)
    assert numbers_of(frame, "spearman", "cosine") == pytest.approx(plain.spearman(plain.vectors), abs=1e-3)
    sides = list(zip(plain.vectors[plain.left], plain.vectors[plain.right], strict=True))
    of_ranks = [spearmanr(a, b).statistic for a, b in sides]
    distances = [-np.abs(a - b).sum() for a, b in sides]
    for way, similarity in (("ranks", of_ranks), ("manhattan", distances)):
        expected = 100 * spearmanr(plain.pairs["gold"], similarity).statistic
        assert numbers_of(frame, "spearman", way) == pytest.approx(expected, abs=1e-3)
        apart = numbers_of(frame, "spearman", way) - numbers_of(frame, "spearman", "cosine")
        assert numbers_of(frame, "difference", way) == pytest.approx(apart)


def hold_hubness(plain: Plain, frame: pd.DataFrame, k: int) -> None:
    """Hold hubness against sorted cosines."""
    counts = np.zeros(len(plain.units))
    for number, unit in enumerate(plain.units):
        cosines = plain.units @ unit
        cosines[number] = -2
        counts[np.argsort(-cosines)[:k]] += 1
    assert numbers_of(frame, "skewness") == pytest.approx(skew(counts), abs=2e-2)
    assert numbers_of(frame, "anti-hubs") == pytest.approx((counts == 0).mean(), abs=1e-3)


def hold_collapse(plain: Plain, frame: pd.DataFrame) -> None:
    """Hold mean cosines by length against all pairs of a bin."""
    words = [len(text.split()) for text in plain.texts]
    chains = np.array(plain.chains())
    for name, low, high in (("0-5", 0, 5), ("9-11", 9, 11), ("31+", 31, 10**9)):
        inside = np.array([number for number, count in enumerate(words) if low <= count <= high], dtype=int)
        rows = frame[(frame["group"] == name) & (frame["measure"] == "cosine")]
        assert rows["sentences"].tolist() == [len(inside)]
        if len(inside) > 1:
            products = plain.units[inside] @ plain.units[inside].T
            apart = chains[inside][:, None] != chains[inside][None, :]
            assert rows["value"].iloc[0] == pytest.approx(products[apart].mean(), abs=1e-6)
            norms = np.linalg.norm(plain.vectors[inside], axis=1)
            assert numbers_of(frame, "norm", name) == pytest.approx(norms.mean(), rel=1e-6)


@pytest.fixture
def plain(hash_encode: Encode) -> Plain:
    return Plain(load_sample().pairs, hash_encode)


def test_the_numbers_are_those_of_the_plainest_computation_on_the_sample(
    plain: Plain, hash_encode: Encode
) -> None:
    hold_dimensions(plain, sb.dimensions(hash_encode, tasks=["sample"]).frame, (1, 3))
    hold_hubness(plain, sb.hubness(hash_encode, tasks=["sample"], k=4).frame, 4)
    hold_collapse(plain, sb.length_collapse(hash_encode, tasks=["sample"]).frame)


def test_unrelated_are_all_pairs_of_a_bin_that_no_chain_joins() -> None:
    vectors = np.random.default_rng(0).normal(size=(30, 4)) + 0.5
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    groups = np.random.default_rng(1).integers(0, 12, size=30)
    mean, terms = unrelated_cosine(units, groups)
    cosines = [units[i] @ units[j] for i, j in combinations(range(30), 2) if groups[i] != groups[j]]
    assert mean == pytest.approx(np.mean(cosines))
    assert terms.sum() == pytest.approx(0)
    # To first order the terms are what is lost with a vector.
    for left_out in range(30):
        rest = np.delete(np.arange(30), left_out)
        without, _ = unrelated_cosine(units[rest], groups[rest])
        assert mean - without == pytest.approx(terms[left_out], abs=0.12 * np.abs(terms).max())
    assert np.isnan(unrelated_cosine(units, np.zeros(30, dtype=int))[0])
    assert np.isnan(unrelated_cosine(units[:0], groups[:0])[0])


def test_several_tasks_have_a_mean_and_all_sentences_together(benchmark_folder: Path, hash_encode: Encode) -> None:
    options: dict[str, Any] = {"tasks": ["STS16", "STS-B"], "data_dirs": [benchmark_folder]}
    dimensions = sb.dimensions(hash_encode, **options).frame
    shown = sb.hubness(hash_encode, k=3, **options)
    hubs = shown.frame
    assert "Avg." in str(shown)
    for frame, key in ((dimensions, ("difference", "ranks")), (dimensions, ("share", "1")), (hubs, ("skewness",))):
        each = [numbers_of(frame, *key, task=task) for task in ("STS16", "STS-B")]
        assert numbers_of(frame, *key, task="Avg.") == pytest.approx(np.mean(each))
    collapse = sb.length_collapse(hash_encode, bins=[0, 3, 5], **options).frame
    assert list(dict.fromkeys(collapse["task"])) == ["STS16", "STS-B", "all tasks"]
    counts = collapse[(collapse["measure"] == "cosine") & (collapse["group"] == "0-2")].set_index("task")
    texts = [load_sts(task, data_dirs=[benchmark_folder]).pairs for task in ("STS16", "STS-B")]
    short = {text for pairs in texts for text in [*pairs["sentence1"], *pairs["sentence2"]] if text.count(" ") < 2}
    assert counts.loc["all tasks", "sentences"] == len(short)


@pytest.mark.parametrize("verb", VERBS)
def test_an_interval_is_wider_where_a_chain_joins_sentences_and_absent_where_none_is_asked_for(
    verb: Callable[..., Any], hash_encode: Encode
) -> None:
    dyadic, independent, none = (
        verb(hash_encode, tasks=["sample"], intervals=sb.Intervals(how)).frame
        for how in ("dyadic", "independent", None)
    )
    assert none["low"].isna().all()
    assert dyadic["value"].equals(none["value"])
    width = dyadic["high"] - dyadic["low"]
    assert (width.dropna() > 0).all()
    wider = width - (independent["high"] - independent["low"])
    assert (wider.dropna() > -1e-9).all()
    # Of the sample's few hubs no two are of one chain.
    assert (wider > 1e-9).any() or verb is sb.hubness


def test_zero_vectors_are_left_out_and_counted(plain: Plain, hash_encode: Encode) -> None:
    def is_known(text: str) -> bool:
        return "the" in text.split()

    def partly(texts: list[str]) -> Any:
        return np.asarray(hash_encode(texts)) * np.array([[is_known(text)] for text in texts])

    known = sum(map(is_known, plain.texts))
    assert 50 < known < len(plain.texts)
    assert set(sb.dimensions(partly, tasks=["sample"]).frame["sentences"]) == {known}
    assert set(sb.hubness(partly, tasks=["sample"]).frame["sentences"]) == {known}
    collapse = sb.length_collapse(partly, tasks=["sample"])
    cosines = collapse.frame[collapse.frame["measure"] == "cosine"]
    assert (cosines["sentences"].sum(), cosines["zero"].sum()) == (known, len(plain.texts) - known)
    assert f"Zero vectors left out: {len(plain.texts) - known:,}" in str(collapse)
