"""Tables that count the pairs of each split of the tasks, made from the files that are here."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import SENTEVAL, data_set
from stsbench.data.locate import DataNotFoundError
from stsbench.published.catalogue import exhibits, rows_of, tables
from stsbench.reproduction.cells import ReproducedCell
from stsbench.reproduction.reproduced import Cost, Reproduction
from stsbench.reproduction.scales import ScaleName
from stsbench.reproduction.table_plan import TablePlan


def counted(
    plan: TablePlan, name: str, scale: ScaleName, folder: Path, data_dirs: Sequence[Path] = ()
) -> Reproduction:
    """Return a table of counts with the pairs of the files that are here.

    Args:
        plan: of the table.
        name: the table, whose rows are splits and columns tasks.
        scale: that it was asked for at.
        folder: where its page is to be.
        data_dirs: folders to look for data in.

    Raises:
        DataNotFoundError: if no task's files are here.
        UserError: if files are broken.
    """
    cells = tuple(_cells(name, data_dirs))
    if not any(cell.here > 0 for cell in cells):
        raise DataNotFoundError(next(cell.why for cell in cells if cell.why))
    cost = Cost(jobs=0, planned=0, failed=0, steps=0, hours=0.0, threads=1)
    return Reproduction(exhibits()[name], plan, scale, cells, (), cost, folder, {}, notes=plan.notes)


def _cells(name: str, data_dirs: Sequence[Path]) -> Iterator[ReproducedCell]:
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
