"""The choices that need other vectors: prompts, templates, rules, layers, precisions, attention.

`VARIATIONS` lists them, the most plausible and cheapest first. To add a cause, add an entry: its axis with its
words, and a function that returns the values to try for a checkpoint, each with the fields of `Reading` or `Use`
that it changes. The search, the verdict, the table and the JSON need no change.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from stsbench.base.errors import UserError
from stsbench.diagnosis.axes import POOLING, Axis, Change, of_use
from stsbench.encoders.backends import other_masks
from stsbench.encoders.poolers import AUTO, POOLING_NAMES, parse_pooling, pooling_name
from stsbench.encoders.prompts import named_prompts
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.template import NO_TEMPLATE, SENTENCE, read_template
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import ABOUT, BIDIRECTIONAL, CAUSAL, FLASH, FP32, MASKS, PRECISIONS, TORCH, Use, names

_NEAR_LAYERS = (-2, -3, -4)

RULE_SETS = (
    NO_TEMPLATE,
    "full_stop",
    "spaced_full_stop",
    "full_stop+single_quotes+question_to_full_stop",
    "single_quotes",
    "lower_case",
    "strip",
)
"""Rules for the sentence in public code."""

_LOST_BY_PRECISION = 0.5
"""Points of a score that half precision is likely to move, at most."""

_LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


@dataclass(frozen=True)
class Case:
    """What is diagnosed.

    Attributes:
        encoder: the model.
        gap: the difference between the claim and your setting's score, in points.
        likely: templates that the model or the claimed row is known to use.
    """

    encoder: Any
    gap: float = 0.0
    likely: tuple[str, ...] = ()

    @property
    def use(self) -> Use:
        """How the encoder is used."""
        use: Use = getattr(self.encoder, "use", self.encoder.identity.use)
        return use

    @property
    def config(self) -> dict[str, Any]:
        """The checkpoint's config.json."""
        config: dict[str, Any] = self.encoder.checkpoint.json("config.json")
        return config

    def others(self, name: str) -> list[Any]:
        """Returns the values of a field of `Use` to try, without yours."""
        tried = ABOUT[name].tried
        return [value for value in (tried() if tried else ()) if value != getattr(self.use, name)]


@dataclass(frozen=True)
class Offer:
    """The values of a variation to try.

    Attributes:
        values: each with the fields of `Reading` or `Use` that it changes; the most plausible first.
        meanings: by value, a sentence on it for this checkpoint.
        is_first: whether to try them before the other variations.
    """

    values: Mapping[Any, Mapping[str, Any]] = field(default_factory=dict)
    meanings: Mapping[Any, str] = field(default_factory=dict)
    is_first: bool = False


@dataclass(frozen=True)
class Variation:
    """A choice that needs other vectors.

    Attributes:
        axis: its name and words.
        offer: returns the values that can matter in a case.
        needs: the encoders that have the choice.
    """

    axis: Axis
    offer: Callable[[Case], Offer]
    needs: Any = TransformerEncoder


def _field(name: str) -> Variation:
    """Returns the variation of a field of `Use`."""
    return Variation(of_use(name), lambda case: Offer({value: {name: value} for value in case.others(name)}))


def _prompt(case: Case) -> Offer:
    """Offers other prompts; to leave out yours comes first of all."""
    return Offer({value: {"prompt": value} for value in case.others("prompt")}, is_first=bool(case.use.prompt))


def _prompt_names(case: Case) -> Offer:
    """Offers the checkpoint's prompts that differ from yours."""
    # A template replaces them.
    prompts = named_prompts(case.encoder.checkpoint) if case.use.own_template is None else {}
    by_text = {text: name for name, text in reversed(prompts.items()) if text != (case.use.prompt or "")}
    values = {name: {"prompt": text} for name, text in prompts.items() if name in by_text.values()}
    return Offer(values, meanings={name: f"The prompt `{name}` is {prompts[name]!r}." for name in values})


def _rules(_case: Case) -> Offer:
    return Offer({name: {"rules": () if name == NO_TEMPLATE else tuple(name.split("+"))} for name in RULE_SETS})


def _layers(case: Case) -> Offer:
    """Offers the other layers, if your pooling reads one layer without a head."""
    own, layers = case.use.pooling, parse_pooling(case.use.pooling).layers
    if not pooling_place(own) or len(layers) != 1:
        return Offer()
    others = [layer for layer in range(-1, -number_of_layers(case.encoder) - 2, -1) if layer != layers[0]]
    return Offer({layer: {"pooling": at_layer(own, layer)} for layer in others})


def pooling_place(pooling: str) -> str:
    """Returns the place of a pooling that has no head; empty for one with a head."""
    reading = parse_pooling(pooling)
    return "" if reading.head else f"{reading.place}{reading.number if reading.number > 1 else ''}"


def at_layer(pooling: str, layer: int) -> str:
    """Returns a pooling at another layer."""
    return pooling_name(pooling_place(pooling), layers=[] if layer == -1 else [layer])


def number_of_layers(encoder: TransformerEncoder) -> int:
    """Returns the number of layers; 0 if the configuration does not state it."""
    config = encoder.checkpoint.json("config.json")
    return next((int(config[name]) for name in _LAYER_COUNTS if isinstance(config.get(name), int)), 0)


def _kernels(case: Case) -> Offer:
    """Offers the other attention kernels if their rounding can show."""
    use = case.use
    # In fp32 they agree to a millionth; other back ends have one of their own.
    if use.backend != TORCH or (use.precision == FP32 and not case.config.get("attn_logit_softcapping")):
        return Offer()
    has_flash = use.device == "cuda" and find_spec("flash_attn")
    unavailable = {case.encoder.kernel, "" if has_flash else FLASH}
    return Offer({name: {"attention": name} for name in case.others("attention") if name not in unavailable})


def _masks(case: Case) -> Offer:
    """Offers the mask that a decoder does not have; both if its code or configuration sets one."""
    if case.use.backend != TORCH:  # it has compiled one
        return Offer()
    own = case.use.attention_mask
    masks = other_masks(case.encoder.checkpoint) if own == AUTO else MASKS
    return Offer({mask: {"attention_mask": mask} for mask in masks if mask != own})


def _templates(case: Case) -> Offer:
    """Offers the known templates that the encoder can read, the likely ones first."""
    own, encoder = case.use.own_template, case.encoder
    values: dict[str, dict[str, Any]] = {}
    if own is not None:
        is_of_template = parse_pooling(case.use.pooling).is_of_template
        values[NO_TEMPLATE] = {"template": None} | ({"pooling": "avg"} if is_of_template else {})
    templates = [read_template(name) for name in case.others("template")]
    for template in sorted(
        templates, key=lambda t: (t.name not in case.likely, len(t.texts), t.pooling == "last", t.name)
    ):
        is_plain = template.texts == (f"{{{SENTENCE}}}",) and not template.rules and template.subtract == "no"
        if is_plain or (own is not None and own.digest == template.digest):
            continue
        try:
            encoder.with_template(template).tokenize(["a"])
        except UserError:  # its tokenizer has no mask, for example
            continue
        values[template.name] = {"template": template, "prompt": "", "pooling": template.reading}
    return Offer(values)


def _precisions(case: Case) -> Offer:
    """Offers the precision first that the configuration states, because Transformers 5 loads it by default."""
    dtype = str(case.config.get("dtype") or case.config.get("torch_dtype") or "").removeprefix("torch.")
    stated = next((name for name, known in PRECISIONS.items() if known == dtype), "")
    others = sorted(case.others("precision"), key=lambda value: value != stated)
    meaning = f"Transformers loads in float32 before version 5, then as config.json states: {dtype}."
    return Offer(
        {value: {"precision": value, "backend": TORCH} for value in others},
        meanings=dict.fromkeys((stated, FP32), meaning) if stated else {},
        is_first=case.gap < _LOST_BY_PRECISION or stated not in {"", FP32},
    )


LAYER = Axis("layer", labels={-1: "the last layer"})

RULES = Axis(
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

VARIATIONS = (
    Variation(of_use("prompt", label="prompt {value!r}", labels={"": "no prompt"}), _prompt),
    Variation(of_use("prompt_name", label="prompt {value}"), _prompt_names),
    Variation(RULES, _rules, object),
    Variation(LAYER, _layers),
    Variation(of_use("attention", label="attention kernel {value}"), _kernels),
    Variation(_MASK, _masks),
    Variation(of_use("template", labels={NO_TEMPLATE: "no template"}), _templates),
    Variation(of_use("precision"), _precisions),
)


def variations() -> tuple[Variation, ...]:
    """Returns `VARIATIONS` and the other fields of `Use` that change what is encoded and name values to try."""
    known = {variation.axis.name for variation in VARIATIONS} | {"pooling", "max_length"}
    fields = (name for name in names("encoding") if ABOUT[name].tried is not None and name not in known)
    return (*VARIATIONS, *map(_field, fields))


@dataclass(frozen=True)
class Reading:
    """How the encoder is used, and the changes to the sentence in order, if no template makes them."""

    use: Use
    rules: tuple[str, ...] = ()

    @classmethod
    def of(cls, use: Use, *, rules: tuple[str, ...] | None = None, **changes: Any) -> "Reading":
        """Returns the reading of a `Use` with changes to its fields and other rules."""
        use = replace(use, **changes)
        if rules is None or (template := use.own_template) is None:
            return cls(use, rules or ())
        return cls(replace(use, template=template.model_copy(update={"rules": rules})))

    @property
    def forward_pass(self) -> "Reading":
        """What distinguishes forward passes: one pass gives all poolings and layers."""
        return replace(self, use=replace(self.use, pooling=""))

    def encoder(self, own: Encoder) -> Encoder:
        """Returns your encoder, used in this way."""
        if not isinstance(own, TransformerEncoder):
            return own
        values = {name: getattr(self.use, name) for name in names("encoding")}
        changes = {name: value for name, value in values.items() if value != getattr(own.use, name)}
        return own.with_use(**changes) if changes else own


@dataclass(frozen=True)
class Way:
    """A reading, and how it differs from yours."""

    changes: tuple[Change, ...]
    reading: Reading

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `stsbench run` that choose it; a layer is part of the pooling's name."""
        pooled = [change for change in self.changes if change.axis in {POOLING, LAYER}]
        others = (change.option for change in self.changes if change not in pooled)
        return (*others, *([f"--pooling {self.reading.use.pooling}"] if pooled else []))


def ways_to_read(case: Case) -> list[Way]:
    """Returns the ways to try."""
    offers = {each: each.offer(case) for each in variations() if isinstance(case.encoder, each.needs)}
    ways = []
    for variation, offer in sorted(offers.items(), key=lambda item: not item[1].is_first):
        axis = replace(variation.axis, meanings={**variation.axis.meanings, **offer.meanings})
        for value, changes in offer.values.items():
            reading = Reading.of(case.use, **changes)
            if reading != Reading.of(case.use):
                ways.append(Way((Change(axis, value),), reading))
    return ways


def with_poolings(case: Case, way: Way, known: Container[str]) -> Iterator[Way]:
    """Yields a way, and the way with other poolings that the same forward pass gives.

    `known` has the poolings of the encoder's own vectors. If only the sentences change, no other layer is read:
    those of unchanged sentences are not cached.
    """
    yield way
    own, axis, encoder = way.reading.use.pooling, way.changes[0].axis, case.encoder
    if not isinstance(encoder, TransformerEncoder) or axis == LAYER:
        return
    poolings = [name for name in (case.use.pooling, *POOLING_NAMES) if name in known]
    if way.reading.use.own_template is None:
        poolings = [name for name in poolings if not parse_pooling(name).is_of_template]
    if axis != RULES and pooling_place(own):
        count = number_of_layers(encoder)
        poolings += [at_layer(own, layer) for layer in _NEAR_LAYERS if layer >= -count - 1]
    for pooling in dict.fromkeys(poolings):
        if pooling != own:
            changed = replace(way.reading, use=replace(way.reading.use, pooling=pooling))
            yield Way((*way.changes, _change_of_pooling(own, pooling)), changed)


def _change_of_pooling(own: str, pooling: str) -> Change:
    layers, own_layers = parse_pooling(pooling).layers, parse_pooling(own).layers
    if pooling_place(pooling) == pooling_place(own) and len(layers) == len(own_layers) == 1:
        return Change(LAYER, layers[0])
    return Change(POOLING, pooling)
