"""A fitted whitening or flow as an encoder: the vectors of its model, mapped."""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from stsbench.base.errors import UserError
from stsbench.data.sentences import Sentences
from stsbench.data.shared import folded_ids
from stsbench.encoders.mteb_models import KIND as OF_MTEB
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.postprocess import normalize
from stsbench.encoders.protocol import (
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
from stsbench.encoders.use import Use, option_of

Method = Literal["whitening", "flow"]
Map = Callable[[FloatMatrix], NDArray[np.float64]]
"""Maps vectors of shape (rows, d) to shape (rows, dimensions)."""

KIND = "fitted"
"""The kind of the identity of such an encoder."""

_UNCHANGED = ("weights_sha256", "tokenizer_sha256", "config_sha256", "modules", "normalizes")
_LONGEST_NAME = 60
_REMEMBERED = ("max_length", "prompt", "attention", "attention_mask")
"""Options that default to those of the fit."""


class FittedOn(BaseModel):
    """The sentences of a fit: their source, number, number of distinct ones, and hash."""

    name: str
    count: int
    distinct: int
    sha256: str

    @classmethod
    def of(cls, sentences: Sentences) -> "FittedOn":
        """Describes some sentences."""
        texts = sentences.texts
        return cls(name=sentences.name, count=len(texts), distinct=len(set(texts)), sha256=sentences.sha256)


class FitAbout(BaseModel):
    """The content of `fit.json`.

    Attributes:
        version: of the layout.
        stsbench: the version that wrote it.
        method: `whitening` or `flow`.
        dimensions: of the mapped vectors.
        width: of the model's vectors.
        sentences: fitted on.
        model: fitted for.
        is_here: whether the model's files are in the folder of the fit; otherwise it is loaded by its name.
        settings: shape and training of a flow.
        files: the hash of each file of the fit.
    """

    model_config = ConfigDict(extra="forbid")

    version: Literal[3] = 3
    stsbench: str
    method: Method
    dimensions: int
    width: int
    sentences: FittedOn
    model: Identity
    is_here: bool
    settings: dict[str, Any]
    files: dict[str, str] = {}

    @property
    def label(self) -> str:
        """Method, dimensions and sentences, as in a signature."""
        name = re.sub(r"[^\w.+-]+", "-", self.sentences.name.replace(",", "+")).strip("-")
        return f"{self.method}{self.dimensions}+{name[:_LONGEST_NAME]}"

    def use_of(self, name: str, asked: Use) -> Use:
        """Returns how the model is used: as for the fit, except for the user's choices.

        Args:
            name: of the fit, for messages.
            asked: the user's choices.

        Raises:
            UserError: if they include a template, another pooling, or prompts by name or side.
        """
        fitted = self.model.use
        has_template = asked.template not in {None, NO_TEMPLATE}
        for field in ["template"] if has_template else ["prompt_name", "prompts"]:
            if getattr(asked, field) is not None:
                raise UserError(
                    f"{name}: the {self.method} was fitted with one prompt and no template: leave out "
                    f"{option_of(field)}."
                )
        if asked.pooling not in {AUTO, fitted.pooling}:
            raise UserError(
                f"{name}: the {self.method} was fitted with pooling {fitted.pooling}: leave out --pooling "
                f"{asked.pooling}, or fit again with it."
            )
        # How mteb reads a sentence cannot be chosen.
        remembered = ("revision", *(() if self.model.kind == OF_MTEB else _REMEMBERED))
        return replace(
            asked,
            template=NO_TEMPLATE,
            pooling=fitted.pooling if self.model.kind in WITH_POOLINGS else AUTO,
            **{field: getattr(fitted, field) for field in remembered if field not in asked.changed()},
        )

    def notes_of(self, name: str, asked: Use) -> tuple[str, ...]:
        """Returns what was fitted, and where the model is used differently; arguments as in `use_of`."""
        on, fitted = self.sentences, self.model.use
        values = [(field, getattr(fitted, field), getattr(asked, field)) for field in _REMEMBERED]
        return (
            f"{name}: a {self.method} to {self.dimensions} dimensions was fitted for {Path(self.model.name).name} "
            f"on {on.count:,} sentences ({on.distinct:,} distinct) of {on.name}.",
            *(
                f"{name}: the {self.method} was fitted with {field} {before!r} but is used with {now!r}."
                for field, before, now in [*values, ("precision", fitted.computed_in, asked.computed_in)]
                if before != now and field in {"precision", *asked.changed()}
            ),
        )


FitAbout.model_rebuild(_types_namespace={"Template": Template})


@dataclass
class FittedEncoder(Wrapper):
    """Encodes with the model, then applies the fitted map.

    The map is computed in float64, so that a vector does not depend on the others in its batch. A zero vector (of
    a sentence without tokens or known words) stays zero.

    Attributes:
        name: as the user named it.
        about: the content of `fit.json`.
        base: the model that it was fitted for.
        read_map: reads the map; called at the first vector.
        seen: ids of the sentences that it was fitted on, as `folded_ids` gives them.
        notes: for the user.
    """

    name: str
    about: FitAbout
    base: Encoder
    read_map: Callable[[], Map]
    seen: NDArray[np.uint64]
    notes: tuple[str, ...] = ()

    @cached_property
    def identity(self) -> Identity:
        """What the vectors depend on, which is everything that the model's vectors do, and the map.

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

    def prepare(self, *, weights: bool) -> None:
        super().prepare(weights=weights)
        if weights:
            _ = self._map

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        require_own_pooling(self.identity, poolings)
        (vectors,) = self.base.forward(sequences, [self.base.identity.use.pooling]).values()
        return dict.fromkeys(poolings, self.tail(vectors))

    def tail(self, vectors: FloatMatrix) -> FloatMatrix:
        """Maps the model's vectors before its closing normalisation, shape (rows, d)."""
        if vectors.shape[1] != self.about.width:
            raise UserError(
                f"{self.name} was fitted to vectors of {self.about.width} dimensions, and the model's have "
                f"{vectors.shape[1]}: fit again."
            )
        fitted_on = normalize(vectors) if self.base.identity.normalizes else vectors
        mapped = as_float32(self._map(fitted_on), self.name)
        mapped[~fitted_on.any(axis=1)] = 0
        return mapped

    def notes_on(self, task: str, sentences: Sequence[str]) -> tuple[str, ...]:
        """Returns a note if the map was fitted on some sentences of a test task."""
        ids = np.unique(folded_ids(sentences))
        seen = int(np.isin(ids, self.seen).sum())
        if not seen:
            return ()
        share = f"all {seen:,}" if seen == len(ids) else f"{seen:,} of the {len(ids):,}"
        transductive = f"transductive on {task}: " if seen == len(ids) else ""
        return (
            f"{transductive}the {self.about.method} was fitted on {share} sentences of {task}, without scores.",
        )

    @cached_property
    def _map(self) -> Map:
        return self.read_map()
