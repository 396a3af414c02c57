"""Processing of vectors: `normalize`, `truncate`, `whiten`, and a fitted whitening or flow as an encoder.

The encoder is read from the folder that `fit` writes, without executing code.
`fit.json` describes the fit; `fit.safetensors` has the map in float32 and the ids of the sentences. The model is
found by its name and checked by the hash of its weights.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import Manifest
from stsbench.data.tables import folded_ids, shared_ids
from stsbench.encoders.mteb_models import KIND as OF_MTEB
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.protocol import (
    LARGEST,
    SMALLEST,
    WITH_POOLINGS,
    Encoder,
    FloatMatrix,
    Identity,
    TokenSequence,
    Wrapper,
    as_float32,
    require_own_pooling,
)
from stsbench.encoders.template import NO_TEMPLATE, Template
from stsbench.encoders.use import UNKNOWN, Use, names, option_of

# Directions with a smaller share of the largest variance are rounding noise.
_NOISE = 1e-8
_CONSTANT = 1e-20

Method = Literal["whitening", "flow"]
Tensors = Mapping[str, NDArray[Any]]

KIND = "fitted"
"""The kind of the identity of a fitted encoder."""

FIT, TENSORS = "fit.json", "fit.safetensors"
"""The files of a fit; the first makes a folder that of a fit."""

SENTENCES = "sentences"
"""The tensor with the ids of the sentences, as `folded_ids` gives them."""

_AGAIN = "fit again with `stsbench fit`"
_UNCHANGED = ("weights_sha256", "tokenizer_sha256", "config_sha256", "modules", "normalizes")
_LONGEST_NAME = 60
_FREE = {"backend", "precision", "revision", "device", "trust_remote_code", *names("afterwards")}
"""Options that may differ from those of the fit."""


def normalize(vectors: FloatMatrix, out: FloatMatrix | None = None) -> FloatMatrix:
    """Scales rows to unit length; zero vectors stay zero.

    Args:
        vectors: shape (rows, d).
        out: an array for the result, possibly `vectors` itself; a new array by default.
    """
    # In float64, because the squares of a tiny vector are zero in float32.
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    exact = np.sqrt(squares)
    # Lengths that float32 cannot represent, or only imprecisely.
    extreme = np.flatnonzero((exact > LARGEST) | ((exact < SMALLEST) & (exact > 0)))
    rescued = (vectors[extreme] / exact[extreme, None]).astype(np.float32)
    unit = np.zeros_like(vectors) if out is None else out
    with np.errstate(over="ignore"):
        lengths = exact.astype(np.float32)[:, None]
    np.divide(vectors, lengths, out=unit, where=lengths > 0)
    unit[extreme] = rescued
    return unit


def processed(vectors: FloatMatrix, identity: Identity) -> FloatMatrix:
    """Applies an encoder's truncation and normalisation, not its whitening, to vectors (rows, d), in place."""
    if identity.use.dimensions is not None:
        vectors = truncate(vectors, identity.use.dimensions)
    return normalize(vectors, out=vectors) if identity.normalize else vectors


def truncate(vectors: FloatMatrix, dimensions: int) -> FloatMatrix:
    """Keeps the first dimensions of vectors of shape (rows, d), as for Matryoshka models.

    Raises:
        UserError: if there are fewer.
    """
    if not 1 <= dimensions <= vectors.shape[1]:
        raise UserError(f"--dimensions {dimensions}: the model's vectors have {vectors.shape[1]}.")
    return vectors[:, :dimensions]


def whiten(
    vectors: FloatMatrix, reference: FloatMatrix, dimensions: int | None = None, *, task: str | None = None
) -> NDArray[np.float64]:
    """Returns vectors of shape (rows, d) whitened as shape (rows, dimensions), float64; see `whitening_of`."""
    mean, directions = whitening_of(reference, dimensions, option="--whiten", task=task)
    whitened: NDArray[np.float64] = (vectors - mean) @ directions
    return whitened


def whitening_of(
    reference: FloatMatrix, dimensions: int | None = None, *, option: str, task: str | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the mean of some vectors, and the matrix that makes their covariance the identity.

    Su et al. (2021): the covariance is U S U^T, the matrix the first columns of U S^-1/2. As in their public code
    (bojone/BERT-whitening, eng/utils.py), the covariance is divided by n - 1.

    Args:
        reference: the vectors, shape (sentences, d).
        dimensions: number of directions of largest variance to keep; None for all in which they vary.
        option: that chooses this number, for messages.
        task: of the sentences, for messages.

    Returns:
        The mean, shape (d,), and the matrix, shape (d, dimensions), float64.

    Raises:
        UserError: if the reference varies in fewer directions.
    """
    if len(reference) < 2:
        raise UserError(f"whitening needs at least 2 sentences for a covariance: there is {len(reference)}.")
    mean = reference.mean(axis=0, dtype=np.float64)
    covariance = np.atleast_2d(np.cov(reference.astype(np.float64), rowvar=False))
    directions, variances, _ = np.linalg.svd(covariance)
    which = f"{len(reference)} sentences" + (f" of {task}" if task else "")
    # The variance of equal vectors is rounding noise.
    varies = variances[0] > _CONSTANT * np.square(mean).max()
    usable = int((variances > _NOISE * variances[0]).sum()) if varies else 0
    if usable == 0:
        raise UserError(f"whitening needs different vectors: those of the {which} are equal.")
    kept = usable if dimensions is None else dimensions
    if not 1 <= kept <= usable:
        raise UserError(
            f"whitening cannot keep {kept} dimensions: {which} vary in {usable} of {reference.shape[1]}; keep "
            f"fewer ({option} {usable})."
        )
    return mean, directions[:, :kept] / np.sqrt(variances[:kept])


class FittedOn(BaseModel):
    """The sentences of a fit: their source, number, number of distinct ones, and hash."""

    name: str
    count: int
    distinct: int
    sha256: str


class FitAbout(BaseModel):
    """The content of `fit.json`; `width` is of the model's vectors, `dimensions` of the mapped ones."""

    model_config = ConfigDict(extra="forbid")

    version: Literal[5] = 5
    stsbench: str
    method: Method
    dimensions: int
    width: int
    sentences: FittedOn
    model: Identity
    settings: dict[str, Any]
    files: dict[str, str] = {}

    @property
    def label(self) -> str:
        """Method, dimensions and sentences, as in a signature."""
        name = re.sub(r"[^\w.+-]+", "-", self.sentences.name.replace(",", "+")).strip("-")
        return f"{self.method}{self.dimensions}+{name[:_LONGEST_NAME]}"

    def use_of(self, name: str, chosen: Use) -> Use:
        """Returns the model's use: that of the fit, with the precision and device that you chose.

        Args:
            name: of the fit, for messages.
            chosen: the user's choices.

        Raises:
            UserError: if they include another pooling, length, prompt, template or mask than that of the fit.
        """
        fitted = self.model.use
        given = replace(chosen, template=None) if chosen.template == NO_TEMPLATE else chosen
        for field in given.changed():
            if field not in _FREE and getattr(given, field) != getattr(fitted, field):
                raise UserError(
                    f"{name}: the {self.method} was fitted with {field} {getattr(fitted, field)!r}: leave out "
                    f"{option_of(field)}, or fit again."
                )
        free = {field: getattr(chosen, field) for field in _FREE}
        free |= {"revision": chosen.revision or fitted.revision}
        if self.model.kind == OF_MTEB:  # the way mteb reads a sentence cannot be chosen
            return Use(**free)
        pooling = fitted.pooling if self.model.kind in WITH_POOLINGS else AUTO
        return replace(fitted, template=NO_TEMPLATE, pooling=pooling, **free)

    def notes_of(self, name: str, chosen: Use) -> tuple[str, ...]:
        """Returns notes on the fit, and on a different precision; arguments as in `use_of`."""
        on, before, now = self.sentences, self.model.use.computed_in, chosen.computed_in
        note = (
            f"{name}: a {self.method} to {self.dimensions} dimensions was fitted for {Path(self.model.name).name} "
            f"on {on.count:,} sentences ({on.distinct:,} distinct) of {on.name}."
        )
        other = f"{name}: the {self.method} was fitted with precision {before!r} but is used with {now!r}."
        return (note,) if before in {now, UNKNOWN} else (note, other)


FitAbout.model_rebuild(_types_namespace={"Template": Template})


def holds_fit(folder: Path) -> bool:
    """Returns whether a folder has a fit."""
    return (folder / FIT).is_file()


def read_fit(folder: Path) -> tuple[FitAbout, Tensors]:
    """Reads a fit and checks the files that its `fit.json` lists."""
    from safetensors.numpy import load

    manifest = Manifest.read(folder, FIT, _AGAIN)
    try:
        about = FitAbout.model_validate_json(json.dumps({**manifest.content, "files": manifest.files}))
    except ValidationError as error:
        raise UserError(
            f"{folder / FIT} does not describe a fit of this version of stsbench: {_AGAIN}."
        ) from error
    return about, load((folder / TENSORS).read_bytes())


@dataclass
class FittedEncoder(Wrapper):
    """Encodes with the model that it was fitted for, then applies the fitted map.

    The map is computed in float64, so that a vector does not depend on the others in its batch. A zero vector (of
    a sentence without tokens or known words) stays zero.
    """

    name: str
    about: FitAbout
    base: Encoder
    tensors: Tensors
    notes: tuple[str, ...] = ()

    @cached_property
    def identity(self) -> Identity:
        """Everything that the vectors depend on, which is that of the model's vectors and the map.

        Raises:
            UserError: if the model is not the one that it was fitted for.
        """
        base, fitted_for = self.base.identity, self.about.model
        values = [(name, getattr(fitted_for, name), getattr(base, name)) for name in _UNCHANGED]
        for field, before, today in [*values, ("pooling", fitted_for.use.pooling, base.use.pooling)]:
            if before != today:
                raise UserError(
                    f"{self.name} was fitted for {fitted_for.name} when its {field} was {before}; it is {today} "
                    "now. Restore that model, or fit again."
                )
        files = "".join(f"{name} {digest}\n" for name, digest in sorted(self.about.files.items()))
        both = hashlib.sha256(f"{base.weights_sha256}\n{files}".encode()).hexdigest()
        return replace(
            base,
            name=self.name,
            kind=KIND,
            use=replace(base.use, revision=None),
            weights_sha256=both,
            modules=(*base.modules, *(["normalize"] if base.normalizes else [])),
            normalizes=False,
            fitted=self.about.label,
        )

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        require_own_pooling(self.identity, poolings)
        (vectors,) = self.base.forward(sequences, [self.base.identity.use.pooling]).values()
        return dict.fromkeys(poolings, self.tail(vectors))

    def tail(self, vectors: FloatMatrix) -> FloatMatrix:
        """Maps the model's vectors before its closing normalisation, shape (rows, d)."""
        fitted_on = normalize(vectors) if self.base.identity.normalizes else vectors
        mapped = as_float32(self._map(fitted_on), self.name)
        mapped[~fitted_on.any(axis=1)] = 0
        return mapped

    def notes_on(self, task: str, sentences: Sequence[str]) -> tuple[str, ...]:
        """Returns a note if the map was fitted on some sentences of a test task."""
        _, distinct, seen = shared_ids(folded_ids(sentences), self.tensors[SENTENCES])
        if not seen:
            return ()
        share = f"all {seen:,}" if seen == distinct else f"{seen:,} of the {distinct:,}"
        transductive = f"transductive on {task}: " if seen == distinct else ""
        return (
            f"{transductive}the {self.about.method} was fitted on {share} sentences of {task}, without scores.",
        )

    @cached_property
    def _map(self) -> Callable[[FloatMatrix], NDArray[np.float64]]:
        if self.about.method == "whitening":
            weight, bias = (self.tensors[name].astype(np.float64) for name in ("weight", "bias"))
            return lambda vectors: vectors.astype(np.float64) @ weight.T + bias
        from stsbench.encoders.flow import FlowSettings, apply_flow, flow_of

        parameters = {name: tensor for name, tensor in self.tensors.items() if name != SENTENCES}
        flow = flow_of(self.about.dimensions, FlowSettings(**self.about.settings), parameters)
        return lambda vectors: apply_flow(flow, vectors)
