"""Templates: what is recorded, and what a template may not change. Their mistakes are in `test_model_mistakes`."""

from typing import Any

import numpy as np
import pytest
from tiny_models import vectors_of

import stsbench as sb
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.template import RULES, Template, read_template
from stsbench.published.catalogue import checkpoint_by_name
from stsbench.records.signature import Signature

EOL = Template(name="eol", texts='It means "{sentence}" in a word:"', pooling="last", padding="left")


def test_a_users_template_is_used(tmp_path, tiny):
    (tmp_path / "mine.yaml").write_text(
        "texts: 'so: {sentence}'\nrules: [full_stop]\npooling: avg\nlayers: [-1, -2]\n"
    )
    encoder = load(tiny(), template=str(tmp_path / "mine.yaml"))
    found = embed(encoder, ["The dog ran home"], use_cache=False)
    plain = vectors_of(load(tiny(name="again"), pooling="avg_top2", prompt="so: "), ["The dog ran home."])
    assert encoder.identity.use.pooling == "avg@-1,-2"
    assert str(encoder.identity.use.template).startswith("mine#")
    np.testing.assert_allclose(found.vectors["avg@-1,-2"], plain, rtol=0, atol=1e-6)
    assert found.lengths.tolist() == [4]  # of the sentence alone, as it was given


def test_truncation_cuts_the_sentence_and_never_the_template(asked_model):
    encoder = load(asked_model("roberta"), template="cot-roberta", max_length=120)
    tokenized = encoder.tokenize(["word " * 200, "short"])
    long, short = (sequence.parts[0] for sequence in tokenized.sequences)  # type: ignore[union-attr]
    assert tokenized.truncated == [True, False]
    assert 110 < len(long.ids) <= 120
    ((start, stop),), ((_, short_stop),) = long.copies, short.copies
    assert long.ids[:start] == short.ids[:start]
    assert long.ids[stop:] == short.ids[short_stop:]
    assert len(long.masks) == len(short.masks) == 2
    assert tokenized.lengths[0] > 120  # the whole sentence's


@pytest.mark.parametrize("kind", ["gpt2", "llama", "roberta"])
@pytest.mark.parametrize("tokens", [1, 7, 100])
def test_padding_on_either_side_and_the_batch_change_nothing(kind, tokens, asked_model):
    texts = [" ".join(["a", *"bcdefgh" * 20][:tokens]), "x", "Rain fell, and the river rose é ü 猫"]
    places = ("last", "last@-2", "avg", "cls_avg", "weighted_avg@1", "sentence", "max", "cls_before_pooler")
    encoder: Any = load(asked_model(kind), template=EOL)
    right = encoder.with_template(EOL.model_copy(update={"padding": "right"}))
    found = [
        embed(used, some, poolings=places, use_cache=False)
        for used, some in ((encoder, texts), (right, texts), (encoder, texts[:1]))
    ]
    for place in places:
        left, other, alone = (each.vectors[place][each.rows] for each in found)
        norms = np.linalg.norm(left, axis=1, keepdims=True)
        assert np.abs(left - other).max() < 1e-6 * norms.min()
        assert np.abs(left[:1] - alone).max() < 1e-6 * norms.min()


def test_a_known_checkpoint_brings_its_template_unless_the_user_chooses(tiny, monkeypatch):
    known = checkpoint_by_name("unsup-simcse-bert-base")
    assert known is not None
    known = known.model_copy(update={"template": "promptbert"})
    monkeypatch.setattr("stsbench.encoders.load.checkpoint_named_like", lambda _name: known)
    folder = tiny()
    brought: Any = load(folder)
    assert (brought.identity.use.pooling, brought.use.template.name) == ("mask", "promptbert")
    assert load(folder, template="none", pooling="avg").identity.use.template is None
    notes = " ".join(load(folder, template="sncse", pooling="avg").notes)
    assert "pooling avg differs from mask" in notes


@pytest.mark.parametrize(
    ("rule", "sentence", "expected"),
    [
        ("full_stop", "it rains", "it rains."),
        ("full_stop", "is it?", "is it?"),
        # A trailing space hides the end, as in a padded copy of SentEval.
        ("full_stop", "it rains ", "it rains ."),
        ("full_stop", "", ""),
        ("spaced_full_stop", "it rains", "it rains ."),
        ("spaced_full_stop", "it rains! ", "it rains! "),
        ("question_to_full_stop", "is it?", "is it."),
        ("single_quotes", 'a "b"', "a 'b'"),
        ("single_spaces", " a  b ", "a b"),
        ("lower_case", "A b", "a b"),
        ("strip", " a ", "a"),
    ],
)
def test_a_rule_does_what_its_name_says(rule, sentence, expected):
    assert RULES[rule](sentence) == expected


def test_a_record_holds_the_template_in_full_and_its_signature_in_short(tiny, tmp_path):
    sb.evaluate(load(tiny(), template="promptbert"), "sample", out=tmp_path / "run", intervals=sb.Intervals(None))
    record, template = sb.load_run(tmp_path / "run"), read_template("promptbert")
    assert record.model.use.template == template
    signature = record.scores[0].signature
    assert f"||mask|len48|tmpl:{template}|fp32|" in signature
    assert Signature.parse(signature).use.template == str(template)
    assert str(Signature.parse(signature)) == signature
