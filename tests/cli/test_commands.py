"""Commands agree with their verbs, and their help is complete and quick."""

import inspect
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import stsbench as sb
from stsbench.analysis import ANALYSES, analysis
from stsbench.analysis.command import parsed
from stsbench.cli.app import COMMANDS, MANY, app, commands
from stsbench.data import describe, fetch, sentences
from stsbench.data.qrels import load_retrieval
from stsbench.encoders.embedded import embed_file
from stsbench.encoders.use import Loading, Use
from stsbench.published import lookup
from stsbench.records.export import export_results
from stsbench.records.show import cite
from stsbench.scoring.run import choose_models

PRINTING = {"format", "json", "csv", "markdown", "latex", "quiet", "figure", "figure_size", "subsets"}
WATCHING = {"progress", "listeners", "notice", "command"}
"""Parameters that watch a verb at work; a command fills them in."""

MODEL = {field.name for field in fields(Use)}
LOADING = {field.name for field in fields(Loading)}


def all_commands() -> dict[str, Any]:
    top: Any = get_command(app)
    found: dict[str, Any] = {}
    for name in commands():
        command = top.get_command(None, name)
        inner = getattr(command, "commands", None)
        found |= {f"{name} {short}": each for short, each in inner.items()} if inner else {name: command}
    return found


COMMANDS_BY_NAME = all_commands()

VERBS: dict[str, tuple[list[Any], set[str], set[str]]] = {
    # command: its verbs, parameters that are no options, options that are no parameters
    "run": (
        [sb.evaluate, sb.protocol, choose_models, load_retrieval],
        {"encoder", "name", "intervals", "use", "classification", "view", "folder"},
        {"interval", "no_intervals", "classifier", "kfold", "classifier_seed", "subset_column"}
        | {"exclude", "exclude_overlap"},
    ),
    "import": ([sb.import_results], set(), set()),
    "show": ([sb.show, export_results], {"run"}, set()),
    "cite": ([cite], set(), set()),
    "compare": ([sb.compare, sb.best_of], {"intervals"}, {"interval", "level"}),
    "plan": ([sb.plan], set(), set()),
    "rank": ([sb.rank], set(), set()),
    "check": ([sb.check], set(), {"junit"}),
    "report": ([sb.report], set(), {"model_card"}),
    "explore": ([sb.explore], set(), set()),
    "board": ([sb.board], set(), set()),
    "train": ([sb.train], set(), {"list_", "print_"}),
    "sweep": ([sb.sweep], set(), set()),
    "reproduce": ([sb.reproduce], {"settings"}, {"set_", "list_"}),
    "fit": ([sb.fit], set(), set()),
    "embed": ([embed_file], set(), set()),
    "diagnose": (
        [sb.diagnose],
        {"encoder"},
        {"run", "model", "sentences", "like", "other"},
    ),
    "explain": (
        [sb.explain],
        {"intervals"},
        {"model", "interval", "no_intervals"},
    ),
    "doctor": ([], set(), set()),
    "cache info": ([], set(), set()),
    "cache clear": ([], set(), {"yes"}),
    "data list": ([describe.list_data], set(), set()),
    "data get": ([fetch.get], set(), set()),
    "data verify": ([describe.verify], set(), set()),
    "data overlap": ([sentences.overlap], set(), set()),
    "data describe": ([describe.describe], set(), set()),
    "published list": ([lookup.list_published], set(), set()),
    "published show": ([lookup.show_table], set(), set()),
    "published row": ([lookup.show_row], set(), set()),
}  # fmt: skip

OTHER_DEFAULTS = {
    "report out": "the folder or the file depends on what is written",
    "explore out": "the command always writes a page",
    "board out": "the command always writes a page",
    "diagnose protocol": "the verb takes a value",
    "run protocol": "the verb takes a value",
    "train out": "checked before the work",
}


def plain(value: Any) -> Any:
    return (
        None
        if value in (None, (), [], "", inspect.Parameter.empty)
        else str(value)
        if isinstance(value, Path)
        else value
    )


@pytest.mark.parametrize("name", VERBS)
def test_a_command_has_the_options_and_defaults_of_its_verb(name: str) -> None:
    verbs, not_options, own = VERBS[name]
    options = {option.name: option for option in COMMANDS_BY_NAME[name].params}
    defaults = {key: option.default for key, option in options.items()}
    if "no_cache" in defaults:
        defaults["use_cache"] = not defaults.pop("no_cache")
    parameters: dict[str, Any] = {}
    for verb in verbs:
        parameters |= inspect.signature(verb).parameters
    expected = set(parameters) - WATCHING - not_options - {"_"}
    of_load = LOADING if "pooling" in defaults else set()
    of_load = MODEL if "normalize" in defaults else of_load
    assert set(defaults) - PRINTING - own - of_load == expected - PRINTING
    for key in expected & set(defaults):
        if f"{name} {key}" not in OTHER_DEFAULTS:
            assert plain(defaults[key]) == plain(parameters[key].default), key


@pytest.mark.parametrize("name", ANALYSES)
def test_the_command_of_an_analysis_has_the_parameters_of_its_verb(name: str) -> None:
    """Defaults are declared once; a command without options gives the verb its own defaults."""
    kind = analysis(name)
    command = name if name in COMMANDS_BY_NAME else f"explain {name}"
    options = {option.name: option.default for option in COMMANDS_BY_NAME[command].params}
    own = {key: about for key, about in kind.parameters.items() if key != "intervals"}
    assert set(own) <= set(options)
    values = {key: parsed(key, about, options[key]) for key, about in own.items()}
    parameters = inspect.signature(kind.verb).parameters
    assert set(values) | {"intervals"} | {"runs", *WATCHING} >= set(parameters)
    assert {key: plain(value) for key, value in values.items()} == {
        key: plain(parameters[key].default) for key in values
    }


def printed(words: str, option: str, width: int = 200) -> str:
    done = CliRunner().invoke(app, [*words.split(), option], env={"COLUMNS": str(width)})
    assert done.exit_code == 0
    return str(done.output)


@pytest.mark.parametrize("name", COMMANDS_BY_NAME)
def test_help_has_examples_names_every_option_and_explains_those_of_the_examples(name: str) -> None:
    command = COMMANDS_BY_NAME[name]
    folded, whole = printed(name, "--help"), printed(name, "--help-all")
    assert f"stsbench {name}" in folded.partition("Example")[2]
    assert folded == printed(name, "-h")
    options = {max(each.opts, key=len) for each in command.params if each.param_type_name == "option"}
    explained, _, named = folded.partition("More options (explained")
    in_row = re.compile(r"^│ [* ]*(--[\w-]+)", re.MULTILINE)
    rows = set(in_row.findall(explained)) - {"--help"}
    assert rows | (set(re.findall(r"--[\w-]+", named)) - {"--help-all"}) == options
    assert set(in_row.findall(whole)) - {"--help"} == options
    assert len(rows) <= MANY
    assert bool(named) == (len(options) > MANY)
    assert "bool" not in whole.partition("╭")[2]
    for option in command.params:
        assert getattr(option, "help", None), f"{option.name} has no help"


def test_the_help_of_the_whole_names_every_command_with_its_purpose() -> None:
    assert {name.removeprefix("explain ") for name in COMMANDS_BY_NAME} == {*VERBS, *ANALYSES}
    for group in ("", "data", "cache", "published"):
        assert re.search("Usage:(.|\n)*(Commands|Measure)", CliRunner().invoke(app, group.split()).output), group
    help_ = printed("", "--help")
    for name, (_, summary) in ((name, line) for group in COMMANDS.values() for name, line in group.items()):
        assert re.search(rf"^  {name} +{re.escape(summary)}$", help_, re.MULTILINE), name
    assert all(name in help_ for name in (*COMMANDS, *ANALYSES))
    assert len(help_.splitlines()) < 60
    assert "runs/<model>-<pooling>-<tasks>" in printed("run", "--help-all")
    assert len(printed("run", "--help", width=100).splitlines()) < 70


@pytest.mark.parametrize(
    ("commands", "heavy"),
    [
        ("[[]]", {"torch", "numpy", "pandas", "scipy", "transformers", "pyarrow"}),
        ("[['run'], ['check'], ['show'], ['train'], ['data', 'get']]", {"torch", "transformers"}),
    ],
)
def test_help_imports_no_networks_and_the_list_of_commands_no_numerics(commands: str, heavy: set[str]) -> None:
    code = (
        "import sys\nfrom stsbench.cli.app import app\n"
        f"for words in {commands}:\n"
        "    try:\n        app([*words, '--help'])\n    except SystemExit as end:\n        assert not end.code\n"
        f"print('heavy:', sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []"
