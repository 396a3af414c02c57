"""`stsbench compare`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from stsbench.base.errors import UserError
from stsbench.cli.options import (
    INTERVAL_HELP,
    OUTPUT,
    IntervalName,
    IntervalOption,
    Output,
    any_seed,
    grouped,
    number_within,
)
from stsbench.cli.output import drawable, print_result, progress_bars, say, tell

_SETS = ("--a", "--b")


class SeveralRuns(TyperCommand):
    """Takes all runs that follow `--a` or `--b`, as a shell writes them for `--a runs/simcse-seed*`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its runs, which is what the parser understands."""
        understood: list[str] = []
        option = ""
        for argument in args:
            if argument.startswith("-"):
                option = argument if argument in _SETS else ""
                understood += [] if option else [argument]
            else:
                understood += [option, argument] if option else [argument]
        return super().parse_args(ctx, understood)


app = typer.Typer()

_PLANNING = "Planning"


@app.command(cls=SeveralRuns)
@grouped
def compare(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN", help="Two run folders or run.json files.")
    ] = None,
    a: Annotated[
        list[str] | None,
        typer.Option(
            "--a", metavar="RUN...", help="Runs of one method with different seeds.", rich_help_panel="Seeds"
        ),
    ] = None,
    b: Annotated[
        list[str] | None,
        typer.Option("--b", metavar="RUN...", help="Runs of the other method.", rich_help_panel="Seeds"),
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            help="Look for the test sentences in a training corpus: a text a line, or .csv; .gz too. Repeatable.",
            rich_help_panel="Corpus",
        ),
    ] = None,
    data_dir: Annotated[
        list[Path] | None,
        typer.Option(help="Look for the test sentences here first. Repeatable.", rich_help_panel="Corpus"),
    ] = None,
    resamples: Annotated[
        int,
        typer.Option(
            callback=number_within(1),
            help="Draws of whole runs, for the interquartile mean and the probability of improvement.",
            rich_help_panel="Seeds",
        ),
    ] = 5000,
    seed: Annotated[
        int, typer.Option(callback=any_seed, help="Seed of these draws.", rich_help_panel="Seeds")
    ] = 12345,
    interval: Annotated[
        IntervalName | None,
        typer.Option(
            help=f"{INTERVAL_HELP} Default: that of the records; `dyadic` if theirs differ.",
            metavar="METHOD",
            rich_help_panel="Statistics",
        ),
    ] = None,
    level: Annotated[
        float,
        typer.Option(callback=number_within(0, 1), help="Level of the intervals.", rich_help_panel="Statistics"),
    ] = 0.95,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Tell the smallest difference that these pairs show for two models that agree as much as these, "
            "and how many pairs a difference takes.",
            rich_help_panel=_PLANNING,
        ),
    ] = False,
    difference: Annotated[
        float | None,
        typer.Option(
            callback=number_within(0, 100),
            help="With --plan: how many pairs this difference takes, in points. Default: that of the two runs.",
            rich_help_panel=_PLANNING,
        ),
    ] = None,
    seed_spread: Annotated[
        str | None,
        typer.Option(
            metavar="SD",
            help="With --difference, of methods: how many seeds it takes where their standard deviation is this, "
            "in points, or that of a system whose seeds are known.",
            rich_help_panel=_PLANNING,
        ),
    ] = None,
    best_of: Annotated[
        str | None,
        typer.Option(
            metavar="SCORE",
            help="Tell of how many runs (those of --a) the best scores this on average: points, or a published "
            "system; alone, one whose seeds are known.",
            rich_help_panel="Seeds",
        ),
    ] = None,
    task: Annotated[
        str, typer.Option(help="With --best-of: which score. Default: the average.", rich_help_panel="Seeds")
    ] = "",
    subsets: Annotated[
        bool, typer.Option("--subsets", help="Print every subset too.", rich_help_panel=OUTPUT)
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(
            callback=drawable,
            help="Draw the differences into a .png, .svg or .pdf file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
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
    * `stsbench compare runs/a runs/b --plan --difference 0.5 --seed-spread unsup-simcse-bert-base`
    * `stsbench compare --a runs/simcse-seed* --best-of 76.25`
    """
    _ = output.style  # Refused before the work, if two formats were asked for.
    _demand_planning(plan, difference, seed_spread, best_of, task)
    if best_of is not None:
        from stsbench.judging.best_of import best_of as best_verb

        if runs or b:
            raise UserError("--best-of is of the runs of one method: name them with --a alone.")
        number = _number(best_of)
        if not a and isinstance(number, float):
            raise UserError("--best-of a number takes runs: name them with --a, or name a published system.")
        best = best_verb(verb_runs(a), number, task=task) if a else best_verb(best_of, task=task)
        print_result(best, output, figure=figure)
        tell(best.sentence, *(f"note: {note}" for note in best.notes), quiet=output.quiet)
        return
    _demand_one_way(runs or [], a or [], b or [])
    if plan:
        from stsbench.judging.planning import plan as plan_verb

        if not runs:
            raise UserError("--plan takes two runs: name them without --a and --b.")
        if figure is not None:
            raise UserError("a plan is a table: leave out --figure.")
        spread = None if seed_spread is None else _number(seed_spread)
        planned = plan_verb(*runs, difference=difference, spread=spread, level=level, interval=interval)
        print_result(planned, output)
        tell(planned.sentence, *planned.words, quiet=output.quiet)
        return
    from stsbench.judging import compare as verb
    from stsbench.records.intervals import common_interval
    from stsbench.records.store import load_run
    from stsbench.render.figures import save_figure
    from stsbench.scoring.settings import Intervals

    sides = (runs[:1], runs[1:]) if runs else (verb_runs(a), verb_runs(b))
    one, other = ([load_run(run) for run in side] for side in sides)
    chosen = interval or common_interval([*one, *other])
    with progress_bars(quiet=output.quiet) as progress:
        comparison = verb.compare(
            one[0] if runs else one,
            other[0] if runs else other,
            corpora=corpus or (),
            data_dirs=data_dir or (),
            intervals=Intervals(chosen, level),
            resamples=resamples,
            seed=seed,
            progress=progress,
        )
    if figure is not None:
        tell(f"drawn in {save_figure(comparison.plot(), figure)}", quiet=output.quiet)
    is_screen = output.style == "terminal"
    # Beside a table for a paper the words stand on standard error; a program gets them with the rest.
    is_silent = output.quiet or output.style in {"json", "csv"}
    say(*comparison.legend, "") if is_screen else tell(*comparison.legend, quiet=is_silent)
    print_result(comparison, output, tables=comparison.table(subsets=subsets))
    words = comparison.sentence.splitlines()
    say("", *words) if is_screen else tell(*words, quiet=is_silent)
    for line in comparison.remarks:
        tell(line, quiet=output.quiet)


@grouped
def rank(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Run folders or run.json files: two to 100.")
    ],
    simultaneous: Annotated[
        bool,
        typer.Option(
            "--simultaneous", help="Rank intervals that hold all at once. Default: each holds by itself."
        ),
    ] = False,
    adjust: Annotated[
        str, typer.Option(help="For the many pairs of models: `max` (a max-statistic) or `holm`.")
    ] = "max",
    interval: IntervalOption = "dyadic",
    level: Annotated[float, typer.Option(callback=number_within(0, 1), help="Level of the intervals.")] = 0.95,
    draws: Annotated[int, typer.Option(callback=number_within(1), help="Draws of the bootstrap.")] = 5000,
    seed: Annotated[int, typer.Option(callback=any_seed, help="Seed of the draws.")] = 12345,
    figure: Annotated[
        Path | None,
        typer.Option(
            callback=drawable,
            help="Draw scores and rank bands into a .png, .svg or .pdf file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="Of which task the figure is. Default: the average.", rich_help_panel=OUTPUT)
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
    _ = output.style  # Refused before the work, if two formats were asked for.
    if adjust not in {"max", "holm"}:
        raise UserError(f"--adjust {adjust!r}: choose `max` or `holm`.")
    from stsbench.judging import rank as verb
    from stsbench.render.figures import save_figure

    named = verb_runs(runs)
    # A used folder, as the shell names what is in it, holds experiments too.
    experiments = [
        path for path in named if (path / "experiment.yaml").is_file() and not (path / "run.json").exists()
    ]
    with progress_bars(quiet=output.quiet) as progress:
        ranking = verb.rank(
            [path for path in named if path not in experiments],
            simultaneous=simultaneous,
            adjustment=adjust,  # type: ignore[arg-type]
            interval=interval,
            level=level,
            draws=draws,
            seed=seed,
            progress=progress,
        )
    if figure is not None:
        tell(f"drawn in {save_figure(ranking.plot(task), figure)}", quiet=output.quiet)
    elif task is not None:
        raise UserError("--task chooses what the figure is of: add --figure.")
    print_result(ranking, output)
    left_out = [
        f"note: left out: {path} is an experiment; its runs are in {path / 'jobs'}." for path in experiments
    ]
    tell(ranking.sentence, *ranking.words, *left_out, quiet=output.quiet)


def verb_runs(patterns: list[str] | None) -> list[Path]:
    """Return the runs that are named or match a pattern."""
    from stsbench.judging.compare import matching_runs

    return matching_runs(patterns or [])


def _number(text: str) -> float | str:
    """Return a number, or the text that is none: a name."""
    try:
        return float(text)
    except ValueError:
        return text


def _demand_planning(
    plan: bool, difference: float | None, seed_spread: str | None, best_of: str | None, task: str
) -> None:
    if plan and best_of is not None:
        raise UserError("--plan and --best-of cannot go together: ask one thing at a time.")
    if not plan and (difference is not None or seed_spread is not None):
        raise UserError(f"--{'seed-spread' if difference is None else 'difference'} goes with --plan: add it.")
    if difference is None and seed_spread is not None:
        raise UserError("--seed-spread goes with --difference: name the difference of two methods, such as 0.5.")
    if task and best_of is None:
        raise UserError("--task goes with --best-of: it names the score.")


def _demand_one_way(runs: list[Path], a: list[str], b: list[str]) -> None:
    if (a or b) and runs:
        raise UserError("two runs, or methods with --a and --b: leave out the one or the other.")
    if not a and len(runs) != 2:
        raise UserError(
            "name two runs, as in `stsbench compare runs/a runs/b`, or the runs of methods over seeds, as in "
            "`stsbench compare --a runs/simcse-seed* --b runs/esimcse-seed*`."
        )
