"""What the campaign counted: kept a part at a time, put together into one file and the page that tells of it.

`python tests/faults/harness/counts.py` puts them together.
"""

import hashlib
import json
import re
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from functools import cache
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
KINDS_OF_RACES = 4
_FAULTS = ("traceback", "wrong number", "loss", "hang", "words")
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


def keep(tally: "Tally") -> None:
    """Keep the counts of a part."""
    PARTS.mkdir(parents=True, exist_ok=True)
    content = {**tally.as_dict(), "code": code(), "date": datetime.now(UTC).date().isoformat()}
    _file(tally.part).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def parts_of() -> dict[str, int]:
    """Return how many parts the whole campaign has, by kind."""
    from harness.commands import USES

    uses = [use for uses in USES.values() for use in uses]
    writing = [use for use in uses if use.writes]
    return {
        "files": sum(bool(use.reads) for use in uses),
        "options": len(USES),
        "errors": len(writing),
        "signals": sum(use.arguments[0] in COMMANDS_THAT_ARE_KILLED for use in writing),
        "races": KINDS_OF_RACES,
    }


def together() -> dict[str, Any]:
    """Return the counts of all parts that were kept, by kind."""
    whole = parts_of()
    ends: dict[str, Counter[str]] = defaultdict(Counter)
    parts: Counter[str] = Counter()
    faults: list[str] = []
    dates, codes = set(), set()
    for path in sorted(PARTS.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        kind = kept["part"].partition(" ")[0]
        ends[kind].update(kept["ends"])
        parts[kind] += 1
        faults += kept["faults"]
        dates.add(kept["date"])
        codes.add(kept["code"])
    return {
        "date": max(dates, default=""),
        "versions_of_the_code": len(codes),
        "kinds": {
            kind: {"parts": parts[kind], "of": whole[kind], "ends": dict(sorted(ends[kind].items()))}
            for kind in _KINDS
        },
        "faults": faults,
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
    faults = Counter(fault.partition(":")[0] for fault in counts["faults"])
    said = ", ".join(f"{faults[fault]} of the kind *{fault}*" for fault in _FAULTS)
    held = f"Held on {counts['date']}."
    if counts["versions_of_the_code"] > 1:
        held += (
            " Parts that found a fault were held again when it was mended, and commands that came later alone: "
            f"the parts are of {counts['versions_of_the_code']} states of the code."
        )
    return "\n".join([held, "", *lines, "", f"Faults: {said}.", ""])


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
