"""sentence-transformers checkpoints give the vectors that their own library gives."""

import inspect
import json
import time
from importlib.util import find_spec

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders import sentence_transformers as library
from stsbench.encoders.generation import has_attention_table, has_safe_pickles
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed

pytestmark = pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs sentence-transformers")

LIBRARY = "sentence-transformers-library"


def library_modules():
    """Return the library's classes of modules, which stand elsewhere before its version 6."""
    try:
        from sentence_transformers.sentence_transformer import modules
    except ImportError:
        from sentence_transformers import models as modules
    return modules


def build(folder, *, pooling="mean", after=(), **options):
    """Save a tiny checkpoint as the current library does; `after` makes the modules after the pooling."""
    import torch
    from sentence_transformers import SentenceTransformer

    models = library_modules()
    torch.manual_seed(11)
    transformer = models.Transformer(str(folder))
    modules = [transformer, models.Pooling(32, pooling_mode=pooling), *(make(models) for make in after)]
    target = folder.with_name(f"{folder.name}-st")
    model = SentenceTransformer(modules=modules, device="cpu", **options)
    model.save(str(target))
    return target


def by_library(folder, texts, **options):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return np.stack([model.encode(text, show_progress_bar=False, **options) for text in texts])


def dense(models):
    return models.Dense(32, 12)


def dense_without_bias(models):
    import torch

    return models.Dense(32, 20, bias=False, activation_function=torch.nn.Identity())


def dense_relu(models):
    import torch

    return models.Dense(20, 8, activation_function=torch.nn.ReLU())


def normalize(models):
    return models.Normalize()


@pytest.mark.parametrize(
    ("kind", "pooling"),
    [("bert", "mean"), ("bert", "cls"), ("bert", "max"), ("bert", "lasttoken"), ("roberta", "mean")],
)
def test_poolings_are_read_natively(kind, pooling, tiny, sentences, vectors_of):
    folder = build(tiny(kind), pooling=pooling, after=[normalize])
    encoder = load(folder)
    assert encoder.identity.kind == "sentence-transformers"
    assert encoder.identity.normalize
    assert encoder.identity.modules == ()
    np.testing.assert_allclose(vectors_of(encoder, sentences), by_library(folder, sentences), atol=1e-5)


@pytest.mark.skipif(not has_attention_table(), reason="before Transformers 5.0 the tokenizer gives it token types")
def test_a_decoders_last_token_is_read_natively(tiny, sentences, vectors_of):
    folder, texts = build(tiny("gpt2"), pooling="lasttoken"), [text for text in sentences if text]
    encoder = load(folder)
    assert encoder.identity.kind == "sentence-transformers"
    np.testing.assert_allclose(vectors_of(encoder, texts), by_library(folder, texts), atol=1e-5)


@pytest.mark.parametrize(
    "after", [(dense,), (dense, normalize), (dense_without_bias, dense_relu)], ids=["tanh", "norm", "two"]
)
@pytest.mark.parametrize("layout", ["safetensors", "bin"])
def test_dense_layers_are_read_natively(after, layout, tiny, sentences, vectors_of):
    if layout == "bin" and not has_safe_pickles():
        pytest.skip("from torch 2.6 on")
    folder = build(tiny(), after=after)
    if layout == "bin":
        import torch
        from safetensors.torch import load_file

        for file in folder.glob("*_Dense/model.safetensors"):
            torch.save(load_file(file), file.with_name("pytorch_model.bin"))
            file.unlink()
    encoder = load(folder)
    assert encoder.identity.kind == "sentence-transformers"
    np.testing.assert_allclose(vectors_of(encoder, sentences), by_library(folder, sentences), atol=1e-5)


def test_a_changed_dense_layer_or_activation_is_another_identity(tiny, edit):
    from safetensors.torch import load_file, save_file

    folder = build(tiny(), after=[dense])
    before = load(folder).identity
    file = folder / "2_Dense" / "model.safetensors"
    save_file({name: tensor * 2 for name, tensor in load_file(file).items()}, file)
    scaled = load(folder).identity
    assert scaled.weights_sha256 != before.weights_sha256
    edit(folder / "2_Dense" / "config.json", activation_function="torch.nn.modules.activation.ReLU")
    assert (scaled.modules, load(folder).identity.modules) == (("dense:Tanh",), ("dense:ReLU",))

    top = folder / "model.safetensors"
    save_file({name: tensor * 2 for name, tensor in load_file(top).items()}, top, metadata={"format": "pt"})
    assert load(folder).identity.weights_sha256 != scaled.weights_sha256


@pytest.mark.parametrize("damage", ["missing", "foreign", "garbage"])
def test_broken_dense_weights_are_told(damage, tiny, vectors_of):
    import torch
    from safetensors.torch import save_file

    folder = build(tiny(), after=[dense])
    file = folder / "2_Dense" / "model.safetensors"
    if damage == "missing":
        file.unlink()
    elif damage == "foreign":
        save_file({"other.weight": torch.zeros(2, 2)}, file)
    else:
        file.write_bytes(b"junk" * 20)
    with pytest.raises(UserError, match="2_Dense"):
        vectors_of(load(folder), ["a cat"])


def old_style(folder, edit, **transformer):
    """Rewrite a saved checkpoint's settings as all-MiniLM-L6-v2 and its contemporaries have them."""
    names = {
        "Transformer": "sentence_transformers.models.Transformer",
        "Pooling": "sentence_transformers.models.Pooling",
        "Normalize": "sentence_transformers.models.Normalize",
        "Dense": "sentence_transformers.models.Dense",
    }
    modules = json.loads((folder / "modules.json").read_text())
    for module in modules:
        module["type"] = names[module["type"].rpartition(".")[2]]
    (folder / "modules.json").write_text(json.dumps(modules))
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    pooling = {f"pooling_mode_{mode}": mode == "mean_tokens" for mode in modes}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32} | pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps(transformer))
    (folder / "config_sentence_transformers.json").unlink()


def test_old_style_settings_are_read_natively(tiny, edit, sentences, vectors_of):
    folder = build(tiny(), after=[dense, normalize])
    old_style(folder, edit, max_seq_length=8, do_lower_case=False)
    encoder = load(folder)
    assert encoder.identity.kind == "sentence-transformers"
    assert encoder.identity.use.max_length == 8
    found = embed(encoder, sentences, use_cache=False)
    assert found.truncated.sum() > 2
    np.testing.assert_allclose(found.vectors["avg"][found.rows], by_library(folder, sentences), atol=1e-5)


def test_lower_casing_is_obeyed_for_text_and_prompt(tiny, edit, sentences, vectors_of):
    folder = build(tiny("roberta"))
    cased = vectors_of(load(folder), sentences)
    old_style(folder, edit, max_seq_length=40, do_lower_case=True)
    encoder = load(folder)
    assert encoder.identity.modules == ("lower_case",)
    np.testing.assert_allclose(vectors_of(encoder, sentences), by_library(folder, sentences), atol=1e-5)
    assert not np.allclose(vectors_of(encoder, sentences), cased, atol=1e-3)
    prompted = vectors_of(load(folder, prompt="The Cat "), sentences)
    np.testing.assert_allclose(prompted, by_library(folder, sentences, prompt="The Cat "), atol=1e-5)


def test_the_current_librarys_length_is_read(tiny, sentences, vectors_of):
    from sentence_transformers import SentenceTransformer

    folder = build(tiny())
    model = SentenceTransformer(str(folder), device="cpu")
    model.max_seq_length = 7
    model.save(str(folder))
    encoder = load(folder)
    assert encoder.identity.use.max_length == 7
    np.testing.assert_allclose(vectors_of(encoder, sentences), by_library(folder, sentences), atol=1e-5)
    assert load(folder, max_length=30).identity.use.max_length == 30


def test_a_length_beyond_the_models_positions_is_cut_to_them(tiny, edit):
    folder = build(tiny("roberta"))
    old_style(folder, edit, max_seq_length=50)
    encoder = load(folder)
    assert encoder.identity.use.max_length == 48
    assert embed(encoder, ["the dog and the cat " * 30], use_cache=False).truncated.all()


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_the_checkpoints_own_prompt_is_used_unless_another_is_given(kind, tiny, sentences, vectors_of):
    prompts = {"query": "so she ", "passage": "the dog "}
    folder = build(tiny(kind), prompts=prompts, default_prompt_name="query")
    encoder = load(folder)
    assert (encoder.identity.kind, encoder.identity.use.prompt) == ("sentence-transformers", "so she ")
    np.testing.assert_allclose(vectors_of(encoder, sentences), by_library(folder, sentences), atol=1e-5)
    for prompt in ("", "the dog "):
        ours = vectors_of(load(folder, prompt=prompt), sentences)
        np.testing.assert_allclose(ours, by_library(folder, sentences, prompt=prompt), atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "weightedmean"])
def test_a_prompts_name_given_as_its_text_is_remarked_on(pooling, tiny):
    folder = build(tiny(), pooling=pooling, prompts={"query": "so she ", "plain": ""})
    told = [note for note in load(folder, prompt="query").notes if "has a prompt named" in note]
    assert len(told) == 1
    assert "has a prompt named 'query', which is 'so she '" in told[0]
    assert "so 'query' is put before every sentence: give --prompt-name query if" in told[0]
    for other in ("so she ", "", "question: ", None):
        assert not any("has a prompt named" in note for note in load(folder, prompt=other).notes)


def test_another_pooling_keeps_what_follows_and_is_warned_about(tiny, sentences, vectors_of):
    folder = build(tiny(), after=[normalize])
    encoder = load(folder, pooling="max")
    assert "pooling max differs from avg" in encoder.notes[0]
    np.testing.assert_allclose(np.linalg.norm(vectors_of(encoder, sentences), axis=1), 1, atol=1e-5)


def weighted_mean(folder):
    return build(folder, pooling="weightedmean", after=[normalize])


def two_poolings(folder):
    return build(folder, pooling=("cls", "mean"))


def layer_norm(folder):
    return build(folder, after=[lambda models: models.LayerNorm(32)])


def residual_dense(folder):
    if "use_residual" not in inspect.signature(library_modules().Dense).parameters:
        pytest.skip("from sentence-transformers 6 on")
    return build(folder, after=[lambda models: models.Dense(32, 32, use_residual=True)])


def kept_dimensions(folder):
    return build(folder, truncate_dim=8)


def no_prompt_in_the_mean(folder):
    folder = build(folder, prompts={"query": "so she "}, default_prompt_name="query")
    config = json.loads((folder / "1_Pooling" / "config.json").read_text())
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config | {"include_prompt": False}))
    return folder


def static_words(folder):
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

    words = library_modules().StaticEmbedding(
        Tokenizer.from_file(str(folder / "tokenizer.json")), embedding_dim=24
    )
    target = folder.with_name("static-st")
    SentenceTransformer(modules=[words], device="cpu").save(str(target))
    return target


UNKNOWN = [
    weighted_mean,
    two_poolings,
    layer_norm,
    residual_dense,
    kept_dimensions,
    no_prompt_in_the_mean,
]


@pytest.mark.parametrize("make", UNKNOWN)
def test_what_is_not_read_natively_goes_through_the_library(make, tiny, sentences, vectors_of):
    folder, texts = make(tiny()), [text for text in sentences if text]
    encoder = load(folder)
    assert encoder.identity.kind == LIBRARY
    assert "the sentence-transformers library encodes it" in encoder.notes[0]
    np.testing.assert_allclose(vectors_of(encoder, texts), by_library(folder, texts), atol=1e-5)


def test_the_librarys_prompts_lengths_and_precision_are_the_persons(tiny, sentences, vectors_of):
    folder = build(tiny(), pooling="weightedmean", prompts={"query": "so she "}, default_prompt_name="query")
    texts = [text for text in sentences if text]
    assert load(folder).identity.use.prompt == "so she "
    for prompt in ("", "the dog "):
        ours = vectors_of(load(folder, prompt=prompt), texts)
        np.testing.assert_allclose(ours, by_library(folder, texts, prompt=prompt), atol=1e-5)
    short = vectors_of(load(folder, prompt="", max_length=5), texts)
    assert not np.allclose(short, by_library(folder, texts, prompt=""), atol=1e-3)
    half = vectors_of(load(folder, precision="bf16"), texts)
    np.testing.assert_allclose(half, vectors_of(load(folder), texts), rtol=0.1, atol=0.1)


def test_the_librarys_vectors_are_cached_by_every_file(tiny, sentences):
    folder = build(tiny(), after=[lambda models: models.LayerNorm(32)])
    texts = [text for text in sentences if text]
    assert embed(load(folder), texts).cost.encoded > 0
    assert embed(load(folder), texts).cost.encoded == 0
    file = next(folder.glob("2_LayerNorm/*.safetensors"))
    content = bytearray(file.read_bytes())
    content[-2] ^= 0x10
    file.write_bytes(content)
    assert embed(load(folder), texts).cost.encoded > 0


def test_loading_through_the_library_is_not_counted_as_encoding(tiny, monkeypatch):
    load_model = library._load

    def slowly(*arguments):
        time.sleep(0.5)
        return load_model(*arguments)

    monkeypatch.setattr(library, "_load", slowly)
    encoder = load(build(tiny(), pooling="weightedmean"))
    found = embed(encoder, ["a cat"], use_cache=False)
    assert found.cost.seconds["load"] >= 0.5


def test_a_pooling_of_the_persons_leaves_unknown_modules_out_and_says_so(tiny, sentences, vectors_of, reference):
    plain = tiny()
    folder = build(plain, after=[lambda models: models.LayerNorm(32)])
    encoder = load(folder, pooling="avg")
    assert any("--pooling avg leaves them out" in note for note in encoder.notes)
    np.testing.assert_allclose(vectors_of(encoder, sentences), reference(plain, sentences, "avg"), atol=1e-5)


def test_a_pooling_for_a_checkpoint_without_transformer_is_refused(tiny):
    folder = static_words(tiny())
    modules = (folder / "modules.json").read_text()
    (folder / "modules.json").write_text(modules.replace("StaticEmbedding", "WordEmbeddings"))
    with pytest.raises(UserError, match=r"no Transformer's config\.json"):
        load(folder, pooling="avg")


def test_a_class_of_a_known_name_from_elsewhere_is_code_to_be_trusted(tiny):
    folder = build(tiny())
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["type"] = "custom_st.Transformer"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(UserError, match=r"Python code of its own \(custom_st.Transformer\)"):
        load(folder)


@pytest.mark.parametrize("content", ["{}", "[]", "[1]", "null"])
def test_a_modules_file_that_lists_no_modules_is_told(content, tiny):
    folder = build(tiny())
    (folder / "modules.json").write_text(content)
    with pytest.raises(UserError, match="lists no modules"):
        load(folder)


def test_a_broken_checkpoint_of_the_library_is_told_in_one_sentence(tiny, vectors_of):
    folder = layer_norm(tiny())
    (folder / "model.safetensors").write_bytes(b"junk" * 20)
    with pytest.raises(UserError, match="cannot load") as told:
        vectors_of(load(folder), ["a cat"])
    assert "\n" not in str(told.value)


def test_without_the_library_the_person_is_told_what_to_install(tiny, vectors_of, monkeypatch):
    import sys

    folder = layer_norm(tiny())
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UserError, match=r"pip install 'stsbench\[sentence-transformers\]'"):
        vectors_of(load(folder), ["a cat"])


def test_a_model_object_of_the_library_is_a_callable(tiny, sentences, vectors_of):
    from sentence_transformers import SentenceTransformer

    folder, texts = build(tiny()), [text for text in sentences if text]
    encoder = load(SentenceTransformer(str(folder), device="cpu"))
    assert encoder.identity.name.endswith(":SentenceTransformer")
    np.testing.assert_allclose(vectors_of(encoder, texts), by_library(folder, texts), atol=1e-5)
