"""`stsbench diagnose`."""

from pathlib import Path
from typing import Annotated

from stsbench.base.errors import UserError
from stsbench.base.options import MODEL, OUTPUT, Help, Panel, Spelled
from stsbench.cli.options import FigureChoice, Output
from stsbench.cli.output import print_result, progress_bars, say, tell
from stsbench.cli.verbs import Call, Verb
from stsbench.encoders.use import Loading, Use

_GRID = "Grid"
_MODELS = "stsbench.scoring.run:choose_models"


def diagnose(
    asked: Annotated[Call, Verb("stsbench.diagnosis.diagnose:diagnose", without=("encoder",), panel=_GRID)],
    saved: Annotated[Call, Verb(_MODELS, without=("models", "functions", "similarities"), panel=MODEL)],
    model: Annotated[
        str | None,
        Spelled("--model", "-m"),
        Panel(MODEL),
        Help(
            "The model to measure, named as in `stsbench run`. Default: the packaged `minilm`. How you load it is "
            "the setting that the grid starts from."
        ),
    ] = None,
    loading: Loading = Loading(),
    protocol: Annotated[
        str, Panel(_GRID), Help("The protocol that you measured by: `simcse`, `senteval` or `mteb`.")
    ] = "simcse",
    figure: FigureChoice = FigureChoice(),
    out: Annotated[
        Path | None,
        Panel(OUTPUT),
        Help("The folder to write: grid.csv, grid.parquet, diagnosis.json, heatmap.png."),
    ] = None,
    output: Output = Output(),
) -> None:
    """Find out why a number is off: which setting of the protocol gives it.

    Encodes once, with all poolers from one forward pass, and scores every pooler, aggregation, split, metric,
    text, maximum length and similarity. Names the single choice that explains the claim, or says that none does.
    Where none does, it goes on within a budget: prompts, templates, rules for the sentence, layers, precisions,
    attention, padding.

    Examples:
    * `stsbench diagnose -m minilm --claim SICK-R=77.58`
    * `stsbench diagnose -m my/checkpoint --claim 76.25 --out diagnosis`
    * `stsbench diagnose -m princeton-nlp/unsup-simcse-bert-base-uncased --claim row:unsup-simcse-bert-base`
    * `stsbench diagnose -m my/checkpoint --pooling avg --claim STS12=68.40,STS13=82.41 --figure heatmap.png`
    """
    from stsbench.encoders.protocol import Encoder
    from stsbench.scoring.settings import choose_protocol

    chosen = saved(use=Use(**vars(loading)), models=[model] if model else [])
    if len(chosen) > 1:
        raise UserError("--model and --vectors cannot go together: diagnose looks at one of them.")
    encoder = chosen[0].load()
    assert isinstance(encoder, Encoder), "no similarities were asked for"
    with progress_bars(quiet=output.quiet) as progress:
        diagnosis = asked(encoder=encoder, protocol=choose_protocol(protocol), progress=progress)
    verdict = diagnosis.verdict.splitlines()
    if output.style == "terminal":
        say(*verdict, "")
    print_result(diagnosis, output, figure=figure)
    if output.style == "terminal" and diagnosis.remarks and not output.quiet:
        say("", *diagnosis.remarks)
    if output.style != "json":
        told = () if output.style == "terminal" else verdict
        tell(*told, *(f"note: {note}" for note in diagnosis.notes), quiet=output.quiet)
    if out is not None:
        tell(f"written to {diagnosis.save(out)}", quiet=output.quiet)
