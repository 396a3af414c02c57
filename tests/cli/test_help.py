"""Help explains the options of a command's examples and names the others; --help-all explains all."""

import re
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from stsbench.cli.app import MANY, app


def commands() -> list[tuple[str, Any]]:
    """Return every command with the words that call it."""
    top: Any = get_command(app)
    found = []
    for name in top.list_commands(None):
        command = top.get_command(None, name)
        inner = command.commands.items() if isinstance(command, TyperGroup) else ()
        found += [(f"{name} {short}", each) for short, each in inner] or [(name, command)]
    return found


def printed(words: str, option: str) -> str:
    done = CliRunner().invoke(app, [*words.split(), option], env={"COLUMNS": "100"})
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize(
    ("words", "command"), commands(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_help_names_every_option_once_and_explains_those_of_the_examples(words: str, command: Any) -> None:
    folded, whole = printed(words, "--help"), printed(words, "--help-all")
    options = [max(each.opts, key=len) for each in command.params if each.param_type_name == "option"]
    explained, _, named = folded.partition("More options, which")
    rows = set(re.findall(r"^│ [* ]*(--[\w-]+)", explained, re.MULTILINE)) - {"--help"}
    assert rows | (set(re.findall(r"--[\w-]+", named)) - {"--help-all"}) == set(options)
    assert set(re.findall(r"^│ [* ]*(--[\w-]+)", whole, re.MULTILINE)) - {"--help"} == set(options)
    assert bool(named) == (len(command.params) > MANY)
    if named:
        assert all(f" {option}" in explained.partition("╭")[0] or short_used(command, option) for option in rows)


def short_used(command: Any, option: str) -> bool:
    short = next(min(each.opts, key=len) for each in command.params if option in each.opts)
    return f" {short} " in command.help


def test_the_help_of_run_fits_on_a_page_and_flags_have_no_type() -> None:
    assert len(printed("run", "--help").splitlines()) < 70
    for words in ("run", "compare"):
        assert "bool" not in printed(words, "--help-all")
