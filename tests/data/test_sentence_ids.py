"""The numbers that stand for sentences: equal where two are the same, and nothing of the text in them."""

import hashlib
import unicodedata

import numpy as np

from stsbench.data.benchmarks import load_sample
from stsbench.data.shared import (
    FOLDED,
    SENTENCES,
    folded_ids,
    id_columns,
    same_case,
    same_letters,
    sentence_ids,
)


def test_a_number_is_the_first_eight_bytes_of_the_hash() -> None:
    text = "a dog’s life 犬"
    expected = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    assert sentence_ids([text]).tolist() == [expected]
    assert sentence_ids([]).dtype == np.uint64


def test_two_tokenisations_share_the_folded_number_alone() -> None:
    released = ["It's a Dog.", "it 's a dog ."]
    assert len(set(sentence_ids(released).tolist())) == 2
    assert len(set(folded_ids(released).tolist())) == 1


def test_sentences_without_letters_stay_apart() -> None:
    assert len(set(folded_ids(["...", "!", "?!"]).tolist())) == 3


def test_an_item_of_one_sentence_is_its_own_second() -> None:
    columns = id_columns(["one", "two"], [None, "three"])
    assert list(columns) == [*SENTENCES, *FOLDED]
    same = columns["sentence_a"] == columns["sentence_b"]
    assert same.tolist() == [True, False]


def test_numbers_tell_the_samples_sentences_apart() -> None:
    pairs = load_sample().pairs
    texts = [*pairs["sentence1"], *pairs["sentence2"]]
    assert len(set(sentence_ids(texts).tolist())) == len(set(texts))


def test_case_folding_and_unicode_forms_agree_in_any_order() -> None:
    for text in (
        "\u0390",
        "\u01f0",
        "\u1e9b\u0323",
        "\ufb03",
        "Stra\u00dfe",
        "\u03aa\u0301",
        "\u00c5ngstr\u00f6m",
    ):
        forms = [unicodedata.normalize(form, t) for form in ("NFC", "NFD") for t in (text, text.upper())]
        assert len({same_letters(form) for form in forms}) == 1, text
        assert len({same_case(form) for form in forms}) == 1, text
    assert same_letters("caf\u00e9") != same_letters("cafe")
