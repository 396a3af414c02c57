"""HTTP sessions that try again when a server is busy or does not answer."""

from typing import Any

RETRIES, PAUSE, LONGEST_PAUSE = 6, 0.5, 60
"""Retries; the seconds before the second one, which then double; and the longest `Retry-After` to obey."""

BUSY = (408, 429, 502, 503, 504)


def patient_session(at_once: int = 1) -> Any:
    """Returns a `requests.Session` for so many requests at once; after the last retry, the answer is returned."""
    import requests
    from urllib3.util import Retry

    times: dict[str, Any] = {"total": RETRIES, "connect": 2, "read": 1, "other": 0, "backoff_factor": PAUSE}
    which: dict[str, Any] = {"status_forcelist": BUSY, "allowed_methods": None, "raise_on_status": False}
    retry = Retry(**times, **which, retry_after_max=LONGEST_PAUSE)
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, requests.adapters.HTTPAdapter(pool_maxsize=at_once, max_retries=retry))
    return session
