"""sentence-transformers checkpoints give the vectors that their own library gives."""

import json

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed

pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")

LIBRARY = "sentence-transformers-library"
PROMPTS = {"query": "so she ", "passage": "the dog ", "plain": ""}


def module(name, *sizes, function="Tanh", **options):
    """Return one of the library's modules with random weights."""
    import torch
    from sentence_transformers.sentence_transformer import modules

    if name == "Dense":
        options["activation_function"] = getattr(torch.nn, function)()
    return getattr(modules, name)(*sizes, **options)


def build(folder, *, pooling="mean", after=(), **options):
    """Save a tiny checkpoint as the current library does; `after` are the arguments of modules."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.manual_seed(11)
    modules = [module("Transformer", str(folder)), module("Pooling", 32, pooling_mode=pooling)]
    target = folder.with_name(f"{folder.name}-st")
    model = SentenceTransformer(
        modules=[*modules, *(module(*name[:-1], **name[-1]) for name in after)], device="cpu", **options
    )
    model.save(str(target))
    return target


def by_library(folder, texts, **options):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return np.stack([model.encode(text, show_progress_bar=False, **options) for text in texts])


DENSE, NORMALIZE, LAYER_NORM = ("Dense", 32, 12, {}), ("Normalize", {}), ("LayerNorm", 32, {})
TWO_DENSE = [("Dense", 32, 20, {"bias": False, "function": "Identity"}), ("Dense", 20, 8, {"function": "ReLU"})]
RESIDUAL = ("Dense", 32, 32, {"use_residual": True})


@pytest.mark.parametrize(
    ("kind", "pooling", "after"),
    [
        ("bert", "mean", [NORMALIZE]),
        ("bert", "cls", [NORMALIZE]),
        ("bert", "max", []),
        ("bert", "lasttoken", []),
        ("roberta", "mean", [NORMALIZE]),
        ("gpt2", "lasttoken", []),
        ("bert", "mean", [DENSE]),
        ("bert", "mean", [DENSE, NORMALIZE]),
        ("bert", "mean", TWO_DENSE),
    ],
)  # fmt: skip
@pytest.mark.parametrize("layout", ["safetensors", "bin"])
def test_poolings_and_dense_layers_are_read_natively(kind, pooling, after, layout, tiny, sentences, vectors_of):
    folder, texts = build(tiny(kind), pooling=pooling, after=after), [text for text in sentences if text]
    if layout == "bin":
        if DENSE not in after:
            return
        import torch
        from safetensors.torch import load_file

        for file in folder.glob("*_Dense/model.safetensors"):
            torch.save(load_file(file), file.with_name("pytorch_model.bin"))
            file.unlink()
    encoder = load(folder)
    assert encoder.identity.kind == "sentence-transformers"
    assert encoder.identity.normalize == (NORMALIZE in after)
    np.testing.assert_allclose(vectors_of(encoder, texts), by_library(folder, texts), atol=1e-5)


def old_style(folder, **transformer):
    """Rewrite a saved checkpoint's settings as all-MiniLM-L6-v2 and its contemporaries have them."""
    modules = json.loads((folder / "modules.json").read_text())
    for module in modules:
        module["type"] = f"sentence_transformers.models.{module['type'].rpartition('.')[2]}"
    (folder / "modules.json").write_text(json.dumps(modules))
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    pooling = {f"pooling_mode_{mode}": mode == "mean_tokens" for mode in modes}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32} | pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps(transformer))
    (folder / "config_sentence_transformers.json").unlink()


def test_lower_casing_applies_to_text_and_prompt(tiny, sentences, vectors_of):
    folder = build(tiny("roberta"))
    cased = vectors_of(load(folder), sentences)
    old_style(folder, max_seq_length=40, do_lower_case=True)
    encoder = load(folder)
    assert encoder.identity.modules == ("lower_case",)
    np.testing.assert_allclose(vectors_of(encoder, sentences), by_library(folder, sentences), atol=1e-5)
    assert not np.allclose(vectors_of(encoder, sentences), cased, atol=1e-3)
    prompted = vectors_of(load(folder, prompt="The Cat "), sentences)
    np.testing.assert_allclose(prompted, by_library(folder, sentences, prompt="The Cat "), atol=1e-5)


def test_the_maximum_length_is_the_checkpoints_within_the_models_positions(tiny, sentences, vectors_of):
    from sentence_transformers import SentenceTransformer

    folder = build(tiny())
    model = SentenceTransformer(str(folder), device="cpu")
    model.max_seq_length = 7
    model.save(str(folder))
    assert load(folder).identity.use.max_length == 7
    np.testing.assert_allclose(vectors_of(load(folder), sentences), by_library(folder, sentences), atol=1e-5)
    assert load(folder, max_length=30).identity.use.max_length == 30
    beyond = build(tiny("roberta"))
    old_style(beyond, max_seq_length=50)
    assert load(beyond).identity.use.max_length == 48
    assert embed(load(beyond), ["the dog and the cat " * 30], use_cache=False).truncated.all()


def no_prompt_in_the_mean(folder):
    folder = build(folder, prompts=PROMPTS, default_prompt_name="query")
    config = json.loads((folder / "1_Pooling" / "config.json").read_text())
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config | {"include_prompt": False}))
    return folder


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: build(folder, pooling="weightedmean", after=[NORMALIZE]),
        lambda folder: build(folder, pooling=("cls", "mean")),
        lambda folder: build(folder, after=[LAYER_NORM]),
        lambda folder: build(folder, after=[RESIDUAL]),
        lambda folder: build(folder, truncate_dim=8),
        no_prompt_in_the_mean,
    ],
)
def test_what_is_not_read_natively_goes_through_the_library(make, tiny, sentences, vectors_of):
    folder, texts = make(tiny()), [text for text in sentences if text]
    encoder = load(folder)
    assert encoder.identity.kind == LIBRARY
    assert "encoded by the sentence-transformers library" in encoder.notes[0]
    np.testing.assert_allclose(vectors_of(encoder, texts), by_library(folder, texts), atol=1e-5)


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda modules: modules.replace("StaticEmbedding", "WordEmbeddings"), {"pooling": "avg"}, "config.json"),
        (lambda modules: modules.replace("sentence_transformers.", "own."), {}, "--trust-remote-code"),
        (None, {"backend": "openvino"}, "--backend"),
        (None, {"template": "promptbert"}, "--template"),
        (None, {"attention": "eager"}, "--attention"),
        (None, {"attention_mask": "causal"}, "--attention-mask"),
    ],
)
def test_what_the_library_cannot_do_is_refused(change, options, words, tiny):
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

    if change is None or options == {}:
        folder = build(tiny(), pooling="weightedmean")
    else:
        tokenizer = Tokenizer.from_file(str(tiny() / "tokenizer.json"))
        static = module("StaticEmbedding", tokenizer, embedding_dim=24)
        folder = tiny(name="other").with_name("static")
        SentenceTransformer(modules=[static], device="cpu").save(str(folder))
    if change is not None:
        (folder / "modules.json").write_text(change((folder / "modules.json").read_text()))
    with pytest.raises(UserError) as error:
        load(folder, **options)
    assert words in str(error.value)


@pytest.mark.parametrize("after", [[], [NORMALIZE]])
def test_static_embeddings_are_encoded_by_the_library_that_wrote_them(after, tiny, sentences, vectors_of):
    from model2vec import StaticModel
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

    plain = tiny()
    tokenizer = Tokenizer.from_file(str(plain / "tokenizer.json"))
    rows = np.random.default_rng(3).normal(size=(tokenizer.get_vocab_size(), 24)).astype(np.float32)
    static = module("StaticEmbedding", tokenizer, embedding_weights=rows)
    folder, other = plain.with_name("static"), plain.with_name("model2vec")
    model = SentenceTransformer(modules=[static, *(module(*name[:-1]) for name in after)], prompts=PROMPTS)
    model.save(str(folder))
    encoder = load(folder, prompt_name="query")
    assert encoder.identity.kind == LIBRARY
    np.testing.assert_array_equal(vectors_of(encoder, sentences), model.encode(sentences, prompt="so she "))
    model = StaticModel(rows, tokenizer, normalize=bool(after), max_length=7)
    model.save_pretrained(other)
    assert load(other).identity.kind == "model2vec-library"
    texts = [*sentences, "日本語", "the dog " * 20]
    np.testing.assert_array_equal(vectors_of(load(other), texts), model.encode(texts))
    shorter = vectors_of(load(other, max_length=3, prompt="a "), texts)
    np.testing.assert_array_equal(shorter, model.encode([f"a {text}" for text in texts], max_length=3))
    assert embed(load(other), texts).cost.encoded > embed(load(other), texts).cost.encoded == 0
    for options, word in (({"precision": "bf16"}, "--precision"), ({"pooling": "avg"}, "config.json")):
        with pytest.raises(UserError, match=word):
            load(other, **options)
