"""Protocols: named sets of the choices that make an STS score.

| protocol | over subsets | metric | similarity | SICK-R | who reports so |
|---|---|---|---|---|---|
| `simcse` | `all` | Spearman | cosine | test | SimCSE, ESimCSE, MoCoSE |
| `senteval` | `wmean` | Spearman | cosine | test | the original SentEval's headline, SBERT-era papers |
| `mteb` | `all` | Spearman | cosine | all 9927 pairs | MTEB |

SentEval's own paper prints Pearson: `--protocol senteval --metric pearson`. The regressors that the original
SentEval trains on STS-B and SICK-R are another measurement and no part of these protocols.
"""

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

from stsbench.base.errors import UserError
from stsbench.base.options import Panel, Spelled
from stsbench.base.words import suggestion
from stsbench.statistics.aggregation import Aggregation
from stsbench.statistics.correlations import CORRELATIONS, Metric
from stsbench.statistics.similarity import SIMILARITIES

AGGREGATIONS: tuple[Aggregation, ...] = ("all", "mean", "wmean")
AVERAGE_PRECISION = "ap"
"""The metric that tells pairs of the labels 1 and 0 apart: it makes a pair classification of a task of pairs."""

METRICS = (*CORRELATIONS, AVERAGE_PRECISION)
TEXTS = ("senteval", "raw")


@dataclass(frozen=True)
class Protocol:
    """How similarities become scores.

    Attributes:
        name: the preset it started from.
        aggregation: over the subsets of a task: `all`, `mean` or `wmean`.
        metric: `spearman`, `pearson` or `kendall`; `ap`, average precision, of pairs with labels.
        similarity: `cosine`, `dot`, `euclidean` or `manhattan` (distances negative).
        text: the text variant, `senteval` or `raw`.
        sick_split: the split of SICK-R; all other tasks are scored on `test`.
    """

    name: str = "simcse"
    aggregation: Aggregation = "all"
    metric: Metric | Literal["ap", "mean"] = "spearman"
    similarity: str = "cosine"
    text: str = "senteval"
    sick_split: str = "test"


PROTOCOLS = MappingProxyType(
    {
        "simcse": Protocol("simcse"),
        "senteval": Protocol("senteval", aggregation="wmean"),
        "mteb": Protocol("mteb", sick_split="all"),
    }
)


def choose_protocol(
    name: Annotated[str, Spelled("--protocol")] = "simcse",
    *,
    aggregation: str | None = None,
    metric: str | None = None,
    similarity: str | None = None,
    text: Annotated[str | None, Panel("Scores")] = None,
) -> Protocol:
    """Return a preset with some of its choices replaced.

    Args:
        name: the preset of the four choices below: `simcse`, `senteval` or `mteb`.
        aggregation: how the subsets of a task become one score: `all`, `mean` or `wmean`.
        metric: the correlation: `spearman`, `pearson` or `kendall`.
        similarity: the similarity of two vectors: `cosine`, `dot`, `euclidean` or `manhattan` (distances
            negative).
        text: the text to encode: `senteval` (tokenised, lower-cased) or `raw`.

    Raises:
        UserError: if a name is unknown.

    >>> choose_protocol("mteb", metric="pearson").metric
    'pearson'
    """
    changes: dict[str, Any] = {}
    for option, value, allowed in (
        ("protocol", name, PROTOCOLS),
        ("aggregation", aggregation, AGGREGATIONS),
        ("metric", metric, METRICS),
        ("similarity", similarity, SIMILARITIES),
        ("text", text, TEXTS),
    ):
        if value is not None and value not in allowed:
            raise UserError(f"unknown {option} {value!r}: {suggestion(value, allowed)}")
        if value is not None and option != "protocol":
            changes[option] = value
    return replace(PROTOCOLS[name], **changes)
