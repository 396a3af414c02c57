"""What must come out: the right answer, or one sentence and nothing lost."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.commands import Use
from harness.parent import Ended
from harness.world import World

RIGHT, SENTENCE, OTHER, INTERRUPTED, KILLED = "right", "sentence", "other input", "interrupted", "killed"
"""How a case may end: with the answer of undamaged files; in a sentence; with the answer of another input of the
person's; interrupted or killed, as it was asked to.
"""

TRACEBACK, WRONG, LOSS, HANG, WORDS = "traceback", "wrong number", "loss", "hang", "words"
"""How it may not: WORDS are more than a sentence, or characters that no terminal should be sent."""

_VOLATILE = {
    "created",
    "command",
    "encoding",
    "environment",
    "fresh",
    "last used",
    "seconds",
    "stages",
    "time",
}
"""What JSON tells of the moment and the machine, and not of the answer."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x9b]")
_LONGEST_LINE = 3000
_COMPILED = "cache/compiled"
"""Where a back end's form of a model is kept."""


@dataclass(frozen=True)
class Answer:
    """What a command printed and wrote, without what differs from one moment to the next."""

    code: int
    printed: Any
    written: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """How a case ended, and of a fault what was seen."""

    kind: str
    detail: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether it should not have."""
        return self.kind in {TRACEBACK, WRONG, LOSS, HANG, WORDS}


def answer_of(use: Use, ended: Ended, world: World) -> Answer:
    """Return the answer of a command that has just ended in a world."""
    return Answer(ended.code, _readable(ended.out), written(use, world.root))


def written(use: Use, root: Path) -> dict[str, str]:
    """Return what stands at the places that a use writes, hashed."""
    contents: dict[str, str] = {}
    for name in use.writes:
        if name.startswith("../"):
            continue  # a cache is no answer
        target = root / "here" / name
        for path in sorted(target.rglob("*")) if target.is_dir() else [target]:
            if path.is_file() and not path.name.endswith(".lock"):
                contents[str(path.relative_to(root))] = _digest(path)
    return contents


def _digest(path: Path) -> str:
    content = path.read_bytes()
    if path.suffix in {".json", ".jsonl", ".md", ".svg", ".xml"}:
        content = json.dumps(_readable(content.decode("utf-8", errors="replace"))).encode()
    if path.suffix in {".png", ".pdf"}:
        content = b"a picture"  # what it shows stands beside it
    return hashlib.sha256(content).hexdigest()


def _readable(text: str) -> Any:
    try:
        return _plain(json.loads(text))
    except ValueError:
        pass
    lines = text.splitlines()
    try:
        return [_plain(json.loads(line)) for line in lines]
    except ValueError:
        return [line for line in lines if not _is_volatile(line)]


def _is_volatile(line: str) -> bool:
    return bool(re.search(r"dc:date|timestamp=|clip-path|clipPath| id=\"|xlink:href|#[0-9a-f]{8,}", line))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if name not in _VOLATILE}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def says_one_sentence(ended: Ended, use: Use) -> str | None:
    """Return what is wrong with how a mistake was told, None if nothing is."""
    lines = ended.err.strip().splitlines()
    ours = [line for line in lines if line.startswith("stsbench: ")]
    if not lines:
        return "exit code 2 and no sentence"
    if not lines[-1].startswith("stsbench: ") and not use.partial:
        return f"the last line is no sentence of ours: {lines[-1][:300]}"
    if len(ours) > 1 and not use.partial:
        return f"{len(ours)} sentences"
    # Notes may come first, a line each; what a library tells is none.
    if foreign := [line for line in lines if not _is_told(line) and not use.partial]:
        return f"told beside the sentence: {foreign[0][:300]}"
    if ended.out and not use.partial:
        return f"printed beside the sentence: {ended.out[:200]!r}"
    return None


_NOTES = re.compile(
    r"stsbench: |note: |corpus: |resumed after step |recorded in |drawn in |written to |step \d+: |\d+ files |"
    r"No benchmark data|project\. Its scores|the embedding cache |the tokenised corpus |\d+ embedding files|"
    r".* entr(y|ies) of the embedding cache|continuing without the cache: "
)


def _is_told(line: str) -> bool:
    return bool(_NOTES.match(line)) or not line


def common_fault(use: Use, ended: Ended) -> Verdict | None:
    """Return what no command may do, whatever happens to it."""
    if ended.is_hung:
        return Verdict(HANG, f"after {ended.seconds} s; told: {ended.err[-300:]}")
    if "Traceback (most recent call last)" in ended.err + ended.out:
        return Verdict(TRACEBACK, _last_lines(ended.err or ended.out))
    if ended.code < 0:
        return Verdict(TRACEBACK, f"died of signal {-ended.code}; told: {ended.err[-300:]}")
    if ended.code not in {0, 2, 130, *use.codes}:
        return Verdict(WORDS, f"exit code {ended.code}; told: {ended.err[-300:]}")
    for stream in (ended.out, ended.err):
        if found := _CONTROL.search(stream):
            return Verdict(
                WORDS, f"control character {found[0]!r} in {stream[max(0, found.start() - 80) :][:160]!r}"
            )
    longest = max(ended.err.splitlines(), key=len, default="")
    if len(longest) > _LONGEST_LINE:
        return Verdict(WORDS, f"a line of {len(longest)} characters: {longest[:200]}...")
    return None


def judge(
    use: Use,
    ended: Ended,
    world: World,
    right: Answer,
    *,
    damaged: str = "",
    may_differ: bool = False,
) -> Verdict:
    """Judge a case that has just ended; the world is as it left it.

    Args:
        use: what was run.
        ended: how it ended.
        world: where.
        right: the answer of undamaged files.
        damaged: the file that was damaged beforehand, by its name in the world.
        may_differ: whether it may have become another input, with another answer.
    """
    fault = common_fault(use, ended) or lost(use, world, damaged, is_answer=ended.code != 2)
    if fault is not None:
        return fault
    if ended.code == 2 and right.code != 2:
        told = says_one_sentence(ended, use)
        return Verdict(SENTENCE) if told is None else Verdict(WORDS, told)
    answer = answer_of(use, ended, world)
    if answer == right:
        return Verdict(RIGHT)
    if may_differ:
        return Verdict(OTHER)
    return Verdict(WRONG, difference(right, answer))


def lost(use: Use, world: World, damaged: str, *, is_answer: bool, asked: str = "") -> Verdict | None:
    """Return what is gone, changed or left half-written, if anything is.

    Args:
        use: what was run.
        world: where.
        damaged: the file that was damaged beforehand, by its name in the world.
        is_answer: whether it ended with an answer.
        asked: how a hidden name begins that was typed, so that what is called so was not left behind.
    """
    targets = [_COMPILED, *(os.path.normpath(f"here/{name}") for name in use.writes)]
    for name, (now, then) in world.changes().items():
        if name == damaged or Path(name).name in {".lock", "matplotlib"} or name.endswith(".lock"):
            continue
        if name.startswith(("tmp/", "home/")):
            return Verdict(LOSS, f"left behind: {name}") if name.startswith("tmp/") else None
        if _same(now, then):
            continue
        inside = any(name == target or name.startswith(f"{target}/") for target in targets)
        hidden = [part for part in Path(name).parts if part.startswith(".")]
        if any(not (asked and part.startswith(asked)) for part in hidden):
            return Verdict(LOSS, f"left behind: {name}")
        if not inside:
            return Verdict(LOSS, f"{'changed' if now.exists() else 'gone'}: {name}")
        if not is_answer and not name.startswith("cache/") and not use.partial and not use.again:
            return Verdict(LOSS, f"written in spite of a mistake: {name}")
    return None


def _same(now: Path, then: Path) -> bool:
    return now.is_file() and then.is_file() and now.read_bytes() == then.read_bytes()


def difference(right: Answer, answer: Answer) -> str:
    """Return the first thing that differs between two answers, in words."""
    if right.code != answer.code:
        return f"exit code {answer.code}, not {right.code}"
    if right.printed != answer.printed:
        return next(_differing(right.printed, answer.printed), "printed otherwise")
    names = sorted({**right.written, **answer.written})
    return f"written otherwise: {[n for n in names if right.written.get(n) != answer.written.get(n)][:5]}"


def _differing(one: Any, other: Any, place: str = "") -> Iterator[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in {**one, **other}:
            yield from _differing(one.get(name), other.get(name), f"{place}.{name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differing(left, right, f"{place}.{number}")
    elif one != other:
        yield f"{place.lstrip('.')}: {str(one)[:100]} became {str(other)[:100]}"


def _last_lines(text: str) -> str:
    lines = text.strip().splitlines()
    places = [line.strip() for line in lines if "/stsbench/" in line]
    return f"{lines[-1][:300]} ({places[-1] if places else ''})"
