"""`stsbench diagnose`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stsbench.base.errors import UserError
from stsbench.cli.options import (
    DATA,
    MODEL,
    OUTPUT,
    DataDirs,
    NoCache,
    Output,
    Sentences,
    grouped,
    new_folder,
    number_within,
)
from stsbench.cli.output import drawable, print_result, progress_bars, say, tell
from stsbench.encoders.use import Loading, Use

if TYPE_CHECKING:
    from stsbench.diagnosis.result import Diagnosis

_GRID = "Grid"

Option = typer.Option


@grouped
def diagnose(
    claim: Annotated[
        str,
        Option(
            "--claim",
            "-c",
            help="The number to explain: `76.25` (the average of the seven tasks, or the score of --tasks), "
            "`STS16=81.21,SICK-R=77.58`, or `row:NAME` of `stsbench published`.",
        ),
    ],
    model: Annotated[
        str | None,
        Option(
            "--model",
            "-m",
            help="What to measure, as in `stsbench run`. Default: the packaged `minilm`. How it is loaded is your "
            "own setting, the default of the grid.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    loading: Loading = Loading(),
    vectors: Annotated[
        Path | None,
        Option(help="Diagnose saved vectors: a .npy matrix, with --sentences.", rich_help_panel=MODEL),
    ] = None,
    sentences: Sentences = None,
    tasks: Annotated[
        str,
        Option("--tasks", "-t", help="What a bare number is of: `sts`, `sample`, or names.", rich_help_panel=DATA),
    ] = "sts",
    data: Annotated[
        Path | None,
        Option(help="Your own pairs, which a bare number is of.", rich_help_panel=DATA),
    ] = None,
    data_dir: DataDirs = None,
    protocol: Annotated[
        str, Option(help="Your own protocol: `simcse`, `senteval` or `mteb`.", rich_help_panel=_GRID)
    ] = "simcse",
    tolerance: Annotated[
        float | None,
        Option(
            callback=number_within(0, 100),
            help="Points that a score may be off. Default: half a unit of the claim's last digit, and 0.005.",
            rich_help_panel=_GRID,
        ),
    ] = None,
    length: Annotated[
        list[int] | None,
        Option(
            callback=number_within(1),
            help="Another maximum length to try. Repeatable. Default: 32, 64, 128, 256 and 512, where they cut.",
            rich_help_panel=_GRID,
        ),
    ] = None,
    supervised: Annotated[
        bool,
        Option(
            "--supervised",
            help="Try SentEval's trained regressors for STS-B and SICK-R too: minutes.",
            rich_help_panel=_GRID,
        ),
    ] = False,
    further: Annotated[
        int,
        Option(
            callback=number_within(0, 2),
            help="Where the grid has no answer: how many choices beyond it (template, rules, layer, precision, "
            "padding) may change at once, 0, 1 or 2.",
            rich_help_panel=_GRID,
        ),
    ] = 1,
    budget: Annotated[
        float,
        Option(
            callback=number_within(0),
            help="Seconds after which the search beyond the grid begins no pass. One that has begun is finished.",
            rich_help_panel=_GRID,
        ),
    ] = 60.0,
    most_sentences: Annotated[
        int | None,
        Option(
            callback=number_within(0),
            help="Sentences that the search beyond the grid may encode. Default: any number.",
            rich_help_panel=_GRID,
        ),
    ] = None,
    no_cache: NoCache = False,
    figure: Annotated[
        Path | None,
        Option(callback=drawable, help="Draw the heat map here: .png, .svg or .pdf.", rich_help_panel=OUTPUT),
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            "--out",
            "-o",
            callback=new_folder,
            help="Folder for all of it: grid.csv, grid.parquet, diagnosis.json, heatmap.png.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    output: Output = Output(),
) -> None:
    """Find out why a number is off: which setting of the protocol gives it.

    Encodes once, with all poolers from one forward pass, and scores every pooler, aggregation, split, metric,
    text, maximum length and similarity. Names the single choice that explains the claim, or says that none does.
    Where none does, it goes on within a budget: templates, rules for the sentence, layers, precisions, padding.

    Examples:
    * `stsbench diagnose -m minilm --claim SICK-R=77.58`
    * `stsbench diagnose -m my/checkpoint --claim 76.25 --out diagnosis`
    * `stsbench diagnose -m princeton-nlp/unsup-simcse-bert-base-uncased --claim row:unsup-simcse-bert-base`
    * `stsbench diagnose -m my/checkpoint --pooling avg --claim STS12=68.40,STS13=82.41 --figure heatmap.png`
    """
    _ = output.style  # a mistake in it is told before the work
    from stsbench.diagnosis.diagnose import diagnose as verb
    from stsbench.encoders.protocol import Encoder
    from stsbench.scoring.protocols import choose_protocol
    from stsbench.scoring.run import choose_models

    chosen = choose_models([model] if model else [], Use(**vars(loading)), vectors=vectors, sentences=sentences)
    if len(chosen) > 1:
        raise UserError("--model and --vectors cannot go together: diagnose looks at one of them.")
    encoder = chosen[0].load()
    assert isinstance(encoder, Encoder), "no similarities were asked for"
    with progress_bars(quiet=output.quiet) as progress:
        diagnosis = verb(
            encoder,
            claim,
            tasks=tasks,
            data=data,
            data_dirs=data_dir or (),
            protocol=choose_protocol(protocol),
            tolerance=tolerance,
            lengths=length,
            supervised=supervised,
            further=further,
            budget=budget,
            most_sentences=most_sentences,
            use_cache=not no_cache,
            progress=progress,
        )
    _print(diagnosis, output)
    if out is not None:
        tell(f"written to {diagnosis.save(out)}", quiet=output.quiet)
    if figure is not None:
        from stsbench.render.figures import save_figure

        tell(f"drawn in {save_figure(diagnosis.plot(), figure)}", quiet=output.quiet)


def _print(diagnosis: "Diagnosis", output: Output) -> None:
    terminal = output.style == "terminal"
    if terminal:
        say(*diagnosis.verdict.splitlines(), "")
    print_result(diagnosis, output)
    if output.style == "json":
        return
    if not terminal:
        tell(*diagnosis.verdict.splitlines(), quiet=output.quiet)
    elif diagnosis.remarks and not output.quiet:
        say("", *diagnosis.remarks)
    for note in diagnosis.notes:
        tell(f"note: {note}", quiet=output.quiet)
