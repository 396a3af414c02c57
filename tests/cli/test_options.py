"""What is wrong with an option is told at once, in one sentence with its name: before any work begins."""

import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.cli.app import app

Stsbench = Callable[..., Any]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("measure", "there is no command `stsbench measure`: `stsbench --help` tells"),
        ("rnu", "there is no command `stsbench rnu`: did you mean `stsbench run`\\?"),
        ("data lst", "there is no command `stsbench data lst`: did you mean `stsbench data list`\\?"),
        ("run --kfolds 3", "`stsbench run` has no option --kfolds: did you mean --kfold\\?"),
        ("run --no-such-thing", "`stsbench run` has no option --no-such-thing: `stsbench run --help` tells"),
        ("run -Z", "`stsbench run` has no option -Z: "),
        ("--verson", "`stsbench` has no option --verson: did you mean --version\\?"),
        ("run --kfold many", "--kfold 'many': give a whole number\\."),
        ("run --kfold 1.5", "--kfold '1.5': give a whole number\\."),
        ("check x --tolerance small", "--tolerance 'small': give a number\\."),
        ("run --kfold", "--kfold needs a value"),
        ("run --overwrite=yes", "--overwrite takes no value"),
        ("run one two", "`stsbench run` has no use for one two: `stsbench run --help` tells"),
        ("check", "RUN is missing: `stsbench check --help` tells"),
        ("import results.json", "--out is missing: `stsbench import --help` tells"),
    ],
)
def test_what_the_parser_refuses_is_one_sentence_with_the_option_and_what_to_do(
    stsbench: Stsbench, arguments: str, message: str
) -> None:
    stsbench(*arguments.split()).demand_one_sentence(f"^stsbench: {message}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("compare a b --resamples 10000000000000", "--resamples 10000000000000: give a number from 1 to"),
        ("run --classifier-seed -1", "--classifier-seed -1: give a number from 0 to 4,294,967,295"),
        ("run --classifier-seed 4294967296", "--classifier-seed 4294967296: give"),
        ("run --classifier-seed 36893488147419103232", "--classifier-seed 36893488147419103232: give"),
        ("run --max-length 0", "--max-length 0: give a number from 1"),
        ("run --kfold 99999999", "--kfold 99999999: give"),
        ("run --whiten -1", "--whiten -1: give"),
        ("compare a b --resamples 0", "--resamples 0: give a number from 1"),
        ("compare a b --level nan", "--level nan: give a number from 0 to 1"),
        ("check x --tolerance inf", "--tolerance inf: give a number from 0 to 100"),
        ("check x --tolerance nan", "--tolerance nan: give"),
        ("check x --tolerance -1", "--tolerance -1.0: give"),
        ("check x --max-drop 1e999", "--max-drop inf: give"),
        ("report x --tolerance nan", "--tolerance nan: give"),
        ("geometry --positive nan", "--positive nan: give"),
        ("density --buckets 1000000000", "--buckets 1000000000: give a number from 1 to 1,000"),
        ("retrieve --top 0", "--top 0: give"),
        ("repetition-bias --seeds 1000000", "--seeds 1000000: give"),
        ("length-bias --threshold -1", "--threshold -1: give"),
        ("diagnose -c 3 --length 0", "--length 0: give"),
        ("diagnose -c 3 --length 64 --length 99999999", "--length 99999999: give"),
        ("diagnose -c 3 --tolerance inf", "--tolerance inf: give"),
        ("train demo --seed -1", "--seed -1: give"),
    ],
)
def test_a_number_out_of_range_is_refused_at_once(stsbench: Stsbench, arguments: str, message: str) -> None:
    stsbench(*arguments.split()).demand_one_sentence(f"^stsbench: {message}")


def options() -> Iterator[tuple[str, Any]]:
    """Yield every option of every command, with the command's name."""
    top: Any = get_command(app)
    for name in top.list_commands(None):
        command = top.get_command(None, name)
        inner = command.commands.values() if isinstance(command, TyperGroup) else [command]
        for each in inner:
            for option in each.params:
                yield f"{name} {each.name} {max(option.opts, key=len)}", option


def takes_a_number(option: Any) -> bool:
    # Where the parser keeps an option's type differs between its versions.
    kind = option.type_descriptor.annotation if hasattr(option, "type_descriptor") else option.type.name
    return bool(re.search(r"\b(int|integer|float)\b", str(kind)))


def test_every_option_that_takes_a_number_checks_it() -> None:
    numbers = [(name, option) for name, option in options() if takes_a_number(option)]
    assert len(numbers) > 25
    assert [name for name, option in numbers if option.callback is None] == []


OUTPUTS = ("out", "figure", "junit", "to")


def test_every_option_that_names_what_is_written_is_checked_before_the_work() -> None:
    written = [(name, option) for name, option in options() if option.name in OUTPUTS]
    assert len(written) > 12
    # Of a report, what --out names depends on what is made: it is checked where that is known.
    unchecked = [name for name, option in written if option.callback is None]
    assert unchecked == ["report report --out"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "run -m toys:words --out file",
            "cannot write into file: file is not a folder; choose another with --out",
        ),
        ("explain --out file", "cannot write into file: file is not a folder"),
        ("diagnose -c 3 --out file/x", "cannot write into file/x: .*file is not a folder"),
        ("train demo --out file", "cannot write into file"),
        ("import r.json --out file", "cannot write into file"),
        ("report r --out file", "cannot write into file"),
        ("report r --badge --out folder", "cannot write folder: it is a folder; name a file in it with --out"),
        ("data get --to file", "cannot write into file: file is not a folder; choose another with --to"),
        ("data nli-triplets x --out folder", "cannot write folder: it is a folder"),
        ("check r --junit folder", "cannot write folder: it is a folder; name a file in it with --junit"),
        ("check r --junit file/x.xml", "cannot write file/x.xml: .*file is not a folder"),
        ("diagnose -c 3 --figure file/x.png", "cannot write file/x.png"),
        ("spectrum --figure folder.png", "cannot write folder.png: it is a folder"),
        ("check r --junit /dev/null", "cannot write /dev/null: it is a device; name a file with --junit"),
        ("run -m toys:words --out=", "--out names nothing: is a variable unset\\?"),
    ],
)
def test_what_cannot_be_written_is_told_before_the_work(stsbench: Stsbench, arguments: str, message: str) -> None:
    Path("file").write_text("", encoding="utf-8")
    Path("folder").mkdir()
    Path("folder.png").mkdir()
    before = sorted(path.name for path in Path().iterdir())
    stsbench(*arguments.split()).demand_one_sentence(message)
    assert sorted(path.name for path in Path().iterdir()) == before


def test_an_empty_name_is_no_folder(stsbench: Stsbench) -> None:
    stsbench("run", "-m", "toys:words", "--tasks", "sample", "-o", "").demand_one_sentence("--out names nothing")


def test_a_folder_without_permission_is_told_before_the_work(
    stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The person who runs the tests may be allowed everything.
    monkeypatch.setattr(os, "access", lambda *_arguments: False)
    stsbench("explain", "--out", "new").demand_one_sentence("cannot write into new: no permission; .* --out")


@pytest.mark.parametrize("arguments", [("run", "--out"), ("show",), ("check",), ("run", "-m"), ("run", "--data")])
def test_a_name_of_pages_is_refused_and_echoed_in_short(stsbench: Stsbench, arguments: tuple[str, ...]) -> None:
    done = stsbench(*arguments, "x" * 5000)
    assert done.code == 2
    # Before the sentence `run` may say that it measures the sample.
    assert done.err.splitlines()[-1].startswith("stsbench: ")
    assert "xxx" in done.err
    assert len(done.err) < 900


def test_what_is_echoed_is_cut_in_its_middle() -> None:
    assert str(UserError("no task " + "x" * 5000 + ".")).startswith("no task xxx")
    assert len(str(UserError("no task " + "x" * 5000 + "."))) < 300
    assert len(str(UserError("word " * 5000))) < 4000
    path = "a/path/of/two/hundred/characters/" * 6
    assert str(UserError(f"cannot read {path}")) == f"cannot read {path}"


@pytest.mark.parametrize(
    ("command", "name", "content", "message"),
    [
        ("show", "x.json", "[" * 50_000, "x.json is not valid JSON"),
        ("check", "x.json", '{"STS12": ' + "9" * 5000 + "}", "x.json is not valid JSON"),
        ("check", "x.json", '{"STS12": {"all": 1e999}}', "x.json is not"),
        ("train", "x.yaml", "a: &a [*a]", "x.yaml is not valid YAML"),
        ("train", "x.yaml", "seed: " + "9" * 5000, "x.yaml"),
        ("train", "x.yaml", "temperature: 1.0e+999", "recipe x.yaml: .*more mistakes"),
        ("train --print --set", "x", "", "--set x: write key=value"),
        ("train --print --set", "seed=" + "9" * 5000, "", "--set seed=9"),
    ],
)
def test_a_file_that_would_fill_memory_or_stack_is_told_at_once(
    stsbench: Stsbench, command: str, name: str, content: str, message: str
) -> None:
    if content:
        Path(name).write_text(content, encoding="utf-8")
    stsbench(*command.split(), name).demand_one_sentence(message)


def test_several_mistakes_have_a_line_each(stsbench: Stsbench) -> None:
    done = stsbench("run", "-m", "toys:nan", "-m", "toys:flat", "--tasks", "sample")
    assert done.code == 2
    told = [line for line in done.err.splitlines() if line.startswith("stsbench: ")]
    assert [line.split(":")[2] for line in told] == ["nan", "flat"]


def test_a_home_that_nobody_has_is_told(stsbench: Stsbench) -> None:
    stsbench("show", "~nobody-of-that-name/run").demand_one_sentence("nobody of that name has a home here")


def test_what_the_system_refuses_is_told_with_its_path(
    stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_arguments: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied", "the/path")

    monkeypatch.setattr("stsbench.records.show.show", refused)
    stsbench("show", "run").demand_one_sentence("cannot use the/path .Permission denied.: check")


def test_too_little_memory_is_told(stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise MemoryError

    monkeypatch.setattr("stsbench.records.show.show", full)
    stsbench("show", "run").demand_one_sentence("not enough memory")


def test_an_interrupt_that_a_library_turned_into_something_else_is_one(
    stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turned(*_arguments: object, **_options: object) -> None:
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr("stsbench.records.show.show", turned)
    stsbench("show", "run").demand_one_sentence("interrupted", code=130)


def test_a_question_without_an_answer_deletes_nothing(stsbench: Stsbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    done = stsbench("cache", "clear")
    assert done.code == 2
    assert "nothing was done" in done.err


def test_the_version_is_the_packages(stsbench: Stsbench) -> None:
    assert stsbench("--version").out == f"stsbench {sb.__version__}\n"
