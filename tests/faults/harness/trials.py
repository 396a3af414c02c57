"""The trials: each puts something wrong, runs a command, judges what came out, and puts everything back."""

import errno
import json
import os
import random
import shutil
import signal
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from damages import ANOTHER, Damage, damages

from harness.commands import OPTIONAL, SPARED, THEIRS, USES, Use
from harness.judging import (
    INTERRUPTED,
    KILLED,
    LOSS,
    OTHER,
    RIGHT,
    SENTENCE,
    WORDS,
    WRONG,
    Answer,
    Verdict,
    answer_of,
    common_fault,
    difference,
    judge,
    lost,
    says_one_sentence,
    written,
)
from harness.options import REFUSED, Typed
from harness.parent import Ended
from harness.world import World


@dataclass
class Tally:
    """How many trials of a part of the campaign ended how, and each fault."""

    part: str
    ends: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def note(self, what: str, verdict: Verdict) -> None:
        """Take note of a trial."""
        self.ends[verdict.kind] += 1
        if verdict.is_fault:
            self.faults.append(f"{verdict.kind}: {what}: {verdict.detail}")

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"part": self.part, "trials": self.ends.total(), "ends": dict(self.ends), "faults": self.faults}


@dataclass(frozen=True)
class Bench:
    """Two worlds of different content, and the right answer of each use in both."""

    world: World
    others: World
    answers: dict[tuple[str, bool], Answer] = field(default_factory=dict)

    def right(self, use: Use, *, of_others: bool = False) -> Answer:
        """Return the answer of undamaged files."""
        key = (use.name, of_others)
        if key not in self.answers:
            world = self.others if of_others else self.world
            world.restore()
            ended = world.run(*use.arguments)
            assert ended.code in {0, *use.codes}, f"{use.name} has no answer to hold others against: {ended.err}"
            self.answers[key] = answer_of(use, ended, world)
            world.restore()
        return self.answers[key]


@dataclass(frozen=True)
class Damaged:
    """A damage that a use's file can have."""

    use: Use
    path: Path
    whose: str
    damage: Damage

    @property
    def name(self) -> str:
        """What it is called."""
        return f"`{self.use.name}` with {self.path.name} {self.damage.name}"


def file_trials(bench: Bench, use: Use, *, cuts: int, flips: int) -> list[Damaged]:
    """Return all that can happen to the files that a use reads."""
    found = []
    for pattern, whose in use.reads.items():
        paths = bench.world.paths(pattern)
        assert paths, f"no file is called {pattern}"
        # Of files that have names of their own (a cache), the one at the same place.
        theirs = bench.others.paths(pattern)
        for number, path in enumerate(paths[:3]):
            another = theirs[number] if number < len(theirs) else None
            found += [
                Damaged(use, path, whose, damage) for damage in damages(path, another, cuts=cuts, flips=flips)
            ]
    return found


def try_file(bench: Bench, trial: Damaged) -> Verdict:
    """Damage a file, run the command that reads it, and judge."""
    use, world, damage = trial.use, bench.world, trial.damage
    right = bench.right(use)
    damage.do(trial.path)
    ended = world.run(*use.arguments, is_nobody=damage.is_unreadable)
    name = str(trial.path.relative_to(world.root))
    is_theirs = trial.whose in {THEIRS, OPTIONAL}
    may_differ = (is_theirs and damage.is_of_content) or trial.whose == OPTIONAL
    if trial.whose == SPARED and damage.name == "absent":
        may_differ = trial.path.name in ended.err + ended.out + _pages(use, world)
    verdict = judge(use, ended, world, right, damaged=name, may_differ=may_differ)
    answer = answer_of(use, ended, world)
    is_of_another = verdict.kind == WRONG and damage.name == ANOTHER
    if is_of_another and answer == bench.right(use, of_others=True):
        verdict = Verdict(OTHER, "the answer of that file")
    # Of a run that `rank` leaves out it reads the record alone, and that says what it is a record of.
    elif is_of_another and trial.path.name == "run.json" and answer == _with_whole_run(bench, use, trial.path):
        verdict = Verdict(OTHER, "the answer of that file's whole run")
    is_told_otherwise = answer.printed != right.printed
    if (
        verdict.kind == OTHER
        and is_told_otherwise
        and (marks := _marks(right.printed))
        and marks == _marks(answer.printed)
    ):
        verdict = Verdict(WRONG, "another answer under the same hashes")
    world.restore()
    return verdict


def _with_whole_run(bench: Bench, use: Use, record: Path) -> Answer:
    """Return the answer where the other world's run stands, whole, in the place of ours."""
    world, place = bench.world, record.parent.relative_to(bench.world.root)
    world.restore()
    shutil.rmtree(record.parent)
    shutil.copytree(bench.others.pristine / place, record.parent)
    return answer_of(use, world.run(*use.arguments), world)


def _pages(use: Use, world: World) -> str:
    pages = [path for name in use.writes for path in (world.here / name).glob("*.md")]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def _marks(printed: Any) -> list[str]:
    """Return what an answer says of what it was computed from; nothing if it holds no hash, as an imported one."""
    found = list(_named(printed))
    return [value for _, value in found] if any("sha256" in name for name, _ in found) else []


def _named(printed: Any) -> Iterator[tuple[str, str]]:
    if isinstance(printed, dict):
        for name, value in printed.items():
            is_hash = "sha256" in name and isinstance(value, str) and len(value) == 64
            # Of a model the length too, which one of its files may set.
            if is_hash or name in {"signature", "max_length"}:
                yield name, str(value)
    for value in printed.values() if isinstance(printed, dict) else printed if isinstance(printed, list) else ():
        yield from _named(value)


# What goes wrong while a command runs.

ERRORS = (errno.ENOSPC, errno.EACCES, errno.EIO)
SIGNALS = (signal.SIGKILL, signal.SIGINT)
SIZES = (0, 200, 1_000, 4_096, 9_000, 20_000, 30_000, 60_000)
"""Bytes that a file may have at most, which stand for a disk that is nearly full."""


@dataclass(frozen=True)
class Disturbed:
    """A command during which something goes wrong."""

    use: Use
    fault: dict[str, int]

    @property
    def name(self) -> str:
        """What it is called."""
        return f"`{self.use.name}` with {self.fault}"


def events_of(bench: Bench, use: Use) -> tuple[str, ...]:
    """Return the file operations of a command that nothing disturbs."""
    bench.world.restore()
    events = bench.world.run(*use.arguments, fault={"count": True}).events
    bench.world.restore()
    return events


def disturbed(bench: Bench, use: Use, kinds: dict[str, tuple[int, ...]], most: int) -> list[Disturbed]:
    """Return the commands to disturb: at each file operation, or at so many of them.

    Args:
        bench: the worlds.
        use: the command.
        kinds: `errno` or `signal`, and the numbers to try in turn.
        most: how many file operations of it.
    """
    count = len(events_of(bench, use))
    rng = random.Random(zlib.crc32(use.name.encode()))
    places = range(1, count + 1) if count <= most else sorted(rng.sample(range(1, count + 1), most))
    return [
        Disturbed(use, {"at": place, kind: int(number)})
        for place in places
        for kind, numbers in kinds.items()
        for number in numbers
    ]


def try_disturbed(bench: Bench, trial: Disturbed) -> Verdict:
    """Run a command while something goes wrong, judge what is left, and what a repeat gives."""
    use, world, right = trial.use, bench.world, bench.right(trial.use)
    before = written(use, world.pristine)
    ended = world.run(*use.arguments, fault=trial.fault)
    verdict = _judge_disturbed(trial, ended, bench, before)
    if not verdict.is_fault:
        verdict = _judge_repeat(use, world, right) or verdict
    world.restore()
    return verdict


def _judge_disturbed(trial: Disturbed, ended: Ended, bench: Bench, before: dict[str, str]) -> Verdict:
    use, world, right = trial.use, bench.world, bench.right(trial.use)
    was_killed = trial.fault.get("signal") == signal.SIGKILL and ended.code == -signal.SIGKILL
    fault = None if was_killed else common_fault(use, ended)
    if fault is not None:
        return fault
    if lost := _half_written(use, world, right, before):
        return lost
    if was_killed:
        return Verdict(KILLED)
    # Where deleting is what failed, what was to be deleted is still there.
    could_tidy = not any(
        word in event for event in ended.events for word in ("os.remove", "os.rmdir", "os.unlink")
    )
    if could_tidy and (left := left_behind(world)):
        return Verdict(LOSS, f"left behind: {left}; told: {ended.err[-200:]}")
    if ended.code == 130 and "signal" in trial.fault:
        lines = ended.err.strip().splitlines()
        is_quiet = len(lines) <= 1 or use.partial
        return (
            Verdict(INTERRUPTED) if is_quiet else Verdict(WORDS, f"an interrupt is told so: {ended.err[-300:]!r}")
        )
    if ended.code == 2 and right.code != 2:
        told = says_one_sentence(ended, use)
        return Verdict(SENTENCE) if told is None else Verdict(WORDS, told)
    answer = answer_of(use, ended, world)
    return Verdict(RIGHT) if answer == right else Verdict(WRONG, difference(right, answer))


def _half_written(use: Use, world: World, right: Answer, before: dict[str, str]) -> Verdict | None:
    """Return what is neither as it was nor as it was to be; a training goes on later, and is judged then."""
    now = written(use, world.root)
    if use.again or "--resume" in use.arguments:
        return None
    for name in use.writes:
        target = f"here/{name}"

        def under(contents: dict[str, str], target: str = target) -> dict[str, str]:
            return {path: digest for path, digest in contents.items() if (path + "/").startswith(f"{target}/")}

        visible = {path: digest for path, digest in under(now).items() if "/." not in path}
        old, new = under(before), under(right.written)
        # The table takes its place just before `run.json`, whose hash tells that it is another one.
        allowed = ({}, old, new, old | {path: new[path] for path in new if path.endswith("items.parquet")})
        if use.is_piecewise:
            continue  # What could be had is there, and the page says what could not: the repeat is judged.
        if visible not in allowed:
            return Verdict(LOSS, f"half-written: {sorted(visible)[:8]}")
        if not visible and under(before) and not (world.root / target).is_dir() and len(under(before)) == 1:
            return Verdict(LOSS, f"gone: {target}")
    return None


def left_behind(world: World) -> str:
    """Return the first hidden file that a command left, locks apart."""
    for name, (now, then) in world.changes().items():
        is_hidden = any(part.startswith(".") for part in Path(name).parts) or name.startswith("tmp/")
        if is_hidden and not name.endswith(".lock") and now.exists() and not then.exists():
            return name
    return ""


def _judge_repeat(use: Use, world: World, right: Answer) -> Verdict | None:
    """Return what is wrong with what the same command makes of what was left, None if nothing is."""
    for arguments in filter(None, (use.again, use.arguments)):
        ended = world.run(*arguments)
        if ended.code in {0, *use.codes}:
            break
        if "finished" in ended.err and written(use, world.root) == right.written:
            return None  # It was done when it was disturbed, but for telling so.
    if fault := common_fault(use, ended):
        return Verdict(fault.kind, f"in a repeat: {fault.detail}")
    answer = answer_of(use, ended, world)
    if answer != right:
        return Verdict(
            LOSS, f"a repeat gives something else: {difference(right, answer)}; told: {ended.err[-300:]}"
        )
    left = left_behind(world)
    return Verdict(LOSS, f"a repeat leaves behind: {left}") if left else None


# Several processes at once.


def try_cache_race(bench: Bench, runners: int, *, clearing: bool) -> Verdict:
    """Have several processes fill one cold cache, while another one may clear it; then one uses it."""
    world, use = bench.world, USES["run"][1]
    right = bench.right(use)
    for file in world.paths("../cache/embeddings/*.vectors"):
        file.unlink()
    cases = [world.case(*_out(use, f"runs/race{number}")) for number in range(runners)]
    if clearing:
        cases.append(world.case("cache", "clear", "--yes"))
    verdict = Verdict(RIGHT)
    for ended in world.parent.race(cases)[:runners]:
        fault = common_fault(use, ended)
        if fault is None and ended.code:
            fault = Verdict(WORDS, f"a runner ended with {ended.code}: {ended.err[-300:]}")
        if fault is None and answer_of(use, ended, world).printed != right.printed:
            fault = Verdict(WRONG, difference(right, answer_of(use, ended, world)))
        verdict = fault or verdict
    verdict = verdict if verdict.is_fault else _judge_repeat(use, world, right) or verdict
    world.restore()
    return verdict


def _out(use: Use, folder: str) -> tuple[str, ...]:
    place = use.arguments.index("--out") + 1
    return (*use.arguments[:place], folder, *use.arguments[place + 1 :])


def try_folder_race(bench: Bench, runners: int) -> Verdict:
    """Have several processes write one run folder, some of them another measurement; then it is read."""
    world, use = bench.world, USES["run"][1]
    answers = {}
    for interval in ("dyadic", "independent"):
        arguments = (*use.arguments, "--interval", interval, "--overwrite")
        ended = world.run(*arguments)
        answers[interval] = (arguments, answer_of(use, ended, world))
        world.restore()
    order = [("dyadic", "independent")[number % 2] for number in range(runners)]
    verdict = Verdict(RIGHT)
    for interval, ended in zip(
        order, world.parent.race([world.case(*answers[key][0]) for key in order]), strict=True
    ):
        fault = common_fault(use, ended)
        if fault is None and answer_of(use, ended, world).printed != answers[interval][1].printed:
            fault = Verdict(WRONG, f"of a runner (exit code {ended.code}): {ended.err[-300:]}")
        verdict = fault or verdict
    if not verdict.is_fault and written(use, world.root) not in [answer.written for _, answer in answers.values()]:
        verdict = Verdict(LOSS, "the folder holds no runner's record")
    if not verdict.is_fault and world.run("check", "runs/new", "--baseline", "runs/new", "-q").code != 0:
        verdict = Verdict(LOSS, "the record cannot be checked")
    if not verdict.is_fault and (left := left_behind(world)):
        verdict = Verdict(LOSS, f"left behind: {left}")
    world.restore()
    return verdict


def try_training_race(bench: Bench, runners: int) -> Verdict:
    """Have several processes train in one folder: one does, the others are told so."""
    world, use = bench.world, USES["train"][0]
    right = bench.right(use)
    ends = world.parent.race([world.case(*use.arguments)] * runners)
    verdict = Verdict(RIGHT)
    for ended in ends:
        fault = common_fault(use, ended)
        if fault is None and ended.code == 2 and (told := says_one_sentence(ended, use)):
            fault = Verdict(WORDS, told)
        verdict = fault or verdict
    winners = [ended for ended in ends if ended.code == 0]
    if not verdict.is_fault and len(winners) != 1:
        verdict = Verdict(LOSS, f"{len(winners)} of {runners} trained: {[ended.err[-150:] for ended in ends]}")
    if not verdict.is_fault and (answer := answer_of(use, winners[0], world)) != right:
        verdict = Verdict(WRONG, difference(right, answer))
    if not verdict.is_fault and (left := left_behind(world)):
        verdict = Verdict(LOSS, f"left behind: {left}")
    world.restore()
    return verdict


def try_store_race(bench: Bench, runners: int, *, clearing: bool) -> Verdict:
    """Have several processes tokenise one corpus, while another one may clear the store; then one trains from it.

    They end before a first step, as they ask for more in a batch than the corpus holds.
    """
    world, use = bench.world, USES["train"][0]
    right = bench.right(use)
    world.run("cache", "clear", "--yes")
    too_large = ("train", "recipe.yaml", "--set", "optimiser.batch=4000", "--out")
    cases = [world.case(*too_large, f"race{number}") for number in range(runners)]
    if clearing:
        cases.append(world.case("cache", "clear", "--yes"))
    verdict = Verdict(RIGHT)
    for ended in world.parent.race(cases)[:runners]:
        fault = common_fault(use, ended)
        if fault is None and "fewer than one batch" not in ended.err:
            fault = Verdict(WORDS, f"a runner ended with {ended.code}: {ended.err[-300:]}")
        verdict = fault or verdict
    verdict = verdict if verdict.is_fault else _judge_repeat(use, world, right) or verdict
    world.restore()
    return verdict


# What is typed.

_SAME_ANSWER = {"--quiet", "--no-cache", "--no-analyses", "--figure", "--junit"}
"""Options that no number may depend on."""


def try_typed(bench: Bench, trial: Typed) -> Verdict:
    """Run a command with an odd value, and judge: what it printed is well-formed, what it refused it says so."""
    use, world = trial.use, bench.world
    right = bench.right(use)
    os.mkfifo(world.here / "pipe")
    ended = world.run(*trial.arguments)
    (world.here / "pipe").unlink(missing_ok=True)
    extended = replace(use, writes=(*use.writes, *_named_by(trial, world)))
    first = (trial.value or "").partition("/")[0]
    asked = first if first.startswith(".") and first != "." else ""
    verdict = common_fault(use, ended) or lost(extended, world, "", is_answer=ended.code != 2, asked=asked)
    if verdict is None and ended.code == 2 and right.code != 2:
        told = says_one_sentence(ended, use)
        verdict = Verdict(SENTENCE) if told is None else Verdict(WORDS, told)
    if verdict is None and ended.code != 2 and trial.is_number and trial.value in REFUSED:
        verdict = Verdict(WRONG, f"{trial.value} was taken for a number: {ended.out[:200]}")
    if verdict is None and trial.option in _SAME_ANSWER and ended.code == right.code:
        answer = answer_of(use, ended, world)
        if answer.printed != right.printed:
            verdict = Verdict(WRONG, difference(right, answer))
    if verdict is None and ended.code != 2 and "--json" in use.arguments and not _is_strict_json(ended.out):
        verdict = Verdict(WRONG, f"printed what is no JSON: {ended.out[:200]}")
    world.restore()
    return verdict or Verdict(RIGHT)


def _named_by(trial: Typed, world: World) -> list[str]:
    """Return what a command may write since an option's value names it; several figures are named after one."""
    if not trial.is_path or not trial.value or trial.value.startswith("/"):
        return []
    ending = Path(trial.value).suffix
    stem = trial.value.removesuffix(ending)
    changed = [name.removeprefix("here/") for name in world.changes()]
    return [trial.value, *(name for name in changed if name.startswith(f"{stem}-") and name.endswith(ending))]


def _is_strict_json(text: str) -> bool:
    def refuse(name: str) -> None:
        raise ValueError(name)

    if not text.lstrip().startswith(("{", "[")):
        return True  # another format was asked for, or a list of what there is
    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True
