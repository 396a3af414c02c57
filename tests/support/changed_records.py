"""Records some of whose scores or items are changed, in memory."""

import numpy as np

from stsbench.base.files import DIGEST, fingerprint
from stsbench.scoring.kinds import statistic_of
from stsbench.scoring.recompute import rows_of_scores


def with_digest(content):
    """Return the content of a JSON file with the digest that fits it."""
    rest = {key: value for key, value in content.items() if key != DIGEST}
    return {**rest, DIGEST: fingerprint(rest)}


def with_value(score, value):
    """Return a score with another headline."""
    first, *others = score.numbers
    return score.model_copy(update={"numbers": (first.model_copy(update={"value": value}), *others)})


def with_values(record, value, **model):
    """Return a record with this headline of every task, and other fields of the model."""
    scores = tuple(with_value(score, value) for score in record.scores)
    used = record.model.model_copy(update=model)
    return record.model_copy(update={"scores": scores, "model": used})


def with_columns(record, **columns):
    """Return a record with other columns in its items, and its scores as they were."""
    given = {name: np.asarray(values) for name, values in columns.items()}
    return record.with_items(record.items.assign(**given))


def with_rows(record, rows):
    """Return a record with some of its items: (k,) positions, or (n,) truth values."""
    return record.with_items(record.items.iloc[np.asarray(rows)].reset_index(drop=True))


def scored_again(record):
    """Return a record whose headlines are what its items give."""
    scores = tuple(
        with_value(score, statistic_of(score).value(rows.scored))
        for score, rows in zip(record.scores, rows_of_scores(record), strict=True)
    )
    return record.model_copy(update={"scores": scores})
