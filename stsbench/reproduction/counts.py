"""Tables that count the pairs of each split of the tasks: made from the files that are here."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import SENTEVAL, data_set
from stsbench.data.locate import DataNotFoundError
from stsbench.published.catalogue import rows_of, tables
from stsbench.reproduction.reproduced import ReproducedCell


def counted_cells(name: str, data_dirs: Sequence[Path] = ()) -> tuple[ReproducedCell, ...]:
    """Return a table of counts with the pairs of the files that are here.

    Args:
        name: the table, whose rows are splits and columns tasks.
        data_dirs: folders to look for data in.

    Raises:
        DataNotFoundError: if no task's files are here.
        UserError: if files are broken.
    """
    cells = tuple(_counted(name, data_dirs))
    if any(cell.here > 0 for cell in cells):
        return cells
    missing = next(cell.why for cell in cells if cell.why)
    raise DataNotFoundError(missing)


def _counted(name: str, data_dirs: Sequence[Path]) -> Iterator[ReproducedCell]:
    columns = {column.name: column.setting.task for column in tables()[name].columns}
    for row in rows_of(tables()[name]):
        for cell in row.cells:
            printed = math.nan if cell.value is None else cell.value
            task, split = columns[cell.column], cell.setting.split
            if split not in data_set(task).texts[SENTEVAL].splits:
                yield ReproducedCell(cell.row, cell.column, printed, 0.0, runs=1)
                continue
            try:
                count = len(load_sts(task, split, SENTEVAL, data_dirs).pairs)
            except DataNotFoundError as error:
                yield ReproducedCell(cell.row, cell.column, printed, why=str(error))
            else:
                yield ReproducedCell(cell.row, cell.column, printed, float(count), runs=1)
