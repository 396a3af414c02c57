"""What stands beside a published model: its model card, and a badge."""

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, remove_leftovers, writing
from stsbench.judging.check import check as run_check
from stsbench.judging.verdicts import Check, Verdict
from stsbench.records import card
from stsbench.records.imports import read_results
from stsbench.records.labels import labels
from stsbench.records.record import RunRecord
from stsbench.render.text import one_line
from stsbench.scoring.recompute import require_recomputed

Run = RunRecord | str | Path

_COLOURS: dict[Verdict, str] = {"pass": "#116329", "fail": "#a40e26"}
_OTHER = "#57606a"
"""All three with a contrast to white of at least 4.5."""

_LABEL = "STS check"

_HEIGHT, _CHARACTER, _MARGIN = 20, 6.5, 6
"""Pixels; a character's width is forced upon the text, so that it fits whatever font there is."""


def model_card(runs: Run | Sequence[Run]) -> str:
    """Return the Hub's model card of a model, with its scores as `model-index`.

    Args:
        runs: a record, its folder or `run.json`; or several of one model (of STS and of transfer tasks, say).

    Raises:
        UserError: if a run cannot be found or does not say what its tables give, or they are of several models.
    """
    records = [read_results(run) for run in ([runs] if isinstance(runs, RunRecord | str | Path) else runs)]
    if not records:
        raise UserError("nothing to write a model card of: name a run.")
    require_recomputed(*records)
    return card.model_card(labels(records[:1])[0], records)


def badge(run: Run, against: str | None = None, *, tolerance: float | None = None) -> str:
    """Return the verdict of a check as an SVG badge.

    Args:
        run: a record, its folder or `run.json`, or a file of results of SentEval or MTEB.
        against: which published row to check against, as in `check`.
        tolerance: how many points a score may be off, as in `check`.

    Raises:
        UserError: if the run or a row cannot be found.
    """
    return _svg(run_check(run, against, tolerance=tolerance))


def write_text(text: str, path: Path) -> Path:
    """Write a card or a badge whole."""
    path = path.expanduser()
    if path.is_dir():
        raise UserError(f"{path} is a folder: name a file with --out.")
    with writing(path):
        remove_leftovers(path)
    with atomic_path(path) as file:
        file.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    return path


def _svg(check: Check) -> str:
    """Return a check's verdict as an SVG badge, whose title tells it in a sentence."""
    passed, failed = len(check.of("pass")), len(check.of("fail"))
    is_judged = check.verdict in _COLOURS
    verdict = f"{check.verdict}: {passed} of {passed + failed}" if is_judged else check.verdict
    left, right = (round(_CHARACTER * len(text) + 2 * _MARGIN) for text in (_LABEL, verdict))
    colour = _COLOURS.get(check.verdict, _OTHER)
    sentence = one_line(check.sentence)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" role="img" '
        f"aria-label={quoteattr(f'{_LABEL}: {verdict}')}>\n"
        f"<title>{escape(sentence)}</title>\n"
        f'<rect width="{left + right}" height="{_HEIGHT}" rx="3" fill="{colour}"/>\n'
        f'<path d="M0 3a3 3 0 0 1 3-3h{left - 3}v{_HEIGHT}H3a3 3 0 0 1-3-3z" fill="#24292f"/>\n'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\n'
        f"{_text(_LABEL, _MARGIN, left)}\n{_text(verdict, left + _MARGIN, right)}\n</g>\n</svg>\n"
    )


def _text(text: str, x: int, width: int) -> str:
    return f'<text x="{x}" y="14" textLength="{width - 2 * _MARGIN}">{escape(text)}</text>'
