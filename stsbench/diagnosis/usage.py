"""The lazy axes of the grid: the fields of `Use` that say what is tried, rules for the sentence, padding, layers.

They are about how the encoder is used, so each crossing takes vectors of its own. Several come from one `Way` of
reading the sentences: one forward pass gives every pooling and some layers. `further.py` goes through the ways,
those with the fewest changes first.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.data.tables import StsData
from stsbench.diagnosis.choices import (
    BEFORE,
    FLOAT64,
    LAYER,
    MAX_LENGTH,
    PADDING,
    PADDING_SIDE,
    POOLING,
    PRECISION,
    PROMPT_NAME,
    PROMPTS,
    RAGGED,
    SENTENCE_RULES,
    SIMILARITY_IN,
    TEMPLATE,
    Change,
    Choice,
    Rules,
    choices_of_use,
    tried_values,
)
from stsbench.diagnosis.offers import Offer, offers, own_value, stated_precision
from stsbench.encoders.poolers import parse_pooling, pooling_name
from stsbench.encoders.prompts import both_sides, named_prompts
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.sides import SidedEncoder
from stsbench.encoders.template import NO_TEMPLATE, RULES, SENTENCE, Template, read_template
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import ABOUT, FP32, TORCH

PADDED_TASKS = frozenset({"STS12", "STS13", "STS14", "STS15", "STS16"})
"""The tasks whose sub-sets that copy of SentEval pads."""

RULE_SETS: tuple[tuple[str, ...], ...] = (
    (),
    ("full_stop",),
    ("spaced_full_stop",),
    ("full_stop", "single_quotes", "question_to_full_stop"),
    ("single_quotes",),
    ("lower_case",),
    ("strip",),
)
"""Rules for the sentence that public codes have, alone or together."""

_LOST_BY_PRECISION = 0.5
"""Points of a score that half a precision is likely to move, at most."""

HALVES = ("bf16", "fp16")
"""The precisions in which a similarity loses digits that a score shows."""

_NEAR_LAYERS = (-2, -3, -4)
_LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def reading() -> tuple[Choice, ...]:
    """Return the lazy axes that take a forward pass of their own; every pooling and layer comes from one."""
    placed = (PROMPT_NAME, PROMPTS, TEMPLATE, SENTENCE_RULES, PRECISION)
    others = [choice for choice in choices_of_use() if choice not in {*placed, POOLING, MAX_LENGTH}]
    return (*placed, *others, PADDING_SIDE, PADDING)


@dataclass(frozen=True)
class Way:
    """One way of reading all sentences: values on axes of `reading`, in their order; all else is the encoder's."""

    values: tuple[tuple[Choice, Any], ...] = ()

    @classmethod
    def of(cls, values: Mapping[Choice, Any]) -> "Way":
        """Return the way with these choices."""
        return cls(tuple((choice, values[choice]) for choice in reading() if choice in values))

    def __getitem__(self, choice: Choice) -> Any:
        """Return what is chosen; None where that is what the encoder itself does."""
        return dict(self.values).get(choice)

    @property
    def count(self) -> int:
        """How many choices it changes: one, the layer, where it reads all as the encoder does."""
        return max(1, len(self.values))

    @property
    def is_of_sentences(self) -> bool:
        """Whether it changes the sentences alone, not what the network makes of them."""
        return bool(self.values) and {choice for choice, _ in self.values} <= {SENTENCE_RULES, PADDING}

    def __str__(self) -> str:
        """Return its choices, as a list of what was tried has them."""
        labels = (value if choice == PRECISION else choice.label_of(value) for choice, value in self.values)
        return ", ".join(labels) or "layers"


@dataclass(frozen=True)
class WaysToTry:
    """The ways of reading that are tried.

    Attributes:
        ways: those with the fewest changes first, then the cheapest and likeliest.
        offers: for a checkpoint, what is offered on each axis of its use, and why no more.
    """

    ways: tuple[Way, ...]
    offers: Mapping[Choice, Offer] = field(default_factory=dict)

    @property
    def innocent(self) -> tuple[str, ...]:
        """What is not tried, as it cannot matter or cannot be done here."""
        return tuple(offer.without for offer in self.offers.values() if offer.without)

    def note_on(self, choice: Choice, value: Any) -> str:
        """Return what is to be said of a value for this checkpoint."""
        return self.offers[choice].notes.get(value, "") if choice in self.offers else ""


def ways_to_read(
    encoder: Encoder, tasks: Iterable[str], *, likely: Sequence[str] = (), gap: float = 0.0
) -> WaysToTry:
    """Return the ways of reading to try, those with the fewest changes first, then the cheapest and likeliest.

    Precision explains small gaps (points between what is claimed and the person's own) alone, and any where the
    checkpoint states half a precision.
    """
    values: dict[Choice, Sequence[Any]] = {SENTENCE_RULES: [Rules(names) for names in RULE_SETS]}
    values[PADDING] = [RAGGED] if PADDED_TASKS & set(tasks) else []
    offered: dict[Choice, Offer] = {}
    if isinstance(encoder, TransformerEncoder):
        of_use = (*(choice for choice in reading() if choice.name in ABOUT), PADDING_SIDE)
        offered = offers(encoder, of_use, gap)
        values |= {choice: offer.values for choice, offer in offered.items()}
        values[TEMPLATE] = fitting_templates(encoder, likely)
    placed = {PROMPT_NAME, PROMPTS, TEMPLATE, SENTENCE_RULES, PRECISION, PADDING}
    others = [choice for choice in reading() if choice not in placed]
    singles = {choice: [Way(((choice, value),)) for value in values.get(choice, [])] for choice in reading()}
    singles[LAYER] = [Way()] if isinstance(encoder, TransformerEncoder) else []
    usual = [PROMPT_NAME, PROMPTS, PADDING, SENTENCE_RULES, LAYER, *others, TEMPLATE]
    is_stated = isinstance(encoder, TransformerEncoder) and stated_precision(encoder) not in {"", FP32}
    order = [PRECISION, *usual] if gap < _LOST_BY_PRECISION or is_stated else [*usual, PRECISION]
    # A mistake about the padding is crossed with nothing: it has a pooling and batches of its own.
    paired = [
        choice for choice in (PADDING, TEMPLATE, SENTENCE_RULES, PRECISION, *others) if choice != PADDING_SIDE
    ]
    pairs = [
        Way.of(dict((*first.values, *second.values)))
        for choice, second_choice in itertools.combinations(paired, 2)
        for first, second in itertools.product(singles[choice], singles[second_choice])
        if not {choice, second_choice} <= set(BEFORE)
    ]

    def is_unlikely(pair: Way) -> tuple[bool, bool, bool]:
        """Known templates first, precisions last."""
        is_unknown = pair[TEMPLATE] is not None and pair[TEMPLATE] not in likely
        return (pair[PRECISION] is not None, is_unknown, pair[TEMPLATE] is None)

    ways = [*(way for choice in order for way in singles[choice]), *sorted(pairs, key=is_unlikely)]
    # The encoder's own rules are others than a template's.
    return WaysToTry(tuple(way for way in ways if way[SENTENCE_RULES] != rules_without(encoder, way)), offered)


def rules_without(encoder: Encoder, way: Way) -> Rules:
    """Return the rules for the sentence that a way has where it chooses none: its template's, or the encoder's."""
    if way[TEMPLATE] is None:
        return Rules(encoder.identity.use.own_template.rules if encoder.identity.use.own_template else ())
    return Rules(() if way[TEMPLATE] == NO_TEMPLATE else read_template(way[TEMPLATE]).rules)


def fitting_templates(encoder: TransformerEncoder, likely: Sequence[str] = ()) -> list[str]:
    """Return the known templates that the encoder can read and does not have, the likely ones first."""
    own, fitting = encoder.identity.use.own_template, []
    for name in tried_values(TEMPLATE):
        template = read_template(name)
        plain = template.texts == (f"{{{SENTENCE}}}",) and not template.rules and template.subtract == "no"
        if plain or (own is not None and own.digest == template.digest) or not _can_read(encoder, template):
            continue
        fitting.append((name not in likely, len(template.texts), template.pooling == "last", name))
    names = [name for *_, name in sorted(fitting)]
    return [NO_TEMPLATE, *names] if own is not None else names


def _can_read(encoder: TransformerEncoder, template: Template) -> bool:
    try:
        encoder.with_template(template).tokenize(["a"])
    except UserError:
        return False
    return True


def encoder_of(encoder: Encoder, way: Way) -> Encoder:
    """Return the encoder that a way reads with; the person's own where only the sentences are changed."""
    if not isinstance(encoder, TransformerEncoder):
        return encoder
    apart = {PROMPT_NAME, PROMPTS, TEMPLATE}
    changes = {choice.name: value for choice, value in way.values if choice.name in ABOUT and choice not in apart}
    varied = encoder
    if way[PRECISION] is not None:
        changes["backend"] = TORCH
    if changes:
        varied = varied.with_use(**changes)
    if way[TEMPLATE] is not None:
        template = None if way[TEMPLATE] == NO_TEMPLATE else read_template(way[TEMPLATE])
        varied = varied.with_template(template)
        if template is None and parse_pooling(varied.use.pooling).is_of_template:
            varied = varied.with_use(pooling="avg")
    template = varied.use.own_template
    if way[SENTENCE_RULES] is not None and template is not None:
        ruled = varied.with_template(template.model_copy(update={"rules": tuple(way[SENTENCE_RULES])}))
        varied = ruled.with_use(pooling=varied.use.pooling)
    return _prompted(varied, way)


def _prompted(encoder: TransformerEncoder, way: Way) -> Encoder:
    """Return an encoder with the named prompts of a way."""
    named = named_prompts(encoder.checkpoint)
    if way[PROMPT_NAME] is not None:
        return encoder.with_use(prompt=named[way[PROMPT_NAME]])
    if way[PROMPTS] is not None:
        first, second = (encoder.with_use(prompt=named[name]) for name in both_sides(way[PROMPTS]))
        return SidedEncoder((first, second))
    return encoder


def sentences_of(data: StsData, way: Way, *, by_template: bool) -> list[str]:
    """Return the sentences of a task as a way hands them to its encoder: all first sides, then all second.

    The rules are applied here unless the encoder has a template, which does.
    """
    pairs = data.pairs
    sides = [pairs["sentence1"].tolist(), pairs["sentence2"].tolist()]
    if way[PADDING] is not None and data.task in PADDED_TASKS:
        sides = [_padded(side, pairs) for side in sides]
    texts = [*sides[0], *sides[1]]
    for rule in way[SENTENCE_RULES] or () if not by_template else ():
        texts = list(map(RULES[rule], texts))
    return texts


def _padded(side: Sequence[str], pairs: pd.DataFrame) -> list[str]:
    """Return one side of all pairs with as many spaces as its sub-set's longest sentence has more words."""
    words = {name: pairs[name].map(lambda text: len(text.split())) for name in ("sentence1", "sentence2")}
    longest = words["sentence1"].combine(words["sentence2"], max).groupby(pairs["subset"]).transform("max")
    return [
        " ".join([*text.split(), *[""] * (most - len(text.split()))])
        for text, most in zip(side, longest.tolist(), strict=True)
    ]


def changes_of(
    encoder: Encoder, varied: Encoder, way: Way, poolings: Sequence[str], trying: WaysToTry | None = None
) -> dict[str, tuple[Change, ...]]:
    """Return what a way changes by the pooling that is read; poolings that change nothing are left out."""
    use, its = encoder.identity.use, varied.identity.use.pooling
    own = {SENTENCE_RULES: rules_without(encoder, way), PADDING: "", PADDING_SIDE: ""}
    own |= {choice: own_value(use, choice) for choice, _ in way.values if choice not in own}
    common = tuple(
        Change(choice, value, own[choice], trying.note_on(choice, value) if trying else "")
        for choice, value in way.values
    )
    changes: dict[str, tuple[Change, ...]] = {}
    for pooling in poolings:
        read = common
        if pooling != its:
            layers, its_layers = parse_pooling(pooling).layers, parse_pooling(its).layers
            if pooling_place(pooling) == pooling_place(its) and len(layers) == len(its_layers) == 1:
                read = (*common, Change(LAYER, layers[0], its_layers[0]))
            else:
                read = (*common, Change(POOLING, pooling, its))
        if read:
            changes[pooling] = read
    return changes


def change_of_similarity(encoder: Encoder, varied: Encoder, way: Way, trying: WaysToTry) -> Change | None:
    """Return the change to a similarity in the vectors' precision; None where that is no half one.

    The vectors are those of the way itself, which changes nothing else then.
    """
    precision = varied.identity.use.precision
    alone = {choice for choice, _ in way.values} <= {PRECISION}
    if not alone or precision not in HALVES or not isinstance(encoder, TransformerEncoder):
        return None
    own = encoder.use.computed_in
    words = (SIMILARITY_IN.meanings[precision], trying.note_on(PRECISION, precision))
    return Change(SIMILARITY_IN, precision, FLOAT64 if own == precision else own, " ".join(filter(None, words)))


def poolings_of(encoder: Encoder, varied: Encoder, way: Way, known: Iterable[str]) -> list[str]:
    """Return the poolings that a way reads, its own first; a checkpoint knows all but one whose head it lacks."""
    its = varied.identity.use.pooling
    if isinstance(varied, SidedEncoder):
        varied = varied.sides[0]
    if not isinstance(varied, TransformerEncoder) or way[PADDING_SIDE] is not None:
        return [its]
    by_layer = _other_layers(its, number_of_layers(varied), only_near=bool(way.values))
    usual = [encoder.identity.use.pooling, *tried_values(POOLING)] if way.values else []
    has_template = varied.use.own_template is not None
    kept = [name for name in usual if has_template or not parse_pooling(name).is_of_template]
    poolings = list(dict.fromkeys([its, *(name for name in kept if name in known), *by_layer]))
    # The vectors of sentences that are read as before come from those at hand.
    return [name for name in poolings if name in known] if way.is_of_sentences else poolings


def _other_layers(pooling: str, count: int, *, only_near: bool) -> list[str]:
    """Return a pooling at other layers of a network with so many, where it reads one layer."""
    place, own = pooling_place(pooling), parse_pooling(pooling).layers
    if not place or len(own) != 1:
        return []
    layers = [layer for layer in range(-1, -count - 2, -1) if layer in _NEAR_LAYERS or not only_near]
    return [pooling_name(place, layers=[] if layer == -1 else [layer]) for layer in layers if layer != own[0]]


def pooling_place(pooling: str) -> str:
    """Return a pooling's place without its layers, as a name; empty for one through a head."""
    reading = parse_pooling(pooling)
    if reading.head:
        return ""
    return f"{reading.place}{reading.number if reading.number > 1 else ''}"


def number_of_layers(encoder: TransformerEncoder) -> int:
    """Return how many layers the network has; 0 if its configuration does not say."""
    config = encoder.checkpoint.json("config.json")
    return next((int(config[name]) for name in _LAYER_COUNTS if isinstance(config.get(name), int)), 0)
