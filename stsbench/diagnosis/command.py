"""`stsbench diagnose`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stsbench.cli.options import (
    DataDirs,
    Device,
    NoCache,
    Precision,
    Prompt,
    Revision,
    Sentences,
    TrustRemoteCode,
)
from stsbench.cli.output import (
    CsvFlag,
    JsonFlag,
    LatexFlag,
    MarkdownFlag,
    QuietFlag,
    chosen_style,
    drawable,
    print_frame,
    progress_bars,
    tell,
)

if TYPE_CHECKING:
    from stsbench.diagnosis.result import Diagnosis

_MODEL, _DATA, _GRID = "Model", "Data", "Grid"

Option = typer.Option


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
            help="What to measure, as in `stsbench run`. Default: the packaged `minilm`.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    pooling: Annotated[
        str,
        Option(help="Your own pooling, the default of the grid: `auto` or a name.", rich_help_panel=_MODEL),
    ] = "auto",
    max_length: Annotated[
        int | None, Option(help="Your own maximum length. Default: the model's limit.", rich_help_panel=_MODEL)
    ] = None,
    prompt: Prompt = None,
    precision: Precision = "fp32",
    device: Device = "auto",
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    vectors: Annotated[
        Path | None,
        Option(help="Diagnose saved vectors: a .npy matrix, with --sentences.", rich_help_panel=_MODEL),
    ] = None,
    sentences: Sentences = None,
    tasks: Annotated[
        str,
        Option(
            "--tasks", "-t", help="What a bare number is of: `sts`, `sample`, or names.", rich_help_panel=_DATA
        ),
    ] = "sts",
    data: Annotated[
        Path | None,
        Option(help="Your own pairs, which a bare number is of.", rich_help_panel=_DATA),
    ] = None,
    data_dir: DataDirs = None,
    protocol: Annotated[
        str, Option(help="Your own protocol: `simcse`, `senteval` or `mteb`.", rich_help_panel=_GRID)
    ] = "simcse",
    tolerance: Annotated[
        float | None,
        Option(
            help="Points that a score may be off. Default: half a unit of the claim's last digit, and 0.005.",
            rich_help_panel=_GRID,
        ),
    ] = None,
    length: Annotated[
        list[int] | None,
        Option(
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
    no_cache: NoCache = False,
    figure: Annotated[
        Path | None,
        Option(callback=drawable, help="Draw the heat map here: .png, .svg or .pdf.", rich_help_panel="Output"),
    ] = None,
    out: Annotated[
        Path | None,
        Option(
            "--out",
            "-o",
            help="Folder for all of it: grid.csv, grid.parquet, diagnosis.json, heatmap.png.",
            rich_help_panel="Output",
        ),
    ] = None,
    json: JsonFlag = False,
    csv: CsvFlag = False,
    markdown: MarkdownFlag = False,
    latex: LatexFlag = False,
    quiet: QuietFlag = False,
) -> None:
    """Find out why a number is off: which setting of the protocol gives it.

    Encodes once, with all poolers from one forward pass, and scores every pooler, aggregation, split, metric,
    text, maximum length and similarity. Names the single choice that explains the claim, or says that none does.

    Examples:
    * `stsbench diagnose -m minilm --claim SICK-R=77.58`
    * `stsbench diagnose -m my/checkpoint --claim 76.25 --out diagnosis`
    * `stsbench diagnose -m princeton-nlp/unsup-simcse-bert-base-uncased --claim row:unsup-simcse-bert-base`
    * `stsbench diagnose -m my/checkpoint --pooling avg --claim STS12=68.40,STS13=82.41 --figure heatmap.png`
    """
    style = chosen_style(json=json, csv=csv, markdown=markdown, latex=latex)
    from stsbench.diagnosis import diagnose as workflow
    from stsbench.scoring import run
    from stsbench.scoring.protocols import choose_protocol

    options = run.ModelOptions(
        pooling=pooling,
        max_length=max_length,
        prompt=prompt,
        precision=precision,
        device=device,
        revision=revision,
        trust_remote_code=trust_remote_code,
    )
    wanted = run.subjects([model] if model else [], options, vectors=vectors, sentences=sentences)
    with progress_bars(quiet=quiet) as progress:
        found = workflow.diagnose(
            workflow.only_encoder(wanted),
            claim,
            tasks=tasks,
            data=data,
            data_dirs=data_dir or (),
            protocol=choose_protocol(protocol),
            tolerance=tolerance,
            lengths=length,
            supervised=supervised,
            use_cache=not no_cache,
            progress=progress,
        )
    _print(found, style, quiet=quiet)
    if out is not None:
        tell(f"written to {workflow.save(found, out)}", quiet=quiet)
    if figure is not None:
        tell(f"drawn in {workflow.draw(found, figure)}", quiet=quiet)


def _print(found: "Diagnosis", style: str, *, quiet: bool) -> None:
    if style == "json":
        import json

        typer.echo(json.dumps(found.as_dict(), indent=1, allow_nan=False))
        return
    if style == "terminal":
        typer.echo(f"{found.verdict}\n")
    print_frame(found.table(), style, headline="off")
    if style == "terminal" and not quiet:
        lines = found.remarks
        typer.echo("".join(f"\n{line}" for line in lines), nl=bool(lines))
    elif style != "terminal":
        tell(found.verdict, quiet=quiet)
    for note in found.notes:
        tell(f"note: {note}", quiet=quiet)
