"""The options of `stsbench run` that give what a diagnosis found."""

from stsbench.records.record import AVERAGE
from stsbench.statistics import SIMILARITIES
from stsbench.verify.diagnose_grid import (
    AGGREGATION,
    AVERAGE_OF,
    COMPARISON,
    MAX_LENGTH,
    METRIC,
    POOLING,
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
    COMPARISON: "--similarity",
}


def options_of(search: Search, candidate: Candidate) -> str:
    """Return what to add to the person's own `stsbench run` to get a setting's scores; empty if nothing does.

    Scaling vectors and training regressors are no options of `stsbench run`.
    """
    changed = {change.choice: change.value for change in candidate.changes}
    if changed.get(COMPARISON, "cosine") not in SIMILARITIES:
        return ""
    tasks = list(search.claim.tasks)
    if AVERAGE in tasks:
        tasks = tasks_in(changed.get(AVERAGE_OF, ""), list(search.grid.scores))
    named = [f"{task}:{changed[split_of(task)]}" if split_of(task) in changed else task for task in tasks]
    options = [f"{option} {changed[choice]}" for choice, option in _OPTIONS.items() if choice in changed]
    return " ".join([f"--tasks {','.join(named)}", *options])
