"""The cache: nothing is encoded twice, nothing stale is served, and damage costs no more than time."""

import errno
import os
import re

import numpy as np
import pytest
from damages import files_of_at_most
from test_planted_cache import sql

from stsbench.base.errors import UserError
from stsbench.encoders.cache import (
    _SCHEMA,
    DEFAULT_MAX_BYTES,
    EmbeddingCache,
    cache_files,
    clear_cache,
    embeddings_dir,
    max_cache_bytes,
    touch_and_trim,
)
from stsbench.encoders.load import load
from stsbench.encoders.network import Network
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Identity
from stsbench.encoders.tokenizer import Tokenizer
from stsbench.encoders.use import own_use


@pytest.fixture(autouse=True)
def _nothing_warned_before(monkeypatch):
    monkeypatch.setattr("stsbench.encoders.cache._warned", set(), raising=False)


def cache_of(number):
    return EmbeddingCache(Identity("model", "transformer", own_use("avg"), weights_sha256=f"{number:064d}"), "avg")


def fill(cache, size=10, start=0):
    vectors = {n.to_bytes(16, "big"): np.full(16, n, np.float32) for n in range(start, start + size)}
    cache.add_vectors(vectors)
    return vectors


def test_a_second_run_encodes_nothing_and_loads_neither_tokenizer_nor_weights(tiny, sentences, monkeypatch):
    folder = tiny()
    first = embed(load(folder), sentences)
    for part in (Tokenizer, Network):
        monkeypatch.setattr(part, "__init__", None)
        monkeypatch.setattr(part, "__call__", None)
    second = embed(load(folder), sentences)
    assert (first.cost.encoded, second.cost.encoded, second.cost.tokens) == (8, 0, 0)
    assert np.array_equal(first.vectors["avg"], second.vectors["avg"])
    for field in ("rows", "lengths", "truncated"):
        assert np.array_equal(getattr(first, field), getattr(second, field))


def test_only_new_token_sequences_are_encoded(tiny, sentences):
    folder = tiny()
    embed(load(folder), sentences[:4])
    found = embed(load(tiny(name="a-copy")), sentences)
    assert found.cost.encoded == 4
    assert np.array_equal(found.vectors["avg"][found.rows[0]], found.vectors["avg"][found.rows[8]])
    assert embed(load(folder), [sentences[1].upper().replace(" ", "  ")]).cost.encoded == 0


def test_a_pass_with_several_poolings_fills_the_cache_of_each(tiny, sentences):
    folder = tiny()
    poolings = ["avg", "cls", "avg_first_last"]
    together = embed(load(folder), sentences, poolings=poolings)
    for pooling in poolings:
        alone = embed(load(folder, pooling=pooling), sentences)
        assert alone.cost.encoded == 0
        assert np.array_equal(alone.vectors[pooling], together.vectors[pooling])
    files = {pooling: EmbeddingCache(load(folder).identity, pooling).path for pooling in poolings}
    sql("DELETE FROM texts")(files["avg"])
    assert embed(load(folder), sentences, poolings=poolings).cost.encoded == 0
    sql("DELETE FROM vectors")(files["cls"])
    again = embed(load(folder), sentences, poolings=poolings)
    assert again.cost.encoded == 8
    for pooling in poolings:
        np.testing.assert_allclose(again.vectors[pooling], together.vectors[pooling], atol=1e-5)
    both = embed(load(folder), sentences, poolings=["avg", "max"])
    assert both.cost.encoded == 8
    assert embed(load(folder), sentences, poolings=["max", "avg"]).cost.encoded == 0


def test_more_keys_than_one_query_takes_are_found(monkeypatch):
    cache = cache_of(1)
    monkeypatch.setattr("stsbench.encoders.cache._KEYS_PER_QUERY", 1000)
    given = fill(cache, 2503)
    assert cache.vectors(list(given)).keys() == given.keys()


def test_a_full_disk_is_a_warning_and_all_or_nothing_is_kept(caplog):
    cache = cache_of(1)
    fill(cache)
    before = cache.path.read_bytes()
    # The system takes a part of the second block and refuses the rest, as a disk does that is full.
    with files_of_at_most(len(before) + 100_000):
        fill(cache, 2000, start=100)
    (message,) = caplog.messages
    assert re.search("without the cache: cannot use the embedding cache .*free some space", message)
    assert cache.path.read_bytes() == before


def fill_disk(monkeypatch, tmp_path):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    schema = f"{_SCHEMA.replace('16384', '512')}PRAGMA max_page_count = 7;"
    monkeypatch.setattr("stsbench.encoders.cache._SCHEMA", schema)
    monkeypatch.setattr(os, "utime", fail)


def replace_folder(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "file"))


@pytest.mark.parametrize("trouble", [fill_disk, replace_folder])
def test_without_room_for_the_cache_a_run_continues_with_one_warning(
    trouble, tiny, sentences, caplog, monkeypatch, tmp_path
):
    folder = tiny()
    expected = embed(load(folder), sentences, use_cache=False).vectors["avg"]
    trouble(monkeypatch, tmp_path)
    for _ in range(2):
        found = embed(load(folder), sentences)
        assert found.cost.encoded == 8
        np.testing.assert_allclose(found.vectors["avg"], expected, atol=1e-6)
    (warning,) = caplog.messages
    assert warning.startswith("continuing without the cache: ")


def test_above_the_size_limit_the_least_recently_used_go_first():
    caches = [cache_of(number) for number in range(4)]
    for age, cache in enumerate(caches):
        fill(cache, 100)
        os.utime(cache.path, (1000 + age, 1000 + age))
    one = caches[0].path.stat().st_size
    touch_and_trim(caches[0].path, max_bytes=2 * one)
    assert [cache.path.exists() for cache in caches] == [True, False, False, True]
    touch_and_trim(caches[0].path, max_bytes=1)
    assert [cache.path.exists() for cache in caches] == [True, False, False, False]


def test_the_size_limit_is_read_or_refused(monkeypatch):
    monkeypatch.delenv("STSBENCH_CACHE_SIZE", raising=False)
    assert max_cache_bytes() == DEFAULT_MAX_BYTES
    for text, size in (("0", 0), ("123456", 123_456), (" 1.5 gb ", 1_500_000_000)):
        monkeypatch.setenv("STSBENCH_CACHE_SIZE", text)
        assert max_cache_bytes() == size
    for text in ("much", "-1", "5 parsecs", "1,5GB"):
        monkeypatch.setenv("STSBENCH_CACHE_SIZE", text)
        with pytest.raises(UserError, match=r"STSBENCH_CACHE_SIZE is .*, not a size"):
            max_cache_bytes()


def test_the_cache_can_be_listed_and_cleared_but_for_files_of_others(tiny, sentences):
    assert cache_files() == []
    assert clear_cache() == 0
    embed(load(tiny()), sentences)
    (embeddings_dir() / f"{'0' * 32}.vectors").write_bytes(b"damaged")
    (embeddings_dir() / "mine.txt").write_text("not ours")
    (file,) = cache_files()
    assert (file.vectors, file.identity["pooling"]) == (8, "avg")
    assert file.identity["name"].endswith("tiny-bert")
    assert file.size == file.path.stat().st_size
    assert clear_cache() == file.size + len(b"damaged")
    assert [path.name for path in embeddings_dir().glob("[!.]*")] == ["mine.txt"]
