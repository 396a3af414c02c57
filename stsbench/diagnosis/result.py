"""What `diagnose` and `diagnose_vectors` return: the answer, and the settings that matter."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from stsbench.base.words import listed
from stsbench.diagnosis.axes import Axis, Claim
from stsbench.diagnosis.search import NEIGHBOURHOOD, WEAK, Candidate, Further, Grid, Search
from stsbench.encoders.protocol import Identity
from stsbench.judging.verdicts import Judgement
from stsbench.published.catalogue import checkpoint_of_system, identified_checkpoint
from stsbench.records.kinds import AVERAGE
from stsbench.render.table import Style, Table, Tables


@dataclass(frozen=True)
class Diagnosis(Judgement):
    """The settings that explain a claim, or that none does.

    Attributes:
        model: the name of the model.
        search: the claim compared with the grid.
        facts: published facts about it, as sentences.
        seconds: how long each stage took.
        encoding: distinct texts and sequences, how many were encoded, real and padded tokens.
        further: what was tried beyond the grid; None if that was not necessary, or the budget is 0.
    """

    model: str
    search: Search
    facts: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    encoding: dict[str, int] = field(default_factory=dict)
    further: Further | None = None

    @property
    def claim(self) -> Claim:
        """The numbers to explain."""
        return self.search.claim

    @property
    def grid(self) -> Grid:
        """Every score of every setting, as arrays."""
        return self.search.grid

    @property
    def answer(self) -> Search:
        """The search that explains the claim with the fewest changes, in the grid or beyond it."""
        searches = [self.search, *([self.further.search] if self.further else [])]
        explaining = [search for search in searches if search.explanations]
        return min(explaining, key=lambda search: search.explanations[0].count, default=self.search)

    @property
    def frame(self) -> pd.DataFrame:
        """Every score of every setting; see `Grid.frame`.

        If other ways of using the encoder were tried, `variation` names what each changes.
        """
        others = self.further.search.grid.frame.query("variation != ''") if self.further else pd.DataFrame()
        if others.empty:
            return self.grid.frame
        return pd.concat([self.grid.frame.assign(variation=""), others], ignore_index=True)

    @property
    def explained(self) -> bool:
        """Whether a setting gives the claim, and not by coincidence."""
        return self.search.default.fits or bool(self.answer.explanations)

    @property
    def verdict(self) -> str:
        """Which choice explains the claim, or that none does and how far off the nearest is."""
        return _verdict(self.answer, self.further.search if self.further else None)

    @property
    def sentence(self) -> str:
        """The verdict, and the options of `stsbench run` that give the claim, on lines of their own."""
        best = () if self.search.default.fits else self.answer.explanations[:1]
        return "\n".join([self.verdict, *(_command(self.answer, candidate) for candidate in best)])

    @property
    def remarks(self) -> list[str]:
        """The strength of the evidence, published facts, and untried settings, in one line each."""
        notes = [f"note: {self.notes[0]}", *self.notes[1:]] if self.notes else []
        lines = (_remarks(self.answer), (*self.facts, *self.claim.notes), notes)
        return [" ".join(sentences) for sentences in lines if sentences]

    def table(self, most: int = 10) -> Tables:
        """Returns the claim, your setting, and the settings that explain it, or else those nearest to it.

        Columns: setting, changes (how many choices differ from yours), a column per claimed task, and off (the
        largest difference).

        Args:
            most: number of settings besides yours.
        """
        search = self.answer
        candidates = list(search.explanations) or [search.nearest_single]
        if not self.explained and not search.coincidences:
            candidates.append(search.nearest)
        claimed = self._by_task(value.score for value in self.claim.values)
        rows = [{"setting": "claimed", "changes": None, **claimed, "off": None}]
        for candidate in list(dict.fromkeys([search.default, *candidates]))[: most + 1]:
            name, scores = str(candidate.changes) or "your setting", self._by_task(candidate.scores)
            rows.append({"setting": name, "changes": candidate.count, **scores, "off": candidate.distance})
        return Tables([Table(pd.DataFrame(rows).astype({"changes": "Int64"}), headline="off")])

    def to_dict(self) -> dict[str, Any]:
        """Returns the whole diagnosis except the grid as plain data, scores x 100."""
        search, further = self.answer, self.further
        explanations = [
            {**self._plain(best), "alike": list(map(self._plain, best.alike)), "chance": search.chance(best.count)}
            for best in search.explanations
        ]
        own = {axis.name: str(axis.values[0]) for axis in self.grid.axes}
        return {
            "model": self.model,
            "claim": [vars(value) for value in self.claim.values],
            "row": self.claim.row.name if self.claim.row else None,
            "explained": self.explained,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "default": {**self._plain(search.default), "setting": own},
            "explanations": explanations,
            "nearest": self._plain(search.nearest),
            "nearest_single": self._plain(search.nearest_single),
            "settings": self.search.settings,
            "choices": {axis.name: [str(value) for value in axis.values] for axis in self.grid.axes},
            "further": further and further.to_dict(),
            "remarks": [*_remarks(self.answer), *self.facts, *self.claim.notes],
            "notes": list(self.notes),
            "seconds": self.seconds,
            "encoding": self.encoding,
        }

    def to(self, style: Style) -> str:
        """Returns the table as text; as `json` all except the grid.

        Raises:
            UserError: if there is no such format.
        """
        return super().to(style) if style == "json" else self.table().to(style)

    def _by_task(self, scores: Iterable[float]) -> dict[str, Any]:
        return dict(zip(self.claim.tasks, scores, strict=True))

    def _plain(self, candidate: Candidate) -> dict[str, Any]:
        plain = {name: getattr(candidate, name) for name in ("count", "distance", "fits")}
        return {"changes": candidate.choices, "scores": self._by_task(candidate.scores), **plain}


@dataclass(frozen=True, eq=False)
class Likeness(Judgement):
    """The way of using a checkpoint that gives some vectors.

    Attributes:
        subject: what made the vectors, as the start of a sentence.
        changes: how the nearest setting differs from yours, in words; empty for yours.
        precision: in which most vectors agree; empty if they do not.
        explained: whether the nearest setting gives at least four fifths of the vectors.
        settings: the nearest settings, the best first, then yours: how many vectors agree, and the errors.
        sentences: the error of each sentence in your setting, and in the nearest one.
    """

    subject: str
    changes: tuple[str, ...]
    precision: str
    explained: bool
    settings: pd.DataFrame
    sentences: pd.DataFrame

    @property
    def frame(self) -> pd.DataFrame:
        """The nearest settings."""
        return self.settings

    @property
    def exit_code(self) -> int:
        """0 if your setting gives all vectors, except for the precision; otherwise 1."""
        return int(
            bool(self.changes) or not self.explained or self.settings["agree"].iloc[0] < len(self.sentences)
        )

    @property
    def sentence(self) -> str:
        """The answer."""
        nearest, words = self.settings.iloc[0], listed(self.changes)
        agree = f"{nearest['agree']} of {len(self.sentences)} vectors agree to {nearest['error of these']:.0e}"
        if self.exit_code == 0:
            return f"The same vectors, in {self.precision}: {agree}."
        if self.explained and words:
            return f"{self.subject} {words}: with that, {agree} ({self.precision})."
        if self.explained:
            worst = textwrap.shorten(self.sentences.sort_values("nearest")["sentence"].iloc[-1], 40)
            return f"Your vectors, in {self.precision}, but not of all sentences: {agree}; look at {worst!r}."
        left = f"the median error is {nearest['median error']:.2g}, the largest {nearest['largest error']:.2g}"
        return f"None of the settings gives these vectors. The nearest, {words or 'yours'}: {agree}; {left}."

    def table(self, most: int = 8) -> Tables:
        """Returns the nearest settings, and the sentences that differ most from yours; `most` rows of each."""
        worst = self.sentences.sort_values("your error", ascending=False, kind="stable").head(most)
        worst = worst.assign(sentence=[textwrap.shorten(text, 60) for text in worst["sentence"]])
        return Tables([Table(self.settings.head(most), decimals=6), Table(worst, decimals=6)])


_ELSEWHERE = (
    "Not tried: other weights and seeds, prompts that the checkpoint does not name, and SentEval's trained "
    "regressors (`stsbench run --tasks STS-B:supervised,SICK-R:supervised`)."
)
_COUNTS = {2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six", 7: "Seven"}


def _verdict(search: Search, beyond: Search | None) -> str:
    """Returns in a few sentences what explains the claim, or that nothing does.

    `beyond` is the search beyond the grid, if there was one.
    """
    subject, default = _subject(search.claim), search.default
    lower = subject[0].lower() + subject[1:]
    if default.fits:
        return f"Your setting gives {lower}: there is no gap to explain."
    own = f"Your setting {_result(search, default)}."
    if search.explanations:
        best = search.explanations[0]
        words, gives = setting(best), _result(search, best)
        if best.count > 1:
            together = f"{_COUNTS.get(best.count, best.count)} together do: {words} ({gives})."
            return f"No single choice explains {lower}. {together} {own}"
        comes = f"comes from {words}, which {gives}" if len(best.scores) == 1 else f"come from {words}"
        axis = best.changes[0].axis
        yours = "" if axis.cost else f" ({axis.label_of(axis.values[0])})"
        return f"{subject} {comes}. Your setting{yours} {_result(search, default)}."
    sentences = [f"None of {search.settings:,} settings gives {lower}. {own}"]
    if search.coincidences:
        count = search.coincidences[0].count
        sentences = [
            f"No simple setting gives {lower}. Changing {count} choices at once does, but that gives "
            f"{100 * search.chance(count):.0f} % of all numbers nearby, so it explains nothing. {own}"
        ]
    single, nearest = search.nearest_single, search.nearest
    if single.count:
        sentences.append(f"The nearest with one change, {setting(single)}, {_result(search, single)}.")
    if not search.coincidences and nearest.count > 1:
        sentences.append(f"The nearest of all, {setting(nearest)}, {_result(search, nearest)}.")
    if beyond is not None and beyond.nearest.count:
        sentences.append(
            f"Nor does any of {beyond.settings - 1:,} settings beyond the grid: the nearest, "
            f"{setting(beyond.nearest)}, {_result(beyond, beyond.nearest)}."
        )
    return " ".join(sentences)


def _remarks(search: Search) -> list[str]:
    """Returns further remarks on the verdict, as sentences."""
    if search.default.fits:
        return []
    if not search.explanations:
        return [_ELSEWHERE]
    best = search.explanations[0]
    sentences = [change.meaning for change in best.changes if change.meaning]
    if alike := [setting(candidate) for candidate in best.alike if candidate.count == best.count]:
        sentences.append(f"The claim fits {'; and '.join(alike)} equally well.")
    chance = search.chance(best.count)
    if chance >= WEAK:
        sentences.append(
            f"This is weak evidence: equally simple settings would explain {100 * chance:.0f} % of the numbers "
            f"within {NEIGHBOURHOOD:g} points of the claim. Give the numbers of more tasks."
        )
    return sentences


def setting(candidate: Candidate) -> str:
    """Returns the changes of a setting in words."""
    return listed([change.label for change in candidate.changes]) or "your setting"


def _command(search: Search, candidate: Candidate) -> str:
    """Returns the options of `stsbench run` to add to yours for a setting's scores."""
    # What needs other vectors comes last.
    changes = sorted(candidate.changes, key=lambda change: change.axis.cost > 0)
    changed: dict[Axis, Any] = {change.axis: change.value for change in changes}
    average = search.grid.axes[-1]
    tasks = changed.get(average, average.values[0]).tasks if AVERAGE in search.claim.tasks else search.claim.tasks
    splits = {axis.task: f":{split}" for axis, split in changed.items() if axis.task}
    names = ",".join(task + splits.get(task, "") for task in tasks)
    for axis, value in changed.items():
        names = names.replace(*axis.renames.get(value, ("", "")))
    options = [f"--tasks {names}", *(change.option for change in changes)]
    text = " ".join(filter(None, options))
    lacking = [change.label for change in changes if change.axis.cost and not change.option]
    if lacking:
        return f"`stsbench run` has no option for {listed(lacking)}. The rest is `{text}`."
    return f"To reproduce it, add `{text}` to `stsbench run`."


def _subject(claim: Claim) -> str:
    if len(claim.values) > 1:
        numbers = f"The {len(claim.values)} claimed numbers ({', '.join(claim.tasks)})"
        return numbers if claim.row is None else f"The numbers of {claim.row.name}"
    (value,) = claim.values
    number = f"{value} {'as the average' if value.task == AVERAGE else f'on {value.task}'}"
    return f"The claimed {number}" if claim.row is None else f"The {number} of {claim.row.name}"


def _result(search: Search, candidate: Candidate) -> str:
    """Returns a setting's score and how far off it is; for several numbers, how many match and the farthest."""
    values = search.claim.values
    if len(values) == 1:
        score, value = candidate.scores[0], values[0]
        number = f"gives {score:.{max(2, value.decimals)}f}"
        if candidate.fits:
            return number
        # A distance of 0.00 would look like a match.
        distance = f"{candidate.distance:.2f}" if candidate.distance >= 0.005 else "less than 0.01"
        return f"{number}, {distance} {'above' if score > value.score else 'below'}"
    if candidate.fits:
        return "gives them all"
    pairs = list(zip(candidate.scores, values, strict=True))
    given = sum(abs(score - value.score) <= value.tolerance for score, value in pairs)
    score, value = max(pairs, key=lambda pair: abs(pair[0] - pair[1].score))
    return (
        f"gives {given} of {len(values)} and is up to {candidate.distance:.2f} off "
        f"({value.task}: {score:.2f} instead of {value.score:.2f})"
    )


def facts(claim: Claim, identity: Identity) -> list[str]:
    """Returns what is published about the claimed row, as sentences: first whether it is of another model."""
    if claim.row is None:
        return []
    theirs = checkpoint_of_system(claim.row.row.system)
    yours = identified_checkpoint(identity.name, weights_sha256=identity.weights_sha256)
    sentences = []
    if theirs and yours and theirs.hub != yours.hub:
        sentences.append(
            f"{claim.row.name} is a row of {theirs.hub or theirs.name}; you measured {identity.name}."
        )
    return [*sentences, *claim.row.row.notes]
