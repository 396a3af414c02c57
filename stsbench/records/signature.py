"""The signature: what a score means, in one line.

`STS16:test:all|spearman|cosine|text:senteval|data:3f2a91||avg|len256|fp32|stsbench:0.1.0`

Before the double bar stands the protocol: two scores compare only if it is equal. After it stands the model:
how it was used, which two models may well differ in.
"""

import re
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from stsbench.base.errors import UserError

_DATA_DIGITS = 6

UNKNOWN = "-"
"""What stands where a score was imported and its file does not say."""


@dataclass(frozen=True)
class Signature:
    """What fixes a score.

    Attributes:
        task: for example `STS16`.
        split: `test`, `dev`, `train` or `all`.
        aggregation: over subsets: `all`, `mean` or `wmean`.
        metric: `spearman`, `pearson` or `kendall`.
        similarity: `cosine`, `dot`, `euclidean` or `manhattan` (distances negative), or `given`.
        text: the text variant, for example `senteval` or `raw`.
        data: the first digits of the hash over the files that were read.
        pooling: how token vectors became one vector.
        max_length: sub-words kept; None where unlimited or unknown.
        prompt: text put before every sentence.
        template: the text around every sentence: its name, and digits that stand for it, as in `promptbert#1a2b`.
        precision: of the network.
        normalize: whether the vectors were scaled to unit length, as the checkpoint or the person says.
        dimensions: the number of leading dimensions kept (Matryoshka); None for all.
        postprocessing: what was done to the vectors afterwards: `whiten256` by the run, `whitening256+STS-B-test`
            by what was fitted.
        version: of stsbench.

    A field is `UNKNOWN` where the score was imported and its file does not say.

    >>> str(Signature("STS16", "test", "all", "spearman", "cosine", "senteval", "3f2a91" + "0" * 58, "avg", 256))
    'STS16:test:all|spearman|cosine|text:senteval|data:3f2a91||avg|len256|fp32|stsbench:...'
    """

    task: str
    split: str
    aggregation: str
    metric: str
    similarity: str
    text: str
    data: str
    pooling: str
    max_length: int | None = None
    prompt: str = ""
    template: str = ""
    precision: str = "fp32"
    normalize: bool = False
    dimensions: int | None = None
    postprocessing: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        """Keep the data hash as short as it is printed, so that a parsed signature equals its origin."""
        object.__setattr__(self, "data", self.data[:_DATA_DIGITS])

    @property
    def protocol(self) -> str:
        """The part that must be equal for two scores to compare."""
        return "|".join(
            [
                ":".join(map(_quoted, (self.task, self.split, self.aggregation))),
                _quoted(self.metric),
                _quoted(self.similarity),
                f"text:{_quoted(self.text)}",
                f"data:{_quoted(self.data)}",
            ]
        )

    @property
    def model(self) -> str:
        """The part that says how the model was used."""
        parts = [quote(self.pooling, safe="+@,")]
        if self.max_length is not None:
            parts.append(f"len{self.max_length}")
        if self.prompt:
            parts.append(f"prompt:{_quoted(self.prompt)}")
        if self.template:
            parts.append(f"tmpl:{quote(self.template, safe='+#')}")
        parts.append(self.precision)
        if self.normalize:
            parts.append("norm")
        if self.dimensions is not None:
            parts.append(f"dim{self.dimensions}")
        if self.postprocessing:
            parts.append(f"post:{_quoted(self.postprocessing)}")
        return "|".join([*parts, f"stsbench:{_quoted(self.version)}"])

    def __str__(self) -> str:
        """Return the whole signature."""
        return f"{self.protocol}||{self.model}"

    @classmethod
    def parse(cls, text: str) -> "Signature":
        """Read a signature back.

        Raises:
            ValueError: if it is none.
        """
        return _parsed(text)


_SIGNATURE = re.compile(
    r"(?P<task>[^|:]*):(?P<split>[^|:]*):(?P<aggregation>[^|:]*)\|(?P<metric>[^|:]*)\|(?P<similarity>[^|:]*)"
    r"\|text:(?P<text>[^|:]*)\|data:(?P<data>[^|:]*)\|\|"
    r"(?P<pooling>[^|:]*)(?:\|len(?P<max_length>\d+))?(?:\|prompt:(?P<prompt>[^|:]*))?(?:\|tmpl:(?P<template>[^|:]*))?"
    r"\|(?P<precision>(?:[a-z]+-)?(?:fp32|bf16|fp16|int8)(?:#[0-9a-f]+)?|-)(?:\|(?P<normalize>norm))?(?:\|dim(?P<dimensions>\d+))?(?:\|post:(?P<postprocessing>[^|:]*))?"
    r"\|stsbench:(?P<version>[^|:]*)"
)


@lru_cache(maxsize=2**12)
def _parsed(text: str) -> Signature:
    # Kept, as a record's signatures are read again by all that is said about it.
    found = _SIGNATURE.fullmatch(text)
    if found is None:
        raise ValueError(f"not a signature: {text!r}")
    values: dict[str, Any] = {name: unquote(value) for name, value in found.groupdict("").items()}
    for number in ("max_length", "dimensions"):
        values[number] = int(values[number]) if values[number] else None
    values["normalize"] = bool(values["normalize"])
    return Signature(**values)


PROTOCOL_FIELDS = ("task", "split", "aggregation", "metric", "similarity", "text", "data")
"""Two scores compare only if they agree in these."""

MODEL_FIELDS = tuple(field.name for field in fields(Signature) if field.name not in PROTOCOL_FIELDS)


def differing_fields(one: Signature, other: Signature) -> tuple[str, ...]:
    """Return the fields of the protocol in which two scores differ; none if they compare.

    >>> from dataclasses import replace
    >>> signature = Signature("STS16", "test", "all", "spearman", "cosine", "senteval", "3f2a91", "avg")
    >>> differing_fields(signature, replace(signature, metric="pearson", pooling="cls"))
    ('metric',)
    """
    return tuple(name for name in PROTOCOL_FIELDS if getattr(one, name) != getattr(other, name))


def require_same_protocol(
    one: Signature, other: Signature, *, names: tuple[str, str], task: str, remedy: str
) -> None:
    """Make sure that two scores compare.

    Args:
        one: what the one score means.
        other: what the other means.
        names: of the two runs, for the message.
        task: as the reader knows it.
        remedy: what to do, the end of the message.

    Raises:
        UserError: naming the first field in which they differ.
    """
    for field in differing_fields(one, other):
        raise UserError(
            f"{names[0]} and {names[1]} do not compare on {task}: {field} is {getattr(one, field)} in one and "
            f"{getattr(other, field)} in the other: {remedy}."
        )


def _quoted(text: str) -> str:
    # What separates the fields must not stand inside one. A + is harmless, and usual in versions.
    return quote(text, safe="+")
