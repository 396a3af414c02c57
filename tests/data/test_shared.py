"""What sets share, on the sentences' numbers: each function on its own; the tables have their own tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sts, read_splits
from stsbench.data.shared import keys_met, pair_numbers, pairs_in, same_letters


def test_a_pair_is_the_same_whichever_sentence_is_named_first_and_however_it_is_tokenised() -> None:
    (pair,) = pair_numbers(["An owl's nap ."], ["A KETTLE"])
    assert pair_numbers(["a kettle!", "a kettle"], ["an owl 's nap", "an owl"])[0] == pair
    assert pair_numbers(["a kettle"], ["an owl"]) != [pair]


def test_a_stream_is_read_no_further_than_until_all_keys_are_met() -> None:
    def texts() -> Iterator[str]:
        yield from ("An owl .", "rain")
        pytest.fail("read on")

    assert keys_met(texts(), (same_letters, ["anowl"]), (str.strip, ["rain"])) == ({"anowl"}, {"rain"})


def test_each_way_has_its_own_keys() -> None:
    assert keys_met(["An owl ."], (same_letters, ["anowl", "An owl ."]), (str.strip, ["anowl", "An owl ."])) == (
        {"anowl"},
        {"An owl ."},
    )


def test_splits_that_are_not_here_are_told_with_why(benchmark_folder: Path) -> None:
    next(benchmark_folder.rglob("sts-dev.csv")).unlink()
    sets, absent = read_splits(["STS-B:dev", "STS-B:test"], [benchmark_folder])
    assert list(sets) == ["STS-B:test"]
    assert pairs_in(sets["STS-B:test"]) == pairs_in(load_sts("STS-B", data_dirs=[benchmark_folder]))
    assert list(absent) == ["STS-B:dev"]
    assert isinstance(absent["STS-B:dev"], UserError)
