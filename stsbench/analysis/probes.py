"""`probes`: is a sentence nearer to a paraphrase than to itself with one thing changed that changes the meaning?

Minimal pairs by kind of change, as in HEROS (Chiang et al. 2023, arXiv 2306.05083), with a paraphrase beside each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from stsbench.analysis.result import AnalysisResult, CommandWithIntervals
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.cli.options import DataDirs, names
from stsbench.render.figures import colours, legend_above, new_figure, shortened, style
from stsbench.render.table import Table, Tables, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stsbench.data.triples import Triples
    from stsbench.scoring.settings import Intervals
    from stsbench.scoring.subjects import Subject, Wanted
    from stsbench.statistics.dependence import Sharing, Variance
    from stsbench.statistics.intervals import Limits

PARAPHRASE, CHANGED, GAP, ORDER, TIED = "paraphrase", "changed", "gap", "order", "tied"

_SAME_COSINE = 1e-6
"""Cosines that are no further apart than that are one: rounding of vectors in fp32 orders no triple."""

_LABEL = 16
"""Characters of a kind's name that a figure has room for."""


class Probes(AnalysisResult):
    """How far models take a changed meaning from a sentence, against a paraphrase of it, by kind of change."""

    name = "probes"
    title = "Probes of meaning"
    question = "is a paraphrase nearer than a small change of the meaning?"
    look_for = "a gap below 0, or a right order below 50 %: common words count for more than meaning"

    def __init__(self, frame: pd.DataFrame, notes: Sequence[str] = ()) -> None:
        super().__init__(frame)
        self._notes = tuple(notes)

    def table(self) -> Tables:
        """Return a row for each kind and model; of several models also their differences to the first."""
        own = self.frame[self.frame["against"] == ""]
        paired = self.frame[self.frame["against"] != ""]
        where = f": {self.frame['triples'].iloc[0]} triples" if "triples" in self.frame else ""
        rows = [
            {"kind": kind, "model": model, "triples": of[GAP]["items"]}
            | {measure: 100 * of[measure]["value"] for measure in (PARAPHRASE, CHANGED, GAP)}
            | {f"{GAP}: interval": _limits(of[GAP]), "right order %": 100 * of[ORDER]["value"]}
            | {"right order: interval": _limits(of[ORDER])}
            for (kind, model), of in _by_measure(own)
        ]
        caption = f"Mean cosine x 100 to a paraphrase, and to the sentence with its meaning changed{where}"
        tables = [Table(pd.DataFrame(rows), caption, notes=self.notes)]
        if len(paired):
            rows = [
                {"kind": kind, "model": model, GAP: 100 * of[GAP]["value"], f"{GAP}: interval": _limits(of[GAP])}
                | {"right order, points": 100 * of[ORDER]["value"], "right order: interval": _limits(of[ORDER])}
                for (kind, model), of in _by_measure(paired)
            ]
            caption = f"Differences x 100 to {paired['against'].iloc[0]} on the same triples"
            tables.append(Table(pd.DataFrame(rows), caption))
        return Tables(tables)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed of the triples, and which cosines put them in no order."""
        own = self.frame[(self.frame["against"] == "") & (self.frame["measure"] == TIED)]
        tied = (own["value"] * own["items"]).groupby(own["model"], sort=False).sum()
        return self._notes + tuple(
            f"{model}: both cosines are the same in {count:.0f} triples, which are not in the right order."
            for model, count in tied.items()
            if count
        )

    def numbers(self) -> dict[str, float]:
        """Return the share of triples in the right order by kind."""
        right = self.frame[(self.frame["against"] == "") & (self.frame["measure"] == ORDER)]
        return {f"{row['kind']}, right order": float(row["value"]) for row in right.to_dict("records")}

    def plot(self) -> "Figure":
        """Draw by kind the share of triples in the right order, and the gap, each with its interval."""
        own = self.frame[self.frame["against"] == ""]
        kinds, models = list(dict.fromkeys(own["kind"])), list(dict.fromkeys(own["model"]))
        palette = colours(list(self.frame["model"]))
        with style():
            figure = new_figure(height=1.0 + (0.14 + 0.09 * len(models)) * len(kinds))
            panels = figure.subplots(1, 2, sharey=True)
            for axes, measure, scale in zip(panels, (ORDER, GAP), (100, 1), strict=True):
                axes.axvline(50 if measure == ORDER else 0, color="0.4", linewidth=0.8)
                for number, model in enumerate(models):
                    part = own[(own["model"] == model) & (own["measure"] == measure)]
                    # Models stand below one another around each kind's place.
                    places = np.array([kinds.index(kind) for kind in part["kind"]])
                    places = places + (number - (len(models) - 1) / 2) * 0.7 / len(models)
                    value = scale * part["value"].to_numpy()
                    ends = np.stack([value - scale * part["low"], scale * part["high"] - value])
                    colour = palette[model]
                    axes.errorbar(value, places, xerr=ends, fmt="none", color=colour, elinewidth=1, capsize=1.5)
                    axes.plot(value, places, "o", color=colour, markersize=3, label=model)
            panels[0].set_xlim(-3, 103)
            panels[0].set_yticks(range(len(kinds)), [shortened(kind, _LABEL) for kind in kinds])
            panels[0].invert_yaxis()
            panels[0].set_xlabel("right order, %")
            panels[1].set_xlabel("gap of cosines")
            legend_above(figure, panels[0])
        return figure


def _by_measure(frame: pd.DataFrame) -> "list[tuple[tuple[str, str], dict[str, dict[Any, Any]]]]":
    """Return the rows of each kind and model by their measure; models stand side by side."""
    return [
        ((str(kind), str(model)), {row["measure"]: row for row in rows.to_dict("records")})
        for kind, part in frame.groupby("kind", sort=False)
        for model, rows in part.groupby("model", sort=False)
    ]


def _limits(row: Mapping[Any, Any]) -> str:
    return interval(100 * row["low"], 100 * row["high"])


def probes(
    runs: "Wanted | Sequence[Wanted] | None" = None,
    *,
    triples: str | Path = "bundled",
    kinds: Sequence[str] = (),
    intervals: "Intervals | None" = None,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Probes:
    """Probe runs or models with triples: a sentence, a paraphrase, and the sentence with its meaning changed.

    A triple is in the right order if the sentence is nearer to the paraphrase than to the change, by cosine. Where
    the change is small and the paraphrase is in other words (negation, antonym, role swap, number, tense,
    quantifier), common words speak for the wrong order; where both are edits of one size (synonym, typo,
    reordering), they speak for neither.

    Args:
        runs: records or their folders; or encoders, or what `load` makes one of.
        triples: `bundled`, `heros` (`stsbench data get heros`), or a file with the columns `kind`, `sentence`,
            `paraphrase` and `changed`.
        kinds: the kinds to look at; by default all that there are.
        intervals: how intervals are computed. Triples of one kind with the same sentence are dependent.
        data_dirs: folders to look for HEROS in.
        progress: told how far encoding is.

    Returns:
        One row per model, `kind` and `measure`: the mean cosine of the sentence with its `paraphrase` and with
        itself `changed`; their `gap`, paraphrase less changed; `order`, the share of triples in the right order;
        `tied`, the share whose two cosines are the same to 0.000001, which are in no order. `value`, `low` and
        `high`: Student's t for means, Wilson's interval for shares; `items` counts triples. Of several models also
        rows of `gap` and `order` `against` the first, whose `value` is the mean difference on the same triples, of
        shares with Newcombe's interval; `against` is empty else. The column `triples` names the set.

    Raises:
        UserError: if the triples cannot be read, a model gives all sentences one vector, or a sentence was never
            encoded and the model is not here.

    >>> probe = probes(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], kinds=["negation", "typo"])
    >>> probe.frame["kind"].unique().tolist(), probe.frame["measure"].unique().tolist()
    (['negation', 'typo'], ['paraphrase', 'changed', 'gap', 'order', 'tied'])
    """
    from stsbench.analysis.inputs import analysable
    from stsbench.data.triples import load_triples
    from stsbench.scoring.settings import Intervals

    subjects = analysable(runs)
    read = load_triples(triples, kinds, data_dirs)
    cosines = {name: _cosines(name, subject, read, progress) for name, subject in subjects.items()}
    kind_of, sentences = [row.kind for row in read.rows], [row.sentence for row in read.rows]
    frame = probes_frame(cosines, kind_of, sentences, intervals or Intervals())
    return Probes(frame.assign(triples=read.name), read.notes)


class Cosines(NamedTuple):
    """The cosines of n sentences with their paraphrases and with their changes, both (n,)."""

    paraphrase: "NDArray[np.float64]"
    changed: "NDArray[np.float64]"


def _cosines(name: str, subject: "Subject", triples: "Triples", progress: Progress) -> Cosines:
    from stsbench.scoring.subjects import vectors_of
    from stsbench.statistics.similarity import pair_similarities

    texts = [text for triple in triples.rows for text in (triple.sentence, triple.paraphrase, triple.changed)]
    vectors, rows = vectors_of(subject, texts, progress)
    sentence, paraphrase, changed = rows.reshape(-1, 3).T
    cosines = Cosines(*(pair_similarities(vectors, sentence, side)["cosine"] for side in (paraphrase, changed)))
    if not (np.abs(1 - np.concatenate(cosines)) > _SAME_COSINE).any() or not vectors.any():
        raise UserError(
            f"{name} gives every sentence of the triples ({triples.name}) the same vector, so that none is nearer "
            "than another: check how the model is loaded (--pooling, --template)."
        )
    return cosines


def probes_frame(
    models: Mapping[str, Cosines], kinds: Sequence[str], sentences: Sequence[str], intervals: "Intervals"
) -> pd.DataFrame:
    """Put the cosines of n triples, by model, into a table; see `probes`.

    Args:
        models: by model the cosines of all triples.
        kinds: (n,) the kind of each triple.
        sentences: (n,) the sentence of each: triples of a kind that have the same one are dependent.
        intervals: how intervals are computed.
    """
    from stsbench.statistics.dependence import Sharing
    from stsbench.statistics.intervals import share_difference_interval

    rows: list[dict[str, Any]] = []
    of_kind, of_sentence = np.array(kinds, dtype=object), np.array(sentences, dtype=object)
    for kind in dict.fromkeys(kinds):
        chosen = np.flatnonzero(of_kind == kind)
        sharing = Sharing.of(np.unique(of_sentence[chosen], return_inverse=True)[1])
        first: tuple[str, dict[str, NDArray[np.float64]]] | None = None
        for model, cosines in models.items():
            values = _values(cosines.paraphrase[chosen], cosines.changed[chosen])
            about = {"model": model, "kind": kind, "items": len(chosen)}
            for measure, of in values.items():
                limits = (_of_share if measure in {ORDER, TIED} else _of_mean)(of, sharing, intervals)
                rows.append(about | {"against": "", "measure": measure} | _row(of, limits))
            first = first or (model, values)
            if model != first[0]:
                baseline, theirs = first
                for measure in (GAP, ORDER):
                    difference = values[measure] - theirs[measure]
                    limits = _of_mean(difference, sharing, intervals)
                    if measure == ORDER:
                        shares = values[ORDER], theirs[ORDER]
                        of_each = (_of_share(share, sharing, intervals) for share in shares)
                        limits = share_difference_interval(*shares, *of_each)
                    rows.append(about | {"against": baseline, "measure": measure} | _row(difference, limits))
    return pd.DataFrame(rows, columns=["model", "against", "kind", "measure", "items", "value", "low", "high"])


def _values(paraphrase: "NDArray[np.float64]", changed: "NDArray[np.float64]") -> "dict[str, NDArray[np.float64]]":
    """Return the (n,) values whose means are the measures."""
    gap = paraphrase - changed
    right, tied = gap > _SAME_COSINE, abs(gap) <= _SAME_COSINE
    return {
        PARAPHRASE: paraphrase,
        CHANGED: changed,
        GAP: gap,
        ORDER: right.astype(float),
        TIED: tied.astype(float),
    }


def _row(values: "NDArray[np.float64]", limits: "Limits") -> dict[str, float]:
    return {"value": float(values.mean()), "low": limits.low, "high": limits.high}


def _of_mean(values: "NDArray[np.float64]", sharing: "Sharing", intervals: "Intervals") -> "Limits":
    from stsbench.statistics.intervals import Limits, plain_interval

    # What differs by rounding alone has no spread: an interval would be one of rounding.
    if intervals.interval is None or values.max() - values.min() <= _SAME_COSINE:
        return Limits(nan, nan, "no spread")
    return plain_interval(float(values.mean()), _variance(values, sharing, intervals), intervals.level)


def _of_share(values: "NDArray[np.float64]", sharing: "Sharing", intervals: "Intervals") -> "Limits":
    from stsbench.statistics.intervals import Limits, share_interval

    if intervals.interval is None:
        return Limits(nan, nan, "undefined")
    # Wilson's interval is of the normal distribution: the share itself says what its variance is.
    variance = replace(_variance(values, sharing, intervals), df=inf)
    sentences = len(values) if intervals.interval == "independent" else sharing.sentences
    return share_interval(float(values.mean()), variance, sentences, intervals.level)


def _variance(values: "NDArray[np.float64]", sharing: "Sharing", intervals: "Intervals") -> "Variance":
    from stsbench.statistics.dependence import variance
    from stsbench.statistics.influence import mean_terms

    return variance(mean_terms(values), sharing, intervals.interval or "independent")


@dataclass(frozen=True)
class ProbesCommand(CommandWithIntervals):
    """Probe for meaning: is a sentence closer to its paraphrase than to a version with another meaning?

    Nine kinds of changes, from negation to word order, in a set that comes with stsbench; or HEROS, or your own
    triples.

    Examples:
    * `stsbench probes runs/a runs/b --figure probes.svg`
    * `stsbench probes --model minilm --kinds negation,number --json`
    * `stsbench probes --model minilm --triples mine.tsv`
    """

    verb = staticmethod(probes)
    result = Probes

    triples: Annotated[
        str,
        typer.Option(
            help="`bundled`, `heros`, or a file with columns `kind`, `sentence`, `paraphrase`, `changed`."
        ),
    ] = "bundled"
    kinds: Annotated[str | None, typer.Option(help="The kinds of changes, with commas; by default all.")] = None
    data_dirs: DataDirs = None

    def keywords(self) -> dict[str, Any]:
        """Return the options as `probes` takes them."""
        return super().keywords() | {"kinds": names(self.kinds)}
