"""Ids of sentences and pairs: equal where two are the same, and nothing of the text in them."""

import hashlib
import unicodedata
from pathlib import Path

import numpy as np

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sts, read_splits
from stsbench.data.shared import (
    FOLDED,
    SENTENCES,
    folded_ids,
    id_columns,
    same_letters,
    sentence_ids,
)


def test_an_id_is_the_first_eight_bytes_of_the_hash() -> None:
    text = "a dog’s life 犬"
    expected = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    assert sentence_ids([text]).tolist() == [expected]
    assert sentence_ids([]).dtype == np.uint64


def test_two_tokenisations_share_the_folded_id_only() -> None:
    released = ["It's a Dog.", "it 's a dog ."]
    assert len(set(sentence_ids(released).tolist())) == 2
    assert len(set(folded_ids(released).tolist())) == 1
    assert len(set(folded_ids(["...", "!", "?!"]).tolist())) == 3


def test_an_item_of_one_sentence_is_its_own_second() -> None:
    columns = id_columns(["one", "two"], [None, "three"])
    assert list(columns) == [*SENTENCES, *FOLDED]
    assert (columns["sentence_a"] == columns["sentence_b"]).tolist() == [True, False]


def test_case_folding_and_unicode_forms_agree_in_any_order() -> None:
    for text in ("\u0390", "\u01f0", "\u1e9b\u0323", "\ufb03", "Stra\u00dfe", "\u03aa\u0301"):
        forms = [unicodedata.normalize(form, t) for form in ("NFC", "NFD") for t in (text, text.upper())]
        assert len({same_letters(form) for form in forms}) == 1, text
    assert same_letters("caf\u00e9") != same_letters("cafe")


def test_splits_that_cannot_be_read_are_returned_with_their_errors(benchmark_folder: Path) -> None:
    next(benchmark_folder.rglob("sts-dev.csv")).unlink()
    sets, absent = read_splits(["STS-B:dev", "STS-B:test"], [benchmark_folder])
    assert list(sets) == ["STS-B:test"]
    assert sets["STS-B:test"].pairs.equals(load_sts("STS-B", data_dirs=[benchmark_folder]).pairs)
    assert list(absent) == ["STS-B:dev"]
    assert isinstance(absent["STS-B:dev"], UserError)
