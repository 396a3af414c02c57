"""`compress` on the sample and on invented pairs: held against plain NumPy, and against other verbs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from own_runs import write_pairs
from scipy.stats import kendalltau, spearmanr

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sample
from stsbench.data.corpus import load_corpus
from stsbench.data.tables import same_letters
from stsbench.encoders.plan import embed
from stsbench.statistics.seeds import generator

Encode = Callable[[list[str]], NDArray[np.float64]]
NO_INTERVALS = sb.Intervals(None)
SIZES = [5, 3]


def cell_of(frame: pd.DataFrame, size: int) -> pd.DataFrame:
    return frame[(frame["dimensions"] == size) & (frame["kept"] == "leading") & (frame["stored"] == "fp32")]


def cosines(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.float64]:
    left, right = left.astype(float), right.astype(float)
    return (left * right).sum(axis=1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


def by_plain_numpy(encode: Encode, cell: dict[str, Any], seed: int = 0) -> list[float]:
    """Return the scores of a smaller vector on the sample, a score a draw: slowly, each from the start."""
    pairs = load_sample().pairs
    seen = {same_letters(text) for text in [*pairs["sentence1"], *pairs["sentence2"]]}
    others = encode([text for text in load_corpus("sample") if same_letters(text) not in seen]).astype(np.float32)
    sides = [encode(list(pairs[side])).astype(np.float32) for side in ("sentence1", "sentence2")]
    width, size = others.shape[1], cell["dimensions"]
    if cell["kept"] == "PCA":
        mean = others.mean(axis=0, dtype=np.float64)
        axes = np.linalg.svd(others - mean)[2].T
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(width)])
        others, *sides = (((matrix - mean) @ axes).astype(np.float32) for matrix in (others, *sides))
    draws = [np.arange(size)]
    if cell["kept"] == "random":
        draws = [generator(seed, "compress", str(draw)).permutation(width)[:size] for draw in range(3)]
    scores = []
    for kept in draws:
        left, right = (side[:, kept] for side in sides)
        if cell["stored"] == "binary":
            similarity = -((left > 0) != (right > 0)).sum(axis=1)
        else:
            if cell["stored"] == "fp16":
                left, right = left.astype(np.float16), right.astype(np.float16)
            if cell["stored"] == "int8":
                low, high = others[:, kept].min(axis=0), others[:, kept].max(axis=0)
                step = (high - low) / np.float32(255)
                left, right = (np.clip(np.floor((side - low) / step), 0, 255) - 128 for side in (left, right))
            similarity = cosines(left, right)
        scores.append(100 * spearmanr(pairs["gold"], similarity).statistic)
    return scores


def test_every_smaller_vector_scores_what_plain_numpy_says(hash_encode: Encode) -> None:
    frame = sb.compress(hash_encode, tasks=["sample"], sizes=SIZES, draws=3, intervals=NO_INTERVALS).frame
    assert len(frame) == 4 * (2 + 3 + 3)
    for cell in frame.to_dict("records"):
        scores = by_plain_numpy(hash_encode, cell)
        # A rounding in float32 of a turned vector may move a pair by a step of int8, or a bit at 0.
        apart = 0.2 if cell["kept"] == "PCA" and cell["stored"] in {"int8", "binary", "fp16"} else 0.01
        assert cell["score"] == pytest.approx(np.mean(scores), abs=apart), cell
        if cell["kept"] == "random":
            assert cell["spread"] == pytest.approx(np.std(scores, ddof=1), abs=apart)
        else:
            assert np.isnan(cell["spread"])


def test_a_difference_its_interval_and_the_verdict_are_those_of_compare_and_check(
    hash_encode: Encode, tmp_path: Path
) -> None:
    encoder = sb.load(hash_encode)
    full, leading = sb.evaluate(encoder, "sample"), sb.evaluate(sb.load(hash_encode, dimensions=5), "sample")
    for margin in (0.5, 5.0, 30.0):
        frame = sb.compress(encoder, tasks=["sample"], sizes=SIZES, margin=margin).frame
        cell = cell_of(frame, 5).iloc[0]
        row = sb.compare(full, leading).rows.iloc[0]
        assert tuple(cell[["difference", "low", "high"]]) == pytest.approx((row.difference, row.low, row.high))
        assert cell["verdict"] == sb.check(leading, baseline=full, margin=margin).cells[0].verdict
    assert cell["verdict"] == "within margin"


def test_of_several_tasks_the_average_is_compared_with_its_shared_sentences(
    hash_encode: Encode, tmp_path: Path
) -> None:
    sets = [write_pairs(tmp_path / name / f"{name}.tsv", seed=seed) for seed, name in enumerate(("one", "other"))]
    full, leading = (sb.evaluate(sb.load(hash_encode, dimensions=kept), sets) for kept in (None, 5))
    average = sb.compare(full, leading).rows.iloc[-1]
    files = sorted(tmp_path.glob("*/*.tsv"))
    cell = cell_of(sb.compress(full, sizes=SIZES, data=files).frame, 5)
    assert cell["task"].tolist() == ["one", "other", "Avg."] == [*(data.task for data in sets), average.task]
    found = cell.iloc[-1]
    row = (average.difference, average.low, average.high)
    assert tuple(found[["difference", "low", "high"]]) == pytest.approx(row)
    assert found["score"] == pytest.approx(cell["score"].iloc[:-1].mean())
    with pytest.raises(UserError, match=r"sentences are not here: name the folder .* or a file of your own"):
        sb.compress(full)


def test_the_smallest_vector_is_the_one_of_the_fewest_bytes_that_passes(hash_encode: Encode) -> None:
    result = sb.compress(hash_encode, tasks=["sample"], sizes=SIZES, margin=12)
    passing = result.frame[result.frame["verdict"] == "within margin"]
    assert 1 < len(passing) < len(result.frame)
    for row in result.smallest.to_dict("records"):
        assert row["bytes"] == passing.loc[passing["kept"] == row["kept"], "bytes"].min()
    assert set(result.smallest["kept"]) == set(passing["kept"])
    assert result.smallest["bytes"].min() == passing["bytes"].min()


def test_another_metric_has_its_scores(hash_encode: Encode) -> None:
    record = sb.evaluate(hash_encode, "sample", protocol=sb.protocol(metric="kendall"), intervals=NO_INTERVALS)
    embed(sb.load(hash_encode), list(load_corpus("sample")))
    frame = sb.compress(record, sizes=SIZES, intervals=NO_INTERVALS).frame
    pairs = load_sample().pairs
    left, right = (hash_encode(list(pairs[side]))[:, :3] for side in ("sentence1", "sentence2"))
    expected = 100 * kendalltau(pairs["gold"], cosines(left, right)).statistic
    assert cell_of(frame, 3).iloc[0]["score"] == pytest.approx(expected, abs=0.01)
