"""No wrong number comes out of a damaged cache: it is dropped, told and encoded again."""

import re

import numpy as np
import pytest
from planted.cache import TEXTS, VARIANTS, Encoder, begun, outcome, rewritten

from stsbench.encoders.blocks import ROWS_AT_ONCE
from stsbench.encoders.cache import EmbeddingCache, embeddings_dir
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
    for module in ("stsbench.encoders.blocks", "planted.cache"):
        monkeypatch.setattr(f"{module}.crc32", lambda content, start=0: 0)
    embeddings_dir().joinpath(filled[0].name).unlink()
    zeroed = [variant for variant in VARIANTS if variant.name in {"a vector zeroed", "all the same"}]
    file, measured = begun()
    assert [outcome(variant, file, file.read_bytes(), measured) for variant in zeroed] == ["wrong", "wrong"]


@pytest.mark.parametrize(("kind", "encoded"), [("vectors", len(TEXTS)), ("texts", 0)])
def test_damaged_blocks_are_told_once_with_their_entries_and_encoded_again(kind, encoded, filled, caplog):
    file, _, measured = filled

    def zero(found, _, contents):
        if found == kind:
            contents[:16] = bytes(16)

    rewritten(file, zero)
    again = embed(Encoder(), TEXTS)
    (said,) = caplog.messages
    assert re.match(rf"{len(TEXTS)} entries of the embedding cache .* damaged blocks and were dropped", said)
    assert again.cost.encoded == encoded
    assert np.array_equal(again.vectors["avg"], measured.vectors["avg"])
    third = embed(Encoder(), TEXTS)
    assert third.cost.encoded == 0
    assert len(caplog.messages) == 1


def test_damage_costs_its_block_alone(tmp_path):
    cache = EmbeddingCache(Encoder().identity, "avg", tmp_path)
    keys = [n.to_bytes(16, "big") for n in range(3 * ROWS_AT_ONCE)]
    cache.add_vectors({key: np.full(4, n, np.float32) for n, key in enumerate(keys)})
    content = bytearray(cache.path.read_bytes())
    content[len(content) // 2] ^= 1
    cache.path.write_bytes(content)
    known = cache.vectors(keys)
    assert set(keys) - set(known) == set(keys[ROWS_AT_ONCE : 2 * ROWS_AT_ONCE])
    assert all(known[key][0] == n for n, key in enumerate(keys) if n % 500 == 0 and key in known)
    # Only what is asked for is looked at; what was dropped can be kept again.
    cache.add_vectors({keys[ROWS_AT_ONCE]: np.zeros(4, np.float32)})
    assert keys[ROWS_AT_ONCE] in cache.vectors(keys)


def test_vectors_of_another_width_or_not_finite_are_dropped_though_their_digests_agree(tmp_path):
    cache = EmbeddingCache(Encoder().identity, "avg", tmp_path)
    rows = {bytes([n]) * 16: np.full(4, n, np.float32) for n in range(6)}
    odd = {b"x" * 16: np.ones(3, np.float32), b"y" * 16: np.array([1, 2, np.inf, 4], np.float32)}
    cache.add_vectors(rows)
    for key, vector in odd.items():
        cache.add_vectors({key: vector})
    assert cache.vectors([*rows, *odd]).keys() == rows.keys()
    assert cache.vectors(list(odd)) == {}


def test_a_cache_of_an_older_format_is_another_file_and_stays_as_it_is(filled, monkeypatch):
    file, _, _ = filled
    with monkeypatch.context() as patch:
        patch.setattr("stsbench.encoders.cache._FORMAT", 5)
        older = EmbeddingCache(Encoder().identity, "avg").path
    assert older != file
    older.write_bytes(b"as it was")
    assert embed(Encoder(), TEXTS).cost.encoded == 0
    assert older.read_bytes() == b"as it was"
