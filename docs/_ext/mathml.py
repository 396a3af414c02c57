"""Formulas as MathML, which browsers draw themselves: no script, no network."""

from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from sphinx.writers.html5 import HTML5Translator

logger = getLogger(__name__)
converter = LatexToMathML(annotation=True, fancy_error=False)


def inline(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(_mathml(node, displaystyle=False))
    raise nodes.SkipNode


def block(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls where it is wider than the page."""
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    writer.body.append(f"{_mathml(node, displaystyle=True)}</div>\n")
    raise nodes.SkipNode


def _mathml(node: nodes.Element, *, displaystyle: bool) -> str:
    try:
        return str(converter.convert_with_local_state(node.astext().strip(), displaystyle=displaystyle))
    except LatexError as error:
        logger.warning("cannot set %r: %s", node.astext(), error, location=node)
        return ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
