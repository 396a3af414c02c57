"""Stability: does the score change if the same sentences are typed differently?"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import pandas as pd

from stsbench.analysis.base import OfSentences, Row
from stsbench.analysis.inputs import INTERVALS, SEED, TEXT_HELP, Answer, parameter
from stsbench.base.errors import UserError
from stsbench.cli.options import DATA
from stsbench.data.sentences import sentences_in
from stsbench.render.table import Table, Tables, intervals_of, place
from stsbench.scoring.subjects import Subject, vectors_of
from stsbench.statistics.correlations import average_ranks, is_undefined, spearman
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.influence import Floats, Linear, spearman_terms
from stsbench.statistics.neighbours import pair_similarities
from stsbench.statistics.seeds import generator

FEW, MANY = "typos 5 %", "typos 10 %"

FAR = 0.1  # A pair has moved if its rank changes by more than this share of all pairs
_SHORTEST = 3  # Shorter words get no typo, because it would often make another word
_FINAL = re.compile(r"\s*[.!?]+\s*$")
# The key to the right of each on an English keyboard, or to the left at the end of a row
_NEXT_KEY = dict(zip("qwertyuiopasdfghjklzxcvbnm", "wertyuioposdfghjklkxcvbnmn", strict=True))


class Retyped(NamedTuple):
    """Gold scores of n pairs, and by change their cosines and the share of changed distinct sentences."""

    gold: Floats
    cosines: Mapping[str, Floats]
    changed: Mapping[str, float]
    sharing: Sharing


class Stability(OfSentences):
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
        "What do typos in 5 % of words cost?", unit="points", rows={"change": FEW}, column="difference"
    )
    reference = 0
    split: str = parameter("test", "The split.", panel=DATA)
    text: str = parameter("raw", TEXT_HELP, panel=DATA)
    seed = SEED
    intervals = INTERVALS

    def inputs(self, subjects: Mapping[str, Subject]) -> Mapping[str, Retyped]:
        data = self.read()
        sentences, gold = sentences_in(data), data.pairs["gold"].to_numpy(float)
        versions = {"": sentences} | {name: [*map(of, sentences)] for name, of in changes(self.seed).items()}
        pairs = {name: set(zip(sentences, texts, strict=True)) for name, texts in versions.items()}
        changed = {name: sum(old != new for old, new in of) / len(of) for name, of in pairs.items()}
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
            raise UserError(f"{model} gives all {len(whole)} pairs the same similarity, so they have no score.")
        before, terms, ranks = spearman(gold, whole), spearman_terms(gold, whole), average_ranks(whole)
        self.estimates.block("", given.sharing)
        for change, cosines in list(given.cosines.items())[1:]:
            score = spearman(gold, cosines)
            difference = Linear(score - before, {"": spearman_terms(gold, cosines) - terms})
            limits = self.estimates.limits(difference, scale=100)
            moved = abs(average_ranks(cosines) - ranks) > FAR * len(ranks)
            row = {"change": change, "pairs": len(gold), "unchanged": 100 * before, "score": 100 * score}
            row |= {"difference": limits["value"], "low": limits["low"], "high": limits["high"]}
            yield row | {"moved": float(moved.mean()), "changed": given.changed[change]}

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


def changes(seed: int = 0) -> dict[str, Callable[[str], str]]:
    """Returns the changes by name."""
    return {
        "lower case": str.lower,
        "upper case": str.upper,
        "final punctuation": toggle_punctuation,
        "white space": lambda text: f" {'  '.join(text.split())} " if text.strip() else text,
        FEW: partial(misspell, share=0.05, seed=seed),
        MANY: partial(misspell, share=0.10, seed=seed),
    }


def toggle_punctuation(text: str) -> str:
    """Removes a final `.`, `!` or `?`, or adds a full stop if there is none."""
    if not text.strip() or _FINAL.fullmatch(text):
        return text
    return _FINAL.sub("", text) if _FINAL.search(text) else f"{text.rstrip()}."


def misspell(text: str, *, share: float, seed: int = 0) -> str:
    """Adds a typo to each word of at least 3 letters with the probability `share`; a larger share only adds typos.

    >>> misspell("the children are playing in the garden", share=1.0)
    'thr chikdren ate plyaing in tje gsrden'
    """
    draws = generator(seed, "typos", text)

    def typed(match: re.Match[str]) -> str:
        # Drawn for every word, so that a larger share only adds typos.
        chance, kind, place = draws.random(3)
        return _slip(match[0], kind, place) if chance < share and len(match[0]) >= _SHORTEST else match[0]

    return re.sub(r"[^\W\d_]+", typed, text)


def _slip(word: str, kind: float, place: float) -> str:
    """Omits, doubles or swaps a letter but the first, or hits the next key, by two numbers from 0 to 1."""
    at = 1 + int(place * (len(word) - 1))
    letter, before, after = word[at], word[:at], word[at + 1 :]
    swapped = word[: at - 1] + letter + word[at - 1] + after
    key = _NEXT_KEY.get(letter.lower(), "")
    hit = before + (key.upper() if letter.isupper() else key) + after
    typos = before + after, before + letter + letter + after, swapped if swapped != word and at > 1 else hit, hit
    return typos[int(4 * kind)]
