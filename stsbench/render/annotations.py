"""Verdicts as the lines that GitHub Actions turns into annotations of a workflow's run."""

from typing import Literal

Level = Literal["error", "warning", "notice"]


def annotation(level: Level, title: str, message: str) -> str:
    """Return a workflow command: printed by a step, it shows up on the run's page and on the pull request.

    >>> annotation("error", "STS12, check", "72.37 is 3.97 off: 100 % wrong")
    '::error title=STS12%2C check::72.37 is 3.97 off: 100 %25 wrong'
    """
    title = _escaped(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={title}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
