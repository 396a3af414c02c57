"""`stsbench compare`, `plan`, `best-of`, `rank` and `check`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from stsbench.base.errors import UserError
from stsbench.base.options import OUTPUT, Help, Panel, Spelled, Written
from stsbench.cli.options import INTERVALS, FigureChoice, IntervalName, Output, SubsetsFlag
from stsbench.cli.output import print_result, progress_bars, say, tell
from stsbench.cli.verbs import Call, Verb

_SETS = ("--a", "--b")
_FOR_CI = "For continuous integration"


class SeveralRuns(TyperCommand):
    """Accepts several runs after `--a` or `--b`, as a shell expands `--a runs/simcse-seed*`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each further run, as the parser expects."""
        repeated: list[str] = []
        option = ""
        for argument in args:
            if argument.startswith("-"):
                if repeated and repeated[-1] in _SETS:
                    ctx.fail(f"Option '{repeated[-1]}' requires an argument.")
                option = argument.partition("=")[0]
            elif option in _SETS and repeated[-1] != option:
                repeated.append(option)
            repeated.append(argument)
        return super().parse_args(ctx, repeated)


app = typer.Typer()


@app.command(cls=SeveralRuns)
def compare(
    runs: Annotated[list[Path] | None, Spelled("RUN"), Help("Two run folders or run.json files.")] = None,
    *,
    a: Annotated[
        list[str] | None,
        Spelled("--a", "RUN..."),
        Panel("Seeds"),
        Help("Runs of one method with different seeds."),
    ] = None,
    b: Annotated[
        list[str] | None,
        Spelled("--b", "RUN..."),
        Panel("Seeds"),
        Help("Runs of the other method."),
    ] = None,
    asked: Annotated[Call, Verb("stsbench.judging.compare:compare", without=("a", "b"))],
    interval: Annotated[
        IntervalName | None,
        Panel(INTERVALS),
        Help("Which pairs depend on each other; by default as in the records, `dyadic` if theirs differ."),
    ] = None,
    level: Annotated[float, Panel(INTERVALS), Help("How often an interval holds the true value.")] = 0.95,
    subsets: SubsetsFlag = False,
    figure: FigureChoice = FigureChoice(),
    output: Output = Output(),
) -> None:
    """Tell whether the difference between two models is real.

    Two runs are compared pair by pair, with pairs that share a sentence taken for dependent (beside it Williams'
    test, which takes none for so; Holm's correction); with `--a` and `--b`, two methods over several seeds.

    Examples:
    * `stsbench compare runs/mine-avg-sts runs/theirs-avg-sts`
    * `stsbench compare runs/a runs/b --subsets --figure difference.pdf`
    * `stsbench compare --a runs/simcse-seed* --b runs/esimcse-seed*`
    * `stsbench compare runs/a runs/b --corpus wiki1m.txt`
    """
    _demand_one_way(runs or [], a or [], b or [])
    from stsbench.judging.runs import matching_runs, records_of
    from stsbench.records.labels import common_interval
    from stsbench.scoring.settings import Intervals

    sides = (runs[:1], runs[1:]) if runs else (matching_runs(a or []), matching_runs(b or []))
    of_a, of_b = (records_of(side) for side in sides)
    chosen = interval or common_interval([*of_a, *of_b])
    with progress_bars(quiet=output.quiet) as progress:
        comparison = asked(
            a=of_a[0] if runs else of_a,
            b=of_b[0] if runs else of_b,
            intervals=Intervals(chosen, level),
            progress=progress,
        )
    is_screen = output.style == "terminal"
    # Beside a table for a paper the words stand on standard error; a program gets them with the rest.
    is_silent = output.quiet or output.style in {"json", "csv"}
    say(*comparison.legend, "") if is_screen else tell(*comparison.legend, quiet=is_silent)
    print_result(comparison, output, figure=figure, tables=comparison.table(subsets=subsets))
    words = comparison.sentence.splitlines()
    say("", *words) if is_screen else tell(*words, quiet=is_silent)
    for line in comparison.remarks:
        tell(line, quiet=output.quiet)


def plan(asked: Annotated[Call, Verb("stsbench.judging.planning:plan")], output: Output = Output()) -> None:
    """Plan a comparison: which difference can these pairs show, and how many pairs and seeds does one take?

    Told for two models that agree as much as those of the two runs.

    Examples:
    * `stsbench plan runs/a runs/b`
    * `stsbench plan runs/a runs/b --difference 0.5 --seed-spread unsup-simcse-bert-base`
    """
    with progress_bars(quiet=output.quiet) as progress:
        planned = asked(progress=progress)
    print_result(planned, output)
    tell(planned.sentence, *planned.words, quiet=output.quiet)


def best_of(
    asked: Annotated[Call, Verb("stsbench.judging.best_of:best_of")],
    figure: FigureChoice = FigureChoice(),
    output: Output = Output(),
) -> None:
    """Tell what the best of n runs scores on average, and of how many runs a number is the best.

    The runs are of one recipe with different seeds; a published system whose seeds are known stands for its own.

    Examples:
    * `stsbench best-of runs/simcse-seed* --number 76.25`
    * `stsbench best-of unsup-simcse-bert-base`
    * `stsbench best-of esimcse-bert-base --task STS-B:dev`
    """
    from stsbench.judging.runs import is_pattern, matching_runs

    runs = asked.options["runs"]
    is_system = len(runs) == 1 and not (runs[0].expanduser().exists() or is_pattern(runs[0]))
    with progress_bars(quiet=output.quiet):
        best = asked(runs=str(runs[0]) if is_system else matching_runs(runs))
    print_result(best, output, figure=figure)
    tell(best.sentence, *(f"note: {note}" for note in best.notes), quiet=output.quiet)


def rank(
    asked: Annotated[Call, Verb("stsbench.judging.rank:rank")],
    figure: FigureChoice = FigureChoice(),
    task: Annotated[
        str | None, Panel(OUTPUT), Help("The task that the figure shows. Default: the average.")
    ] = None,
    output: Output = Output(),
) -> None:
    """Rank models, and tell how much of the order the pairs show.

    Each model gets the ranks that it can have, and a letter for each group that cannot be told apart: for each
    task and on average, corrected for all pairs of models.

    Examples:
    * `stsbench rank runs/*-avg-sts`
    * `stsbench rank runs/a runs/b runs/c --simultaneous --figure ranks.pdf`
    * `stsbench rank runs/*-avg-sts --latex`
    """
    adjust = asked.options.get("adjustment", "max")
    if adjust not in {"max", "holm"}:
        raise UserError(f"--adjust {adjust!r}: choose `max` or `holm`.")
    from stsbench.judging.runs import matching_runs

    named = matching_runs(asked.options["runs"])
    # A used folder, as the shell names what is in it, holds experiments too.
    experiments = [
        path for path in named if (path / "experiment.yaml").is_file() and not (path / "run.json").exists()
    ]
    with progress_bars(quiet=output.quiet) as progress:
        ranking = asked(runs=[path for path in named if path not in experiments], progress=progress)
    if drawn := figure.draw(lambda: ranking.plot(task)):
        tell(f"drawn in {drawn}", quiet=output.quiet)
    elif task is not None:
        raise UserError("--task chooses what the figure is of: add --figure.")
    print_result(ranking, output)
    left_out = [
        f"note: left out: {path} is an experiment; its runs are in {path / 'jobs'}." for path in experiments
    ]
    tell(ranking.sentence, *ranking.words, *left_out, quiet=output.quiet)


def _demand_one_way(runs: list[Path], a: list[str], b: list[str]) -> None:
    if (a or b) and runs:
        raise UserError("two runs, or methods with --a and --b: leave out the one or the other.")
    if not a and len(runs) != 2:
        raise UserError(
            "name two runs, as in `stsbench compare runs/a runs/b`, or the runs of methods over seeds, as in "
            "`stsbench compare --a runs/simcse-seed* --b runs/esimcse-seed*`."
        )


def _row_names(incomplete: str) -> list[str]:
    from stsbench.published.catalogue import row_names

    return [name for name in ("auto", *row_names()) if name.startswith(incomplete)]


def check(
    asked: Annotated[Call, Verb("stsbench.judging.check:check", completed={"against": _row_names})],
    junit: Annotated[
        Path | None,
        Written("file"),
        Panel(_FOR_CI),
        Help("Write the verdicts into this file, too, as JUnit XML."),
    ] = None,
    github: Annotated[
        bool,
        typer.Option(
            "--github/--no-github",
            envvar="GITHUB_ACTIONS",
            help="Annotate the run of a GitHub workflow, and append to its summary. On by default in such a run.",
            rich_help_panel=_FOR_CI,
        ),
    ] = False,
    output: Output = Output(),
) -> None:
    """Compare a run with published numbers, or with the run of a predecessor.

    Exit code 0: every score is within tolerance. 1: one is not. 2: they do not compare, and why. With --margin 3:
    these pairs cannot tell, and what would make them.

    Examples:
    * `stsbench check runs/minilm-avg-sts-mteb --tolerance 0.01`
    * `stsbench check runs/mine --against unsup-simcse-bert-base`
    * `stsbench check results.json --against esimcse-coling2022-3/esimcse-bert-base`
    * `stsbench check runs/new --baseline runs/old --max-drop 0.3 --junit check.xml`
    * `stsbench check runs/new --baseline runs/old --margin 0.3`
    """
    is_screen = output.style == "terminal"
    result = asked()
    print_result(result, output)
    if junit is not None:
        result.write_junit(junit)
    if github:
        # Beside the output where that is for a program: the service reads both.
        for line in result.annotations:
            say(line) if is_screen else tell(line)
        result.append_step_summary()
    for note in result.notes:
        tell(f"note: {note}", quiet=output.quiet)
    tell(result.sentence, quiet=output.quiet and result.passed)
    raise typer.Exit(result.exit_code)
