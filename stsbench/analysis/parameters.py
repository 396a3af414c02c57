"""The parameters of analyses: each is a keyword argument of the verb and an option of the command."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.cli.options import DATA, LARGEST, LARGEST_SEED, DataDirs, OwnTexts


@dataclass(frozen=True)
class Parameter:
    """A parameter of an analysis.

    Attributes:
        default: the default value.
        help: what it is, for `--help` and the documentation of the verb.
        flags: the names of its option; by default its own name.
        kind: the type of a value on the command line, or of each in a list; by default that of the default value.
        limits: the smallest and the largest number allowed, for each number of a list.
        choices: the values allowed.
        example: for a list that is typed with commas, an example of one; other lists repeat the option.
        panel: the heading of its option in `--help`.
    """

    default: Any
    help: str
    flags: tuple[str, ...] = ()
    kind: Any = None
    limits: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()
    example: str = ""
    panel: str | None = None

    def check(self, name: str, value: Any) -> None:
        """Raises a UserError if a value is not allowed."""
        option = max(self.flags, key=len, default=f"--{name.replace('_', '-')}")
        several = isinstance(value, Iterable) and not isinstance(value, str)
        for item in value if several else [] if value is None else [value]:
            if self.choices and item not in self.choices:
                raise UserError(f"{option} {item!r}: {suggestion(item, self.choices)}")
            if self.limits and not self.limits[0] <= item <= self.limits[1]:
                raise UserError(f"{option} {item}: expected {self.limits[0]:,.10g} to {self.limits[1]:,.10g}.")


COUNT = (1, LARGEST)
"""The limits of a count."""


def parameter(default: Any, help: str, **about: Any) -> Any:
    """Declares a parameter of an analysis; see `Parameter`."""
    return Parameter(default, help, **about)


def _folders(alias: Any) -> Any:
    """Declares a repeatable path that commands of other rooms have, too."""
    _, option = get_args(alias)
    # In `Annotated`, the first argument of `typer.Option` is a flag.
    return Parameter((), option.help, (option.default,), Path, panel=option.rich_help_panel)


TASKS: Sequence[str] = parameter(
    (),
    "The tasks, with commas; by default all of a run, the seven STS tasks, or the sample.",
    flags=("--tasks", "-t"),
    kind=str,
    example="STS12,STS-B",
    panel=DATA,
)
TASK: str | None = parameter(
    None, "The task; by default `STS-B`, or the sample if its data is not here.", kind=str, panel=DATA
)
SPLIT: str | None = parameter(None, "The split; by default all of the task.", kind=str, panel=DATA)
TEXT_HELP = "The text: `senteval` (tokenised, lower-cased) or `raw`."
TEXT: str = parameter("senteval", TEXT_HELP, panel=DATA)
OWN_DATA: Sequence[str | Path] = _folders(OwnTexts)
DATA_DIRS: Sequence[str | Path] = _folders(DataDirs)
INTERVALS: Any = parameter(None, "How intervals are computed, an `Intervals`.")
SEED: int = parameter(0, "The random seed.", limits=(0, LARGEST_SEED))
CORPUS: str | Path = parameter("sample", "The corpus: a file with one sentence a line, or `sample`.")
