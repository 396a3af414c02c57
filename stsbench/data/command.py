"""`stsbench data`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.output import (
    CsvFlag,
    JsonFlag,
    LatexFlag,
    MarkdownFlag,
    QuietFlag,
    chosen_style,
    print_frame,
    progress_bars,
    tell,
)

app = typer.Typer(help="See, get and verify the benchmark data.", no_args_is_help=True)

DataDirs = Annotated[list[Path] | None, typer.Option("--data-dir", help="Look for data here first. Repeatable.")]


@app.command("list")
def list_(
    data_dir: DataDirs = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
) -> None:
    """List every data set: splits with their counts, licence, and whether it is here.

    JSON and CSV tell all: subsets, documentation, source, the folder it is in.

    Example: `stsbench data list --json`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.data.overview import catalogue_table

    table = catalogue_table(data_dir or ())
    if style not in {"json", "csv"}:
        table["here"] = table["found"].map(lambda folder: "yes" if folder else "no")
        table = table[["task", "text", "kind", "splits", "here"]]
    print_frame(table, style)


@app.command()
def get(
    what: Annotated[
        str, typer.Argument(help="`senteval` (the benchmarks), `wiki1m` or `nli` (training text).")
    ] = "senteval",
    quiet: QuietFlag = False,
) -> None:
    """Download data into the cache; an interrupted download goes on where it stopped.

    `HF_ENDPOINT` names a mirror of the Hugging Face Hub; `STSBENCH_CACHE` another cache folder.

    Example: `stsbench data get senteval`
    """
    from stsbench.data import fetch

    with progress_bars(quiet=quiet) as progress:
        fetched = fetch.get(what, progress)
    vouched = "verified" if fetched.verified else f"not verified by the catalogue, sha256 {fetched.sha256}"
    tell(f"{'downloaded' if fetched.fresh else 'already there'}: {fetched.path} ({vouched})", quiet=quiet)


@app.command()
def verify(
    data_dir: DataDirs = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
) -> None:
    """Hold every file against the catalogue; exit code 1 if one differs.

    Example: `STSBENCH_DATA=data/senteval stsbench data verify`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.data import overview

    table = overview.verify(data_dir or ())
    counts = table["status"].value_counts()
    if style not in {"json", "csv"}:
        # Of a source that is not here at all, the count says enough.
        table = table.loc[(table["status"] != "ok") & (table["folder"] != ""), ["task", "text", "file", "status"]]
    if len(table) or style in {"json", "csv"}:
        print_frame(table, style)
    tell(", ".join(f"{count} files {status}" for status, count in counts.items()))
    if counts.get("modified", 0):
        raise typer.Exit(1)


@app.command()
def where(
    data_dir: DataDirs = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
) -> None:
    """Show where data is looked for, in order, and what was found at each place.

    Example: `stsbench data where --data-dir my/senteval`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.data import overview

    print_frame(overview.where(data_dir or ()), style)


@app.command("nli-triplets")
def nli_triplets(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders with s1.SPLIT, s2.SPLIT and labels.SPLIT (SNLI, MultiNLI).")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV file to write.")] = Path("nli-triplets.csv"),
    split: Annotated[str, typer.Option(help="Which part: `train`, `dev`, `dev.matched`, ...")] = "train",
    quiet: QuietFlag = False,
) -> None:
    """Build (premise, entailment, contradiction) triplets to train supervised SimCSE on.

    Example: `stsbench data nli-triplets data/SNLI data/MultiNLI --out nli.csv`
    """
    from stsbench.data.nli_triplets import write_nli_triplets

    made = write_nli_triplets(folders, out, split)
    tell(
        f"{made.triplets} triplets in {out}, from {made.pairs} pairs of {made.premises} premises; {made.without} "
        "premises lack an entailed or a contradicting sentence.",
        quiet=quiet,
    )
