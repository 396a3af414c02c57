"""Word vectors: read as GloVe and word2vec write them, averaged over the known words."""

import gzip
import struct

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders import vector_files
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed

VECTORS = {
    "the": [1.0, 2.0, 3.0, 4.0],
    "dog": [-1.0, 0.5, 0.25, 8.0],
    "ran": [0.1, 0.2, 0.3, 0.4],
    "café": [5.0, 6.0, 7.0, 8.0],
    "Paris": [9.0, 9.0, 9.0, 9.0],
}
TEXTS = ["the dog ran", "The DOG", "the zyzzyva ran", "zyzzyva", "", "café", "dog the"]


def text_rows(vectors=VECTORS):
    return "".join(f"{word} {' '.join(map(str, values))}\n" for word, values in vectors.items())


def glove(folder):
    path = folder / "glove.6B.4d.txt"
    path.write_text(text_rows(), encoding="utf-8")
    return path


def word2vec_text(folder):
    path = folder / "vectors.vec"
    path.write_text(f"{len(VECTORS)} 4\n{text_rows().replace(chr(10), ' ' + chr(10))}", encoding="utf-8")
    return path


def binary(newline=b""):
    rows = (word.encode() + b" " + struct.pack("<4f", *values) + newline for word, values in VECTORS.items())
    return f"{len(VECTORS)} 4\n".encode() + b"".join(rows)


def word2vec_binary(folder):
    path = folder / "vectors.bin"
    path.write_bytes(binary())
    return path


def word2vec_binary_with_newlines(folder):
    path = folder / "vectors.bin"
    path.write_bytes(binary(b"\n"))
    return path


def gzipped_glove(folder):
    path = folder / "glove.txt.gz"
    path.write_bytes(gzip.compress(text_rows().encode()))
    return path


def gzipped_binary(folder):
    path = folder / "GoogleNews-vectors.bin.gz"
    path.write_bytes(gzip.compress(binary(b"\n")))
    return path


def text_named_bin(folder):
    path = folder / "vectors.bin"
    path.write_bytes(word2vec_text(folder).read_bytes())
    return path


WRITERS = [
    glove,
    word2vec_text,
    word2vec_binary,
    word2vec_binary_with_newlines,
    gzipped_glove,
    gzipped_binary,
    text_named_bin,
]


def mean(*words):
    return np.mean([VECTORS[word] for word in words], axis=0)


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_gives_the_mean_of_the_known_words(write, tmp_path, vectors_of):
    encoder = load(write(tmp_path))
    assert (encoder.identity.kind, encoder.identity.use.pooling) == ("static", "avg")
    expected = [
        mean("the", "dog", "ran"),
        mean("the", "dog"),
        mean("the", "ran"),
        np.zeros(4),
        np.zeros(4),
        mean("café"),
        mean("the", "dog"),
    ]
    np.testing.assert_allclose(vectors_of(encoder, TEXTS), expected, atol=1e-6)


def test_lengths_count_words_known_or_not(tmp_path):
    found = embed(load(glove(tmp_path)), TEXTS, use_cache=False)
    assert found.lengths.tolist() == [3, 2, 3, 1, 0, 1, 2]
    assert not found.truncated.any()


def test_a_word_is_looked_up_lower_cased(tmp_path, vectors_of):
    assert not vectors_of(load(glove(tmp_path)), ["Paris"]).any()


def test_the_order_of_words_does_not_move_the_mean(tmp_path, vectors_of):
    words = ["the", "dog", "ran", "café"]
    forth, back = vectors_of(load(glove(tmp_path)), [" ".join(words), " ".join(words[::-1])])
    assert np.array_equal(forth, back)


def test_a_second_run_reads_neither_words_nor_vectors(tmp_path, monkeypatch):
    path = glove(tmp_path)
    first = embed(load(path), TEXTS)
    from stsbench.encoders.vector_files import StaticEncoder

    monkeypatch.setattr(StaticEncoder, "_read", None)
    second = embed(load(path), TEXTS)
    assert second.cost.encoded == 0
    assert np.array_equal(first.vectors["avg"], second.vectors["avg"])


def test_words_asked_for_later_are_read_then(tmp_path, vectors_of):
    encoder = load(glove(tmp_path))
    vectors_of(encoder, ["the"])
    np.testing.assert_allclose(vectors_of(encoder, ["the dog"])[0], mean("the", "dog"), atol=1e-6)


def test_who_asks_on_has_the_file_read_once_and_no_unknown_word_is_kept(tmp_path, vectors_of, monkeypatch):
    encoder = load(glove(tmp_path))
    reads = []
    read = type(encoder)._read
    monkeypatch.setattr(type(encoder), "_read", lambda self, words: reads.append(words) or read(self, words))
    for number in range(6):
        found = vectors_of(encoder, [f"the dog nobody{number}", f"ran nobody{number}"])
        np.testing.assert_allclose(found, [mean("the", "dog"), mean("ran")], atol=1e-6)
    assert len(reads) == 3
    assert not any(word.startswith("nobody") for word in encoder._vectors)


def test_who_asks_on_gets_the_same_of_a_file_with_an_empty_line_or_too_large_for_memory(
    tmp_path, vectors_of, monkeypatch
):
    path = glove(tmp_path)
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    for free in (None, 10):
        monkeypatch.setattr(vector_files, "available_bytes", lambda free=free: free)
        encoder = load(path)
        for word in ("the", "dog", "ran", "café"):
            np.testing.assert_allclose(vectors_of(encoder, [word])[0], mean(word), atol=1e-6)
        assert encoder._is_whole is (free is None)


def test_a_word_with_blanks_is_not_taken_for_another(tmp_path, vectors_of):
    path = tmp_path / "glove.840B.txt"
    path.write_text("the 1 2 3 4\n. . . 7 7 7 7\n. 5 5 5 5\n")
    assert vectors_of(load(path), [". the", "."]).tolist() == [[3, 3.5, 4, 4.5], [5, 5, 5, 5]]


def test_the_first_of_two_equal_words_counts(tmp_path, vectors_of):
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2\ndog 5 5\nthe 7 7\n")
    assert vectors_of(load(path), ["the"]).tolist() == [[1, 2]]


def test_windows_line_ends_are_no_part_of_a_number(tmp_path, vectors_of):
    path = tmp_path / "vectors.txt"
    path.write_bytes(b"the 1 2\r\ndog 5 5\r\n")
    assert vectors_of(load(path), ["dog"]).tolist() == [[5, 5]]


def test_a_word_may_look_like_a_word_and_a_number(tmp_path, vectors_of):
    path = tmp_path / "glove.txt"
    path.write_text("the 1 2 3 4\ndog 1 2 3 4 5\n")
    assert not vectors_of(load(path), ["dog"]).any(), "the word is 'dog 1'"


_GZIPPED = gzip.compress(text_rows().encode(), mtime=0)  # the same bytes in every worker
MISTAKES = [
    ("glove.txt", b"the 1 2 3 4\ndog 1 2 3\n", r"glove\.txt, line 2.* 4 numbers"),
    ("glove.txt", b"the 1 2 3 4\ndog 1 2 3 x\n", r"glove\.txt, line 2.* 4 numbers"),
    ("glove.txt", b"the 1 2 3 4\ndog\n", r"glove\.txt, line 2.* 4 numbers"),
    ("w2v.txt", b"2 3\nthe 1 2 3\ndog 1 2\n", r"w2v\.txt, line 3"),
    ("glove.txt", b"dog 1 nan\n", "NaN or infinite values in 1 of 1 vectors"),
    ("words.txt", b"", r"words\.txt.* GloVe or word2vec"),
    ("words.txt", b"hello\n", r"words\.txt, line 1.* GloVe or word2vec"),
    ("words.txt", b"\x80\x04\x95 pickle\n", r"words\.txt, line 1.* GloVe or word2vec"),
    ("words.txt", b"3 0\nthe\n", "line 1"),
    ("vectors.bin", binary()[:-3], r"row 5, .* 5 rows"),
    ("vectors.bin", binary()[:-20], r"row [45], .* 5 rows"),
    ("glove.txt.gz", _GZIPPED[:-9], "gzip"),
    ("glove.txt.gz", b"plain", "gzip"),
    ("glove.txt.gz", _GZIPPED[:20] + b"\xff" + _GZIPPED[21:], "gzip"),
]


@pytest.mark.parametrize(("name", "content", "said"), MISTAKES)
def test_a_mistake_in_a_file_is_reported(name, content, said, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError, match=said):
        embed(load(path), ["dog"])


def test_poolings_other_than_the_mean_are_refused(tmp_path):
    path = glove(tmp_path)
    assert load(path, pooling="avg").identity.use.pooling == "avg"
    with pytest.raises(UserError, match="--pooling: not for word vectors, which are averaged"):
        load(path, pooling="max")
    with pytest.raises(UserError, match="has no pooling 'max'"):
        embed(load(path), ["the"], poolings=["max"])
    with pytest.raises(UserError, match="--max-length: not for word vectors"):
        load(path, max_length=12)
