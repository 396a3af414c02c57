"""What readers see: tables, formats, figures and pages; here, text that is safe to print."""

import re

_LINE_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
# Control characters drive a terminal, bidirectional ones reorder text, tags and annotations hide it, and lone
# surrogates cannot be written as UTF-8.
_HARMFUL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f]"
)


def one_line(text: str) -> str:
    r"""Returns text on one line, with characters that could drive a terminal written out.

    >>> one_line("two\nlines")
    'two lines'
    >>> print(one_line("\x1b[2J"))
    \x1b[2J
    """
    return harmless(_LINE_BREAKS.sub(" ", text))


def harmless(line: str) -> str:
    r"""Writes out characters that could drive a terminal.

    >>> print(harmless("a\tb\x9b31m"))
    a\tb\x9b31m
    """
    return _HARMFUL.sub(lambda match: ascii(match[0])[1:-1], line)
