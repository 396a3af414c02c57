"""`stsbench compare`, `plan`, `best-of`, `rank` and `check`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from stsbench.base.errors import UserError
from stsbench.cli.groups import expand
from stsbench.cli.options import (
    LARGEST,
    FigureChoice,
    Interval,
    Level,
    Output,
    Subsets,
    data_option,
    new_file,
    number_or_name,
)
from stsbench.cli.output import print_lines, print_notes, print_result, progress_bars

if TYPE_CHECKING:
    from stsbench.judging.judgement import Judgement
    from stsbench.render.table import Tables

_seeds_option, _ci_option = (
    partial(typer.Option, rich_help_panel=panel) for panel in ("Seeds", "Continuous integration")
)

_points = partial(typer.Option, min=0, max=100)


class SeveralRuns(TyperCommand):
    """Accepts several runs after `--a` or `--b`, as a shell expands `--a runs/simcse-seed*`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeats the option before each further run, as the parser expects."""
        repeated: list[str] = []
        option = ""
        for argument in args:
            if argument.startswith("-"):
                if repeated and repeated[-1] in {"--a", "--b"}:
                    ctx.fail(f"Option '{repeated[-1]}' requires an argument.")
                option = name if (name := argument.partition("=")[0]) in {"--a", "--b"} else ""
            elif option and repeated[-1] != option:
                repeated.append(option)
            repeated.append(argument)
        return super().parse_args(ctx, repeated)


def _print(
    result: "Judgement",
    output: Output,
    *,
    figure: FigureChoice | None = None,
    tables: "Tables | None" = None,
) -> None:
    """Prints a judgement: legend, tables, sentence and remarks."""
    is_screen = output.style == "terminal"
    # A table for a paper is alone on standard output. JSON and CSV contain the sentence.
    is_silent = output.quiet or output.style in {"json", "csv"}
    if result.legend:
        print_lines(*result.legend, "") if is_screen else print_notes(*result.legend, quiet=is_silent)
    print_result(result, output, figure=figure, tables=tables)
    print_lines("", result.sentence) if is_screen else print_notes(result.sentence, quiet=is_silent)
    print_notes(*result.remarks, quiet=output.quiet)


app = typer.Typer()


@app.command(cls=SeveralRuns)
@expand
def compare(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN", help="Two run folders or `run.json` files.")
    ] = None,
    a: Annotated[
        list[str] | None,
        _seeds_option("--a", metavar="RUN...", help="Runs of one method with different seeds."),
    ] = None,
    b: Annotated[
        list[str] | None, _seeds_option("--b", metavar="RUN...", help="Runs of the other method.")
    ] = None,
    interval: Interval = "dyadic",
    level: Level = 0.95,
    subsets: Subsets = False,
    figure: FigureChoice = FigureChoice(),
    output: Output = Output(),
) -> None:
    """Test whether the difference between two models is real.

    Two runs are compared pair by pair; pairs that share a sentence are treated as dependent. With `--a` and `--b`,
    two methods are compared over several seeds.

    Examples:
    * `stsbench compare runs/mine-avg-sts runs/theirs-avg-sts`
    * `stsbench compare runs/a runs/b --subsets --figure difference.pdf`
    * `stsbench compare --a runs/simcse-seed* --b runs/esimcse-seed*`
    """
    if (a or b) and runs:
        raise UserError("Name two runs, or two methods with --a and --b, not both.")
    if not a and len(runs or ()) != 2:
        raise UserError(
            "Name two runs (`stsbench compare runs/a runs/b`), or the runs of two methods over seeds "
            "(`stsbench compare --a runs/simcse-seed* --b runs/esimcse-seed*`)."
        )
    from stsbench.judging.compare import compare as compare_runs
    from stsbench.scoring.settings import Intervals

    with progress_bars(quiet=output.quiet) as progress:
        intervals = Intervals(interval, level)
        comparison = compare_runs(*(runs or (a or (), b or ())), intervals=intervals, progress=progress)
    _print(comparison, output, figure=figure, tables=comparison.table(subsets=subsets))


@expand
def plan(
    a: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder or `run.json`.")],
    b: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run whose agreement with the first is typical of your comparison."),
    ],
    difference: Annotated[
        float | None, _points(help="The difference to detect, in points; by default that of the two runs.")
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(
            "--seed-spread",
            metavar="SD",
            help="The standard deviation over seeds in points, or a published system with known seeds.",
        ),
    ] = None,
    interval: Interval = "dyadic",
    output: Output = Output(),
) -> None:
    """Plan a comparison: the smallest detectable difference, and the pairs and seeds that a difference needs.

    The plan holds for two models that agree as much as the two runs do.

    Examples:
    * `stsbench plan runs/a runs/b`
    * `stsbench plan runs/a runs/b --difference 0.5 --seed-spread unsup-simcse-bert-base`
    """
    from stsbench.judging.planning import plan as plan_comparison

    with progress_bars(quiet=output.quiet) as progress:
        planned = plan_comparison(
            a,
            b,
            difference=difference,
            spread=number_or_name(spread),
            interval=interval,
            progress=progress,
        )
    _print(planned, output)


@expand
def best_of(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Runs of one recipe with different seeds, a published system with known seeds, or a log.",
        ),
    ],
    number: Annotated[
        str | None,
        typer.Option(help="A score in points, or a published row; by default that of the named system."),
    ] = None,
    task: Annotated[str, data_option(help="The task; by default the average, or the only task.")] = "",
    output: Output = Output(),
) -> None:
    """Estimate the best score of n runs, and of how many runs a reported number is the best.

    Examples:
    * `stsbench best-of runs/simcse-seed* --number 76.25`
    * `stsbench best-of unsup-simcse-bert-base`
    * `stsbench best-of esimcse-bert-base --task STS-B:dev`
    """
    from stsbench.judging.best_of import best_of as best_of_runs

    is_system = len(runs) == 1 and not runs[0].expanduser().exists()
    with progress_bars(quiet=output.quiet):
        best = best_of_runs(str(runs[0]) if is_system else runs, number_or_name(number), task=task)
    _print(best, output)


@expand
def rank(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders or `run.json` files, two to 100.")
    ],
    simultaneous: Annotated[
        bool,
        typer.Option(
            "--simultaneous", help="Use rank intervals that hold for all models of a task at once, not one by one."
        ),
    ] = False,
    interval: Interval = "dyadic",
    level: Level = 0.95,
    draws: Annotated[int, typer.Option(min=1, max=LARGEST, help="Draws of the parametric bootstrap.")] = 5000,
    figure: FigureChoice = FigureChoice(),
    output: Output = Output(),
) -> None:
    """Rank models, and show how much of the order is statistically certain.

    Each model gets an interval of ranks and letters: models that share a letter do not differ significantly. Tasks
    and the average are corrected for all pairs of models.

    Examples:
    * `stsbench rank runs/*-avg-sts`
    * `stsbench rank runs/a runs/b runs/c --simultaneous --figure ranks.pdf`
    * `stsbench rank runs/*-avg-sts --latex`
    """
    from stsbench.judging.rank import rank as rank_runs

    # `runs/*` also matches the folders of experiments.
    experiments = [path for path in runs if (path / "experiment.yaml").is_file()]
    with progress_bars(quiet=output.quiet) as progress:
        ranking = rank_runs(
            [path for path in runs if path not in experiments],
            simultaneous=simultaneous,
            interval=interval,
            level=level,
            draws=draws,
            progress=progress,
        )
    _print(ranking, output, figure=figure)
    left_out = (f"note: left out: {path} is an experiment; its runs are in {path}/jobs." for path in experiments)
    print_notes(*left_out, quiet=output.quiet)


def _row_names(incomplete: str) -> list[str]:
    from stsbench.published.catalogue import row_names

    return [name for name in ("auto", *row_names()) if name.startswith(incomplete)]


@expand
def check(
    run: Annotated[
        Path, typer.Argument(help="A run's folder or `run.json`, or a file of results of SentEval or MTEB.")
    ],
    against: Annotated[
        str | None,
        typer.Option(
            autocompletion=_row_names,
            help="The published row: a system, a checkpoint on the Hub, `table/row`, or `auto` (the default).",
        ),
    ] = None,
    tolerance: Annotated[
        float | None, _points(help="The allowed difference from the published value in points; 0.05 by default.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="A run to check against instead of a published row.")
    ] = None,
    max_drop: Annotated[
        float | None, _points(help="The allowed drop below the baseline in points; 0.3 by default.")
    ] = None,
    margin: Annotated[
        float | None,
        _points(help="Test statistically that the loss against the baseline is below this many points."),
    ] = None,
    interval: Interval = "dyadic",
    junit: Annotated[
        Path | None,
        _ci_option(callback=new_file, help="Also write the verdicts as JUnit XML into this file."),
    ] = None,
    github: Annotated[
        bool,
        _ci_option(
            "--github/--no-github",
            envvar="GITHUB_ACTIONS",
            help="Annotate the GitHub workflow and append to its summary; on by default in a workflow.",
        ),
    ] = False,
    output: Output = Output(),
) -> None:
    """Compare a run with published numbers, or with an earlier run.

    Exit code 0: every score is within tolerance. 1: a score is not. 2: the scores are not comparable. 3 (with
    `--margin`): there are too few pairs to decide.

    Examples:
    * `stsbench check runs/minilm-avg-sts-mteb --tolerance 0.01`
    * `stsbench check runs/mine --against unsup-simcse-bert-base`
    * `stsbench check results.json --against esimcse-coling2022-3/esimcse-bert-base`
    * `stsbench check runs/new --baseline runs/old --max-drop 0.3 --junit check.xml`
    * `stsbench check runs/new --baseline runs/old --margin 0.3`
    """
    from stsbench.judging.check import check as check_run

    result = check_run(
        run,
        against,
        tolerance=tolerance,
        baseline=baseline,
        max_drop=max_drop,
        margin=margin,
        interval=interval,
    )
    _print(result, output)
    if junit is not None:
        result.write_junit(junit)
    if github:
        # GitHub reads both streams; JSON and CSV must stay alone on standard output.
        for line in result.annotations:
            print_lines(line) if output.style == "terminal" else print_notes(line)
        result.append_step_summary()
    raise typer.Exit(result.exit_code)
