"""What was fitted, as an encoder: the vectors of the model that it stands on, and the map fitted to them."""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from stsbench.base.errors import UserError
from stsbench.base.words import shown_difference
from stsbench.data.shared import folded_ids
from stsbench.encoders.mteb_models import KIND as OF_MTEB
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.postprocess import normalize
from stsbench.encoders.protocol import (
    WITH_POOLINGS,
    Encoder,
    FloatMatrix,
    Identity,
    Tokenized,
    TokenSequence,
    as_float32,
    require_own_pooling,
)
from stsbench.encoders.template import NO_TEMPLATE, Template
from stsbench.encoders.use import Use, option_of

Method = Literal["whitening", "flow"]
Map = Callable[[FloatMatrix], NDArray[np.float64]]
"""From vectors of shape (rows, d) to those of shape (rows, dimensions)."""

KIND = "fitted"
"""The kind of the identity of such an encoder."""

_SAME = ("weights_sha256", "tokenizer_sha256", "config_sha256", "modules", "normalizes")
_LONGEST_NAME = 60

_ATTENTION = ("attention", "attention_mask")
_FILLED = ("max_length", "prompt", "revision", *_ATTENTION)
"""What a fit remembers of how its model was used, where the person makes no choice."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class FittedOn(_Part):
    """The sentences of a fit: the name of their source, how many, how many distinct ones, a hash over all."""

    name: str
    count: int
    distinct: int
    sha256: str


class BaseModelPart(_Part):
    """The model that a fit stands on: what its vectors depend on, as `Identity` has it.

    Attributes:
        is_here: whether its files lie in the folder of the fit; else it is found again by its name.
    """

    name: str
    kind: str
    use: Use
    weights_sha256: str
    tokenizer_sha256: str | None
    config_sha256: str | None
    modules: tuple[str, ...]
    normalizes: bool
    is_here: bool


BaseModelPart.model_rebuild(_types_namespace={"Template": Template})


class FitAbout(_Part):
    """What `fit.json` says.

    Attributes:
        version: of the layout.
        stsbench: the version that wrote it.
        method: `whitening` or `flow`.
        dimensions: of the vectors that come out.
        width: of those that go in.
        sentences: fitted on.
        model: fitted for.
        settings: of a flow its shape and descent; none of a whitening.
        files: the hash of each file that belongs to the fit.
    """

    version: Literal[2] = 2
    stsbench: str
    method: Method
    dimensions: int
    width: int
    sentences: FittedOn
    model: BaseModelPart
    settings: dict[str, int | float | str]
    files: dict[str, str] = {}

    @property
    def label(self) -> str:
        """What signatures call it, by method, dimensions and sentences.

        A task's `:` and the commas between sources become what a signature need not escape.
        """
        name = re.sub(r"[^\w.+-]+", "-", self.sentences.name.replace(",", "+")).strip("-")
        return f"{self.method}{self.dimensions}+{name[:_LONGEST_NAME]}"

    @property
    def sentence(self) -> str:
        """What was fitted and on what, in a sentence."""
        on = self.sentences
        return (
            f"a {self.method} to {self.dimensions} dimensions was fitted for {Path(self.model.name).name} on "
            f"{on.count:,} sentences ({on.distinct:,} distinct) of {on.name}."
        )

    def use_of(self, name: str, asked: Use) -> Use:
        """Return how the model is used: as it was for the fit, where the person made no choice.

        Args:
            name: the fit, as the person named it.
            asked: the person's choices.

        Raises:
            UserError: if they are a template, another pooling, or prompts by name or side.
        """
        model, fitted = self.model, self.model.use
        if asked.template not in {None, NO_TEMPLATE}:
            raise UserError(f"{name}: the {self.method} was fitted without a template: leave out --template.")
        for option in (option_of(name) for name in ("prompt_name", "prompts") if getattr(asked, name) is not None):
            raise UserError(
                f"{name}: the {self.method} was fitted with one text before every sentence: leave out {option}, "
                "or give the text itself with --prompt."
            )
        if asked.pooling not in {AUTO, fitted.pooling}:
            raise UserError(
                f"{name}: the {self.method} was fitted with pooling {fitted.pooling}: leave out --pooling "
                f"{asked.pooling}, or fit again with it."
            )
        # How mteb reads a sentence is not asked of it.
        filled = ("revision",) if model.kind == OF_MTEB else _FILLED
        return replace(
            asked,
            template=NO_TEMPLATE,
            pooling=fitted.pooling if model.kind in WITH_POOLINGS else AUTO,
            **{field: getattr(fitted, field) for field in filled if field not in asked.changed()},
        )

    def notes_of(self, name: str, asked: Use) -> tuple[str, ...]:
        """Return what was fitted, and where the person uses the model otherwise; arguments as in `use_of`."""
        fitted, chosen = self.model.use, asked.changed()
        changed = (
            f"{name}: the {self.method} was fitted with {what} {then!r}, and is used with {now!r}."
            for what, then, now in (
                ("max_length", fitted.max_length, asked.max_length),
                ("prompt", fitted.prompt, asked.prompt),
                ("precision", fitted.computed_in, asked.computed_in),
                *(
                    (field, getattr(fitted, field), getattr(asked, field))
                    for field in _ATTENTION
                    if field in chosen
                ),
            )
            if now is not None and now != then
        )
        return (f"{name}: {self.sentence}", *changed)


@dataclass
class FittedEncoder:
    """Encodes with the model, then applies what was fitted.

    The map is computed in float64, so that a vector does not depend on which others come with it. A zero vector
    (of a sentence without tokens or known words) stays one.

    Attributes:
        name: as the person named it.
        about: what `fit.json` says.
        base: the model that it was fitted for.
        read_map: reads the map; called at the first vector.
        seen: numbers of the sentences that it was fitted on, as `folded_ids` gives them.
        notes: what the person should know.
    """

    name: str
    about: FitAbout
    base: Encoder
    read_map: Callable[[], Map]
    seen: NDArray[np.uint64]
    notes: tuple[str, ...] = ()

    @cached_property
    def identity(self) -> Identity:
        """What the vectors depend on, which is all that the model's do, and the map.

        Raises:
            UserError: if the model is not the one that it was fitted for.
        """
        base, fitted_for = self.base.identity, self.about.model
        values = [(name, getattr(fitted_for, name), getattr(base, name)) for name in _SAME]
        for field, before, today in [*values, ("pooling", fitted_for.use.pooling, base.use.pooling)]:
            if before != today:
                then, now = shown_difference(str(before), str(today))
                raise UserError(
                    f"{self.name} was fitted for {fitted_for.name} when its {field} was {then}; it is {now} now: "
                    "put that model back, or fit again."
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

    @property
    def token_budget(self) -> int:
        """Padded tokens in one batch."""
        return self.base.token_budget

    def prepare(self, *, weights: bool) -> None:
        """Prepare the model, and with `weights` the map."""
        self.base.prepare(weights=weights)
        if weights:
            _ = self._map

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return what the model reads of each text."""
        return self.base.tokenize(texts)

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return the mapped vectors, shape (len(sequences), dimensions), float32."""
        require_own_pooling(self.identity, poolings)
        (vectors,) = self.base.forward(sequences, [self.base.identity.use.pooling]).values()
        return dict.fromkeys(poolings, self.tail(vectors))

    def tail(self, vectors: FloatMatrix) -> FloatMatrix:
        """Return the mapped vectors of the model's own, before its closing normalisation, shape (rows, d)."""
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
        """Return a note on a test task if something was fitted on some of its sentences."""
        ids = np.unique(folded_ids(sentences))
        seen, method = int(np.isin(ids, self.seen).sum()), self.about.method
        if not seen:
            return ()
        if seen == len(ids):
            note = f"transductive on {task}: the {method} was fitted on all of its {seen:,} sentences"
            return (f"{note} (without scores).",)
        note = f"the {method} was fitted on {seen:,} of the {len(ids):,} sentences of {task}"
        return (f"{note} (without their scores).",)

    @cached_property
    def _map(self) -> Map:
        return self.read_map()
