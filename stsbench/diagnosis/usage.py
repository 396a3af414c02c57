"""The lazy axes of the grid: templates, rules for the sentence, precisions, padded sentences, layers.

They are about how the encoder is used, so each crossing takes vectors of its own. Several come from one `Way` of
reading the sentences: one forward pass gives every pooling and some layers. `further.py` goes through the ways,
those with the fewest changes first.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.data.tables import StsData
from stsbench.diagnosis.choices import (
    LAYER,
    PADDING,
    POOLING,
    PRECISION,
    RAGGED,
    SENTENCE_RULES,
    TEMPLATE,
    Change,
    Choice,
    Rules,
)
from stsbench.encoders.device import PRECISIONS
from stsbench.encoders.poolers import POOLING_NAMES, parse_pooling, pooling_name
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.template import NO_TEMPLATE, RULES, SENTENCE, Template, read_template, template_names
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import TORCH

if TYPE_CHECKING:
    import pandas as pd

READING = (TEMPLATE, SENTENCE_RULES, PRECISION, PADDING)
"""The lazy axes that take a forward pass of their own; every pooling and layer comes from the same one."""

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

_NEAR_LAYERS = (-2, -3, -4)
_LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


@dataclass(frozen=True)
class Way:
    """One way of reading all sentences.

    Attributes:
        values: what is chosen on the axes of `READING`, in their order; all else is as the encoder itself does.
    """

    values: tuple[tuple[Choice, Any], ...] = ()

    @classmethod
    def of(cls, values: Mapping[Choice, Any]) -> "Way":
        """Return the way with these choices."""
        return cls(tuple((choice, values[choice]) for choice in READING if choice in values))

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
        return bool(self.values) and self[TEMPLATE] is None and self[PRECISION] is None

    def __str__(self) -> str:
        """Return its choices, as a list of what was tried has them."""
        labels = (value if choice == PRECISION else choice.label_of(value) for choice, value in self.values)
        return ", ".join(labels) or "layers"


def values_to_try(
    encoder: Encoder, tasks: Iterable[str], likely: Sequence[str] = ()
) -> dict[Choice, Sequence[Any]]:
    """Return what each axis of `READING` holds besides the person's own setting.

    Args:
        encoder: the person's own.
        tasks: what the claim is of.
        likely: templates to try before others.
    """
    values: dict[Choice, Sequence[Any]] = {SENTENCE_RULES: [Rules(names) for names in RULE_SETS]}
    values[PADDING] = [RAGGED] if PADDED_TASKS & set(tasks) else []
    if isinstance(encoder, TransformerEncoder):
        values[TEMPLATE] = fitting_templates(encoder, likely)
        values[PRECISION] = [name for name in PRECISIONS if name != encoder.use.computed_in]
    return values


def ways_to_read(
    encoder: Encoder, tasks: Iterable[str], *, likely: Sequence[str] = (), gap: float = 0.0
) -> list[Way]:
    """Return the ways of reading to try, those with the fewest changes first, then the cheapest and likeliest.

    Args:
        encoder: the person's own.
        tasks: what the claim is of.
        likely: templates to try before others: that of a known checkpoint, or of the row.
        gap: points between what is claimed and the person's own: precision explains small ones alone.
    """
    values = values_to_try(encoder, tasks, likely)
    singles = {choice: [Way(((choice, value),)) for value in values.get(choice, [])] for choice in READING}
    singles[LAYER] = [Way()] if isinstance(encoder, TransformerEncoder) else []
    usual = [PADDING, SENTENCE_RULES, LAYER, TEMPLATE]
    order = [PRECISION, *usual] if gap < _LOST_BY_PRECISION else [*usual, PRECISION]
    pairs = [
        Way.of(dict((*first.values, *second.values)))
        for choice, second_choice in itertools.combinations((PADDING, TEMPLATE, SENTENCE_RULES, PRECISION), 2)
        for first, second in itertools.product(singles[choice], singles[second_choice])
    ]

    def is_unlikely(pair: Way) -> tuple[bool, bool, bool]:
        """Known templates first, precisions last."""
        is_unknown = pair[TEMPLATE] is not None and pair[TEMPLATE] not in likely
        return (pair[PRECISION] is not None, is_unknown, pair[TEMPLATE] is None)

    ways = [*(way for choice in order for way in singles[choice]), *sorted(pairs, key=is_unlikely)]
    # The encoder's own rules are others than a template's.
    return [way for way in ways if way[SENTENCE_RULES] != rules_without(encoder, way)]


def rules_without(encoder: Encoder, way: Way) -> Rules:
    """Return the rules for the sentence that a way has where it chooses none: its template's, or the encoder's."""
    if way[TEMPLATE] is None:
        return Rules(encoder.identity.use.own_template.rules if encoder.identity.use.own_template else ())
    return Rules(() if way[TEMPLATE] == NO_TEMPLATE else read_template(way[TEMPLATE]).rules)


def fitting_templates(encoder: TransformerEncoder, likely: Sequence[str] = ()) -> list[str]:
    """Return the known templates that the encoder can read and does not have, the likely ones first."""
    own, fitting = encoder.identity.use.own_template, []
    for name in template_names():
        template = read_template(name)
        plain = template.texts == (f"{{{SENTENCE}}}",) and not template.rules and template.subtract == "no"
        if plain or (own is not None and own.digest == template.digest) or not _can_read(encoder, template):
            continue
        fitting.append((name not in likely, len(template.texts), template.pooling == "last", name))
    names = [name for *_, name in sorted(fitting)]
    has_own = own is not None or bool(encoder.identity.use.prompt)
    return [NO_TEMPLATE, *names] if has_own else names


def _can_read(encoder: TransformerEncoder, template: Template) -> bool:
    try:
        encoder.with_template(template).tokenize(["a"])
    except UserError:
        return False
    return True


def encoder_of(encoder: Encoder, way: Way) -> Encoder:
    """Return the encoder that a way reads with; the person's own where only the sentences are changed.

    Raises:
        UserError: if the checkpoint cannot be used so.
    """
    if not isinstance(encoder, TransformerEncoder):
        return encoder
    varied = encoder
    if way[PRECISION] is not None:
        varied = varied.with_use(precision=way[PRECISION], backend=TORCH)
    if way[TEMPLATE] is not None:
        template = None if way[TEMPLATE] == NO_TEMPLATE else read_template(way[TEMPLATE])
        varied = varied.with_template(template)
        if template is None and parse_pooling(varied.use.pooling).is_of_template:
            varied = varied.with_use(pooling="avg")
    template = varied.use.own_template
    if way[SENTENCE_RULES] is not None and template is not None:
        ruled = varied.with_template(template.model_copy(update={"rules": tuple(way[SENTENCE_RULES])}))
        varied = ruled.with_use(pooling=varied.use.pooling)
    return varied


def sentences_of(data: StsData, way: Way, *, by_template: bool) -> list[str]:
    """Return the sentences of a task as a way hands them to its encoder: all first sides, then all second sides.

    Args:
        data: the task.
        way: of reading them.
        by_template: whether the encoder of the way has a template, which then applies the rules.
    """
    pairs = data.pairs
    sides = [pairs["sentence1"].tolist(), pairs["sentence2"].tolist()]
    if way[PADDING] is not None and data.task in PADDED_TASKS:
        sides = [_padded(side, pairs) for side in sides]
    texts = [*sides[0], *sides[1]]
    for rule in way[SENTENCE_RULES] or () if not by_template else ():
        texts = list(map(RULES[rule], texts))
    return texts


def _padded(side: Sequence[str], pairs: "pd.DataFrame") -> list[str]:
    """Return one side of all pairs with as many spaces as its sub-set's longest sentence has more words."""
    words = {name: pairs[name].map(lambda text: len(text.split())) for name in ("sentence1", "sentence2")}
    longest = words["sentence1"].combine(words["sentence2"], max).groupby(pairs["subset"]).transform("max")
    return [
        " ".join([*text.split(), *[""] * (most - len(text.split()))])
        for text, most in zip(side, longest.tolist(), strict=True)
    ]


def changes_of(
    encoder: Encoder, varied: Encoder, way: Way, poolings: Sequence[str]
) -> dict[str, tuple[Change, ...]]:
    """Return what a way changes by the pooling that is read; poolings that change nothing are left out.

    Args:
        encoder: the person's own.
        varied: the encoder of the way.
        way: of reading the sentences.
        poolings: those that it reads.
    """
    identity, its = encoder.identity, varied.identity.use.pooling
    without = f"prompt {identity.use.prompt!r}" if identity.use.prompt else NO_TEMPLATE
    own = {
        TEMPLATE: identity.use.own_template.name if identity.use.own_template else without,
        SENTENCE_RULES: rules_without(encoder, way),
        PRECISION: identity.use.computed_in,
        PADDING: "",
    }
    common = tuple(Change(choice, value, own[choice]) for choice, value in way.values)
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


def poolings_of(encoder: Encoder, varied: Encoder, way: Way, known: Iterable[str]) -> list[str]:
    """Return the poolings that a way reads, its own first.

    Args:
        encoder: the person's own.
        varied: the encoder of the way.
        way: of reading the sentences; every layer is read where it reads them as the encoder does.
        known: the poolings that the checkpoint has (it may lack a head).
    """
    its = varied.identity.use.pooling
    if not isinstance(varied, TransformerEncoder):
        return [its]
    by_layer = _other_layers(its, number_of_layers(varied), only_near=bool(way.values))
    usual = [encoder.identity.use.pooling, *POOLING_NAMES] if way.values else []
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
