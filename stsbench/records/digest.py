"""A record with the digest of what it says, so that an edit of `run.json` is told as an edit."""

import json
from typing import TypeVar

from pydantic import BaseModel

from stsbench.base.files import DIGEST, digest_of

Record = TypeVar("Record", bound=BaseModel)


def sealed(record: Record) -> Record:
    """Return a record with the digest of what it says."""
    return record.model_copy(update={DIGEST: digest_of(json.loads(record.model_dump_json()))})
