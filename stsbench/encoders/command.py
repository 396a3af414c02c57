"""`stsbench fit` and `stsbench embed`."""

from pathlib import Path
from typing import Annotated

import typer

from stsbench.cli.options import (
    LARGEST,
    LARGEST_SEED,
    DataDirs,
    NoCache,
    Output,
    data_option,
    expand,
    model_option,
    new_file,
    new_folder,
    run_option,
)
from stsbench.cli.output import print_next, print_notes, print_result, progress_bars
from stsbench.encoders.use import Loading, Use

_Model = Annotated[
    str, model_option("--model", "-m", help="A Hub name, a folder, `minilm`, or a file of word vectors.")
]


@expand
def fit(
    method: Annotated[str, typer.Argument(help="`whitening` or `flow`.")],
    sentences: Annotated[
        str,
        data_option(
            "--sentences",
            "-s",
            help="The sentences to fit on: tasks (`STS-B`, `STS-B:all`, `sts`), `nli`, `sample`, a text file; "
            "with commas.",
        ),
    ],
    out: Annotated[
        Path,
        run_option("--out", "-o", callback=new_folder, help="The folder to write; an earlier fit is replaced."),
    ],
    encoder: _Model = "minilm",
    dimensions: Annotated[
        int | None,
        run_option(min=1, max=LARGEST, help="Whitening: the number of directions to keep; by default all."),
    ] = None,
    steps: Annotated[
        int | None,
        run_option(min=1, max=LARGEST, help="Flow: optimiser steps; by default one pass over the sentences."),
    ] = None,
    learning_rate: Annotated[
        float | None,
        run_option(min=1e-8, max=1, help="Flow: Adam's learning rate, 1e-3 by default, with cosine decay."),
    ] = None,
    seed: Annotated[
        int | None, run_option(min=0, max=LARGEST_SEED, help="Flow: the random seed; 42 by default.")
    ] = None,
    data_dirs: DataDirs = None,
    no_cache: NoCache = False,
    loading: Loading = Loading(),
    output: Output = Output(),
) -> None:
    """Fit post-processing to a model's vectors of some sentences: whitening, or a flow.

    `whitening` subtracts the mean and makes the covariance the identity (Su et al., 2021). `flow` maps vectors to
    a standard normal by an invertible network, a small Glow, trained by maximum likelihood (as in BERT-flow, Li
    et al., 2020). The folder refers to the model, so do not move the model.

    Examples:
    * `stsbench fit whitening --sentences STS-B --dimensions 256 --out fitted/white`
    * `stsbench fit flow -m bert-base-uncased --pooling avg_top2 -s nli --steps 2000 -o fitted/flow-nli`
    """
    from stsbench.encoders.fit import fit as fitted_by
    from stsbench.encoders.load import load_with

    model = load_with(encoder, Use(**vars(loading)))
    with progress_bars(quiet=output.quiet) as progress:
        fitted = fitted_by(
            method,  # type: ignore[arg-type]
            model,
            sentences=sentences,
            out=out,
            dimensions=dimensions,
            steps=steps,
            learning_rate=learning_rate,
            seed=seed,
            data_dirs=data_dirs or (),
            use_cache=not no_cache,
            progress=progress,
        )
    print_result(fitted, output)
    # The table for the terminal already has its notes.
    print_notes(*model.notes, *(() if output.style == "terminal" else fitted.notes), quiet=output.quiet)
    print_notes(f"fitted in {fitted.folder}", quiet=output.quiet)
    print_next(output, "run", "--model", fitted.folder, "--tasks", "sts")


@expand
def embed(
    sentences: Annotated[
        Path, typer.Argument(metavar="FILE", help="A UTF-8 file with one sentence per line (.gz and .zst, too).")
    ],
    out: Annotated[Path, run_option("--out", "-o", callback=new_file, help="The file to write, `vectors.npy`.")],
    encoder: _Model = "minilm",
    overwrite: Annotated[bool, run_option("--overwrite", help="Replace other vectors in that file.")] = False,
    use: Use = Use(),
    output: Output = Output(),
) -> None:
    """Embed a file of sentences, millions of them, into a file of vectors.

    NumPy reads it (`numpy.load("wiki.npy", mmap_mode="r")`), and `stsbench explain retrieve --corpus wiki.npy`
    searches it. After an interruption the same command resumes.

    Examples:
    * `stsbench embed wiki.txt -m minilm --out wiki.npy`
    * `stsbench embed wiki.txt.gz -m my/checkpoint --pooling cls -o wiki.npy`
    """
    from stsbench.encoders.embedded import embed_file
    from stsbench.encoders.load import load_with

    with progress_bars(quiet=output.quiet) as progress:
        embedded = embed_file(sentences, load_with(encoder, use), out=out, overwrite=overwrite, progress=progress)
    print_result(embedded, output)
    print_notes(f"written to {embedded.path}", quiet=output.quiet)
    print_next(output, "explain", "retrieve", "--model", encoder, "--corpus", embedded.path, "--query", "...")
