"""Which published rows a run is to be checked against: by their name, their system's, or the checkpoint's."""

from collections.abc import Iterable
from pathlib import PurePath

from stsbench.foundation.errors import UserError
from stsbench.published import Checkpoint, PublishedRow, checkpoint, checkpoints, row, rows
from stsbench.records import RunRecord

AUTO = "auto"


def rows_to_check(record: RunRecord, against: str = AUTO) -> list[PublishedRow]:
    """Return the rows that a run should reproduce.

    Args:
        record: the run.
        against: `table/row`; a system or the Hub name of its checkpoint, which stands for all rows to expect of
            it; or `auto` for those of the run's own checkpoint.

    Raises:
        UserError: if there is no such row, or none is known for the run's checkpoint.
    """
    if against != AUTO:
        named = row(against)
        return [named] if "/" in against and against in rows() else _measured(_of_system(named), record) or [named]
    known = known_checkpoint(record)
    if known is None:
        raise UserError(
            f"no published row is known for {record.model.name}: name one with --against "
            "(`stsbench published list rows` lists them)."
        )
    expected = [rows()[name] for name in known.expected]
    if not expected:
        raise UserError(f"no row of {known.name} is published in a document at hand: {known.note}")
    return _measured(expected, record) or expected


def known_checkpoint(record: RunRecord) -> Checkpoint | None:
    """Return the known checkpoint that a run measured, by its Hub name or by a folder that bears it.

    Where one checkpoint has rows with several poolings, the run's own pooling decides.
    """
    name = record.model.name.rstrip("/")
    last = PurePath(name).name.casefold()
    known = [entry for entry in checkpoints().values() if entry.hub]
    same = [entry for entry in known if entry.hub.rpartition("/")[2].casefold() == last]
    if not same:
        try:
            return checkpoint(name)
        except UserError:
            return None
    return next((entry for entry in same if entry.pooling == record.model.pooling), same[0])


def _of_system(named: PublishedRow) -> list[PublishedRow]:
    """Return the row, and the others to expect of the same checkpoint (of the transfer tasks, say)."""
    expected = [entry.expected for entry in checkpoints().values() if named.name in entry.expected]
    return [named, *(rows()[name] for name in dict.fromkeys(sum(expected, ())) if name != named.name)]


def _measured(found: Iterable[PublishedRow], record: RunRecord) -> list[PublishedRow]:
    """Return those rows that have a value for a task of the record."""
    tasks = {part.task for part in record.parts}
    return [row for row in found if any(cell.setting.task in tasks for cell in row.cells)]
