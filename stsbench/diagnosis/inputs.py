"""Ways of using a checkpoint that only its vectors reveal, and the vectors of each.

`SERVED` lists the axes, whose changes set fields of `Feed`. To add a cause, add an entry there.
"""

import copy
import json
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.diagnosis.axes import Axis, Change, Way, single_ways
from stsbench.diagnosis.variations import number_of_layers
from stsbench.encoders.network import Network
from stsbench.encoders.poolers import AUTO, Reading, parse_pooling, read_vectors
from stsbench.encoders.prompts import named_prompts
from stsbench.encoders.protocol import FloatMatrix
from stsbench.encoders.rendering import Part
from stsbench.encoders.tokenizer import position_limit, stated_limits
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import MASKS, PRECISIONS, USUAL_LENGTHS

SENTENCES: tuple[str, ...] = tuple(json.loads(Path(__file__).with_name("sentences.json").read_text("utf-8")))
"""Fifty sentences of our own (CC0) that most ways of using a checkpoint change."""

PADDED = "+padding"
"""The end of the name of a pooling that reads the padding, too."""

_PROMPTS = (
    *("", "query: ", "passage: ", "search_query: ", "search_document: "),  # none, E5, Nomic
    *("title: none | text: ", "task: search result | query: "),  # EmbeddingGemma
    *(
        "Represent this sentence for searching relevant passages: ",
        "为这个句子生成表示以用于检索相关文章：",
    ),  # BGE
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ",  # E5-Mistral
)


def _without_accents(text: str) -> str:
    # As BERT's tokenizer.
    return "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")


_TEXTS: Mapping[str, Mapping[str, Callable[[str], str]]] = {
    "case": {
        "lower-cases": str.lower,
        "upper-cases": str.upper,
        "removes accents": _without_accents,
        "lower-cases and removes accents": lambda text: _without_accents(text.lower()),
    },
    "form": {
        "normalises Unicode to NFC": lambda text: unicodedata.normalize("NFC", text),
        "normalises Unicode to NFD": lambda text: unicodedata.normalize("NFD", text),
        "normalises Unicode to NFKC": lambda text: unicodedata.normalize("NFKC", text),
        "normalises Unicode to NFKD": lambda text: unicodedata.normalize("NFKD", text),
        "reads UTF-8 as Latin-1": lambda text: text.encode(errors="replace").decode("latin-1"),
        "drops all but ASCII": lambda text: text.encode("ascii", "ignore").decode(),
    },
    "space": {
        "strips white space": str.strip,
        "collapses white space": lambda text: " ".join(text.split()),
        "turns line breaks into spaces": lambda text: text.replace("\n", " "),
        "adds a space before": lambda text: f" {text}",
        "adds a line break after": lambda text: f"{text}\n",
    },
}

_Ids = list[int]
_SPECIAL: Mapping[str, Callable[[_Ids, _Ids, Any], tuple[_Ids, _Ids]]] = {
    "leaves out the first {first}": lambda first, last, _: (first[1:], last),
    "leaves out the final {last}": lambda first, last, _: (first, last[:-1]),
    "leaves out all special tokens": lambda _first, _last, _: ([], []),
    "doubles the first {first}": lambda first, last, _: (first[:1] + first, last),
    "doubles the final {last}": lambda first, last, _: (first, last + last[-1:]),
    "doubles all special tokens": lambda first, last, _: (first * 2, last * 2),
    "adds a first special token": lambda first, last, t: (first or [t.begin_id], last),
    "adds a final special token": lambda first, last, t: (first, last or [t.end_id]),
    "adds special tokens at both ends": lambda first, last, t: (first or [t.begin_id], last or [t.end_id]),
}

_CUTS = {"end": "cuts the end", "start": "cuts the beginning", "hard": "cuts the end with the final special token"}

_PADDINGS = {
    "lets attention see the padding": {"seen": True},
    "pools the padding, too": {"pooled": True},
    "lets attention see the padding and pools it": {"seen": True, "pooled": True},
    "pads on the left without moving the positions": {"left": True},
    "pads on the left and pools the padding": {"left": True, "pooled": True},
}
_FULL = "padding to the maximum length"
_BATCHES: Mapping[str, tuple[int, bool]] = {
    "all sentences in one batch": (1_000_000, False),
    **{f"batches of {size} in the given order": (size, False) for size in (32, 16, 8)},
    **{f"batches of {size} sorted by length": (size, True) for size in (32, 16, 8)},
}

INT8 = "int8"


def _around(tokenizer: Any) -> tuple[_Ids, _Ids]:
    """Returns the special tokens before and after a text."""
    plain, whole = (tokenizer(["a"], special_tokens=flag)[0] for flag in (False, True))
    start = next(place for place in range(len(whole)) if whole[place : place + len(plain)] == plain)
    return list(whole[:start]), list(whole[start + len(plain) :])


def _prompts(axis: Axis, encoder: TransformerEncoder) -> Iterator[Change]:
    for text in dict.fromkeys((*_PROMPTS, *named_prompts(encoder.checkpoint).values())):
        yield axis.change(f"puts {text!r} before every sentence" if text else "leaves out the prompt", prompt=text)


def _special_tokens(axis: Axis, encoder: TransformerEncoder) -> Iterator[Change]:
    first, last = map(encoder.tokenizer.texts, _around(encoder.tokenizer))
    for words in _SPECIAL:
        yield axis.change(words.format(first=(first or [""])[0], last=(last or [""])[-1]), special=words)


def _lengths(axis: Axis, encoder: TransformerEncoder) -> Iterator[Change]:
    own = encoder.use.max_length or 8
    for limit in sorted({8, 16, *USUAL_LENGTHS, *stated_limits(encoder.checkpoint), own}):
        for cut, words in _CUTS.items():
            yield axis.change(f"{words} beyond {limit} tokens", limit=limit, cut=cut)


def _paddings(axis: Axis, _encoder: TransformerEncoder) -> Iterator[Change]:
    for words, fields in _PADDINGS.items():
        for batches in (*_BATCHES, _FULL):
            yield axis.change(f"{words} ({batches})", batches=batches, **fields)


served = partial(Axis, label="{value}")
"""An axis whose values are words after "The server"."""

SERVED = (
    *(served(name, tuple(values), cost=1) for name, values in _TEXTS.items()),
    served("prompt", cost=2, tries=_prompts),
    served("special tokens", cost=3, tries=_special_tokens),
    served("length", cost=4, tries=_lengths),
    Axis("mask", MASKS, cost=5, label="uses a {value} attention mask"),
    served("padding", cost=6, tries=_paddings),
    Axis("precision", (*PRECISIONS, INT8), cost=7, moves="bits", label="computes in {value}"),
)
"""What a server may do differently."""

FLOOR, ALIKE = 1e-6, 0.05
"""The error of float32's rounding; smaller ratios of errors (log10) do not count."""

Errors = NDArray[np.float64]
"""For each sentence, the distance between the vectors scaled to unit length."""


@dataclass(frozen=True)
class Feed:
    """How texts become the input of the network. An empty field means the checkpoint's own way."""

    case: str = ""
    form: str = ""
    space: str = ""
    prompt: str | None = None
    special: str = ""
    limit: int | None = None
    cut: str = "end"
    mask: str = AUTO
    batches: str = ""
    seen: bool = False
    left: bool = False
    pooled: bool = False
    precision: str = ""


class Input(NamedTuple):
    """The input of the network for one text.

    Attributes:
        ids: the tokens.
        words: where the tokens of the text start and stop, without special tokens.
        width: the number of columns with padding; 0 without padding.
        network: the attention mask and the precision.
        padding: whether attention sees it, and whether it is on the left.
    """

    ids: tuple[int, ...]
    words: tuple[int, int]
    width: int
    network: tuple[str, str]
    padding: tuple[bool, bool]

    @property
    def size(self) -> int:
        """The number of columns."""
        return max(self.width, len(self.ids))


class Read(NamedTuple):
    """How the network's output is read: a pooling, some of the dimensions, in your order of rows or not."""

    pooling: str
    part: str = ""
    is_moved: bool = False

    def changes(self, own: str, width: int) -> Iterator[Change]:
        """Yields how it differs from reading so many dimensions with your pooling, in your order."""
        pooling = self.pooling.removesuffix(PADDED)
        if pooling != own:
            words = "averages without the special tokens" if pooling == "sentence" else f"uses pooling {pooling}"
            yield served("pooling").change(words)
        if self.part:
            yield served("dimensions").change(f"keeps the {self.part} {width} dimensions")
        if self.is_moved:
            yield served("order").change("returns the rows in another order")


@dataclass(frozen=True, eq=False)
class Setting:
    """A setting, and its remaining errors; a precision explains only its own noise (`floor`)."""

    way: Way
    read: Read
    errors: Errors = field(repr=False)
    floor: float = FLOOR

    @property
    def changes(self) -> Way:
        """The changes of your setting, without the precision."""
        return Way(change for change in self.way if change.axis.moves != "bits")

    @property
    def objective(self) -> float:
        """The mean logarithm of the errors."""
        return float(np.log10(np.maximum(self.errors, self.floor)).mean())

    def decrease(self, before: "Setting") -> Errors:
        """Returns by how much the errors are smaller (log10)."""
        floor = max(self.floor, before.floor)
        decrease: Errors = np.log10(np.maximum(before.errors, floor) / np.maximum(self.errors, floor))
        return decrease

    def gain(self, before: "Setting") -> float:
        """Returns the mean decrease over the sentences that it moves."""
        decrease = self.decrease(before)
        moved = np.abs(decrease) > ALIKE
        return float(decrease[moved].mean()) if moved.any() else 0.0


@dataclass
class Machine:
    """Feeds texts to an encoder in many ways, each distinct input once."""

    encoder: TransformerEncoder
    texts: Sequence[str]
    _known: dict[Input, list[NDArray[np.float32]]] = field(default_factory=dict)
    _networks: dict[str, Network] = field(default_factory=dict)
    _tokens: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _inputs: dict[Feed, list[Input]] = field(default_factory=dict)

    @cached_property
    def poolings(self) -> dict[str, Reading]:
        """The poolings of every input, yours first."""
        own = self.encoder.use.pooling
        network, places = self.encoder.network, ("avg", "cls_before_pooler", "last", "max")
        names = [own, *places, "cls_avg", "weighted_avg", "avg_top2", "avg_first_last", "avg_static_last"]
        names += [*(["cls"] if network.head or network.has_pooler else []), "sentence"]
        layers = range(-2, -number_of_layers(self.encoder) - 2, -1)
        names += [f"{place}@{layer}" for layer in layers for place in places]
        names += [f"{name}{PADDED}" for name in (own, *places)]
        return {name: parse_pooling(name.removesuffix(PADDED)) for name in dict.fromkeys(names)}

    @cached_property
    def ways(self) -> list[Way]:
        """The single changes that the network accepts; those with the same inputs are merged."""
        own, ways = self.inputs(Way()), dict[Any, Way]()
        for way in single_ways(SERVED, self.encoder):
            inputs = self.inputs(way)
            changed = [row for row, before in zip(inputs, own, strict=True) if row != before]
            with suppress(UserError, RuntimeError, ValueError, NotImplementedError):
                if changed and (changed[0].network == own[0].network or self.vectors(changed[:1])):
                    key = (tuple(inputs), "pooled" in way.fields)
                    first = ways.get(key, way)[0]
                    ways[key] = Way([replace(first, value=f"{first.value} (or {way})")]) if key in ways else way
        return list(ways.values())

    def inputs(self, way: Way) -> list[Input]:
        """Returns the input of the network for each text."""
        if (feed := Feed(**way.fields)) not in self._inputs:
            prompt = self.encoder.use.prompt if feed.prompt is None else feed.prompt
            texts = list(self.texts)
            for axis, entries in _TEXTS.items():
                texts = list(map(entries.get(getattr(feed, axis), str), texts))
            self._inputs[feed] = self._fed([(prompt or "") + text for text in texts], feed)
        return self._inputs[feed]

    def _fed(self, texts: Sequence[str], feed: Feed) -> list[Input]:
        use, tokenizer = self.encoder.use, self.encoder.tokenizer
        first, last = around = _around(tokenizer)
        limit, most = feed.limit or use.max_length, position_limit(self.encoder.checkpoint)
        room = None if limit is None else max(1, limit - len(first) - len(last))
        if feed.special:
            first, last = _SPECIAL[feed.special](first, last, tokenizer)
        if None in {*first, *last}:  # the tokenizer has no such token
            first, last = around
        new = [text for text in dict.fromkeys(texts) if text not in self._tokens]
        cased = [text.lower() for text in new] if self.encoder.settings.lower_case else new
        self._tokens |= zip(new, tokenizer(cased, special_tokens=False), strict=True)
        rows = []
        for tokens in (self._tokens[text] for text in texts):
            words, end = tokens, last
            if room is not None and limit is not None and len(tokens) > room:
                words = tokens[-room:] if feed.cut == "start" else tokens[:room]
                if feed.cut == "hard":
                    words, end = tokens[: limit - len(first)], []
            row = (*first, *words, *end)[:most]
            stop = max(1, len(row) - len(end))
            rows.append((row, (min(len(first), stop - 1), stop)))
        precision = "" if feed.precision == use.precision else feed.precision
        network, padding = (feed.mask, precision), (feed.seen, feed.left)
        widths = self._widths([len(row) for row, _ in rows], feed.batches, use.max_length)
        return [Input(*row, width, network, padding) for row, width in zip(rows, widths, strict=True)]

    @staticmethod
    def _widths(lengths: Sequence[int], batches: str, longest: int | None) -> list[int]:
        if not batches:
            return [0] * len(lengths)
        widths, (size, is_sorted) = np.array(lengths), _BATCHES.get(batches, (1, False))
        order = np.argsort(-widths, kind="stable") if is_sorted else np.arange(len(widths))
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            widths[batch] = widths[batch].max()
        return np.maximum(widths, (longest or 0) if batches == _FULL else 0).tolist()  # type: ignore[no-any-return]

    def vectors(self, inputs: Sequence[Input]) -> dict[str, FloatMatrix]:
        """Returns for each pooling the vectors of inputs, shape (inputs, dimensions)."""
        groups = defaultdict(list)
        for row in dict.fromkeys(inputs):
            if row not in self._known:
                groups[row[2:]].append(row)
        for rows in groups.values():
            rows.sort(key=lambda row: -row.size)
            start = 0
            while start < len(rows):
                batch = rows[start : start + max(1, 4096 // max(1, rows[start].size))]
                self._known |= zip(batch, self._computed(batch), strict=True)
                start += len(batch)
        made = [self._known[row] for row in inputs]
        return {name: np.stack([of[place] for of in made]) for place, name in enumerate(self.poolings)}

    def _computed(self, batch: Sequence[Input]) -> list[list[NDArray[np.float32]]]:
        import torch

        (mask_kind, precision), (seen, left) = batch[0].network, batch[0].padding
        network, padding = replace(self._network(precision), mask=mask_kind), "left" if left else "right"
        parts = [Part(row.ids, (), ()) for row in batch]
        padded = network.padded(parts, padding, None, batch[0].width)[:3]
        ids, mask, starts = (tensor.to(network.device) for tensor in padded)
        made = []
        with torch.inference_mode():
            states = network.run(ids, torch.ones_like(ids) if seen else mask, padding=padding, all_layers=True)
            for name, reading in self.poolings.items():
                end = ids.shape[1] if name.endswith(PADDED) else None
                spans = [reading.span(end or len(row.ids), copies=[row.words]) for row in batch]
                columns = torch.tensor(spans, device=ids.device) + (0 if end else starts[:, None])
                read: Any = read_vectors(reading, states.hidden_states, columns.clamp(min=0))
                if reading.head:
                    head: Any = network.head
                    read = head(read.to(network.model.dtype)) if head else states.pooler_output
                made.append(np.nan_to_num(network.tail(read.float()).float().cpu().numpy()))
        return [list(vectors) for vectors in zip(*made, strict=True)]

    def _network(self, precision: str) -> Network:
        if precision not in self._networks:
            own = self.encoder.network if precision in {"", INT8} else None
            network = own or self.encoder.with_use(precision=precision).network
            if precision == INT8:
                network = replace(network, model=_rounded(copy.deepcopy(network.model)))
            self._networks[precision] = network
        return self._networks[precision]


def _rounded(model: Any) -> Any:
    """Rounds the matrices of a model's layers to 8 bits, with a scale for each row."""
    import torch

    for module in model.modules():
        weight = getattr(module, "weight", None)
        if weight is not None and weight.ndim == 2 and not isinstance(module, torch.nn.Embedding):
            scale = weight.data.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
            weight.data = (weight.data / scale).round() * scale
    return model
