"""Each preset against a plain reference, one sentence at a time, written from the paper's formula or its code.

Encoded one by one, too, the vectors agree to 1e-6 of their norm; in one batch, each of their numbers does.
"""

import string
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

from stsbench.encoders import transformer
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.template import read_template, template_names

SENTENCES = [
    "a",
    "Is the river high?",
    'She said "no", and left',
    " ".join(f"word{number} of" for number in range(25)),
    "  spaces  around ",
    "Bread, milk and eggs!",
]
MASKED = {
    "promptbert": ('This sentence of "{}" means [MASK].', 0),
    "promptbert-untuned": ('This sentence : "{}" means [MASK].', 0),
    "cot-bert": ('The sentence of "{}" means [MASK] , so it can be summarized as [MASK] .', 1),
    "sncse": ('This sentence : " {} " means [MASK] .', 0),
}
PLAIN = ("angle-bert", "uae", "bge", "gte", "e5", "instructor")
_DETAILS = (
    "The essence of a sentence is often captured by its main subjects and actions, while descriptive terms "
    "provide additional but less central details. With this in mind , this sentence : "
)
LAST_TOKEN = {
    "prompteol": ('This sentence : "{}" means in one word:"', -1),
    "pretended-cot": ('After thinking step by step , this sentence : "{}" means in one word:"', -2),
    "knowledge-enhancement": (_DETAILS + '"{}" means in one word:"', -2),
    "angle-llm": ('Summarize sentence "{}" in one word:"', -1),
    "metaeol": ("", -1),
}
ECHO = ("echo", "echo-mean", "echo-last")
ROBERTA = ("promptroberta", "promptroberta-denoised", "cot-roberta")
DENOISED = ("promptbert-denoised", "cot-bert-denoised")


class Pass(NamedTuple):
    """What a model makes of one text: its tokens, and every layer's output, shape (tokens, dimensions)."""

    ids: list[int]
    layers: list[Any]


@cache
def parts(folder):
    from transformers import AutoModel, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()


def passed(folder, text, **options):
    import torch

    tokenizer, model = parts(str(folder))
    ids = tokenizer(text)["input_ids"] if isinstance(text, str) else text
    with torch.no_grad():
        output = model(torch.tensor([ids]), output_hidden_states=True, **options)
    return Pass(ids, [layer[0] for layer in output.hidden_states])


def mask_of(folder, text, number=0, **options):
    found = passed(folder, text, **options)
    places = [at for at, token in enumerate(found.ids) if token == parts(str(folder))[0].mask_token_id]
    return found.layers[-1][places[number]]


def with_full_stop(sentence):
    return sentence + "." if len(sentence) > 0 and sentence[-1] not in ".?\"'" else sentence


def for_language_model(sentence):
    sentence = with_full_stop(sentence).replace('"', "'")
    return sentence[:-1] + "." if sentence[-1] == "?" else sentence


def masked(preset, folder, sentence):
    text, number = MASKED[preset]
    if preset == "sncse":
        ends = sentence.strip()[-1] in string.punctuation
        return mask_of(folder, text.format(sentence if ends else sentence + " ."))
    return mask_of(folder, text.format(with_full_stop(sentence)), number)


def denoised(preset, folder, sentence):
    """Return the mask's vector less that of the template with the same positions, or with padding in the gap."""
    import torch

    tokenizer, stopped = parts(str(folder))[0], with_full_stop(sentence)
    if preset == "promptbert-denoised":
        text, before, number = f'This sentence of "{stopped}" means [MASK].', 5, 0
        alone = tokenizer('This sentence of " " means [MASK].')["input_ids"]
        gap = len(tokenizer(text)["input_ids"]) - len(alone)
        positions = torch.arange(len(alone))
        positions[before:] += gap
        noise = mask_of(folder, alone, position_ids=positions.unsqueeze(0))
    else:
        end = '" means [MASK] , so it can be summarized as [MASK] .'
        text, number = f'The sentence of "{stopped}{end}', 1
        start, close = (tokenizer.encode(part, add_special_tokens=False) for part in ('The sentence of "', end))
        gap = len(tokenizer(text)["input_ids"]) - len(start) - len(close) - 2
        padding = [tokenizer.pad_token_id] * gap
        whole = [tokenizer.cls_token_id, *start, *padding, *close, tokenizer.sep_token_id]
        noise = mask_of(folder, whole, number)
    return mask_of(folder, text, number) - noise


def plain(preset, folder, sentence):
    match preset:
        case "uae" | "bge":
            return passed(folder, sentence).layers[-1][0]
        case "gte":
            return passed(folder, sentence).layers[-1].mean(0)
        case "angle-bert":
            last = passed(folder, sentence).layers[-1]
            return (last[0] + last.mean(0)) / 2
        case "e5":
            return passed(folder, "query: " + sentence).layers[-1].mean(0)
        case "instructor":
            instruction = "Represent the sentence for retrieving duplicate sentences; Input:"
            # Less the closing token, which the mask of the instruction leaves out.
            length = len(parts(str(folder))[0](instruction)["input_ids"]) - 1
            return passed(folder, instruction + sentence.strip()).layers[-1][length:].mean(0)
    raise AssertionError(preset)


def last_token(preset, folder, sentence):
    text, layer = LAST_TOKEN[preset]
    texts = read_template("metaeol").texts if preset == "metaeol" else (text.replace("{}", "{sentence}"),)
    assert all(text.endswith(' in one word:"') for text in texts)
    assert len(texts) == (8 if preset == "metaeol" else 1)
    asked = for_language_model(sentence)
    passes = [passed(folder, text.replace("{sentence}", asked)) for text in texts]
    return sum(one.layers[layer][-1] for one in passes) / len(texts)


def echo(preset, folder, sentence):
    tokenizer = parts(str(folder))[0]

    def tokens(text):
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    start = [tokenizer.bos_token_id, *tokens("Document:"), *tokens(sentence), *tokens("\nDocument again:")]
    last = passed(folder, [*start, *tokens(sentence), tokenizer.eos_token_id]).layers[-1]
    match preset:
        case "echo":
            return last[len(start) : -1].mean(0)
        case "echo-mean":
            return last[len(start) :].mean(0)
    return last[-1]


def roberta(preset, folder, sentence):
    import torch

    stopped, (tokenizer, model) = with_full_stop(sentence), parts(str(folder))
    if preset == "cot-roberta":
        text = f"The sentence of ' {stopped} ' means <mask> , so it can be summarized as <mask> ."
        return mask_of(folder, text, 1)
    text = f"This sentence : ' {stopped} ' means<mask>."
    if preset == "promptroberta":
        return mask_of(folder, text)
    alone = tokenizer("This sentence : ' ' means<mask>.")["input_ids"]
    before = len(tokenizer("This sentence : '")["input_ids"]) - 1
    # From 0, as PromptBERT's script has them, where those of the sentence's own pass begin at 2.
    positions = torch.arange(len(alone))
    positions[before:] += len(tokenizer(text)["input_ids"]) - len(alone)
    with torch.no_grad():
        vector = mask_of(folder, text) - mask_of(folder, alone, position_ids=positions.unsqueeze(0))
        return model.pooler.activation(model.pooler.dense(vector))


@cache
def loaded(folder):
    return load(folder, pooling="avg")


def assert_equal(folder, preset, theirs):
    # The weights are read once for all presets.
    encoder = loaded(str(folder)).with_template(read_template(preset))
    expected = np.stack([row.detach().numpy() for row in theirs])
    norms = np.linalg.norm(expected, axis=1, keepdims=True)

    def vectors(token_budget):
        with patch.dict(transformer._TOKEN_BUDGETS, cpu=token_budget):
            found = embed(encoder, SENTENCES[: len(theirs)], normalize=False, use_cache=False)
        return found.vectors[encoder.identity.use.pooling][found.rows]

    off = np.linalg.norm(vectors(1) - expected, axis=1) / norms[:, 0]
    assert off.max() < 1e-6, off
    # Of a difference of two vectors, rounding is measured by what they were before.
    bound = 2e-5 if "denoised" in preset else 1e-6
    assert (np.abs(vectors(100_000) - expected) / norms).max() < bound


@pytest.mark.minilm
@pytest.mark.parametrize("preset", [*MASKED, *DENOISED, *PLAIN])
def test_a_preset_for_encoders_equals_its_plain_reference(preset):
    from stsbench.encoders.checkpoint import packaged_model

    folder = packaged_model()
    assert folder is not None
    reference: Callable[..., Any] = masked if preset in MASKED else denoised if preset in DENOISED else plain
    assert_equal("minilm", preset, [reference(preset, folder, sentence) for sentence in SENTENCES])


@pytest.mark.parametrize("preset", ROBERTA)
def test_a_preset_for_roberta_equals_its_plain_reference(preset, asked_model):
    folder = asked_model("roberta")
    assert_equal(folder, preset, [roberta(preset, folder, sentence) for sentence in SENTENCES])


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("preset", [*LAST_TOKEN, *ECHO])
def test_a_preset_for_decoders_equals_its_plain_reference(preset, kind, asked_model):
    folder = asked_model(kind)
    reference = echo if preset in ECHO else last_token
    assert_equal(folder, preset, [reference(preset, folder, sentence) for sentence in SENTENCES[:4]])


def test_every_preset_is_held_against_a_reference():
    assert {*MASKED, *DENOISED, *PLAIN, *LAST_TOKEN, *ECHO, *ROBERTA} == set(template_names())
