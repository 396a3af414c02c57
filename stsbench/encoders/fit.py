"""`fit`: whitening, or a flow, on given sentences for a model, as a folder that is measured like a checkpoint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.extras import MODELS, require
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.data.sentences import Sentences, read_sentences
from stsbench.data.shared import folded_ids
from stsbench.encoders.fitted import KIND, BaseModelPart, FitAbout, FittedOn, Method
from stsbench.encoders.fitted_folder import layerable, linear_tensors, require_free, write_fit
from stsbench.encoders.hub import PACKAGED
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.postprocess import whitening_of
from stsbench.encoders.protocol import Encoder, FloatMatrix
from stsbench.encoders.use import option_of
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables

if TYPE_CHECKING:
    import pandas as pd

METHODS = get_args(Method)

_NOT_OF_IDENTITY = {"name", "is_here"}
_COUPLINGS = ("additive", "affine")


@dataclass(frozen=True)
class Fitting(Result):
    """What was fitted.

    Attributes:
        folder: to be measured: `stsbench run --model FOLDER`.
        about: what its `fit.json` says.
        frame: of a whitening a row for each direction: direction, variance, kept (whether it is), explained (% of
            the variance up to it). Of a flow a row for each step: step, nll (of the batch), held_out (of vectors
            that it did not see), both in nats a dimension, kept (whether the flow is that of this step).
        notes: what the person should know of it.
    """

    folder: Path
    about: FitAbout
    lines: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()

    @property
    def frame(self) -> "pd.DataFrame":
        """Of a whitening a row for each direction, of a flow one for each step."""
        import pandas as pd

        return pd.DataFrame(list(self.lines))

    def table(self) -> Tables:
        """Return what was fitted in a row: of a whitening the variance it keeps, of a flow the likelihoods."""
        import pandas as pd

        about = self.about
        row: dict[str, Any] = {
            "Fitted": about.method,
            "For": Path(about.model.name).name,
            "On": about.sentences.name,
            "Sentences": about.sentences.count,
            "Distinct": about.sentences.distinct,
            "Dimensions": f"{about.dimensions} of {about.width}",
        }
        if about.method == "whitening":
            row["Variance %"] = [line["explained"] for line in self.lines if line["kept"]][-1]
            return Tables([Table(pd.DataFrame([row]), name="fit", notes=self.notes)])
        first, kept = self.lines[0], next(line for line in self.lines if line["kept"])
        for name, column in (("NLL", "nll"), ("NLL held out", "held_out")):
            row[name] = f"{first[column]:.3f} → {kept[column]:.3f}" if column in kept else None
        note = (
            "NLL: negative log-likelihood in nats a dimension, before the first step and in the flow that is kept."
        )
        return Tables([Table(pd.DataFrame([row]), name="fit", notes=(note, *self.notes))])

    def to_dict(self) -> Any:
        """Return the folder, what `fit.json` says, the rows of `frame`, and the notes."""
        about = self.about.model_dump(mode="json")
        return {"folder": str(self.folder), **about, "log": list(self.lines), "notes": list(self.notes)}


def fit(
    method: Method,
    encoder: Encoder | str | Path = PACKAGED,
    *,
    sentences: str | Path | Sequence[str],
    out: str | Path,
    dimensions: int | None = None,
    steps: int | None = None,
    learning_rate: float | None = None,
    batch: int | None = None,
    seed: int | None = None,
    depth: int | None = None,
    width: int | None = None,
    coupling: str | None = None,
    data_dirs: Sequence[str | Path] = (),
    use_cache: bool = True,
    progress: Progress = silent,
) -> Fitting:
    """Fit post-processing to a model's vectors of given sentences, without their scores.

    `whitening` subtracts the mean and multiplies by U S^-1/2 of the covariance U S U^T (Su et al., 2021). `flow`
    is a small Glow (Kingma and Dhariwal, 2018) by maximum likelihood, as BERT-flow has it (Li et al., 2020).
    Sentences count as often as they stand in their source, as in the public code of both. A record of what was
    fitted on the sentences of a test task says so.

    Args:
        method: `whitening` or `flow`.
        encoder: what to fit it for: as in `stsbench run`, but not a function, whose weights have no hash. In
            Python also an encoder that was loaded.
        sentences: what to fit on: a task as `run --tasks` names it (`STS-B`, `STS-B:all`, `SICK-R`), `sts`, `nli`
            (SNLI's dev and test), `sample`, `sample-sentences`, or a text file with a sentence a line; several
            with commas. In Python also the sentences themselves.
        out: the folder to write, which must not hold anything but the same fit.
        dimensions: of a whitening, how many directions of largest variance to keep; by default all in which the
            sentences vary. A flow keeps all.
        steps: of a flow, how many steps the optimiser makes; by default one pass over the sentences. The state in
            which sentences held out were likeliest is kept.
        learning_rate: of a flow, the learning rate of Adam, 1e-3 by default; it falls to zero by half a cosine.
        batch: of a flow, how many sentences a step takes; 256 by default.
        seed: of a flow, the seed of its weights, permutations and order; 42 by default.
        depth: of a flow, how many steps the map has; 6 by default.
        width: of a flow, how wide the hidden layers of its couplings are; 256 by default.
        coupling: of a flow, what its couplings do: `additive` (BERT-flow: a shift alone; the default) or `affine`
            (Glow: shift and scale).
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.
        use_cache: whether to read and write the embedding cache.
        progress: told how far it is.

    Returns:
        What was fitted, where `.folder` is loaded and measured like a checkpoint. The folder of a whitening of a
        checkpoint is one for sentence-transformers, too.

    Raises:
        UserError: for a person's mistake, in one sentence; nothing is overwritten.
    """
    require(MODELS, f"to fit a {method}")
    folder = Path(out).expanduser()
    chosen = {
        "steps": steps,
        "learning_rate": learning_rate,
        "batch": batch,
        "seed": seed,
        "depth": depth,
        "width": width,
        "coupling": coupling,
    }
    of_flow = {name: value for name, value in chosen.items() if value is not None}
    _demand_choices(method, dimensions, of_flow)
    require_free(folder)
    base = encoder if isinstance(encoder, Encoder) else load(encoder)
    identity = base.identity
    if identity.weights_sha256 is None or identity.kind in {"vectors", KIND}:
        what = "something fitted already" if identity.kind == KIND else "no model whose weights have a hash"
        raise UserError(f"{identity.name} is {what}, which nothing can be fitted for: give a checkpoint.")
    if identity.use.template is not None:
        raise UserError(f"{identity.name} is used with a template, which nothing is fitted for: leave it out.")
    for name in identity.use.changed("afterwards"):
        raise UserError(
            f"{identity.name} is used with {option_of(name)}, which nothing is fitted for: leave it out."
        )
    texts = _sentences(sentences, data_dirs)
    embeddings = embed(base, texts.texts, use_cache=use_cache, progress=progress)
    (vectors,) = embeddings.vectors.values()
    if method == "whitening":
        tensors, settings, lines, notes = _whitening(vectors, embeddings.rows, dimensions)
        kept = len(lines)
    else:
        tensors, settings, lines, notes = _flow(vectors, embeddings.rows, of_flow, progress)
        kept = vectors.shape[1]
    layered = layerable(base) if method == "whitening" else None
    about = FitAbout(
        stsbench=__version__,
        method=method,
        dimensions=kept,
        width=vectors.shape[1],
        sentences=FittedOn(
            name=texts.name,
            count=len(texts.texts),
            distinct=len(set(texts.texts)),
            sha256=texts.sha256,
        ),
        model=BaseModelPart(
            name=_place(identity.name),
            **{name: getattr(identity, name) for name in BaseModelPart.model_fields.keys() - _NOT_OF_IDENTITY},
            is_here=layered is not None,
        ),
        settings=settings,
    )
    about = write_fit(
        folder,
        about,
        tensors,
        np.unique(folded_ids(texts.texts)),
        base=layered,
        log=lines if method == "flow" else None,
    )
    return Fitting(folder, about, lines, notes)


def _demand_choices(method: str, dimensions: int | None, of_flow: Mapping[str, Any]) -> None:
    if method not in METHODS:
        raise UserError(f"{method!r} cannot be fitted: {suggestion(method, METHODS)}")
    if method == "whitening" and of_flow:
        name = next(iter(of_flow))
        raise UserError(f"{name} is for a flow: a whitening is computed and not trained; leave it out.")
    if method == "flow" and dimensions is not None:
        raise UserError("dimensions are for a whitening: a flow can be inverted, so it keeps all; leave them out.")
    if dimensions is not None and dimensions < 1:
        raise UserError(f"dimensions {dimensions}: keep 1 or more.")
    for name in ("steps", "batch", "depth", "width"):
        if of_flow.get(name, 1) < 1:
            raise UserError(f"{name} {of_flow[name]}: give 1 or more.")
    if not 0 < of_flow.get("learning_rate", 1.0) < np.inf:
        raise UserError(f"learning_rate {of_flow['learning_rate']}: give a number above 0.")
    if (coupling := of_flow.get("coupling", _COUPLINGS[0])) not in _COUPLINGS:
        raise UserError(f"coupling {coupling!r}: {suggestion(coupling, _COUPLINGS)}")


def _sentences(sentences: str | Path | Sequence[str], data_dirs: Sequence[str | Path]) -> Sentences:
    if isinstance(sentences, str | Path):
        return read_sentences(sentences, [Path(folder) for folder in data_dirs])
    texts = tuple(sentences)
    if not texts:
        raise UserError("there are no sentences to fit on: give some.")
    return Sentences("given sentences", texts)


def _whitening(
    vectors: FloatMatrix, rows: NDArray[np.int64], dimensions: int | None
) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]], tuple[str, ...]]:
    """Return the tensors, no settings, a line for each direction, and notes."""
    mean, directions = whitening_of(vectors[rows], dimensions, option="--dimensions")
    # The columns of U are of unit length: what a column of U S^-1/2 is shorter by is the variance.
    centred = vectors[rows].astype(np.float64) - mean
    total = float(np.square(centred).sum() / (len(rows) - 1))
    variances = 1 / np.square(directions).sum(axis=0)
    explained = 100 * np.cumsum(variances) / total
    lines = [
        {"direction": number, "variance": variance, "kept": True, "explained": share}
        for number, (variance, share) in enumerate(zip(variances.tolist(), explained.tolist(), strict=True), 1)
    ]
    kept, width = directions.T.shape
    note = f"The sentences vary in {kept} of {width} dimensions, and those are kept."
    return linear_tensors(mean, directions), {}, lines, (note,) if dimensions is None and kept < width else ()


def _flow(
    vectors: FloatMatrix, rows: NDArray[np.int64], chosen: Mapping[str, Any], progress: Progress
) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]], tuple[str, ...]]:
    """Return the tensors, the settings, a line for each step, and notes."""
    from stsbench.encoders.flow import FlowDescent, FlowShape, fit_flow, notes_on, parameters_of

    shape_of = {name: chosen[name] for name in ("depth", "width", "coupling") if name in chosen}
    shape = FlowShape(vectors.shape[1], **shape_of)
    descent = FlowDescent(**{name: value for name, value in chosen.items() if name not in shape_of})
    flow, lines = fit_flow(vectors, rows, shape, descent, progress)
    settings = vars(shape) | vars(descent)
    del settings["dimensions"]
    # As it was trained, where the choice was left open.
    settings["steps"] = lines[-1]["step"]
    # Trained in float32: nothing is lost.
    return parameters_of(flow.float()), settings, lines, notes_on(lines)


def _place(name: str) -> str:
    """Return a model's name as it is found from any folder."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.exists() and name != PACKAGED else name
