"""Write the page on what does not add up in the published numbers.

python docs/conflicts_page.py > docs/published-conflicts.md
"""

from collections import defaultdict
from collections.abc import Iterable

from conflicts import KINDS, Conflict, find_conflicts

from stsbench.published.catalogue import papers, row, rows, tables
from stsbench.published.measured import logged_systems, seeded_systems, seeds

_INTRODUCTION = """\
# What does not add up in the published numbers

`python docs/conflicts_page.py` generates this page from the data in `stsbench/published`; a test keeps it up to
date. It lists what a computation finds, not who is right: an average of unrounded scores, another run or another
protocol can be the reason. Tables are named as in `stsbench published list`; lines are those of the papers'
extracted text."""

_EXPLANATIONS = {
    "average": "Averages are taken over the printed cells and rounded as printed.",
    "prints": """\
The system, task, split, metric and configuration are the same. For MoCoSE these are the default configuration, and
the default without FGSM, in the main table and in the ablation tables. No paper says what differs between the two
rows of BERT-flow.""",
    "edition": """\
The slides show the preprint of SimCSE, the other papers the final numbers. Both are included as separate rows;
cells that agree are not listed.""",
    "granularity": """\
The test sets of SST2, TREC and MRPC have 1821, 500 and 1725 items. Any other accuracy is an
average over runs or folds, or a misprint.""",
    "header": "The column with STS15 is headed SICK15; the pairs counted there are those of STS15.",
    "checkpoint": "Mirror-BERT's page says why: its paper averages three runs.",
}


def conflicts_page() -> str:
    """Return the page in Markdown, with a line break at its end."""
    conflicts = find_conflicts()
    parts = [_INTRODUCTION, _summary(conflicts)]
    for kind, title in KINDS.items():
        of_kind = [conflict for conflict in conflicts if conflict.kind == kind]
        if of_kind:
            explanation = [_EXPLANATIONS[kind]] if kind in _EXPLANATIONS else []
            parts += [f"## {title}", *explanation, _edition(of_kind) if kind == "edition" else _listing(of_kind)]
    parts += [
        "## One run among fifty",
        _seeds(),
        "## Notes on the tables",
        _notes(),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(conflicts: list[Conflict]) -> str:
    cells = [cell for published in rows().values() for cell in published.cells]
    counted = f"{len(tables())} tables, {len(rows())} rows and {len(cells)} cells were checked."
    counts = [(title, str(sum(conflict.kind == kind for conflict in conflicts))) for kind, title in KINDS.items()]
    parts = [counted, _markdown(("finding", "count"), counts)]
    if not any(conflict.kind == "log" for conflict in conflicts):
        parts.append(f"The training logs of {', '.join(logged_systems())} agree with all that their papers print.")
    return "\n\n".join(parts)


def _listing(conflicts: list[Conflict]) -> str:
    places = [f"`{'/'.join(filter(None, (conflict.table, conflict.row)))}`" for conflict in conflicts]
    cells = [
        (place, conflict.column, str(conflict.line or ""), conflict.printed, conflict.message)
        for place, conflict in zip(places, conflicts, strict=True)
    ]
    return _markdown(("row", "column", "line", "printed", "finding"), cells)


def _edition(conflicts: list[Conflict]) -> str:
    # A table per row would repeat the same two places for every cell: one line per pair of rows instead.
    by_row: dict[tuple[str, str], list[Conflict]] = defaultdict(list)
    for conflict in conflicts:
        by_row[conflict.table, conflict.row].append(conflict)
    lines = []
    for (table, name), of_row in by_row.items():
        values = ", ".join(f"{conflict.column} {conflict.expected} → {conflict.printed}" for conflict in of_row)
        lines.append((f"`{table}/{name}`", values))
    return _markdown(("final row", "preprint → final"), lines)


def _seeds() -> str:
    lines = []
    for name in seeded_systems():
        scores = seeds(name)["Avg."]
        printed = row(name).cell("Avg.").value or 0.0
        share = f"{100 * float((scores < printed).mean()):.0f} %"
        spread = f"{scores.min():.2f} to {scores.max():.2f}"
        lines.append((name, f"{printed:.2f}", f"{scores.mean():.2f}", f"{scores.std():.2f}", spread, share))
    remark = """\
The final paper's averages against 50 seeds of an independent reproduction (raw text and a dev score every 250
steps: close to the papers' protocol, not the same)."""
    head = ("system", "printed", "mean of 50", "standard deviation", "range", "seeds below the printed value")
    return f"{remark}\n\n{_markdown(head, lines)}"


def _notes() -> str:
    lines = [(f"`{table.name}`", note) for table in tables().values() for note in table.notes]
    lines += [(f"`{entry.name}`", note) for entry in rows().values() for note in entry.row.notes]
    lines += [(paper.file, paper.note) for paper in papers().values() if paper.note]
    return _markdown(("where", "note"), lines)


def _markdown(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    everything = [head, tuple("---" for _ in head), *lines]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in everything)


if __name__ == "__main__":
    print(conflicts_page(), end="")
