"""The verdict of a check as a badge."""

from xml.sax.saxutils import escape, quoteattr

from stsbench.checking.outcome import Check, Verdict
from stsbench.render.cells import one_line

_COLOURS: dict[Verdict, str] = {"pass": "#116329", "fail": "#a40e26"}
_OTHER = "#57606a"
"""All three with a contrast to white of at least 4.5."""

_LABEL = "STS check"
_HEIGHT, _CHARACTER, _MARGIN = 20, 6.5, 6
"""Pixels; a character's width is forced upon the text, so that it fits whatever font there is."""


def badge(found: Check) -> str:
    """Return a check's verdict as an SVG badge, whose title tells it in a sentence.

    >>> from stsbench.checking.outcome import CellCheck
    >>> found = Check("a", ("b",), "published", 0.05, (CellCheck("STS16", 78.99, 78.99, "pass"),))
    >>> "pass: 1 of 1" in badge(found)
    True
    """
    passed, failed = len(found.of("pass")), len(found.of("fail"))
    is_judged = found.verdict in _COLOURS
    verdict = f"{found.verdict}: {passed} of {passed + failed}" if is_judged else found.verdict
    left, right = (round(_CHARACTER * len(text) + 2 * _MARGIN) for text in (_LABEL, verdict))
    colour = _COLOURS.get(found.verdict, _OTHER)
    told = one_line(str(found))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" role="img" '
        f"aria-label={quoteattr(f'{_LABEL}: {verdict}')}>\n"
        f"<title>{escape(told)}</title>\n"
        f'<rect width="{left + right}" height="{_HEIGHT}" rx="3" fill="{colour}"/>\n'
        f'<path d="M0 3a3 3 0 0 1 3-3h{left - 3}v{_HEIGHT}H3a3 3 0 0 1-3-3z" fill="#24292f"/>\n'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\n'
        f"{_text(_LABEL, _MARGIN, left)}\n{_text(verdict, left + _MARGIN, right)}\n</g>\n</svg>\n"
    )


def _text(text: str, x: int, width: int) -> str:
    return f'<text x="{x}" y="14" textLength="{width - 2 * _MARGIN}">{escape(text)}</text>'
