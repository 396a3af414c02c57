"""A digest over a JSON file itself, so that an edit is told as an edit.

It guards against accidents and partial edits: a score changed by hand, a file half merged, a value that a program
wrote again in another way. It is no signature: who edits a file can compute a digest anew.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

DIGEST = "digest"
"""The field that holds it; it stands last."""


def digest_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a JSON object says, as 64 hexadecimal digits.

    It is taken over all fields but the digest itself, as JSON in one canonical form: keys sorted, no spaces, every
    character beyond ASCII escaped, numbers as Python writes them. So white space, line endings and the order of
    keys do not matter; values do.

    Args:
        content: the object as it was parsed.

    Raises:
        ValueError: if it holds what JSON cannot say (NaN, infinity).

    >>> digest_of({"b": 1, "a": 0.5}) == digest_of({"a": 0.5, "b": 1, "digest": "any"})
    True
    >>> digest_of({"a": 0.5}) == digest_of({"a": 0.50001})
    False
    """
    rest = {key: value for key, value in content.items() if key != DIGEST}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
