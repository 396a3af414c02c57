"""Every analysis on runs by each similarity: by the run's own, as computed plainly; or by cosine for any run."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from own_runs import OWN_SIMILARITY, analyse, write_pairs, write_words
from scipy.stats import rankdata, spearmanr

import stsbench as sb
from stsbench.analysis import ANALYSES
from stsbench.data.benchmarks import load_sample

Floats = NDArray[np.float64]

PLAIN: dict[str, Callable[[Floats, Floats], float]] = {
    "cosine": lambda u, v: float(u @ v / np.sqrt(u @ u) / np.sqrt(v @ v)),
    "dot": lambda u, v: float(u @ v),
    "euclidean": lambda u, v: -float(np.sqrt(((u - v) ** 2).sum())),
    "manhattan": lambda u, v: -float(np.abs(u - v).sum()),
}


class Pairs:
    """The pairs of a file with the similarities of a file of word vectors, without the package's own ways."""

    def __init__(self, folder: Path, kind: str) -> None:
        table = pd.read_csv(folder / "a" / "pairs.tsv", sep="\t")
        rows = [line.split() for line in (folder / "words.txt").read_text(encoding="utf-8").splitlines()]
        of_word = {word: np.array(numbers, dtype=np.float64) for word, *numbers in rows}
        sides = [[text.split() for text in table[f"sentence{side}"]] for side in (1, 2)]
        vectors = [[np.mean([of_word[word] for word in words], axis=0) for words in side] for side in sides]
        self.gold: Floats = table["score"].to_numpy(dtype=float)
        self.similarity: Floats = np.array([PLAIN[kind](u, v) for u, v in zip(*vectors, strict=True)])
        self.apart = np.array([abs(len(a) - len(b)) for a, b in zip(*sides, strict=True)])

    def spearman(self, inside: Any = slice(None)) -> float:
        return float(100 * spearmanr(self.gold[inside], self.similarity[inside]).statistic)


def plain_ties(pairs: Pairs) -> dict[Any, float]:
    return {("pairs", "score"): pairs.spearman()}


def plain_length_bias(pairs: Pairs) -> dict[Any, float]:
    low, high = pairs.gold.min(), pairs.gold.max()
    error = 100 * (pairs.similarity - (pairs.gold - low) / (high - low))
    near = pairs.apart <= 3
    return {
        ("pairs", "spearman", "all"): pairs.spearman(),
        ("pairs", "spearman", "gap"): pairs.spearman(near) - pairs.spearman(~near),
        ("pairs", "signed difference", "gap"): error[near].mean() - error[~near].mean(),
        ("pairs", "slope", "all"): np.polyfit(pairs.apart, error, 1)[0],
    }


def plain_pair_kinds(pairs: Pairs) -> dict[Any, float]:
    size, far = len(pairs.gold), pairs.apart > 3
    ranks, gold = (100 * (rankdata(side) - 0.5) / size for side in (pairs.similarity, pairs.gold))
    low, high = pairs.gold.min(), pairs.gold.max()
    tenths = np.minimum((10 * ((pairs.gold - low) / (high - low))).astype(int), 9)
    columns = np.column_stack([far, *(tenths == tenth for tenth in set(tenths))]).astype(float)
    kind = "lengths more than 3 words apart"
    return {
        ("pairs", "shift", kind): np.linalg.lstsq(columns, ranks, rcond=None)[0][0],
        ("pairs", "cost", kind): ((ranks - gold) ** 2)[far].mean() / ((ranks - gold) ** 2).mean(),
    }


def numbers(name: str, frame: pd.DataFrame) -> dict[Any, float]:
    """Return the values of a frame by what they are of."""
    if name == "ties":
        return {(row["task"], "score"): row["score"] for row in frame.to_dict("records")[:1]}
    group = "kind" if name == "pair-kinds" else "group"
    return {(row["task"], row["measure"], row[group]): row["value"] for row in frame.to_dict("records")}


PLAINLY = {"ties": plain_ties, "length-bias": plain_length_bias, "pair-kinds": plain_pair_kinds}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_words(folder / "words.txt")
    write_pairs(folder / "a" / "pairs.tsv", pairs=150)
    return folder


@pytest.fixture(scope="module")
def run_by(folder: Path) -> Callable[[str], sb.RunRecord]:
    tasks = [write_pairs(folder / "a" / "pairs.tsv", pairs=150), load_sample()]
    return cache(lambda kind: sb.evaluate(str(folder / "words.txt"), tasks, protocol=sb.protocol(similarity=kind)))


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("name", OWN_SIMILARITY)
def test_an_analysis_of_similarities_uses_those_of_the_run(
    name: str, kind: str, folder: Path, run_by: Callable[[str], sb.RunRecord]
) -> None:
    result = analyse(name, folder, run_by(kind))
    found = numbers(name, result.frame)
    for key, expected in PLAINLY[name](Pairs(folder, kind)).items():
        assert found[key] == pytest.approx(expected, rel=1e-5), key
    assert set(result.frame["similarity"]) == {kind}
    assert (f"the similarity is {kind}" in str(result)) == (kind != "cosine")


@pytest.fixture(scope="module")
def by_cosine(folder: Path, run_by: Callable[[str], sb.RunRecord]) -> Callable[[str], pd.DataFrame]:
    return cache(lambda name: analyse(name, folder, run_by("cosine")).frame)


@pytest.mark.parametrize("kind", ["dot", "euclidean", "manhattan"])
@pytest.mark.parametrize("name", [name for name in ANALYSES if name not in OWN_SIMILARITY])
def test_every_other_analysis_is_by_the_cosine_and_says_so(
    name: str,
    kind: str,
    folder: Path,
    run_by: Callable[[str], sb.RunRecord],
    by_cosine: Callable[[str], pd.DataFrame],
) -> None:
    result = analyse(name, folder, run_by(kind))
    of_run = ["sts"] if name == "geometry" else []
    pd.testing.assert_frame_equal(
        result.frame.drop(columns=of_run), by_cosine(name).drop(columns=of_run), check_exact=True
    )
    # The spectrum compares no two vectors.
    assert name == "spectrum" or "cosine" in str(result).lower()
