"""The page on what does not add up in the published numbers: generated, so that it is never out of date.

python docs/conflicts_page.py > docs/published-conflicts.md
"""

from collections import defaultdict
from collections.abc import Iterable

from conflicts import KINDS, Conflict, find_conflicts

from stsbench.published.catalogue import papers, row, rows, tables
from stsbench.published.measured import logged_systems, seeded_systems, seeds
from stsbench.published.schema import PublishedCell

_INTRODUCTION = """\
# What does not add up in the published numbers

This page is generated from the data in `stsbench/published` by `python docs/conflicts_page.py`; a test keeps it up
to date. It lists what a computation finds, not who is right: an average of unrounded scores, another run or
another protocol are among the reasons. Tables are named as in `stsbench published list`; lines are those of the
papers' extracted text."""

_EXPLANATIONS = {
    "average": "Averages are taken over the printed cells and rounded as printed.",
    "prints": """\
Same system, task, split, metric and configuration. What MoCoSE prints here are the default configuration, and
the default without FGSM, in the main table and in the ablation tables. No document at hand says what differs
between the two rows of BERT-flow.""",
    "edition": """\
The slides show the preprint of SimCSE, the other papers the final numbers. Both are kept, as rows of their own,
and a cell that agrees is not listed.""",
    "granularity": """\
The test sets of SST2, TREC and MRPC have 1821, 500 and 1725 items. An accuracy that is no share of them is an
average over runs or folds, or a misprint.""",
    "header": "The column that holds STS15 is headed SICK15; the pairs counted there are STS15's.",
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
        "## Restored and lost",
        _restored(),
        "## Notes on the tables",
        _notes(),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(conflicts: list[Conflict]) -> str:
    cells = [cell for published in rows().values() for cell in published.cells]
    counted = f"{len(tables())} tables, {len(rows())} rows and {len(cells)} cells were looked at."
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


def _restored() -> str:
    cells = [
        cell
        for published in rows().values()
        for cell in published.cells
        if cell.status in {"restored", "derived", "lost"}
    ]
    counts: dict[tuple[str, str, str], list[PublishedCell]] = defaultdict(list)
    for cell in cells:
        how = "lost" if cell.status == "lost" else cell.how
        counts[cell.table, how, _borne_out(cell)].append(cell)
    lines = [
        (
            f"`{table}`",
            how,
            ", ".join(f"{cell.row}: {cell.column} {cell.raw!r} → {_value(cell)}" for cell in restored),
            evidence,
        )
        for (table, how, evidence), restored in counts.items()
    ]
    missing = [f"`{table.name}`: {table.missing}" for table in tables().values() if table.missing]
    head = ("table", "what happened", "cells", "borne out by")
    return "\n\n".join([_markdown(head, lines), *missing])


def _borne_out(cell: PublishedCell) -> str:
    if cell.status == "lost":
        return cell.how
    said = ["another print" if "/" in text.partition(":")[0] else text for text in cell.evidence]
    return "; ".join("the row's average" if text == "average" else text for text in said)


def _value(cell: PublishedCell) -> str:
    return cell.printed or "nothing"


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
