"""The text before a sentence: a text, a prompt of the checkpoint by name, or a prompt for each side of a pair.

A sentence-transformers checkpoint names prompts in `config_sentence_transformers.json`, and possibly a default.
Vectors depend on the text only, so loading replaces names by texts.
"""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, NoReturn, TypeVar

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.plan import Embeddings, embed
from stsbench.encoders.protocol import Encoder, Identity, Wrapper
from stsbench.encoders.use import Use

LIBRARY_CONFIG = "config_sentence_transformers.json"

_Own = TypeVar("_Own", bound=Encoder)
_TEXT = re.compile(r"[\s:]")
"""Characters that distinguish a prompt's text from a prompt's name."""


def named_prompts(checkpoint: Checkpoint) -> dict[str, str]:
    """Returns the checkpoint's prompts by name."""
    prompts: dict[str, Any] = checkpoint.json(LIBRARY_CONFIG).get("prompts") or {}
    return {name: str(text) for name, text in prompts.items()}


def own_prompt(checkpoint: Checkpoint) -> str:
    """Returns the checkpoint's default prompt, or ""."""
    name = checkpoint.json(LIBRARY_CONFIG).get("default_prompt_name")
    return "" if name is None else _by_name(checkpoint.name, named_prompts(checkpoint), name)


def prompts_as_texts(name: str, prompts: Mapping[str, str], use: Use) -> tuple[Use, list[str]]:
    """Replaces prompt names in a use by their texts, and two equal prompts by one; returns notes too.

    Args:
        name: of the model.
        prompts: the model's prompts by name.
        use: of the model.

    Raises:
        UserError: if the model has no prompt of that name, or there are not two sides.
    """
    if use.prompt_name is not None:
        text = _by_name(name, prompts, use.prompt_name)
        note = f"{name}: its prompt {use.prompt_name!r}, {text!r}, is put before every sentence."
        return replace(use, prompt=text, prompt_name=None), [note]
    if use.prompts is None:
        return use, []
    sides = both_sides(use.prompts)
    texts = [_of_side(name, prompts, side) for side in sides]
    notes = [
        f"{name}: its prompt {side!r}, {text!r}, is put before the {number} sentence of every pair."
        for number, side, text in zip(("first", "second"), sides, texts, strict=True)
        if text != side
    ]
    first, second = texts
    if first == second:
        return replace(use, prompt=first, prompts=None), notes
    return replace(use, prompts=(first, second)), notes


def both_sides(given: str | Sequence[str]) -> tuple[str, str]:
    """Splits the value of `--prompts`: two texts, or one text with a comma, quoted as in CSV.

    >>> both_sides("query,document"), both_sides('"to, fro: ",')
    (('query', 'document'), ('to, fro: ', ''))

    Raises:
        UserError: if these are not two.
    """
    try:
        first, second = next(csv.reader([given], strict=True)) if isinstance(given, str) else given
    except (csv.Error, StopIteration, ValueError) as error:
        raise UserError(
            f"--prompts {given!r}: expected one prompt for each side of a pair. Put one comma between them, and "
            "double quotes around a prompt with a comma or quote."
        ) from error
    return first, second


def _of_side(model: str, prompts: Mapping[str, str], given: str) -> str:
    """Returns the text for one side; a text equal to one of the model's prompts is never read as a name."""
    if given in prompts or not given:
        return prompts.get(given, "")
    return given if _TEXT.search(given) or given in prompts.values() else _by_name(model, prompts, given)


def _by_name(model: str, prompts: Mapping[str, str], name: str) -> str:
    if name not in prompts:
        advice = suggestion(name, prompts) if prompts else "it names none. Use --prompt for a text."
        raise UserError(f"{model} has no prompt named {name!r}: {advice}")
    return prompts[name]


@dataclass
class SidedEncoder(Wrapper):
    """A model with a prompt for each side of a pair: two encoders that share a network."""

    sides: tuple[Encoder, Encoder]
    notes: tuple[str, ...] = ()

    @property
    def base(self) -> Encoder:  # type: ignore[override]
        """The encoder of the first sentences."""
        return self.sides[0]

    @cached_property
    def identity(self) -> Identity:
        first, second = (side.identity for side in self.sides)
        prompts = (first.use.prompt or "", second.use.prompt or "")
        return replace(first, use=replace(first.use, prompt="", prompts=prompts))

    def reader(self, task: str, side: int | None) -> Encoder:
        """Returns the encoder of a side (see `reader_of`)."""
        if side is None:
            raise UserError(
                f"{self.identity.name} has a prompt for each side of a pair, but {task} has single sentences. "
                "Use --prompt or --prompt-name instead of --prompts, or leave the task out."
            )
        return self.sides[side]

    def with_use(self, **changes: Any) -> "SidedEncoder":
        """Returns the encoder with other fields of `Use`; only for checkpoints that are read natively."""
        first: Any = self.sides[0]
        changed = first.with_use(**changes)
        return replace(self, sides=(changed, changed.with_use(prompt=self.sides[1].identity.use.prompt)))

    def tokenize(self, texts: Sequence[str]) -> NoReturn:
        raise UserError(
            f"{self.identity.name} has a prompt for each side of a pair, but these sentences have no side. Use "
            "--prompt or --prompt-name instead of --prompts."
        )


def in_sides(encoder: _Own, use: Use, with_prompt: Callable[[str], Encoder]) -> "_Own | SidedEncoder":
    """Returns an encoder, or its two sides if the use has a prompt for each side of a pair."""
    if use.own_prompts is None:
        return encoder
    first, second = map(with_prompt, use.own_prompts)
    return SidedEncoder((first, second), encoder.notes)


def embed_each(
    parts: Sequence[tuple[Encoder, Sequence[str]]], *, use_cache: bool = True, progress: Progress = silent
) -> Embeddings:
    """Encodes texts with one or several encoders of a model, each distinct text once per encoder (see `embed`).

    Args:
        parts: encoders, each with its texts; an encoder may occur several times.
        use_cache: whether to read and write the embedding cache.
        progress: receives the number of encoded tokens.

    Returns:
        The vectors of all texts, part after part, without the closing normalisation.
    """
    encoders = {id(encoder): encoder for encoder, _ in parts}
    owners = np.repeat([id(encoder) for encoder, _ in parts], [len(texts) for _, texts in parts])
    texts = [text for _, texts_of_part in parts for text in texts_of_part]
    places = [np.flatnonzero(owners == number) for number in encoders]
    embedded = [
        embed(encoder, [texts[row] for row in rows], normalize=False, use_cache=use_cache, progress=progress)
        for encoder, rows in zip(encoders.values(), places, strict=True)
    ]
    if len(embedded) == 1:
        return embedded[0]
    order = np.argsort(np.concatenate(places))
    starts = np.cumsum([0, *(part.cost.sequences for part in embedded)])
    rows = [start + part.rows for start, part in zip(starts, embedded, strict=False)]
    return Embeddings(
        rows=np.concatenate(rows)[order],
        vectors={name: np.concatenate([part.vectors[name] for part in embedded]) for name in embedded[0].vectors},
        lengths=np.concatenate([part.lengths for part in embedded])[order],
        truncated=np.concatenate([part.truncated for part in embedded])[order],
        cost=reduce(add, (part.cost for part in embedded)),
    )
