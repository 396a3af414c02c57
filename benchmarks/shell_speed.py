"""How long a person waits at the shell: each command in fresh processes, against an installed earlier version.

    python benchmarks/shell_speed.py [--against PYTHON] [--tasks sts] [--model minilm] [--only show,run]

PYTHON is the interpreter of an environment with the other version. Each version first measures the model and a
truncation of it, in a cache of its own; that is not counted. Then every command is run `--repeat` times, in turns.
`run` finds all its vectors in the cache; `diagnose` is timed at its first run, which encodes what the grid lacks,
and as `diagnose again`. Prints medians of seconds on the clock and of computing, the ratio of the latter (which
says more on a machine that others use too), and the goal on two idle cores.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

COMMANDS: Mapping[str, tuple[str, float | None]] = {
    "help": ("--help", None),
    "show": ("show {one}", 0.7),
    "check": ("check {one} --baseline {two}", 0.7),
    "run": ("run --model {model} --tasks {tasks} --out {scratch}/run --overwrite", 1.5),
    "compare": ("compare {one} {two}", 2.5),
    "length-bias": ("length-bias {one}", 3.9),
    "geometry": ("geometry {one}", 3.1),
    "repetition-bias": ("repetition-bias --model {model}", 4.0),
    "explain": ("explain {one}", 7.0),
    "report": ("report {one} --out {scratch}/report", 5.0),
    "diagnose": ("diagnose --model {model} --claim {claim}", None),
    "diagnose again": ("diagnose --model {model} --claim {claim}", 5.0),
    "train demo": ("train demo --out {scratch}/train-{number}", 22.0),
}
"""The commands with their goals in seconds, in the order in which they are run."""

ONCE = {"diagnose"}
"""What is another thing the second time."""

FINE = {0, 1, 3}
"""Exit codes: done, and what `check` and `diagnose` end with where a number does not hold."""


class Seconds(NamedTuple):
    """On the clock, and of computing, of the process and those that it started."""

    wall: float
    cpu: float


class Version(NamedTuple):
    """An installed stsbench, and a folder of its own."""

    name: str
    python: str
    folder: Path

    def timed(self, arguments: list[str]) -> Seconds:
        """Run a command; raise where it was not done."""
        here = {"STSBENCH_CACHE": str(self.folder / "cache")}
        # Modules are compiled once, as an installer does, and not in each process.
        given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        wall, cpu = time.perf_counter(), _of_children()
        ended = subprocess.run(
            [self.python, "-m", "stsbench", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=given | here,
            cwd=self.folder,
        )
        seconds = Seconds(time.perf_counter() - wall, _of_children() - cpu)
        if ended.returncode not in FINE:
            raise SystemExit(f"{self.name}: stsbench {' '.join(arguments)} ended with {ended.stderr}")
        return seconds


def _of_children() -> float:
    return sum(os.times()[2:4])


def prepared(name: str, python: str, folder: Path, model: str, tasks: str) -> Version:
    """Record the model and its first dimensions, which fills the cache, and compile the modules."""
    folder.mkdir()
    version = Version(name, python, folder)
    measure = ["run", "--model", model, "--tasks", tasks]
    version.timed([*measure, "--out", "one"])
    version.timed([*measure, "--dimensions", "16", "--out", "two"])
    return version


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", help="the interpreter of an environment with another version")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--tasks", default="sts")
    parser.add_argument("--claim", default="SICK-R=77.58", help="what diagnose is asked about")
    parser.add_argument("--only", help="commands, with commas")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    chosen = [name for name in COMMANDS if options.only is None or name in options.only.split(",")]

    with tempfile.TemporaryDirectory() as made:
        given = {"this": sys.executable} | ({"other": options.against} if options.against else {})
        versions = [
            prepared(name, python, Path(made) / name, options.model, options.tasks)
            for name, python in given.items()
        ]
        print(f"median of {options.repeat}, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
        for name in chosen:
            command, goal = COMMANDS[name]
            taken: dict[str, list[Seconds]] = {version.name: [] for version in versions}
            for number in range(1 if name in ONCE else options.repeat):
                for version in versions:
                    values = {"model": options.model, "tasks": options.tasks, "claim": options.claim}
                    places = {"one": "one", "two": "two", "scratch": "scratch", "number": number}
                    arguments = [part.format(**values, **places) for part in command.split()]
                    taken[version.name].append(version.timed(arguments))
            medians = {key: Seconds(*map(median, zip(*seconds, strict=True))) for key, seconds in taken.items()}
            line = f"{name:15}" + "".join(
                f"  {key} {seconds.wall:6.2f} s ({seconds.cpu:6.2f} of computing)"
                for key, seconds in medians.items()
            )
            if "other" in medians:
                line += f"  ratio {medians['other'].cpu / max(medians['this'].cpu, 0.01):5.2f}"
            print(line + ("" if goal is None else f"  goal {goal:g} s"), flush=True)


if __name__ == "__main__":
    main()
