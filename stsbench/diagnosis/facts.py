"""What is published about a claim and the measured model."""

from collections.abc import Iterator, Sequence

from stsbench.base.words import listed
from stsbench.diagnosis.claim import Claim, Value
from stsbench.encoders.protocol import Identity
from stsbench.published.catalogue import (
    checkpoint_named_like,
    checkpoint_of_system,
    identified_checkpoint,
    known_checkpoint,
    rows,
)
from stsbench.published.schema import KnownCheckpoint
from stsbench.records.kinds import AVERAGE


def facts(claim: Claim, identity: Identity) -> list[str]:
    """Returns what published documents state, as sentences: first how the model differs from the published one."""
    row = claim.row
    of_model = identified_checkpoint(
        identity.name, pooling=identity.use.pooling, weights_sha256=identity.weights_sha256
    )
    of_row = checkpoint_of_system(row.row.system) if row else None
    sentences = []
    if row and of_model and of_row and of_model.name != of_row.name:
        sentences.append(f"{row.name} is a row of {of_row.hub or of_row.name}; you measured {identity.name}.")
    expected = of_row or of_model
    if expected:
        sentences += _differences(expected, identity, with_files=expected == of_model)
    return [*sentences, *(row.row.notes if row else _printed(claim.values, of_model))]


def likely_templates(claim: Claim, model: str) -> tuple[str, ...]:
    """Returns the templates that the model and the claimed row are known to use."""
    of_row = checkpoint_of_system(claim.row.row.system) if claim.row else None
    entries = (of_row, known_checkpoint(model) or checkpoint_named_like(model))
    return tuple(entry.template for entry in entries if entry and entry.template)


def _differences(expected: KnownCheckpoint, identity: Identity, *, with_files: bool) -> list[str]:
    """Returns how a known checkpoint's files and use differ from yours."""
    compared = expected.files_compared(identity.weights_sha256, identity.tokenizer_sha256) if with_files else ()
    sentences = [
        f"Your {what} differ from those that {expected.name} was scored with (SHA-256 {own[:12]}…)."
        for what, is_same, own in compared
        if not is_same
    ]
    use = identity.use
    if expected.pooling and expected.pooling != use.pooling:
        sentences.append(
            f"{expected.name} was scored with pooling {expected.pooling} ({expected.pooling_source}); you use "
            f"{use.pooling}."
        )
    template = use.own_template.name if use.own_template else ""
    if expected.template and expected.template != template:
        sentences.append(
            f"{expected.name} was scored with template {expected.template}; you use {template or 'none'}."
        )
    return sentences


def _printed(values: Sequence[Value], of_model: KnownCheckpoint | None) -> Iterator[str]:
    """Yields the rows of the model that print some of the numbers."""
    for name in of_model.expected if of_model else ():
        printed = {(cell.setting.task, cell.score) for cell in rows()[name].cells}
        found = [
            f"{value} {value.on}"
            for value in values
            for task, score in printed
            if value.decimals > 1 and score is not None and round(score, value.decimals) == value.score
            if task == ("Avg. STS" if value.task == AVERAGE else value.task)
        ]
        if found:
            yield f"{listed(found)} {'are' if len(found) > 1 else 'is'} printed for your model in {name}."
