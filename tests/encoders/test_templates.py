"""Templates: what is refused, what is recorded, and what a template may not change."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders.cache import EmbeddingCache
from stsbench.encoders.load import load, load_with
from stsbench.encoders.plan import embed
from stsbench.encoders.poolers import parse_pooling
from stsbench.encoders.template import RULES, Template, read_template, template_names
from stsbench.encoders.use import Use

EOL = Template(name="eol", texts='It means "{sentence}" in a word:"', pooling="last", padding="left")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            "texts: It means {mask}.\npooling: mask\n",
            r"mine.yaml, line 1: texts: 'It means .*' has no place",
        ),
        (
            "texts: '{sentence}'\npooling: avg\npading: left\n",
            r"line 3: unknown key 'pading'; did you mean 'padd",
        ),
        ("texts: '{sentence}'\npooling: masc\n", r"line 2: pooling: unknown pooling 'masc': did you mean mask\?"),
        (
            "texts: '{sentense}'\npooling: avg\n",
            r"line 1: texts: unknown place .sentense.: did you mean s",
        ),
        (
            "texts: '{sentence}'\npooling: avg\nrules: [ful_stop]\n",
            r"unknown rule 'ful_stop': did you mean full",
        ),
        ("texts: '{begin}{sentence}'\npooling: avg\n", r"\{begin\} and \{end\} go with tokenize: apart"),
        ("texts: '{sentence} {sentence}'\npooling: mask\nsubtract: template\n", r"one place for the sentence"),
        ("texts: []\npooling: avg\n", r"line 1: texts: "),
        ("pooling: avg\n", r"'texts' is missing; add it"),
    ],
)
def test_a_template_file_is_refused_with_its_line(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "mine.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=told):
        read_template(tmp_path / "mine.yaml")


def test_an_unknown_template_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UserError, match=r"unknown template 'prompt-bert': did you mean promptbert\?"):
        read_template("prompt-bert")
    with pytest.raises(UserError, match=r"there is no template file gone.yaml"):
        read_template("gone.yaml")


def test_a_template_of_ones_own_is_used(tmp_path: Path, tiny: Callable[..., Path]) -> None:
    (tmp_path / "mine.yaml").write_text(
        "texts: 'so: {sentence}'\nrules: [full_stop]\npooling: avg\nlayers: [-1, -2]\n"
    )
    encoder = load(tiny(), template=str(tmp_path / "mine.yaml"))
    found = embed(encoder, ["The dog ran home"], use_cache=False)
    plain = embed(
        load(tiny(name="again"), pooling="avg_top2", prompt="so: "), ["The dog ran home."], use_cache=False
    )
    assert encoder.identity.use.pooling == "avg@-1,-2"
    assert encoder.identity.use.template is not None
    assert str(encoder.identity.use.template).startswith("mine#")
    np.testing.assert_allclose(found.vectors["avg@-1,-2"], plain.vectors["avg_top2"], rtol=0, atol=1e-6)
    assert found.lengths.tolist() == [4]  # of the sentence alone, as it was given


def test_a_mask_is_refused_in_a_model_without_one(tiny: Callable[..., Path]) -> None:
    with pytest.raises(UserError, match=r"promptbert has a \{mask\}, and .*tiny-gpt2 knows no mask token"):
        embed(load(tiny("gpt2"), template="promptbert"), ["a cat"], use_cache=False)


def test_a_template_longer_than_the_limit_is_refused(tiny: Callable[..., Path]) -> None:
    encoder = load(tiny(), template="promptbert", max_length=8)
    with pytest.raises(UserError, match=r"template promptbert takes \d+ of the 8 sub-words that are read"):
        embed(encoder, ["a cat"], use_cache=False)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"template": "promptbert", "prompt": "query: "}, r"--prompt and --template both say"),
        ({"pooling": "mask"}, r"pooling mask is read in a template: add --template"),
        ({"pooling": "lest@-2"}, r"unknown pooling 'lest@-2': did you mean last\?"),
        ({"template": "uae", "pooling": "mask2"}, r"reads number 2 of the masks, and the template has 0"),
        ({"pooling": "avg@9"}, r"pooling avg@9 reads layer 9, and .* has 2: choose one of 0 .* to 2"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: dict[str, Any], told: str, tiny: Callable[..., Path]
) -> None:
    with pytest.raises(UserError, match=told):
        embed(load(tiny(), **options), ["a cat"], use_cache=False)


def test_a_template_is_refused_where_texts_are_not_read_here() -> None:
    with pytest.raises(UserError, match=r"--template: not for a callable"):
        load(lambda texts: [[1.0] for _ in texts], template="e5")


def test_truncation_cuts_the_sentence_and_never_the_template(asked_model: Callable[[str], Path]) -> None:
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


def test_masks_and_quotes_in_a_sentence_are_no_places_of_the_template(asked_model: Callable[[str], Path]) -> None:
    encoder = load(asked_model("roberta"), template="promptroberta")
    (sequence,) = encoder.tokenize(["it says <mask> and ' <mask> '"]).sequences
    (part,) = sequence.parts  # type: ignore[union-attr]
    ((start, stop),) = part.copies
    assert len(part.masks) == 1
    assert part.masks[0] >= stop > start


@pytest.mark.parametrize("kind", ["gpt2", "llama", "roberta"])
@pytest.mark.parametrize("tokens", [1, 7, 100])
def test_padding_on_either_side_and_the_batch_change_nothing(
    kind: str, tokens: int, asked_model: Callable[[str], Path]
) -> None:
    texts = [" ".join(["a", *"bcdefgh" * 20][:tokens]), "x", "Rain fell, and the river rose é ü 猫"]
    places = ("last", "last@-2", "avg", "cls_avg", "weighted_avg@1", "sentence", "max", "cls_before_pooler")
    encoder: Any = load(asked_model(kind), template=EOL)
    right = encoder.with_template(EOL.model_copy(update={"padding": "right"}))
    found = [
        embed(used, some, poolings=places, use_cache=False, token_budget=budget)
        for used, some, budget in ((encoder, texts, 9999), (right, texts, 9999), (encoder, texts[:1], 1))
    ]
    for place in places:
        left, other, alone = (each.vectors[place][each.rows] for each in found)
        norms = np.linalg.norm(left, axis=1, keepdims=True)
        assert np.abs(left - other).max() < 1e-6 * norms.min()
        assert np.abs(left[:1] - alone).max() < 1e-6 * norms.min()


def test_one_pass_serves_several_places_and_layers(
    asked_model: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from stsbench.encoders.network import Network

    encoder: Any = load(asked_model("llama"), template=EOL)
    encoder.prepare(weights=True)
    passes = []
    read = Network.read
    monkeypatch.setattr(Network, "read", lambda *given, **named: passes.append(1) or read(*given, **named))
    found = embed(encoder, ["a cat", "a dog runs"], poolings=["last", "last@-2", "avg@-1,-2"], use_cache=False)
    assert len(passes) == 1
    assert not np.allclose(found.vectors["last"], found.vectors["last@-2"])


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_half_precision_keeps_the_direction(kind: str, asked_model: Callable[[str], Path]) -> None:
    texts = ["a cat", "Rain fell all night, and the river rose over the green field.", "x " * 60]

    def directions(precision: str, budget: int) -> Any:
        found = embed(
            load(asked_model(kind), template=EOL, precision=precision),
            texts,
            normalize=True,
            use_cache=False,
            token_budget=budget,
        )
        return found.vectors["last"][found.rows]

    exact, batched, single = directions("fp32", 9999), directions("bf16", 9999), directions("bf16", 1)
    assert (exact * batched).sum(1).min() > 0.999
    assert (single * batched).sum(1).min() > 0.999


def test_the_mean_over_several_texts_is_that_of_each(asked_model: Callable[[str], Path]) -> None:
    encoder: Any = load(asked_model("llama"), template=EOL)
    other = EOL.model_copy(update={"texts": ("So: {sentence} end",)})
    both = EOL.model_copy(update={"texts": (*EOL.texts, *other.texts)})
    vectors = [
        embed(encoder.with_template(template), ["a cat", "it rains"], use_cache=False).vectors["last"]
        for template in (EOL, other, both)
    ]
    np.testing.assert_allclose((vectors[0] + vectors[1]) / 2, vectors[2], rtol=0, atol=1e-5)


def test_a_template_is_cached_by_what_is_in_it_and_not_by_its_name(tiny: Callable[..., Path]) -> None:
    plain: Any = load(tiny(), pooling="avg")
    mine = Template(name="mine", texts="so: {sentence}", pooling="avg")
    paths = [
        EmbeddingCache(plain.with_template(template).identity, "avg").path
        for template in (
            mine,
            mine.model_copy(update={"name": "other"}),
            mine.model_copy(update={"rules": ("strip",)}),
        )
    ]
    assert paths[0] == paths[1] != paths[2]
    assert EmbeddingCache(plain.identity, "avg").path not in paths


def test_a_known_checkpoint_brings_its_template_unless_told_otherwise(
    tiny: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from stsbench.published.catalogue import known_checkpoint

    known = known_checkpoint("unsup-simcse-bert-base")
    assert known is not None
    known = known.model_copy(update={"template": "promptbert"})
    monkeypatch.setattr("stsbench.encoders.load.hub_checkpoints", lambda _name: [known])
    folder = tiny()
    brought: Any = load(folder)
    assert (brought.identity.use.pooling, brought.use.template.name) == ("mask", "promptbert")
    assert load(folder, template="none", pooling="avg").identity.use.template is None
    other: Any = load(folder, template="sncse", pooling="avg")
    assert any("template sncse differs from promptbert" in note for note in other.notes)
    assert any("pooling avg differs from mask, where template sncse is read" in note for note in other.notes)


def test_the_known_checkpoints_name_templates_that_are_read_where_their_entries_say() -> None:
    from stsbench.published.catalogue import checkpoints

    with_template = [known for known in checkpoints().values() if known.template]
    assert with_template
    for known in with_template:
        assert read_template(known.template).reading == known.pooling, known.name


def test_every_preset_names_its_source_and_can_be_read() -> None:
    for name in template_names():
        template = read_template(name)
        assert template.title
        assert template.paper
        for source in template.sources:
            assert len(source.commit) == 40, name
            assert source.file, name
            assert source.what, name
        assert template.sources, name


@pytest.mark.parametrize(
    ("rule", "sentence", "expected"),
    [
        ("full_stop", "it rains", "it rains."),
        ("full_stop", "is it?", "is it?"),
        (
            "full_stop",
            "it rains ",
            "it rains .",
        ),  # a trailing space hides the end, as in a padded copy of SentEval
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
def test_a_rule_does_what_its_name_says(rule: str, sentence: str, expected: str) -> None:
    assert RULES[rule](sentence) == expected


def test_poolings_are_read_by_their_names() -> None:
    assert parse_pooling("avg_static_last").layers == (0, -1)
    assert parse_pooling("sentence2").number == 2
    with pytest.raises(UserError, match="unknown pooling 'last2'"):
        parse_pooling("last2")


def test_a_tokenizer_without_padding_token_pads_with_its_last_one(
    asked_model: Callable[[str], Path], tmp_path: Path, edit: Callable[..., None]
) -> None:
    import shutil

    folder = Path(shutil.copytree(asked_model("llama"), tmp_path / "llama"))
    edit(folder / "tokenizer_config.json", pad_token=None)
    texts = ["a cat", "Rain fell all night."]
    vectors = [
        embed(load_with(path, Use(template=EOL)), texts, use_cache=False).vectors["last"]
        for path in (folder, asked_model("llama"))
    ]
    np.testing.assert_allclose(*vectors, rtol=0, atol=1e-6)


def test_a_record_holds_the_template_in_full_and_its_signature_in_short(
    tiny: Callable[..., Path], tmp_path: Path
) -> None:
    import stsbench as sb
    from stsbench.records.signature import Signature

    encoder = load(tiny(), template="promptbert")
    sb.evaluate(encoder, "sample", out=tmp_path / "run", intervals=sb.Intervals(None))
    record = sb.load_run(tmp_path / "run")
    template = read_template("promptbert")
    assert record.model.use.template == template
    signature = record.scores[0].signature
    assert f"||mask|len48|tmpl:{template}|fp32|" in signature
    assert Signature.parse(signature).use.template == str(template)
    assert str(Signature.parse(signature)) == signature


def test_a_precision_of_the_template_holds_where_the_person_names_none(tiny: Callable[..., Path]) -> None:
    half = Template(name="half", texts="{sentence}", pooling="avg", precision="bf16")
    encoder = load(tiny(), template=half)
    assert encoder.identity.use.computed_in == "bf16"
    assert "template half asks for bf16." in encoder.notes
    assert load(tiny(name="other"), template=half, precision="fp16").identity.use.computed_in == "fp16"


def test_the_page_on_templates_names_every_key_and_rule_and_the_signature_as_it_is() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "templates.md"
    if not page.is_file():
        pytest.skip("needs docs/")
    text = page.read_text(encoding="utf-8")
    assert f"tmpl:{read_template('promptbert')}" in text
    for name in (*RULES, *Template.model_fields.keys() - {"name"}):
        assert f"`{name}`" in text or f"{name}:" in text, name
