"""Figures as SVG with tooltips, without inline styles.

matplotlib writes `style` attributes, which the content security policy of our pages forbids. They become plain
attributes here, so that the same drawing works in a file and inside a page.
"""

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HREF = f"{{{_LINK}}}href"

_REACH = 5
"""Radius of a tooltip, in points."""

_WIDE = 4
"""Inches; wider figures scroll on a phone."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FONT = re.compile(r"^(?P<before>.*?)(?P<size>[\d.]+px) (?P<family>.+)$")


def finished(svg: str, label: str, values: Sequence[tuple[float, float, str]]) -> str:
    """Returns a drawing of matplotlib without style sheets and with tooltips.

    Args:
        svg: the drawing.
        label: its description.
        values: coordinates from the upper left corner, and text, of each tooltip.
    """
    for prefix, address in (("", _SVG), ("xlink", _LINK)):
        ElementTree.register_namespace(prefix, address)
    root = ElementTree.fromstring(_NOT_XML.sub("\ufffd", svg))
    _plain(root)
    root.set("role", "group")
    root.set("aria-label", _NOT_XML.sub("\ufffd", label))
    root.extend(_circle(*value) for value in values)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def inline(svg: str, name: str) -> str:
    """Returns the SVG of a figure for inclusion in a page: without a header, with unique ids.

    Args:
        svg: as returned by `stsbench.render.figures.svg_of`.
        name: the name of the figure, unique in the page.
    """
    root = ElementTree.fromstring(svg)
    for each in root.iter():
        for key, value in each.attrib.items():
            if key in {"id", _HREF} or value.startswith("url(#"):
                before, hash_, after = value.rpartition("#")
                each.set(key, f"{before}{hash_}{name}-{after}")
    # Scale to 144 pixels per inch, so that letters are as large as the text of the page.
    inches = float(root.attrib["width"].removesuffix("pt")) / 72
    for side in ("width", "height"):
        root.set(side, f"{2 * float(root.attrib[side].removesuffix('pt')):g}")
    if inches > _WIDE:
        root.set("class", "wide")
    return ElementTree.tostring(root, encoding="unicode")


def _circle(x: float, y: float, text: str) -> "ElementTree.Element":
    where = {"cx": f"{x:.2f}", "cy": f"{y:.2f}", "r": str(_REACH)}
    look = {"class": "mark", "fill": "none", "pointer-events": "all", "tabindex": "0", "role": "img"}
    circle = ElementTree.Element(f"{{{_SVG}}}circle", where | look)
    ElementTree.SubElement(circle, f"{{{_SVG}}}title").text = _NOT_XML.sub("\ufffd", text)
    return circle


def _plain(root: "ElementTree.Element") -> None:
    """Turns style sheets and `style` into attributes, and drops what only matplotlib uses."""
    inner = {reference for each in root.iter() for reference in _references(each)}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"}:
                parent.remove(child)
    for each in root.iter():
        if each.get("id") not in inner:
            each.attrib.pop("id", None)
        for declaration in filter(None, map(str.strip, each.attrib.pop("style", "").split(";"))):
            key, _, value = (part.strip() for part in declaration.partition(":"))
            each.attrib.update(_font(value) if key == "font" else {key: value})
    # The rules of the style sheet for all elements.
    root.set("stroke-linejoin", "round")
    root.set("stroke-linecap", "butt")


def _references(element: "ElementTree.Element") -> list[str]:
    return [
        value.removeprefix("url(").rstrip(")").removeprefix("#")
        for key, value in element.attrib.items()
        if key == _HREF or value.startswith("url(#")
    ]


def _font(value: str) -> dict[str, Any]:
    found = _FONT.match(value)
    assert found is not None, value
    words = {"italic": "font-style", "oblique": "font-style"}
    own = {words.get(word, "font-weight"): word for word in found["before"].split()}
    return {"font-size": found["size"], "font-family": found["family"], **own}
