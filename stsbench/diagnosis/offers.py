"""What is tried of each way of using a model, and why the rest is not: only what can matter to this checkpoint.

A rule looks at the checkpoint's files, at how the person uses it and at how large the gap is. What it leaves out
it says in words, so that nobody takes a cause for excluded that was not looked at.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from stsbench.diagnosis.choices import (
    ATTENTION,
    BEFORE,
    MASK,
    PADDING_SIDE,
    PRECISION,
    PROMPT,
    PROMPT_NAME,
    PROMPTS,
    TEMPLATE,
    Choice,
    tried_values,
)
from stsbench.diagnosis.misread import MISREADINGS
from stsbench.encoders.masks import has_causal_code, own_mask
from stsbench.encoders.poolers import AUTO, parse_pooling
from stsbench.encoders.prompts import named_prompts
from stsbench.encoders.template import NO_TEMPLATE
from stsbench.encoders.tokenizer import counts_padding
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import FLASH, FP32, PRECISIONS, TORCH, Use

_LOST_BY_KERNEL = 0.01
"""Points of a score that another kernel of attention is likely to move in float32, at most."""

_SIDES = {"query": ("document", "passage", "corpus"), "search_query": ("search_document",)}
"""Names of prompts for a query, each with those for what it finds."""


@dataclass(frozen=True)
class Offer:
    """What is tried on one axis.

    Attributes:
        values: in this order.
        without: why others are not, or none is: a clause; empty where all are.
        notes: by value, what is to be said of it for this checkpoint.
    """

    values: tuple[Any, ...] = ()
    without: str = ""
    notes: Mapping[Any, str] = field(default_factory=dict)


def offers(encoder: TransformerEncoder, choices: tuple[Choice, ...], gap: float) -> dict[Choice, Offer]:
    """Return what is tried on each axis of how a checkpoint is used; `gap` is in points."""
    return {choice: _RULES.get(choice, _every_other)(encoder, choice, gap) for choice in choices}


def stated_precision(encoder: TransformerEncoder) -> str:
    """Return the precision that the checkpoint's configuration states, as `Use` calls it; empty for none."""
    config = encoder.checkpoint.json("config.json")
    stated = str(config.get("dtype") or config.get("torch_dtype") or "").removeprefix("torch.")
    return next((name for name, dtype in PRECISIONS.items() if dtype == stated), "")


def own_value(use: Use, choice: Choice) -> Any:
    """Return the person's own setting of a field, as it is called."""
    if choice in BEFORE:
        without = f"prompt {use.prompt!r}" if use.prompt else NO_TEMPLATE if choice == TEMPLATE else "no prompt"
        return use.own_template.name if use.own_template else without
    return use.computed_in if choice == PRECISION else getattr(use, choice.name)


def _every_other(encoder: TransformerEncoder, choice: Choice, _gap: float) -> Offer:
    own = encoder.use.prompt if choice == PROMPT else own_value(encoder.use, choice)
    return Offer(tuple(value for value in tried_values(choice) if value != own))


def _prompt_names(encoder: TransformerEncoder, _choice: Choice, _gap: float) -> Offer:
    """Offer each of the checkpoint's own prompts that is another text than the person's."""
    named = named_prompts(encoder.checkpoint)
    if encoder.use.own_template is not None:
        return Offer(without="named prompts (the template stands in their place)" if named else "")
    if not named:
        return Offer(without="named prompts (its files name none)")
    by_text = {text: name for name, text in reversed(named.items()) if text != (encoder.use.prompt or "")}
    values = tuple(name for name in named if name in by_text.values())
    return Offer(values, notes={name: f"Its prompt `{name}` is {named[name]!r}." for name in values})


def _prompts_of_sides(encoder: TransformerEncoder, _choice: Choice, _gap: float) -> Offer:
    """Offer a prompt for either side, where the checkpoint names one for queries and one for documents."""
    named = named_prompts(encoder.checkpoint)
    if encoder.use.own_template is not None:
        return Offer()
    pairs = [
        (query, document)
        for query, documents in _SIDES.items()
        for document in documents
        if query in named and document in named and named[query] != named[document]
    ]
    notes = {
        f"{query},{document}": f"The first sentence is read behind {named[query]!r}, the second behind "
        f"{named[document]!r}: so `encode_query` and `encode_document` of sentence-transformers read a pair."
        for query, document in pairs
    }
    return Offer(tuple(notes), notes=notes)


def _precisions(encoder: TransformerEncoder, choice: Choice, gap: float) -> Offer:
    """Offer the precision first that the configuration states, as Transformers 5 loads it by default."""
    stated = stated_precision(encoder)
    values = sorted(_every_other(encoder, choice, gap).values, key=lambda value: value != stated)
    if not stated:
        return Offer(tuple(values))
    named = PRECISIONS[stated]
    notes = {
        stated: f"Its config.json states {named}: Transformers 5 loads a checkpoint in that by default, and "
        "releases before it in float32 (Transformers 34919, mteb's results 656)."
    }
    if stated != FP32:
        notes[FP32] = (
            f"Transformers loaded in float32 by default before version 5, whatever config.json states: {named}."
        )
    return Offer(tuple(values), notes=notes)


def _kernels(encoder: TransformerEncoder, _choice: Choice, gap: float) -> Offer:
    """Offer the other kernels where their rounding can show."""
    use = encoder.use
    if use.backend != TORCH:
        return Offer(without=f"attention kernels ({use.backend} has its own)")
    caps = encoder.checkpoint.json("config.json").get("attn_logit_softcapping")
    if use.precision == FP32 and gap > _LOST_BY_KERNEL and not caps:
        return Offer(
            without="attention kernels (in fp32 they agree to a millionth, "
            f"which moves no score by {gap:.2g} points)"
        )
    own = encoder.kernel
    values = [kernel for kernel in tried_values(ATTENTION) if kernel not in {own, FLASH}]
    if use.device == "cuda" and use.precision != FP32 and find_spec("flash_attn") is not None and own != FLASH:
        return Offer((*values, FLASH))
    return Offer(tuple(values), f"{FLASH} (it needs CUDA, half precision and the package flash-attn)")


def _masks(encoder: TransformerEncoder, _choice: Choice, _gap: float) -> Offer:
    """Offer the mask that a decoder does not have; both where its own code or setting asks for one."""
    use = encoder.use
    if use.backend != TORCH:
        return Offer(without=f"attention masks ({use.backend} has compiled one)")
    if use.attention_mask == AUTO and not has_causal_code(encoder.checkpoint):
        return Offer(without="a causal mask (its network is an encoder's)")
    own = own_mask(encoder.checkpoint) if use.attention_mask == AUTO else use.attention_mask
    return Offer(tuple(mask for mask in tried_values(MASK) if mask != own))


def _misreadings(encoder: TransformerEncoder, _choice: Choice, _gap: float) -> Offer:
    """Offer what the person's own pooling would read of a batch whose padding is mistaken."""
    if encoder.use.own_template is not None:
        return Offer(without="the padding's side (the template says it)")
    if encoder.use.backend != TORCH:
        return Offer(without=f"the padding's side ({encoder.use.backend} computes)")
    place = parse_pooling(encoder.use.pooling).place
    shifts = counts_padding(encoder.checkpoint)
    values = tuple(
        misread for misread in MISREADINGS if place in misread.places or (misread.shifts_positions and shifts)
    )
    return (
        Offer(values)
        if values
        else Offer(without=f"the padding's side (pooling {encoder.use.pooling} ignores it)")
    )


_RULES: dict[Choice, Callable[[TransformerEncoder, Choice, float], Offer]] = {
    PROMPT_NAME: _prompt_names,
    PROMPTS: _prompts_of_sides,
    PRECISION: _precisions,
    ATTENTION: _kernels,
    MASK: _masks,
    PADDING_SIDE: _misreadings,
}
