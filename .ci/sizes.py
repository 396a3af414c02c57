#!/usr/bin/env python3
"""Say how large the base package and its extras are, as they are installed here; no network is needed.

    .venv/bin/python .ci/sizes.py

A row is what `pip install 'stsbench[EXTRA]'` brings in all: the packages, and the megabytes of their files by what
each package recorded when it was installed. An extra of which a package is not installed is left out, and named.
"""

import sys
from importlib.metadata import Distribution, distribution

from licences import PROJECT, dependencies

from stsbench.base.errors import PACKAGES, missing

OTHERS = ("docs", "dev")


def megabytes(package: Distribution) -> float:
    """Return the size of a package's files that are here, in 10^6 bytes."""
    places = (package.locate_file(path) for path in package.files or ())
    return sum(place.stat().st_size for place in places if place.is_file()) / 1e6  # type: ignore[attr-defined]


def row(extra: str) -> tuple[str, int, float]:
    """Return the name of an extra, the number of packages that it brings with the base, and their megabytes."""
    packages = [package for package, _ in dependencies(PROJECT, [extra] if extra else [])]
    return extra, len(packages), sum(map(megabytes, packages))


def main() -> int:
    """Print a table of the base and of the extras that are here."""
    extras = ["", *PACKAGES, *OTHERS]
    absent = [extra for extra in extras if extra in PACKAGES and missing(extra)]
    print("| installed | packages | MB |\n| --- | --- | --- |")
    for extra, count, size in map(row, (extra for extra in extras if extra not in absent)):
        name = f"{PROJECT}[{extra}]" if extra else PROJECT
        print(f"| `{name}` | {count} | {size:.0f} |")
    print(f"torch {distribution('torch').version}; not installed here: {', '.join(absent) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
