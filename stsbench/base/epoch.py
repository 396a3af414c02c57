"""`SOURCE_DATE_EPOCH`: a fixed date for reproducible pages."""

import os
from datetime import UTC, datetime

from stsbench.base.errors import UserError

_NAME = "SOURCE_DATE_EPOCH"


def asked_epoch() -> datetime | None:
    """Return the date in the environment, or None if it has none.

    An empty variable is removed, as libraries that read it fail on it.

    Raises:
        UserError: if it is not a number of seconds.
    """
    value = os.environ.get(_NAME)
    if not value:
        os.environ.pop(_NAME, None)
        return None
    try:
        if value.isdecimal():
            return datetime.fromtimestamp(int(value), UTC)
    except (ValueError, OverflowError, OSError):
        pass  # a year that no calendar has
    raise UserError(f"{_NAME} is {value!r}: give seconds since 1970, or leave it out.")
