"""Why a number is off: a claim held against every setting that people take scores with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stsbench.diagnosis import words as diagnose_words
from stsbench.diagnosis.claim import Claim
from stsbench.diagnosis.grid import Grid
from stsbench.diagnosis.search import Candidate, Search
from stsbench.diagnosis.words import label

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Diagnosis:
    """What explains a claim, or that nothing does.

    Attributes:
        model: the model that was measured, as the person named it.
        search: the claim held against the grid.
        facts: what is published about it, a sentence each.
        notes: what was not tried, and why.
        seconds: how long each stage took.
        encoding: distinct texts and sequences, how many were encoded, real and padded tokens.
    """

    model: str
    search: Search
    facts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    encoding: dict[str, int] = field(default_factory=dict)

    @property
    def claim(self) -> Claim:
        """What was claimed."""
        return self.search.claim

    @property
    def grid(self) -> Grid:
        """Every score of every setting; `.grid.table()` has them in rows."""
        return self.search.grid

    @property
    def explained(self) -> bool:
        """Whether a setting gives the claim, and not by coincidence alone."""
        return self.search.default.fits or bool(self.search.explanations)

    @property
    def verdict(self) -> str:
        """Which choice explains the claim in words, or that none does and how far off the nearest is."""
        return diagnose_words.verdict(self.search)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else to know, as what cannot be told apart, how telling it is, what is published."""
        return (*diagnose_words.remarks(self.search), *self.facts, *self.claim.notes)

    def table(self, most: int = 10) -> "pd.DataFrame":
        """Return the settings that a reader should see: the claim, the default, then what explains it.

        Columns: setting, changes (how many choices differ from the default), a column per claimed task, and off,
        the largest difference. Where nothing explains the claim, the nearest settings stand in its place.

        Args:
            most: how many settings to list below the default.
        """
        import pandas as pd

        claimed = {value.task: value.score for value in self.claim.values}
        rows: list[dict[str, Any]] = [{"setting": "claimed", "changes": None, **claimed, "off": None}]
        rows += [self._row(candidate) for candidate in self._listed(most)]
        table = pd.DataFrame(rows)
        return table.astype({"changes": "Int64"})

    def as_dict(self) -> dict[str, Any]:
        """Return the whole diagnosis as plain data, scores x 100."""
        explanations = [
            {
                **self._plain(found.best),
                "alike": [self._plain(other) for other in found.alike],
                "chance": self.search.chance(found.best.count),
            }
            for found in self.search.explanations
        ]
        return {
            "model": self.model,
            "claim": [
                {
                    "task": value.task,
                    "score": value.score,
                    "tolerance": value.tolerance,
                    "stated": dict(value.stated),
                }
                for value in self.claim.values
            ],
            "row": self.claim.row.name if self.claim.row else None,
            "explained": self.explained,
            "verdict": self.verdict,
            "default": self._plain(self.search.default)
            | {"setting": {axis.name: axis.values[axis.default] for axis in self.grid.axes}},
            "explanations": explanations,
            "nearest": self._plain(self.search.nearest),
            "nearest_single": self._plain(self.search.nearest_single),
            "settings": self.search.settings,
            "choices": {axis.name: list(axis.values) for axis in self.grid.axes},
            "remarks": list(self.remarks),
            "notes": list(self.notes),
            "seconds": self.seconds,
            "encoding": self.encoding,
        }

    def _listed(self, most: int) -> Sequence[Candidate]:
        search = self.search
        found = [one.best for one in search.explanations] or [search.nearest_single]
        if not self.explained and not search.coincidences:
            found.append(search.nearest)
        return list(dict.fromkeys([self.search.default, *found]))[: most + 1]

    def _row(self, candidate: Candidate) -> dict[str, Any]:
        words = ", ".join(label(change.choice, change.value) for change in candidate.changes)
        scores = dict(zip(self.claim.tasks, candidate.scores, strict=True))
        return {
            "setting": words or "your setting",
            "changes": candidate.count,
            **scores,
            "off": candidate.distance,
        }

    def _plain(self, candidate: Candidate) -> dict[str, Any]:
        return {
            "changes": {change.choice: change.value for change in candidate.changes},
            "count": candidate.count,
            "scores": dict(zip(self.claim.tasks, candidate.scores, strict=True)),
            "distance": candidate.distance,
            "fits": candidate.fits,
        }
