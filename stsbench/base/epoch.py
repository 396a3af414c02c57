"""`SOURCE_DATE_EPOCH`: a fixed date for reproducible pages."""

import math
import os
from datetime import UTC, datetime

from stsbench.base.errors import UserError


def source_date() -> datetime | None:
    """Returns the date in `SOURCE_DATE_EPOCH`, or None without one; raises a UserError if it is not a date.

    An empty variable is removed, because libraries that read it fail on it.
    """
    value = os.environ.get("SOURCE_DATE_EPOCH")
    if not value:
        os.environ.pop("SOURCE_DATE_EPOCH", None)
        return None
    try:
        return datetime.fromtimestamp(int(value) if value.isdecimal() else math.inf, UTC)
    except (ValueError, OverflowError, OSError):
        raise UserError(f"SOURCE_DATE_EPOCH is {value!r}: give seconds since 1970, or leave it out.") from None
