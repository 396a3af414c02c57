"""Which cells print the same thing, and where they disagree."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from stsbench.published.catalogue import PublishedRow, systems
from stsbench.published.findings import NOISE, Finding, as_printed, finding
from stsbench.published.schema import Cell

Quantity = tuple[str, ...]
"""What a cell is a measurement of: system (whatever its edition), task, metric, split, group, variant."""


def quantity(cell: Cell) -> Quantity | None:
    """Return what a cell is a measurement of; None for counts and differences, which are no measurements."""
    setting = cell.setting
    if not cell.system or setting.task == "delta":
        return None
    edition_of = systems()[cell.system].edition_of if cell.system in systems() else ""
    base = edition_of or cell.system
    return (base, setting.task, setting.metric, setting.split, setting.group, setting.variant)


def other_prints(cell: Cell, among: Iterable[PublishedRow]) -> list[Cell]:
    """Return the other cells that print the same thing, earlier editions included.

    >>> from stsbench.published import row, rows
    >>> [other.table for other in other_prints(row("is-bert-base").cell("STS12"), rows().values())]
    ['esimcse-coling2022-3', 'mocose-acl2022-1']
    """
    wanted = quantity(cell)
    if wanted is None:
        return []
    return [other for row in among for other in row.cells if other != cell and quantity(other) == wanted]


def agree(one: Cell, other: Cell) -> bool:
    """Return whether two cells can be prints of one number: 66.6 is 66.58 rounded further."""
    if one.score is None or other.score is None:
        return True
    if one.decimals == other.decimals and one.setting.unit == other.setting.unit:
        return abs(one.score - other.score) < NOISE
    return abs(one.score - other.score) <= max(one.rounding, other.rounding) + NOISE


def check_prints(found: Iterable[PublishedRow]) -> Iterator[Finding]:
    """Yield a finding for everything that is printed with several values."""
    same: dict[Quantity, list[Cell]] = defaultdict(list)
    for row in found:
        for cell in row.cells:
            key = quantity(cell)
            if key is not None and cell.value is not None:
                same[key].append(cell)
    for (base, *_), cells in same.items():
        editions = {name: _values([cell for cell in cells if cell.system == name]) for name in _names(cells)}
        for values in editions.values():
            if len(values) > 1:
                yield _conflict("prints", values)
        own = editions.pop(base, [])
        for values in editions.values():
            if own and values and not agree(own[0][0], values[0][0]):
                yield _conflict("edition", [own[0], values[0]])


def _names(cells: list[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.system for cell in cells))


def _values(cells: list[Cell]) -> list[list[Cell]]:
    """Group cells by the value they print, the most digits first in a group."""
    groups: list[list[Cell]] = []
    for cell in sorted(cells, key=lambda cell: -cell.decimals):
        for group in groups:
            if agree(group[0], cell):
                group.append(cell)
                break
        else:
            groups.append([cell])
    return groups


def _conflict(kind: str, values: list[list[Cell]]) -> Finding:
    told = "; ".join(f"{as_printed(group[0])} in {', '.join(map(_place, group))}" for group in values)
    others = ", ".join(as_printed(group[0]) for group in values[1:])
    return finding("edition" if kind == "edition" else "prints", values[0][0], others, told)


def _place(cell: Cell) -> str:
    return f"{cell.table} (line {cell.line})"
