"""No wrong vector comes out of a damaged cache: damage is dropped, reported and encoded again."""

import random
import sqlite3

import numpy as np
import pytest
from test_plan import Recorder

from stsbench.base.errors import UserError
from stsbench.encoders.cache import EmbeddingCache, embeddings_dir
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Tokenized

TEXTS = [f"word {number} " * (number % 7 + 1) for number in range(40)]


class Encoder(Recorder):
    """Encodes a text as random numbers seeded by its letters."""

    def __init__(self, weights="0"):
        super().__init__(weights=weights * 64)

    def tokenize(self, texts):
        lengths = [len(text) for text in texts]
        return Tokenized([tuple(text.encode()) for text in texts], lengths, [length > 30 for length in lengths])

    def forward(self, sequences, poolings):
        rows = [np.random.default_rng([*self.identity.weights_sha256[:1].encode(), *q]) for q in sequences]
        return {pooling: np.array([row.normal(size=16) for row in rows], np.float32) for pooling in poolings}


def begun():
    measured = embed(Encoder(), TEXTS)
    return EmbeddingCache(Encoder().identity, "avg").path, measured


def outcome(plant, file, content, measured):
    """Damage a cache with that content and encode again: `right`, `told` (one sentence) or `wrong`."""
    for path in embeddings_dir().glob("*.vectors"):
        path.unlink()
    file.write_bytes(content)
    plant(file)
    try:
        again = embed(Encoder(), TEXTS)
    except UserError as error:
        return "told" if "\n" not in str(error) else "wrong"
    alike = all(
        np.array_equal(getattr(again, name), getattr(measured, name)) for name in ("rows", "lengths", "truncated")
    )
    return "right" if alike and np.array_equal(again.vectors["avg"], measured.vectors["avg"]) else "wrong"


def sql(*statements):
    def run(file):
        with sqlite3.connect(file) as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    return run


def _bytes(change, seed):
    def plant(file):
        content = bytearray(file.read_bytes())
        change(content, random.Random(seed))
        file.write_bytes(content)

    return plant


def _flip(content, rng):
    used = np.flatnonzero(np.frombuffer(bytes(content), np.uint8))
    content[rng.choice(used.tolist())] ^= rng.randrange(1, 256)


def _flip_header(content, rng):
    content[rng.randrange(100)] ^= rng.randrange(1, 256)


def _cut(content, rng):
    del content[rng.randrange(len(content)) :]


def _zero(content, rng):
    start, length = rng.randrange(len(content)), rng.choice([4, 64, 512, 4096])
    content[start : start + length] = bytes(len(content[start : start + length]))


def _swap(content, rng):
    length = rng.choice([16, 64, 100, 4096])
    a, b = (rng.randrange(len(content) - length) for _ in range(2))
    content[a : a + length], content[b : b + length] = content[b : b + length], content[a : a + length]


def _another_models_file(file):
    other = Encoder("1")
    embed(other, TEXTS)
    EmbeddingCache(other.identity, "avg").path.replace(file)


_SHIFTED = "UPDATE {0} SET content = (SELECT content FROM {0} o WHERE o.rowid = {0}.rowid % 40 + 1)"
_ROWS = {
    "a vector zeroed": sql("UPDATE vectors SET content = zeroblob(64) WHERE rowid = 3"),
    "all the same": sql("UPDATE vectors SET content = (SELECT content FROM vectors WHERE rowid = 1)"),
    "shorter vectors": sql("UPDATE vectors SET content = substr(content, 1, 32)"),
    "empty vectors": sql("UPDATE vectors SET content = x''"),
    "no vectors": sql("UPDATE vectors SET content = NULL"),
    "numbers as vectors": sql("UPDATE vectors SET content = 7"),
    "texts as vectors": sql("UPDATE vectors SET content = 'abcd'"),
    "vectors of their neighbours": sql(_SHIFTED.format("vectors")),
    "two keys swapped": sql(
        "CREATE TABLE o AS SELECT key FROM vectors WHERE rowid < 3",
        "UPDATE vectors SET key = x'00' WHERE rowid = 1",
        "UPDATE vectors SET key = (SELECT key FROM o WHERE rowid = 1) WHERE rowid = 2",
        "UPDATE vectors SET key = (SELECT key FROM o WHERE rowid = 2) WHERE rowid = 1",
    ),
    "no checksums": sql("UPDATE vectors SET checksum = NULL"),
    "lengths changed": sql("UPDATE texts SET content = substr(content, 1, 16) || zeroblob(9)"),
    "short texts": sql("UPDATE texts SET content = substr(content, 1, 16)"),
    "rows of other texts": sql(_SHIFTED.format("texts")),
    "vectors gone": sql("DELETE FROM vectors"),
    "texts gone": sql("DELETE FROM texts"),
    "nothing about it": sql("DELETE FROM about"),
    "no table of texts": sql("DROP TABLE texts"),
    "another table of vectors": sql("DROP TABLE vectors", "CREATE TABLE vectors (a, b)"),
}
_GENERATED = {
    "flip": (_flip, 40),
    "header": (_flip_header, 15),
    "cut": (_cut, 10),
    "zero": (_zero, 10),
    "swap": (_swap, 10),
}
VARIANTS = {
    **{
        f"{name} {n}": _bytes(change, f"{name} {n}")
        for name, (change, count) in _GENERATED.items()
        for n in range(count)
    },
    **_ROWS,
    "the last byte lost": _bytes(lambda content, _: content.pop(), ""),
    "another model's file": _another_models_file,
    "empty": lambda file: file.write_bytes(b""),
    "text": lambda file: file.write_text("not a database " * 99),
}
"""Every one must end in the right vectors."""


@pytest.fixture
def filled():
    file, measured = begun()
    return file, file.read_bytes(), measured


def test_more_than_a_hundred_kinds_of_damage_are_planted_and_none_passes(filled):
    outcomes = {name: outcome(plant, *filled) for name, plant in VARIANTS.items()}
    assert len(outcomes) >= 100
    assert {name: end for name, end in outcomes.items() if end != "right"} == {}


def test_the_harness_notices_a_wrong_vector(filled, monkeypatch):
    monkeypatch.setattr("stsbench.encoders.cache.crc32", lambda content, start=0: 0)
    embeddings_dir().joinpath(filled[0].name).unlink()
    zeroed = [VARIANTS["a vector zeroed"], VARIANTS["all the same"]]
    file, measured = begun()
    assert [outcome(plant, file, file.read_bytes(), measured) for plant in zeroed] == ["wrong", "wrong"]


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
