"""Was the model used as it was for the published row? The model part of the signature, where the row states it."""

from collections.abc import Iterator

from stsbench.published import Checkpoint, PublishedRow, checkpoints
from stsbench.records import RunRecord
from stsbench.records.signature import UNKNOWN
from stsbench.verify.check_outcome import Difference

_POOLED_HERE = {"transformer", "sentence-transformers", "static"}
"""Kinds of models whose pooling is known: of a callable, or of saved vectors, it is not."""

_UNSTATED = {"prompt": "", "precision": "fp32", "dimensions": None, "postprocessing": ""}
"""What no row states, and what is usual: anything else is remarked on."""


def checkpoint_of(row: PublishedRow) -> Checkpoint | None:
    """Return how the system of a row is used; None if that is not known, or the row is of a variant of it."""
    if row.row.variant:
        return None
    return next((entry for entry in checkpoints().values() if entry.system == row.row.system), None)


def model_differences(row: PublishedRow, record: RunRecord) -> tuple[Difference, ...]:
    """Return in what the model was used otherwise than for the row, of what a document states."""
    stated, model = checkpoint_of(row), record.model
    if stated is None:
        return ()
    found = []
    verified = "pooling" not in stated.unverified and model.kind in _POOLED_HERE
    if verified and model.pooling != stated.pooling:
        found.append(
            Difference("pooling", model.pooling, stated.pooling, f"measure with --pooling {stated.pooling}")
        )
    if _length_matters(stated, record):
        there = str(stated.max_length)
        found.append(Difference("max_length", str(model.max_length), there, f"measure with --max-length {there}"))
    return tuple(found)


def model_remarks(row: PublishedRow, record: RunRecord) -> Iterator[str]:
    """Yield what is to be known about how the model was used: what is open, and what is unusual."""
    stated, model = checkpoint_of(row), record.model
    here = "" if model.pooling == UNKNOWN else f"; {model.pooling} here"
    if stated is None:
        what = f"a variant ({row.row.variant})" if row.row.variant else "a system without a known checkpoint"
        yield f"pooling: the row is of {what} and states none{here}"
    elif model.kind not in _POOLED_HERE:
        yield f"pooling: {stated.pooling} for the row; how {model.name} pools is not known"
    elif "pooling" in stated.unverified:
        yield f"pooling: no document gives the row's, {stated.pooling} is likely{here}"
    if stated and _lengths_differ(stated, record) and not _length_matters(stated, record):
        yield f"max_length: {stated.max_length} for the row; {model.max_length} here, where no sentence was cut"
    if stated and stated.weights_sha256 and model.weights_sha256:
        same = "the" if model.weights_sha256 == stated.weights_sha256 else "other weights than the"
        yield f"weights: {same} ones that the row was taken with (SHA-256 {stated.weights_sha256[:12]}…)"
    for name, usual in _UNSTATED.items():
        if (chosen := getattr(model, name)) not in {usual, UNKNOWN}:
            yield f"{name}: the row states none; {chosen} here"


def _lengths_differ(stated: Checkpoint, record: RunRecord) -> bool:
    here, there = record.model.max_length, stated.max_length
    return here is not None and there is not None and here != there


def _length_matters(stated: Checkpoint, record: RunRecord) -> bool:
    """Return whether the lengths differ and a sentence was cut here: where none was, longer reads the same."""
    return _lengths_differ(stated, record) and any(part.truncated_sentences for part in record.parts)
