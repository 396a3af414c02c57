"""The parameters of analyses: each is a keyword argument of the verb and an option of the command."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion

LARGEST = 1_000_000
"""The most that a parameter counts: draws, buckets, sub-words. More is a typing mistake."""

DATA = "Data"
"""The heading of the options that choose data."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of an analysis.

    Attributes:
        default: the default value.
        help: what it is, for `--help` and the documentation of the verb.
        flags: the names of its option; by default its own name.
        kind: the type of a value on the command line; by default that of the default value.
        limits: the smallest and the largest number allowed, for each number of a list.
        choices: the values allowed.
        example: for a list that is typed with commas, an example of one; other lists repeat the option.
        panel: the heading of its option in `--help`.
        has_option: whether the command has an option for it.
    """

    default: Any
    help: str
    flags: tuple[str, ...] = ()
    kind: Any = None
    limits: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()
    example: str = ""
    panel: str | None = None
    has_option: bool = True

    def check(self, name: str, value: Any) -> None:
        """Raises a UserError if a value is not allowed."""
        several = isinstance(value, Iterable) and not isinstance(value, str)
        for item in value if several else [] if value is None else [value]:
            if self.choices and item not in self.choices:
                raise UserError(f"{name} {item!r}: {suggestion(item, self.choices)}")
            if self.limits and not self.limits[0] <= item <= self.limits[1]:
                raise UserError(f"{name} {item}: expected {self.limits[0]:,.10g} to {self.limits[1]:,.10g}.")


def parameter(default: Any, help: str, **about: Any) -> Any:
    """Declares a parameter of an analysis; see `Parameter`."""
    return Parameter(default, help, **about)


TASKS: Sequence[str] = parameter(
    (),
    "The tasks, with commas; by default all of a run, the seven STS tasks, or the sample.",
    flags=("--tasks", "-t"),
    example="STS12,STS-B",
    panel=DATA,
)
TASK: str | None = parameter(
    None, "The task; by default `STS-B`, or the sample if its data is not here.", kind=str, panel=DATA
)
SPLIT: str | None = parameter(None, "The split; by default all of the task.", kind=str, panel=DATA)
TEXT: str = parameter("senteval", TEXTS := "The text: `senteval` (tokenised, lower-cased) or `raw`.", panel=DATA)
OWN_DATA: Sequence[str | Path] = parameter(
    (),
    "A file with the sentences of a run on your own pairs; records hold no sentences. Repeatable.",
    flags=("--data",),
    kind=Path,
    panel=DATA,
)
DATA_DIRS: Sequence[str | Path] = parameter(
    (),
    "A folder to search for data before `STSBENCH_DATA` and the cache. Repeatable.",
    flags=("--data-dir",),
    kind=Path,
    panel=DATA,
)
INTERVALS: Any = parameter(None, "How intervals are computed, an `Intervals`.", has_option=False)
SEED: int = parameter(0, "The random seed.", limits=(0, 2**32 - 1))
