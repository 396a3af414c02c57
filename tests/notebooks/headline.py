"""The headline table of an executed notebook as a reader sees it: rows of text."""

import xml.etree.ElementTree as ET
from typing import Any

Rows = list[dict[str, str]]


def headline_cell(node: Any) -> Any:
    """Return the one cell that is tagged as the notebook's headline."""
    (cell,) = [cell for cell in node.cells if "headline" in cell.metadata.get("tags", ())]
    return cell


def headline_rows(node: Any) -> Rows:
    """Return the rows of the headline table by the names of their columns, as printed."""
    (html,) = [output["data"]["text/html"] for output in headline_cell(node).outputs if "data" in output]
    table = ET.fromstring(html[html.index("<table") : html.index("</table>") + len("</table>")])
    (names,) = [[cell.text or "" for cell in row] for row in table.findall("thead/tr")]
    rows = [[cell.text or "" for cell in row] for row in table.findall("tbody/tr")]
    # The first column is the frame's index, and its name in the head that of the columns.
    return [dict(zip(names[1:], row[1:], strict=True)) for row in rows]


def shows(text: str, value: float, decimals: int) -> bool:
    """Return whether a cell shows a value, rounded to so many decimals."""
    whole, _, digits = text.partition(".")
    if not whole or len(digits) != decimals:
        return False
    # Values in the middle of two roundings may come out either way, as they were computed in another order.
    return abs(float(text) - value) <= 0.5 * 10**-decimals + 1e-6
