"""Write the page on inconsistencies in the published numbers.

python docs/conflicts_page.py > docs/published-conflicts.md
"""

from collections import defaultdict
from collections.abc import Iterable

from conflicts import KINDS, Conflict, find_conflicts

from stsbench.published.catalogue import logged_systems, row, rows, seeded_systems, seeds, tables

_INTRODUCTION = """\
# Inconsistencies in the published numbers

`python docs/conflicts_page.py` checks the tables in `stsbench/published` and writes this page. It does not say who
is right: unrounded scores, another run or another protocol can be the reason. Lines are those of the papers'
extracted text. `stsbench published row TABLE/ROW` prints its source, notes and other prints of the score."""

_EXPLANATIONS = {
    "average": "Averages are recomputed from the printed cells and rounded as printed.",
    "prints": """\
System, task, split, metric and configuration are the same. For MoCoSE these are the default configuration and the
default without FGSM. No paper explains the two rows of BERT-flow.""",
    "edition": """\
The slides show SimCSE's preprint, the other papers its final numbers. Both are included; equal cells do not
count.""",
    "granularity": """\
The test sets of SST2, TREC and MRPC have 1821, 500 and 1725 items. Other accuracies are averages over runs or
folds, or misprints.""",
    "header": "The column headed SICK15 has STS15's number of pairs. The HUME columns are rescored samples.",
    "checkpoint": "Mirror-BERT's page explains the difference: its paper averages three runs.",
}


def conflicts_page() -> str:
    """Return the page in Markdown, with a line break at its end."""
    conflicts = find_conflicts()
    parts = [_INTRODUCTION, _summary(conflicts)]
    for kind, title in KINDS.items():
        of_kind = [conflict for conflict in conflicts if conflict.kind == kind]
        if of_kind:
            explanation = [_EXPLANATIONS[kind]] if kind in _EXPLANATIONS else []
            parts += [f"## {title}", *explanation, _TABLES.get(kind, _listing)(of_kind)]
    parts += [
        "## One run among fifty",
        _seeds(),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(conflicts: list[Conflict]) -> str:
    cells = [cell for published in rows().values() for cell in published.cells]
    counted = f"{len(tables())} tables, {len(rows())} rows and {len(cells)} cells were checked."
    counts = [(title, str(sum(conflict.kind == kind for conflict in conflicts))) for kind, title in KINDS.items()]
    parts = [counted, _markdown(("finding", "count"), counts)]
    if not any(conflict.kind == "log" for conflict in conflicts):
        parts.append(f"The training logs of {', '.join(logged_systems())} agree with their papers.")
    return "\n\n".join(parts)


def _by_row(conflicts: list[Conflict]) -> dict[str, list[Conflict]]:
    groups: dict[str, list[Conflict]] = defaultdict(list)
    for conflict in conflicts:
        groups[f"`{'/'.join(filter(None, (conflict.table, conflict.row)))}`"].append(conflict)
    return groups


def _listing(conflicts: list[Conflict]) -> str:
    lines = []
    for place, of_row in _by_row(conflicts).items():
        findings = "; ".join(f"{_cell(conflict)}: {conflict.message}" for conflict in of_row)
        lines.append((place, findings))
    return _markdown(("row", "finding"), lines)


def _cell(conflict: Conflict) -> str:
    line = f" (line {conflict.line})" if conflict.line else ""
    return f"{conflict.column} {conflict.printed}{line}"


def _prints(conflicts: list[Conflict]) -> str:
    lines = []
    for place, of_row in _by_row(conflicts).items():
        values = ", ".join(f"{conflict.column} {conflict.printed} or {conflict.expected}" for conflict in of_row)
        lines.append((place, values))
    return _markdown(("row", "its value, and other values"), lines)


def _edition(conflicts: list[Conflict]) -> str:
    lines = []
    for place, of_row in _by_row(conflicts).items():
        shown = next((conflict for conflict in of_row if conflict.column == "Avg."), of_row[0])
        lines.append((place, str(len(of_row)), f"{shown.column} {shown.expected} → {shown.printed}"))
    return _markdown(("final row", "cells", "preprint → final"), lines)


def _headers(conflicts: list[Conflict]) -> str:
    by_text: dict[tuple[str, str], list[str]] = defaultdict(list)
    for conflict in conflicts:
        by_text[conflict.printed, conflict.expected].append(f"`{conflict.table}`")
    lines = [(header, task, ", ".join(places)) for (header, task), places in by_text.items()]
    return _markdown(("header", "data set", "tables"), lines)


_TABLES = {"prints": _prints, "edition": _edition, "header": _headers}


def _seeds() -> str:
    lines = []
    for name in seeded_systems():
        scores = seeds(name)["Avg."]
        printed = row(name).cell("Avg.").value or 0.0
        share = f"{100 * float((scores < printed).mean()):.0f} %"
        spread = f"{scores.min():.2f} to {scores.max():.2f}"
        lines.append((name, f"{printed:.2f}", f"{scores.mean():.2f}", f"{scores.std():.2f}", spread, share))
    remark = """\
The final paper's averages, compared with 50 seeds of an independent reproduction. It trained on raw text and
computed a dev score every 250 steps, which is close to the papers' protocol but not the same."""
    head = ("system", "printed", "mean of 50", "standard deviation", "range", "seeds below printed")
    return f"{remark}\n\n{_markdown(head, lines)}"


def _markdown(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    everything = [head, tuple("---" for _ in head), *lines]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in everything)


if __name__ == "__main__":
    print(conflicts_page(), end="")
