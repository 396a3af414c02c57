"""What a verb's parameter says of its option beside name, type, default and its line under `Args`.

    def check(run: ..., *, tolerance: Points | None = None, out: NewFolder | None = None) -> Check: ...

A command is made from its verb (`stsbench.cli.verbs`), so that an option is declared here alone: in the signature
that `help()` shows. A parameter of a kind that nobody can type, such as a function, is no option. What only a
command has a use for, such as how it prints, is declared in the same words, with its `Help`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

LARGEST = 1_000_000
"""Of whatever an option counts: draws, buckets, sub-words. More is a slip, and would fill the memory."""

LARGEST_SEED = 2**32 - 1
"""What NumPy, scikit-learn and torch all take."""


@dataclass(frozen=True)
class Within:
    """A number, or several, has to be finite and from `low` to `high`."""

    low: float = -LARGEST
    high: float = LARGEST


@dataclass(frozen=True)
class Written:
    """The path is written: whether that can be done is told before the work.

    Attributes:
        what: `told later` where the command says itself whether it is a file or a folder, and checks it.
    """

    what: Literal["file", "folder", "figure", "told later"]


class Spelled:
    """How the option is typed, if not by the parameter's name: `Spelled("--set", "KEY=VALUE")`.

    Args:
        words: the option's names, and what stands for its value; of an argument that alone, or nothing.
    """

    def __init__(self, *words: str) -> None:
        self.names = [word for word in words if word.startswith("-")]
        self.metavar = next((word for word in words if not word.startswith("-")), None)


@dataclass(frozen=True)
class Commas:
    """Several values are typed with commas; `advice` is what to do where one, `{!r}`, is not of the right kind."""

    advice: str = ""


@dataclass(frozen=True)
class Named:
    """The value is a name before it is a path: it is taken as it is typed."""


@dataclass(frozen=True)
class Panel:
    """The heading above the option in the help of its command."""

    heading: str


@dataclass(frozen=True)
class Help:
    """What the help of the command says, where there is no line under `Args`, or one that does not fit."""

    text: str


@dataclass(frozen=True)
class More:
    """What the command's help says behind the line under `Args`."""

    text: str


MODEL, DATA, RUN, OUTPUT = "Model", "Data", "Run", "Output"
"""The headings that options stand under in a command's help."""

Points = Annotated[float, Within(0, 100)]
Count = Annotated[int, Within(1)]
NameOrPath = Annotated[str | Path, Named()]

DEPENDENCE_HELP = (
    "`dyadic` counts pairs that share a sentence as dependent, `components` those that a chain of shared "
    "sentences joins, `independent` none."
)

EVERYWHERE = {
    "data_dirs": (Spelled("--data-dir"), Panel(DATA)),
    "data": (Panel(DATA),),
    "split": (Panel(DATA),),
    "subset_column": (Panel(DATA),),
    "task": (Panel(DATA),),
    "tasks": (Panel(DATA),),
    "text": (Panel(DATA),),
    "interval": (Spelled("--interval", "METHOD"), More(DEPENDENCE_HELP)),
    "level": (Within(0, 1),),
    "out": (Spelled("--out", "-o"), Written("folder")),
    "seed": (Within(0, LARGEST_SEED),),
    "use_cache": (Spelled("--no-cache"), Panel(RUN), Help("Neither read nor write the embedding cache.")),
}
"""What a parameter of this name means in every verb, where its annotation says nothing else."""
