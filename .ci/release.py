#!/usr/bin/env python3
"""Hold a release's tag against what the project says of itself, and cut its notes from CHANGELOG.md.

    python .ci/release.py v0.9.0 > notes.md

prints the section of that version. It ends with 1 and a sentence if `stsbench/_version.py` or CITATION.cff name
another version, or the changelog has no dated section of it with something in it.

The version stands in a file and is not made from the tag: every signature carries it, and a record is only as good
as its signature. Computed from git it would be another one in each checkout past a tag, and none in an unpacked
archive.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class NotReadyError(Exception):
    """What keeps a tag from being released, in a sentence."""


def version_of(root: Path) -> str:
    """Return the version that the package says it is."""
    (version,) = re.findall(
        r'^__version__ = "(.+)"$', (root / "stsbench" / "_version.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    return str(version)


def notes_of(changelog: str, version: str) -> tuple[str, str]:
    r"""Return the date of a version in a changelog, and its section below the heading.

    >>> notes_of("## [Unreleased]\n\n## [1.0.0] - 2026-01-31\n\n- A.\n\n## [0.9.0] - 2025-12-01", "1.0.0")
    ('2026-01-31', '- A.\n')
    """
    heading = re.search(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", changelog, re.MULTILINE)
    if heading is None:
        raise NotReadyError(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`: date what is released.")
    # It ends at the next version, or at the links that the headings lead to.
    section = re.split(r"^(?:## |\[[^\]]+\]: )", changelog[heading.end() :], maxsplit=1, flags=re.MULTILINE)[
        0
    ].strip()
    if not section:
        raise NotReadyError(f"CHANGELOG.md says nothing of {version}: write what changed.")
    return heading[1], f"{section}\n"


def released(root: Path, tag: str) -> str:
    """Return the notes of a tag that may be released.

    Raises:
        NotReadyError: if the tag, the package, the citation and the changelog do not name one version and date.
    """
    version = version_of(root)
    if tag != f"v{version}":
        raise NotReadyError(f"the tag is {tag} and stsbench/_version.py says {version}: they must be one version.")
    date, notes = notes_of((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    citation = (root / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    for line in (f"version: {version}", f"date-released: {date}"):
        if line not in citation:
            raise NotReadyError(f"CITATION.cff does not say `{line}`, as the changelog does.")
    return notes


def main(arguments: list[str]) -> int:
    """Print the notes of the tag; return 1 if it is not ready."""
    if len(arguments) != 1:
        sys.stderr.write("release: name the tag, v1.2.3.\n")
        return 2
    try:
        sys.stdout.write(released(ROOT, arguments[0]))
    except NotReadyError as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
