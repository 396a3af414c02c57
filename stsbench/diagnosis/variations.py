"""The choices that need other vectors: prompts, templates, rules, layers, precisions, attention.

To add a cause, add an `Axis` to `VARIATIONS`. The search, the verdict, the table and the JSON need no change.
"""

from collections.abc import Container, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from stsbench.base.errors import UserError
from stsbench.diagnosis.axes import POOLING, Axis, Change, Way, of_use, single_ways
from stsbench.encoders.backends import other_masks
from stsbench.encoders.poolers import AUTO, POOLING_NAMES, parse_pooling, pooling_name
from stsbench.encoders.prompts import named_prompts
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.template import NO_TEMPLATE, SENTENCE, read_template, template_names
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import ATTENTIONS, BIDIRECTIONAL, CAUSAL, FLASH, FP32, MASKS, PRECISIONS, TORCH, Use

RULE_SETS = (
    NO_TEMPLATE,
    "full_stop",
    "spaced_full_stop",
    "full_stop+single_quotes+question_to_full_stop",
    "single_quotes",
    "lower_case",
    "strip",
)
"""Sentence rules that public code applies."""

_NEAR_LAYERS = 3
"""How many layers before the last are tried with other changes."""

_LOST_BY_PRECISION = 0.5
"""The most points by which half precision is likely to change a score."""

_LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def differences(way: Way, use: Use) -> dict[str, Any]:
    """Returns what a way sets otherwise than a use: fields of `Use`, and `rules` for sentences."""
    return {name: value for name, value in way.fields.items() if value != getattr(use, name, ())}


def used_as(encoder: Encoder, way: Way) -> Encoder:
    """Returns an encoder, used in this way."""
    changes = {name: value for name, value in differences(way, encoder.identity.use).items() if name != "rules"}
    return encoder.with_use(**changes) if changes and isinstance(encoder, TransformerEncoder) else encoder


def other_ways(encoder: Encoder, gap: float) -> list[Way]:
    """Returns the ways to try, the most plausible and cheapest first; for `gap` see `single_ways`."""
    ways = single_ways(VARIATIONS, encoder, gap)
    return [way for way in ways if differences(way, encoder.identity.use)]


def with_poolings(encoder: Encoder, way: Way, known: Container[str]) -> Iterator[Way]:
    """Yields a way, and its variants with other poolings of the same forward pass.

    `known` has the poolings of the encoder's own vectors. If only some sentences change, no other layer is read:
    those of unchanged sentences are not cached.
    """
    yield way
    fields, use = way.fields, encoder.identity.use
    if not isinstance(encoder, TransformerEncoder) or set(fields) == {"pooling"}:
        return
    own = fields.get("pooling", use.pooling)
    poolings = [name for name in (use.pooling, *POOLING_NAMES) if name in known]
    if fields.get("template", use.template) is None:
        poolings = [name for name in poolings if not parse_pooling(name).is_of_template]
    if way[0].axis.moves != "some":
        poolings += _at_layers(own, encoder)[1 : 1 + _NEAR_LAYERS]
    yield from (way.plus(_to_pooling(own, name)) for name in dict.fromkeys(poolings) if name != own)


def _to_pooling(own: str, pooling: str) -> Change:
    """Returns the change to another pooling; if that reads one other layer, it is a change of the layer."""
    before, after = parse_pooling(own), parse_pooling(pooling)
    if len(before.layers) == len(after.layers) == 1 and replace(before, layers=after.layers) == after:
        (layer,) = after.layers
        return replace(_LAYER, options={layer: f"--pooling {pooling}"}).change(layer, pooling=pooling)
    return replace(POOLING, cost=1).change(pooling, pooling=pooling)


def _at_layers(pooling: str, encoder: TransformerEncoder) -> list[str]:
    """Returns a pooling at each layer, the last first; none if it has a head."""
    reading = parse_pooling(pooling)
    place = f"{reading.place}{reading.number if reading.number > 1 else ''}"
    layers = range(-1, -number_of_layers(encoder) - 2, -1)
    return [] if reading.head else [pooling_name(place, layers=[n] if n < -1 else []) for n in layers]


def number_of_layers(encoder: TransformerEncoder) -> int:
    """Returns the number of layers; 0 if the configuration does not state it."""
    config = encoder.checkpoint.json("config.json")
    return next((int(config[name]) for name in _LAYER_COUNTS if isinstance(config.get(name), int)), 0)


def _prompt_names(axis: Axis, encoder: TransformerEncoder) -> Iterator[Change]:
    prompts = named_prompts(encoder.checkpoint)
    first_names = {text: name for name, text in reversed(prompts.items())}
    axis = replace(axis, meanings={name: f"The prompt `{name}` is {text!r}." for name, text in prompts.items()})
    for name, text in prompts.items():
        if name == first_names[text]:
            yield axis.change(name, prompt=text)


def _rules(axis: Axis, encoder: Encoder) -> Iterator[Change]:
    template = encoder.identity.use.own_template
    for name in RULE_SETS:
        rules = () if name == NO_TEMPLATE else tuple(name.split("+"))
        if template is None:
            yield axis.change(name, rules=rules)
        else:
            yield axis.change(name, template=template.model_copy(update={"rules": rules}))


def _layers(_axis: Axis, encoder: TransformerEncoder) -> Iterator[Change]:
    own = encoder.use.pooling
    for pooling in _at_layers(own, encoder):
        if parse_pooling(pooling) != parse_pooling(own):
            yield _to_pooling(own, pooling)


def _kernels(axis: Axis, encoder: TransformerEncoder) -> Iterator[Change]:
    has_flash = encoder.use.device == "cuda" and find_spec("flash_attn")
    for name in ATTENTIONS:
        if name != encoder.kernel and (has_flash or name != FLASH):
            yield axis.change(name, attention=name)


def _has_prompts(encoder: TransformerEncoder, _gap: float) -> bool:
    return encoder.use.template is None  # it replaces them


def _reads_one_layer(encoder: TransformerEncoder, _gap: float) -> bool:
    return len(parse_pooling(encoder.use.pooling).layers) == 1


def _kernels_differ(encoder: TransformerEncoder, gap: float) -> bool:
    config = encoder.checkpoint.json("config.json")
    # In fp32 they agree to a millionth.
    is_visible = encoder.use.precision != FP32 or bool(config.get("attn_logit_softcapping"))
    return is_visible and _is_torch(encoder, gap)


def _is_torch(encoder: TransformerEncoder, _gap: float) -> bool:
    return encoder.use.backend == TORCH  # others have their own kernel, and have compiled one mask


def _masks(axis: Axis, encoder: TransformerEncoder) -> Iterator[Change]:
    """Yields the mask that a decoder does not have; both if its code or configuration sets one."""
    for mask in other_masks(encoder.checkpoint) if encoder.use.attention_mask == AUTO else MASKS:
        yield axis.change(mask, attention_mask=mask)


def _templates(axis: Axis, encoder: TransformerEncoder) -> Iterator[Change]:
    """Yields the known templates that the encoder can read."""
    own, mine = encoder.use.pooling, encoder.use.own_template
    if mine is not None:
        yield axis.change(NO_TEMPLATE, template=None, pooling="avg" if parse_pooling(own).is_of_template else own)
    templates = map(read_template, template_names())
    for template in sorted(templates, key=lambda t: (len(t.texts), t.pooling == "last", t.name)):
        is_plain = template.texts == (f"{{{SENTENCE}}}",) and not template.rules and template.subtract == "no"
        if is_plain or (mine is not None and mine.digest == template.digest):
            continue
        try:
            encoder.with_template(template).tokenize(["a"])
        except UserError:  # its tokenizer has no mask, for example
            continue
        yield axis.change(template.name, template=template, prompt="", pooling=template.reading)


def _precisions(axis: Axis, encoder: TransformerEncoder) -> Iterator[Change]:
    """Yields the precision first that the configuration states, because Transformers 5 loads it by default."""
    if stated := _stated_precision(encoder):
        meaning = "Transformers loads in float32 before version 5, then as config.json states: "
        axis = replace(axis, meanings=dict.fromkeys((stated, FP32), f"{meaning}{PRECISIONS[stated]}."))
    for name in sorted(PRECISIONS, key=lambda name: name != stated):
        if name != encoder.use.precision:
            yield axis.change(name, precision=name, backend=TORCH)


def _is_rounding_likely(encoder: TransformerEncoder, gap: float) -> bool:
    return gap < _LOST_BY_PRECISION or _stated_precision(encoder) not in {"", FP32}


def _stated_precision(encoder: TransformerEncoder) -> str:
    config = encoder.checkpoint.json("config.json")
    dtype = str(config.get("dtype") or config.get("torch_dtype") or "").removeprefix("torch.")
    return next((name for name, known in PRECISIONS.items() if known == dtype), "")


def _of_network(name: str, cost: int, applies: Any = lambda *_: True, **attributes: Any) -> Axis:
    """Returns an axis that applies only to networks."""

    def applies_to(encoder: Encoder, gap: float) -> bool:
        return isinstance(encoder, TransformerEncoder) and applies(encoder, gap)

    return of_use(name, cost=cost, applies=applies_to, **attributes)


_RULE_MEANINGS = {
    "full_stop": "`full_stop` adds a full stop unless the sentence ends in . ? \" or ' (PromptBERT).",
    "spaced_full_stop": "`spaced_full_stop` adds ` .` unless the sentence ends in punctuation (SNCSE).",
}
_MASK_MEANINGS = {
    CAUSAL: "Releases of Transformers that ignore a setting for bidirectional attention use a causal mask.",
    BIDIRECTIONAL: "LLM2Vec and others use decoders as encoders with a bidirectional mask.",
}
_PRECISION = {"tries": _precisions, "moves": "bits"}
_LAYER = _of_network("layer", 5, _reads_one_layer, tries=_layers, option="", labels={-1: "the last layer"})

VARIATIONS = (
    _of_network("prompt", 1, values=("",), label="prompt {value!r}", labels={"": "no prompt"}),
    _of_network("precision", 2, _is_rounding_likely, **_PRECISION),
    _of_network("prompt_name", 3, _has_prompts, tries=_prompt_names, label="prompt {value}"),
    Axis("rules", cost=4, tries=_rules, moves="some", label="sentence rule {value}", meanings=_RULE_MEANINGS),
    _LAYER,
    _of_network("attention", 6, _kernels_differ, tries=_kernels, moves="bits", label="attention kernel {value}"),
    _of_network(
        "attention_mask", 7, _is_torch, tries=_masks, label="{value} attention mask", meanings=_MASK_MEANINGS
    ),
    _of_network("template", 8, tries=_templates, labels={NO_TEMPLATE: "no template"}),
    _of_network("precision", 9, lambda encoder, gap: not _is_rounding_likely(encoder, gap), **_PRECISION),
)
"""What is tried beyond the grid."""
