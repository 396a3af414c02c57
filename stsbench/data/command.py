"""`stsbench data`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.options import DATA, DataDirs, Output, grouped, new_file, new_folder, number_within
from stsbench.cli.output import QuietFlag, print_result, progress_bars, tell

app = typer.Typer(help="See, get and verify the benchmark data.", no_args_is_help=True)


@app.command("list")
@grouped
def list_(data_dir: DataDirs = None, output: Output = Output()) -> None:
    """List every data set: splits with their counts, whether its files were verified, and whether it is here.

    JSON and CSV tell all: licence, subsets, scale, source, what was seen of unverified files, the folder it is in.

    Example: `stsbench data list --json`
    """
    from stsbench.data.overview import list_data

    print_result(list_data(data_dir or ()), output)


@app.command()
def get(
    what: Annotated[
        str,
        typer.Argument(
            help="`senteval` (the benchmarks), `wiki1m` or `nli` (training text), or the source of another set: "
            "`biosses`, `sts17`, ... (`stsbench data list --json`)."
        ),
    ] = "senteval",
    to: Annotated[
        Path | None,
        typer.Option(
            callback=new_folder,
            help="The folder to fill instead of the cache; name it in STSBENCH_DATA to have it used.",
        ),
    ] = None,
    quiet: QuietFlag = False,
) -> None:
    """Download data into the cache; an interrupted download goes on where it stopped.

    `HF_ENDPOINT` names a mirror of the Hugging Face Hub; `STSBENCH_CACHE` another cache folder. In a checkout of
    stsbench, what is in its folder `data` is found without being named.

    Example: `stsbench data get senteval --to data/senteval`
    """
    from stsbench.data import fetch

    with progress_bars(quiet=quiet) as progress:
        fetched = fetch.get(what, progress, to=to)
    vouched = "verified" if fetched.verified else f"not verified by the catalogue, sha256 {fetched.sha256}"
    tell(f"{'downloaded' if fetched.fresh else 'already there'}: {fetched.path} ({vouched})", quiet=quiet)


@app.command()
@grouped
def verify(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="Sources (`senteval`, `sts-raw`) or tasks (`STS12`) to look at. Default: what the default "
            "groups of tasks need, and whatever else is here."
        ),
    ] = None,
    data_dir: DataDirs = None,
    output: Output = Output(),
) -> None:
    """Hold every file against the catalogue; exit code 1 if one differs, is missing or cannot be read.

    Example: `STSBENCH_DATA=data/senteval stsbench data verify senteval`
    """
    _ = output.style  # Refused before the work, if two formats were asked for.
    from stsbench.data import overview

    result = overview.verify(data_dir or (), what=what or ())
    print_result(result, output)
    tell(", ".join(f"{count} files {status}" for status, count in result.counts().items()), quiet=output.quiet)
    for sentence in result.advice():
        tell(sentence)
    if not result.is_whole:
        raise typer.Exit(1)


@app.command()
@grouped
def where(data_dir: DataDirs = None, output: Output = Output()) -> None:
    """Show where data is looked for, in order, and what was found at each place.

    Example: `stsbench data where --data-dir my/senteval`
    """
    from stsbench.data import overview

    print_result(overview.where(data_dir or ()), output)


@app.command()
@grouped
def sharing(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(help="Tasks, such as `STS16` or `STS-B:dev`. Default: the STS tasks.", show_default=False),
    ] = None,
    data_dir: DataDirs = None,
    output: Output = Output(),
) -> None:
    """Show which pairs share sentences, in each task and across tasks: what intervals reckon with.

    Pairs are the edges of a graph whose nodes are distinct sentences: as released, and by letters and digits
    alone. JSON and CSV give both for every task.

    Example: `stsbench data sharing STS16 STS-B`
    """
    from stsbench.data import sharing as graph

    print_result(graph.sharing(tasks or (), data_dir or ()), output)


@app.command()
@grouped
def overlap(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tasks, such as `STS16` (all its splits), `STS-B:train` or, as one set, `STS12+STS13`; `sts`, "
            "`transfer` or `all`. Default: `sts`.",
            show_default=False,
        ),
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            help="A training corpus to hold against the tasks: a file, or `sample`. Repeatable.",
            rich_help_panel=DATA,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="The corpus' columns that hold sentences, with commas. Default: all cells but numbers.",
            rich_help_panel=DATA,
        ),
    ] = None,
    near: Annotated[
        float | None,
        typer.Option(
            callback=number_within(0, 1),
            help="Also count sentences that are nearly the same: from this share of common letter triples on, "
            "0.8, say.",
        ),
    ] = None,
    data_dir: DataDirs = None,
    output: Output = Output(),
) -> None:
    """Count the sentences and pairs that tasks share with each other, or with a training corpus.

    As released, and by letters and digits alone, since releases are tokenised differently. A task's splits are
    sets of their own, so that what stands in train and in test is told; so is what a set repeats.

    Examples:
    * `stsbench data overlap`
    * `stsbench data overlap transfer --csv > overlap.csv`
    * `stsbench data overlap STS-B:test SICK-R:test --corpus nli.csv --near 0.8`
    """
    _ = output.style
    from stsbench.data import overlap as sets

    names = None if columns is None else [name.strip() for name in columns.split(",")]
    with progress_bars(quiet=output.quiet) as progress:
        result = sets.overlap(
            tasks or (),
            corpora=corpus or (),
            columns=names,
            near=near,
            data_dirs=data_dir or (),
            progress=progress,
        )
    print_result(result, output)
    if not result.table():
        tell("these sets share nothing.", quiet=output.quiet)


@app.command()
@grouped
def describe(
    pairs: Annotated[
        str, typer.Argument(help="Your own pairs (.tsv, .csv, .jsonl, .parquet), or a task (`STS-B:dev`).")
    ],
    subset_column: Annotated[
        str, typer.Option(help="The column that names subsets.", rich_help_panel=DATA)
    ] = "subset",
    card: Annotated[
        Path | None, typer.Option(callback=new_file, help="Write a card in Markdown into this file.")
    ] = None,
    data_dir: DataDirs = None,
    output: Output = Output(),
) -> None:
    """Describe scored pairs: counts, lengths, scores, repetitions, shared sentences, overlap with the tasks.

    Also the smallest difference that they can show, for two models that are assumed. No sentence is printed.

    Example: `stsbench data describe my.tsv --card my-card.md`
    """
    _ = output.style
    from stsbench.base.files import atomic_path, told_as_unwritable
    from stsbench.data import describe as verb

    result = verb.describe(pairs, subset_column=subset_column, data_dirs=data_dir or ())
    if card is not None:
        file = card.expanduser()
        with told_as_unwritable(file), atomic_path(file) as written:
            written.write_text(result.card(), encoding="utf-8")
    print_result(result, output)
    if card is not None:
        tell(f"card written to {card}", quiet=output.quiet)


@app.command("nli-triplets")
def nli_triplets(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders with s1.SPLIT, s2.SPLIT and labels.SPLIT (SNLI, MultiNLI).")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", callback=new_file, help="The CSV file to write.")] = Path(
        "nli-triplets.csv"
    ),
    split: Annotated[str, typer.Option(help="Which part: `train`, `dev`, `dev.matched`, ...")] = "train",
    quiet: QuietFlag = False,
) -> None:
    """Build (premise, entailment, contradiction) triplets to train supervised SimCSE on.

    Example: `stsbench data nli-triplets data/SNLI data/MultiNLI --out nli.csv`
    """
    from stsbench.data.nli_triplets import write_nli_triplets

    counts = write_nli_triplets(folders, out, split)
    tell(
        f"{counts.triplets} triplets in {out}, from {counts.pairs} pairs of {counts.premises} premises; "
        f"{counts.without} premises lack an entailed or a contradicting sentence.",
        quiet=quiet,
    )
