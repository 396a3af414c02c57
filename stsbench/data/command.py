"""`stsbench data`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.base.options import Help, Written
from stsbench.cli.options import Output, QuietFlag
from stsbench.cli.output import print_result, progress_bars, tell
from stsbench.cli.verbs import Call, Verb

app = typer.Typer(help="See, get and verify the benchmark data.", no_args_is_help=True)


@app.command("list")
def list_(asked: Annotated[Call, Verb("stsbench.data.overview:list_data")], output: Output = Output()) -> None:
    """List every data set: splits with their counts, whether its files were verified, and whether it is here.

    JSON and CSV tell all: licence, subsets, scale, source, what was seen of unverified files, the folder it is in.

    Example: `stsbench data list --json`
    """
    print_result(asked(), output)


@app.command()
def get(asked: Annotated[Call, Verb("stsbench.data.fetch:get")], quiet: QuietFlag = False) -> None:
    """Download data into the cache; an interrupted download goes on where it stopped.

    `HF_ENDPOINT` names a mirror of the Hugging Face Hub; `STSBENCH_CACHE` another cache folder. In a checkout of
    stsbench, what is in its folder `data` is found without being named.

    Example: `stsbench data get senteval --to data/senteval`
    """
    with progress_bars(quiet=quiet) as progress:
        fetched = asked(progress=progress)
    vouched = "verified" if fetched.verified else f"not verified by the catalogue, sha256 {fetched.sha256}"
    tell(f"{'downloaded' if fetched.fresh else 'already there'}: {fetched.path} ({vouched})", quiet=quiet)


@app.command()
def verify(asked: Annotated[Call, Verb("stsbench.data.overview:verify")], output: Output = Output()) -> None:
    """Hold every file against the catalogue; exit code 1 if one differs, is missing or cannot be read.

    Example: `STSBENCH_DATA=data/senteval stsbench data verify senteval`
    """
    result = asked()
    print_result(result, output)
    tell(", ".join(f"{count} files {status}" for status, count in result.counts().items()), quiet=output.quiet)
    for sentence in result.advice():
        tell(sentence)
    if not result.is_whole:
        raise typer.Exit(1)


@app.command()
def where(asked: Annotated[Call, Verb("stsbench.data.overview:where")], output: Output = Output()) -> None:
    """Show where data is looked for, in order, and what was found at each place.

    Example: `stsbench data where --data-dir my/senteval`
    """
    print_result(asked(), output)


@app.command()
def sharing(asked: Annotated[Call, Verb("stsbench.data.overlap:sharing")], output: Output = Output()) -> None:
    """Show which pairs share sentences, in each task and across tasks: what intervals reckon with.

    Pairs are the edges of a graph whose nodes are distinct sentences: as released, and by letters and digits
    alone. JSON and CSV give both for every task.

    Example: `stsbench data sharing STS16 STS-B`
    """
    print_result(asked(), output)


@app.command()
def overlap(asked: Annotated[Call, Verb("stsbench.data.overlap:overlap")], output: Output = Output()) -> None:
    """Count the sentences and pairs that tasks share with each other, or with a training corpus.

    As released, and by letters and digits alone, since releases are tokenised differently. A task's splits are
    sets of their own, so that what stands in train and in test is told; so is what a set repeats.

    Examples:
    * `stsbench data overlap`
    * `stsbench data overlap transfer --csv > overlap.csv`
    * `stsbench data overlap STS-B:test SICK-R:test --corpus nli.csv --near 0.8`
    """
    with progress_bars(quiet=output.quiet) as progress:
        result = asked(progress=progress)
    print_result(result, output)
    if not result.table():
        tell("these sets share nothing.", quiet=output.quiet)


@app.command()
def describe(
    asked: Annotated[Call, Verb("stsbench.data.describe:describe")],
    card: Annotated[Path | None, Written("file"), Help("Write a card in Markdown into this file.")] = None,
    output: Output = Output(),
) -> None:
    """Describe scored pairs: counts, lengths, scores, repetitions, shared sentences, overlap with the tasks.

    Also the smallest difference that they can show, for two models that are assumed. No sentence is printed.

    Example: `stsbench data describe my.tsv --card my-card.md`
    """
    from stsbench.base.files import atomic_path, told_as_unwritable

    result = asked()
    if card is not None:
        file = card.expanduser()
        with told_as_unwritable(file), atomic_path(file) as written:
            written.write_text(result.card(), encoding="utf-8")
    print_result(result, output)
    if card is not None:
        tell(f"card written to {card}", quiet=output.quiet)


@app.command("nli-triplets")
def nli_triplets(
    asked: Annotated[Call, Verb("stsbench.data.corpus:write_nli_triplets")], quiet: QuietFlag = False
) -> None:
    """Build (premise, entailment, contradiction) triplets to train supervised SimCSE on.

    Example: `stsbench data nli-triplets data/SNLI data/MultiNLI --out nli.csv`
    """
    counts = asked()
    tell(
        f"{counts.triplets} triplets in {counts.file}, from {counts.pairs} pairs of {counts.premises} premises; "
        f"{counts.without} premises lack an entailed or a contradicting sentence.",
        quiet=quiet,
    )
