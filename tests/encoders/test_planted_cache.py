"""No wrong number comes out of a damaged cache: it is dropped, told and encoded again."""

import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from planted.cache import TEXTS, VARIANTS, Encoder, begun, outcome

from stsbench.encoders.cache import EmbeddingCache
from stsbench.encoders.plan import embed


@pytest.fixture
def filled():
    file, measured = begun()
    return file, file.read_bytes(), measured


def test_a_hundred_wrong_numbers_and_more_are_planted_and_none_passes(filled):
    outcomes = {variant.name: outcome(variant, *filled) for variant in VARIANTS}
    assert len(outcomes) == len(VARIANTS) >= 100
    assert {name: said for name, said in outcomes.items() if said != "right"} == {}


def test_the_harness_sees_a_wrong_number(filled, monkeypatch):
    monkeypatch.setattr("stsbench.encoders.cache.crc32", lambda content, start=0: 0)
    zeroed = [variant for variant in VARIANTS if variant.name in {"a vector zeroed", "all the same"}]
    file, measured = begun()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE vectors SET digest = 0")
        connection.execute("UPDATE texts SET digest = 0")
    assert [outcome(variant, file, file.read_bytes(), measured) for variant in zeroed] == ["wrong", "wrong"]


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        ("UPDATE vectors SET vector = zeroblob(64) WHERE rowid <= 3", 3),
        ("UPDATE vectors SET vector = 7 WHERE rowid = 1", 1),
        ("UPDATE texts SET length = length + 1", len(TEXTS)),
    ],
)
def test_damaged_rows_are_told_once_with_their_number_and_encoded_again(statement, count, filled, caplog):
    file, _, measured = filled
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)
    again = embed(Encoder(), TEXTS)
    (said,) = caplog.messages
    assert re.match(rf"{count} damaged entr(y|ies) of the embedding cache .* dropped", said)
    assert again.cost.encoded == (0 if "texts" in statement else count)
    assert np.array_equal(again.vectors["avg"], measured.vectors["avg"])
    third = embed(Encoder(), TEXTS)
    assert third.cost.encoded == 0
    assert len(caplog.messages) == 1


def test_a_row_of_another_width_or_not_finite_is_dropped_though_its_digest_agrees(tmp_path):
    cache = EmbeddingCache(Encoder().identity, "avg", tmp_path)
    rows = {bytes([n]) * 16: np.full(4, n, np.float32) for n in range(6)}
    odd = {b"x" * 16: np.ones(3, np.float32), b"y" * 16: np.array([1, 2, np.inf, 4], np.float32)}
    cache.add_vectors(rows | odd)
    assert cache.vectors([*rows, *odd]).keys() == rows.keys()
    assert cache.vectors(list(odd)) == {}


def test_a_cache_of_an_older_format_is_another_file_and_stays_as_it_is(filled, monkeypatch):
    file, _, _ = filled
    with monkeypatch.context() as patch:
        patch.setattr("stsbench.encoders.cache._FORMAT", 2)
        older = EmbeddingCache(Encoder().identity, "avg").path
    assert older != file
    older.write_bytes(b"as it was")
    assert embed(Encoder(), TEXTS).cost.encoded == 0
    assert older.read_bytes() == b"as it was"
