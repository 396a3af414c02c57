"""What to cite for a record: its tasks, its model, and how it was measured."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from stsbench.base.options import Spelled
from stsbench.data.catalogue import data_set
from stsbench.published.catalogue import known_checkpoint
from stsbench.records.store import load_run


def cite(paths: Annotated[Sequence[str | Path], Spelled("RUNS...")]) -> dict[str, str]:
    """Return the citations for the tasks and models of some records, by what each is for.

    Args:
        paths: run folders or `run.json` files.

    Raises:
        UserError: if a record is missing or damaged.
    """
    citations: dict[str, str] = {}
    for record in map(load_run, paths):
        model = record.model
        known = known_checkpoint(model.name, weights_sha256=model.weights_sha256)
        citations[model.name] = known.citation if known else "not known here: see its model card."
        for task in record.scores:
            own = task.data.status == "user"
            citations[task.task] = "a file of your own." if own else data_set(task.task).citation
    return citations
