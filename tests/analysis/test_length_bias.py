"""Length bias against a plain pandas computation, its units and options, and data whose bias is known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from stsbench.analysis.length_bias import LengthBias
from stsbench.records.labels import distinct_labels
from stsbench.scoring.statistic import Correlation
from stsbench.scoring.subjects import ScoredTask

RANGES = {"one": (0.0, 5.0), "two": (1.0, 5.0)}

Table = Callable[..., pd.DataFrame]


def made(pairs: int = 300, seed: int = 0, slope: float = 0.0) -> pd.DataFrame:
    """Pairs of two tasks whose cosine is scaled gold, noise, and a part that falls with the length difference."""
    rng = np.random.default_rng(seed)
    task = np.where(np.arange(pairs) < 2 * pairs // 3, "one", "two")
    low = np.where(task == "one", 0.0, 1.0)
    table = pd.DataFrame({"task": task, "split": "test", "text": "made", "subset": task})
    table["gold"] = (low + (5 - low) * rng.uniform(size=pairs)).round(1)
    for unit in ("words", "subwords", "characters"):
        table[f"{unit}_a"] = rng.integers(3, 30, size=pairs)
        table[f"{unit}_b"] = rng.integers(3, 30, size=pairs)
    difference = (table["words_a"] - table["words_b"]).abs()
    scaled = (table["gold"] - low) / (5 - low)
    table["cosine"] = scaled + slope / 100 * difference + rng.normal(0, 0.05, size=pairs)
    numbers = np.arange(pairs, dtype=np.uint64)
    ids = {"a": 2 * numbers, "b": 2 * numbers + 1}
    return table.assign(**{f"{kind}_{side}": of for side, of in ids.items() for kind in ("sentence", "folded")})


def scored(table: pd.DataFrame) -> list[ScoredTask]:
    """Return the tasks of a table of pairs."""
    keys = list(zip(table["task"], table["split"], table["text"], strict=True))
    return [
        ScoredTask(str(label), Correlation("spearman", "all", "cosine"), part, RANGES[part["task"].iloc[0]])
        for label, part in table.groupby(distinct_labels(keys), sort=False)
    ]


def bias_of(*tables: pd.DataFrame, **options: Any) -> LengthBias:
    models = {name: scored(table) for name, table in zip("ab", tables, strict=False)}
    return LengthBias(**options).compute(models)


def value(frame: pd.DataFrame, **where: Any) -> pd.Series:
    for column, wanted in where.items():
        frame = frame[frame[column] == wanted]
    (row,) = (row for _, row in frame.iterrows())
    return row


@pytest.mark.parametrize("unit", ["words", "subwords", "characters"])
@pytest.mark.parametrize("threshold", [1, 3, 8])
def test_groups_and_values_are_those_of_plain_pandas(unit: str, threshold: int) -> None:
    table = made()
    frame = bias_of(table, length=unit, threshold=threshold).frame
    plain = table.copy()
    plain["short"] = (plain[f"{unit}_a"] - plain[f"{unit}_b"]).abs() <= threshold
    scaled = (plain["gold"] / 5).where(plain["task"] == "one", (plain["gold"] - 1) / 4)
    plain["error"] = (plain["cosine"] - scaled) * 100
    means: dict[tuple[str, str], list[float]] = {}
    for short, group in ((True, f"<= {threshold}"), (False, f"> {threshold}")):
        for task in ("one", "two"):
            part = plain[(plain["short"] == short) & (plain["task"] == task)]
            expected = {
                "spearman": 100 * spearmanr(part["gold"], part["cosine"]).statistic,
                "signed difference": part["error"].mean(),
                "absolute difference": part["error"].abs().mean(),
            }
            for measure, number in expected.items():
                found = value(frame, task=task, measure=measure, group=group)
                assert found["value"] == pytest.approx(number, abs=1e-9)
                assert found["pairs"] == len(part)
                means.setdefault((measure, group), []).append(number)
    for measure in ("spearman", "signed difference", "absolute difference"):
        near, far = (np.mean(means[measure, f"{sign} {threshold}"]) for sign in ("<=", ">"))
        for group, expected in ((f"<= {threshold}", near), (f"> {threshold}", far), ("gap", near - far)):
            found = value(frame, task="Avg.", measure=measure, group=group)["value"]
            assert found == pytest.approx(expected, abs=1e-9)


def test_the_curve_and_the_slope_are_those_of_plain_least_squares() -> None:
    table = made(slope=-0.5)
    frame = bias_of(table, bins=(0, 2, 5, 10)).frame
    difference = (table["words_a"] - table["words_b"]).abs()
    low = table["task"].map({"one": 0, "two": 1})
    error = 100 * (table["cosine"] - (table["gold"] - low) / (5 - low))
    bins = pd.cut(difference, [-1, 1, 4, 9, 100], labels=["0-1", "2-4", "5-9", "10+"])
    relative = error - error.groupby(table["task"]).transform("mean")
    for name in bins.cat.categories:
        point = value(frame, task="all tasks", measure="error", group=name)
        assert point["value"] == pytest.approx(error[bins == name].mean())
        assert point["length_difference"] == pytest.approx(difference[bins == name].mean())
        assert point["pairs"] == (bins == name).sum()
        point = value(frame, task="all tasks", measure="relative error", group=name)
        assert point["value"] == pytest.approx(relative[bins == name].mean())
    # With an intercept for each task, the slope is that of the deviations from the tasks' means.
    x = difference - difference.groupby(table["task"]).transform("mean")
    slope = value(frame, task="all tasks", measure="slope")
    assert slope["value"] == pytest.approx((x * relative).sum() / (x * x).sum())
    one = table["task"] == "one"
    assert value(frame, task="one", measure="slope")["value"] == pytest.approx(
        np.polyfit(difference[one], error[one], 1)[0]
    )


def designed(contrast: float) -> pd.DataFrame:
    table = made(240).assign(task="one")
    length = np.where(np.arange(240) % 2, "same-length", "different-length")
    meaning = np.array(["same-meaning", "related", "different-meaning"])[np.arange(240) // 2 % 3]
    gold = pd.Series(meaning).map({"same-meaning": 4.5, "related": 2.5, "different-meaning": 0.5})
    noise = np.random.default_rng(1).normal(0, 0.02, size=240)
    return table.assign(
        design=[f"{a}-{b}" for a, b in zip(meaning, length, strict=True)],
        gold=gold,
        cosine=gold / 5 + noise + np.where(length == "same-length", contrast / 100, 0),
    )


@pytest.mark.parametrize("contrast", [0.0, 6.0])
def test_the_contrast_of_designed_pairs_is_what_length_alone_adds(contrast: float) -> None:
    result = bias_of(designed(contrast))
    frame = result.frame
    for meaning in ("same-meaning", "related", "different-meaning", "mean"):
        row = value(frame, measure="design contrast", group=meaning)
        assert row["value"] == pytest.approx(contrast, abs=1.5)
        assert row["pairs"] == (240 if meaning == "mean" else 80)
    mean = value(frame, measure="design contrast", group="mean")
    assert bool(mean["low"] > 0) == (contrast > 0)
    against = value(frame, measure="design margin", group="length against meaning")["value"]
    along = value(frame, measure="design margin", group="length with meaning")["value"]
    # Of the same meaning at different length, or the reverse: the part of length comes in once with either sign.
    assert along - against == pytest.approx(2 * contrast, abs=2.5)
    assert against == pytest.approx(80 - contrast, abs=2)
    assert result.table()[-1].caption.startswith("The sample's designed pairs")
