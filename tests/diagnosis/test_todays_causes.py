"""The causes that people of today stumble over: each is found where it was planted, and none where it was not."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_words import sample_word_pieces

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.diagnosis.result import Diagnosis
from stsbench.encoders.plan import embed
from stsbench.encoders.use import ABOUT

Toys = Callable[..., StsData]
Vectors = NDArray[np.float64]

PEARSON = sb.protocol(metric="pearson")
"""Of sixty pairs Spearman's correlation has so few values that settings meet by chance."""

NEW = {
    "max_length",
    "prompt",
    "prompt_name",
    "prompts",
    "attention",
    "attention_mask",
    "padding_side",
    "similarity_in",
}


@pytest.fixture(autouse=True)
def _few_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try one template and few rules: others are tried elsewhere."""
    monkeypatch.setattr("stsbench.diagnosis.usage.RULE_SETS", ((), ("lower_case",)))
    monkeypatch.setitem(ABOUT, "template", replace(ABOUT["template"], tried=lambda: ("promptbert",)))


def made(folder: Path, kind: str = "bert", *, seed: int = 7, **config: Any) -> Path:
    """Make a checkpoint with random weights: an encoder with position embeddings, or a decoder without any."""
    import torch
    from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

    tokenizer = sample_word_pieces(200)
    same = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 48,
        "max_position_embeddings": 64,
        "pad_token_id": tokenizer.pad_token_id,
    }
    torch.manual_seed(seed)
    model = BertModel(BertConfig(**same | config)) if kind == "bert" else LlamaModel(LlamaConfig(**same | config))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def with_config(folder: Path, copy: Path, file: str = "config.json", **values: Any) -> Path:
    """Return a copy of a checkpoint of which one file says something else."""
    shutil.copytree(folder, copy)
    path = copy / file
    said = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps(said | values), encoding="utf-8")
    return copy


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("models") / "decoder", "llama")


@pytest.fixture
def data(toy_data: Toys) -> StsData:
    return toy_data("toy", pairs=60)


def load(folder: Path, **use: Any) -> Any:
    return sb.load(folder, device="cpu", **{"pooling": "avg"} | use)


def score(encoder: Any, data: StsData, **choices: Any) -> str:
    """Return what a plain run scores, to six digits, as a claim."""
    protocol = sb.protocol(**{"metric": "pearson"} | choices)
    record = sb.evaluate(encoder, data, protocol=protocol, intervals=sb.Intervals(None), use_cache=False)
    return f"{100 * (record.scores[0].value or 0):.6f}%"


def scored(data: StsData, similarities: Vectors) -> str:
    """Return Pearson's correlation with the gold scores, as a claim."""
    return f"{100 * np.corrcoef(data.pairs['gold'], similarities)[0, 1]:.6f}%"


def cosines(left: Vectors, right: Vectors) -> Vectors:
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.asarray((left * right).sum(axis=1) / norms)


def diagnosed(encoder: Any, claim: str, data: StsData, **options: Any) -> Diagnosis:
    same = {"protocol": PEARSON, "tolerance": 0.0005, "lengths": [], "use_cache": False}
    return sb.diagnose(encoder, claim, tasks=data, **same | options)


def changes(found: Diagnosis) -> dict[str, str]:
    assert found.explained, found.verdict
    return found.answer.explanations[0].best.choices


def not_tried(found: Diagnosis) -> str:
    assert found.further is not None
    return "; ".join(found.further.innocent)


# Attention: its kernel and its mask.


def test_a_planted_attention_kernel_is_found_in_half_precision(bert: Path, data: StsData) -> None:
    claim = score(load(bert, precision="bf16", attention="eager"), data)
    # Some other settings give the same score to four digits on some processors.
    found = diagnosed(load(bert, precision="bf16"), claim, data, tolerance=0.000001)
    assert changes(found) == {"attention": "eager"}
    assert "is what the attention kernel `eager` gives" in found.verdict
    assert any("--attention eager`" in remark for remark in found.remarks)
    assert "flash_attention_2 (it needs CUDA" in not_tried(found)


def test_in_full_precision_no_kernel_is_tried_for_a_gap_that_none_can_make(bert: Path, data: StsData) -> None:
    found = diagnosed(load(bert), "99.99", data)
    assert found.further is not None
    assert not any("attention" in way for way in found.further.tried)
    assert "attention kernels (in fp32 they agree to a millionth" in not_tried(found)
    assert any("Not tried, as it cannot be the cause here: " in note for note in found.notes)


@pytest.mark.parametrize(("planted", "own"), [("bidirectional", "causal"), ("causal", "bidirectional")])
def test_a_planted_mask_of_a_decoder_is_found(decoder: Path, data: StsData, planted: str, own: str) -> None:
    # A decoder is causal where nobody says another thing.
    asked = {"causal": "auto", "bidirectional": "bidirectional"}
    claim = score(load(decoder, attention_mask=asked[planted]), data)
    found = diagnosed(load(decoder, attention_mask=asked[own]), claim, data)
    assert changes(found) == {"attention_mask": planted}
    assert f"is what a {planted} attention mask gives" in found.verdict
    assert any(f"--attention-mask {planted}`" in remark for remark in found.remarks)


@pytest.mark.parametrize("planted", ["bidirectional", "causal"])
def test_where_a_setting_of_the_checkpoint_asks_for_a_mask_both_are_tried(
    decoder: Path, data: StsData, tmp_path: Path, planted: str
) -> None:
    # A release of Transformers may obey the setting or not: the other way is the cause in either.
    mine = load(with_config(decoder, tmp_path / "asks", is_causal=False))
    claim = score(load(decoder, attention_mask=planted), data)
    found = diagnosed(mine, claim, data)
    assert found.search.default.fits or changes(found) == {"attention_mask": planted}
    missed = diagnosed(mine, "99.99", data)
    assert missed.further is not None
    assert {"causal mask", "bidirectional mask"} <= set(missed.further.tried)


def test_an_encoder_that_a_configuration_made_a_decoder_of_has_the_other_mask_tried(
    bert: Path, data: StsData, tmp_path: Path
) -> None:
    found = diagnosed(
        load(with_config(bert, tmp_path / "decoder", is_decoder=True)), score(load(bert), data), data
    )
    assert changes(found) == {"attention_mask": "bidirectional"}


def test_an_encoder_has_no_causal_mask_tried_and_it_says_so(bert: Path, data: StsData) -> None:
    found = diagnosed(load(bert), "99.99", data)
    assert found.further is not None
    assert not any("mask" in way for way in found.further.tried)
    assert "a causal mask (its network is an encoder's)" in not_tried(found)


# Precision: of the network, and of the similarity.


@pytest.mark.parametrize(("stated", "precision"), [("bfloat16", "bf16"), ("float16", "fp16")])
def test_the_precision_that_a_checkpoint_states_is_tried_first_and_said_to_be_a_library_s_default(
    bert: Path, data: StsData, tmp_path: Path, stated: str, precision: str
) -> None:
    half = with_config(bert, tmp_path / stated, dtype=stated)
    found = diagnosed(load(half), score(load(bert, precision=precision), data), data)
    assert changes(found) == {"precision": precision}
    assert found.further is not None
    assert found.further.tried[0] == precision
    assert f"Its config.json states {stated}: Transformers 5 loads a checkpoint in that by default" in " ".join(
        found.remarks
    )
    back = diagnosed(load(half, precision=precision), score(load(bert), data), data)
    assert changes(back) == {"precision": "fp32"}
    assert f"whatever config.json states: {stated}" in " ".join(back.remarks)


@pytest.mark.parametrize("own", ["fp32", "fp16"])
def test_a_similarity_in_the_vectors_precision_is_found(bert: Path, data: StsData, own: str) -> None:
    import torch

    texts = [*data.pairs["sentence1"], *data.pairs["sentence2"]]
    embedded = embed(load(bert, precision="fp16"), texts, normalize=False, use_cache=False)
    unit = torch.nn.functional.normalize(torch.tensor(embedded.vectors["avg"][embedded.rows]).half(), dim=1)
    left, right = unit.split(len(texts) // 2)
    claim = scored(data, (left * right).sum(1).double().numpy())
    found = diagnosed(load(bert, precision=own), claim, data)
    assert changes(found) == {"similarity_in": "fp16"}
    assert "is what fp16 up to the similarity gives" in found.verdict
    said = " ".join(found.remarks)
    assert "sentence-transformers 3892, 3894" in said
    assert "--precision fp16`, after the vectors are rounded to that precision and compared in it" in said


# Prompts.

PROMPTS = {
    "prompts": {"query": "find: ", "document": "text: ", "sts": "alike: "},
    "default_prompt_name": None,
    "similarity_fn_name": "cosine",
}
_FILE = "config_sentence_transformers.json"


@pytest.mark.parametrize("name", PROMPTS["prompts"])
def test_a_planted_prompt_of_the_checkpoint_is_found_by_its_name(
    bert: Path, data: StsData, tmp_path: Path, name: str
) -> None:
    folder = with_config(bert, tmp_path / "prompted", _FILE, **PROMPTS)
    found = diagnosed(load(folder), score(load(folder, prompt_name=name), data), data)
    assert changes(found) == {"prompt_name": name}
    assert f"is what its prompt `{name}` gives" in found.verdict
    assert "with no prompt, your setting, the model gives" in found.verdict
    assert f"Its prompt `{name}` is {PROMPTS['prompts'][name]!r}." in found.remarks
    assert any(f"--prompt-name {name}`" in remark for remark in found.remarks)


def test_a_default_prompt_that_somebody_left_out_is_found(bert: Path, data: StsData, tmp_path: Path) -> None:
    folder = with_config(bert, tmp_path / "prompted", _FILE, **PROMPTS | {"default_prompt_name": "sts"})
    found = diagnosed(load(folder), score(load(folder, prompt=""), data), data)
    assert changes(found) == {"prompt": ""}
    assert "is what no prompt gives" in found.verdict
    assert "with prompt 'alike: ', your setting, the model gives" in found.verdict
    assert any("--prompt ''`" in remark for remark in found.remarks)


def test_a_planted_prompt_for_each_side_is_found(bert: Path, data: StsData, tmp_path: Path) -> None:
    folder = with_config(bert, tmp_path / "prompted", _FILE, **PROMPTS)
    found = diagnosed(load(folder), score(load(folder, prompts="query,document"), data), data)
    assert changes(found) == {"prompts": "query,document"}
    assert any("behind 'find: ', the second behind 'text: '" in remark for remark in found.remarks)
    assert any("--prompts query,document`" in remark for remark in found.remarks)


def test_without_prompts_of_its_own_none_is_tried_and_it_says_so(bert: Path, data: StsData) -> None:
    found = diagnosed(load(bert), "99.99", data)
    assert found.further is not None
    assert not any("prompt " in way for way in found.further.tried)
    assert "named prompts (its files name none)" in not_tried(found)


# Padding.


def in_batches(folder: Path, texts: Sequence[str], side: str, batches: Sequence[Sequence[int]]) -> Any:
    """Yield of each batch its places, the last layer's states, and its mask, by Transformers alone."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    tokenizer.padding_side = side
    for rows in batches:
        read = tokenizer([texts[row] for row in rows], padding=True, return_tensors="pt")
        with torch.inference_mode():
            states = model(input_ids=read["input_ids"], attention_mask=read["attention_mask"]).last_hidden_state
        yield rows, states.double().numpy(), read["attention_mask"].numpy()


def of_sentence_transformers(texts: Sequence[str]) -> list[list[int]]:
    order = np.argsort([-len(text) for text in texts])
    return [order[start : start + 32].tolist() for start in range(0, len(order), 32)]


def of_senteval(data: StsData) -> list[list[int]]:
    pairs = data.pairs.reset_index(drop=True)
    words = [pairs[side].str.split().map(len) for side in ("sentence1", "sentence2")]
    sorted_pairs = pairs.assign(one=words[0], two=words[1]).sort_values(["one", "two", "gold"], kind="stable")
    return [part.index.tolist() for _, part in sorted_pairs.groupby("subset", sort=False)]


PADDINGS: dict[str, tuple[str, str, str, Callable[[Any, Any], Any]]] = {
    "left": ("bert", "avg", "left", lambda states, mask: (states * mask[..., None]).sum(1) / mask.sum(1)[:, None]),
    "left, first column": ("bert", "cls_before_pooler", "left", lambda states, mask: states[:, 0]),
    "left, read as right": (
        "decoder",
        "last",
        "left",
        lambda states, mask: states[np.arange(len(mask)), mask.sum(1) - 1],
    ),
    "right, read as left": ("decoder", "last", "right", lambda states, mask: states[:, -1]),
    "right, read with the padding": ("bert", "avg", "right", lambda states, mask: states.mean(1)),
}


@pytest.mark.parametrize("name", PADDINGS)
def test_a_planted_mistake_about_the_padding_is_found(
    request: pytest.FixtureRequest, data: StsData, name: str
) -> None:
    model, pooling, side, read = PADDINGS[name]
    folder = request.getfixturevalue(model)
    sides = []
    for column in ("sentence1", "sentence2"):
        texts = data.pairs[column].tolist()
        batches = of_senteval(data) if "right, " in name else of_sentence_transformers(texts)
        vectors = np.zeros((len(texts), 32))
        for rows, states, mask in in_batches(folder, texts, side, batches):
            vectors[rows] = read(states, mask)
        sides.append(vectors)
    found = diagnosed(load(folder, pooling=pooling), scored(data, cosines(*sides)), data)
    assert changes(found) == {"padding_side": name.replace("left, first column", "left")}
    assert "padding" in found.verdict
    assert any("after the sentences are padded and read so" in remark for remark in found.remarks)


def test_padding_on_the_left_is_read_as_sentence_transformers_reads_it(bert: Path, data: StsData) -> None:
    library = pytest.importorskip("sentence_transformers")
    model = library.SentenceTransformer(str(bert), device="cpu")
    model.tokenizer.padding_side = "left"
    sides = [model.encode(data.pairs[side].tolist()).astype(float) for side in ("sentence1", "sentence2")]
    found = diagnosed(load(bert), scored(data, cosines(*sides)), data)
    assert changes(found) == {"padding_side": "left"}


def test_where_no_padding_can_be_mistaken_none_is_tried_and_it_says_so(decoder: Path, data: StsData) -> None:
    found = diagnosed(load(decoder), "99.99", data)
    assert found.further is not None
    # Its positions turn queries and keys: only what is between two tokens counts, on either side.
    assert [way for way in found.further.tried if "padding" in way] == ["padding right, read with the padding"]
    templated = diagnosed(load(decoder, template="promptbert", pooling="avg"), "99.99", data)
    assert "the padding's side (the template says it)" in not_tried(templated)


# The maximum length that each file of a checkpoint states.


@pytest.mark.parametrize(
    ("file", "key"),
    [("tokenizer_config.json", "model_max_length"), ("sentence_bert_config.json", "max_seq_length")],
)
def test_a_length_that_a_file_of_the_checkpoint_states_is_tried_and_its_file_named(
    bert: Path, data: StsData, tmp_path: Path, file: str, key: str
) -> None:
    cut = with_config(bert, tmp_path / "cut", file, **{key: 5})
    claim = score(load(bert, max_length=5), data)
    found = diagnosed(load(cut, max_length=64), claim, data, lengths=None)
    assert changes(found) == {"max_length": "5"}
    assert f"5 sub-words is what {key} of {file} says" in " ".join(found.remarks)


def test_where_no_length_cuts_a_sentence_it_says_so(bert: Path, data: StsData) -> None:
    found = diagnosed(load(bert), "99.99", data, lengths=None)
    assert "a maximum length (none cuts a sentence elsewhere)" in not_tried(found)


# Innocence.


@pytest.mark.parametrize("seed", range(20))
def test_no_cause_of_today_is_named_where_it_is_innocent(toy_data: Toys, tmp_path: Path, seed: int) -> None:
    plain = made(tmp_path / "plain", "bert" if seed % 2 else "llama", seed=seed)
    prompted = with_config(plain, tmp_path / "prompted", _FILE, **PROMPTS)
    folder = with_config(prompted, tmp_path / "clean", "tokenizer_config.json", model_max_length=7)
    data = toy_data("toy", pairs=40, seed=seed)
    # Half a precision of their own has kernels and the similarity's precision tried, too.
    precision = "bf16" if seed >= 15 and seed % 3 == 0 else "fp32"
    mine = load(folder, pooling=("avg", "last")[seed % 4 < 2], precision=precision, max_length=64)
    old = [
        lambda: score(load(folder, template="promptbert", max_length=64), data),
        lambda: score(load(folder, pooling=mine.use.pooling, precision="bf16", max_length=64), data),
        lambda: score(load(folder, pooling=mine.use.pooling + "@-2", max_length=64), data),
        lambda: f"{float(score(mine, data).rstrip('%')) + 1.2345:.4f}%",
    ][seed // 5]
    found = diagnosed(mine, old(), data, lengths=None)
    assert {7, 64} <= {length for axis in found.grid.axes if axis.name == "max_length" for length in axis.values}
    if seed < 5 or seed >= 15:
        assert found.further is not None
        assert any("padding" in way for way in found.further.tried), "the new causes were looked at"
    causes = found.answer.explanations
    candidates = [candidate for cause in causes for candidate in (cause.best, *cause.alike)]
    # What takes more changes is listed behind, with the share of all numbers that it would explain.
    named = {name for each in candidates if each.count == causes[0].best.count for name in each.choices}
    assert not named & NEW
    assert found.explained == (seed < 15), found.verdict
