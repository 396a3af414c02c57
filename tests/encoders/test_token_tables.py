"""Static embeddings: folders of sentence-transformers and of model2vec, read without either library."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damages import cut
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
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
UNKNOWN = 1  # where `[UNK]` stands among the special tokens


def tokenizer_of(kind: str) -> Tokenizer:
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
def tokenizer() -> Tokenizer:
    return tokenizer_of("wordpiece")


def table_of(tokenizer: Tokenizer, seed: int = 3) -> NDArray[np.float32]:
    rows = np.random.default_rng(seed).normal(scale=0.1, size=(tokenizer.get_vocab_size(), WIDTH))
    return rows.astype(np.float32)


def write_library(folder: Path, tokenizer: Tokenizer, place: str = "", *after: str, **tensors: Any) -> Path:
    """Write what sentence-transformers writes: at the top, or as its older releases in a folder of the module."""
    (folder / place).mkdir(parents=True)
    kinds = {place: "StaticEmbedding"} | {f"{number}_{kind}": kind for number, kind in enumerate(after, 1)}
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {}, "default_prompt_name": null}')
    tokenizer.save(str(folder / place / "tokenizer.json"))
    save_file(tensors or {"embedding.weight": table_of(tokenizer)}, folder / place / "model.safetensors")
    return folder


def write_model2vec(folder: Path, tokenizer: Tokenizer, *, modules: bool = True, **config: Any) -> Path:
    """Write what model2vec writes, for sentence-transformers, too."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "hidden_dim": WIDTH} | config))
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file({"embeddings": table_of(tokenizer)}, folder / "model.safetensors")
    if modules:
        kinds = {".": "StaticEmbedding"} | ({"1_Normalize": "Normalize"} if config.get("normalize") else {})
        entries = [
            {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for number, (path, kind) in enumerate(kinds.items())
        ]
        (folder / "modules.json").write_text(json.dumps(entries))
    return folder


def vectors(folder: Path, texts: Sequence[str] = TEXTS, **use: Any) -> NDArray[np.float32]:
    encoder = load(folder, **use)
    found = embed(encoder, texts, use_cache=False)
    rows: NDArray[np.float32] = found.vectors[encoder.identity.use.pooling][found.rows]
    return rows


def plain_means(tokenizer: Tokenizer, table: NDArray[Any], texts: Sequence[str], drop: int = -1) -> NDArray[Any]:
    """Return the means of the token vectors, one text after the other, in the plainest way."""
    rows = []
    for text in texts:
        ids = [number for number in tokenizer.encode(text, add_special_tokens=False).ids if number != drop]
        rows.append(np.mean(table[ids].astype(float), axis=0) if ids else np.zeros(table.shape[1]))
    return np.array(rows)


# --- the numbers, held against a plain computation


@pytest.mark.parametrize("place", ["", "0_StaticEmbedding"])
def test_a_folder_of_sentence_transformers_is_the_mean_over_all_tokens_unknown_ones_included(
    place: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    folder = write_library(tmp_path / "model", tokenizer, place)
    expected = plain_means(tokenizer, table_of(tokenizer), TEXTS)
    assert not np.allclose(expected, plain_means(tokenizer, table_of(tokenizer), TEXTS, drop=UNKNOWN), atol=1e-3)
    np.testing.assert_allclose(vectors(folder), expected, atol=1e-7)
    encoder = load(folder)
    assert (encoder.identity.kind, encoder.identity.use.pooling) == ("static-embedding", "avg")
    assert encoder.identity.use.max_length is None


@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "bpe"])
def test_a_folder_of_model2vec_is_the_mean_over_the_known_tokens(kind: str, tmp_path: Path) -> None:
    tokenizer = tokenizer_of(kind)
    folder = write_model2vec(tmp_path / "model", tokenizer, max_length=None)
    expected = plain_means(tokenizer, table_of(tokenizer), TEXTS, drop=UNKNOWN if kind != "bpe" else -1)
    np.testing.assert_allclose(vectors(folder), expected, atol=1e-7)
    assert not vectors(folder)[:2].any()


def test_weights_and_rows_that_are_given_apart_are_folded_into_the_table(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    folder = write_model2vec(tmp_path / "model", tokenizer, max_length=None)
    table, draw = table_of(tokenizer), np.random.default_rng(5)
    mapping, weights = draw.integers(0, 20, len(table)), draw.random(len(table)).astype(np.float32)
    save_file({"embeddings": table[:20], "mapping": mapping, "weights": weights}, folder / "model.safetensors")
    expected = plain_means(tokenizer, table[mapping] * weights[:, None], TEXTS, drop=UNKNOWN)
    np.testing.assert_allclose(vectors(folder), expected, atol=1e-7)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8", "float64"])
def test_a_table_of_another_kind_is_averaged_as_the_numbers_that_it_holds(
    kind: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    folder = write_model2vec(tmp_path / "model", tokenizer, max_length=None)
    table = table_of(tokenizer)
    if kind == "bfloat16":
        import torch
        from safetensors.torch import save_file as save_tensors

        held = torch.from_numpy(table).bfloat16()
        save_tensors({"embeddings": held}, folder / "model.safetensors")
        stored: NDArray[Any] = held.float().numpy()
    else:
        stored = (table * (300 if kind == "int8" else 1)).astype(kind)
        save_file({"embeddings": stored}, folder / "model.safetensors")
    np.testing.assert_allclose(
        vectors(folder), plain_means(tokenizer, stored, TEXTS, drop=UNKNOWN), atol=1e-7, rtol=1e-6
    )


def test_a_table_that_torch_pickled_is_read_where_there_is_no_other(tokenizer: Tokenizer, tmp_path: Path) -> None:
    import torch

    folder = write_library(tmp_path / "model", tokenizer)
    before = vectors(folder)
    tensors = {name: torch.from_numpy(array) for name, array in load_file(folder / "model.safetensors").items()}
    (folder / "model.safetensors").unlink()
    torch.save(tensors, folder / "pytorch_model.bin")
    np.testing.assert_array_equal(vectors(folder), before)


def test_neither_torch_nor_transformers_is_needed(tokenizer: Tokenizer, tmp_path: Path) -> None:
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


def test_lengths_and_cuts_are_those_of_the_whole_text(tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder = write_model2vec(tmp_path / "model", tokenizer, max_length=4)
    texts = ["a . a .", "a . a . a", "日 本 a ."]
    found = embed(load(folder), texts, use_cache=False)
    assert found.lengths.tolist() == [4, 5, 4]
    assert found.truncated.tolist() == [False, True, False]
    # The limit counts unknown tokens: they are left out of what was cut.
    np.testing.assert_allclose(
        vectors(folder, ["日 本 語 a ."]),
        plain_means(tokenizer, table_of(tokenizer), ["a"], drop=UNKNOWN),
        atol=1e-7,
    )


def test_a_text_is_cut_by_characters_before_it_is_tokenised(tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder = write_model2vec(tmp_path / "model", tokenizer, max_length=4)
    median = int(np.median([len(token) for token in tokenizer.get_vocab()]))
    spaced = "the" + " " * (4 * median - 3) + "dog"  # two tokens, of which the second is out of reach
    found = embed(load(folder), [spaced], use_cache=False)
    assert (found.lengths.tolist(), found.truncated.tolist()) == ([2], [True])
    expected = plain_means(tokenizer, table_of(tokenizer), ["the"])
    np.testing.assert_allclose(vectors(folder, [spaced]), expected, atol=1e-7)
    assert embed(load(folder, pooling="avg"), [spaced], use_cache=False).truncated.tolist() == [False]


@pytest.mark.parametrize(("direction", "read"), [("right", "the dog"), ("left", "ran home")])
def test_sentence_transformers_cuts_as_the_tokenizer_s_file_says(
    direction: str, read: str, tmp_path: Path
) -> None:
    tokenizer = tokenizer_of("wordpiece")
    tokenizer.enable_truncation(2, direction=direction)
    tokenizer.enable_padding(length=9)
    folder = write_library(tmp_path / "model", tokenizer)
    found = embed(load(folder), ["the dog ran home"], use_cache=False)
    assert (found.lengths.tolist(), found.truncated.tolist()) == ([4], [True])
    np.testing.assert_array_equal(vectors(folder, ["the dog ran home"]), vectors(folder, [read]))
    assert load(folder).identity.use.max_length == 2
    assert use_signature(load(folder, max_length=3).identity.use) == "avg|len3|fp32"


def test_the_usual_length_of_model2vec_holds_where_its_configuration_names_none(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    assert load(write_model2vec(tmp_path / "new", tokenizer)).identity.use.max_length == 512
    assert load(write_model2vec(tmp_path / "all", tokenizer, max_length=None)).identity.use.max_length is None


# --- the libraries


def same_as_library(ours: NDArray[np.float32], model: Any) -> None:
    short = [row for row, text in enumerate(TEXTS) if text.count(" ") < 300]
    np.testing.assert_allclose(ours[short], model.encode(TEXTS)[short], atol=1e-6)
    # Of a thousand tokens the library itself rounds the sum by more than that, in float32.
    np.testing.assert_allclose(ours, model.double().encode(TEXTS), atol=1e-6)


@pytest.mark.parametrize("after", [[], ["Normalize"], ["Dense"], ["Dense", "Normalize"], ["Normalize", "Dense"]])
def test_equal_to_sentence_transformers(after: list[str], tokenizer: Tokenizer, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("normalize", [False, True])
def test_a_folder_of_model2vec_is_read_as_sentence_transformers_reads_it_on_request(
    normalize: bool, tmp_path: Path
) -> None:
    library = pytest.importorskip("sentence_transformers")
    tokenizer = tokenizer_of("wordpiece")
    tokenizer.enable_truncation(512)  # as model2vec saves it
    folder = write_model2vec(tmp_path / "model", tokenizer, normalize=normalize)
    same_as_library(vectors(folder, pooling="avg"), library.SentenceTransformer(str(folder), device="cpu"))
    assert np.abs(vectors(folder) - vectors(folder, pooling="avg")).max() > 1e-3


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
def test_equal_to_model2vec(
    kind: str, normalize: bool, quantized: bool, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    library = pytest.importorskip("model2vec")
    table = (table_of(tokenizer) * (300 if kind == "int8" else 1)).astype(kind)
    draw, apart = np.random.default_rng(5), {}
    if quantized:
        apart = {
            "token_mapping": draw.integers(0, 30, len(table)),
            "weights": draw.random(len(table)),  # in float64, as the library sums a long text in its numbers' kind
        }
        table = table[:30]
    model = library.StaticModel(table, tokenizer, normalize=normalize, **apart)
    model.save_pretrained(tmp_path / "model")
    ours, theirs = (
        vectors(tmp_path / "model"),
        library.StaticModel.from_pretrained(tmp_path / "model").encode(TEXTS),
    )
    if kind == "float16":
        # It rounds its means to float16; before that they are those of the same table in float32.
        np.testing.assert_allclose(ours, theirs.astype(np.float32), atol=1e-3, rtol=1e-3)
        model = library.StaticModel(table.astype(np.float32), tokenizer, normalize=normalize, **apart)
        theirs = model.encode(TEXTS)
    np.testing.assert_allclose(ours, theirs, atol=1e-6, rtol=1e-6)


def test_a_folder_of_sentence_transformers_is_read_as_model2vec_reads_it_on_request(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    library = pytest.importorskip("model2vec")
    folder = write_library(tmp_path / "model", tokenizer, "0_StaticEmbedding", "Normalize")
    theirs = library.StaticModel.from_pretrained(folder).encode(TEXTS)
    np.testing.assert_allclose(vectors(folder, pooling="avg_known"), theirs, atol=1e-6)
    assert any("model2vec does not read, Normalize" in note for note in load(folder, pooling="avg_known").notes)


def test_what_only_the_library_reads_is_left_to_it_and_said(tokenizer: Tokenizer, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer import modules

    table = modules.StaticEmbedding(tokenizer, embedding_weights=table_of(tokenizer))
    model = library.SentenceTransformer(modules=[table, modules.LayerNorm(WIDTH)], device="cpu")
    model.save(str(tmp_path / "model"))
    encoder = load(tmp_path / "model")
    assert encoder.identity.kind == "sentence-transformers-library"
    assert "not read natively" in encoder.notes[0]
    np.testing.assert_allclose(vectors(tmp_path / "model"), model.encode(TEXTS), atol=1e-6)
    np.testing.assert_allclose(
        vectors(tmp_path / "model", pooling="avg"), plain_means(tokenizer, table_of(tokenizer), TEXTS), atol=1e-7
    )
    with pytest.raises(UserError, match=r"no maximum length\. Leave out --max-length"):
        vectors(tmp_path / "model", max_length=8)


# --- how it is used


def test_a_prompt_is_read_and_not_counted(tokenizer: Tokenizer, tmp_path: Path) -> None:
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
    assert "has a prompt named 'query'" in load(folder, prompt="query").notes[-1]


def test_dimensions_and_unit_length_are_as_for_other_models(tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder = write_model2vec(tmp_path / "model", tokenizer, normalize=True)
    first = vectors(folder, ["the dog"], normalize=False)[:, :5]
    np.testing.assert_allclose(
        vectors(folder, ["the dog"], dimensions=5), first / np.linalg.norm(first), atol=1e-7
    )


@pytest.mark.parametrize(
    ("use", "option"),
    [
        ({"pooling": "cls"}, "--pooling"),
        ({"precision": "bf16"}, "--precision"),
        ({"device": "cuda"}, "--device"),
        ({"template": "promptbert"}, "--template"),
    ],
)
@pytest.mark.parametrize("write", [write_library, write_model2vec])
def test_what_makes_no_sense_is_refused(
    write: Callable[..., Path], use: dict[str, Any], option: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=f"^{option}: not for static embeddings, which are averaged in fp32"):
        load(write(tmp_path / "model", tokenizer), **use)


def test_the_readings_of_one_folder_are_told_apart_wherever_vectors_are_kept(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
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


@pytest.mark.parametrize("pooling", ["avg", "avg_known"])
def test_a_record_finds_its_model_again_and_so_does_a_fit(
    pooling: str, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "cache"))
    folder = write_model2vec(tmp_path / "model", tokenizer)
    run = sb.evaluate(load(folder, pooling=pooling), "sample")
    expected = sb.geometry(load(folder, pooling=pooling)).frame["uniformity"]
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "empty"))
    assert sb.geometry(run).frame["uniformity"].tolist() == pytest.approx(expected.tolist(), abs=1e-9)
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("\n".join(f"{' '.join(WORDS[0].split()[n % 9 :])} {WORDS[n % 4]}" for n in range(36)))
    sb.fit("whitening", load(folder, pooling=pooling), sentences=sentences, out=tmp_path / "fit", dimensions=3)
    fitted = load(tmp_path / "fit")
    assert (fitted.identity.kind, fitted.identity.use.pooling) == ("fitted", pooling)
    assert embed(fitted, TEXTS, use_cache=False).vectors[pooling].shape[1] == 3


def test_a_number_of_the_other_library_is_traced_back_to_it(tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder = write_model2vec(tmp_path / "model", tokenizer)
    scores = {name: sb.evaluate(load(folder, pooling=name), "sample").scores[0] for name in ("avg", "avg_known")}
    found = sb.diagnose(load(folder), f"{100 * scores['avg'].value:.4f}%", tasks="sample", further=0)
    assert [(change.choice.name, change.value) for change in found.search.explanations[0].best.changes] == [
        ("pooling", "avg")
    ]
    own = sb.diagnose(load(folder), f"{100 * scores['avg_known'].value:.4f}%", tasks="sample", further=0)
    assert own.search.default.fits


# --- what is wrong is told


def _tensors(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        file = folder / "model.safetensors"
        save_file(change(load_file(file)), file)

    return plant


def _more_tokens(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens(["another", "word"])
    tokenizer.save(str(folder / "tokenizer.json"))


def _nan(tensors: dict[str, Any]) -> dict[str, Any]:
    return {name: np.full_like(array, np.nan) for name, array in tensors.items()}


def _with(name: str, make: Callable[[int], Any]) -> Callable[[Path], None]:
    return _tensors(lambda tensors: tensors | {name: make(len(tensors["embeddings"]))})


_LIBRARY_TOO, _MODEL2VEC = (write_library, write_model2vec), (write_model2vec,)
DAMAGES: dict[str, tuple[Callable[[Path], None], str, tuple[Callable[..., Path], ...]]] = {
    "no table": (_tensors(lambda _: {"other": np.zeros((2, 2))}), "has other, expected", _LIBRARY_TOO),
    "a row": (_tensors(lambda t: {name: a[0] for name, a in t.items()}), r"shape \(12,\)", _LIBRARY_TOO),
    "no rows": (_tensors(lambda t: {name: a[:0] for name, a in t.items()}), r"shape \(0, 12\)", _LIBRARY_TOO),
    "whole numbers": (_tensors(lambda t: {n: a.astype(np.int64) for n, a in t.items()}), "int64", _LIBRARY_TOO),
    "too few rows": (_tensors(lambda t: {n: a[:-3] for n, a in t.items()}), "use the tokenizer", _LIBRARY_TOO),
    "too many tokens": (_more_tokens, "use the tokenizer", _LIBRARY_TOO),
    "another tensor": (_tensors(lambda t: t | {"linear": np.zeros((2, 2))}), "has .*linear", _LIBRARY_TOO),
    "no numbers": (_tensors(_nan), "gives NaN or infinite values", _LIBRARY_TOO),
    "no tokenizer": (
        lambda folder: (folder / "tokenizer.json").unlink(),
        "tokenizer.json is missing",
        _LIBRARY_TOO,
    ),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors", _LIBRARY_TOO),
    "half": (lambda folder: cut(folder / "model.safetensors", 0.5), "is damaged", _LIBRARY_TOO),
    "too many rows": (
        _tensors(lambda t: {name: np.concatenate([a, a]) for name, a in t.items()}),
        "use the tokenizer",
        _MODEL2VEC,
    ),
    "rows beyond": (_with("mapping", lambda count: np.arange(count) + 1), "mapping of shape", _MODEL2VEC),
    "rows below": (_with("mapping", lambda count: np.arange(count) - 1), "mapping of shape", _MODEL2VEC),
    "few rows": (_with("mapping", lambda count: np.arange(count - 5)), "use the tokenizer", _MODEL2VEC),
    "wide": (_with("mapping", lambda count: np.zeros((count, 2), dtype=int)), "mapping of shape", _MODEL2VEC),
    "few weights": (_with("weights", lambda count: np.ones(count - 5)), "use the tokenizer", _MODEL2VEC),
    "whole weights": (_with("weights", lambda count: np.ones(count, dtype=int)), "weights of shape", _MODEL2VEC),
}


@pytest.mark.parametrize(("damage", "write"), [(name, write) for name, of in DAMAGES.items() for write in of[2]])
def test_a_damaged_folder_is_reported(
    write: Callable[..., Path], damage: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    plant, message, _ = DAMAGES[damage]
    folder = write(tmp_path / "model", tokenizer)
    plant(folder)
    with pytest.raises(UserError, match=message):
        vectors(folder)


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
def test_a_file_that_changes_after_it_was_hashed_is_told(file: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder = write_model2vec(tmp_path / "model", tokenizer)
    encoder = load(folder)
    assert encoder.identity.weights_sha256
    (folder / file).write_bytes((folder / file).read_bytes() + b" ")
    with pytest.raises(UserError, match="changed after it was hashed"):
        embed(encoder, ["the dog"], use_cache=False)


def test_a_folder_of_model2vec_that_predates_its_modules_is_known_by_its_table(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    folder = write_model2vec(tmp_path / "model", tokenizer, modules=False)
    (folder / "config.json").write_text('{"normalize": true}')
    assert load(folder).identity.kind == "model2vec"
    assert load(folder).identity.normalizes


def test_the_hub_is_asked_for_the_tokenizer_in_a_module_s_folder() -> None:
    files = ["modules.json", *(f"0_StaticEmbedding/{name}" for name in ("tokenizer.json", "model.safetensors"))]
    assert needed_files([*files, "onnx/model.onnx"]) == files
