"""The headline table of the study as a reader sees it, and what it must show: one difference at a time."""

import math
import xml.etree.ElementTree as ET
from functools import cache
from itertools import combinations

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from stsbench.published.catalogue import encoder_errors, error_correlations, seeds, systems
from stsbench.published.catalogue import row as published_row
from stsbench.published.catalogue import rows as rows_by_name

Rows = list[dict[str, str]]


def headline_cell(node):
    """Return the one cell that is tagged as the notebook's headline."""
    (cell,) = [cell for cell in node.cells if "headline" in cell.metadata.get("tags", ())]
    return cell


def headline_rows(node):
    """Return the rows of the headline table by the names of their columns, as printed."""
    (html,) = [output["data"]["text/html"] for output in headline_cell(node).outputs if "data" in output]
    table = ET.fromstring(html[html.index("<table") : html.index("</table>") + len("</table>")])
    (names,) = [[cell.text or "" for cell in row] for row in table.findall("thead/tr")]
    # A frame's index stands in front, in cells of heads; the table of a result has none.
    rows = [[cell.text or "" for cell in row if cell.tag == "td"] for row in table.findall("tbody/tr")]
    return [dict(zip(names[-len(row) :], row, strict=True)) for row in rows]


def shows(text, value, decimals):
    """Return whether a cell shows a value, rounded to so many decimals."""
    whole, _, digits = text.partition(".")
    if not whole or len(digits) != decimals:
        return False
    # Values in the middle of two roundings may come out either way, as they were computed in another order.
    return abs(float(text) - value) <= 0.5 * 10**-decimals + 1e-6


def gains(rows):
    assert [row["system"] for row in rows] == [expected["system"] for expected in expected_gains()]
    for row, expected in zip(rows, expected_gains(), strict=True):
        assert list(row) == list(expected)
        for column, value in expected.items():
            is_right = shows(row[column], value, 2) if isinstance(value, float) else row[column] == value
            assert is_right, (row, column)


@cache
def expected_gains():
    """Return all higher averages than SimCSE's, by the rule for one difference at a time."""
    errors = encoder_errors().query("task == 'Avg. STS'")
    near = list(zip(errors["score"], errors["error"], strict=True))
    correlations = error_correlations().query("task == 'Avg. STS'")
    found: list[dict[str, str | float]] = []
    for system in systems().values():
        backbone = next((name for name in BACKBONES if name in system.name), None)
        if not system.row or backbone is None or system.name.startswith(("sup-simcse", "unsup-simcse")):
            continue
        printed = published_row(system.name)
        is_supervised = system.kind == "supervised" or printed.row.group == "supervised"
        simcse = rows_by_name().get(systems()[f"{'sup' if is_supervised else 'unsup'}-simcse-{backbone}"].row)
        both = (printed, simcse) if simcse else ()
        averages = [cell for of in both for cell in of.cells if cell.setting.task == "Avg. STS"]
        if len(averages) < 2 or averages[0].value <= averages[1].value or averages[0].setting.metric != "spearman":
            continue
        a, b = (cell.value for cell in averages)
        s, t = (nearest_error(near, score) for score in (a, b))
        smallest = [
            (norm if math.isinf(df) else student(df)).ppf(0.975) * math.sqrt(s * s + t * t - 2 * r * s * t)
            for r, df in zip(correlations["correlation"], correlations["df"], strict=True)
        ]
        gaps = [abs(c - d) for c, d in combinations(seeds(f"unsup-simcse-{backbone}")["Avg."], 2)]
        found.append(
            {
                "system": system.title,
                "average": a,
                "SimCSE": b,
                "gain": a - b,
                "smallest": float(min(smallest)),
                "to": float(max(smallest)),
                "answer": "significant" if a - b - 0.01 > max(smallest) else "depends",
                "two seeds": "" if is_supervised else float(np.quantile(gaps, 0.95)),
            }
        )
    return sorted(found, key=lambda row: round(-row["gain"], 6))


BACKBONES = ("roberta-base", "roberta-large", "bert-base", "bert-large")


def nearest_error(near, score):
    nearest, error = min(near, key=lambda known: abs(known[0] - score))
    return error * (1 - (score / 100) ** 2) / (1 - (nearest / 100) ** 2)
