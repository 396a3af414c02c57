"""What the campaign counted: kept a part at a time, put together into one file and the page that tells of it.

`python tests/faults/harness/counts.py` puts them together.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.trials import Tally

ROOT = Path(__file__).resolve().parents[3]
PARTS = ROOT / "build" / "faults"
COUNTS = ROOT / "docs" / "reference" / "faults.json"
PAGE = ROOT / "docs" / "reference" / "faults.md"

_KINDS = {
    "files": "damaged files",
    "options": "odd values of options",
    "errors": "errors at a file operation, or a disk that is full",
    "signals": "kills and interrupts at a file operation",
    "races": "rounds of 2 to 8 processes at once",
}
COMMANDS_THAT_ARE_KILLED = frozenset({"run", "train", "report", "cache"})
RACES = ("one cache", "one run folder", "one training folder", "one token store")
"""What several processes at once are let loose on."""

_FAULTS = ("traceback", "wrong number", "loss", "hang", "words")
_PLACE = re.compile(r'"/[^"]*/(?=stsbench/)')
"""Where a checkout lies, in front of what is in it."""

_TABLE = re.compile(r"(<!-- counts -->\n).*?(<!-- end of counts -->)", re.DOTALL)


@cache
def code() -> str:
    """Return a digest of the code that is tested, the harness's included."""
    digest = hashlib.sha256()
    files = [*(ROOT / "stsbench").rglob("*.py"), *Path(__file__).parent.glob("*.py")]
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _file(part: str) -> Path:
    plain = re.sub(r"[^\w.-]+", "-", part)[:100]
    return PARTS / f"{plain}-{hashlib.sha256(part.encode()).hexdigest()[:8]}.json"


def held_before(part: str) -> bool:
    """Return whether a part was held with this very code, and found nothing."""
    path = _file(part)
    if not path.is_file():
        return False
    kept = json.loads(path.read_text(encoding="utf-8"))
    return kept["code"] == code() and not kept["faults"]


@cache
def commit() -> str:
    """Return the commit that is checked out, empty where there is none."""
    asked = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, check=False)
    return asked.stdout.decode().strip()


@cache
def surroundings() -> str:
    """Return the versions that faults may depend on."""
    libraries = [f"{name} {version(name).partition('+')[0]}" for name in ("torch", "transformers", "pandas")]
    return ", ".join([f"Python {sys.version_info.major}.{sys.version_info.minor}", *libraries])


def keep(tally: "Tally") -> None:
    """Keep the counts of a part, and the faults that it found with other code."""
    PARTS.mkdir(parents=True, exist_ok=True)
    path = _file(tally.part)
    earlier: list[str] = []
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        earlier = before.get("earlier", []) + (before["faults"] if before["code"] != code() else [])
    content = {
        **tally.as_dict(),
        "earlier": earlier,
        "code": code(),
        "commit": commit(),
        "surroundings": surroundings(),
        "date": datetime.now(UTC).date().isoformat(),
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def parts_of() -> dict[str, dict[str, str]]:
    """Return the parts of the whole campaign by kind: of each the command that it is about."""
    from harness.commands import USES

    reading, writing = (
        {use.name: command for command, uses in USES.items() for use in uses if getattr(use, what)}
        for what in ("reads", "writes")
    )
    return {
        "files": reading,
        "options": {command: command for command in USES},
        "errors": writing,
        "signals": {
            name: command for name, command in writing.items() if command.split()[0] in COMMANDS_THAT_ARE_KILLED
        },
        "races": {race: race for race in RACES},
    }


def together() -> dict[str, Any]:
    """Return the counts of all parts that were kept, by kind; what is no part any more does not count."""
    whole = parts_of()
    ends: dict[str, Counter[str]] = defaultdict(Counter)
    held: dict[str, set[str]] = defaultdict(set)
    faults: list[str] = []
    earlier: list[str] = []
    dates, commits, places = set(), Counter[str](), Counter[str]()
    for path in sorted(PARTS.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        kind, _, name = kept["part"].partition(" ")
        if name not in whole[kind]:
            continue
        ends[kind].update(kept["ends"])
        held[kind].add(name)
        faults += [_PLACE.sub('"', fault) for fault in kept["faults"]]
        earlier += [_PLACE.sub('"', fault) for fault in kept.get("earlier", [])]
        dates.add(kept["date"])
        commits[kept["commit"]] += 1
        places[kept.get("surroundings", "versions that were not noted")] += 1
    return {
        "date": max(dates, default=""),
        "commits": dict(commits.most_common()),
        "surroundings": dict(places.most_common()),
        "kinds": {
            kind: {
                "parts": len(held[kind]),
                "of": len(names),
                "ends": dict(sorted(ends[kind].items())),
                "not held": dict(Counter(what for name, what in names.items() if name not in held[kind])),
            }
            for kind, names in whole.items()
        },
        "faults": faults,
        "before": earlier,
    }


def table(counts: dict[str, Any]) -> str:
    """Return the counts as the page has them."""
    if not any(kind["ends"] for kind in counts["kinds"].values()):
        return "The campaign was not held with this version yet.\n"
    lines = ["| what was done | commands or uses | trials | the right answer | one sentence | faults |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    total = Counter[str]()
    for kind, name in _KINDS.items():
        ends = Counter(counts["kinds"][kind]["ends"])
        bad = sum(ends[fault] for fault in _FAULTS)
        told = ends["sentence"] + ends["interrupted"]
        row = Counter(trials=ends.total(), right=ends.total() - bad - told, told=told, bad=bad)
        total += row
        parts, whole = counts["kinds"][kind]["parts"], counts["kinds"][kind]["of"]
        lines.append(
            f"| {name} | {parts} of {whole} | {row['trials']} | {row['right']} | {row['told']} | {row['bad']} |"
        )
    lines.append(f"| all | | {total['trials']} | {total['right']} | {total['told']} | {total['bad']} |")
    (name, count), *others = counts["commits"].items()
    versions = [f"{count} parts with the code of commit {name}"]
    versions += [f"{count} with {name}" for name, count in others]
    places = [f"{count} with {place}" for place, count in counts["surroundings"].items()]
    held = f"Held on {counts['date']}: {', '.join(versions)} (what found a fault, once more); {'; '.join(places)}."
    lacking = {kind: found["not held"] for kind, found in counts["kinds"].items() if found["not held"]}
    left, before = _by_kind(counts["faults"]), _by_kind(counts["before"])
    said = [f"Faults that are left: {left}. Found before, and not again: {before}."]
    if lacking:
        said += ["", "Not held yet, with the number of uses where it is more than one:", ""]
    for kind, names in lacking.items():
        said.append(
            f"- {_KINDS[kind]}: " + ", ".join(f"{what} ({n})" if n > 1 else what for what, n in names.items())
        )
    return "\n".join([held, "", *lines, "", *said, ""])


def _by_kind(faults: list[str]) -> str:
    found = Counter(fault.partition(":")[0] for fault in faults)
    return ", ".join(f"{found[kind]} of the kind *{kind}*" for kind in _FAULTS if found[kind]) or "none"


def page_is_current() -> bool:
    """Return whether the page tells what the counts say."""
    counts = json.loads(COUNTS.read_text(encoding="utf-8"))
    told = _TABLE.search(PAGE.read_text(encoding="utf-8"))
    return told is not None and told[0] == f"<!-- counts -->\n{table(counts)}<!-- end of counts -->"


def write() -> None:
    """Put the counts together and write them, and the page."""
    counts = together()
    COUNTS.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_TABLE.sub(lambda found: f"{found[1]}{table(counts)}{found[2]}", page), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    write()
