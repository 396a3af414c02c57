"""Stability: does the score hold if the same sentences are typed differently?"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stsbench.analysis.base import Analysis, Row
from stsbench.analysis.parameters import DATA_DIRS, INTERVALS, SEED, TASK, TEXT_HELP, parameter
from stsbench.analysis.perturbations import changes
from stsbench.base.errors import UserError
from stsbench.cli.options import DATA
from stsbench.data.sentences import sentences_in
from stsbench.render.table import Table, Tables, interval, place
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import Subject, vectors_of
from stsbench.scoring.tasks import read_pairs_of
from stsbench.statistics.correlations import average_ranks, is_undefined, spearman
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import spearman_terms
from stsbench.statistics.intervals import plain_interval
from stsbench.statistics.similarity import pair_similarities

Floats = NDArray[np.float64]

FAR = 0.1
"""A pair has moved if its rank changes by more than this share of all pairs."""


class Retyped(NamedTuple):
    """The n pairs of a task: gold scores (n,), similarities before and after each change, and the share of changed
    distinct sentences by change.
    """

    gold: Floats
    whole: Floats
    after: Mapping[str, Floats]
    changed: Mapping[str, float]
    sharing: Sharing


class Stability(Analysis):
    """Score the same pairs with typos, changed case, punctuation or white space.

    Returns:
        One row per model and `change`: `changed`, the share of distinct sentences that it alters; `unchanged` and
        `score`, Spearman x 100 of the cosines before and after; their `difference` with `low` and `high`; and
        `moved`, the share of pairs whose rank among all n cosines changes by more than n / 10. Other columns:
        `pairs`, `task`, `split` and `text`.

    >>> result = stability(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> result.frame.loc[result.frame["change"] == "lower case", ["score", "moved"]].round(2).values.tolist()
    [[19.9, 0.01]]
    """

    name = "stability"
    title = "Stability"
    question = "does the score hold if the same sentences are typed differently?"
    look_for = "differences whose intervals include 0, and few pairs that move"
    examples = (
        "stsbench stability runs/a runs/b --figure stability.svg",
        "stsbench stability --model minilm --task STS16 --json",
    )

    reference = 0

    task = TASK
    split: str = parameter("test", "The split.", panel=DATA)
    text: str = parameter("raw", TEXT_HELP, panel=DATA)
    seed = SEED
    intervals: Intervals | None = INTERVALS
    data_dirs = DATA_DIRS

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Retyped]:
        data = read_pairs_of(self.task, self.split, self.text, self.data_dirs)
        self.constants = {"task": data.task, "split": data.split, "text": data.text}
        sentences = sentences_in(data)
        versions = {name: list(map(change, sentences)) for name, change in changes(self.seed).items()}
        distinct = len(set(sentences))
        changed = {
            name: len({old for old, new in zip(sentences, texts, strict=True) if old != new}) / distinct
            for name, texts in versions.items()
        }
        half = len(sentences) // 2
        gold, sharing = data.pairs["gold"].to_numpy(float), Sharing.of(sentences[:half], sentences[half:])
        every = [sentence for texts in (sentences, *versions.values()) for sentence in texts]
        models = {}
        for name, subject in subjects.items():
            vectors, rows = vectors_of(subject, every, self.progress)
            sides = [np.split(places, 2) for places in np.split(rows, 1 + len(versions))]
            whole, *others = (pair_similarities(vectors, left, right)["cosine"] for left, right in sides)
            models[name] = Retyped(gold, whole, dict(zip(versions, others, strict=True)), changed, sharing)
        return models

    def measure(self, model: str, given: Retyped) -> Iterator[Row]:
        gold, whole = given.gold, given.whole
        if is_undefined(whole):
            raise UserError(f"{model} gives all {len(whole)} pairs one similarity, so they have no score.")
        before, terms, ranks = spearman(gold, whole), spearman_terms(gold, whole), average_ranks(whole)
        for change, similarities in given.after.items():
            score = spearman(gold, similarities)
            low = high = float("nan")
            if self._how.interval is not None:
                spread = variance(spearman_terms(gold, similarities) - terms, given.sharing, self._how.interval)
                low, high, _ = plain_interval(score - before, spread, self._how.level)
            moved = abs(average_ranks(similarities) - ranks) > FAR * len(ranks)
            yield {
                "change": change,
                "pairs": len(gold),
                "unchanged": 100 * before,
                "score": 100 * score,
                "difference": 100 * (score - before),
                "low": 100 * low,
                "high": 100 * high,
                "moved": float(moved.mean()),
                "changed": given.changed[change],
            }

    def table(self) -> Tables:
        frame = self.frame
        table = pd.DataFrame(
            {
                "model": frame["model"],
                "change": frame["change"],
                "sentences changed": [f"{100 * share:.0f} %" for share in frame["changed"]],
                "unchanged": frame["unchanged"],
                "score": frame["score"],
                "difference": frame["difference"],
                "interval": list(map(interval, frame["low"], frame["high"])),
                "pairs moved": [f"{100 * share:.1f} %" for share in frame["moved"]],
            }
        )
        caption = f"Spearman x 100 of the cosines of changed sentences{place(frame)}"
        note = f"pairs moved: pairs whose rank changes by more than {100 * FAR:g} % of the number of pairs."
        return Tables([Table(table, caption, notes=(note,))])

    def numbers(self) -> dict[str, float]:
        return {
            f"{name} {row['change']}": float(row[name])
            for row in self.frame.to_dict("records")
            for name in ("difference", "moved")
        }

    def panels(self) -> Mapping[str, pd.DataFrame]:
        return {
            "difference × 100": self.frame.rename(columns={"change": "place", "difference": "value"}),
        }


stability = Stability.verb
