"""What `diagnose` returns: the verdict, the settings that matter, every score."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from stsbench.diagnosis import words
from stsbench.diagnosis.claim import Claim
from stsbench.diagnosis.grid import Grid
from stsbench.diagnosis.scores import Further
from stsbench.diagnosis.search import Candidate, Search
from stsbench.judging.verdicts import Judgement
from stsbench.render.table import Style, Table, Tables


@dataclass(frozen=True)
class Diagnosis(Judgement):
    """What explains a claim, or that nothing does.

    Attributes:
        model: the name of the model.
        search: the claim compared with the grid; `search.beyond` with what was tried beyond the grid.
        facts: what is published about it, as sentences.
        seconds: how long each stage took.
        encoding: distinct texts and sequences, how many were encoded, real and padded tokens.
        further: what was tried beyond the grid; None if that was not necessary, or not wanted.
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
        beyond = self.search.beyond
        if self.further is None or not beyond.explanations or self.search.default.fits:
            return self.search
        within = self.search.explanations
        fewer = not within or beyond.explanations[0].best.count < within[0].best.count
        return beyond if fewer else self.search

    @property
    def frame(self) -> pd.DataFrame:
        """Every score of every setting; see `Grid.frame`."""
        return self.grid.frame

    @property
    def explained(self) -> bool:
        """Whether a setting gives the claim, and not by coincidence."""
        return self.search.default.fits or bool(self.answer.explanations)

    @property
    def verdict(self) -> str:
        """Which choice explains the claim in words, or that none does and how far off the nearest is."""
        return words.verdict(self.answer, self.search.beyond if self.further else None)

    @property
    def sentence(self) -> str:
        """The verdict, and the options of `stsbench run` that give the claim, on lines of their own."""
        causes = () if self.search.default.fits else self.answer.explanations[:1]
        return "\n".join([self.verdict, *(words.command(self.answer, cause.best) for cause in causes)])

    @property
    def remarks(self) -> list[str]:
        """How strong the evidence is, what is published, and what was not tried, in one line each."""
        notes = [f"note: {self.notes[0]}", *self.notes[1:]] if self.notes else []
        lines = (words.remarks(self.answer), (*self.facts, *self.claim.notes), notes)
        return [" ".join(sentences) for sentences in lines if sentences]

    def table(self, most: int = 10) -> Tables:
        """Returns the claim, your setting, and the settings that explain it, or else those nearest to it.

        Columns: setting, changes (how many choices differ from yours), a column per claimed task, and off (the
        largest difference).

        Args:
            most: number of settings besides yours.
        """
        search = self.answer
        candidates = [cause.best for cause in search.explanations] or [search.nearest_single]
        if not self.explained and not search.coincidences:
            candidates.append(search.nearest)
        claimed = [value.score for value in self.claim.values]
        rows = [("claimed", None, claimed, None)] + [
            (
                ", ".join(change.label for change in candidate.changes) or "your setting",
                candidate.count,
                candidate.scores,
                candidate.distance,
            )
            for candidate in list(dict.fromkeys([search.default, *candidates]))[: most + 1]
        ]
        records = [
            {"setting": name, "changes": count, **dict(zip(self.claim.tasks, scores, strict=True)), "off": off}
            for name, count, scores, off in rows
        ]
        return Tables([Table(pd.DataFrame(records).astype({"changes": "Int64"}), headline="off")])

    def to_dict(self) -> dict[str, Any]:
        """Returns the whole diagnosis except the grid as plain data, scores x 100."""
        search, further = self.answer, self.further
        causes = [
            {
                **self._plain(cause.best),
                "alike": [self._plain(candidate) for candidate in cause.alike],
                "chance": search.chance(cause.best.count),
            }
            for cause in search.explanations
        ]
        return {
            "model": self.model,
            "claim": [vars(value) for value in self.claim.values],
            "row": self.claim.row.name if self.claim.row else None,
            "explained": self.explained,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "default": self._plain(search.default)
            | {"setting": {axis.name: str(axis.values[0]) for axis in self.grid.axes}},
            "explanations": causes,
            "nearest": self._plain(search.nearest),
            "nearest_single": self._plain(search.nearest_single),
            "settings": self.search.settings,
            "choices": {axis.name: [str(value) for value in axis.values] for axis in self.grid.axes},
            "further": further and {**vars(further), "settings": self.search.beyond.settings},
            "remarks": [*words.remarks(self.answer), *self.facts, *self.claim.notes],
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

    def _plain(self, candidate: Candidate) -> dict[str, Any]:
        return {
            "changes": candidate.choices,
            "count": candidate.count,
            "scores": dict(zip(self.claim.tasks, candidate.scores, strict=True)),
            "distance": candidate.distance,
            "fits": candidate.fits,
        }
