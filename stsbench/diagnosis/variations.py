"""The choices that need other vectors: prompts, templates, rules, layers, precisions, attention.

To add a cause, write a function that yields the `Way`s to try with a checkpoint, the most plausible first, and
name it in `other_ways`. The search, the verdict, the table and the JSON need no change.
"""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from stsbench.base.errors import UserError
from stsbench.diagnosis.axes import POOLING, Axis, Change, of_use
from stsbench.encoders.backends import other_masks
from stsbench.encoders.poolers import AUTO, POOLING_NAMES, parse_pooling, pooling_name
from stsbench.encoders.prompts import named_prompts
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.template import NO_TEMPLATE, SENTENCE, read_template, template_names
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import (
    ATTENTIONS,
    BIDIRECTIONAL,
    CAUSAL,
    FLASH,
    FP32,
    MASKS,
    PRECISIONS,
    TORCH,
    Use,
    names,
)

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

_PROMPT = of_use("prompt", label="prompt {value!r}", labels={"": "no prompt"})
_PROMPT_NAME = of_use("prompt_name", label="prompt {value}")
_KERNEL = of_use("attention", label="attention kernel {value}")
_TEMPLATE = of_use("template", labels={NO_TEMPLATE: "no template"})
_PRECISION = of_use("precision")
_LAYER = Axis("layer", labels={-1: "the last layer"})
_RULES = Axis(
    "rules",
    label="sentence rule {value}",
    meanings={
        "full_stop": "`full_stop` adds a full stop unless the sentence ends in . ? \" or ' (PromptBERT).",
        "spaced_full_stop": "`spaced_full_stop` adds ` .` unless the sentence ends in punctuation (SNCSE).",
    },
)
_MASK = of_use(
    "attention_mask",
    label="{value} attention mask",
    meanings={
        CAUSAL: "Releases of Transformers that ignore a setting for bidirectional attention use a causal mask.",
        BIDIRECTIONAL: "LLM2Vec and others use decoders as encoders with a bidirectional mask.",
    },
)


@dataclass(frozen=True)
class Way:
    """A way of using the encoder.

    Attributes:
        use: how it is used.
        changes: how that differs from yours.
        rules: the changes to the sentence in order, if no template makes them.
    """

    use: Use
    changes: tuple[Change, ...] = ()
    rules: tuple[str, ...] = ()

    def changed(self, axis: Axis, value: Any, meaning: str = "", **fields: Any) -> "Way":
        """Returns the way with another value of an axis, which sets these fields of `Use`."""
        axis = axis if not meaning else replace(axis, meanings={value: meaning})
        return replace(self, use=replace(self.use, **fields), changes=(*self.changes, Change(axis, value)))

    def with_pooling(self, pooling: str) -> "Way":
        """Returns the way with another pooling; a pooling that reads one other layer is a change of the layer."""
        before, after = parse_pooling(self.use.pooling), parse_pooling(pooling)
        if len(before.layers) == len(after.layers) == 1 and replace(before, layers=after.layers) == after:
            (layer,) = after.layers
            return self.changed(replace(_LAYER, options={layer: f"--pooling {pooling}"}), layer, pooling=pooling)
        return self.changed(POOLING, pooling, pooling=pooling)

    @property
    def forward_pass(self) -> tuple[Use, tuple[str, ...]]:
        """What distinguishes forward passes: one pass gives all poolings and layers."""
        return replace(self.use, pooling=""), self.rules

    def encoder(self, own: Encoder) -> Encoder:
        """Returns your encoder, used in this way."""
        if not isinstance(own, TransformerEncoder):
            return own
        values = {name: getattr(self.use, name) for name in names("encoding")}
        changes = {name: value for name, value in values.items() if value != getattr(own.use, name)}
        return own.with_use(**changes) if changes else own


def other_ways(encoder: Encoder, gap: float) -> list[Way]:
    """Returns the ways to try, the most plausible and cheapest first.

    `gap` is the difference between the claim and your setting's score, in points.
    """
    own, kinds = Way(encoder.identity.use), list[Callable[[Any, Way], Iterator[Way]]]([_rules])
    if isinstance(encoder, TransformerEncoder):
        own = Way(encoder.use)
        kinds = [_no_prompt, _prompt_names, _rules, _layers, _kernels, _masks, _templates]
        is_likely = gap < _LOST_BY_PRECISION or _stated_precision(encoder) not in {"", FP32}
        kinds.insert(1 if is_likely else len(kinds), _precisions)
    ways = [way for kind in kinds for way in kind(encoder, own)]
    return [way for way in ways if (way.use, way.rules) != (own.use, own.rules)]


def with_poolings(encoder: Encoder, way: Way, known: Container[str]) -> Iterator[Way]:
    """Yields a way, and its variants with other poolings of the same forward pass.

    `known` has the poolings of the encoder's own vectors. If only the sentences change, no other layer is read:
    those of unchanged sentences are not cached.
    """
    yield way
    own, axis = way.use.pooling, way.changes[0].axis
    if not isinstance(encoder, TransformerEncoder) or axis == _LAYER:
        return
    poolings = [name for name in (encoder.use.pooling, *POOLING_NAMES) if name in known]
    if way.use.own_template is None:
        poolings = [name for name in poolings if not parse_pooling(name).is_of_template]
    if axis != _RULES:
        poolings += _at_layers(own, encoder)[1 : 1 + _NEAR_LAYERS]
    yield from (way.with_pooling(pooling) for pooling in dict.fromkeys(poolings) if pooling != own)


def _no_prompt(_encoder: TransformerEncoder, own: Way) -> Iterator[Way]:
    yield own.changed(_PROMPT, "", prompt="")


def _prompt_names(encoder: TransformerEncoder, own: Way) -> Iterator[Way]:
    """Yields the checkpoint's prompts that differ from yours."""
    # A template replaces them.
    prompts = named_prompts(encoder.checkpoint) if own.use.own_template is None else {}
    first_names = {text: name for name, text in reversed(prompts.items())}
    for name, text in prompts.items():
        if name == first_names[text]:
            yield own.changed(_PROMPT_NAME, name, f"The prompt `{name}` is {text!r}.", prompt=text)


def _rules(_encoder: Encoder, own: Way) -> Iterator[Way]:
    template = own.use.own_template
    for name in RULE_SETS:
        rules = () if name == NO_TEMPLATE else tuple(name.split("+"))
        if template is None:
            yield replace(own.changed(_RULES, name), rules=rules)
        else:
            yield own.changed(_RULES, name, template=template.model_copy(update={"rules": rules}))


def _layers(encoder: TransformerEncoder, own: Way) -> Iterator[Way]:
    """Yields the other layers, if your pooling reads one layer without a head."""
    reading = parse_pooling(own.use.pooling)
    for pooling in _at_layers(own.use.pooling, encoder) if len(reading.layers) == 1 else ():
        if parse_pooling(pooling) != reading:
            yield own.with_pooling(pooling)


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


def _kernels(encoder: TransformerEncoder, own: Way) -> Iterator[Way]:
    """Yields the other attention kernels if their rounding can show."""
    use, config = own.use, encoder.checkpoint.json("config.json")
    # In fp32 they agree to a millionth; other back ends have their own kernel.
    if use.backend != TORCH or (use.precision == FP32 and not config.get("attn_logit_softcapping")):
        return
    has_flash = use.device == "cuda" and find_spec("flash_attn")
    for name in ATTENTIONS:
        if name != encoder.kernel and (has_flash or name != FLASH):
            yield own.changed(_KERNEL, name, attention=name)


def _masks(encoder: TransformerEncoder, own: Way) -> Iterator[Way]:
    """Yields the mask that a decoder does not have; both if its code or configuration sets one."""
    if own.use.backend == TORCH:  # others have compiled one
        for mask in other_masks(encoder.checkpoint) if own.use.attention_mask == AUTO else MASKS:
            yield own.changed(_MASK, mask, attention_mask=mask)


def _templates(encoder: TransformerEncoder, own: Way) -> Iterator[Way]:
    """Yields the known templates that the encoder can read."""
    mine = own.use.own_template
    if mine is not None:
        pooling = "avg" if parse_pooling(own.use.pooling).is_of_template else own.use.pooling
        yield own.changed(_TEMPLATE, NO_TEMPLATE, template=None, pooling=pooling)
    templates = map(read_template, template_names())
    for template in sorted(templates, key=lambda t: (len(t.texts), t.pooling == "last", t.name)):
        is_plain = template.texts == (f"{{{SENTENCE}}}",) and not template.rules and template.subtract == "no"
        if is_plain or (mine is not None and mine.digest == template.digest):
            continue
        try:
            encoder.with_template(template).tokenize(["a"])
        except UserError:  # its tokenizer has no mask, for example
            continue
        yield own.changed(_TEMPLATE, template.name, template=template, prompt="", pooling=template.reading)


def _precisions(encoder: TransformerEncoder, own: Way) -> Iterator[Way]:
    """Yields the precision first that the configuration states, because Transformers 5 loads it by default."""
    stated = _stated_precision(encoder)
    for name in sorted(PRECISIONS, key=lambda name: name != stated):
        dtype = PRECISIONS[stated] if stated and name in {stated, FP32} else ""
        meaning = dtype and f"Transformers loads in float32 before version 5, then as config.json states: {dtype}."
        if name != own.use.precision:
            yield own.changed(_PRECISION, name, meaning, precision=name, backend=TORCH)


def _stated_precision(encoder: TransformerEncoder) -> str:
    config = encoder.checkpoint.json("config.json")
    dtype = str(config.get("dtype") or config.get("torch_dtype") or "").removeprefix("torch.")
    return next((name for name, known in PRECISIONS.items() if known == dtype), "")
