"""`embed`: what is in the file, what a kill costs, and which vectors are refused."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.encoders import embedded as module
from stsbench.encoders.embedded import Embedded, embed_file
from stsbench.encoders.plan import embed

LINES = [f"Sentence {number} of a long file{' and more' * (number % 7)}." for number in range(40)] + ["A cat."] * 3


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n\n".join(f" {line} " for line in LINES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def bert(tiny):
    return tiny("bert")


@pytest.fixture
def encoder(bert):
    return sb.load(bert)


@pytest.fixture(autouse=True)
def in_parts(monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 16)


def plain(encoder, texts):
    """Embed part by part, as other batches change the last bits."""
    parts = [embed(encoder, texts[start : start + 16], use_cache=False) for start in range(0, len(texts), 16)]
    return np.concatenate([next(iter(part.vectors.values()))[part.rows] for part in parts])


def test_each_line_has_its_row(lines, encoder, tmp_path):
    seen = []
    made = embed_file(lines, encoder, out=tmp_path / "v.npy", progress=lambda *at: seen.append(at))
    vectors = np.load(tmp_path / "v.npy", mmap_mode="r")
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, plain(encoder, LINES))
    assert np.array_equal(made.vectors, vectors)
    assert seen[-1] == ("embedding", len(LINES), len(LINES))
    assert made.rows == len(LINES)
    assert json.loads((tmp_path / "v.npy.json").read_text())["model"] == encoder.identity.name
    assert sorted(path.name for path in tmp_path.glob("v*")) == ["v.npy", "v.npy.json"]
    assert made.sentences([0, 42]) == {0: LINES[0], 42: "A cat."}


def stop_after(number, error=KeyboardInterrupt):
    def progress(stage, done, total):
        if stage == "embedding" and done > number:
            raise error

    return progress


@pytest.mark.parametrize("error", [KeyboardInterrupt, UserError("the model failed")], ids=["interrupt", "error"])
def test_after_an_interrupt_or_an_error_the_same_call_resumes(error, lines, encoder, tmp_path, monkeypatch):
    out, encoded = tmp_path / "v.npy", []
    with pytest.raises(type(error) if isinstance(error, Exception) else error):
        embed_file(lines, encoder, out=out, progress=stop_after(16, error))
    (unfinished,) = tmp_path.glob("*.unfinished")
    unfinished.write_bytes(unfinished.read_bytes() + b"half a row")
    original = module.embed
    monkeypatch.setattr(
        module,
        "embed",
        lambda model, texts, **rest: encoded.append(len(texts)) or original(model, texts, **rest),
    )
    for _ in range(2):  # a complete file is not made again
        embed_file(lines, encoder, out=out)
        assert sum(encoded) == 1 + len(LINES) - 32  # one for the number of dimensions
        assert np.array_equal(np.load(out), plain(encoder, LINES))
        assert sorted(path.name for path in tmp_path.glob("v*")) == ["v.npy", "v.npy.json"]


def test_an_error_in_the_first_part_leaves_no_vectors_and_keeps_an_earlier_file(lines, encoder, tmp_path):
    def fail(stage, done, total):
        raise UserError("the model failed")

    out = tmp_path / "v.npy"
    with pytest.raises(UserError, match="the model failed"):
        embed_file(lines, encoder, out=out, progress=fail)
    assert [path.suffix for path in tmp_path.glob("v*")] == [".unfinished"]
    embed_file(lines, encoder, out=out)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("v.npy*") if path.suffix != ".unfinished"}
    assert len(before) == 2
    with pytest.raises(UserError, match="the model failed"):
        embed_file(lines, encoder, out=out, overwrite=True, progress=fail)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("v*") if path.name in before} == before


def test_a_killed_process_resumes_and_ends_with_the_same_bytes(bert, tmp_path, monkeypatch):
    (tmp_path / "lines.txt").write_text("\n".join(f"Line {number}." for number in range(1500)), encoding="utf-8")
    script = (
        "import sys; from stsbench.encoders import embedded; embedded.AT_ONCE = 100; "
        "embedded.embed_file(sys.argv[1], sys.argv[2], out=sys.argv[3])"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "lines.txt"), str(bert)]
    process = subprocess.Popen([*command, str(tmp_path / "killed.npy")])
    while not any(path.stat().st_size > 30_000 for path in tmp_path.glob("killed.npy.*.unfinished")):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed.npy").exists()
    monkeypatch.setattr(module, "AT_ONCE", 100)
    for name in ("killed", "whole"):
        embed_file(tmp_path / "lines.txt", bert, out=tmp_path / f"{name}.npy")
    assert (tmp_path / "killed.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_vectors_of_another_model_or_file_are_neither_kept_nor_resumed(lines, encoder, bert, tmp_path):
    out, other = tmp_path / "v.npy", sb.load(bert, max_length=9)
    embed_file(lines, encoder, out=out)
    with pytest.raises(UserError, match=r"vectors of another .*--overwrite"):
        embed_file(lines, other, out=out)
    with pytest.raises(KeyboardInterrupt):
        embed_file(lines, encoder, out=tmp_path / "w.npy", progress=stop_after(16))
    embed_file(lines, other, out=tmp_path / "w.npy")
    assert np.array_equal(np.load(tmp_path / "w.npy"), plain(other, LINES))

    row = [5.0] * 9

    def function(texts):
        return [row for _ in texts]

    with pytest.raises(KeyboardInterrupt):
        embed_file(lines, function, out=out, overwrite=True, progress=stop_after(32))
    row[:] = [0.0, 1.0]
    made = embed_file(lines, function, out=out, overwrite=True)
    assert out.stat().st_size == 128 + len(LINES) * 8
    assert np.array_equal(np.load(out), np.tile([0.0, 1.0], (len(LINES), 1)))
    with pytest.raises(UserError, match="or of a model without a hash"):
        embed_file(lines, function, out=out)
    with pytest.raises(UserError, match=r"may give others: .* or search in .*lines.txt"):
        sb.retrieve(function, query="x", corpus=made.path)
    lines.write_text("Other lines.\n", encoding="utf-8")
    embed_file(lines, encoder, out=out, overwrite=True)
    lines.write_text("A line.\n", encoding="utf-8")
    with pytest.raises(UserError, match="vectors of another model"):
        embed_file(lines, encoder, out=out)


@pytest.mark.parametrize(
    ("changes", "use", "sentence"),
    [
        ({"out": "v.bin"}, {}, r"v\.bin: use a file name that ends in \.npy"),
        ({}, {"whiten": 4}, "cannot be whitened"),
        ({}, {"prompts": "query: ,passage: "}, "sentences have no side"),
        ({"sentences": "empty.txt"}, {}, r"empty\.txt has no sentences"),
    ],
)
def test_mistakes_are_reported_before_anything_is_written(
    lines, bert, tmp_path, changes, use, sentence, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(UserError, match=sentence):
        embed_file(**{"sentences": lines, "encoder": sb.load(bert, **use), "out": tmp_path / "v.npy", **changes})
    assert not list(tmp_path.glob("v*"))


def test_the_text_file_must_stay_unchanged(lines, encoder, tmp_path):
    def progress(stage, done, total):
        lines.write_text("\n".join(LINES[:-1]) + "\nA dog.")

    with pytest.raises(UserError, match="changed while it was read"):
        embed_file(lines, encoder, out=tmp_path / "v.npy", progress=progress)
    assert not list(tmp_path.glob("v*"))


def test_a_description_does_not_outlive_its_vectors(lines, encoder, bert, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise KeyboardInterrupt

    out = tmp_path / "v.npy"
    embed_file(lines, encoder, out=out)
    other = sb.load(bert, max_length=9)
    with monkeypatch.context() as patch:
        patch.setattr(module.Path, "write_text", fail)
        with pytest.raises(KeyboardInterrupt):
            embed_file(lines, other, out=out, overwrite=True)
    with pytest.raises(UserError, match="make it again"):
        Embedded.read(out)


def test_two_writers_at_once_end_with_the_same_file(lines, encoder, tmp_path):
    def progress(stage, done, total):
        if stage == "embedding" and done == 32:
            embed_file(lines, encoder, out=tmp_path / "v.npy")

    with pytest.raises(UserError, match=r"cannot write .*v\.npy"):  # it is in place already
        embed_file(lines, encoder, out=tmp_path / "v.npy", progress=progress)
    assert np.array_equal(np.load(tmp_path / "v.npy"), plain(encoder, LINES))
    assert Embedded.read(tmp_path / "v.npy").rows == len(LINES)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "v.npy.json").unlink(),
        lambda folder: (folder / "v.npy.json").write_text("{"),
        lambda folder: (folder / "v.npy.json").write_text('{"rows": 3}'),
        lambda folder: (folder / "v.npy").write_bytes((folder / "v.npy").read_bytes()[:-4]),
        lambda folder: (folder / "v.npy").write_bytes(b"no array"),
        lambda folder: (folder / "v.npy").write_bytes((folder / "v.npy").read_bytes().replace(b"<f4", b">f4")),
        lambda folder: np.save(folder / "v.npy", np.zeros((2, 3), dtype=np.float32)),
    ],
)
def test_a_damaged_file_is_refused(lines, encoder, tmp_path, damage):
    embed_file(lines, encoder, out=tmp_path / "v.npy")
    damage(tmp_path)
    with pytest.raises(UserError, match=r"v\.npy.*: make it again with `stsbench embed --overwrite`"):
        Embedded.read(tmp_path / "v.npy")
    damaged = (tmp_path / "v.npy").read_bytes()
    with pytest.raises(UserError, match=r"v\.npy.*: make it again"):
        embed_file(lines, encoder, out=tmp_path / "v.npy")
    assert (tmp_path / "v.npy").read_bytes() == damaged


def test_retrieve_finds_among_vectors_what_it_finds_among_sentences(lines, encoder, bert, tmp_path):
    made = embed_file(lines, encoder, out=tmp_path / "v.npy")
    asked = {"query": "Sentence 3 of a long file.", "k": 3}
    among_texts, among_vectors = (
        sb.retrieve(encoder, corpus=corpus, **asked).frame for corpus in (lines, made.path)
    )
    for column in ("sentence", "number"):
        assert among_texts[column].tolist() == among_vectors[column].tolist()
    assert np.allclose(among_texts["cosine"], among_vectors["cosine"], atol=1e-6)
    # The same sentence three times is found once in a corpus, and is three rows of a file.
    assert sb.retrieve(encoder, query="A cat.", k=3, corpus=made.path).frame["number"].tolist() == [41, 42, 43]
    for model, k, message in (
        (sb.load(bert, max_length=9), 3, r"has vectors of .*, and .* may give others: use the same model"),
        (sb.load(bert, whiten=1), 3, r"and .* whiten1\) may give"),
        (encoder, 50, r"50 neighbours: .* 43 sentences"),
    ):
        with pytest.raises(UserError, match=message):
            sb.retrieve(model, query="x", k=k, corpus=made.path)
    lines.write_text("Other.\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"lines\.txt, .* changed"):
        sb.retrieve(encoder, corpus=made.path, **asked)


def test_embed_takes_whatever_load_takes_and_returns_a_row_per_text(tiny):
    texts = ["the dog", "a cat sat", "the dog"]
    folder = tiny()
    vectors = sb.embed(folder, texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, embed(sb.load(folder), texts).vectors["avg"].shape[1])
    assert np.array_equal(vectors[0], vectors[2])
    for model in (str(folder), sb.load(folder)):
        assert np.array_equal(sb.embed(model, texts), vectors)
    assert sb.embed(lambda batch: [[len(text), 1.0] for text in batch], texts).tolist() == [[7, 1], [9, 1], [7, 1]]
    with pytest.raises(UserError, match="give a list"):
        sb.embed(folder, "the dog")
