"""Static embeddings: folders of sentence-transformers and of model2vec, read without either library."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damages import cut
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.encoders.hub import needed_files
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.use_text import use_signature

WORDS = [
    "A small cat sat on the old mat by the door.",
    "The dog ran home.",
    "Rain fell all night, and the river rose over the green field.",
    "She reads.",
]
TEXTS = [
    "",
    "  \n",
    "日本語 Ω",  # unknown words only
    "the dog 日本 ran",
    "THE DOG ran HOME",
    "Über the river",
    "She reads. " * 400,
    "a" * 5000,
    "the catnightfieldriver " * 300,
    "The dog ran home.",
]
WIDTH = 12
UNKNOWN = 1  # the number of `[UNK]`


def tokenizer_of(kind):
    special = ["[PAD]", "[UNK]"]
    if kind == "wordpiece":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        trainer: Any = trainers.WordPieceTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    elif kind == "unigram":
        tokenizer = Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(
            vocab_size=90, special_tokens=special, unk_token="[UNK]", show_progress=False
        )
    else:  # without an unknown token
        tokenizer = Tokenizer(models.BPE())
        trainer = trainers.BpeTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(WORDS, trainer)
    return tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return tokenizer_of("wordpiece")


def table_of(tokenizer, seed=3):
    rows = np.random.default_rng(seed).normal(scale=0.1, size=(tokenizer.get_vocab_size(), WIDTH))
    return rows.astype(np.float32)


def write_modules(folder, kinds):
    entries = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(entries))


def write_library(folder, tokenizer, place="", *after):
    """Write what sentence-transformers writes: at the top, or as its older releases in a folder of the module."""
    (folder / place).mkdir(parents=True)
    write_modules(folder, {place: "StaticEmbedding"} | {f"{n}_{kind}": kind for n, kind in enumerate(after, 1)})
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {}, "default_prompt_name": null}')
    tokenizer.save(str(folder / place / "tokenizer.json"))
    save_file({"embedding.weight": table_of(tokenizer)}, folder / place / "model.safetensors")
    return folder


def write_model2vec(folder, tokenizer, **config):
    """Write what model2vec writes, for sentence-transformers, too."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "hidden_dim": WIDTH} | config))
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file({"embeddings": table_of(tokenizer)}, folder / "model.safetensors")
    write_modules(
        folder, {".": "StaticEmbedding"} | ({"1_Normalize": "Normalize"} if config.get("normalize") else {})
    )
    return folder


def vectors(folder, texts=TEXTS, **use):
    encoder = load(folder, **use)
    found = embed(encoder, texts, use_cache=False)
    return found.vectors[encoder.identity.use.pooling][found.rows]


def plain_means(tokenizer, table, texts, drop=-1):
    """Return the means of the token vectors, one text after the other, in the plainest way."""
    rows = []
    for text in texts:
        ids = [number for number in tokenizer.encode(text, add_special_tokens=False).ids if number != drop]
        rows.append(np.mean(table[ids].astype(float), axis=0) if ids else np.zeros(table.shape[1]))
    return np.array(rows)


# --- the numbers, held against a plain computation


@pytest.mark.parametrize("place", ["", "0_StaticEmbedding"])
def test_a_folder_of_sentence_transformers_is_the_mean_over_all_tokens_unknown_ones_included(
    place, tokenizer, tmp_path
):
    folder = write_library(tmp_path / "model", tokenizer, place)
    expected = plain_means(tokenizer, table_of(tokenizer), TEXTS)
    assert not np.allclose(expected, plain_means(tokenizer, table_of(tokenizer), TEXTS, drop=UNKNOWN), atol=1e-3)
    np.testing.assert_allclose(vectors(folder), expected, atol=1e-7)
    identity = load(folder).identity
    assert (identity.kind, identity.use.pooling, identity.use.max_length) == ("static-embedding", "avg", None)


def _bfloat16(table):
    import torch

    return {"embeddings": torch.from_numpy(table).bfloat16()}


STORED: dict[str, Callable[[NDArray[Any]], dict[str, Any]]] = {
    **{kind: lambda table, kind=kind: {"embeddings": table.astype(kind)} for kind in ("float16", "float64")},
    "int8": lambda table: {"embeddings": (300 * table).astype("int8")},
    "bfloat16": _bfloat16,
    "rows and factors apart": lambda table: {
        "embeddings": table[:20],
        "mapping": np.random.default_rng(5).integers(0, 20, len(table)),
        "weights": np.random.default_rng(6).random(len(table)).astype(np.float32),
    },
}


@pytest.mark.parametrize(
    ("kind", "stored"),
    [*((kind, "") for kind in ("wordpiece", "unigram", "bpe")), *(("wordpiece", s) for s in STORED)],
)
def test_a_folder_of_model2vec_is_the_mean_over_the_known_tokens_however_the_numbers_are_stored(
    kind, stored, tmp_path
):
    tokenizer = tokenizer_of(kind)
    folder = write_model2vec(tmp_path / "model", tokenizer, max_length=None)
    table = table_of(tokenizer)
    if stored:
        tensors = STORED[stored](table)
        save = save_torch if stored == "bfloat16" else save_file
        save(tensors, folder / "model.safetensors")
        table = tensors["embeddings"].float().numpy() if stored == "bfloat16" else tensors["embeddings"]
        if "mapping" in tensors:
            table = table[tensors["mapping"]] * tensors["weights"][:, None]
    expected = plain_means(tokenizer, table, TEXTS, drop=-1 if kind == "bpe" else UNKNOWN)
    np.testing.assert_allclose(vectors(folder), expected, atol=1e-7, rtol=1e-6)
    assert not vectors(folder)[:2].any()


def test_a_table_that_torch_pickled_is_read_where_there_is_no_other(tokenizer, tmp_path):
    import torch

    folder = write_library(tmp_path / "model", tokenizer)
    before = vectors(folder)
    tensors = {name: torch.from_numpy(array) for name, array in load_file(folder / "model.safetensors").items()}
    (folder / "model.safetensors").unlink()
    torch.save(tensors, folder / "pytorch_model.bin")
    np.testing.assert_array_equal(vectors(folder), before)


def test_neither_torch_nor_transformers_is_needed(tokenizer, tmp_path):
    folder = write_model2vec(tmp_path / "model", tokenizer, normalize=True)
    write_library(tmp_path / "other", tokenizer, "", "Normalize")
    code = f"""
import sys
sys.modules["torch"] = sys.modules["transformers"] = None  # an import of them fails
import stsbench as sb
from stsbench.encoders.plan import embed
for folder in {[str(folder), str(tmp_path / "other")]}:
    print(embed(sb.load(folder), ["the dog ran", ""], use_cache=False).lengths.tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:2] == ["[3, 0]"] * 2, done.stderr


# --- how long a text is read


_SPACED = "the" + " " * 400 + "dog"  # two tokens, of which the second is beyond 4 tokens of median length
LENGTHS = [
    # model2vec counts unknown tokens and leaves them out of what it cut.
    ("model2vec", {"max_length": 4}, "a . a .", "a . a .", 4),
    ("model2vec", {"max_length": 4}, "a . a . a", "a . a .", 5),
    ("model2vec", {"max_length": 4}, "日 本 語 a .", "a", 5),
    ("model2vec", {"max_length": 4}, _SPACED, "the", 2),
    ("model2vec", {"max_length": None}, "a . " * 300, "a .", 600),
    ("model2vec", {}, "a " + ". " * 600, "a " + ". " * 511, 601),
    ("library", {"direction": "right"}, "the dog ran home", "the dog", 4),
    ("library", {"direction": "left"}, "the dog ran home", "ran home", 4),
]


@pytest.mark.parametrize(("writer", "config", "text", "read", "length"), LENGTHS)
def test_a_text_is_cut_as_the_library_cuts_it(writer, config, text, read, length, tmp_path):
    tokenizer = tokenizer_of("wordpiece")
    if writer == "library":
        tokenizer.enable_truncation(2, **config)
        tokenizer.enable_padding(length=9)
        folder = write_library(tmp_path / "model", tokenizer)
        assert use_signature(load(folder, max_length=3).identity.use) == "avg|len3|fp32"
    else:
        folder = write_model2vec(tmp_path / "model", tokenizer, **config)
    found = embed(load(folder), [text], use_cache=False)
    was_cut = len(read) < len(text) and config.get("max_length", 512) is not None
    assert (found.lengths.tolist(), found.truncated.tolist()) == ([length], [was_cut])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    plain = plain_means(tokenizer, table_of(tokenizer), [read], drop=UNKNOWN)
    np.testing.assert_allclose(vectors(folder, [text]), plain, atol=1e-7)


# --- the libraries


def same_as_library(ours, model):
    short = [row for row, text in enumerate(TEXTS) if text.count(" ") < 300]
    np.testing.assert_allclose(ours[short], model.encode(TEXTS)[short], atol=1e-6)
    # Of a thousand tokens the library itself rounds the sum by more than that, in float32.
    np.testing.assert_allclose(ours, model.double().encode(TEXTS), atol=1e-6)


@pytest.mark.parametrize("after", [[], ["Normalize"], ["Dense"], ["Dense", "Normalize"], ["Normalize", "Dense"]])
def test_equal_to_sentence_transformers(after, tokenizer, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    import torch
    from sentence_transformers.sentence_transformer import modules

    torch.manual_seed(2)
    made = {"Normalize": modules.Normalize, "Dense": lambda: modules.Dense(WIDTH, 7)}
    table = modules.StaticEmbedding(tokenizer, embedding_weights=table_of(tokenizer))
    model = library.SentenceTransformer(modules=[table, *(made[kind]() for kind in after)], device="cpu")
    model.save(str(tmp_path / "model"))
    same_as_library(vectors(tmp_path / "model"), model)
    identity = load(tmp_path / "model").identity
    assert identity.kind == "static-embedding"
    assert identity.normalizes == (after[-1:] == ["Normalize"])


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize(("kind", "normalize"), [("float32", False), ("int8", True)])
def test_equal_to_model2vec(kind, normalize, quantized, tokenizer, tmp_path):
    library = pytest.importorskip("model2vec")
    table = (table_of(tokenizer) * (300 if kind == "int8" else 1)).astype(kind)
    draw, apart = np.random.default_rng(5), {}
    if quantized:  # weights in float64, as the library sums a long text in its numbers' kind
        apart = {"token_mapping": draw.integers(0, 30, len(table)), "weights": draw.random(len(table))}
        table = table[:30]
    library.StaticModel(table, tokenizer, normalize=normalize, **apart).save_pretrained(tmp_path / "model")
    theirs = library.StaticModel.from_pretrained(tmp_path / "model").encode(TEXTS)
    np.testing.assert_allclose(vectors(tmp_path / "model"), theirs, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("normalize", [False, True])
def test_a_folder_of_one_library_is_read_as_the_other_reads_it_on_request(normalize, tmp_path):
    transformers, model2vec = map(pytest.importorskip, ("sentence_transformers", "model2vec"))
    tokenizer = tokenizer_of("wordpiece")
    after = ["Normalize"] if normalize else []
    folder = write_library(tmp_path / "library", tokenizer, "0_StaticEmbedding", *after)
    theirs = model2vec.StaticModel.from_pretrained(folder).encode(TEXTS)
    np.testing.assert_allclose(vectors(folder, pooling="avg_known"), theirs, atol=1e-6)
    skipped = [note for note in load(folder, pooling="avg_known").notes if "model2vec does not read, Norm" in note]
    assert len(skipped) == len(after)
    tokenizer.enable_truncation(512)  # as model2vec saves it
    folder = write_model2vec(tmp_path / "model2vec", tokenizer, normalize=normalize)
    same_as_library(vectors(folder, pooling="avg"), transformers.SentenceTransformer(str(folder), device="cpu"))
    assert np.abs(vectors(folder) - vectors(folder, pooling="avg")).max() > 1e-3


def test_what_only_the_library_reads_is_left_to_it_with_a_note(tokenizer, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer import modules

    table = modules.StaticEmbedding(tokenizer, embedding_weights=table_of(tokenizer))
    model = library.SentenceTransformer(modules=[table, modules.LayerNorm(WIDTH)], device="cpu")
    model.save(str(tmp_path / "model"))
    encoder = load(tmp_path / "model")
    assert encoder.identity.kind == "sentence-transformers-library"
    assert "encoded by the sentence-transformers library" in encoder.notes[0]
    np.testing.assert_allclose(vectors(tmp_path / "model"), model.encode(TEXTS), atol=1e-6)
    with pytest.raises(UserError, match=r"no maximum length\. Leave out --max-length"):
        vectors(tmp_path / "model", max_length=8)


# --- how it is used


def test_a_prompt_is_read_and_not_counted(tokenizer, tmp_path):
    folder = write_library(tmp_path / "model", tokenizer)
    config = {"prompts": {"query": "the dog "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(config))
    plain = plain_means(tokenizer, table_of(tokenizer), ["the dog ran home"])
    np.testing.assert_allclose(vectors(folder, ["ran home"]), plain, atol=1e-7)
    assert embed(load(folder), ["ran home"], use_cache=False).lengths.tolist() == [2]
    np.testing.assert_allclose(
        vectors(folder, ["ran home"], prompt=""),
        plain_means(tokenizer, table_of(tokenizer), ["ran home"]),
        atol=1e-7,
    )
    np.testing.assert_allclose(vectors(folder, ["home"], prompt="the dog ran "), plain, atol=1e-7)
    assert "--prompt-name" in load(folder, prompt="query").notes[-1]


@pytest.mark.parametrize(
    ("use", "option"),
    [
        ({"pooling": "cls"}, "--pooling"),
        ({"precision": "bf16"}, "--precision"),
        ({"device": "cuda"}, "--device"),
        ({"template": "promptbert"}, "--template"),
    ],
)
def test_what_makes_no_sense_is_refused(use, option, tokenizer, tmp_path):
    with pytest.raises(UserError, match=f"^{option}: not for static embeddings, which are averaged in fp32"):
        load(write_library(tmp_path / "model", tokenizer), **use)


def test_the_readings_of_one_folder_have_caches_of_their_own(tokenizer, tmp_path):
    folder = write_model2vec(tmp_path / "model", tokenizer)
    read = {pooling: load(folder, pooling=pooling) for pooling in ("avg", "avg_known")}
    assert read["avg"].identity.key() != read["avg_known"].identity.key()
    assert read["avg_known"].identity == load(folder).identity
    for pooling, encoder in read.items():
        kept = [embed(encoder, TEXTS, cache_folder=tmp_path / "cache") for _ in range(2)]
        assert [found.cost.encoded > 0 for found in kept] == [True, False]
        np.testing.assert_array_equal(kept[1].vectors[pooling][kept[1].rows], vectors(folder, pooling=pooling))
        np.testing.assert_array_equal(kept[0].truncated, kept[1].truncated)
    with pytest.raises(UserError, match="has no pooling 'avg'"):
        embed(read["avg_known"], TEXTS, poolings=["avg"], use_cache=False)


def test_a_record_finds_its_model_again_and_so_does_a_fit(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "cache"))
    encoder = load(write_model2vec(tmp_path / "model", tokenizer), pooling="avg")
    run = sb.evaluate(encoder, "sample")
    expected = sb.geometry(encoder).frame["uniformity"]
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "empty"))
    assert sb.geometry(run).frame["uniformity"].tolist() == pytest.approx(expected.tolist(), abs=1e-9)
    sentences = [f"{' '.join(WORDS[0].split()[n % 9 :])} {WORDS[n % 4]}" for n in range(36)]
    sb.fit("whitening", encoder, sentences=sentences, out=tmp_path / "fit", dimensions=3)
    fitted = load(tmp_path / "fit")
    assert (fitted.identity.kind, fitted.identity.use.pooling) == ("fitted", "avg")
    assert vectors(tmp_path / "fit").shape[1] == 3


def test_a_number_of_the_other_library_is_traced_back_to_it(tokenizer, tmp_path):
    folder = write_model2vec(tmp_path / "model", tokenizer)
    scores = {name: sb.evaluate(load(folder, pooling=name), "sample").scores[0] for name in ("avg", "avg_known")}
    found = sb.diagnose(load(folder), f"{100 * scores['avg'].value:.4f}%", tasks="sample", further=0)
    assert [(change.choice.name, change.value) for change in found.search.explanations[0].best.changes] == [
        ("pooling", "avg")
    ]
    own = sb.diagnose(load(folder), f"{100 * scores['avg_known'].value:.4f}%", tasks="sample", further=0)
    assert own.search.default.fits


# --- damage is reported


def _tensors(change):
    def plant(folder):
        file = folder / "model.safetensors"
        save_file(change(load_file(file)), file)

    return plant


def _more_tokens(folder):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens(["another", "word"])
    tokenizer.save(str(folder / "tokenizer.json"))


def _each(change):
    return _tensors(lambda tensors: {name: change(array) for name, array in tensors.items()})


def _with(name, make):
    return _tensors(lambda tensors: tensors | {name: make(len(tensors["embeddings"]))})


_NO_TABLE = r"does not have one vector for each of the \d+ tokens"
_BOTH, _MODEL2VEC = (write_library, write_model2vec), (write_model2vec,)
DAMAGES: dict[str, tuple[Callable[[Path], None], str, tuple[Callable[..., Path], ...]]] = {
    "no table": (_tensors(lambda _: {"other": np.zeros((2, 2))}), _NO_TABLE, _BOTH),
    "a row": (_each(lambda array: array[0]), _NO_TABLE, _BOTH),
    "no rows": (_each(lambda array: array[:0]), _NO_TABLE, _BOTH),
    "whole numbers": (_each(lambda array: array.astype(np.int64)), _NO_TABLE, _BOTH),
    "too few rows": (_each(lambda array: array[:-3]), _NO_TABLE, _BOTH),
    "too many tokens": (_more_tokens, _NO_TABLE, _BOTH),
    "another tensor": (_tensors(lambda tensors: tensors | {"linear": np.zeros((2, 2))}), _NO_TABLE, _BOTH),
    "no numbers": (_each(lambda array: np.full_like(array, np.nan)), "gives NaN or infinite values", _BOTH),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json is missing", _BOTH),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors", _BOTH),
    "half": (lambda folder: cut(folder / "model.safetensors", 0.5), "damaged", _BOTH),
    "too many rows": (_each(lambda array: np.concatenate([array, array])), _NO_TABLE, _MODEL2VEC),
    "rows beyond": (_with("mapping", lambda count: np.arange(count) + 1), _NO_TABLE, _MODEL2VEC),
    "rows below": (_with("mapping", lambda count: np.arange(count) - 1), _NO_TABLE, _MODEL2VEC),
    "few rows": (_with("mapping", lambda count: np.arange(count - 5)), _NO_TABLE, _MODEL2VEC),
    "wide": (_with("mapping", lambda count: np.zeros((count, 2), dtype=int)), _NO_TABLE, _MODEL2VEC),
    "few weights": (_with("weights", lambda count: np.ones(count - 5)), _NO_TABLE, _MODEL2VEC),
    "whole weights": (_with("weights", lambda count: np.ones(count, dtype=int)), _NO_TABLE, _MODEL2VEC),
}


@pytest.mark.parametrize(("damage", "write"), [(name, write) for name, of in DAMAGES.items() for write in of[2]])
def test_a_damaged_folder_is_reported(write, damage, tokenizer, tmp_path):
    plant, message, _ = DAMAGES[damage]
    folder = write(tmp_path / "model", tokenizer)
    plant(folder)
    with pytest.raises(UserError, match=message):
        vectors(folder)


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
def test_a_file_that_changes_after_it_was_hashed_is_reported(file, tokenizer, tmp_path):
    folder = write_model2vec(tmp_path / "model", tokenizer)
    encoder = load(folder)
    assert encoder.identity.weights_sha256
    (folder / file).write_bytes((folder / file).read_bytes() + b" ")
    with pytest.raises(UserError, match="changed after it was hashed"):
        embed(encoder, ["the dog"], use_cache=False)


def test_a_folder_of_model2vec_that_predates_its_modules_is_known_by_its_table(tokenizer, tmp_path):
    folder = write_model2vec(tmp_path / "model", tokenizer)
    (folder / "modules.json").unlink()
    (folder / "config.json").write_text('{"normalize": true}')
    identity = load(folder).identity
    assert (identity.kind, identity.normalizes) == ("model2vec", True)


def test_the_hub_is_asked_for_the_tokenizer_in_a_module_s_folder():
    files = ["modules.json", *(f"0_StaticEmbedding/{name}" for name in ("tokenizer.json", "model.safetensors"))]
    assert needed_files([*files, "onnx/model.onnx"]) == files
