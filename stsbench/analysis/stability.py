"""Stability: does the score hold if the same sentences are typed differently?"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import pandas as pd

from stsbench.analysis.base import Analysis, Row, intervals_of
from stsbench.analysis.inputs import DATA_DIRS, INTERVALS, SEED, TASK, TEXT_HELP, Answer, Estimates, parameter
from stsbench.base.errors import UserError
from stsbench.cli.options import DATA
from stsbench.data.sentences import sentences_in
from stsbench.render.table import Table, Tables, place
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import Subject, vectors_of
from stsbench.scoring.tasks import read_pairs_of
from stsbench.statistics.correlations import average_ranks, is_undefined, spearman
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.influence import Floats, Linear, spearman_terms
from stsbench.statistics.neighbours import pair_similarities
from stsbench.statistics.seeds import generator

Change = Callable[[str], str]

_SHORTEST = 3  # Shorter words get no typo, which would often be another word

_KEYS = ("qwertyuiopo", "asdfghjklk", "zxcvbnmn")
_NEXT_KEY = {key: right for row in _KEYS for key, right in reversed(list(pairwise(row)))}
"""The key to the right of each on an English keyboard, or to the left at the end of a row."""

_FINAL = re.compile(r"(\s*[.!?]+)\s*$")

FAR = 0.1
"""A pair has moved if its rank changes by more than this share of all pairs."""


class Retyped(NamedTuple):
    """The n pairs of a task: gold scores, and by change cosines and the share of changed distinct sentences."""

    gold: Floats
    cosines: Mapping[str, Floats]
    changed: Mapping[str, float]
    sharing: Sharing


class Stability(Analysis):
    """Score the same pairs with typos, changed case, punctuation or white space.

    Returns:
        One row per model and `change`: `changed`, the share of distinct sentences that it alters; Spearman x
        100 of the cosines before (`unchanged`) and after (`score`); their `difference` with `low` and `high`;
        and `moved`, the share of pairs whose rank changes by more than a tenth of the number of pairs.

    >>> from stsbench import stability
    >>> result = stability(lambda texts: [[len(s), s.count("e"), 1.0] for s in texts], task="sample")
    >>> result.frame.loc[result.frame["change"] == "lower case", ["score", "moved"]].round(2).values.tolist()
    [[19.9, 0.01]]
    """

    answer = Answer(
        "What do typos in 5 % of words do?", unit="points", rows={"change": "typos 5 %"}, column="difference"
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
        sentences, gold = sentences_in(data), data.pairs["gold"].to_numpy(float)
        versions = {"": sentences}
        versions |= {name: list(map(change, sentences)) for name, change in changes(self.seed).items()}
        changed = {
            name: len({old for old, new in zip(sentences, texts, strict=True) if old != new}) / len(set(sentences))
            for name, texts in versions.items()
        }
        sharing = Sharing.of(sentences[: len(gold)], sentences[len(gold) :])
        models = {}
        for name, subject in subjects.items():
            vectors, rows = vectors_of(subject, [text for of in versions.values() for text in of], self.progress)
            sides = rows.reshape(len(versions), 2, -1)
            cosines = [pair_similarities(vectors, left, right)["cosine"] for left, right in sides]
            models[name] = Retyped(gold, dict(zip(versions, cosines, strict=True)), changed, sharing)
        return models

    def measure(self, model: str, given: Retyped) -> Iterator[Row]:
        gold, whole = given.gold, given.cosines[""]
        if is_undefined(whole):
            raise UserError(f"{model} gives all {len(whole)} pairs one similarity, so they have no score.")
        before, terms, ranks = spearman(gold, whole), spearman_terms(gold, whole), average_ranks(whole)
        estimates = Estimates(self._how)
        estimates.block("", given.sharing)
        for change, cosines in list(given.cosines.items())[1:]:
            score = spearman(gold, cosines)
            difference = Linear(score - before, {"": spearman_terms(gold, cosines) - terms})
            limits = estimates.limits(difference, len(gold), scale=100)
            moved = abs(average_ranks(cosines) - ranks) > FAR * len(ranks)
            yield {
                "change": change,
                "pairs": len(gold),
                "unchanged": 100 * before,
                "score": 100 * score,
                "difference": limits.pop("value"),
                **limits,
                "moved": float(moved.mean()),
                "changed": given.changed[change],
            }

    def table(self) -> Tables:
        frame = self.frame
        table = frame[["model", "change", "unchanged", "score", "difference"]].assign(interval=intervals_of(frame))
        table.insert(2, "sentences changed", [f"{100 * share:.0f} %" for share in frame["changed"]])
        table["pairs moved"] = [f"{100 * share:.1f} %" for share in frame["moved"]]
        caption = f"Spearman x 100 of the cosines of changed sentences{place(frame)}"
        note = f"pairs moved: pairs whose rank changes by more than {100 * FAR:g} % of the number of pairs."
        return Tables([Table(table, caption, notes=(note,))])

    def panels(self) -> Mapping[str, pd.DataFrame]:
        return {"difference × 100": self.frame.rename(columns={"change": "place", "difference": "value"})}


def changes(seed: int = 0) -> dict[str, Change]:
    """Returns the changes by name.

    >>> {name: change("A cat sleeps.") for name, change in changes().items() if "typos" not in name}
    {'lower case': 'a cat sleeps.', 'upper case': 'A CAT SLEEPS.', 'final punctuation': 'A cat sleeps', \
'white space': ' A  cat  sleeps. '}
    """
    return {
        "lower case": str.lower,
        "upper case": str.upper,
        "final punctuation": toggle_punctuation,
        "white space": widen,
        "typos 5 %": partial(misspell, share=0.05, seed=seed),
        "typos 10 %": partial(misspell, share=0.10, seed=seed),
    }


def toggle_punctuation(text: str) -> str:
    """Removes a final `.`, `!` or `?`, or adds a full stop if there is none."""
    if not text.strip() or _FINAL.fullmatch(text):
        return text
    without = _FINAL.sub("", text)
    return without if without != text else f"{text.rstrip()}."


def widen(text: str) -> str:
    """Doubles white space and adds it around the text."""
    return f" {'  '.join(text.split())} " if text.strip() else text


def misspell(text: str, *, share: float, seed: int = 0) -> str:
    """Adds a typo to each word of at least 3 letters with the probability `share`; fewer are among more.

    A typo drops a letter, doubles it, swaps it with the previous one, or hits the next key; the first letter
    stays.

    >>> misspell("the children are playing in the garden", share=1.0)
    'thr chikdren ate plyaing in tje gsrden'
    """
    draws = generator(seed, "typos", text)

    def typed(match: re.Match[str]) -> str:
        # Drawn for every word, so that a larger share only adds typos.
        chance, kind, place = draws.random(3)
        word = match.group()
        return _slip(word, kind, place) if chance < share and len(word) >= _SHORTEST else word

    return re.sub(r"[^\W\d_]+", typed, text)


def _slip(word: str, kind: float, place: float) -> str:
    """Returns a word with a typo, chosen by two numbers from 0 to 1."""
    at = 1 + int(place * (len(word) - 1))
    letter, before, after = word[at], word[:at], word[at + 1 :]
    if kind < 1 / 4:
        return before + after
    if kind < 2 / 4:
        return before + letter + letter + after
    if kind < 3 / 4 and (swapped := word[: at - 1] + letter + word[at - 1] + after) != word and at > 1:
        return swapped
    key = _NEXT_KEY.get(letter.lower(), "")
    return before + (key.upper() if letter.isupper() else key) + after
