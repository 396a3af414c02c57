"""sentence-transformers checkpoints give the vectors that their own library gives, with their prompts."""

import json

import numpy as np
import pytest
from scipy.stats import spearmanr
from tiny_models import vectors_of

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.records.signature import Signature
from stsbench.records.store import load_run

pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")

LIBRARY = "sentence-transformers-library"
PROMPTS = {"query": "so she ", "passage": "the dog ", "short": "Q", "again": "so she "}


def module(name, *sizes, function="Tanh", **options):
    import torch
    from sentence_transformers.sentence_transformer import modules

    if name == "Dense":
        options["activation_function"] = getattr(torch.nn, function)()
    return getattr(modules, name)(*sizes, **options)


def build(folder, *, pooling="mean", after=(), include_prompt=True, **options):
    """Save a tiny checkpoint as the current library does; `after` are the arguments of modules."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.manual_seed(11)
    modules = [
        module("Transformer", str(folder)),
        module("Pooling", 32, pooling_mode=pooling, include_prompt=include_prompt),
    ]
    target = folder.with_name(f"{folder.name}-st")
    model = SentenceTransformer(
        modules=[*modules, *(module(*name[:-1], **name[-1]) for name in after)], device="cpu", **options
    )
    for name, parameter in model.named_parameters():
        # Random ones make all sentences nearly alike, whose ranks are a matter of rounding.
        if "LayerNorm" in name:
            parameter.data.fill_(float(name.endswith("weight")))
    model.save(str(target))
    return target


def by_library(folder, texts, **options):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return model.encode(list(texts), show_progress_bar=False, **options)


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
def test_poolings_and_dense_layers_are_read_natively(kind, pooling, after, tiny, sentences):
    import torch
    from safetensors.torch import load_file

    folder, texts = build(tiny(kind), pooling=pooling, after=after), [text for text in sentences if text]
    encoder, expected = load(folder), by_library(folder, texts)
    assert encoder.identity.kind == "sentence-transformers"
    assert encoder.identity.normalize == (NORMALIZE in after)
    np.testing.assert_allclose(vectors_of(encoder, texts), expected, atol=1e-5)
    for file in folder.glob("*_Dense/model.safetensors"):
        torch.save(load_file(file), file.with_name("pytorch_model.bin"))
        file.unlink()
    np.testing.assert_allclose(vectors_of(folder, texts), expected, atol=1e-5)


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


def test_lower_casing_applies_to_text_and_prompt(tiny, sentences):
    folder = build(tiny("roberta"))
    cased = vectors_of(load(folder), sentences)
    old_style(folder, max_seq_length=40, do_lower_case=True)
    encoder = load(folder)
    assert encoder.identity.modules == ("lower_case",)
    np.testing.assert_allclose(vectors_of(encoder, sentences), by_library(folder, sentences), atol=1e-5)
    assert not np.allclose(vectors_of(encoder, sentences), cased, atol=1e-3)
    prompted = vectors_of(load(folder, prompt="The Cat "), sentences)
    np.testing.assert_allclose(prompted, by_library(folder, sentences, prompt="The Cat "), atol=1e-5)


def test_the_maximum_length_is_the_checkpoints_within_the_models_positions(tiny, sentences):
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


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: build(folder, pooling="weightedmean", after=[NORMALIZE]),
        lambda folder: build(folder, pooling=("cls", "mean")),
        lambda folder: build(folder, after=[LAYER_NORM]),
        lambda folder: build(folder, after=[RESIDUAL]),
        lambda folder: build(folder, truncate_dim=8),
        lambda folder: build(folder, include_prompt=False, prompts=PROMPTS, default_prompt_name="query"),
    ],
)
def test_what_is_not_read_natively_goes_through_the_library(make, tiny, sentences):
    folder, texts = make(tiny()), [text for text in sentences if text]
    encoder = load(folder)
    assert encoder.identity.kind == LIBRARY
    assert "encoded by the sentence-transformers library" in encoder.notes[0]
    np.testing.assert_allclose(vectors_of(encoder, texts), by_library(folder, texts), atol=1e-5)


@pytest.mark.parametrize(
    ("module", "options", "words"),
    [
        ("WordEmbeddings", {"pooling": "avg"}, "config.json"),
        ("own.Pooling", {}, "--trust-remote-code"),
        (None, {"backend": "openvino"}, "--backend"),
        (None, {"template": "promptbert"}, "--template"),
        (None, {"attention": "eager"}, "--attention"),
        (None, {"attention_mask": "causal"}, "--attention-mask"),
    ],
)
def test_what_the_library_cannot_do_is_refused(module, options, words, tiny):
    folder = build(tiny(), pooling="weightedmean")
    modules = json.loads((folder / "modules.json").read_text())
    if module == "WordEmbeddings":
        modules = [modules[0] | {"type": f"sentence_transformers.models.{module}"}]
        (folder / "config.json").unlink()
    elif module:
        modules[1]["type"] = module
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(UserError, match=words):
        load(folder, **options)


@pytest.mark.parametrize("after", [[], [NORMALIZE]])
def test_static_embeddings_are_encoded_by_the_library_that_wrote_them(after, tiny, sentences):
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


OF_PAIRS = {"length-bias", "pair-kinds", "density", "threshold", "ties"}
"""The analyses of pairs' similarities, which have their sides."""


@pytest.fixture
def prompted(tiny):
    """Return a function that saves a tiny checkpoint with named prompts as the current library does."""
    return lambda include_prompt=True, default=None: build(
        tiny(name=f"tiny-{include_prompt}-{default}"),
        include_prompt=include_prompt,
        prompts=PROMPTS,
        default_prompt_name=default,
    )


def library_score(folder, data, first, second):
    left = by_library(folder, list(data.pairs["sentence1"]), prompt=first)
    right = by_library(folder, list(data.pairs["sentence2"]), prompt=second)
    cosines = (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
    return float(spearmanr(cosines, data.pairs["gold"]).statistic)


@pytest.mark.parametrize(("include_prompt", "kind"), [(True, "sentence-transformers"), (False, LIBRARY)])
def test_named_and_default_prompts_give_the_librarys_vectors_whether_they_are_pooled_or_not(
    include_prompt, kind, prompted, sentences
):
    plain, with_default = (prompted(include_prompt=include_prompt, default=name) for name in (None, "passage"))
    seen = []
    for folder, name, text in (
        (plain, "query", "so she "),
        (with_default, "query", "so she "),
        (with_default, None, "the dog "),
        (plain, None, ""),
    ):
        encoder = load(folder, prompt_name=name)
        assert (encoder.identity.kind, encoder.identity.use.prompt) == (kind, text)
        ours = vectors_of(encoder, sentences)
        np.testing.assert_allclose(ours, by_library(folder, sentences, prompt_name=name), rtol=0, atol=1e-6)
        seen.append(ours)
    assert not np.allclose(seen[0], seen[2], atol=1e-3)
    assert not np.allclose(seen[0], seen[3], atol=1e-3)


@pytest.mark.parametrize("include_prompt", [True, False])
def test_each_side_is_read_with_its_own_prompt(include_prompt, prompted, toy_data):
    folder, data = prompted(include_prompt=include_prompt, default="short"), toy_data()
    signatures = set()
    for asked, first, second in (
        ("query,passage", "so she ", "the dog "),
        (("passage", "query"), "the dog ", "so she "),
        ('"to, fro: ",', "to, fro: ", ""),
        ("short,", "Q", ""),
        ('"a|b, c: ",passage', "a|b, c: ", "the dog "),
    ):
        record = sb.evaluate(load(folder, prompts=asked), data)
        assert record.model.use.prompts == record.signatures[0].use.prompts == (first, second)
        expected = library_score(folder, data, first, second)
        assert record.scores[0].value == pytest.approx(expected, abs=1e-6)
        assert Signature.parse(record.signature) == record.signatures[0]
        signatures.add(record.signature)
    assert len(signatures) == 5
    assert "|prompts:a%7Cb%2C%20c%3A%20,the%20dog%20|" in record.signature


def test_what_needs_vectors_without_a_side_is_refused_and_what_compares_pairs_is_not(prompted, tmp_path):
    from stsbench.analysis import analyses

    encoder, refused = load(prompted(), prompts="query,passage"), "has a prompt for each side of a pair"
    sb.evaluate(encoder, "sample", out=tmp_path / "run")
    for subject in (encoder, load_run(tmp_path / "run")):
        explained = sb.explain(subject)
        assert set(explained.parts) == OF_PAIRS
        assert set(explained.missing) == set(analyses()) - OF_PAIRS
        assert all(refused in why for why in explained.missing.values())
    for verb, message in (
        (lambda: sb.evaluate(encoder, "sample-transfer"), r"sample-movies has single sentences.*--prompt"),
        (lambda: sb.diagnose(encoder, 50.0, tasks="sample"), refused),
        (lambda: sb.fit("whitening", encoder, sentences="sample", out=tmp_path / "w"), refused),
    ):
        with pytest.raises(sb.UserError, match=message):
            verb()
    assert not (tmp_path / "w").exists()
