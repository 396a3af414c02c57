"""Damaged files, odd options, failing disks and killed processes: the right answer, or one sentence and no loss.

Every gate runs the same few trials of each kind; `pytest -m campaign tests/faults` runs all of them.
"""

import errno
import hashlib
import json
import os
import random
import re
import signal
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from damages import DAMAGES
from fault_table import KILLED, PATHS, REAL, TABLE, TEXTS, UNDEFINED, WHOLE, Command
from fault_world import Ended, World, build
from typer.main import get_command

from stsbench.analysis import ANALYSES
from stsbench.cli.app import BEST_KNOWN, app

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

VOLATILE = {"created", "command", "encoding", "environment", "fresh", "last used", "seconds", "stages", "time"}
VOLATILE_LINE = re.compile(r"dc:date|timestamp=|clip-path|clipPath| id=\"|xlink:href|#[0-9a-f]{8,}|seconds")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x9b]")

Answer = tuple[int | None, Any, dict[str, str]]
"""The exit code, the printed output and the digests of written files, without what depends on the moment."""


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return build(tmp_path_factory.mktemp("faults") / "world")


def stable(text: str) -> Any:
    """Returns an output without what depends on the moment and the machine."""
    for values in ([text], text.splitlines()):
        try:
            return [without_volatile(json.loads(value)) for value in values]
        except ValueError:
            pass
    return [line for line in text.splitlines() if not VOLATILE_LINE.search(line)]


def without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_volatile(inner) for name, inner in value.items() if name not in VOLATILE}
    return [without_volatile(inner) for inner in value] if isinstance(value, list) else value


def is_below(name: str, folders: str) -> bool:
    places = [os.path.normpath(f"here/{folder}") for folder in folders.split()]
    return any(name == place or name.startswith(f"{place}/") for place in places)


def written(command: Command, root: Path) -> dict[str, str]:
    """Returns the digest of each file that a command writes, the cache aside."""
    digests = {}
    for path in sorted((root / "here").rglob("*")):
        name = str(path.relative_to(root))
        if is_below(name, command.writes) and path.is_file() and path.suffix != ".lock":
            content = path.read_bytes()
            if path.suffix in {".json", ".jsonl", ".md", ".svg", ".xml", ".html"}:
                content = json.dumps(stable(content.decode(errors="replace"))).encode()
            if path.suffix in {".png", ".pdf"}:
                content = b"a picture"
            digests[name] = hashlib.sha256(content).hexdigest()
    return digests


def answer_of(command: Command, ended: Ended, world: World) -> Answer:
    return ended.code, stable(ended.out), written(command, world.root)


@cache
def right(command: Command, world: World) -> Answer:
    """Returns the answer for undamaged files."""
    world.restore()
    ended = world.run(*command.words)
    assert ended.code in {0, *command.codes}, (command.line, ended)
    answer = answer_of(command, ended, world)
    world.restore()
    return answer


def misbehaviour(command: Command, ended: Ended) -> str:
    """Returns what no command may do."""
    if ended.code is None:
        return "hangs"
    if "Traceback (most recent call last)" in ended.err + ended.out or ended.code < 0:
        return f"traceback or signal {ended.code}"
    if ended.code not in {0, 2, 130, *command.codes}:
        return f"exit code {ended.code}"
    if CONTROL.search(ended.out + ended.err):
        return "control characters"
    lines = ended.err.strip().splitlines() or [""]
    if ended.code == 2 and 2 not in command.codes and not command.is_partial:
        sentences = [line for line in lines if line.startswith("stsbench: ")]
        if sentences != lines[-1:] or ended.out or any(re.search("Warning|Error", line) for line in lines[:-1]):
            return "not one sentence"
    return ""


def losses(command: Command, world: World, ended: Ended, damaged: str = "", named: str = "") -> str:
    """Returns the first file that is left behind, gone, changed, or written in spite of a mistake."""
    for name in world.changes():
        if name == damaged or name.startswith(f"{damaged}/") or (named and is_below(name, named)):
            continue
        if name.startswith("tmp/") or any(part.startswith(".") for part in Path(name).parts):
            return f"left behind: {name}"
        if not is_below(name, command.writes) and not name.startswith("cache/"):
            return f"changed or gone: {name}"
        if ended.code == 2 and not name.startswith("cache/") and not command.is_partial and not command.resume:
            return f"written in spite of a mistake: {name}"
    return ""


def hashes(printed: Any) -> list[str]:
    """Returns the hashes, signatures and maximum lengths in an answer: what it was computed from."""
    if isinstance(printed, dict):
        marks = [str(value) for key, value in printed.items() if re.search("sha256|signature|max_length", key)]
        return marks + hashes(list(printed.values()))
    return [mark for value in printed for mark in hashes(value)] if isinstance(printed, list) else []


def demand(trial: str, fault: str, ended: Ended) -> None:
    assert not fault, f"{trial}: {fault}\nexit code {ended.code}\n{ended.err[-1500:]}"


def few(trials: list[Any], count: int) -> list[Any]:
    """Marks all trials as campaign, except the same few quick ones."""
    quick = [number for number, trial in enumerate(trials) if not trial[0].is_slow]
    chosen = set(random.Random(12).sample(quick, count))
    return [
        trial if number in chosen else pytest.param(*trial, marks=pytest.mark.campaign)
        for number, trial in enumerate(trials)
    ]


def name_of(value: Any) -> str:
    return value.line[:60] if isinstance(value, Command) else ascii(value)[1:41]


def all_commands() -> dict[str, Any]:
    group: Any = get_command(app)
    found = {}
    for name in (*group.list_commands(None), *(f"explain {name}" for name in ANALYSES if name != BEST_KNOWN)):
        command = group.get_command(None, name)
        inner = getattr(command, "commands", {})
        found |= {f"{name} {each}": inner[each] for each in inner} or {name: command}
    return found


def test_every_command_has_a_row_in_the_table() -> None:
    names = all_commands()
    assert [
        name for name in names if not any(f"{command.line} ".startswith(f"{name} ") for command in TABLE)
    ] == []


FILES = [
    (command, pattern, damage)
    for command in TABLE
    for pattern in f"{command.ours} {command.yours} {command.optional}".split()
    for damage in (*DAMAGES, "another")
]


def another(path: Path, root: Path) -> Path | None:
    """Returns another file of the same kind, if there is one."""
    name = path.name if path.suffix != ".vectors" else "*.vectors"
    content = path.read_bytes()
    return next((file for file in sorted(root.rglob(name)) if file.read_bytes() != content), None)


@pytest.mark.parametrize(("command", "pattern", "damage"), few(FILES, 14), ids=name_of)
def test_a_damaged_file(world: World, command: Command, pattern: str, damage: str) -> None:
    expected = right(command, world)
    for path in world.paths(pattern):
        if damage != "another":
            DAMAGES[damage](path)
        elif other := another(path, world.pristine):
            path.write_bytes(other.read_bytes())
        ended, name = world.run(*command.words), str(path.relative_to(world.root))
        fault = misbehaviour(command, ended) or losses(command, world, ended, damaged=name)
        answer = answer_of(command, ended, world)
        if not fault and ended.code != 2 and answer != expected and pattern not in command.optional.split():
            is_new_input = pattern in command.yours.split() and damage not in {"absent", "a folder", "a pipe"}
            pages = "".join(page.read_text() for page in world.root.glob("here/report/*.md"))
            is_reported = damage == "absent" and path.name in ended.out + ended.err + pages
            is_whole_record = damage == "another" and "items.parquet" not in command.ours
            if not is_new_input and not is_reported and not is_whole_record:
                fault = "another answer"
            elif is_new_input and answer[1] != expected[1] and hashes(answer[1]) == hashes(expected[1]) != []:
                fault = "another answer under the same hashes"
        world.restore()
        demand(f"{name}: {damage}", fault, ended)


def typed() -> Iterator[tuple[Command, str, str | None]]:
    """Yields each option of each command with each odd value of its type, and each flag."""
    for name, about in all_commands().items():
        command = next(row for row in TABLE if f"{row.line} ".startswith(f"{name} "))
        for option in about.params:
            if option.param_type_name == "option" and option.is_flag:
                yield from ((command, flag, None) for flag in (*option.opts, *option.secondary_opts))
                continue
            described = getattr(option, "type_descriptor", None)
            kind = str(described.annotation if described else type(option.type).__name__).lower()
            is_path = "path" in kind.replace("pathlib", "")
            values = WHOLE if "int" in kind else REAL if "float" in kind else PATHS if is_path else TEXTS
            spelling = max(option.opts, key=len) if option.param_type_name == "option" else "--"
            yield from ((command, spelling, value) for value in values)


@pytest.mark.parametrize(("command", "option", "value"), few(list(typed()), 18), ids=name_of)
def test_an_odd_value_of_an_option(world: World, command: Command, option: str, value: str | None) -> None:
    expected = right(command, world)
    os.mkfifo(world.root / "here/pipe")
    words = [option] if value is None else [f"{option}={value}"] if option != "--" else [option, value]
    ended = world.run(*command.words, *words)
    (world.root / "here/pipe").unlink(missing_ok=True)
    fault = misbehaviour(command, ended) or losses(command, world, ended, named=(value or "").partition(" ")[0])
    if not fault and ended.code != 2 and value in UNDEFINED and values_are_numbers(command, option):
        fault = f"{value} was taken for a number"
    if not fault and option in {"--quiet", "--no-cache"} and answer_of(command, ended, world)[1] != expected[1]:
        fault = "another answer"
    if not fault and ended.code == 0 and "--json" in command.words and value is None and option.startswith("--no"):
        assert ended.out.lstrip()[:1] in {"{", "["}
    world.restore()
    demand(f"{command.line} {option} {value}", fault, ended)


def values_are_numbers(command: Command, option: str) -> bool:
    return any((command, option, value) in ODD for value in ("1e308", "9223372036854775808"))


ODD = set(typed())
ERRORS = (errno.ENOSPC, errno.EACCES, errno.EIO)
SIGNALS = (signal.SIGKILL, signal.SIGINT)
SIZES = (0, 1_000, 9_000, 30_000)
"""Limits on the size of files, as on an almost full disk."""

WRITING = [command for command in TABLE if command.writes]
KILLS = [command for command in WRITING if command.line.startswith(KILLED)]
PLACES = range(12)
"""The parts of a command's file operations in which an error or a signal is planted."""

FAULTS = [
    *((command, place, "errno", number) for command in WRITING for place in PLACES for number in ERRORS),
    *((command, place, "signal", number) for command in KILLS for place in PLACES for number in SIGNALS),
    *((command, 0, "size", size) for command in WRITING for size in SIZES),
]


@cache
def count_events(command: Command, world: World) -> int:
    count = len(world.run(*command.words).events)
    world.restore()
    return count


@pytest.mark.parametrize(("command", "place", "kind", "number"), few(FAULTS, 9), ids=name_of)
def test_an_error_or_a_signal_in_the_middle(
    world: World, command: Command, place: int, kind: str, number: int
) -> None:
    expected, events = right(command, world), count_events(command, world)
    chance = random.Random(zlib.crc32(f"{command.line} {place}".encode())).random()
    fault = {kind: int(number)} | (
        {} if kind == "size" else {"at": 1 + int(events * (place + chance) / len(PLACES))}
    )
    before = written(command, world.pristine)
    ended = world.run(*command.words, **fault)
    was_killed = number == signal.SIGKILL and ended.code == -signal.SIGKILL
    problem = "" if was_killed else misbehaviour(command, ended)
    problem = problem or half_written(command, world, before, expected[2])
    # If deleting failed, what was to be deleted is still there.
    failed = ended.events[fault["at"] - 1] if "at" in fault and len(ended.events) >= fault["at"] else ""
    if not was_killed and not failed.startswith(("os.remove", "os.rmdir")):
        problem = problem or left_behind(world)
    if ended.code == 130:
        problem = problem or (
            "a noisy interrupt" if len(ended.err.splitlines()) > 1 and not command.is_partial else ""
        )
    elif ended.code != 2 and not was_killed and answer_of(command, ended, world) != expected:
        problem = problem or "another answer"
    if not problem:
        problem, ended = repeat(command, world, expected)
    world.restore()
    demand(f"{command.line} with {fault}", problem, ended)


def half_written(command: Command, world: World, before: dict[str, str], new: dict[str, str]) -> str:
    """Returns what is neither as before nor as it would be; trainings and folders of results are left out."""
    if command.resume or command.is_partial:
        return ""
    for place in command.writes.split():
        old_files, new_files, now = (
            {name: digest for name, digest in files.items() if is_below(name, place) and "/." not in name}
            for files in (before, new, written(command, world.root))
        )
        # The table is written before `run.json`, which has its hash.
        tables = {name: digest for name, digest in new_files.items() if name.endswith("items.parquet")}
        if now not in ({}, old_files, new_files, old_files | tables) or (not now and len(old_files) == 1):
            return f"half-written: {sorted(now)}"
    return ""


def left_behind(world: World) -> str:
    """Returns the first new temporary file."""
    for name in world.changes():
        is_hidden = name.startswith("tmp/") or any(part.startswith(".") for part in Path(name).parts)
        if is_hidden and (world.root / name).exists():
            return f"left behind: {name}"
    return ""


def repeat(command: Command, world: World, expected: Answer) -> tuple[str, Ended]:
    """Returns what is wrong after the same command, or the one that resumes, is run again."""
    for line in filter(None, (command.resume, command.line)):
        ended = world.run(*line.split())
        if ended.code in {0, *command.codes}:
            break
        if "finished" in ended.err and written(command, world.root) == expected[2]:
            return "", ended
    problem = misbehaviour(command, ended)
    if not problem and answer_of(command, ended, world) != expected:
        problem = "a repeat gives another answer"
    return problem or left_behind(world), ended


RACES = [
    ("a cache", "run -m model --data pairs.tsv --out runs/race{} --json", (0,)),
    ("a run folder", "run -m model --data pairs.tsv --out runs/race --json", (0,)),
    ("a training folder", "train recipe.yaml --out race -q", (0, 2)),
    ("a token store", "train recipe.yaml --out race{} -q", (0,)),
    ("a cleared cache", "run -m model --data pairs.tsv --out runs/race{} --json", (0,)),
]


@pytest.mark.parametrize(
    ("what", "line", "codes"),
    [race if "run" in race[1] else pytest.param(*race, marks=pytest.mark.campaign) for race in RACES],
    ids=[race[0] for race in RACES],
)
def test_several_processes_at_once(world: World, what: str, line: str, codes: tuple[int, ...]) -> None:
    assert world.run("cache", "clear", "--yes").code == 0
    lines = [tuple(line.format(number).split()) for number in range(3)]
    also = [("cache", "clear", "--yes")] if what == "a cleared cache" else []
    all_ended = world.run_at_once([*lines, *also])[:3]
    left = left_behind(world)
    run = next(command for command in TABLE if command.line.startswith(line[:30]))
    world_answer = right(run, world)[1]
    for ended in all_ended:
        demand(what, misbehaviour(run, ended) or left, ended)
        assert ended.code in codes, ended.err
        assert ended.code == 2 or "--json" not in line or stable(ended.out) == world_answer
    assert sum(ended.code == 0 for ended in all_ended) == (1 if 2 in codes else 3)
