"""`stsbench data`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.options import DATA, DataDirs, Output, Quiet, SubsetColumn, expand, names, new_folder
from stsbench.cli.output import print_next, print_notes, print_result, progress_bars

app = typer.Typer(help="List, download and verify the benchmark data.", no_args_is_help=True)


@app.command("list")
@expand
def list_(data_dirs: DataDirs = None, output: Output = Output()) -> None:
    """List every data set: its splits and counts, whether its files were verified, and whether it is here.

    JSON and CSV contain all fields: licence, subsets, scale, source, remarks on unverified files, folder.

    Example: `stsbench data list --json`
    """
    from stsbench.data.describe import list_data

    print_result(list_data(data_dirs or ()), output)
    print_next(output, "data", "describe", "TASK")


@app.command()
@expand
def get(
    what: Annotated[
        str, typer.Argument(help="`senteval` (the benchmarks), `wiki1m`, `nli` (training text), `sts17`, ...")
    ] = "senteval",
    to: Annotated[
        Path | None,
        typer.Option(
            callback=new_folder,
            help="The folder to fill instead of the cache; name it in STSBENCH_DATA to use it.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Download data into the cache.

    `HF_ENDPOINT` names a mirror of the Hugging Face Hub; `STSBENCH_CACHE` another cache folder.

    Example: `stsbench data get senteval --to data`
    """
    from stsbench.data.fetch import get as download

    with progress_bars(quiet=quiet) as progress:
        fetched = download(what, progress, to=to)
    status = "verified" if fetched.verified else "its hash is not in the catalogue"
    print_notes(f"{'downloaded' if fetched.fresh else 'already there'}: {fetched.path} ({status})", quiet=quiet)


@app.command()
@expand
def verify(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHAT]...",
            help="Sources (`senteval`, `sts-raw`) or tasks (`STS12`); by default the usual and all present ones.",
        ),
    ] = None,
    data_dirs: DataDirs = None,
    output: Output = Output(),
) -> None:
    """Compare every file with the catalogue; exit code 1 if one differs, is missing or cannot be read.

    Example: `STSBENCH_DATA=data/senteval stsbench data verify senteval`
    """
    from stsbench.data.describe import verify as verify_data

    result = verify_data(data_dirs or (), what=what or ())
    print_result(result, output)
    counts = result.rows["status"].value_counts().items()
    print_notes(", ".join(f"{count} files {status}" for status, count in counts), quiet=output.quiet)
    print_notes(*result.advice)
    if result.advice:
        raise typer.Exit(1)


@app.command()
@expand
def overlap(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tasks such as `STS16` (each split is a set), `STS-B:train`, `STS12+STS13` (one set), `sts` (the "
            "default), `transfer`, `all`."
        ),
    ] = None,
    corpora: Annotated[
        list[str] | None,
        typer.Option(
            "--corpus",
            help="A training corpus to compare with the tasks: a file, or `sample`. Repeatable.",
            rich_help_panel=DATA,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="The corpora's sentence columns, with commas; by default all that are not numbers.",
            rich_help_panel=DATA,
        ),
    ] = None,
    data_dirs: DataDirs = None,
    output: Output = Output(),
) -> None:
    """Count the sentences and pairs that tasks share with each other, or with a training corpus.

    Sentences are compared as released, and by letters and digits only. Each split is a separate set.

    Examples:
    * `stsbench data overlap`
    * `stsbench data overlap transfer --csv > overlap.csv`
    * `stsbench data overlap STS-B:test SICK-R:test --corpus nli.csv`
    """
    from stsbench.data.sentences import overlap as overlap_of

    result = overlap_of(
        tasks or (), corpora=corpora or (), columns=names(columns) or None, data_dirs=data_dirs or ()
    )
    print_result(result, output)
    if not result.table():
        print_notes("These sets share no sentences.", quiet=output.quiet)


@app.command()
@expand
def describe(
    data: Annotated[
        str, typer.Argument(metavar="PAIRS", help="Your own pairs (.tsv, .csv, .jsonl, .parquet), or a task.")
    ],
    subset_column: SubsetColumn = "subset",
    data_dirs: DataDirs = None,
    output: Output = Output(),
) -> None:
    """Describe scored pairs: counts, lengths, scores, repetitions, shared sentences.

    Also prints the smallest detectable difference between two assumed models. No sentence is printed.

    Example: `stsbench data describe my.tsv --markdown`
    """
    from stsbench.data.describe import describe as describe_pairs

    print_result(describe_pairs(data, subset_column=subset_column, data_dirs=data_dirs or ()), output)
    print_next(output, "run", "--data" if Path(data).is_file() else "--tasks", data)
