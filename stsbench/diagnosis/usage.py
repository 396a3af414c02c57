"""Other ways of using the encoder: templates, rules for the sentence, layers, precisions, padded sentences.

A `Variation` is what today's grid does not hold, as it needs vectors of its own. Several come from one `Pass` over
the sentences: one forward pass gives every pooling and some layers. `further.py` goes through the passes, those
with the fewest changes first.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.data.tables import StsData
from stsbench.diagnosis.grid import POOLING, Bundle, Change, Choice
from stsbench.encoders.device import PRECISIONS
from stsbench.encoders.poolers import POOLING_NAMES, parse_pooling, pooling_name
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.template import RULES, SENTENCE, Template
from stsbench.encoders.template_files import NO_TEMPLATE, read_template, template_names
from stsbench.encoders.transformer import TransformerEncoder

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = Choice(
    "template",
    "--template",
    instead="with {phrase}, your setting, the model gives",
    names={NO_TEMPLATE: "no template"},
)
SENTENCE_RULES = Choice(
    "rules",
    phrase="the rule `{value}` for the sentence",
    instead="with {phrase}, your setting, the model gives",
    names={NO_TEMPLATE: "no rule for the sentence"},
    meanings={
        "full_stop": "`full_stop` adds a full stop unless the sentence ends in . ? \" or ' (PromptBERT's rule).",
        "spaced_full_stop": "`spaced_full_stop` adds ` .` unless the sentence ends in punctuation (SNCSE's rule).",
    },
)
LAYER = Choice(
    "layer",
    phrase="layer {value}",
    instead="with {phrase}, your setting, the model gives",
    names={-1: "the last layer"},
    meanings={-2: "Layer -2 is the one before the last: some language models are read there."},
)
PRECISION = Choice("precision", "--precision", instead="in {phrase}, your setting, the model gives")
RAGGED = "ragged sub-sets"
PADDING = Choice(
    "padding",
    phrase="sentences padded with spaces",
    label="padded sentences",
    instead="{phrase} give",
    names={"": "sentences as they are"},
    meanings={
        RAGGED: "The copy of SentEval in AnglE's repository pads the sentences of a sub-set of STS12 to STS16 "
        "with empty words, so a rule for full stops sees a space, and a byte-level tokeniser reads spaces."
    },
)
VARIATION = Choice("variation")

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
class Pass:
    """One way of reading all sentences; every field None, or False, as the encoder itself does.

    Attributes:
        template: another template by name, `none` for no template.
        rules: other rules for the sentence.
        precision: another precision.
        padded: whether the sentences of a sub-set are padded with spaces.
    """

    template: str | None = None
    rules: tuple[str, ...] | None = None
    precision: str | None = None
    padded: bool = False

    @property
    def count(self) -> int:
        """How many choices it changes: one, the layer, where it reads all as the encoder does."""
        of_reading = (self.template is not None, self.rules is not None, self.precision is not None, self.padded)
        return max(1, sum(of_reading))

    def __str__(self) -> str:
        """Return its choices, as a list of what was tried has them."""
        parts = [
            f"template {self.template}" if self.template is not None else "",
            f"rules {rules_label(self.rules)}" if self.rules is not None else "",
            self.precision or "",
            "padded sentences" if self.padded else "",
        ]
        return ", ".join(filter(None, parts)) or "layers"


@dataclass(frozen=True)
class Variation(Bundle):
    """One other way of using the encoder.

    Attributes:
        changes: in what it differs from the person's own setting.
        pooling: the full name of the pooling that it reads.
        options: of `stsbench run`, what gives it; empty for the person's own setting.
        by_hand: what no option gives, as clauses.
    """

    pooling: str = ""
    options: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return its changes, as a table has them."""
        return ", ".join(change.choice.label_of(change.value) for change in self.changes)


def rules_label(rules: Sequence[str]) -> str:
    """Return rules as one word: `full_stop+single_quotes`, or `none`."""
    return "+".join(rules) or NO_TEMPLATE


def passes(encoder: Encoder, tasks: Iterable[str], *, likely: Sequence[str] = (), gap: float = 0.0) -> list[Pass]:
    """Return the ways of reading to try, those with the fewest changes first, then the cheapest and likeliest.

    Args:
        encoder: the person's own.
        tasks: what the claim is of.
        likely: templates to try before others: that of a known checkpoint, or of the row.
        gap: points between what is claimed and the person's own: precision explains small ones alone.
    """
    own = [Pass(padded=True)] if PADDED_TASKS & set(tasks) else []
    rules = [Pass(rules=names) for names in RULE_SETS if names != own_rules(encoder)]
    templates: list[Pass] = []
    precisions: list[Pass] = []
    layers: list[Pass] = []
    if isinstance(encoder, TransformerEncoder):
        layers = [Pass()]
        templates = [Pass(template=name) for name in fitting_templates(encoder, likely)]
        precisions = [Pass(precision=name) for name in PRECISIONS if name != encoder.precision]
    singles = [*own, *rules, *layers, *templates]
    singles = [*precisions, *singles] if gap < _LOST_BY_PRECISION else [*singles, *precisions]
    # The encoder's own rules are others than a template's.
    kinds = [own, templates, [Pass(rules=names) for names in RULE_SETS], precisions]
    pairs = [
        _both(first, second, own_rules(encoder))
        for one, other in itertools.combinations(kinds, 2)
        for first, second in itertools.product(one, other)
    ]

    def is_unlikely(pair: Pass) -> tuple[bool, bool, bool]:
        """Known templates first, precisions last."""
        is_unknown = pair.template is not None and pair.template not in likely
        return (pair.precision is not None, is_unknown, pair.template is None)

    return [*singles, *sorted((pair for pair in pairs if pair is not None), key=is_unlikely)]


def _both(first: Pass, second: Pass, rules: tuple[str, ...]) -> Pass | None:
    """Return the pass with the changes of both; None if the rules are those that it has anyway."""
    both = Pass(
        template=first.template or second.template,
        rules=first.rules if first.rules is not None else second.rules,
        precision=first.precision or second.precision,
        padded=first.padded or second.padded,
    )
    if both.template is not None:
        rules = () if both.template == NO_TEMPLATE else read_template(both.template).rules
    return None if both.rules == rules else both


def own_rules(encoder: Encoder) -> tuple[str, ...]:
    """Return the rules that the encoder has for the sentence."""
    template = encoder.identity.template
    return () if template is None else template.rules


def fitting_templates(encoder: TransformerEncoder, likely: Sequence[str] = ()) -> list[str]:
    """Return the known templates that the encoder can read and does not have, the likely ones first."""
    own, fitting = encoder.identity.template, []
    for name in template_names():
        template = read_template(name)
        plain = template.texts == (f"{{{SENTENCE}}}",) and not template.rules and template.subtract == "no"
        if plain or (own is not None and own.digest == template.digest) or not _can_read(encoder, template):
            continue
        fitting.append((name not in likely, len(template.texts), template.pooling == "last", name))
    names = [name for *_, name in sorted(fitting)]
    has_own = own is not None or bool(encoder.identity.prompt)
    return [NO_TEMPLATE, *names] if has_own else names


def _can_read(encoder: TransformerEncoder, template: Template) -> bool:
    try:
        encoder.with_template(template).tokenize(["a"])
    except UserError:
        return False
    return True


def encoder_of(encoder: Encoder, way: Pass) -> Encoder:
    """Return the encoder that a pass reads with; the person's own where only the sentences are changed.

    Raises:
        UserError: if the checkpoint cannot be used so.
    """
    if not isinstance(encoder, TransformerEncoder):
        return encoder
    varied = encoder
    if way.precision is not None:
        varied = replace(varied, precision=way.precision, loaded=None)
    template = varied.settings.template
    if way.template is not None:
        template = None if way.template == NO_TEMPLATE else read_template(way.template)
        varied = varied.with_template(template)
        if template is None and parse_pooling(varied.settings.pooling).is_of_template:
            varied = replace(varied, settings=replace(varied.settings, pooling="avg"))
    if way.rules is not None and template is not None:
        pooling = varied.settings.pooling
        varied = varied.with_template(template.model_copy(update={"rules": way.rules}))
        varied = replace(varied, settings=replace(varied.settings, pooling=pooling))
    return varied


def sentences_of_pass(data: StsData, way: Pass, *, by_template: bool) -> list[str]:
    """Return the sentences of a task as a pass hands them to its encoder: all first sides, then all second sides.

    Args:
        data: the task.
        way: the pass.
        by_template: whether the encoder of the pass has a template, which then applies the rules.
    """
    pairs = data.pairs
    sides = [pairs["sentence1"].tolist(), pairs["sentence2"].tolist()]
    if way.padded and data.task in PADDED_TASKS:
        sides = [_padded(side, pairs) for side in sides]
    texts = [*sides[0], *sides[1]]
    if way.rules is not None and not by_template:
        for rule in way.rules:
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


def variations(encoder: Encoder, varied: Encoder, way: Pass, poolings: Sequence[str]) -> dict[str, Variation]:
    """Return what a pass tries, by the pooling that each reads.

    Args:
        encoder: the person's own.
        varied: the encoder of the pass.
        way: the pass.
        poolings: those that it reads, the pooling of the varied encoder first.
    """
    own, its = encoder.identity.pooling, varied.identity.pooling
    common = tuple(_changes(encoder, way))
    found: dict[str, Variation] = {}
    for pooling in poolings:
        changes = common
        if pooling != its:
            layers, its_layers = parse_pooling(pooling).layers, parse_pooling(its).layers
            if pooling_place(pooling) == pooling_place(its) and len(layers) == len(its_layers) == 1:
                changes += (Change(LAYER, layers[0], its_layers[0]),)
            else:
                changes += (Change(POOLING, pooling, its),)
        if changes:
            options = [f"--template {way.template}"] if way.template else []
            options += [f"--precision {way.precision}"] if way.precision else []
            options += [f"--pooling {pooling}"] if pooling != (its if way.template else own) else []
            by_hand = ["the rules for the sentence are applied"] if way.rules is not None else []
            by_hand += ["the sentences are padded"] if way.padded else []
            found[pooling] = Variation(changes, pooling, tuple(options), tuple(by_hand))
    return found


def _changes(encoder: Encoder, way: Pass) -> Iterator[Change]:
    template = encoder.identity.template
    if way.template is not None:
        prompt = f"prompt {encoder.identity.prompt!r}" if encoder.identity.prompt else NO_TEMPLATE
        yield Change(TEMPLATE, way.template, prompt if template is None else template.name)
    if way.rules is not None:
        rules = own_rules(encoder)
        if way.template is not None:
            rules = () if way.template == NO_TEMPLATE else read_template(way.template).rules
        yield Change(SENTENCE_RULES, rules_label(way.rules), rules_label(rules))
    if way.precision is not None:
        yield Change(PRECISION, way.precision, encoder.identity.precision)
    if way.padded:
        yield Change(PADDING, RAGGED, "")


def poolings_of_pass(
    encoder: Encoder, varied: Encoder, way: Pass, known: Mapping[str, object], *, all_layers: bool
) -> list[str]:
    """Return the poolings that a pass reads, its own first.

    Args:
        encoder: the person's own.
        varied: the encoder of the pass.
        way: the pass.
        known: the poolings that the checkpoint has (it may lack a head).
        all_layers: whether every layer is read, or those near the last alone.
    """
    its = varied.identity.pooling
    if not isinstance(varied, TransformerEncoder):
        return [its]
    count = number_of_layers(varied)
    layers = [
        layer for layer in (range(-1, -count - 2, -1) if all_layers else _NEAR_LAYERS) if -layer <= count + 1
    ]
    place, its_layers = pooling_place(its), parse_pooling(its).layers
    by_layer = [
        pooling_name(place, layers=[] if layer == -1 else [layer])
        for layer in layers
        if place and len(its_layers) == 1 and layer != its_layers[0]
    ]
    others = (
        [] if way == Pass() else [name for name in (encoder.identity.pooling, *POOLING_NAMES) if name in known]
    )
    of_template = varied.settings.template is not None
    kept = [name for name in others if of_template or not parse_pooling(name).is_of_template]
    return list(dict.fromkeys([its, *kept, *by_layer]))


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
