"""`stsbench diagnose`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.base.errors import UserError
from stsbench.cli.groups import expand
from stsbench.cli.options import DATA, LARGEST, MODEL, OUTPUT, DataDirs, FigureChoice, NoCache, Output, new_folder
from stsbench.cli.output import print_lines, print_notes, print_result, progress_bars
from stsbench.encoders.use import Loading, Use

_GRID = "Grid"


@expand
def diagnose(
    claim: Annotated[
        str,
        typer.Option(
            "--claim",
            "-c",
            help="The number: `76.25`, `STS16=81.21,SICK-R=77.58`, or `row:NAME` (a published row).",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="The model, as in `stsbench run`; by default `minilm`.", rich_help_panel=MODEL
        ),
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(help="Saved vectors, a .npy matrix; needs --sentences.", rich_help_panel=MODEL),
    ] = None,
    sentences: Annotated[
        Path | None, typer.Option(help="The sentences of --vectors, one a line.", rich_help_panel=MODEL)
    ] = None,
    tasks: Annotated[
        str,
        typer.Option(
            "--tasks",
            "-t",
            help="The tasks of a bare number: `sts` (their average) or names.",
            rich_help_panel=DATA,
        ),
    ] = "sts",
    data: Annotated[
        Path | None, typer.Option(help="Your own pairs instead of --tasks.", rich_help_panel=DATA)
    ] = None,
    data_dirs: DataDirs = None,
    protocol: Annotated[
        str,
        typer.Option(help="The protocol you used: `simcse`, `senteval` or `mteb`.", rich_help_panel=_GRID),
    ] = "simcse",
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=100,
            help="The allowed difference in points; by default half the claim's last digit plus 0.005.",
            rich_help_panel=_GRID,
        ),
    ] = None,
    lengths: Annotated[
        list[int] | None,
        typer.Option(
            "--length",
            min=1,
            max=LARGEST,
            help="A maximum length to try; by default 32, 64, 128, 256 and 512. Repeatable.",
            rich_help_panel=_GRID,
        ),
    ] = None,
    supervised: Annotated[
        bool,
        typer.Option(
            "--supervised", help="Also try SentEval's trained regressors (takes minutes).", rich_help_panel=_GRID
        ),
    ] = False,
    further: Annotated[
        int,
        typer.Option(
            min=0,
            max=2,
            help="How many choices beyond the grid (prompt, template, layer, precision, ...) may change at once.",
            rich_help_panel=_GRID,
        ),
    ] = 1,
    budget: Annotated[
        float,
        typer.Option(min=0, max=LARGEST, help="Seconds for the search beyond the grid.", rich_help_panel=_GRID),
    ] = 60.0,
    most_sentences: Annotated[
        int | None,
        typer.Option(
            min=0, max=LARGEST, help="Sentences that the search beyond the grid may encode.", rich_help_panel=_GRID
        ),
    ] = None,
    no_cache: NoCache = False,
    loading: Loading = Loading(),
    figure: FigureChoice = FigureChoice(),
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            callback=new_folder,
            help="The folder to write: grid.csv, grid.parquet, diagnosis.json, heatmap.png.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    output: Output = Output(),
) -> None:
    """Find out why a score is off: which setting gives the reported number.

    Encodes once, with all poolings in one forward pass, and scores every pooling, aggregation, split, metric,
    text, maximum length and similarity. If none explains the number, it tries prompts, templates, layers,
    precisions, attention and padding within a time budget.

    Examples:
    * `stsbench diagnose -m minilm --claim SICK-R=77.58`
    * `stsbench diagnose -m my/checkpoint --claim 76.25 --out diagnosis`
    * `stsbench diagnose -m princeton-nlp/unsup-simcse-bert-base-uncased --claim row:unsup-simcse-bert-base`
    * `stsbench diagnose -m my/checkpoint --pooling avg --claim STS12=68.40,STS13=82.41 --figure heatmap.png`
    """
    from stsbench.diagnosis.diagnose import diagnose as diagnose_claim
    from stsbench.scoring.run import choose_models
    from stsbench.scoring.settings import choose_protocol

    chosen = choose_models(
        Use(**vars(loading)), models=[model] if model else [], vectors=vectors, sentences=sentences
    )
    if len(chosen) > 1:
        raise UserError("--model and --vectors cannot go together: diagnose one of them.")
    encoder = chosen[0].load()
    with progress_bars(quiet=output.quiet) as progress:
        diagnosis = diagnose_claim(
            encoder,
            claim,
            tasks=tasks,
            data=data,
            data_dirs=data_dirs or (),
            protocol=choose_protocol(protocol),
            tolerance=tolerance,
            lengths=lengths or None,
            supervised=supervised,
            further=further,
            budget=budget,
            most_sentences=most_sentences,
            use_cache=not no_cache,
            progress=progress,
        )
    verdict = diagnosis.verdict.splitlines()
    is_screen = output.style == "terminal"
    if is_screen:
        print_lines(*verdict, "")
    print_result(diagnosis, output, figure=figure)
    if is_screen and diagnosis.remarks and not output.quiet:
        print_lines("", *diagnosis.remarks)
    if output.style != "json":
        notes = (f"note: {note}" for note in diagnosis.notes)
        print_notes(*(() if is_screen else verdict), *notes, quiet=output.quiet)
    if out is not None:
        print_notes(f"written to {diagnosis.save(out)}", quiet=output.quiet)
