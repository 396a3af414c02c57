"""`stsbench rank`, plans, the best of n and the gate with a margin, as a person types them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb

Stsbench = Callable[..., Any]


@pytest.fixture
def runs(stsbench: Stsbench, on_sample: Callable[..., None]) -> Stsbench:
    """Measure two functions on the sample."""
    on_sample("a", "words", "--no-intervals")
    on_sample("b", "letters", "--no-intervals")
    return stsbench


def test_rank_prints_its_table_and_draws_it(runs: Stsbench, tmp_path: Path) -> None:
    done = runs("rank", "a", "b", "--draws", "100", "--figure", tmp_path / "ranks.svg")
    assert done.code == 0
    assert done.out.splitlines()[0].split() == [
        "rank",
        "ranks",
        "model",
        "sample",
        "2.5",
        "%",
        "97.5",
        "%",
        "groups",
        "first",
    ]
    assert sb.rank(["a", "b"], draws=100).sentence in done.err
    assert "hold each by itself" in done.err
    assert (tmp_path / "ranks.svg").stat().st_size > 1000
    assert "hold all of them at once" in runs("rank", "a", "b", "--simultaneous").err
    assert json.loads(runs("rank", "a", "b", "--json", "--adjust", "holm").out)["adjustment"] == "holm"
    assert runs("rank", "a", "b", "--latex").out.startswith(r"\begin{tabular}")


def test_rank_leaves_out_the_experiments_of_a_used_folder_and_says_so(runs: Stsbench) -> None:
    Path("tried").mkdir()
    Path("tried/experiment.yaml").write_text("name: tried\n")
    done = runs("rank", "a", "b", "tried", "--draws", "100")
    assert done.code == 0
    assert "note: left out: tried is an experiment; its runs are in tried/jobs." in done.err
    assert runs("rank", "a", "b", "tired").code == 2


def test_rank_refuses_what_is_no_ranking_in_a_sentence(runs: Stsbench) -> None:
    for arguments, sentence in (
        (("a",), "one model has no rank: name 2 to 100 runs"),
        (("a", "a"), "a is named twice"),
        (("a", "b", "--adjust", "bonferroni"), "choose `max` or `holm`"),
        (("a", "b", "--task", "sample"), "add --figure"),
        (("a", "b", "--task", "STS99", "--figure", "a.png"), "'STS99' was not ranked: choose one of sample."),
        (("a", "nothing*"), r"no run matches nothing\*"),
    ):
        done = runs("rank", *arguments)
        assert (done.code, len(done.err.strip().splitlines())) == (2, 1), done.err
        assert sentence.replace("\\", "") in done.err


def test_a_plan_and_the_best_of_n_are_printed(runs: Stsbench) -> None:
    planned = runs("plan", "a", "b", "--difference", "20", "--seed-spread", "5")
    assert planned.code == 0
    assert planned.out.splitlines()[0].split()[:2] == ["task", "pairs"]
    assert "with 80 % power" in planned.err
    best = runs("best-of", "unsup-simcse-bert-base")
    assert best.code == 0
    assert "76.25 is what the best of 7 or 8 runs gives on average" in best.err
    assert json.loads(runs("best-of", "a", "b", "--number", "50", "--json").out)["number"] == 50


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("compare a b --plan --difference 20", "plan a b --difference 20"),
        ("compare --a a b --best-of 50", "best-of a b --number 50"),
        ("compare --best-of unsup-simcse-bert-base --csv", "best-of unsup-simcse-bert-base --csv"),
    ],
)
def test_the_old_spelling_gives_the_same_and_says_what_to_type_now(runs: Stsbench, old: str, new: str) -> None:
    done, expected = runs(*old.split()), runs(*new.split())
    assert (done.code, done.out) == (0, expected.out)
    assert (
        done.err
        == f"`stsbench {old}` is `stsbench {new}` now: the old spelling goes with the next version.\n"
        + (expected.err)
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("compare", "a", "b", "--difference", "1"), "`stsbench compare` has no option --difference"),
        (("plan", "a", "b", "--difference", "0", "--seed-spread", "1"), "give more than 0"),
        (("plan", "a"), "RUN is missing"),
        (("best-of", "70"), "no seeds of '70' are known"),
        (("best-of", "simcse*"), "no run matches simcse*"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_a_sentence(
    arguments: tuple[str, ...], sentence: str, stsbench: Stsbench
) -> None:
    done = stsbench(*arguments)
    assert (done.code, done.out, len(done.err.strip().splitlines())) == (2, "", 1)
    assert sentence in done.err


def test_the_gate_ends_with_0_1_and_3(runs: Stsbench, tmp_path: Path) -> None:
    worse, better = ("a", "b") if sb.rank(["a", "b"]).tasks[0].rows[0].model == "toys:letters" else ("b", "a")
    assert runs("check", better, "--baseline", better, "--margin", "0.3").code == 0
    failed = runs("check", worse, "--baseline", better, "--margin", "0.01", "--junit", tmp_path / "check.xml")
    loss = sb.check(worse, baseline=better, margin=0.01).cells[0]
    assert failed.code == (1 if (loss.loss_low or 0) > 0.01 else 3)
    difference = abs(loss.difference or 0)
    unsure = runs("check", worse, "--baseline", better, "--margin", f"{difference + 0.01:.4f}")
    assert unsure.code == 3
    assert "cannot tell with these pairs" in unsure.err
    assert "would pass" in unsure.err
    assert (tmp_path / "check.xml").is_file()
    refused = runs("check", worse, "--baseline", better, "--margin", "0")
    assert (refused.code, refused.out) == (2, "")
    assert "a margin of 0 points: give more than 0" in refused.err
