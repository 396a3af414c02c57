"""The cache: nothing is encoded twice, nothing stale is served, and damage costs no more than time."""

import errno
import os
import resource

import numpy as np
import pytest
from damages import flip
from planted.cache import sql

from stsbench.base.errors import UserError
from stsbench.encoders.cache import (
    _SCHEMA,
    DEFAULT_MAX_BYTES,
    CachedText,
    EmbeddingCache,
    cache_files,
    clear_cache,
    embeddings_dir,
    kept_by_board,
    max_cache_bytes,
    touch_and_trim,
)
from stsbench.encoders.load import load
from stsbench.encoders.network import Network
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Identity
from stsbench.encoders.shared import shared_vectors
from stsbench.encoders.tokenizer import Tokenizer
from stsbench.encoders.use import own_use


@pytest.fixture(autouse=True)
def _nothing_warned_before(monkeypatch):
    monkeypatch.setattr("stsbench.encoders.cache._warned", set(), raising=False)


def cache_of(number, folder=None):
    return EmbeddingCache(
        Identity("model", "transformer", own_use("avg"), weights_sha256=f"{number:064d}"), "avg", folder
    )


def fill(cache, size=10, start=0):
    vectors = {n.to_bytes(16, "big"): np.full(16, n, np.float32) for n in range(start, start + size)}
    cache.add_vectors(vectors)
    return vectors


FULL = "PRAGMA max_page_count = 7;"


def disk_is_full(*_args):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


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


def test_only_new_sentences_are_encoded(tiny, sentences):
    folder = tiny()
    embed(load(folder), sentences[:4])
    found = embed(load(folder), sentences)
    assert found.cost.encoded == 4
    assert np.array_equal(found.vectors["avg"][found.rows[0]], found.vectors["avg"][found.rows[8]])


def test_a_new_text_of_a_known_token_sequence_is_not_encoded(tiny):
    folder = tiny()
    embed(load(folder), ["The dog"])
    assert embed(load(folder), ["the  DOG"]).cost.encoded == 0


def test_without_the_cache_nothing_is_read_or_written(tiny, sentences):
    folder = tiny()
    embed(load(folder), sentences, use_cache=False)
    assert not embeddings_dir().exists()
    embed(load(folder), sentences)
    assert embed(load(folder), sentences, use_cache=False).cost.encoded == 8


def test_a_weight_file_changed_in_place_is_noticed_though_size_and_time_are_the_same(tiny):
    folder = tiny()
    before = embed(load(folder), ["the dog"])
    weights = folder / "model.safetensors"
    stamp = weights.stat()
    flip(weights, 0.99)
    os.utime(weights, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert embed(load(folder), ["the dog"]).cost.encoded == 1
    assert before.cost.encoded == 1


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json", "config.json"])
def test_a_changed_tokenizer_or_config_is_noticed(file, tiny):
    folder = tiny()
    embed(load(folder), ["the dog"])
    (folder / file).write_text((folder / file).read_text() + "\n")
    assert embed(load(folder), ["the dog"]).cost.encoded == 1


@pytest.mark.parametrize(
    "options", [{"pooling": "max"}, {"max_length": 12}, {"prompt": "a "}, {"precision": "bf16"}], ids=str
)
def test_another_pooling_length_prompt_or_precision_is_another_entry(options, tiny):
    folder = tiny()
    embed(load(folder), ["the dog"])
    assert embed(load(folder, **options), ["the dog"]).cost.encoded == 1
    assert len(cache_files()) == 2


def test_the_same_files_under_another_name_are_the_same_entry(tiny):
    embed(load(tiny()), ["the dog"])
    assert embed(load(tiny(name="a-copy")), ["the dog"]).cost.encoded == 0


def test_a_pass_with_several_poolings_fills_the_cache_of_each(tiny, sentences):
    folder = tiny()
    poolings = ["avg", "cls", "avg_first_last"]
    together = embed(load(folder), sentences, poolings=poolings)
    for pooling in poolings:
        alone = embed(load(folder, pooling=pooling), sentences)
        assert alone.cost.encoded == 0
        assert np.array_equal(alone.vectors[pooling], together.vectors[pooling])
    both = embed(load(folder), sentences, poolings=["avg", "max"])
    assert both.cost.encoded == 8
    assert embed(load(folder), sentences, poolings=["max", "avg"]).cost.encoded == 0


def test_what_a_text_is_one_poolers_cache_tells_for_all(tiny, sentences, monkeypatch):
    folder, poolings = tiny(), ["avg", "cls", "avg_first_last"]
    first = embed(load(folder), sentences, poolings=poolings)
    asked = []
    texts = EmbeddingCache.texts
    monkeypatch.setattr(EmbeddingCache, "texts", lambda cache, wanted: asked.append(cache) or texts(cache, wanted))
    again = embed(load(folder), sentences, poolings=poolings)
    assert again.cost.encoded == 0
    assert len(asked) == 1
    # What one has lost another knows.
    sql("DELETE FROM texts")(asked[0].path)
    last = embed(load(folder), sentences, poolings=poolings)
    assert last.cost.encoded == 0
    assert len(asked) == 3
    for pooling in poolings:
        assert np.array_equal(last.vectors[pooling], first.vectors[pooling])


def test_texts_whose_vectors_are_gone_are_encoded_again(tiny, sentences):
    folder = tiny()
    first = embed(load(folder), sentences)
    (file,) = cache_files()
    sql("DELETE FROM vectors")(file.path)
    again = embed(load(folder), sentences)
    assert again.cost.encoded == 8
    np.testing.assert_allclose(again.vectors["avg"], first.vectors["avg"], atol=1e-5)


def test_vectors_keep_their_bits(tmp_path):
    cache = cache_of(1, tmp_path)
    given = {b"a" * 16: np.array([1e-40, -0.0, 3.4e38, np.pi], np.float32)}
    cache.add_vectors(given)
    ((key, vector),) = cache.vectors([b"a" * 16, b"b" * 16]).items()
    assert key == b"a" * 16
    assert vector.tobytes() == given[key].tobytes()


def test_more_keys_than_one_query_takes_are_found(tmp_path, monkeypatch):
    cache = cache_of(1, tmp_path)
    monkeypatch.setattr("stsbench.encoders.cache._KEYS_PER_QUERY", 1000)
    given = fill(cache, 2503)
    assert cache.vectors(list(given)).keys() == given.keys()


def test_any_text_can_be_remembered(tmp_path):
    cache = cache_of(1, tmp_path)
    texts = {text: CachedText(b"k" * 16, n, n == 1) for n, text in enumerate(["", "\ud800", "a\x00b", "'); --"])}
    cache.add_texts(texts)
    assert cache.texts([*texts, "unknown"]) == texts


@pytest.mark.parametrize("damage", ["garbage", "cut", "header", "tail"])
def test_a_damaged_file_is_replaced_and_said_so(damage, tiny, sentences, caplog):
    folder = tiny()
    first = embed(load(folder), sentences * 5)
    (file,) = cache_files()
    content = bytearray(file.path.read_bytes())
    damaged = {
        "garbage": b"not a database " * 100,
        "cut": bytes(content[: len(content) // 2]),
        "header": b"x" * 100 + bytes(content[100:]),
        "tail": bytes(content[:16384]) + b"\xff" * (len(content) - 16384),
    }
    file.path.write_bytes(damaged[damage])
    again = embed(load(folder), sentences)
    assert again.cost.encoded == 8
    np.testing.assert_allclose(again.vectors["avg"], first.vectors["avg"], atol=1e-5)
    assert "was damaged" in caplog.text
    assert str(file.path) in caplog.text
    assert embed(load(folder), sentences).cost.encoded == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_in_a_files_place_is_told_and_not_waited_for(tmp_path):
    cache = cache_of(1, tmp_path)
    os.mkfifo(cache.path)
    with pytest.raises(UserError, match=r"cannot use the embedding cache .* \(not a file\)"):
        cache.vectors([b"0" * 16])
    assert cache_files(tmp_path) == []


def test_an_empty_file_is_a_new_one(tmp_path):
    cache = cache_of(1, tmp_path)
    cache.path.write_bytes(b"")
    given = fill(cache)
    assert cache.vectors(list(given)).keys() == given.keys()


def test_a_full_disk_is_told_and_all_or_nothing_is_kept(tmp_path):
    cache = cache_of(1, tmp_path)
    fill(cache)
    before, limits = cache.path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    # The system takes a part of the second block and refuses the rest, as a disk does that is full.
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100_000, limits[1]))
    try:
        with pytest.raises(UserError, match=r"cannot use the embedding cache .*free some space") as told:
            fill(cache, 2000, start=100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(told.value)
    assert cache.path.read_bytes() == before


def fill_disk(monkeypatch):
    monkeypatch.setattr("stsbench.encoders.cache._SCHEMA", _SCHEMA.replace("16384", "512") + FULL)


def test_a_full_disk_ends_no_run_whose_sentences_are_encoded_and_warns_once(tiny, sentences, caplog, monkeypatch):
    folder = tiny()
    expected = embed(load(folder), sentences, use_cache=False).vectors["avg"]

    fill_disk(monkeypatch)
    monkeypatch.setattr(os, "utime", disk_is_full)
    for _ in range(2):
        found = embed(load(folder), sentences)
        assert found.cost.encoded == 8
        np.testing.assert_allclose(found.vectors["avg"], expected, atol=1e-6)
    (warning,) = caplog.messages
    assert "continuing without the cache" in warning
    assert "disk is full" in warning


def test_vectors_that_processes_share_are_all_written_or_none(tiny, sentences, tmp_path, monkeypatch):
    fill_disk(monkeypatch)
    with pytest.raises(UserError, match="disk is full"):
        shared_vectors(load(tiny()), sentences, tmp_path / "shared")
    assert not [path for path in (tmp_path / "shared").iterdir() if path.is_dir()]


def test_the_cache_may_be_deleted_while_an_encoding_ends(tmp_path, monkeypatch):
    caches = [cache_of(number, tmp_path) for number in range(2)]
    for cache in caches:
        fill(cache)

    class Vanishing(type(tmp_path)):
        def glob(self, pattern):
            paths = list(super().glob(pattern))
            for path in paths:
                path.unlink()
            return paths

    touch_and_trim(Vanishing(tmp_path) / caches[0].path.name, max_bytes=1)
    assert not cache_files(tmp_path)


def test_what_is_known_is_not_kept_twice(tmp_path):
    cache = cache_of(1, tmp_path)
    fill(cache)
    before = cache.path.stat().st_size
    fill(cache)
    assert cache.path.stat().st_size == before
    fill(cache, 12)
    assert cache_files(tmp_path)[0].vectors == 12


def test_what_is_not_ours_is_not_cleared(tmp_path):
    cache = cache_of(1, tmp_path)
    fill(cache, 100)
    size = cache.path.stat().st_size
    (tmp_path / "a-person-s.txt").write_text("not ours")
    assert clear_cache(tmp_path) == size
    assert [path.name for path in tmp_path.glob("[!.]*")] == ["a-person-s.txt"]


def test_what_the_board_keeps_is_trimmed_when_it_was_not_used_for_longest(tiny, monkeypatch):
    kept_by_board().parent.mkdir(parents=True)
    kept_by_board().write_bytes(bytes(1000))
    monkeypatch.setenv("STSBENCH_CACHE_SIZE", "1MB")
    folder = tiny()
    embed(load(folder), ["the dog"])
    assert kept_by_board().exists()
    monkeypatch.setenv("STSBENCH_CACHE_SIZE", "500")
    embed(load(folder), ["the dog"])
    assert not kept_by_board().exists()


def test_a_folder_that_cannot_be_written_is_reported_once_and_nothing_is_kept(tiny, monkeypatch, tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "file"))
    folder = tiny()
    assert [embed(load(folder), ["the dog"]).cost.encoded for _ in range(2)] == [1, 1]
    assert [message.partition(":")[0] for message in caplog.messages] == ["continuing without the cache"]


def test_above_the_size_limit_the_least_recently_used_go_first(tmp_path):
    caches = [cache_of(number, tmp_path) for number in range(4)]
    for age, cache in enumerate(caches):
        fill(cache, 100)
        os.utime(cache.path, (1000 + age, 1000 + age))
    one = caches[0].path.stat().st_size
    touch_and_trim(caches[0].path, max_bytes=2 * one)
    assert [cache.path.exists() for cache in caches] == [True, False, False, True]
    touch_and_trim(caches[0].path, max_bytes=1)
    assert [cache.path.exists() for cache in caches] == [True, False, False, False]


def test_the_persons_size_limit_holds(tiny, monkeypatch):
    monkeypatch.setenv("STSBENCH_CACHE_SIZE", "1")
    folder = tiny()
    embed(load(folder), ["the dog"])
    embed(load(folder, pooling="max"), ["the dog"])
    assert [file.identity["pooling"] for file in cache_files()] == ["max"]


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (None, DEFAULT_MAX_BYTES),
        ("", DEFAULT_MAX_BYTES),
        ("0", 0),
        ("123456", 123_456),
        ("5GB", 5 * 10**9),
        (" 1.5 gb ", 1_500_000_000),
        ("500M", 500_000_000),
        ("2TB", 2 * 10**12),
        ("10B", 10),
        ("9" * 400, 2**62),
    ],
)
def test_the_size_limit_is_read(written, size, monkeypatch):
    monkeypatch.delenv("STSBENCH_CACHE_SIZE", raising=False)
    if written is not None:
        monkeypatch.setenv("STSBENCH_CACHE_SIZE", written)
    assert max_cache_bytes() == size


@pytest.mark.parametrize("written", ["much", "-1", "5 parsecs", "1,5GB"])
def test_a_size_limit_that_is_no_size_is_told_before_anything_is_encoded(written, tiny, monkeypatch):
    monkeypatch.setenv("STSBENCH_CACHE_SIZE", written)
    with pytest.raises(UserError, match=r"STSBENCH_CACHE_SIZE is .*, which is not a size"):
        embed(load(tiny()), ["the dog"])


def test_a_cache_that_cannot_be_cleared_is_told(tmp_path, monkeypatch):
    fill(cache_of(1, tmp_path))

    def refuse(path, missing_ok=False):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    with pytest.raises(
        UserError, match=r"cannot clear the embedding cache .*Permission denied.*: allow writing there"
    ):
        clear_cache(tmp_path)


@pytest.mark.parametrize("about", ["'[]'", "'{}'", "7", "'no JSON'", "NULL"])
def test_a_file_whose_identity_is_damaged_is_not_listed(about, tmp_path):
    cache = cache_of(1, tmp_path)
    fill(cache)
    assert len(cache_files(tmp_path)) == 1
    sql(f"UPDATE about SET description = {about}")(cache.path)
    assert cache_files(tmp_path) == []


def test_the_cache_can_be_looked_into_and_cleared(tiny, sentences):
    assert cache_files() == []
    assert clear_cache() == 0
    embed(load(tiny()), sentences)
    (embeddings_dir() / f"{'0' * 32}.vectors").write_bytes(b"damaged")
    (file,) = cache_files()
    assert file.vectors == 8
    assert file.identity["pooling"] == "avg"
    assert file.identity["name"].endswith("tiny-bert")
    assert file.size == file.path.stat().st_size
    assert clear_cache() == file.size + len(b"damaged")
    assert cache_files() == []
