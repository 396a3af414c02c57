"""How a model is used is one value, an option one field; and what load chooses for the user."""

import inspect
from dataclasses import fields, replace
from typing import Any

import pytest
from tiny_models import edit

import stsbench as sb
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.poolers import parse_pooling
from stsbench.encoders.protocol import Identity
from stsbench.encoders.sentence_transformers import write_modules
from stsbench.encoders.transformer import TransformerSettings
from stsbench.encoders.use import ABOUT, Use, own_use, shown
from stsbench.published.catalogue import checkpoint_named_like, checkpoints, identified_checkpoint
from stsbench.records.labels import model_labels
from stsbench.records.parts import ModelPart
from stsbench.records.signature import Signature, require_same_protocol
from stsbench.scoring.kinds import as_task
from stsbench.scoring.run import run_name
from stsbench.scoring.settings import Protocol, Settings

OTHER: dict[str, Any] = {
    "pooling": "cls",
    "max_length": 9,
    "prompt": "query: ",
    "prompt_name": "sts",
    "prompts": ("q: ", "p, "),
    "template": "mine#1a2b",
    "backend": "openvino",
    "precision": "bf16",
    "normalize": True,
    "dimensions": 8,
    "whiten": 4,
    "revision": "v2",
    "device": "cuda",
    "trust_remote_code": True,
    "attention": "eager",
    "attention_mask": "causal",
}
IDENTITY = Identity("me/mine", "transformer", own_use("avg"), weights_sha256="a" * 64)
each_field = pytest.mark.parametrize("name", ABOUT)


def used(name):
    return replace(IDENTITY, use=replace(IDENTITY.use, **{name: OTHER[name]}))


def test_load_takes_every_field_with_its_default_and_describes_it():
    parameters = list(inspect.signature(sb.load).parameters.values())[1:]
    assert {each.name: (each.default, each.annotation) for each in parameters} == {
        each.name: (each.default, each.type) for each in fields(Use)
    }
    assert sorted(ABOUT) == sorted(OTHER)
    assert all(f"        {name}: " in (sb.load.__doc__ or "") for name in ABOUT)
    with pytest.raises(TypeError, match="unexpected keyword argument 'poling'"):
        sb.load("minilm", poling="cls")


@each_field
def test_a_field_that_changes_vectors_is_in_keys_signatures_labels_and_names_of_runs(name, toy_data):
    changes, identity = ABOUT[name].changes, used(name)
    assert (identity.key() != IDENTITY.key()) == (changes in {"encoding", "place"})

    models = [ModelPart(**vars(each)) for each in (IDENTITY, identity)]
    assert models[0] != models[1]
    assert (shown(name, OTHER[name]) in model_labels(models)[1]) == (changes != "nothing")

    what = ("STS16", "test", "all", "spearman", "cosine", "senteval", "3f2a91")
    plain, other = (Signature(*what, each.use, version="1") for each in (IDENTITY, identity))
    assert Signature.parse(str(other)) == other
    assert (str(other) == str(plain)) == (changes in {"nothing", "place"})
    require_same_protocol(plain, other, names=("a", "b"), task="STS16", remedy="stop")

    if name != "template":  # A run's name has that of a template, which is read when a model is loaded.
        task = as_task(toy_data(), Protocol())
        both = [run_name(each, [task], Settings()) for each in (IDENTITY, identity)]
        is_named = ABOUT[name].named or name == "backend"  # a part of the precision
        assert (both[0] != both[1]) == is_named


def test_options_go_to_what_is_loaded_and_not_to_what_is_loaded_already(tiny, tmp_path):
    folder, asked = str(tiny("bert", "plain")), {"pooling": "avg", "dimensions": 8, "whiten": 4}
    encoder = sb.load(folder, **asked)
    assert sb.load(encoder) is encoder
    with pytest.raises(sb.UserError, match=r"^--pooling .* is loaded already"):
        sb.load(encoder, pooling="avg")
    record = sb.evaluate(encoder, "sample", out=tmp_path / "run")
    assert record.model.use == encoder.identity.use
    of_record, of_model, plain = (
        sb.geometry(subject, task="sample").frame for subject in (record, encoder, sb.load(folder, pooling="avg"))
    )
    for number in ("alignment", "uniformity", "mean_cosine"):
        assert of_record[number].tolist() == of_model[number].tolist()
    assert plain["uniformity"].tolist() != of_model["uniformity"].tolist()
    rows = embed(encoder, ["one man", "two dogs run", "a red boat", "she reads", "they go"])
    assert rows.vectors["avg"].shape == (5, 4)


def test_a_checkpoint_is_known_by_the_last_part_of_its_name_in_any_case():
    assert checkpoint_named_like("/models/Sup-SimCSE-bert-base-uncased/").pooling == "cls"
    assert checkpoint_named_like("e5-tiny") is identified_checkpoint("models/e5-small") is None
    for checkpoint in checkpoints().values():
        parse_pooling(checkpoint.pooling)
        assert checkpoint.usage
        assert checkpoint.citation.startswith("@")


@pytest.mark.parametrize(
    ("name", "options", "architecture", "pooling", "note"),
    [
        ("sup-simcse-bert-base-uncased", {}, None, "cls", "named like princeton-nlp/sup-simcse-bert-base-uncased"),
        ("unsup-simcse-bert-base-uncased", {"pooling": "cls"}, None, "cls", "differs from cls_before_pooler"),
        ("bert-base-uncased", {"pooling": "avg_static_last"}, None, "avg_static_last", ""),
        ("mine", {}, "BertForCL", "cls_before_pooler", "SimCSE training checkpoint"),
        ("mine", {}, "RobertaForCL", "cls_before_pooler", "SimCSE training checkpoint"),
        ("mine", {"pooling": "cls"}, "BertForCL", "cls", ""),
        ("mine", {}, None, "avg", "avg was chosen"),
    ],
)
def test_a_local_folder_is_pooled_as_its_name_or_architecture_says(
    name, options, architecture, pooling, note, tiny
):
    folder = tiny(name=name)
    if architecture:
        edit(folder / "config.json", architectures=[architecture])
    encoder = load(folder, **options)
    assert encoder.identity.use.pooling == pooling
    assert len(encoder.notes) == bool(note)
    assert all(note in text for text in encoder.notes)


@pytest.mark.parametrize("modular", [False, True])
def test_a_known_checkpoints_prompt_is_used_unless_another_is_given(modular, tiny):
    folder = tiny(name="e5-small-v2")
    if modular:  # its sentence-transformers settings lack the prompt
        settings = TransformerSettings(Use(pooling="avg"))
        write_modules(folder, settings, 32, [("2_Normalize", "Normalize", None)])
    encoder = load(folder)
    assert encoder.identity.normalize == modular
    assert encoder.identity.use.prompt == "query: "
    assert any("prompt 'query: ' was chosen because" in note for note in encoder.notes)
    for prompt in ("", "passage: "):
        assert load(folder, prompt=prompt).identity.use.prompt == prompt
        assert not any("prompt" in note for note in load(folder, prompt=prompt).notes)
