"""The options of `stsbench run` that give what a diagnosis found."""

from stsbench.evaluation.tasks import SUPERVISED
from stsbench.records.table import AVERAGE
from stsbench.statistics import SIMILARITIES
from stsbench.verify.diagnose_grid import (
    AGGREGATION,
    AVERAGE_OF,
    COMPARISON,
    MAX_LENGTH,
    METRIC,
    POOLING,
    REGRESSED,
    TEXT,
    split_of,
    tasks_in,
)
from stsbench.verify.diagnose_search import Candidate, Search

_OPTIONS = {
    POOLING: "--pooling",
    AGGREGATION: "--aggregation",
    METRIC: "--metric",
    TEXT: "--text",
    MAX_LENGTH: "--max-length",
}


def options_of(search: Search, candidate: Candidate) -> str:
    """Return what to add to the person's own `stsbench run` to get a setting's scores; in the claim's tasks."""
    changed = {change.choice: change.value for change in candidate.changes}
    similarity, _, scaling = changed.pop(COMPARISON, "").partition(", ")
    tasks = list(search.claim.tasks)
    if AVERAGE in tasks:
        tasks = tasks_in(changed.get(AVERAGE_OF, ""), list(search.grid.scores))
    splits = {task: changed.get(split_of(task), "") for task in tasks}
    if similarity == SUPERVISED:
        splits |= dict.fromkeys(REGRESSED & splits.keys(), SUPERVISED)
    options = [f"--tasks {','.join(f'{task}:{split}' if split else task for task, split in splits.items())}"]
    options += [f"{option} {changed[choice]}" for choice, option in _OPTIONS.items() if choice in changed]
    options += [f"--similarity {similarity}"] if similarity in SIMILARITIES else []
    options += ["--no-normalize" if scaling.startswith("not ") else "--normalize"] if scaling else []
    return " ".join(options)
