"""What a rotation, a scale or another order of pairs must not change; and analyses of the run's own similarity."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from own_runs import OWN_SIMILARITY, options_of, write_pairs, write_words
from scipy.stats import ortho_group, rankdata, spearmanr

import stsbench as sb
from stsbench.analysis import ANALYSES, analysis
from stsbench.data.own_pairs import load_pairs

Encode = Callable[[list[str]], NDArray[np.float64]]
Floats = NDArray[np.float64]

MOVED = {
    "dimensions": ("share", "without top", "standardised", "ranks", "manhattan"),
    "compress": ("leading", "random", "fp16", "int8", "binary"),
    "length-collapse": ("norm",),
}
"""Words in the rows that a rotation or a scale may change."""

TOLERANCE = {"compress": 0.05, "ties": 0.5, "stability": 0.2}
"""Rounding of float32 breaks ties of similarities."""


@pytest.mark.parametrize("name", [name for name in ANALYSES if name != "repetition-bias"])
def test_a_rotation_and_a_scale_change_no_number_of_the_geometry_of_vectors(
    name: str, hash_encode: Encode, tmp_path: Path
) -> None:
    turn = 4 * ortho_group.rvs(8, random_state=3)
    parameters = analysis(name).parameters
    options = {key: value for key, value in options_of(name, tmp_path).items() if key != "data"}
    options |= {"task": "sample"} if "task" in parameters else {}
    options |= {"tasks": ["sample"]} if "tasks" in parameters else {}
    encoders = (hash_encode, lambda texts: hash_encode(texts) @ turn)
    frames = [analysis(name).verb(encode, **options).frame.drop(columns="model") for encode in encoders]
    words = frames[0].apply(lambda row: " ".join(map(str, row)), axis=1)
    kept = ~words.str.contains("|".join((*MOVED.get(name, ()), "dimensions 64")))
    if name == "ties":
        kept &= frames[0]["precision"] == "as recorded"
    assert kept.any()
    found, expected = (frame[kept].select_dtypes("number").to_numpy(float) for frame in frames)
    assert found == pytest.approx(expected, abs=TOLERANCE.get(name, 1e-5), nan_ok=True)


PLAIN: dict[str, Callable[[Floats, Floats], float]] = {
    "cosine": lambda u, v: float(u @ v / np.sqrt(u @ u) / np.sqrt(v @ v)),
    "dot": lambda u, v: float(u @ v),
    "euclidean": lambda u, v: -float(np.sqrt(((u - v) ** 2).sum())),
    "manhattan": lambda u, v: -float(np.abs(u - v).sum()),
}


class Pairs:
    """The pairs of a file with the similarities of a file of word vectors, computed without the package."""

    def __init__(self, folder: Path, kind: str) -> None:
        table = pd.read_csv(folder / "a" / "pairs.tsv", sep="\t")
        rows = [line.split() for line in (folder / "words.txt").read_text(encoding="utf-8").splitlines()]
        of_word = {word: np.array(numbers, dtype=np.float64) for word, *numbers in rows}
        sides = [[text.split() for text in table[f"sentence{side}"]] for side in (1, 2)]
        vectors = [[np.mean([of_word[word] for word in words], axis=0) for words in side] for side in sides]
        self.gold: Floats = table["score"].to_numpy(dtype=float)
        self.scaled = (self.gold - self.gold.min()) / np.ptp(self.gold)
        self.similarity: Floats = np.array([PLAIN[kind](u, v) for u, v in zip(*vectors, strict=True)])
        self.apart = np.array([abs(len(a) - len(b)) for a, b in zip(*sides, strict=True)])

    def spearman(self, inside: Any = slice(None)) -> float:
        return float(100 * spearmanr(self.gold[inside], self.similarity[inside]).statistic)


def plain_length_bias(pairs: Pairs) -> dict[Any, float]:
    error, near = 100 * (pairs.similarity - pairs.scaled), pairs.apart <= 3
    return {
        ("spearman", "all"): pairs.spearman(),
        ("spearman", "gap"): pairs.spearman(near) - pairs.spearman(~near),
        ("signed difference", "gap"): error[near].mean() - error[~near].mean(),
        ("slope", "all"): np.polyfit(pairs.apart, error, 1)[0],
    }


def plain_pair_kinds(pairs: Pairs) -> dict[Any, float]:
    far = pairs.apart > 3
    ranks, gold = (100 * (rankdata(side) - 0.5) / len(far) for side in (pairs.similarity, pairs.gold))
    tenths = np.minimum((10 * pairs.scaled).astype(int), 9)
    columns = np.column_stack([far, *(tenths == tenth for tenth in set(tenths))]).astype(float)
    kind = "lengths more than 3 words apart"
    return {
        ("shift", kind): np.linalg.lstsq(columns, ranks, rcond=None)[0][0],
        ("cost", kind): ((ranks - gold) ** 2)[far].mean() / ((ranks - gold) ** 2).mean(),
    }


PLAINLY: dict[str, tuple[Callable[[Pairs], dict[Any, float]], list[str], str]] = {
    "ties": (lambda pairs: {("as recorded",): pairs.spearman()}, ["precision"], "score"),
    "length-bias": (plain_length_bias, ["measure", "group"], "value"),
    "pair-kinds": (plain_pair_kinds, ["measure", "kind"], "value"),
}


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("name", OWN_SIMILARITY)
def test_an_analysis_of_similarities_uses_those_of_the_run(name: str, kind: str, tmp_path: Path) -> None:
    write_words(tmp_path / "words.txt")
    write_pairs(tmp_path / "a" / "pairs.tsv", pairs=150)
    pairs = load_pairs(tmp_path / "a" / "pairs.tsv")
    run = sb.evaluate(str(tmp_path / "words.txt"), [pairs], protocol=sb.protocol(similarity=kind))
    result = analysis(name).verb(run, **options_of(name, tmp_path))
    compute, keys, column = PLAINLY[name]
    frame = result.frame[~result.frame["task"].isin(["all tasks"])].set_index(keys)[column]
    for key, expected in compute(Pairs(tmp_path, kind)).items():
        assert frame[key if len(key) > 1 else key[0]] == pytest.approx(expected, rel=1e-5), key
    assert set(result.frame["similarity"]) == {kind}
    assert (f"the similarity is {kind}" in str(result)) == (kind != "cosine")
