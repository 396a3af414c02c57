"""Keep what a reproduction came to, in a folder that can be shown: page, figure, tables, records.

    python examples/keep_reproduction.py esimcse-coling2022-9 --scale laptop --runs runs/esimcse-coling2022-9 \
        --out reports/examples/reproductions

Of each job its record, recipe, log and numbers are kept, without weights and without tables of pairs, which hold
gold scores; the corpus is called by the name of its file alone. What is kept is an experiment's folder still:
`stsbench sweep OUT/TABLE --status` says how far it is.
"""

import argparse
import re
import shutil
from pathlib import Path

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.render.figures import save_figure
from stsbench.render.formats import to_csv, to_markdown
from stsbench.reports.report import write_reproduction
from stsbench.reproduction.reproduce import read_reproduction
from stsbench.reproduction.reproduced import Reproduction
from stsbench.reproduction.table_plan import ScaleName, demand_scale, plan_of
from stsbench.sweeps.experiment import EXPERIMENT
from stsbench.sweeps.folder import JOB_LIST
from stsbench.sweeps.result import Sweep, read_sweep

KEPT = ("job.json", "run.json", "recipe.yaml", "log.jsonl", "last/run.json", "analyses/*.csv")
"""Of a job's folder."""

_PATH = re.compile(r"""(?:^|[\s"'=:(])(/(?:[\w.-]+/)+[\w.-]*)""", re.MULTILINE)


def keep(table: str, scale: ScaleName, runs: Path, out: Path) -> Reproduction:
    """Write the folder of a table in `out`, in place of one that is there.

    Raises:
        UserError: if a file that would be kept holds a path of this machine.
    """
    experiment = read_sweep(runs)
    result = read_reproduction(plan_of(table), table, scale, experiment)
    folder = out / table
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "jobs").mkdir(parents=True)
    write_reproduction(result, folder / "report")
    for kind in ("svg", "png"):
        save_figure(result.plot(), folder / f"figure.{kind}")
    for number, shown in enumerate(result.section().tables):
        name = "table" if number == 0 else "each"
        text = to_markdown(shown.frame, decimals=shown.decimals)
        (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
    (folder / "status.md").write_text(f"{result.cost.sentence}\n", encoding="utf-8")
    _keep_experiment(experiment, runs, folder)
    return result


def _keep_experiment(experiment: Sweep, runs: Path, folder: Path) -> None:
    corpora = {str(recipe["corpus"]["path"]) for state in experiment.jobs if (recipe := state.job.recipe)}
    files = [runs / EXPERIMENT, runs / JOB_LIST]
    files += [
        path for state in experiment.jobs if state.folder for name in KEPT for path in state.folder.glob(name)
    ]
    for path in files:
        text = path.read_text(encoding="utf-8")
        if experiment.experiment.relative_to is not None:
            text = text.replace(f"relative_to: {experiment.experiment.relative_to}\n", "relative_to: .\n")
        for corpus in corpora:
            text = text.replace(corpus, Path(corpus).name)
        if found := _PATH.search(text):
            raise UserError(f"{path} names {found[1]}, which is a place on this machine: it is not kept.")
        target = folder / path.relative_to(runs)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    # The tables of the whole experiment, whose intervals are of the pairs, too.
    for frame, name in ((experiment.frame, "jobs.csv"), (experiment.cells, "cells.csv")):
        (folder / name).write_text(to_csv(frame) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--scale", default="laptop")
    parser.add_argument("--runs", type=Path, required=True, help=f"the folder that holds {EXPERIMENT}")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    try:
        result = keep(options.table, demand_scale(options.scale), options.runs.absolute(), options.out)
    except sb.UserError as error:
        parser.error(str(error))
    print(result.sentence)


if __name__ == "__main__":
    main()
