"""`fit`: a whitening, or a flow, on given sentences for a model, as a folder that is measured like a checkpoint.

The folder is written completely or not at all; its layout is in `fitted`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench._version import __version__
from stsbench.base.errors import MODELS, UserError, require
from stsbench.base.files import Manifest, atomic_folder
from stsbench.base.progress import Progress, silent
from stsbench.base.words import suggestion
from stsbench.data.sentences import Sentences, read_sentences
from stsbench.data.tables import folded_ids
from stsbench.encoders.checkpoint import PACKAGED
from stsbench.encoders.fitted import (
    FIT,
    KIND,
    SENTENCES,
    TENSORS,
    FitAbout,
    FittedOn,
    Method,
    Tensors,
    holds_fit,
    whitening_of,
)
from stsbench.encoders.load import Model, load
from stsbench.encoders.plan import embed
from stsbench.encoders.protocol import Encoder, FloatMatrix
from stsbench.encoders.use import option_of
from stsbench.render.table import Result, Table, Tables

METHODS = get_args(Method)

_Log = list[dict[str, Any]]


@dataclass(frozen=True)
class Fitting(Result):
    """What was fitted.

    Attributes:
        folder: to measure it: `stsbench run --model FOLDER`.
        about: the content of its `fit.json`.
        lines: the rows of `frame`.
        notes: for the user.
    """

    folder: Path
    about: FitAbout
    lines: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """One row per direction of a whitening, or per step of a flow.

        Directions have `variance`, `kept` and `explained` (cumulative % of the variance); steps have `nll` (of the
        batch), `held_out` (of held-out vectors), both in nats per dimension, and `kept`.
        """
        return pd.DataFrame(list(self.lines))

    def table(self) -> Tables:
        """Returns one row: the variance that a whitening keeps, or the likelihoods of a flow."""
        about = self.about
        row: dict[str, Any] = {
            "Fitted": about.method,
            "For": Path(about.model.name).name,
            "On": about.sentences.name,
            "Sentences": about.sentences.count,
            "Distinct": about.sentences.distinct,
            "Dimensions": f"{about.dimensions} of {about.width}",
        }
        notes = self.notes
        if about.method == "whitening":
            row["Variance %"] = self.lines[-1]["explained"]
        else:
            first, kept = self.lines[0], next(line for line in self.lines if line["kept"])
            for name, column in (("NLL", "nll"), ("NLL held out", "held_out")):
                row[name] = f"{first[column]:.3f} → {kept[column]:.3f}"
            notes = (
                "NLL: negative log-likelihood in nats per dimension, before training → of the kept state.",
                *notes,
            )
        return Tables([Table(pd.DataFrame([row]), name="fit", notes=notes)])

    def to_dict(self) -> Any:
        """Returns the folder, the content of `fit.json`, the rows of `frame` and the notes."""
        about = self.about.model_dump(mode="json")
        return {"folder": str(self.folder), **about, "log": list(self.lines), "notes": list(self.notes)}


def fit(
    method: Method,
    encoder: Model = PACKAGED,
    *,
    sentences: str | Path | Sequence[str],
    out: str | Path,
    dimensions: int | None = None,
    steps: int | None = None,
    learning_rate: float | None = None,
    seed: int | None = None,
    data_dirs: Sequence[str | Path] = (),
    use_cache: bool = True,
    progress: Progress = silent,
) -> Fitting:
    """Fit post-processing to a model's vectors of given sentences, without scores.

    `whitening` subtracts the mean and multiplies by U S^-1/2 of the covariance U S U^T (Su et al., 2021). `flow`
    is a small Glow (Kingma and Dhariwal, 2018) trained by maximum likelihood, as in BERT-flow (Li et al., 2020).
    Repeated sentences count repeatedly, as in the public code of both.

    Args:
        method: `whitening` or `flow`.
        encoder: what `load` accepts; its weights must have a hash.
        sentences: the sentences to fit on: a task as in `run --tasks` (`STS-B`, `STS-B:all`, `SICK-R`), `sts`,
            `nli` (dev and test of SNLI), `sample`, `sample-sentences`, a text file with one sentence per line, or
            several with commas; or a list of sentences.
        out: the folder to write; an earlier fit in it is replaced.
        dimensions: of a whitening, the number of directions of largest variance to keep; default: all in which
            the sentences vary.
        steps: of a flow, the number of optimiser steps; default: one pass over the sentences. The state with the
            best likelihood of held-out sentences is kept.
        learning_rate: of a flow, for Adam; default 1e-3, decaying as a half cosine.
        seed: of a flow's weights, permutations and order; default 42.
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.
        use_cache: whether to use the embedding cache.
        progress: called with the progress.

    Returns:
        The fit, whose `.folder` is loaded and measured like a checkpoint. It refers to the model by its name.

    Raises:
        UserError: for a mistake in the arguments; nothing is overwritten.
    """
    require(MODELS, f"to fit a {method}")
    folder = Path(out).expanduser()
    options: dict[str, Any] = {"steps": steps, "learning_rate": learning_rate, "seed": seed}
    of_flow = {name: value for name, value in options.items() if value is not None}
    _require_options(method, dimensions, of_flow)
    if folder.exists() and not holds_fit(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} contains something other than a fit: choose another folder with --out.")
    base = load(encoder)
    _require_plain(base)
    if isinstance(sentences, str | Path):
        texts = read_sentences(sentences, [Path(folder) for folder in data_dirs])
    else:
        texts = Sentences("given sentences", tuple(sentences))
    embeddings = embed(base, texts.texts, use_cache=use_cache, progress=progress)
    (vectors,) = embeddings.vectors.values()
    settings: dict[str, Any] = {}
    if method == "whitening":
        tensors, log, notes = _whitening(vectors, embeddings.rows, dimensions)
    else:
        from stsbench.encoders.flow import FlowSettings, fit_flow, notes_on

        chosen = FlowSettings(**of_flow)
        flow, log = fit_flow(vectors, embeddings.rows, chosen, progress)
        tensors = {name: tensor.numpy() for name, tensor in flow.float().state_dict().items()}
        settings, notes = vars(chosen) | {"steps": log[-1]["step"]}, notes_on(log)
    on = FittedOn(name=texts.name, count=len(texts.texts), distinct=len(set(texts.texts)), sha256=texts.sha256)
    about = FitAbout(
        stsbench=__version__,
        method=method,
        dimensions=len(log) if method == "whitening" else vectors.shape[1],
        width=vectors.shape[1],
        sentences=on,
        model=replace(base.identity, name=_place(base.identity.name)),
        settings=settings,
    )
    seen = np.unique(folded_ids(texts.texts))
    return Fitting(folder, _write(folder, about, {**tensors, SENTENCES: seen}, log), log, notes)


def _require_options(method: str, dimensions: int | None, of_flow: Mapping[str, Any]) -> None:
    if method not in METHODS:
        raise UserError(f"unknown method {method!r}: {suggestion(method, METHODS)}")
    foreign = list(of_flow) if method == "whitening" else ["dimensions"] if dimensions is not None else []
    if foreign:
        raise UserError(f"{foreign[0]} is not an option of a {method}: leave it out.")
    for name, value in of_flow.items():
        if name != "seed" and not 0 < value < np.inf:
            raise UserError(f"{name} is {value}: expected a number above 0.")


def _require_plain(base: Encoder) -> None:
    """Checks that a model can be found again by the hash of its weights, and is not processed already."""
    identity = base.identity
    if identity.weights_sha256 is None or identity.kind in {"vectors", KIND}:
        raise UserError(
            f"{identity.name} is not a model whose weights have a hash, or is fitted already: use a checkpoint."
        )
    template = ["template"] if identity.use.template is not None else []
    for name in (*template, *identity.use.changed("afterwards")):
        raise UserError(
            f"{identity.name} is used with {option_of(name)}, which fits do not support: leave it out."
        )


def _whitening(
    vectors: FloatMatrix, rows: NDArray[np.int64], dimensions: int | None
) -> tuple[Tensors, _Log, tuple[str, ...]]:
    """Returns (x - mean) W as the tensors of a dense layer (W^T, and the bias -mean W), the log, and notes."""
    mean, directions = whitening_of(vectors[rows], dimensions, option="--dimensions")
    # The columns of U have unit length, so the length of a column of U S^-1/2 gives its variance.
    centred = vectors[rows].astype(np.float64) - mean
    total = float(np.square(centred).sum() / (len(rows) - 1))
    variances = 1 / np.square(directions).sum(axis=0)
    explained = 100 * np.cumsum(variances) / total
    log = [
        {"direction": number, "variance": variance, "kept": True, "explained": share}
        for number, (variance, share) in enumerate(zip(variances.tolist(), explained.tolist(), strict=True), 1)
    ]
    kept, width = directions.T.shape
    note = f"The sentences vary in {kept} of {width} dimensions; these are kept."
    weight = np.ascontiguousarray(directions.T).astype(np.float32)
    # With the rounded weights, so that the mean maps to zero as exactly as float32 allows.
    bias = -(mean @ weight.T.astype(np.float64)).astype(np.float32)
    return {"weight": weight, "bias": bias}, log, (note,) if dimensions is None and kept < width else ()


def _place(name: str) -> str:
    """Returns a model's name in a form that works from any folder."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.exists() and name != PACKAGED else name


def _write(folder: Path, about: FitAbout, tensors: Tensors, log: _Log) -> FitAbout:
    """Writes a fit completely or not at all; returns its description with the hashes of its files."""
    from safetensors.numpy import save

    with atomic_folder(folder) as building:
        (building / TENSORS).write_bytes(save(dict(tensors)))
        if about.method == "flow":
            lines = "".join(f"{json.dumps(line)}\n" for line in log)
            (building / "log.jsonl").write_text(lines, encoding="utf-8")
        manifest = Manifest.of(building, about.model_dump(mode="json", exclude={"files"}), [TENSORS])
        manifest.write(building, FIT)
    return about.model_copy(update={"files": dict(manifest.files)})
