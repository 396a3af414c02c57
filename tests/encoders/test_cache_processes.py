"""Several processes at one cache, and processes that die at it."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from test_plan import Recorder

from stsbench.encoders import cache as module
from stsbench.encoders.cache import (
    CachedText,
    EmbeddingCache,
    cache_files,
    clear_cache,
    embeddings_dir,
    touch_and_trim,
)
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import own_use

IDENTITY = Identity("model", "transformer", own_use("avg"), weights_sha256="0" * 64)


def vector(number):
    return np.full(8, number, np.float32)


def key(number):
    return number.to_bytes(16, "big")


def write(first, rounds):
    cache = EmbeddingCache(IDENTITY, "avg")
    for start in range(rounds):
        numbers = [*range(5), *range(first + 10 * start, first + 10 * start + 10)]
        cache.add_vectors({key(number): vector(number) for number in numbers})
        cache.add_texts({str(number): CachedText(key(number), number, False) for number in numbers})
        found = cache.vectors([key(number) for number in numbers])
        assert all(np.array_equal(found[key(number)], vector(number)) for number in numbers)


def write_while_others_delete(first, rounds):
    cache = EmbeddingCache(IDENTITY, "avg")
    for start in range(4 * rounds):
        cache.add_vectors({key(first + start): vector(first + start)})
        for found, value in cache.vectors([key(first + start)]).items():
            assert np.array_equal(value, vector(int.from_bytes(found, "big")))
        if start % 4 == 0:
            clear_cache()
        if start % 4 == 1:
            touch_and_trim(cache.path.with_name("other"), 0)
        if start % 4 == 2:
            shutil.rmtree(embeddings_dir(), ignore_errors=True)


@pytest.fixture
def script():
    """Return a function that starts Python on a few lines, which see this file's functions."""

    def start(lines):
        path = [str(Path(__file__).parent), *sys.path]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen([sys.executable, "-c", textwrap.dedent(lines)], env=env, stderr=subprocess.PIPE)

    return start


def run_all(processes):
    return [(process.wait(60), process.stderr.read().decode()) for process in processes]


@pytest.mark.parametrize("function", ["write", "write_while_others_delete"])
def test_several_processes_at_once_do_not_damage_it_nor_fail_when_it_is_deleted(function, script):
    lines = f"""
        from test_cache_processes import {function}
        {function}(%d, 100)
    """
    ended = run_all([script(lines % first) for first in (1000, 3000, 5000)])
    assert [code for code, _ in ended] == [0, 0, 0], ended
    if function == "write":
        cache = EmbeddingCache(IDENTITY, "avg")
        numbers = [*range(5), *range(1000, 2000), *range(3000, 4000), *range(5000, 6000)]
        found = cache.vectors([key(number) for number in numbers])
        assert all(np.array_equal(found[key(number)], vector(number)) for number in numbers)
        assert cache.texts(["3999"]) == {"3999": CachedText(key(3999), 3999, False)}


class SlowEncoder(Recorder):
    def __init__(self, seconds=0.0):
        super().__init__(weights="0" * 64)
        self.token_budget, self.seconds = 1, seconds

    def forward(self, sequences, poolings):
        time.sleep(self.seconds)
        return super().forward(sequences, poolings)


TEXTS = ["x" * length for length in range(1, 41)]


def test_a_killed_run_leaves_what_it_saved_and_the_next_resumes_there(script):
    lines = """
        from test_cache_processes import TEXTS, SlowEncoder
        from stsbench.encoders import plan
        from stsbench.encoders.plan import embed
        plan._SAVE_EVERY_SECONDS = 0.0
        embed(SlowEncoder(0.05), TEXTS)
    """
    process = script(lines)
    while not any(file.vectors >= 3 for file in cache_files()):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (file,) = cache_files()
    assert 3 <= file.vectors < 40
    resumed = embed(SlowEncoder(), TEXTS)
    assert resumed.cost.encoded == 40 - file.vectors
    assert resumed.vectors["avg"][resumed.rows, 0].tolist() == list(range(1, 41))
    assert embed(SlowEncoder(), TEXTS).cost.encoded == 0


def test_a_process_killed_in_the_middle_of_a_write_leaves_the_file_whole(script):
    lines = """
        from test_cache_processes import IDENTITY, key, vector
        from stsbench.encoders.cache import EmbeddingCache
        cache = EmbeddingCache(IDENTITY, "avg")
        first = 0
        while True:
            cache.add_vectors({key(n): vector(n) for n in range(first, first + 500)})
            first += 500
    """
    for pause in (0.05, 0.13):
        process = script(lines)
        cache = EmbeddingCache(IDENTITY, "avg")
        while not cache.path.exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = cache.vectors([key(number) for number in range(100_000)])
        assert len(found) % 500 == 0, "each write is kept whole or not at all"
        assert all(np.array_equal(value, vector(int.from_bytes(k, "big"))) for k, value in found.items())


def test_a_run_that_waits_too_long_continues_without_the_cache_until_it_is_free(script, caplog, monkeypatch):
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(module, "_warned", set())
    lines = """
        import sqlite3, time
        from stsbench.encoders.cache import embeddings_dir
        (file,) = embeddings_dir().glob("*.vectors")
        connection = sqlite3.connect(file)
        connection.execute("BEGIN EXCLUSIVE")
        (embeddings_dir() / "held").touch()
        time.sleep(60)
    """
    embed(SlowEncoder(), TEXTS[:5])
    process = script(lines)
    try:
        while not (embeddings_dir() / "held").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        result = embed(SlowEncoder(), TEXTS)
    finally:
        process.kill()
        process.wait()
    assert result.vectors["avg"][result.rows, 0].tolist() == list(range(1, 41))
    assert result.cost.encoded == 40
    (message,) = caplog.messages
    assert message.startswith("continuing without the cache: ")
    assert "database is locked" in message
    assert embed(SlowEncoder(), TEXTS).cost.encoded == 35
    assert embed(SlowEncoder(), TEXTS).cost.encoded == 0
