"""The bundled labelled samples and the plain sentences keep to their stated counts and stay varied."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import combinations

import pytest

BINARY_84 = {("all", "0"): 42, ("all", "1"): 42}
QUESTION_LABELS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")

COUNTS = {
    "movies": BINARY_84,
    "products": BINARY_84,
    "subjectivity": BINARY_84,
    "opinions": BINARY_84,
    "sentiment": {
        (split, label): rows for split, rows in (("train", 30), ("dev", 10), ("test", 10)) for label in "01"
    },
    "questions": {
        (split, label): rows for split, rows in (("train", 10), ("test", 5)) for label in QUESTION_LABELS
    },
    "paraphrases": {(split, label): rows for split, rows in (("train", 25), ("test", 15)) for label in "01"},
}
SETS = list(COUNTS)
SINGLE = [name for name in SETS if name != "paraphrases"]

NEAR_DUPLICATE = 0.6
MAX_SHARED_OPENING = 3
MAX_SHARED_THREE_WORDS = 5
MAX_SHARED_SKELETON = 3
MIN_SKELETON = 6

FUNCTION_WORDS = frozenset(
    re.findall(
        r"[a-z]+",
        """
        a an the this that these those it its he she they we you i my his her their our
        is are was were be been has have had do does did not no can will would
        and or but if when while as so than of in on at to for from with by into
        who which what how why where
        """,
    )
)


def read_text(name: str) -> str:
    return files("stsbench.data").joinpath("sample", *name.split("/")).read_bytes().decode("utf-8")


def read_set(name: str) -> tuple[list[str], list[list[str]]]:
    header, *lines = read_text(f"transfer/{name}.tsv").removesuffix("\n").split("\n")
    return header.split("\t"), [line.split("\t") for line in lines]


def items(name: str) -> list[tuple[str, ...]]:
    """One tuple of sentences per row: two for a pair, one otherwise."""
    if name == "sentences":
        return [(line,) for line in read_text("sentences.txt").removesuffix("\n").split("\n")]
    return [tuple(row[2:]) for row in read_set(name)[1]]


def sentences(name: str) -> list[str]:
    return [sentence for item in items(name) for sentence in item]


def words(sentence: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", sentence.lower())


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / len(left | right)


def near_duplicates(rows: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    placed = [
        (number, sentence, frozenset(words(sentence))) for number, row in enumerate(rows) for sentence in row
    ]
    return [
        (left, right)
        for (left_row, left, left_words), (right_row, right, right_words) in combinations(placed, 2)
        if left_row != right_row and jaccard(left_words, right_words) >= NEAR_DUPLICATE
    ]


def openings_used_too_often(texts: Iterable[str], length: int, limit: int) -> dict[str, int]:
    counted = Counter(" ".join(split[:length]) for split in map(words, texts) if len(split) >= length)
    return {start: times for start, times in counted.items() if times > limit}


def skeleton(sentence: str) -> str:
    return " ".join(word if word in FUNCTION_WORDS else "_" for word in words(sentence))


def skeletons_used_too_often(texts: Iterable[str]) -> dict[str, int]:
    counted = Counter(shape for shape in map(skeleton, texts) if len(shape.split()) >= MIN_SKELETON)
    return {shape: times for shape, times in counted.items() if times > MAX_SHARED_SKELETON}


def overlap(name: str, label: str) -> list[float]:
    return [
        jaccard(frozenset(words(first)), frozenset(words(second)))
        for _, given, first, second in read_set(name)[1]
        if given == label
    ]


@pytest.mark.parametrize("name", [f"transfer/{name}.tsv" for name in SETS] + ["sentences.txt"])
def test_file_is_utf8_with_unix_line_ends_and_one_final_line_end(name: str) -> None:
    text = read_text(name)
    assert "\r" not in text
    assert "\ufeff" not in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@pytest.mark.parametrize("name", SINGLE)
def test_single_sentence_sets_have_split_label_and_sentence(name: str) -> None:
    header, rows = read_set(name)
    assert header == ["split", "label", "sentence"]
    assert [row for row in rows if len(row) != 3] == []


def test_paraphrases_have_split_label_and_two_sentences() -> None:
    header, rows = read_set("paraphrases")
    assert header == ["split", "label", "sentence1", "sentence2"]
    assert [row for row in rows if len(row) != 4] == []


@pytest.mark.parametrize("name", SETS)
def test_fields_are_filled_unquoted_and_free_of_stray_white_space(name: str) -> None:
    odd = [
        field
        for row in read_set(name)[1]
        for field in row
        if not field or '"' in field or field != " ".join(field.split())
    ]
    assert odd == []


@pytest.mark.parametrize("name", SETS)
def test_every_split_has_exactly_its_rows_of_each_label(name: str) -> None:
    assert Counter((row[0], row[1]) for row in read_set(name)[1]) == COUNTS[name]


@pytest.mark.parametrize("name", SETS)
def test_each_split_stands_in_one_block_in_the_order_train_dev_test(name: str) -> None:
    stated = list(dict.fromkeys(split for split, _ in COUNTS[name]))
    found = [row[0] for row in read_set(name)[1]]
    assert found == sorted(found, key=stated.index)


@pytest.mark.parametrize("name", SETS)
def test_labels_are_mixed_so_that_no_fold_of_rows_in_order_holds_one_label_only(name: str) -> None:
    labels = [row[1] for row in read_set(name)[1]]
    assert [start for start in range(len(labels) - 9) if len(set(labels[start : start + 10])) == 1] == []


@pytest.mark.parametrize("name", [*SETS, "sentences"])
def test_no_sentence_stands_twice_within_or_across_splits(name: str) -> None:
    counted = Counter(" ".join(words(sentence)) for sentence in sentences(name))
    assert [text for text, times in counted.items() if times > 1] == []


def test_no_sentence_is_shared_between_the_sets() -> None:
    counted = Counter(" ".join(words(text)) for name in [*SETS, "sentences"] for text in sentences(name))
    assert [text for text, times in counted.items() if times > 1] == []


@pytest.mark.parametrize("name", [*SETS, "sentences"])
def test_no_two_rows_are_near_duplicates(name: str) -> None:
    assert near_duplicates(items(name)) == []


@pytest.mark.parametrize("name", [*SETS, "sentences"])
def test_no_opening_of_four_words_is_used_more_than_three_times(name: str) -> None:
    assert openings_used_too_often(sentences(name), 4, MAX_SHARED_OPENING) == {}


@pytest.mark.parametrize("name", [*SETS, "sentences"])
def test_no_opening_of_three_words_is_used_more_than_five_times(name: str) -> None:
    assert openings_used_too_often(sentences(name), 3, MAX_SHARED_THREE_WORDS) == {}


@pytest.mark.parametrize("name", [*SETS, "sentences"])
def test_no_sentence_skeleton_is_used_more_than_three_times(name: str) -> None:
    assert skeletons_used_too_often(sentences(name)) == {}


def test_opinion_phrases_have_two_to_six_words() -> None:
    assert [text for text in sentences("opinions") if not 2 <= len(text.split()) <= 6] == []


def test_questions_end_with_a_question_mark_unless_they_ask_to_name_something() -> None:
    odd = [
        text
        for text in sentences("questions")
        if not (text.endswith("?") or (text.startswith("Name ") and text.endswith(".")))
    ]
    assert odd == []


def test_both_kinds_of_pair_include_high_and_low_word_overlap() -> None:
    for label in "01":
        shared = overlap("paraphrases", label)
        assert sum(value >= 0.5 for value in shared) >= 12, label
        assert sum(value < 0.3 for value in shared) >= 12, label


def test_word_overlap_alone_does_not_tell_paraphrases_from_other_pairs() -> None:
    same, other = overlap("paraphrases", "1"), overlap("paraphrases", "0")
    wins = sum((left > right) + 0.5 * (left == right) for left in same for right in other)
    assert 0.35 <= wins / (len(same) * len(other)) <= 0.65


def test_there_are_four_hundred_plain_sentences_of_six_to_thirty_words() -> None:
    texts = sentences("sentences")
    assert len(texts) == 400
    assert [text for text in texts if not 6 <= len(text.split()) <= 30] == []


def test_plain_sentences_start_with_a_capital_and_end_with_a_full_stop() -> None:
    odd = [
        text
        for text in sentences("sentences")
        if not (text[0].isupper() and text.endswith(".") and text == " ".join(text.split()))
    ]
    assert odd == []


def test_near_duplicate_guard_sees_a_swapped_noun_in_another_row_but_not_within_a_pair() -> None:
    bus, tram = "The red bus stops at the gate", "The red tram stops at the gate"
    assert near_duplicates([(bus,), (tram,)]) == [(bus, tram)]
    assert near_duplicates([(bus, tram)]) == []


def test_opening_guard_sees_the_first_use_beyond_the_limit() -> None:
    texts = [f"Heavy rain closed roads near {place}" for place in ("Aby", "Bexley", "Corve", "Dunlow")]
    assert openings_used_too_often(texts[:3], 4, MAX_SHARED_OPENING) == {}
    assert openings_used_too_often(texts, 4, MAX_SHARED_OPENING) == {"heavy rain closed roads": 4}


def test_skeleton_guard_sees_a_template_with_swapped_content_words() -> None:
    texts = [
        "A man is playing a guitar",
        "A woman is slicing a tomato",
        "A dog is chasing a ball",
        "A boy is riding a horse",
    ]
    assert skeletons_used_too_often(texts[:3]) == {}
    assert skeletons_used_too_often(texts) == {"a _ is _ a _": 4}
