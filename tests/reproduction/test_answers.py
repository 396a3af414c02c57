"""Claims answered from runs whose truth is planted: supported, contradicted, undecided, and what would decide."""

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.reproduction.answers import Answer, answers
from stsbench.reproduction.differences import Comparer, Numbers
from stsbench.reproduction.table_plan import Names, TableClaim

TABLE = "a-table"


def numbers(*values: float, training: str = "") -> Numbers:
    return Numbers(dict(enumerate(values)), training=training)


def claim(**relation: Any) -> TableClaim:
    return TableClaim.model_validate({"name": "it", "says": "it is so", "lines": {TABLE: 7}} | relation)


def answer(
    asked: TableClaim, cells: dict[str, Numbers], printed: dict[str, float] | None = None, **more: Any
) -> Answer:
    keyed = {tuple(name.split(", ")) if ", " in name else (name, "STS-B"): held for name, held in cells.items()}
    prints = {(name, "STS-B"): value for name, value in (printed or {}).items()}
    more = {"missing": {}, "names": Names({}, {}), "comparer": Comparer(), **more}
    (found,) = answers([asked], TABLE, keyed, prints, headline="STS-B", **more)  # type: ignore[arg-type]
    return found


BEST = {"low": numbers(80.0, 80.2, 80.1), "middle": numbers(81.0, 81.1, 80.9), "high": numbers(83.0, 83.1, 82.9)}


@pytest.mark.parametrize(
    ("asked", "verdict"),
    [
        (claim(best="high"), "supported"),
        (claim(best="low"), "contradicted"),
        (claim(above=["high", "low"]), "supported"),
        (claim(above=["low", "high"]), "contradicted"),
        (claim(above=["high", "middle", "low"]), "supported"),
        (claim(above=["high", "low", "middle"]), "contradicted"),
        (claim(above=["high", "low"], by=1), "supported"),
        (claim(above=["high", "low"], by=10), "contradicted"),
        (claim(alike=["low", "middle"], by=3), "supported"),
        (claim(alike=["low", "high"], by=1), "contradicted"),
    ],
)
def test_a_planted_truth_is_found(asked: TableClaim, verdict: str) -> None:
    found = answer(asked, BEST)
    assert found.verdict == verdict
    assert found.line == 7
    assert found.decides == ""


@pytest.mark.parametrize("asked", [claim(best="b"), claim(above=["b", "a"]), claim(alike=["a", "b"], by=0.3)])
def test_what_the_seeds_cannot_tell_is_undecided_and_says_how_many_would(asked: TableClaim) -> None:
    found = answer(asked, {"a": numbers(80.0, 82.0, 81.0), "b": numbers(80.5, 82.6, 81.4)})
    assert found.verdict == "undecided"
    assert found.needed is not None
    assert found.needed > 3
    assert f"about {found.needed} seeds of each" in found.decides
    assert "To decide it" in found.sentence


def test_the_interval_is_welch_s_where_pairs_are_not_known() -> None:
    a, b = [80.0, 81.0, 80.4], [82.0, 82.6, 83.1]
    found = answer(claim(above=["b", "a"]), {"a": numbers(*a), "b": numbers(*b)})
    (difference,) = found.differences
    limits = scipy.stats.ttest_ind(b, a, equal_var=False)
    interval = limits.confidence_interval()
    assert (difference.low, difference.high) == pytest.approx((interval.low, interval.high))
    assert difference.p == pytest.approx(limits.pvalue)
    assert difference.over == "seeds alone"


def test_of_many_rivals_one_that_is_above_by_chance_contradicts_nothing() -> None:
    cells = {"a": numbers(80.0, 81.0, 80.4), "above": numbers(81.6, 82.0, 82.7)}
    alone = answer(claim(best="a"), cells)
    assert alone.verdict == "contradicted"
    assert 0.01 < alone.differences[0].p < 0.05
    # Of five rivals every fourth time one would be above by chance: Holm's correction.
    rivals = {name: numbers(80.1, 80.9, 80.3) for name in "bcde"}
    assert answer(claim(best="a"), cells | rivals).verdict == "undecided"


def test_one_run_of_a_method_decides_nothing_and_asks_for_two() -> None:
    found = answer(claim(above=["b", "a"]), {"a": numbers(80.0, 80.1), "b": numbers(90.0)})
    assert found.verdict == "undecided"
    assert "one run does not show" in found.evidence
    assert found.decides == "at least two seeds of each"


def test_runs_that_do_not_differ_have_no_error_and_decide_nothing() -> None:
    found = answer(claim(above=["b", "a"]), {"a": numbers(80.0, 80.0), "b": numbers(90.0, 90.0)})
    assert found.verdict == "undecided"
    assert "do not differ" in found.evidence


def test_rows_of_the_same_trainings_are_compared_seed_by_seed() -> None:
    first = numbers(80.0, 90.0, 70.0, training="one")
    second = numbers(79.0, 89.1, 68.9, training="one")
    assert answer(claim(above=["a", "b"]), {"a": first, "b": second}).verdict == "supported"
    apart = {"a": numbers(80.0, 90.0, 70.0), "b": numbers(79.0, 89.1, 68.9)}
    assert answer(claim(above=["a", "b"]), apart).verdict == "undecided"


def test_a_gap_that_shrinks_is_found_from_four_cells() -> None:
    cells = {
        "s-le": numbers(18.0, 18.4, 18.2, training="s"),
        "s-gt": numbers(16.0, 16.5, 16.1, training="s"),
        "e-le": numbers(22.0, 22.2, 22.1, training="e"),
        "e-gt": numbers(21.6, 21.7, 21.8, training="e"),
    }
    asked = claim(smaller_gap=[["e-le", "e-gt"], ["s-le", "s-gt"]])
    printed = {"s-le": 18.18, "s-gt": 16.34, "e-le": 22.38, "e-gt": 21.67}
    found = answer(asked, cells, printed)
    assert found.verdict == "supported"
    assert found.in_print is True
    assert answer(claim(smaller_gap=[["s-le", "s-gt"], ["e-le", "e-gt"]]), cells).verdict == "contradicted"


def test_a_claim_about_every_column_needs_each() -> None:
    cells = {
        "a, STS12": numbers(70.0, 70.1, 70.2),
        "b, STS12": numbers(60.0, 60.1, 60.2),
        "a, STS13": numbers(70.0, 70.1, 70.2),
        "b, STS13": numbers(80.0, 80.1, 80.2),
    }
    assert answer(claim(above=["a", "b"], column="STS12"), cells).verdict == "supported"
    assert answer(claim(above=["a", "b"], every_column=True), cells).verdict == "contradicted"


def test_a_claim_about_a_cell_names_row_and_column() -> None:
    cells = {"half, short": numbers(76.0, 76.1, 76.2), "half, long": numbers(40.0, 40.3, 40.1)}
    assert answer(claim(above=["half, short", "half, long"], by=10), cells).verdict == "supported"


def test_a_row_that_was_not_made_leaves_its_claim_unanswered_with_the_reason() -> None:
    found = answer(claim(above=["a", "b"]), {"a": numbers(1.0, 2.0)}, missing={"b": "its corpus is not here."})
    assert found.verdict == "not answered"
    assert found.sentence == "It is so: not answered. b: its corpus is not here."
    alone = answer(claim(best="a"), {"a": numbers(1.0, 2.0)})
    assert alone.verdict == "not answered"


def test_of_a_best_value_the_rows_that_were_made_are_compared() -> None:
    found = answer(claim(best="high"), {name: BEST[name] for name in ("low", "high")})
    assert found.verdict == "supported"
    assert len(found.differences) == 1


@pytest.mark.parametrize(
    ("printed", "says"),
    [({"a": 80.0, "b": 81.0}, True), ({"a": 82.0, "b": 81.0}, False), ({"a": 82.0}, None), ({}, None)],
)
def test_whether_the_printed_numbers_say_so_is_told_apart_from_the_answer(
    printed: dict[str, float], says: bool | None
) -> None:
    found = answer(claim(above=["b", "a"]), {"a": numbers(1.0, 1.1), "b": numbers(2.0, 2.1)}, printed)
    assert found.in_print is says


# With records, the pairs bring an error of their own.


@pytest.fixture
def runs(
    hash_encode: Callable[[list[str]], NDArray[np.float64]], toy_data: Callable[..., StsData]
) -> Callable[..., Numbers]:
    """Return a maker of a method's runs on one toy task: its vectors have noise, and each seed more of its own."""
    data = toy_data("x", pairs=60)

    def make(noise: float, seeds: Sequence[int], method: str) -> Numbers:
        found = {}
        for seed in seeds:

            def encode(sentences: list[str], seed: int = seed) -> NDArray[np.float64]:
                vectors = hash_encode(sentences)
                return vectors + noise * np.random.default_rng(seed).normal(size=vectors.shape)

            run = sb.evaluate(encode, [data], intervals=sb.Intervals(None))
            weights = hashlib.sha256(f"{method} {seed}".encode()).hexdigest()
            model = run.model.model_copy(update={"weights_sha256": weights, "name": f"{method}-{seed}"})
            found[seed] = run.model_copy(update={"model": model})
        scores = {seed: 100 * (run.scores[0].value or 0.0) for seed, run in found.items()}
        return Numbers(scores, found, "x")

    return make


def test_with_records_the_error_is_of_seeds_and_pairs(runs: Callable[..., Numbers]) -> None:
    a, b = runs(3.0, (0, 1, 2), "a"), runs(0.3, (3, 4, 5), "b")
    both = Comparer().difference("b less a", b, a)
    seeds = Comparer().difference("b less a", Numbers(b.values), Numbers(a.values))
    assert both.over == "seeds and pairs"
    assert both.value == seeds.value
    assert both.low < seeds.low
    assert both.needed is not None


def test_the_error_is_that_of_comparing_methods_over_seeds(runs: Callable[..., Numbers]) -> None:
    from stsbench.judging.seeds import compare_seeds

    a, b = runs(2.0, range(5), "a"), runs(0.3, range(5, 10), "b")
    found = Comparer().difference("b less a", b, a)
    sides = {name: {f"{name}{seed}": run for seed, run in of.runs.items()} for name, of in (("a", a), ("b", b))}
    row = compare_seeds(sides).rows.iloc[-1]
    assert (found.value, found.low, found.high, found.p) == pytest.approx(
        (row.difference, row.low, row.high, row.p)
    )


def test_two_checkpoints_are_compared_over_pairs_and_the_answer_says_so(runs: Callable[..., Numbers]) -> None:
    a, b = runs(3.0, (0,), "a"), runs(0.0, (1,), "b")
    found = answer(claim(above=["b", "a"], column="x"), {"a, x": a, "b, x": b})
    assert "not of other seeds" in found.evidence
    assert not math.isnan(found.differences[0].low)
    assert found.decides == "at least two seeds of each"


@pytest.mark.parametrize(("of_b", "verdict"), [("one", "supported"), ("another", "undecided")])
def test_a_checkpoint_used_in_two_ways_has_no_seed_to_differ_by(of_b: str, verdict: str) -> None:
    a = Numbers({0: 1.0}, error=0.05, checkpoint="one")
    b = Numbers({0: 3.0}, error=0.05, checkpoint=of_b)
    found = answer(claim(above=["b", "a"]), {"a": a, "b": b})
    assert found.verdict == verdict
    assert found.differences[0].low == pytest.approx(2 - 1.959964 * 0.05 * 2**0.5, abs=1e-6)


def test_where_nothing_is_learned_numbers_are_shown_and_no_claim_is_answered() -> None:
    found = answer(claim(best="high"), BEST, silent="three steps teach a model nothing")
    assert found.verdict == "not answered"
    assert len(found.differences) == 2
    assert found.sentence.startswith(
        "It is so: not answered, because three steps teach a model nothing. high less "
    )
    assert found.decides == "at least two seeds of each at the scale laptop or paper"
