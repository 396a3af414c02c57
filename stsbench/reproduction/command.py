"""`stsbench reproduce`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option
from yaml import YAMLError

from stsbench.base.errors import UserError
from stsbench.base.parsing import parse_yaml
from stsbench.cli.options import DataDirs, IntervalOption, Output, grouped, new_folder, number_within
from stsbench.cli.output import drawable, print_result, progress_bars, tell


@grouped
def reproduce(
    table: Annotated[
        str, Argument(help="A table or figure, as `--list` names it: `esimcse-coling2022-9`.", show_default=False)
    ] = "",
    scale: Annotated[
        str,
        Option(
            help="`demo` (a few steps, minutes), `laptop` (a small base, a few thousand sentences), `paper` (the "
            "paper's own base, corpus and seeds) or `wiring` (all of `paper`, from random weights)."
        ),
    ] = "demo",
    out: Annotated[
        Path | None,
        Option("--out", "-o", callback=new_folder, help="Folder of the experiment. Default: `runs/TABLE-SCALE`."),
    ] = None,
    on: Annotated[str, Option(help="Where jobs run: `local`, `ray` or `slurm`.")] = "local",
    corpus: Annotated[
        Path | None, Option(help="Train on this file. Default: the sample at `demo`, else a fetched `wiki1m`.")
    ] = None,
    seeds: Annotated[
        str, Option(help="Seeds of the trainings, with commas. Default: the scale's.", show_default=False)
    ] = "",
    set_: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="Change a key of every recipe that is trained. Repeatable."),
    ] = None,
    threads: Annotated[int, Option(callback=number_within(1, 1024), help="Of every job.")] = 1,
    workers: Annotated[
        int | None,
        Option(
            callback=number_within(1, 10_000),
            help="Jobs at once. Default: one a GPU, or one for each group of cores that its threads fill.",
        ),
    ] = None,
    device: Annotated[str, Option(help="Of local jobs: `auto`, `cpu`, `cuda` or `mps`.")] = "auto",
    interval: IntervalOption = "dyadic",
    retry: Annotated[bool, Option("--retry", help="Try jobs again that failed.")] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Tell the jobs, hours (some steps are timed) and disk space, and exit.")
    ] = False,
    list_: Annotated[
        bool,
        Option(
            "--list", help="Tell of every table and figure whether it can be made; of a named one all it takes."
        ),
    ] = False,
    figure: Annotated[
        Path | None, Option(callback=drawable, help="Draw the headline column, printed and ours: .png, .svg.")
    ] = None,
    data_dir: DataDirs = None,
    output: Output = Output(),
) -> None:
    """Make a table or figure of the papers again, and answer what its paper claims with it.

    Rows are trained, or measured from public checkpoints, over several seeds; killed, the same command goes on.
    The page in the folder's `report` has the print, ours, intervals, and each claim: supported, contradicted or
    undecided, and what would decide it. The exit code is 1 if a job failed.

    Examples:
    * `stsbench reproduce --list`
    * `stsbench reproduce --list esimcse-coling2022-9`
    * `stsbench reproduce esimcse-coling2022-9 --scale demo`
    * `stsbench reproduce esimcse-coling2022-4 --scale laptop --corpus wiki.txt --out runs/parts`
    * `stsbench reproduce mocose-acl2022-7 --scale laptop --corpus wiki.txt --dry-run`
    """
    from stsbench.reproduction.reproduce import reproduce as make_again
    from stsbench.reproduction.reproduced import Reproduction
    from stsbench.reproduction.reproductions import reproductions

    if list_:
        print_result(reproductions(table), output)
        return
    if not table:
        raise UserError("no table is named: `stsbench reproduce --list` names them.")
    with progress_bars(quiet=output.quiet) as progress:
        result = make_again(
            table,
            scale=scale,
            out=out,
            on=on,
            corpus=corpus,
            seeds=_seeds(seeds),
            settings=_settings(set_ or []),
            threads=threads,
            workers=workers,
            device=device,
            interval=interval,
            data_dirs=data_dir or (),
            retry=retry,
            dry_run=dry_run,
            progress=progress,
            notice=lambda sentence: tell(sentence, quiet=output.quiet),
        )
    if not isinstance(result, Reproduction):
        print_result(result, output)
        return
    from stsbench.reports.reproduction import write_reproduction

    page = write_reproduction(result)
    print_result(result, output, figure=figure)
    tell(f"{result.sentence} Written to {page}", quiet=output.quiet)
    if result.cost.failed:
        raise typer.Exit(1)


def _seeds(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if wrong := [part for part in parts if not part.isdecimal()]:
        raise UserError(f"--seeds {text}: {wrong[0]!r} is no seed; give whole numbers with commas, such as 1,2,3.")
    return tuple(map(int, parts))


def _settings(changes: list[str]) -> dict[str, Any]:
    settings = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key.strip():
            raise UserError(f"--set {change}: write key=value, such as optimiser.batch=32.")
        try:
            settings[key.strip()] = parse_yaml(text)
        except (ValueError, YAMLError) as error:
            raise UserError(f"--set {change}: the value is not valid YAML; put it in quotes.") from error
    return settings
