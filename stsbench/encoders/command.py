"""`stsbench fit` and `stsbench embed`."""

from typing import Annotated

import typer

from stsbench.cli.options import Output
from stsbench.cli.output import print_result, progress_bars, tell
from stsbench.cli.verbs import Call, Verb
from stsbench.encoders.use import Loading, Use

app = typer.Typer(help="Fit post-processing to a model's vectors: whitening, or a flow.", no_args_is_help=True)

_FIT = "stsbench.encoders.fit:fit"
_OF_A_FLOW = ("steps", "learning_rate", "batch", "seed", "depth", "width", "coupling")


@app.command()
def whitening(
    asked: Annotated[Call, Verb(_FIT, without=("method", *_OF_A_FLOW))],
    loading: Loading = Loading(),
    output: Output = Output(),
) -> None:
    """Subtract the mean and make the covariance the identity (Su et al., 2021).

    The folder is a checkpoint with one dense layer more: sentence-transformers reads it, too. Where it is measured
    on the sentences that it was fitted on, its record says so.

    Examples:
    * `stsbench fit whitening --sentences STS-B --dimensions 256 --out fitted/white`
    * `stsbench fit whitening -m bert-base-uncased --pooling avg_first_last -s nli --dimensions 256 -o fitted/nli`
    """
    _fit("whitening", asked, loading, output)


@app.command()
def flow(
    asked: Annotated[Call, Verb(_FIT, without=("method", "dimensions"), panel="Flow")],
    loading: Loading = Loading(),
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
    _fit("flow", asked, loading, output)


def _fit(method: str, asked: Call, loading: Loading, output: Output) -> None:
    from stsbench.encoders.hub import PACKAGED
    from stsbench.encoders.load import load_with

    encoder = load_with(asked.options.get("encoder", PACKAGED), Use(**vars(loading)))
    with progress_bars(quiet=output.quiet) as progress:
        fitted = asked(method=method, encoder=encoder, progress=progress)
    print_result(fitted, output)
    # A table of the terminal has its notes below.
    tell(*encoder.notes, *(() if output.style == "terminal" else fitted.notes), quiet=output.quiet)
    tell(f"fitted in {fitted.folder}; measure it: stsbench run --model {fitted.folder}", quiet=output.quiet)


def embed(
    asked: Annotated[Call, Verb("stsbench.encoders.embedded:embed_file")],
    use: Use = Use(),
    output: Output = Output(),
) -> None:
    """Embed a file of sentences, millions of them, into a file of vectors.

    NumPy reads it (`numpy.load("wiki.npy", mmap_mode="r")`), and `stsbench retrieve --corpus wiki.npy` finds the
    nearest sentences in it. After a kill the same command goes on where it was.

    Examples:
    * `stsbench embed wiki.txt -m minilm --out wiki.npy`
    * `stsbench embed wiki.txt.gz -m my/checkpoint --pooling cls --stored fp16 -o wiki.npy`
    """
    with progress_bars(quiet=output.quiet) as progress:
        embedded = asked(progress=progress, **vars(use))
    print_result(embedded, output)
    tell(f"written to {embedded.path}", quiet=output.quiet)
