"""`show` prints records side by side, `cite` lists the citations for their models and tasks."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stsbench.cli.output import print_data, print_lines, print_notes, print_result
from stsbench.data.catalogue import data_set
from stsbench.published.catalogue import checkpoint_named_like, identified_checkpoint
from stsbench.records.record import RunRecord
from stsbench.records.scores import Scores, require_comparable
from stsbench.records.store import load_run

if TYPE_CHECKING:
    from stsbench.cli.options import Output

Run = RunRecord | str | Path


def show(runs: Run | Sequence[Run], *, subsets: bool = False) -> Scores:
    """Shows the scores of runs side by side.

    Args:
        runs: one or several run folders or `run.json` files; in Python also records.
        subsets: whether to add a table of every subset and metric.

    Returns:
        The scores. `.table()` has one row per model and a column per task and their average, x 100; for a single
        task also a column per subset. Transfer tasks (by `acc`) and supervised tasks (by Pearson) have tables of
        their own. `.frame` has a row per model, task, subset and metric.

    Raises:
        UserError: if a record is missing or damaged, or their protocols differ, naming the field.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> show(run).table()[0].frame.columns.tolist()[:3]
    ['model', 'sample', 'news']
    """
    several = [runs] if isinstance(runs, RunRecord | str | Path) else runs
    records = [run if isinstance(run, RunRecord) else load_run(run) for run in several]
    require_comparable(records)
    return Scores(records, subsets=subsets)


def print_scores(scores: Scores, output: "Output", *, as_list: bool) -> None:
    """Prints records as tables with signatures, or in full as JSON (`as_list`: a list of records)."""
    is_screen = output.style == "terminal"
    if output.style == "json" and not as_list:
        print_data(scores.records[0].model_dump_json(indent=1))
    else:
        print_result(replace(scores, intervals=is_screen), output)
    if is_screen and not output.quiet:
        print_lines("", *scores.remarks)
    for record in scores.records:
        for note in record.notes:
            print_notes(f"note: {note}", quiet=output.quiet)


def cite(paths: Sequence[str | Path]) -> dict[str, str]:
    """Returns the citations for the models and tasks of records, by model or task.

    Args:
        paths: run folders or `run.json` files.

    Raises:
        UserError: if a record is missing or damaged.
    """
    citations: dict[str, str] = {}
    for record in map(load_run, paths):
        model = record.model
        known = identified_checkpoint(model.name, weights_sha256=model.weights_sha256)
        like = checkpoint_named_like(model.name)
        hint = f" It is named like {like.hub}, but a name alone does not identify a model." if like else ""
        citations[model.name] = known.citation if known else f"not known here: see its model card.{hint}"
        for task in record.scores:
            own = task.data.status == "user"
            citations[task.task] = "a file of your own." if own else data_set(task.task).citation
    return citations
