"""`stsbench diagnose`."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from stsbench.base.errors import UserError
from stsbench.cli.options import LARGEST, DataDirs, NoCache, Output, data_option, expand, model_option, refuse
from stsbench.cli.output import print_judgement, progress_bars
from stsbench.encoders.use import Loading, Use

_grid = partial(typer.Option, rich_help_panel="Grid", min=0, max=LARGEST)

_CLAIM = (
    "The number: `76.25`, `STS16=81.21,SICK-R=77.58`, or `row:NAME` (a published row); by default the published "
    "row of the run's model."
)
_LIKE = (
    "Vectors to explain instead of a number: a server's model, URL#NAME, or a .npy file; of --sentences, or else "
    "of 50 built-in ones."
)
_TOLERANCE = "The allowed difference in points; by default half the claim's last digit plus 0.005."
_LENGTHS = "A maximum length to try; by default 32, 64, 128, 256 and 512. Repeatable."
_BUDGET = "Seconds for the search beyond the grid (prompts, templates, layers, ...); 0 for none."


@expand
def diagnose(
    context: typer.Context,
    run: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="A run, whose model and protocol are diagnosed.")
    ] = None,
    claim: Annotated[str | None, typer.Option("--claim", "-c", help=_CLAIM)] = None,
    model: Annotated[
        str | None, model_option("--model", "-m", help="The model, as in `stsbench run`; by default `minilm`.")
    ] = None,
    like: Annotated[str | None, model_option(help=_LIKE)] = None,
    sentences: Annotated[Path | None, model_option(help="The sentences of --like, one a line.")] = None,
    other: Annotated[
        str | None, model_option("--or", help="Another model, or @REVISION, that may have given the vectors.")
    ] = None,
    tasks: Annotated[
        str, data_option("--tasks", "-t", help="The tasks of a bare number: `sts` (their average) or names.")
    ] = "sts",
    data: Annotated[Path | None, data_option(help="Your own pairs instead of --tasks.")] = None,
    data_dirs: DataDirs = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            rich_help_panel="Grid", help="The protocol you used, `simcse` (the default), `senteval` or `mteb`."
        ),
    ] = None,
    tolerance: Annotated[float | None, _grid(max=100, help=_TOLERANCE)] = None,
    lengths: Annotated[list[int] | None, _grid("--length", min=1, help=_LENGTHS)] = None,
    budget: Annotated[float, _grid(help=_BUDGET)] = 60.0,
    no_cache: NoCache = False,
    loading: Loading = Loading(),
    output: Output = Output(),
) -> None:
    """Find the setting that explains why a score is off, or why vectors differ.

    Encodes once, with all poolings in one forward pass, and scores every pooling, aggregation, split, metric,
    text, maximum length and similarity. If none explains the number, it tries prompts, templates, layers,
    precisions and attention within a time budget.

    Examples:
    * `stsbench diagnose runs/mine`
    * `stsbench diagnose -m minilm --claim SICK-R=77.58`
    * `stsbench diagnose -m princeton-nlp/unsup-simcse-bert-base-uncased --claim row:unsup-simcse-bert-base`
    * `stsbench diagnose -m my/checkpoint --pooling avg --claim STS12=68.40,STS13=82.41`
    * `stsbench diagnose -m minilm --like http://127.0.0.1:8000/v1#all-MiniLM-L6-v2`
    """
    from stsbench.diagnosis.diagnose import diagnose as diagnose_claim
    from stsbench.judging.published import rows_to_check
    from stsbench.records.store import load_run
    from stsbench.scoring.run import choose_models
    from stsbench.scoring.settings import choose_protocol
    from stsbench.scoring.subjects import RecordedModel

    use, choices = Use(**vars(loading)), choose_protocol(protocol or "simcse")
    if like is not None:
        of_claims = ("run", "claim", "tasks", "data", "data_dirs", "protocol", "tolerance", "lengths")
        refuse(context, "a claimed number, not to the vectors of --like", *of_claims)
        _diagnose_like(like, model or choose_models(use)[0].name, use, sentences, other, budget, output)
    refuse(context, "the vectors of --like", "other", "sentences")
    if data is not None:
        refuse(context, "benchmark data, which --data replaces", "tasks")
    if run is not None:
        if model or use != Use():
            raise UserError("RUN determines the model and its use: leave out the options of the model.")
        record = load_run(run)
        claim = claim or f"row:{rows_to_check(record)[0].name}"
        encoder, own = RecordedModel(record.model).base, record.protocol
        if protocol is None:
            stated = {name: getattr(own, name) for name in ("aggregation", "metric", "similarity")}
            choices = choose_protocol(own.name, **stated)
    else:
        encoder = choose_models(use, models=[model] if model else [])[0].load()
    if claim is None:
        raise UserError("name the number with --claim, such as 76.25; only a RUN of a published model needs none.")
    with progress_bars(quiet=output.quiet) as progress:
        diagnosis = diagnose_claim(
            encoder,
            claim,
            tasks=tasks,
            data=data,
            data_dirs=data_dirs or (),
            protocol=choices,
            tolerance=tolerance,
            lengths=lengths or None,
            budget=budget,
            use_cache=not no_cache,
            progress=progress,
        )
    print_judgement(diagnosis, output)


def _diagnose_like(
    like: str, model: str, use: Use, sentences: Path | None, other: str | None, budget: float, output: Output
) -> None:
    from stsbench.data.rows import text_lines
    from stsbench.diagnosis.like import diagnose_vectors
    from stsbench.encoders.load import load_with

    texts = None if sentences is None else [text for _, text in text_lines(sentences)]
    second = None
    if other is not None:
        name, at, revision = other.partition("@")
        second = load_with(name or model, replace(use, revision=revision if at else use.revision))
    with progress_bars(quiet=output.quiet) as progress:
        encoder = load_with(model, use)
        result = diagnose_vectors(encoder, like, texts, other=second, budget=budget, progress=progress)
    print_judgement(result, output)
    raise typer.Exit(result.exit_code)
