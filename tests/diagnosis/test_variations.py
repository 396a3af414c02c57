"""Beyond the grid: planted changes are found and named, within a time budget, and none is named without cause."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import sample_word_pieces, save_tiny

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.data.tables import StsData
from stsbench.diagnosis.axes import Axis, Change, Way
from stsbench.diagnosis.result import Diagnosis
from stsbench.diagnosis.variations import used_as
from stsbench.encoders.template import RULES, read_template

PEARSON = sb.protocol(metric="pearson")
"""Of sixty pairs Spearman's correlation has so few values that settings meet by chance."""

FILE = "config_sentence_transformers.json"
PROMPTS = {"prompts": {"query": "find: ", "document": "text: ", "sts": "alike: "}, "default_prompt_name": None}


@pytest.fixture(autouse=True)
def _few_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try few templates and rules: the passes are the same for all."""
    rules = ("none", "full_stop", "lower_case", "single_quotes")
    monkeypatch.setattr("stsbench.diagnosis.variations.RULE_SETS", rules)
    monkeypatch.setattr("stsbench.diagnosis.variations.template_names", lambda: ("e5", "promptbert"))


def make(folder: Path, kind: str = "bert", *, seed: int = 7) -> Path:
    """Make a checkpoint with random weights: an encoder with position embeddings, or a decoder without any."""
    tokenizer = sample_word_pieces(200)
    return save_tiny(folder, tokenizer, kind, seed=seed, pad_token_id=tokenizer.pad_token_id)


def with_config(folder: Path, copy: Path, file: str = "config.json", **values: Any) -> Path:
    """Return a copy of a checkpoint with other values in one file."""
    shutil.copytree(folder, copy)
    path = copy / file
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps(content | values), encoding="utf-8")
    return copy


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return checkpoints by kind."""
    folder = tmp_path_factory.mktemp("models")
    bert, decoder = make(folder / "bert"), make(folder / "decoder", "llama")
    return {
        "bert": bert,
        "decoder": decoder,
        "prompted": with_config(bert, folder / "prompted", FILE, **PROMPTS),
        "default": with_config(bert, folder / "default", FILE, **PROMPTS | {"default_prompt_name": "sts"}),
        "bf16": with_config(bert, folder / "bf16", dtype="bfloat16"),
        "fp16": with_config(bert, folder / "fp16", dtype="float16"),
        "is_decoder": with_config(bert, folder / "is_decoder", is_decoder=True),
        "is_causal": with_config(decoder, folder / "is_causal", is_causal=False),
    }


@pytest.fixture
def data(toy_data: Callable[..., StsData]) -> StsData:
    """Return pairs of which some sentences end in a full stop or a question mark, or have quotation marks."""
    made = toy_data("toy", pairs=60)
    ends = [".", "", "?", ' "so"', ""]
    pairs = made.pairs.copy()
    pairs["sentence1"] = [f"{text}{ends[place % 5]}".title() for place, text in enumerate(pairs["sentence1"])]
    pairs["sentence2"] = [f"{text}{ends[place % 3]}" for place, text in enumerate(pairs["sentence2"])]
    return replace(made, pairs=pairs)


def load(folder: Path, **use: Any) -> Any:
    return sb.load(folder, device="cpu", **({} if "template" in use else {"pooling": "avg"}) | use)


def score(encoder: Any, data: StsData, **choices: Any) -> str:
    """Return the score of a plain run, to six digits, as a claim."""
    protocol = sb.protocol(**{"metric": "pearson"} | choices)
    record = sb.evaluate(encoder, data, protocol=protocol, intervals=sb.Intervals(None), use_cache=False)
    return f"{100 * (record.scores[0].value or 0):.6f}%"


def diagnose(encoder: Any, claim: str, data: StsData, **options: Any) -> Diagnosis:
    same = {"protocol": PEARSON, "tolerance": 0.0005, "lengths": [], "use_cache": False}
    return sb.diagnose(encoder, claim, data=data, **same | options)


def changes(diagnosis: Diagnosis) -> dict[str, str]:
    assert diagnosis.explained, diagnosis.verdict
    return diagnosis.answer.explanations[0].choices


BARE = read_template("promptbert").model_copy(update={"rules": ()})

KERNEL, BOTH = {"precision": "bf16", "attention": "eager"}, {"attention_mask": "bidirectional"}

PLANTED: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, str] | None, str]] = [
    # model, your use, the planted use, what is found (None: the same), what the remarks contain
    ("bert", {}, {"template": "promptbert"}, None, "--template promptbert`"),
    ("bert", {"template": "promptbert"}, {"pooling": "avg"}, {"template": "none"}, "--template none`"),
    ("bert", {"template": "promptbert"}, {"template": BARE}, {"rules": "none"}, "no option for"),
    ("bert", {}, {"pooling": "avg@-2"}, {"layer": "-2"}, "add `--tasks toy --pooling avg@-2` to"),
    ("bert", {}, {"precision": "bf16"}, None, "--precision bf16`"),
    ("bert", {"precision": "bf16"}, KERNEL, {"attention": "eager"}, "--attention eager`"),
    ("bf16", {}, {"precision": "bf16"}, None, "as config.json states: bfloat16"),
    ("fp16", {"precision": "fp16"}, {}, {"precision": "fp32"}, "as config.json states: float16"),
    ("decoder", BOTH, {}, {"attention_mask": "causal"}, "--attention-mask causal`"),
    ("decoder", {}, BOTH, None, "--attention-mask bidirectional`"),
    ("prompted", {}, {"prompt_name": "sts"}, None, "`sts` is 'alike: '"),
    ("default", {}, {"prompt": ""}, None, "--prompt ''`"),
]


@pytest.mark.parametrize("place", range(len(PLANTED)), ids=[f"{each[0]}-{each[4]}" for each in PLANTED])
def test_a_planted_change_is_found_with_the_option_that_gives_it(
    models: dict[str, Path], data: StsData, place: int
) -> None:
    model, yours, planted, expected, remark = PLANTED[place]
    claim = score(load(models[model], **planted), data)
    # Some other settings give the score of another kernel to four digits.
    found = diagnose(load(models[model], **yours), claim, data, tolerance=1e-6 if planted is KERNEL else 0.0005)
    assert changes(found) == (planted if expected is None else expected)
    assert remark in " ".join([*found.remarks, found.sentence])
    assert found.answer is not found.search
    frame = found.frame[found.frame["variation"] == found.answer.explanations[0].changes[0].label]
    assert np.abs(frame["score"] - float(claim.rstrip("%"))).min() < 1e-3
    if model == "default":
        assert found.further is not None
        assert found.further.tried == ["no prompt"], "the first way that is tried"


@pytest.mark.parametrize("rule", ["full_stop", "lower_case", "single_quotes"])
def test_a_planted_rule_is_found(hash_encode: Callable[..., Any], data: StsData, rule: str) -> None:
    def reads_all(sentences: list[str]) -> Any:
        return hash_encode([text.replace(".", " .").replace('"', ' " ').replace("'", " ' ") for text in sentences])

    sides = {side: data.pairs[side].map(RULES[rule]) for side in ("sentence1", "sentence2")}
    claim = score(reads_all, replace(data, pairs=data.pairs.assign(**sides)))
    assert changes(diagnose(reads_all, claim, data)) == {"rules": rule}


@pytest.mark.parametrize(
    ("model", "use", "tried", "innocent"),
    [
        ("bert", {}, {"layer -2 and 1 more"}, "causal"),
        ("bert", {}, {"template promptbert"}, "prompt "),
        ("bert", {"template": "promptbert"}, {"no template"}, "causal"),
        ("is_decoder", {}, {"bidirectional attention mask"}, "attention kernel"),
        ("is_causal", {}, {"causal attention mask", "bidirectional attention mask"}, "attention kernel"),
    ],
    ids=range(5),
)
def test_only_what_can_matter_to_the_checkpoint_is_tried(
    models: dict[str, Path], data: StsData, model: str, use: dict, tried: set[str], innocent: str
) -> None:
    found = diagnose(load(models[model], **use), "99.99", data, lengths=None)
    assert found.further is not None
    assert tried <= set(found.further.tried)
    assert not any(way.startswith(innocent) for way in [*found.further.tried, *found.further.untried])
    assert "settings beyond the grid: the nearest" in found.verdict


def test_without_time_nothing_is_tried_and_the_note_names_what_is_left(
    models: dict[str, Path], data: StsData
) -> None:
    assert diagnose(load(models["bert"]), "99.99", data, budget=0).further is None
    found = diagnose(load(models["bert"]), "99.99", data, budget=1e-9)
    assert found.further is not None
    assert (found.further.tried, found.further.sentences) == ([], 0)
    assert any("Not tried for lack of time" in note for note in found.notes)


def test_a_way_that_fails_is_named_and_the_others_are_tried(
    models: dict[str, Path], data: StsData, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(own: Any, way: Way) -> Any:
        if way.fields.get("precision") == "bf16":
            raise UserError("bf16 does not fit in memory.")
        return used_as(own, way)

    monkeypatch.setattr("stsbench.diagnosis.diagnose.used_as", refuses)
    found = diagnose(load(models["bert"]), "99.99", data)
    assert found.further is not None
    assert any("(bf16 does not fit in memory)" in way for way in found.further.untried)
    assert "layer -2 and 1 more" in found.further.tried


def test_a_cause_is_an_entry_of_the_list(hash_encode: Any, data: StsData, monkeypatch: pytest.MonkeyPatch) -> None:
    def axis(rule: str, cost: int, most: float) -> Axis:
        def tries(own: Axis, _encoder: Any) -> list[Change]:
            return [own.change("rule", rules=(rule,))]

        return Axis(rule, cost=cost, applies=lambda _, gap: gap < most, tries=tries)

    axes = [axis("full_stop", 3, 100), axis("strip", 1, 0), axis("lower_case", 2, 100)]
    monkeypatch.setattr("stsbench.diagnosis.variations.VARIATIONS", axes)
    further = diagnose(hash_encode, "99.99", data).further
    assert further is not None
    assert further.tried == ["lower case rule", "full stop rule"]


@pytest.mark.parametrize("seed", range(6))
def test_no_cause_is_named_that_was_not_planted(toy_data: Any, tmp_path: Path, seed: int) -> None:
    plain = make(tmp_path / "plain", "bert" if seed % 2 else "llama", seed=seed)
    folder = with_config(plain, tmp_path / "prompted", FILE, **PROMPTS)
    data = toy_data("toy", pairs=40, seed=seed)
    mine = load(folder, pooling=("avg", "last")[seed % 4 < 2], max_length=64)
    planted, claim = [
        ({"template"}, lambda: score(load(folder, template="promptbert", max_length=64), data)),
        (
            {"precision"},
            lambda: score(load(folder, pooling=mine.use.pooling, precision="bf16", max_length=64), data),
        ),
        (set(), lambda: f"{float(score(mine, data).rstrip('%')) + 1.2345:.4f}%"),
    ][seed // 2]
    found = diagnose(mine, claim(), data, lengths=None, tolerance=5e-5)
    assert found.explained == bool(planted), found.verdict
    causes = found.answer.explanations
    candidates = [candidate for cause in causes for candidate in (cause, *cause.alike)]
    named = {name for each in candidates if each.count == causes[0].count for name in each.choices}
    innocent = {"prompt", "prompt_name", "prompts", "attention", "attention_mask", "max_length"}
    assert not named & innocent
