"""The signature: the meaning of a score, in one line.

`STS16:test:all|spearman|cosine|text:senteval|data:3f2a91||avg|len256|fp32|stsbench:0.1.0`

Before the double bar is the protocol, which must be equal for two scores to be comparable. After it is the use of
the model, in which two models may differ.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from stsbench.base.errors import UserError
from stsbench.encoders.use import SIGNED, USUAL, Use, read_use, signed_part, use_signature

UNKNOWN = "-"
"""The value of a field that an imported file does not contain."""

PROTOCOL_FIELDS = ("task", "split", "aggregation", "metric", "similarity", "text", "data")
"""Two scores are comparable only if these are equal."""


@dataclass(frozen=True)
class Signature:
    """The meaning of a score. A field of an imported score is `UNKNOWN` if its file does not contain it.

    Attributes:
        task: for example `STS16`.
        split: `test`, `dev`, `train` or `all`.
        aggregation: over subsets: `all`, `mean` or `wmean`.
        metric: `spearman`, `pearson` or `kendall`.
        similarity: `cosine`, `dot`, `euclidean` or `manhattan` (distances negative), or `given`.
        text: the text variant, for example `senteval` or `raw`.
        data: the first six digits of the hash of the data files.
        use: how the model was used, as far as a signature states it; a template is its name and digits of its
            hash, as in `promptbert#1a2b`.
        fitted: the fitted post-processing that is part of the model: `whitening256+STS-B-test`.
        version: of stsbench.

    >>> use = Use(pooling="avg", max_length=256)
    >>> str(Signature("STS16", "test", "all", "spearman", "cosine", "senteval", "3f2a91" + "0" * 58, use))
    'STS16:test:all|spearman|cosine|text:senteval|data:3f2a91||avg|len256|fp32|stsbench:...'
    """

    task: str
    split: str
    aggregation: str
    metric: str
    similarity: str
    text: str
    data: str
    use: Use = USUAL
    fitted: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        # Only printed fields are stored, so that a parsed signature equals the original.
        object.__setattr__(self, "data", self.data[:6])
        object.__setattr__(self, "use", signed_part(self.use))

    def __str__(self) -> str:
        return f"{self.protocol}||{self.model}"

    @property
    def protocol(self) -> str:
        """The part that must be equal for two scores to be comparable."""
        task, split, aggregation, *rest = (_quoted(getattr(self, name)) for name in PROTOCOL_FIELDS)
        metric, similarity, text, data = rest
        return f"{task}:{split}:{aggregation}|{metric}|{similarity}|text:{text}|data:{data}"

    @property
    def model(self) -> str:
        """The part on the model and its use."""
        post = f"|post:{_quoted(self.postprocessing)}" if self.postprocessing else ""
        return f"{use_signature(self.use)}{post}|stsbench:{_quoted(self.version)}"

    @property
    def postprocessing(self) -> str:
        """The fitted post-processing and the run's whitening (`whitening256+STS-B-test,whiten128`)."""
        return postprocessing(self.fitted, self.use)

    def model_fields(self) -> dict[str, Any]:
        """Returns the fields of the part on the model, by name."""
        used = {name: getattr(self.use, name) for name in SIGNED}
        return used | {"postprocessing": self.postprocessing, "version": self.version}

    @staticmethod
    @lru_cache(maxsize=2**12)  # a record's signatures are parsed again by each analysis
    def parse(text: str) -> "Signature":
        """Reads a signature back.

        Raises:
            ValueError: if it is not a signature.
        """
        read = _SIGNATURE.fullmatch(text)
        try:
            use = read_use(read["use"] if read else "")
        except ValueError as error:
            raise ValueError(f"not a signature: {text!r}") from error
        assert read is not None
        groups = read.groupdict("")
        *fitted, last = unquote(groups["post"]).split(",")
        if whitening := re.fullmatch(r"whiten(\d*)", last):
            use = replace(use, whiten=int(whitening[1] or 0))
        else:
            fitted.append(last)
        protocol = {name: unquote(groups[name]) for name in PROTOCOL_FIELDS}
        return Signature(**protocol, use=use, fitted=",".join(fitted), version=unquote(groups["version"]))


_SIGNATURE = re.compile(
    r"(?P<task>[^|:]*):(?P<split>[^|:]*):(?P<aggregation>[^|:]*)\|(?P<metric>[^|:]*)\|(?P<similarity>[^|:]*)"
    r"\|text:(?P<text>[^|:]*)\|data:(?P<data>[^|:]*)\|\|"
    r"(?P<use>.+?)\|(?:post:(?P<post>[^|:]*)\|)?stsbench:(?P<version>[^|:]*)"
)


def _quoted(text: str) -> str:
    # Separators of fields are escaped. A + is harmless, and common in versions.
    return quote(text, safe="+")


def postprocessing(fitted: str, use: Use) -> str:
    """Returns the processing of the vectors after encoding, for signatures and records."""
    return ",".join(filter(None, [fitted, use.whitening]))


def in_one_line(signatures: Sequence[Signature]) -> list[str]:
    """Returns the signatures of several tasks with each equal field written once, in one line where fields agree.

    >>> one = Signature("STS12", "test", "all", "spearman", "cosine", "senteval", "ab2363", Use(pooling="cls"))
    >>> in_one_line([one, replace(one, task="STS13", data="aa1705")])
    ['STS12,STS13:test:all|spearman|cosine|text:senteval|data:ab2363,aa1705||cls|fp32|stsbench:']
    """
    split = [re.split(r"([:|]+)", str(signature)) for signature in signatures]
    of_length: dict[int, list[list[str]]] = {}
    for fields in split:
        of_length.setdefault(len(fields), []).append(fields)
    return [
        "".join(",".join(field) if len(set(field)) > 1 else field[0] for field in zip(*alike, strict=True))
        for alike in of_length.values()
    ]


def differing_fields(one: Signature, other: Signature) -> tuple[str, ...]:
    """Returns the fields of the protocol in which two scores differ; none if they are comparable.

    >>> from dataclasses import replace
    >>> signature = Signature("STS16", "test", "all", "spearman", "cosine", "senteval", "3f2a91")
    >>> differing_fields(signature, replace(signature, metric="pearson", use=Use(pooling="cls")))
    ('metric',)
    """
    return tuple(name for name in PROTOCOL_FIELDS if getattr(one, name) != getattr(other, name))


def require_same_protocol(
    one: Signature, other: Signature, *, names: tuple[str, str], task: str, remedy: str
) -> None:
    """Raises if two scores are not comparable: the message names the runs, the task, a field and the remedy."""
    for field in differing_fields(one, other):
        raise UserError(
            f"{names[0]} and {names[1]} are not comparable on {task}: {field} is {getattr(one, field)} in one and "
            f"{getattr(other, field)} in the other: {remedy}."
        )
