"""`SOURCE_DATE_EPOCH`: the moment that pages are dated at, so that they are the same bytes again."""

import os
from datetime import UTC, datetime

from stsbench.base.errors import UserError

_NAME = "SOURCE_DATE_EPOCH"


def asked_epoch() -> datetime | None:
    """Return the moment that the environment asks for, None where it asks for none.

    An empty variable asks for none and is taken away: the libraries that read it stumble over it.

    Raises:
        UserError: if it is no moment.
    """
    said = os.environ.get(_NAME)
    if not said:
        os.environ.pop(_NAME, None)
        return None
    try:
        if said.isdecimal():
            return datetime.fromtimestamp(int(said), UTC)
    except (ValueError, OverflowError, OSError):
        pass  # of a year that no calendar has
    raise UserError(f"{_NAME} is {said!r}: give seconds since 1970, or leave it out.")
