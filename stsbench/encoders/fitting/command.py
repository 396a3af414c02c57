"""`stsbench fit`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from stsbench.cli.options import (
    DATA,
    MODEL,
    RUN,
    DataDirs,
    NoCache,
    Output,
    any_seed,
    grouped,
    new_folder,
    number_within,
)
from stsbench.cli.output import print_result, progress_bars, tell
from stsbench.encoders.use import Loading, Use

app = typer.Typer(help="Fit post-processing to a model's vectors: whitening, or a flow.", no_args_is_help=True)

_FLOW = "Flow"


@dataclass(frozen=True)
class _Wanted:
    """What is fitted on what, for which model, and where it goes."""

    sentences: Annotated[
        str,
        Option(
            "--sentences",
            "-s",
            help="What to fit on: a task as `run --tasks` names it (`STS-B`, `STS-B:all`, `SICK-R`), `sts`, `nli` "
            "(SNLI's dev and test), `sample`, `sample-sentences`, or a text file with a sentence a line. Several "
            "with commas.",
            rich_help_panel=DATA,
        ),
    ]
    out: Annotated[
        Path,
        Option("--out", "-o", callback=new_folder, help="The folder to write, a new one.", rich_help_panel=RUN),
    ]
    model: Annotated[
        str,
        Option(
            "--model",
            "-m",
            help="What to fit it for: as in `stsbench run`, but not a function.",
            rich_help_panel=MODEL,
        ),
    ] = "minilm"


@app.command()
@grouped
def whitening(
    wanted: _Wanted,
    dimensions: Annotated[
        int | None,
        Option(
            callback=number_within(1),
            help="Keep so many directions of largest variance. Default: all in which the sentences vary.",
            rich_help_panel=RUN,
        ),
    ] = None,
    loading: Loading = Loading(),
    data_dir: DataDirs = None,
    no_cache: NoCache = False,
    output: Output = Output(),
) -> None:
    """Subtract the mean and make the covariance the identity (Su et al., 2021).

    The folder is a checkpoint with one dense layer more: sentence-transformers reads it, too. Where it is measured
    on the sentences that it was fitted on, its record says so.

    Examples:
    * `stsbench fit whitening --sentences STS-B --dimensions 256 --out fitted/white`
    * `stsbench fit whitening -m bert-base-uncased --pooling avg_first_last -s nli --dimensions 256 -o fitted/nli`
    """
    _fit("whitening", wanted, loading, data_dir, no_cache, output, dimensions=dimensions)


@app.command()
@grouped
def flow(
    wanted: _Wanted,
    steps: Annotated[
        int | None,
        Option(
            callback=number_within(1),
            help="Steps of the optimiser. Default: one pass over the sentences.",
            rich_help_panel=_FLOW,
        ),
    ] = None,
    learning_rate: Annotated[
        float,
        Option(
            callback=number_within(1e-8, 1),
            help="Of Adam; it falls to zero by half a cosine.",
            rich_help_panel=_FLOW,
        ),
    ] = 1e-3,
    batch: Annotated[
        int, Option(callback=number_within(1, 2**16), help="Sentences a step.", rich_help_panel=_FLOW)
    ] = 256,
    seed: Annotated[
        int, Option(callback=any_seed, help="Of weights, permutations and order.", rich_help_panel=_FLOW)
    ] = 42,
    depth: Annotated[
        int, Option(callback=number_within(1, 64), help="Steps of the map.", rich_help_panel=_FLOW)
    ] = 6,
    width: Annotated[
        int,
        Option(callback=number_within(1, 2**14), help="Of the couplings' hidden layers.", rich_help_panel=_FLOW),
    ] = 256,
    coupling: Annotated[
        str,
        Option(
            help="`additive` (BERT-flow: a shift alone) or `affine` (Glow: shift and scale).",
            rich_help_panel=_FLOW,
        ),
    ] = "additive",
    loading: Loading = Loading(),
    data_dir: DataDirs = None,
    no_cache: NoCache = False,
    output: Output = Output(),
) -> None:
    """Map vectors to a standard normal by an invertible network, a small Glow (as in Li et al., 2020: BERT-flow).

    It is trained by maximum likelihood on the model's frozen vectors, for one pass over the sentences; the state
    in which sentences held out were likeliest is kept. The same seed gives the same flow. The folder names the
    model, which has to stay where it is.

    Examples:
    * `stsbench fit flow --sentences STS-B --out fitted/flow`
    * `stsbench fit flow -m bert-base-uncased --pooling avg_top2 -s nli --steps 2000 -o fitted/flow-nli`
    """
    _fit(
        "flow",
        wanted,
        loading,
        data_dir,
        no_cache,
        output,
        steps=steps,
        learning_rate=learning_rate,
        batch=batch,
        seed=seed,
        depth=depth,
        width=width,
        coupling=coupling,
    )


def _fit(
    method: Any,
    wanted: _Wanted,
    loading: Loading,
    data_dir: list[Path] | None,
    no_cache: bool,
    output: Output,
    **choices: Any,
) -> None:
    _ = output.style  # Refused before the work, if two formats were asked for.
    from stsbench.encoders.fitting.fit import fit
    from stsbench.encoders.load import load_with

    encoder = load_with(wanted.model, Use(**vars(loading)))
    with progress_bars(quiet=output.quiet) as progress:
        fitted = fit(
            method,
            encoder,
            sentences=wanted.sentences,
            out=wanted.out,
            data_dirs=data_dir or (),
            use_cache=not no_cache,
            progress=progress,
            **choices,
        )
    print_result(fitted, output)
    # A table of the terminal has its notes below.
    tell(*encoder.notes, *(() if output.style == "terminal" else fitted.notes), quiet=output.quiet)
    tell(f"fitted in {fitted.folder}; measure it: stsbench run --model {fitted.folder}", quiet=output.quiet)
