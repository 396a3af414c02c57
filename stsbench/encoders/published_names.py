"""From the name of a published system to its checkpoint, used as in its paper."""

from dataclasses import dataclass, replace
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.encoders.hub import MINILM, PACKAGED
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.template import NO_TEMPLATE
from stsbench.encoders.use import USUAL, Use
from stsbench.published.catalogue import known_checkpoint, row, system
from stsbench.published.schema import KnownCheckpoint


@dataclass(frozen=True)
class Resolved:
    """The model to load for a name, how to use it, and notes on both."""

    name: str
    use: Use
    notes: tuple[str, ...] = ()


def resolve(name: str, use: Use = USUAL) -> Resolved:
    """Finds the checkpoint of a published system; a known Hub name stands for itself, used as published.

    A folder or file of that name takes precedence, then the packaged model; other names are returned unchanged.

    >>> resolved = resolve("esimcse-bert-base")
    >>> resolved.name, resolved.use.pooling, resolved.use.max_length
    ('ffgcc/esimcse-bert-base-uncased', 'cls_before_pooler', 512)
    """
    if name == PACKAGED or ":" in name or Path(name).expanduser().exists():
        return Resolved(name, use)
    known = known_checkpoint(name)
    is_hub_name = "/" in name
    if is_hub_name and (known is None or known.hub.casefold() != name.casefold()):
        return Resolved(name, use)
    if known is None or not known.hub:
        try:
            published = known.system if known else system(name).name
        except UserError:  # not a published system either
            return Resolved(name, use)
        raise UserError(
            f"{published} is a published system without a known checkpoint on the Hugging Face Hub. Give the "
            "folder of one."
        )
    # A template of the user's decides where it is read.
    as_published = use.pooling == AUTO and use.template in {None, NO_TEMPLATE}
    used = replace(
        use,
        pooling=known.pooling if as_published else use.pooling,
        max_length=known.max_length if use.max_length is None else use.max_length,
    )
    if is_hub_name:
        note = f"pooling {known.pooling} was chosen for {known.hub} (unverified). {known.note}".rstrip()
        is_unsure = use.pooling == AUTO and "pooling" in known.unverified
        return Resolved(name, used, (note,) if is_unsure else ())
    # By its short name, the packaged copy is found too.
    return Resolved(PACKAGED if known.hub == MINILM else known.hub, used, _introduction(known, use.pooling))


def _introduction(known: KnownCheckpoint, pooling: str) -> tuple[str, ...]:
    """Returns notes on a known checkpoint: its name on the Hub, its pooling, and the scores to expect."""
    stated = f"{known.name} is {known.hub} ({known.hub_source}), pooling {known.pooling} ({known.pooling_source})"
    if pooling not in {AUTO, known.pooling}:
        stated += f"; with pooling {pooling} instead, other scores are to be expected"
    expected = []
    for name in known.expected:
        averages = [cell for cell in row(name).cells if cell.setting.task.startswith("Avg.")]
        scores = ", ".join([name, *(f"{cell.column} {cell.printed}" for cell in averages)])
        expected.append(f"{known.name} is expected to score as {scores}.")
    return (f"{stated}.", *expected, *([f"{known.name}: {known.note}"] if known.note else []))
