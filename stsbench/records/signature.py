"""The signature: what a score means, in one line.

`STS16:test:all|spearman|cosine|text:senteval|data:3f2a91||avg|len256|fp32|stsbench:0.1.0`

Before the double bar stands the protocol: two scores compare only if it is equal. After it stands the model:
how it was used, which two models may well differ in.
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from stsbench.base.errors import UserError
from stsbench.encoders.use import SIGNED, USUAL, Use
from stsbench.encoders.use_text import read_use, signed_part, use_signature

_DATA_DIGITS = 6

UNKNOWN = "-"
"""What stands where a score was imported and its file does not say."""


PROTOCOL_FIELDS = ("task", "split", "aggregation", "metric", "similarity", "text", "data")
"""Two scores compare only if they agree in these."""


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
        use: how the model was used, as far as a signature says it; a template is its name, and digits that stand
            for it, as in `promptbert#1a2b`.
        fitted: what was done to the vectors by what was fitted: `whitening256+STS-B-test`.
        version: of stsbench.

    A field is `UNKNOWN` where the score was imported and its file does not say.

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
        # Kept is what is printed alone, so that a parsed signature equals its origin.
        object.__setattr__(self, "data", self.data[:_DATA_DIGITS])
        object.__setattr__(self, "use", signed_part(self.use))

    @property
    def protocol(self) -> str:
        """The part that must be equal for two scores to compare."""
        task, split, aggregation, *rest = (_quoted(getattr(self, name)) for name in PROTOCOL_FIELDS)
        metric, similarity, text, data = rest
        return f"{task}:{split}:{aggregation}|{metric}|{similarity}|text:{text}|data:{data}"

    @property
    def model(self) -> str:
        """The part that says how the model was used."""
        post = [f"post:{_quoted(self.postprocessing)}"] if self.postprocessing else []
        parts = [use_signature(self.use), *post]
        return "|".join([*parts, f"stsbench:{_quoted(self.version)}"])

    @property
    def postprocessing(self) -> str:
        """What was done to the vectors by a fit, and by the run (`whitening256+STS-B-test,whiten128`)."""
        return ",".join(filter(None, [self.fitted, self.use.whitening]))

    def model_fields(self) -> dict[str, Any]:
        """Return by name what the part says that is about the model."""
        used = {name: getattr(self.use, name) for name in SIGNED}
        return used | {"postprocessing": self.postprocessing, "version": self.version}

    def __str__(self) -> str:
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
    r"(?P<use>.+?)\|(?:post:(?P<post>[^|:]*)\|)?stsbench:(?P<version>[^|:]*)"
)


@lru_cache(maxsize=2**12)
def _parsed(text: str) -> Signature:
    # Kept, as a record's signatures are read again by all that is said about it.
    read = _SIGNATURE.fullmatch(text)
    try:
        use = read_use(read["use"] if read else "")
    except ValueError as error:
        raise ValueError(f"not a signature: {text!r}") from error
    assert read is not None
    groups = read.groupdict("")
    *fitted, last = unquote(groups["post"]).split(",")
    whitening = re.fullmatch(r"whiten(\d*)", last)
    use = replace(use, whiten=int(whitening[1] or 0) if whitening else None)
    return Signature(
        **{name: unquote(groups[name]) for name in PROTOCOL_FIELDS},
        use=use,
        fitted=",".join(fitted if whitening else [*fitted, last]),
        version=unquote(groups["version"]),
    )


def differing_fields(one: Signature, other: Signature) -> tuple[str, ...]:
    """Return the fields of the protocol in which two scores differ; none if they compare.

    >>> from dataclasses import replace
    >>> signature = Signature("STS16", "test", "all", "spearman", "cosine", "senteval", "3f2a91")
    >>> differing_fields(signature, replace(signature, metric="pearson", use=Use(pooling="cls")))
    ('metric',)
    """
    return tuple(name for name in PROTOCOL_FIELDS if getattr(one, name) != getattr(other, name))


def require_same_protocol(
    one: Signature, other: Signature, *, names: tuple[str, str], task: str, remedy: str
) -> None:
    """Refuse two scores that do not compare: the message names the runs, the task, a field and the remedy."""
    for field in differing_fields(one, other):
        raise UserError(
            f"{names[0]} and {names[1]} do not compare on {task}: {field} is {getattr(one, field)} in one and "
            f"{getattr(other, field)} in the other: {remedy}."
        )


def _quoted(text: str) -> str:
    # What separates the fields must not stand inside one. A + is harmless, and usual in versions.
    return quote(text, safe="+")
