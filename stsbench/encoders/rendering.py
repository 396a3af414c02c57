"""Sentences in a template: token ids, with the positions of masks and of the copies of the sentence.

If a text is longer than the model reads, the sentence is truncated and the template is kept, so that the tokens to
read are always there. `EmptyTemplate` is the template without a sentence, whose vector PromptBERT and CoT-BERT
subtract (`Template.subtract`).
"""

import re
from collections.abc import Sequence, Sized
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from stsbench.base.errors import UserError
from stsbench.encoders.poolers import Reading
from stsbench.encoders.template import BEGIN, END, FROM_ZERO, MASK, OWN, SENTENCE, Template
from stsbench.encoders.tokenizer import Tokenizer

if TYPE_CHECKING:
    from torch import Tensor

_SENTENCE, _MASK, _BEGIN, _END = (f"{{{place}}}" for place in (SENTENCE, MASK, BEGIN, END))

Span = tuple[int, int]
"""Start and end (exclusive), in characters of a text or tokens of a sequence."""


class Part(NamedTuple):
    """A sentence in one text of its template.

    Attributes:
        ids: the tokens.
        masks: positions of the template's masks.
        copies: positions of the copies of the sentence.
    """

    ids: tuple[int, ...]
    masks: tuple[int, ...]
    copies: tuple[Span, ...]


class Rendered(tuple[int, ...]):
    """The token sequence of a sentence: its parts in each text of the template, concatenated."""

    parts: tuple[Part, ...]

    def __new__(cls, parts: Sequence[Part]) -> "Rendered":
        """Concatenates parts."""
        made = super().__new__(cls, (token for part in parts for token in part.ids))
        made.parts = tuple(parts)
        return made


def render(
    sentences: Sequence[str], template: Template, tokenizer: Tokenizer, limit: int | None
) -> tuple[list[Rendered], list[bool]]:
    """Returns the tokens of sentences in their template, and whether each sentence was truncated."""
    prepared = [template.prepared(sentence) for sentence in sentences]
    written = [_Text(template, text, tokenizer) for text in template.texts]
    for text in written:
        around = len(text.parts([""])[0].ids)
        if limit is not None and around >= limit:
            raise UserError(
                f"template {template.name} takes {around} of {limit} sub-words. Use a larger --max-length."
            )
    columns: list[list[Part]] = []
    cut = [False] * len(prepared)
    for text in written:
        parts = text.parts(prepared)
        for row, part in enumerate(parts):
            if limit is not None and len(part.ids) > limit:
                parts[row], cut[row] = text.cut(prepared[row], limit), True
        columns.append(parts)
    return [Rendered(parts) for parts in zip(*columns, strict=True)], cut


def alone(template: Template, tokenizer: Tokenizer) -> list[Part]:
    """Returns each text of a template with a space in place of the sentence, which is the part's only copy."""
    # A single space: byte-level tokenizers turn a second one into a token.
    texts = [re.sub(f" *{re.escape(_SENTENCE)} *", _SENTENCE, text) for text in template.texts]
    return [part for text in texts for part in _Text(template, text, tokenizer).parts([" "])]


class _Text:
    """One text of a template, to be filled with sentences."""

    def __init__(self, template: Template, text: str, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._pieces = Template.pieces(text)
        if _MASK in self._pieces and tokenizer.mask_id is None:
            raise UserError(f"template {template.name} has a {{mask}}, but {tokenizer.name} has no mask token.")
        self._is_together = template.tokenize == "together"

    def parts(self, sentences: Sequence[str]) -> list[Part]:
        """Returns sentences in the text."""
        return self._together(sentences) if self._is_together else self._apart(sentences)

    def cut(self, sentence: str, limit: int) -> Part:
        """Returns the longest prefix of a sentence, in whole sub-words, whose text fits the limit."""
        ends = self._tokenizer.ends(sentence)
        fits, too_long = 0, len(ends)
        (best,) = self.parts([""])
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            (part,) = self.parts([sentence[: ends[middle - 1]]])
            if len(part.ids) <= limit:
                fits, best = middle, part
            else:
                too_long = middle
        return best

    def _together(self, sentences: Sequence[str]) -> list[Part]:
        tokenizer = self._tokenizer
        fixed = [
            None if piece == _SENTENCE else str(tokenizer.mask) if piece == _MASK else piece
            for piece in self._pieces
        ]
        texts, places = [], []
        for sentence in sentences:
            words = [sentence if word is None else word for word in fixed]
            masks, copies = self._places(words)
            texts.append("".join(words))
            places.append([*masks, *copies])
        count = self._pieces.count(_MASK)
        return [
            Part(ids, tuple(_mask_in(ids, span, tokenizer) for span in spans[:count]), tuple(spans[count:]))
            for ids, spans in tokenizer.locate(texts, places)
        ]

    def _apart(self, sentences: Sequence[str]) -> list[Part]:
        fixed = [None if piece == _SENTENCE else self._ids_of(piece) for piece in self._pieces]
        parts = []
        for tokens in self._tokenizer(list(sentences), special_tokens=False):
            ids = [tokens if known is None else known for known in fixed]
            masks, copies = self._places(ids)
            parts.append(Part(tuple(chain.from_iterable(ids)), tuple(start for start, _ in masks), tuple(copies)))
        return parts

    def _places(self, filled: Sequence[Sized]) -> tuple[list[Span], list[Span]]:
        """Returns the spans of the masks and of the copies of the sentence."""
        spans = list(zip(self._pieces, pairwise(accumulate(map(len, filled), initial=0)), strict=True))
        masks = [span for piece, span in spans if piece == _MASK]
        return masks, [span for piece, span in spans if piece == _SENTENCE]

    def _ids_of(self, piece: str) -> tuple[int, ...]:
        tokenizer = self._tokenizer
        if piece == _MASK:
            assert tokenizer.mask_id is not None
            return (tokenizer.mask_id,)
        if piece in {_BEGIN, _END}:
            token = tokenizer.begin_id if piece == _BEGIN else tokenizer.end_id
            # A tokenizer without such a token does not add one to its texts either.
            return () if token is None else (token,)
        return tokenizer([piece], special_tokens=False)[0]


def _mask_in(ids: tuple[int, ...], span: Span, tokenizer: Tokenizer) -> int:
    # The span can also contain a token for the space before the mask.
    return next(place for place in range(*span) if ids[place] == tokenizer.mask_id)


def _gap(ids: Sequence[int], alone: Sequence[int], pad_position: int | None) -> tuple[int, int]:
    """Returns the numbers of tokens and of positions that a sentence adds to its template."""
    tokens = max(0, len(ids) - len(alone))
    return tokens, max(0, tokens - ids.count(pad_position) + alone.count(pad_position))


@dataclass
class EmptyTemplate:
    """The vectors of a template without its sentence.

    They depend on the sentence's length only, through the positions after it, and are computed once per length;
    each alone, so that its last bits do not depend on a batch.

    Attributes:
        texts: the template's texts without the sentence (see `alone`).
        with_padding: whether attended padding replaces the sentence.
        positions: `Template.positions`.
    """

    texts: Sequence[Part]
    with_padding: bool
    positions: str
    _known: "dict[tuple[str, int, tuple[int, int]], Tensor]" = field(default_factory=dict)

    def is_alone(self, part: Part) -> bool:
        """Returns whether the sentence in the template is empty."""
        return any(part.ids == text.ids for text in self.texts)

    def vectors(self, network: Any, pooling: str, reading: Reading, parts: Sequence[Part]) -> "Tensor":
        """Returns the vectors to subtract, computed by a `Network`, shape (len(parts), dimensions).

        In `parts`, all texts of the first sentence precede those of the second.
        """
        import torch

        vectors = []
        for number, part in enumerate(parts):
            text = number % len(self.texts)
            alone = self.texts[text]
            key = pooling, text, _gap(part.ids, alone.ids, network.pad_position)
            if key not in self._known:
                self._known[key] = self._computed(network, pooling, reading, alone, key[-1])
            vectors.append(self._known[key])
        return torch.stack(vectors)

    def _computed(
        self, network: Any, pooling: str, reading: Reading, alone: Part, gap: tuple[int, int]
    ) -> "Tensor":
        import torch

        ids, ((at, _),) = alone.ids, alone.copies
        from_zero = self.positions == FROM_ZERO
        row = torch.tensor([ids])
        places = range(len(ids)) if from_zero else network.own_positions(row, torch.ones_like(row))[0].tolist()
        first = at if from_zero or network.pad_position is None else at + network.pad_position + 1
        tokens, shift = gap if not from_zero else (gap[0], gap[0])
        fill = tokens if self.with_padding else 0
        masks = tuple(place + fill if place >= at else place for place in alone.masks)
        part = Part((*ids[:at], *[network.pad_id] * fill, *ids[at:]), masks, ((at, at + fill),))
        after = [place + shift for place in places[at:]]
        positions = None if self.positions == OWN else [[*places[:at], *range(first, first + fill), *after]]
        vector: Tensor = network.read([part], {pooling: reading}, positions=positions)[pooling][0]
        return vector
