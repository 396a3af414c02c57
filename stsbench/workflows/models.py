"""What a person calls a model: a published system's name stands for its checkpoint, used as its paper used it."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stsbench import encoders
from stsbench.encoders import Encoder
from stsbench.encoders.callables import CallableEncoder
from stsbench.encoders.checkpoint import MINILM
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.foundation.errors import UserError
from stsbench.published import Checkpoint, checkpoints, row, system
from stsbench.published.findings import as_printed

_PACKAGED = "minilm"


@dataclass(frozen=True)
class Resolved:
    """What to load for a model, and how.

    Attributes:
        name: what to load: a Hub name, or `minilm`.
        pooling: the person's choice, or the published one.
        max_length: likewise.
        notes: what the published name stands for and where that is said, and what is expected of it.
    """

    name: str
    pooling: str
    max_length: int | None
    notes: tuple[str, ...] = ()


def load(
    model: str | Path | Callable[[list[str]], Any],
    *,
    pooling: str = "auto",
    max_length: int | None = None,
    prompt: str | None = None,
    precision: str = "fp32",
    device: str = "auto",
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> Encoder:
    """Load an encoder. The weights themselves are read at the first sentence that is not in the cache.

    Args:
        model: a published system, such as `esimcse-bert-base`: its checkpoint is loaded, pooled as its paper
            pooled; or a checkpoint's folder or Hub name, a file of word vectors, `module:function`, a callable
            `list[str] -> array`, or an object with such a method `encode`.
        pooling: one of the poolers, or `auto`: the published one, the checkpoint's own, or else what its paper
            used.
        max_length: sub-words kept, special tokens included; None for the published one, or the model's own limit.
        prompt: text put before every sentence; None for the checkpoint's own, "" for none.
        precision: `fp32`, `bf16` or `fp16`.
        device: `auto`, `cpu`, `cuda` or `mps`.
        revision: a branch, tag or commit on the Hub.
        trust_remote_code: whether Python code that comes with a checkpoint may run.

    Raises:
        UserError: if there is no such model, or it cannot be used as asked.
    """
    found = resolve(model, pooling, max_length) if isinstance(model, str) else None
    encoder = encoders.load(
        found.name if found else model,
        pooling=found.pooling if found else pooling,
        max_length=found.max_length if found else max_length,
        prompt=prompt,
        precision=precision,
        device=device,
        revision=revision,
        trust_remote_code=trust_remote_code,
    )
    return _noted(encoder, found.notes) if found else encoder


def resolve(name: str, pooling: str = "auto", max_length: int | None = None) -> Resolved | None:
    """Return what a published system's name stands for; None if it is none, or something else first.

    A folder or a file of that name comes first, then the packaged model.

    Raises:
        UserError: if the system has no public checkpoint.

    >>> found = resolve("esimcse-bert-base")
    >>> found.name, found.pooling, found.max_length
    ('ffgcc/esimcse-bert-base-uncased', 'cls_before_pooler', 512)
    """
    if name == _PACKAGED or "/" in name or ":" in name or Path(name).expanduser().exists():
        return None
    try:
        measured = system(name)
    except UserError:
        return None
    entry = next((entry for entry in checkpoints().values() if entry.system == measured.name), None)
    if entry is None or not entry.hub:
        raise UserError(
            f"{measured.name} is a published system without a known checkpoint on the Hugging Face Hub: give the "
            "folder of one."
        )
    return Resolved(
        # By that name the packaged copy is found, too.
        _PACKAGED if entry.hub == MINILM else entry.hub,
        entry.pooling if pooling == "auto" else pooling,
        entry.max_length if max_length is None else max_length,
        tuple(_notes(entry, pooling)),
    )


def _notes(entry: Checkpoint, pooling: str) -> list[str]:
    stated = f"{entry.name} is {entry.hub} ({entry.hub_source}), pooling {entry.pooling} ({entry.pooling_source})"
    if pooling not in {"auto", entry.pooling}:
        stated += f"; {pooling} was asked for, so its numbers are not to be expected"
    expected = [f"{entry.name} is expected to score as {_row(name)}." for name in entry.expected]
    return [f"{stated}.", *expected, *([f"{entry.name}: {entry.note}"] if entry.note else [])]


def _row(name: str) -> str:
    averages = [cell for cell in row(name).cells if cell.setting.task.startswith("Avg.")]
    return ", ".join([name, *(f"{cell.column} {as_printed(cell)}" for cell in averages)])


def _noted(encoder: Encoder, notes: tuple[str, ...]) -> Encoder:
    """Return the encoder of a checkpoint with sentences for the person before its own."""
    assert isinstance(encoder, TransformerEncoder | CallableEncoder)
    return dataclasses.replace(encoder, notes=(*notes, *encoder.notes))
