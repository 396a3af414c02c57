"""The bundled sample of sentence pairs keeps to the design it states."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib.resources import files
from itertools import combinations
from typing import NamedTuple

import pytest

COLUMNS = ["subset", "pair_id", "design", "gold", "sentence1", "sentence2"]
SUBSETS = ["news", "captions", "forum", "definitions", "student-answers", "how-to", "everyday"]
DESIGNS = [
    f"{meaning}-{length}"
    for meaning in ("same-meaning", "related", "different-meaning")
    for length in ("same-length", "different-length")
]
PAIRS_PER_SUBSET = 36
MIN_PER_DESIGN = 4
MIN_PER_GOLD_BAND = 4
MAX_SHARED_OPENING = 3
MAX_SHARED_SKELETON = 3
NEAR_DUPLICATE = 0.6

FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a an the this that these it its he she they we you i my your his her their
        is are was were be been has have had do does did not no can will would should must
        and or but if when as because so than of in on at to for from with by into out up
        who which what how there
        """,
    )
)


class Pair(NamedTuple):
    subset: str
    pair_id: str
    design: str
    gold: float
    sentence1: str
    sentence2: str

    @property
    def sentences(self) -> tuple[str, str]:
        return self.sentence1, self.sentence2


def read_text() -> str:
    path = files("stsbench.data") / "sample" / "pairs.tsv"
    return path.read_bytes().decode("utf-8")


def read_rows() -> list[dict[str, str]]:
    lines = read_text().split("\n")
    return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return [
        Pair(
            row["subset"],
            row["pair_id"],
            row["design"],
            float(row["gold"]),
            row["sentence1"],
            row["sentence2"],
        )
        for row in read_rows()
    ]


def words(sentence: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", sentence.lower())


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / len(left | right)


def opening(sentence: str) -> tuple[str, ...]:
    return tuple(words(sentence)[:4])


def skeleton(sentence: str) -> tuple[str, ...] | None:
    masked = tuple(word if word in FUNCTION_WORDS else "_" for word in words(sentence))
    return masked if len(masked) >= 6 else None


def near_duplicates(pairs: Iterable[Pair]) -> list[tuple[str, str, str, str]]:
    sided = [(pair.pair_id, text, frozenset(words(text))) for pair in pairs for text in pair.sentences]
    return [
        (left_id, left, right_id, right)
        for (left_id, left, left_words), (right_id, right, right_words) in combinations(sided, 2)
        if left_id != right_id and jaccard(left_words, right_words) >= NEAR_DUPLICATE
    ]


def openings_used_too_often(pairs: Iterable[Pair]) -> dict[tuple[str, ...], int]:
    counted = Counter(opening(text) for pair in pairs for text in pair.sentences)
    return {start: times for start, times in counted.items() if times > MAX_SHARED_OPENING}


def skeletons_used_too_often(pairs: Iterable[Pair]) -> dict[tuple[str, ...], set[str]]:
    used_by: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for pair in pairs:
        for text in pair.sentences:
            if (shape := skeleton(text)) is not None:
                used_by[shape].add(pair.pair_id)
    return {shape: ids for shape, ids in used_by.items() if len(ids) > MAX_SHARED_SKELETON}


def gold_fits_meaning(pair: Pair) -> bool:
    fits: dict[str, Callable[[float], bool]] = {
        "same-meaning": lambda gold: gold >= 3.8,
        "related": lambda gold: 1.6 <= gold < 3.8,
        "different-meaning": lambda gold: gold < 1.6,
    }
    meaning = pair.design.removesuffix("-same-length").removesuffix("-different-length")
    return fits[meaning](pair.gold)


def lengths_fit_design(pair: Pair) -> bool:
    difference = abs(len(pair.sentence1.split()) - len(pair.sentence2.split()))
    return difference <= 3 if pair.design.endswith("-same-length") else difference >= 4


def invented(*texts: str) -> Iterator[Pair]:
    """Pairs for the guards' own checks: each text beside a sentence that is like none of the others."""
    for number, text in enumerate(texts):
        other = " ".join(f"other{number}x{position}" for position in range(number + 5))
        yield Pair("news", f"news-{number:02d}", DESIGNS[0], 5.0, text, other)


def test_file_is_tab_separated_utf8_with_the_stated_columns() -> None:
    text = read_text()
    assert "\r" not in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    header, *lines = text.removesuffix("\n").split("\n")
    assert header.split("\t") == COLUMNS
    assert [line for line in lines if line.count("\t") != len(COLUMNS) - 1] == []


def test_fields_are_filled_and_free_of_stray_white_space() -> None:
    stray = [
        (row["pair_id"], column)
        for row in read_rows()
        for column in COLUMNS
        if not row[column] or row[column] != " ".join(row[column].split())
    ]
    assert stray == []


def test_every_subset_has_its_number_of_pairs_and_stands_in_one_block(pairs: list[Pair]) -> None:
    assert Counter(pair.subset for pair in pairs) == dict.fromkeys(SUBSETS, PAIRS_PER_SUBSET)
    assert list(dict.fromkeys(pair.subset for pair in pairs)) == SUBSETS


def test_pair_ids_are_unique_and_number_each_subset_in_order(pairs: list[Pair]) -> None:
    expected = [f"{subset}-{number:02d}" for subset in SUBSETS for number in range(1, PAIRS_PER_SUBSET + 1)]
    assert [pair.pair_id for pair in pairs] == expected


def test_only_the_six_designs_are_used(pairs: list[Pair]) -> None:
    assert {pair.design for pair in pairs} == set(DESIGNS)


@pytest.mark.parametrize("subset", SUBSETS)
def test_every_subset_has_enough_pairs_of_each_design(pairs: list[Pair], subset: str) -> None:
    counted = Counter(pair.design for pair in pairs if pair.subset == subset)
    assert {design: counted[design] for design in DESIGNS if counted[design] < MIN_PER_DESIGN} == {}


def test_gold_is_written_as_a_mean_of_five_raters_between_zero_and_five() -> None:
    allowed = {f"{fifths / 5:.1f}" for fifths in range(26)}
    assert {row["pair_id"]: row["gold"] for row in read_rows() if row["gold"] not in allowed} == {}


@pytest.mark.parametrize("subset", SUBSETS)
def test_gold_of_every_subset_is_spread_over_the_whole_scale(pairs: list[Pair], subset: str) -> None:
    bands = Counter(min(int(pair.gold), 4) for pair in pairs if pair.subset == subset)
    assert {band: bands[band] for band in range(5) if bands[band] < MIN_PER_GOLD_BAND} == {}


def test_gold_agrees_with_the_stated_meaning(pairs: list[Pair]) -> None:
    assert [pair for pair in pairs if not gold_fits_meaning(pair)] == []


def test_word_counts_agree_with_the_stated_length_difference(pairs: list[Pair]) -> None:
    assert [pair for pair in pairs if not lengths_fit_design(pair)] == []


def test_longer_sentence_stands_on_either_side(pairs: list[Pair]) -> None:
    for meaning in ("same-meaning", "related", "different-meaning"):
        chosen = [pair for pair in pairs if pair.design == f"{meaning}-different-length"]
        first = sum(len(pair.sentence1.split()) > len(pair.sentence2.split()) for pair in chosen)
        assert 0.3 <= first / len(chosen) <= 0.7, meaning


def test_sentences_have_four_to_thirty_five_words(pairs: list[Pair]) -> None:
    odd = [text for pair in pairs for text in pair.sentences if not 4 <= len(text.split()) <= 35]
    assert odd == []


def test_no_sentence_stands_twice(pairs: list[Pair]) -> None:
    counted = Counter(" ".join(words(text)) for pair in pairs for text in pair.sentences)
    assert [text for text, times in counted.items() if times > 1] == []


def test_sentences_of_different_pairs_are_not_near_duplicates(pairs: list[Pair]) -> None:
    assert near_duplicates(pairs) == []


def test_no_opening_of_four_words_is_used_too_often(pairs: list[Pair]) -> None:
    assert openings_used_too_often(pairs) == {}


def test_no_sentence_skeleton_is_used_too_often(pairs: list[Pair]) -> None:
    assert skeletons_used_too_often(pairs) == {}


def test_near_duplicate_guard_sees_a_swapped_noun_in_another_pair() -> None:
    found = near_duplicates(invented("The red bus stops at the gate", "The red tram stops at the gate"))
    assert [(left_id, right_id) for left_id, _, right_id, _ in found] == [("news-00", "news-01")]


def test_opening_guard_sees_a_fourth_use() -> None:
    start = "Heavy rain closed roads"
    three = list(invented(*(f"{start} near {place}" for place in ("Aby", "Bexley", "Corve"))))
    four = list(invented(*(f"{start} near {place}" for place in ("Aby", "Bexley", "Corve", "Dunlow"))))
    assert openings_used_too_often(three) == {}
    assert openings_used_too_often(four) == {("heavy", "rain", "closed", "roads"): 4}


def test_skeleton_guard_sees_a_template_with_swapped_content_words() -> None:
    texts = [
        "A monk is mending a lantern",
        "A pilot is peeling a turnip",
        "A clerk is stamping a passport",
        "A nun is tuning a cello",
    ]
    assert skeletons_used_too_often(invented(*texts[:3])) == {}
    assert list(skeletons_used_too_often(invented(*texts))) == [("a", "_", "is", "_", "a", "_")]


@pytest.mark.parametrize(
    ("design", "gold", "words1", "words2", "fits"),
    [
        ("same-meaning-same-length", 3.8, 8, 11, (True, True)),
        ("same-meaning-same-length", 3.6, 8, 12, (False, False)),
        ("same-meaning-different-length", 3.8, 8, 12, (True, True)),
        ("related-same-length", 1.6, 9, 9, (True, True)),
        ("related-same-length", 1.4, 9, 9, (False, True)),
        ("related-different-length", 3.6, 9, 6, (True, False)),
        ("related-different-length", 3.8, 9, 5, (False, True)),
        ("different-meaning-same-length", 1.4, 5, 5, (True, True)),
        ("different-meaning-different-length", 1.6, 5, 8, (False, False)),
    ],
)
def test_design_checks_hold_exactly_up_to_their_limits(
    design: str, gold: float, words1: int, words2: int, fits: tuple[bool, bool]
) -> None:
    pair = Pair("news", "news-01", design, gold, " ".join(["one"] * words1), " ".join(["two"] * words2))
    assert (gold_fits_meaning(pair), lengths_fit_design(pair)) == fits
