"""EvalRank: the ranks of a plain computation, the authors' rules for pairs and background, and what is odd."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.data.benchmarks import load_sample

Encode = Callable[[list[str]], Any]


def plain_ranks(encode: Encode, pairs: list[tuple[str, str, float]], share: float, *, centred: bool) -> list[int]:
    """Return the ranks as the authors' code finds them, a search at a time."""
    best = sorted(pairs, key=lambda pair: pair[2], reverse=True)[: int(len(pairs) * share)]
    searches = list(dict.fromkeys(search for one, other, _ in best for search in ((one, other), (other, one))))
    sentences = list(dict.fromkeys(text for one, other, _ in pairs for text in (one, other)))
    matrix = np.asarray(encode(sentences), dtype=float)
    if centred:
        matrix = matrix - matrix.mean(axis=0, keepdims=True)
    units = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    place = {text: number for number, text in enumerate(sentences)}
    ranks = []
    for one, other in searches:
        cosines = units @ units[place[one]]
        # The sentence itself is in the background: it stands for the match's own place.
        ranks.append(max(1, int((cosines > cosines[place[other]] + 1e-9).sum())))
    return ranks


@pytest.mark.parametrize(("share", "centred"), [(0.25, True), (0.25, False), (1.0, True)])
def test_the_ranks_are_those_of_a_plain_computation(hash_encode: Encode, share: float, centred: bool) -> None:
    table = load_sample().pairs
    pairs = list(zip(table["sentence1"], table["sentence2"], table["gold"], strict=True))
    ranks = np.array(plain_ranks(hash_encode, pairs, share, centred=centred))
    result = sb.evalrank(hash_encode, task="sample", share=share, centred=centred)
    frame = result.frame
    assert frame["pairs"].unique().tolist() == [len(ranks)]
    assert frame["mrr"].iloc[0] == pytest.approx(np.mean(1 / ranks))
    assert frame["mean_rank"].iloc[0] == pytest.approx(ranks.mean())
    assert frame["hits"].tolist() == pytest.approx([(ranks <= k).mean() for k in range(1, 16)])
    assert result.numbers() == {"answer": pytest.approx((ranks == 1).mean())}
    scored = sb.evaluate(hash_encode, "sample", intervals=sb.Intervals(None))
    assert frame["spearman"].iloc[0] == pytest.approx(scored.scores[0].value)


def test_a_model_that_tells_nothing_apart_does_not_look_like_one_that_finds_all() -> None:
    same = sb.evalrank(lambda texts: np.ones((len(texts), 3)), task="sample")
    assert same.frame["lost"].iloc[0] == same.frame["pairs"].iloc[0]
    assert same.frame["mean_rank"].iloc[0] == same.frame["sentences"].iloc[0] - 1
    assert "with a zero vector, which get the last rank" in str(same.table())
    ties = sb.evalrank(lambda texts: [[len(text) % 2, 1.0] for text in texts], task="sample")
    assert ties.frame["tied"].iloc[0] > 0.9
    assert "scores are too high" in str(ties.table())
