"""Whatever happens to files, options, disks and processes: the right answer, or one sentence and nothing lost.

The gate holds a few trials of each kind, the same each time, and `pytest -m long` some more.
`pytest -m campaign tests/faults` holds all of them and writes its counts; `harness` says how.
"""

import os
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from harness.commands import USES, Use
from harness.counts import (
    COMMANDS_THAT_ARE_KILLED,
    held_before,
    keep,
    page_is_current,
    parts_of,
)
from harness.options import commands, typed
from harness.trials import (
    ERRORS,
    SIGNALS,
    SIZES,
    Bench,
    Disturbed,
    Tally,
    disturbed,
    file_trials,
    try_cache_race,
    try_disturbed,
    try_file,
    try_folder_race,
    try_store_race,
    try_training_race,
    try_typed,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

ALL_USES = [use for uses in USES.values() for use in uses]
READING = [use for use in ALL_USES if use.reads]
WRITING = [use for use in ALL_USES if use.writes]
KILLED = [use for use in WRITING if use.arguments[0] in COMMANDS_THAT_ARE_KILLED]

RACES: dict[str, Callable[[Bench, int, bool], Any]] = {
    "one cache": lambda bench, runners, mixed: try_cache_race(bench, runners, clearing=mixed),
    "one run folder": lambda bench, runners, _: try_folder_race(bench, runners),
    "one training folder": lambda bench, runners, _: try_training_race(bench, runners),
    "one token store": lambda bench, runners, mixed: try_store_race(bench, runners, clearing=mixed),
}


def so_many(gate: int, long: int) -> pytest.MarkDecorator:
    """Let the gate hold so many of a test's trials, and the long tests others."""
    return pytest.mark.parametrize("count", [gate, pytest.param(long, marks=pytest.mark.long)])


def few(trials: Sequence[Any], count: int) -> list[Any]:
    """Return so many of the trials, the same each time and spread over all of them."""
    chosen = random.Random(12).sample(range(len(trials)), min(count, len(trials)))
    return [trials[number] for number in sorted(chosen)]


def hold(part: str, trials: Sequence[Any], attempt: Callable[[Any], Any]) -> Tally:
    """Hold some trials; return how they ended."""
    tally = Tally(part)
    for trial in trials:
        tally.note(trial.name, attempt(trial))
    return tally


def demand_none(tally: Tally) -> None:
    """Fail if there was a fault, and name them all."""
    assert tally.ends.total(), "nothing was tried"
    assert not tally.faults, "\n".join(tally.faults)


def test_every_command_is_declared_and_every_declaration_is_a_command() -> None:
    known, declared = set(commands()), set(USES)
    assert known - declared == set(), "declare how these are run in tests/faults/harness/commands.py"
    assert declared - known == set(), "these are no commands any more"


def test_every_option_of_every_command_is_tried() -> None:
    for name, command in commands().items():
        tried = {trial.option for trial in typed(name, command)}
        for parameter in command.params:
            assert tried & {*parameter.opts, *parameter.secondary_opts}, f"{name}: {parameter.name}"


def test_the_page_on_faults_tells_the_last_counts() -> None:
    whole = {"files": READING, "errors": WRITING, "signals": KILLED}
    names = {kind: {use.name for use in uses} for kind, uses in whole.items()}
    assert {kind: set(parts) for kind, parts in parts_of().items()} == {
        **names,
        "options": set(USES),
        "races": set(RACES),
    }
    assert page_is_current(), "write them with `python tests/faults/harness/counts.py`"


@so_many(15, 45)
def test_damaged_files_of_commands(bench: Bench, count: int) -> None:
    quick = [use for use in READING if not use.is_slow]
    trials = [trial for use in quick for trial in few(file_trials(bench, use, cuts=1, flips=1), 3)]
    demand_none(hold("files", few(trials, count), lambda trial: try_file(bench, trial)))


@so_many(20, 60)
def test_odd_values_of_options(bench: Bench, count: int) -> None:
    trials = [
        trial
        for name, command in commands().items()
        if not USES[name][0].is_slow
        for trial in typed(name, command)
    ]
    demand_none(hold("options", few(trials, count), lambda trial: try_typed(bench, trial)))


@so_many(2, 6)
def test_errors_in_the_middle_of_commands_that_write(bench: Bench, count: int) -> None:
    quick = few([use for use in WRITING if not use.is_slow], count)
    trials = [trial for use in quick for trial in few(disturbed(bench, use, {"errno": ERRORS}, most=200), 2)]
    demand_none(hold("errors", trials, lambda trial: try_disturbed(bench, trial)))


@so_many(2, 5)
def test_kills_and_interrupts_in_the_middle_of_commands_that_write(bench: Bench, count: int) -> None:
    quick = few([use for use in KILLED if not use.is_slow], count)
    trials = [trial for use in quick for trial in few(disturbed(bench, use, {"signal": SIGNALS}, most=200), 2)]
    demand_none(hold("signals", trials, lambda trial: try_disturbed(bench, trial)))


@pytest.mark.parametrize("kind", ["one cache", "one run folder"])
def test_a_race(bench: Bench, kind: str) -> None:
    tally = Tally(kind)
    tally.note(kind, RACES[kind](bench, 3, False))
    demand_none(tally)


# The campaign: each test is a part, which writes its counts. One that was held with the code as it is now, and
# ended without a fault, is not held again.


def campaign(part: str, trials: Callable[[], Sequence[Any]], attempt: Callable[[Any], Any]) -> None:
    """Hold a part of the campaign, unless it was held already."""
    if held_before(part):
        pytest.skip("held already with this code: delete build/faults to hold it again")
    tally = hold(part, trials(), attempt)
    keep(tally)
    demand_none(tally)


@pytest.mark.campaign
@pytest.mark.parametrize("use", READING, ids=lambda use: use.name)
def test_campaign_of_files(bench: Bench, use: Use) -> None:
    campaign(
        f"files {use.name}",
        lambda: file_trials(bench, use, cuts=3, flips=4),
        lambda trial: try_file(bench, trial),
    )


@pytest.mark.campaign
@pytest.mark.parametrize("name", list(USES))
def test_campaign_of_options(bench: Bench, name: str) -> None:
    campaign(
        f"options {name}",
        lambda: list(typed(name, commands()[name], chance=random.Random(name), more=2)),
        lambda trial: try_typed(bench, trial),
    )


@pytest.mark.campaign
@pytest.mark.parametrize("use", WRITING, ids=lambda use: use.name)
def test_campaign_of_errors(bench: Bench, use: Use) -> None:
    sizes = [Disturbed(use, {"size": size}) for size in SIZES]
    campaign(
        f"errors {use.name}",
        lambda: [*disturbed(bench, use, {"errno": ERRORS}, most=8 if use.is_slow else 20), *sizes],
        lambda trial: try_disturbed(bench, trial),
    )


@pytest.mark.campaign
@pytest.mark.parametrize("use", KILLED, ids=lambda use: use.name)
def test_campaign_of_signals(bench: Bench, use: Use) -> None:
    campaign(
        f"signals {use.name}",
        lambda: disturbed(bench, use, {"signal": SIGNALS}, most=20 if use.is_slow else 30),
        lambda trial: try_disturbed(bench, trial),
    )


@pytest.mark.campaign
@pytest.mark.parametrize("kind", list(RACES))
def test_campaign_of_races(bench: Bench, kind: str) -> None:
    class Round:
        def __init__(self, number: int) -> None:
            self.runners, self.is_mixed = 2 + number % 7, bool(number % 2)
            self.name = f"{self.runners} processes on {kind}"

    campaign(
        f"races {kind}",
        lambda: [Round(number) for number in range(100)],
        lambda trial: RACES[kind](bench, trial.runners, trial.is_mixed),
    )
