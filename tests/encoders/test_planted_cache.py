"""No wrong vector comes out of a damaged cache: damage is dropped, reported and encoded again."""

import numpy as np
import pytest
from planted.cache import TEXTS, VARIANTS, Encoder, begun, outcome, sql

from stsbench.encoders.cache import EmbeddingCache, embeddings_dir
from stsbench.encoders.plan import embed


@pytest.fixture
def filled():
    file, measured = begun()
    return file, file.read_bytes(), measured


def test_more_than_a_hundred_kinds_of_damage_are_planted_and_none_passes(filled):
    outcomes = {variant.name: outcome(variant, *filled) for variant in VARIANTS}
    assert len(outcomes) == len(VARIANTS) >= 100
    assert {name: end for name, end in outcomes.items() if end != "right"} == {}


def test_the_harness_notices_a_wrong_vector(filled, monkeypatch):
    monkeypatch.setattr("stsbench.encoders.cache.crc32", lambda content, start=0: 0)
    embeddings_dir().joinpath(filled[0].name).unlink()
    zeroed = [variant for variant in VARIANTS if variant.name in {"a vector zeroed", "all the same"}]
    file, measured = begun()
    assert [outcome(variant, file, file.read_bytes(), measured) for variant in zeroed] == ["wrong", "wrong"]


@pytest.mark.parametrize(("table", "encoded"), [("vectors", 3), ("texts", 0)])
def test_damaged_rows_alone_are_dropped_reported_once_and_encoded_again(table, encoded, filled, caplog):
    file, _, measured = filled
    sql(f"UPDATE {table} SET content = zeroblob(length(content)) WHERE rowid <= 3")(file)
    again = embed(Encoder(), TEXTS)
    assert [message.partition(" of the")[0] for message in caplog.messages] == ["3 damaged entries"]
    assert again.cost.encoded == encoded
    assert np.array_equal(again.vectors["avg"], measured.vectors["avg"])
    assert embed(Encoder(), TEXTS).cost.encoded == 0
    assert len(caplog.messages) == 1


def test_a_cache_of_another_format_is_another_file(filled, monkeypatch):
    monkeypatch.setattr("stsbench.encoders.cache._FORMAT", 5)
    assert EmbeddingCache(Encoder().identity, "avg").path != filled[0]
