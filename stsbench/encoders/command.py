"""`stsbench fit` and `stsbench embed`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from stsbench.cli.groups import expand
from stsbench.cli.options import (
    DATA,
    LARGEST,
    LARGEST_SEED,
    MODEL,
    RUN,
    DataDirs,
    Devices,
    NoCache,
    OnRay,
    Output,
    new_file,
    new_folder,
)
from stsbench.cli.output import print_notes, print_result, progress_bars
from stsbench.encoders.use import Loading, Use

app = typer.Typer(help="Fit post-processing to a model's vectors: whitening, or a flow.", no_args_is_help=True)

_Model = Annotated[
    str,
    typer.Option(
        "--model", "-m", help="A Hub name, a folder, `minilm`, or a file of word vectors.", rich_help_panel=MODEL
    ),
]
_FitModel = Annotated[
    str,
    typer.Option("--model", "-m", help="A Hub name, a folder, `minilm`; not a function.", rich_help_panel=MODEL),
]
_Sentences = Annotated[
    str,
    typer.Option(
        "--sentences",
        "-s",
        help="The sentences to fit on: tasks (`STS-B`, `STS-B:all`, `sts`), `nli`, `sample`, a text file; with "
        "commas.",
        rich_help_panel=DATA,
    ),
]
_FitFolder = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        callback=new_folder,
        help="The folder to write; empty, or of the same fit.",
        rich_help_panel=RUN,
    ),
]


@app.command()
@expand
def whitening(
    sentences: _Sentences,
    out: _FitFolder,
    encoder: _FitModel = "minilm",
    dimensions: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=LARGEST,
            help="The directions of largest variance to keep; by default all.",
            rich_help_panel=RUN,
        ),
    ] = None,
    data_dirs: DataDirs = None,
    no_cache: NoCache = False,
    loading: Loading = Loading(),
    output: Output = Output(),
) -> None:
    """Subtract the mean and make the covariance the identity (Su et al., 2021).

    The folder is a checkpoint with one more dense layer, which sentence-transformers reads, too. Records on the
    sentences of the fit say so.

    Examples:
    * `stsbench fit whitening --sentences STS-B --dimensions 256 --out fitted/white`
    * `stsbench fit whitening -m bert-base-uncased --pooling avg_first_last -s nli --dimensions 256 -o fitted/nli`
    """
    options = {"dimensions": dimensions, "data_dirs": data_dirs or (), "use_cache": not no_cache}
    _fit("whitening", encoder, loading, output, sentences=sentences, out=out, **options)


def _flow(help: str, **limits: Any) -> Any:
    return typer.Option(help=help, rich_help_panel="Flow", **limits)


@app.command()
@expand
def flow(
    sentences: _Sentences,
    out: _FitFolder,
    encoder: _FitModel = "minilm",
    steps: Annotated[
        int | None, _flow("Optimiser steps; by default one pass over the sentences.", min=1, max=LARGEST)
    ] = None,
    learning_rate: Annotated[
        float | None,
        _flow("The learning rate of Adam, 1e-3 by default; decays as a half cosine.", min=1e-8, max=1),
    ] = None,
    batch: Annotated[int | None, _flow("Sentences per step; 256 by default.", min=1, max=2**16)] = None,
    seed: Annotated[int | None, _flow("The random seed; 42 by default.", min=0, max=LARGEST_SEED)] = None,
    depth: Annotated[int | None, _flow("Coupling steps of the flow; 6 by default.", min=1, max=64)] = None,
    width: Annotated[
        int | None, _flow("The width of the couplings' hidden layers; 256 by default.", min=1, max=2**14)
    ] = None,
    coupling: Annotated[
        str | None, _flow("`additive` (BERT-flow: shift; the default) or `affine` (Glow: shift and scale).")
    ] = None,
    data_dirs: DataDirs = None,
    no_cache: NoCache = False,
    loading: Loading = Loading(),
    output: Output = Output(),
) -> None:
    """Map vectors to a standard normal by an invertible network, a small Glow (as in BERT-flow, Li et al., 2020).

    Trained by maximum likelihood on the model's frozen vectors; the state with the best likelihood of held-out
    sentences is kept. The folder refers to the model, so do not move the model.

    Examples:
    * `stsbench fit flow --sentences STS-B --out fitted/flow`
    * `stsbench fit flow -m bert-base-uncased --pooling avg_top2 -s nli --steps 2000 -o fitted/flow-nli`
    """
    _fit(
        "flow",
        encoder,
        loading,
        output,
        sentences=sentences,
        out=out,
        steps=steps,
        learning_rate=learning_rate,
        batch=batch,
        seed=seed,
        depth=depth,
        width=width,
        coupling=coupling,
        data_dirs=data_dirs or (),
        use_cache=not no_cache,
    )


def _fit(
    method: Literal["whitening", "flow"], model: str, loading: Loading, output: Output, **options: Any
) -> None:
    from stsbench.encoders.fit import fit
    from stsbench.encoders.load import load_with

    encoder = load_with(model, Use(**vars(loading)))
    with progress_bars(quiet=output.quiet) as progress:
        fitted = fit(method, encoder, **options, progress=progress)
    print_result(fitted, output)
    # The table for the terminal already has its notes.
    print_notes(*encoder.notes, *(() if output.style == "terminal" else fitted.notes), quiet=output.quiet)
    print_notes(f"fitted in {fitted.folder}; measure it: stsbench run --model {fitted.folder}", quiet=output.quiet)


@expand
def embed(
    sentences: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A UTF-8 file with one sentence a line (.gz and .zst, too)."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", callback=new_file, help="The file to write, `vectors.npy`.", rich_help_panel=RUN
        ),
    ],
    encoder: _Model = "minilm",
    stored: Annotated[
        str, typer.Option(help="The number format: `fp32` or `fp16`.", rich_help_panel=RUN)
    ] = "fp32",
    devices: Devices = None,
    on: OnRay = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace other vectors in that file.", rich_help_panel=RUN)
    ] = False,
    use: Use = Use(),
    output: Output = Output(),
) -> None:
    """Embed a file of sentences, millions of them, into a file of vectors.

    NumPy reads it (`numpy.load("wiki.npy", mmap_mode="r")`), and `stsbench retrieve --corpus wiki.npy` searches
    it. After an interruption the same command resumes.

    Examples:
    * `stsbench embed wiki.txt -m minilm --out wiki.npy`
    * `stsbench embed wiki.txt.gz -m my/checkpoint --pooling cls --stored fp16 -o wiki.npy`
    """
    from stsbench.encoders.embedded import embed_file
    from stsbench.encoders.load import load_with
    from stsbench.encoders.places import placed

    loaded = placed(load_with(encoder, use), devices, on)
    with progress_bars(quiet=output.quiet) as progress:
        embedded = embed_file(
            sentences,
            loaded,
            out=out,
            stored=stored,
            overwrite=overwrite,
            progress=progress,
        )
    print_result(embedded, output)
    print_notes(f"written to {embedded.path}", quiet=output.quiet)
