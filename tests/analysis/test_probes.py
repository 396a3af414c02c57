"""Probes of meaning: cosines, gaps, right orders and their intervals, against NumPy's plainest computation."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

import stsbench as sb
from stsbench.analysis.probes import ProbedTriples, Probes
from stsbench.data.triples import COLUMNS, load_triples

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


def frame_of(cosines: dict[str, Any], kinds: list[str], sentences: list[str], intervals: sb.Intervals) -> Any:
    given = {name: ProbedTriples(*sides, kinds, sentences) for name, sides in cosines.items()}
    return Probes(intervals=intervals).compute(given).frame


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
            for column, measure in enumerate(("paraphrase", "changed")):
                found = numbers(frame, model=name, kind=kind, measure=measure)
                assert found == pytest.approx(by_t(of[:, column]), nan_ok=True, abs=1e-7)
            assert numbers(frame, model=name, kind=kind, measure="gap") == pytest.approx(
                by_t(gaps[name]), nan_ok=True, abs=1e-7
            )
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
    orders = frame[(frame["measure"] == "order") & (frame["against"] == "")]["value"]
    assert len(set(orders)) > 3
    assert (frame.loc[frame["measure"] == "tied", "value"] > 0).any()


def test_a_triple_is_right_where_the_paraphrase_is_nearer_and_a_tie_is_not() -> None:
    cosines = {"a": (np.array([0.9, 0.5, 0.7, 0.7]), np.array([0.8, 0.6, 0.7, 0.7 - 1e-9]))}
    frame = frame_of(cosines, ["k"] * 4, list("abcd"), sb.Intervals())
    assert numbers(frame, kind="k", measure="order")[0] == 0.25
    assert numbers(frame, kind="k", measure="tied")[0] == 0.5
    assert numbers(frame, kind="k", measure="gap")[0] == pytest.approx(0.0, abs=1e-9)


def test_words_in_another_order_are_tied_for_a_bag_of_words_and_told() -> None:
    rng = np.random.default_rng(0)
    known: dict[str, NDArray[np.float64]] = {}

    def bag(texts: list[str]) -> NDArray[np.float64]:
        words = [[word.strip(".,?").casefold() for word in text.split()] for text in texts]
        for word in (word for text in words for word in text):
            known.setdefault(word, rng.normal(size=30))
        return np.array([sum(known[word] for word in text) for text in words])

    probe = sb.probes(bag, kinds=["role-swap", "reordering"])
    assert numbers(probe.frame, kind="reordering", measure="tied")[0] == 1
    assert numbers(probe.frame, kind="reordering", measure="order")[0] == 0
    assert numbers(probe.frame, kind="role-swap", measure="changed")[0] == pytest.approx(1)
    assert probe.notes[-1].endswith("both cosines are equal in 40 triples, which count as wrong.")


def test_turning_and_scaling_all_vectors_changes_nothing() -> None:
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(16, 16)))[0]

    def other(texts: list[str]) -> NDArray[np.float64]:
        return 7.5 * bigrams(texts) @ rotation

    one, two = (sb.probes(encode, kinds=KINDS).frame for encode in (bigrams, other))
    columns = ["value", "low", "high"]
    np.testing.assert_allclose(one[columns], two[columns], atol=1e-6)


def test_the_order_of_triples_changes_nothing(tmp_path: Path) -> None:
    rows = load_triples(kinds=KINDS).rows
    for name, order in (("a.tsv", rows), ("b.tsv", rows[::-1])):
        lines = ["\t".join(row) for row in (COLUMNS, *order)]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    one, two = (sb.probes(bigrams, triples=tmp_path / name, kinds=KINDS).frame for name in ("a.tsv", "b.tsv"))
    assert (one["triples"].unique().tolist(), two["triples"].unique().tolist()) == (["a.tsv"], ["b.tsv"])
    np.testing.assert_allclose(one[["value", "low", "high"]], two[["value", "low", "high"]], atol=1e-12)


def test_triples_of_one_sentence_count_as_dependent() -> None:
    rng = np.random.default_rng(2)
    base = np.repeat(rng.uniform(0, 1, size=20), 3)
    cosines = {"a": (base, np.full(60, 0.5))}
    kinds, sentences = ["k"] * 60, [str(number // 3) for number in range(60)]
    shared = frame_of(cosines, kinds, sentences, sb.Intervals())
    alone = frame_of(cosines, kinds, sentences, sb.Intervals("independent"))
    once = frame_of({"a": (base[::3], np.full(20, 0.5))}, kinds[:20], sentences[::3], sb.Intervals())
    # Three copies of a triple say what one does.
    for measure in ("gap", "order"):
        assert numbers(shared, measure=measure) == pytest.approx(numbers(once, measure=measure))
        low, high = numbers(alone, measure=measure)[1:]
        assert high - low < 0.7 * (numbers(shared, measure=measure)[2] - numbers(shared, measure=measure)[1])


def test_a_share_of_all_has_an_interval_and_no_intervals_are_left_out_on_request() -> None:
    cosines = {"a": (np.linspace(0.8, 0.9, 40), np.linspace(0.5, 0.7, 40))}
    frame = frame_of(cosines, ["k"] * 40, [str(number) for number in range(40)], sb.Intervals())
    assert numbers(frame, measure="order") == pytest.approx((1, *proportion_confint(40, 40, method="wilson")))
    assert numbers(frame, measure="order")[1] > 0.9
    without = frame_of(cosines, ["k"] * 40, [str(number) for number in range(40)], sb.Intervals(None))
    assert without[["low", "high"]].isna().all(axis=None)
    sb.probes(bigrams, intervals=sb.Intervals(None)).plot()


def test_shares_that_differ_on_the_same_triples_have_an_interval_inside_what_is_possible() -> None:
    rng = np.random.default_rng(3)
    near, far = rng.uniform(0.6, 0.9, size=40), rng.uniform(0.1, 0.5, size=40)
    models = {"all": (near, far), "none": (far, near), "other": (near, rng.permutation(near))}
    frame = frame_of(models, ["k"] * 40, [str(number) for number in range(40)], sb.Intervals())
    difference, low, high = numbers(frame, model="none", measure="order", against="all")
    assert difference == -1
    assert -1 <= low < high < -0.8
    one = np.ones(40)
    other = (models["other"][0] > models["other"][1]).astype(float)
    assert numbers(frame, model="other", measure="order", against="all") == pytest.approx(newcombe(other, one))
    # Of two models that agree on every triple the difference is 0, give or take.
    same = frame_of(
        {"a": models["other"], "b": models["other"]}, ["k"] * 40, list(map(str, range(40))), sb.Intervals()
    )
    agreed = numbers(same, model="b", measure="order", against="a")
    assert agreed == pytest.approx(newcombe(other, other))
    assert agreed[1] < 0 < agreed[2]


def test_the_table_has_models_of_a_kind_below_one_another_and_their_paired_differences() -> None:
    probe = sb.probes([bigrams, letters], kinds=KINDS)
    own, paired = probe.table()
    assert own.frame["kind"].tolist() == [kind for kind in KINDS for _ in range(2)]
    assert own.frame["triples"].tolist() == [40] * 6
    assert own.frame["gap"].tolist() == pytest.approx((own.frame["paraphrase"] - own.frame["changed"]).tolist())
    assert paired.frame["kind"].tolist() == KINDS
    assert paired.frame["gap"].tolist() == pytest.approx(np.diff(own.frame["gap"])[::2].tolist())
    assert len(sb.probes(bigrams, kinds=["typo"]).table()) == 1
    assert set(sb.probes(bigrams).numbers()) == {
        f"{kind}, right order" for kind in dict.fromkeys(row.kind for row in load_triples().rows)
    }


def test_a_run_is_probed_from_the_cache_as_its_model_is(tmp_path: Path) -> None:
    words = {word for row in load_triples().rows for text in row[1:] for word in text.lower().split()}
    rng = np.random.default_rng(0)
    lines = (f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=12))}\n" for word in sorted(words))
    (tmp_path / "words.txt").write_text("".join(lines), encoding="utf-8")
    sb.evaluate(str(tmp_path / "words.txt"), "sample", intervals=sb.Intervals(None), out=tmp_path / "run")
    model = sb.probes(str(tmp_path / "words.txt")).frame
    # Nothing is encoded a second time: the record does without the file.
    (tmp_path / "words.txt").unlink()
    run = sb.probes(tmp_path / "run").frame
    assert run.drop(columns="model").equals(model.drop(columns="model"))


@pytest.mark.long
def test_the_documentation_has_the_numbers_of_minilm() -> None:
    page = (Path(__file__).parents[2] / "docs" / "definitions" / "probes.md").read_text(encoding="utf-8")
    frames = {
        pooling: sb.probes(sb.load("minilm", pooling=pooling)).frame for pooling in ("avg", "cls_before_pooler")
    }
    kinds = list(dict.fromkeys(row.kind for row in load_triples().rows))
    lines = [line.replace("\N{MINUS SIGN}", "-").split("|") for line in page.splitlines() if line.count("|") == 7]
    rows = {line[1].strip(): line[3:7] for line in lines}
    for kind in kinds:
        cells = iter(rows[kind])
        for frame in frames.values():
            for measure, room in (("order", 2.6), ("gap", 0.06)):
                printed = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", next(cells))]
                found = [100 * number for number in numbers(frame, kind=kind, measure=measure)]
                # Where two cosines are near, another machine may have another order.
                assert printed == pytest.approx(found, abs=room), (kind, measure)
