"""An option is declared once, on the verb's parameter: a command's options are those of its verb."""

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import pytest
import typer
from typer.testing import CliRunner

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.cli.app import _target, commands
from stsbench.cli.declared import options_of
from stsbench.cli.verbs import Call, Verb, spelled_out
from stsbench.encoders.use import Loading, names

AFTERWARDS = "of loading in Python alone, and but for `normalize` refused there"
TOLD = "told while the verb works"
SHAPED = "typed in another shape: an option of the command's own"

NOT_OPTIONS = {
    "best_of": {},
    "check": {},
    "cite": {},
    "compare": {"a": SHAPED, "b": SHAPED, "intervals": SHAPED},
    "diagnose": {"encoder": SHAPED, "protocol": SHAPED} | dict.fromkeys(names("afterwards"), AFTERWARDS),
    "evaluate": {"encoder": SHAPED, "protocol": "the options of `protocol`", "intervals": SHAPED},
    "explain": {
        "runs": SHAPED,
        "intervals": SHAPED,
        "leave_out": "a command leaves out and says so",
        "finished": TOLD,
    },
    "export_results": {"run": SHAPED, "out": SHAPED},
    "explore": {"out": "the command writes one anyway"},
    "board": {"out": "the command writes one anyway"},
    "embed_file": {},
    "fit": {"method": "the command's name"},
    "import_results": {"command": "the command line itself"},
    "length_bias": {"runs": SHAPED, "intervals": SHAPED},
    "pair_kinds": {"runs": SHAPED, "intervals": SHAPED},
    "length_collapse": {"runs": SHAPED, "intervals": SHAPED},
    "dimensions": {"runs": SHAPED, "intervals": SHAPED},
    "hubness": {"runs": SHAPED, "intervals": SHAPED},
    "geometry": {"runs": SHAPED},
    "spectrum": {"runs": SHAPED},
    "density": {"runs": SHAPED},
    "evalrank": {"runs": SHAPED},
    "compress": {"runs": SHAPED, "intervals": SHAPED},
    "ties": {"runs": SHAPED},
    "retrieve": {"runs": SHAPED},
    "stability": {"runs": SHAPED, "intervals": SHAPED},
    "repetition_bias": {
        "runs": SHAPED,
        "low": SHAPED,
        "high": SHAPED,
        "intervals": "one method, as queries share nothing",
    },
    "plan": {},
    "probes": {"runs": SHAPED, "intervals": SHAPED},
    "protocol": {},
    "rank": {},
    "report": {"out": "of a card or a badge it is a file: an option of the command's own"},
    "reproduce": {
        "table": "`--list` takes none: an argument of the command's own",
        "settings": SHAPED,
        "notice": TOLD,
    },
    "show": {},
    "sweep": {"notice": TOLD},
    "train": {
        "listeners": TOLD,
        "notice": TOLD,
        "command": "the command line itself",
        "shared": "a matter of the jobs of a sweep",
    },
}
"""Of each verb that a command is made from the parameters that are no options of its command, and why."""


def callbacks() -> Iterator[Callable[..., Any]]:
    """Yield the function of every command as it is written."""
    for name in commands():
        target = _target(name)
        registered = target.registered_commands if isinstance(target, typer.Typer) else []
        yield from (each.callback for each in registered)
        if not registered:
            yield target


def verbs() -> Iterator[tuple[str, Verb, set[str]]]:
    """Yield the verbs that commands are made from, by their places, and the options of a use beside them."""
    for callback in callbacks():
        written = getattr(callback, "as_written", callback)
        hints = get_type_hints(written, include_extras=True).values()
        groups = [hint for hint in hints if isinstance(hint, type) and issubclass(hint, Loading)]
        loading = {each.name for group in groups for each in fields(group)}
        for hint in hints:
            for said in get_args(hint)[1:]:
                if isinstance(said, Verb):
                    yield said.place, said, loading


@pytest.mark.parametrize("name", sorted(NOT_OPTIONS))
def test_every_parameter_of_a_verb_is_an_option_or_says_why_not(name: str) -> None:
    verb = getattr(sb, name)
    place = f"{verb.__module__}:{verb.__name__}"
    made = [(said, loading) for where, said, loading in verbs() if where == place]
    assert made, f"no command is made from {place}"
    options = {option.name for option in options_of(place)}
    typed = {each for said, loading in made for each in (options - set(said.without)) | loading}
    left = set(inspect.signature(verb).parameters) - typed - {"progress"}
    assert left == set(NOT_OPTIONS[name])


def test_every_public_verb_has_a_command_that_is_made_from_it() -> None:
    others = {
        "badge": "`report --badge`",
        "default_tasks": "what is measured where nothing is named",
        "embed": "vectors are of use in Python alone",
        "evaluate_similarities": "`run --similarities`",
        "load": "models are named by --model",
        "load_run": "runs are named by their folders",
        "model_card": "`report --model-card`",
        "reproductions": "`reproduce --list`",
    }
    functions = {name for name in sb.__all__ if inspect.isfunction(getattr(sb, name))}
    assert functions == set(NOT_OPTIONS) | set(others)


@pytest.mark.parametrize("place", sorted({place for place, *_ in verbs()}))
def test_what_is_read_of_a_verb_is_what_python_knows_of_it(place: str) -> None:
    module, _, name = place.partition(":")
    verb = getattr(__import__(module, fromlist=[name]), name)
    parameters = inspect.signature(verb).parameters
    text = " ".join((inspect.getdoc(verb) or "").split())
    for option in options_of(place):
        assert option.default == parameters[option.name].default
        assert option.line in text


VERB = """
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from stsbench.base.options import Commas, Count, Help, NameOrPath, Panel, Points, Spelled, Within, Written

if TYPE_CHECKING:
    from nowhere import Record

raise ImportError("a page of help imports no verb")

FEW = 3
Model = "Record | str | Path"

def verb(
    runs: "Annotated[Record | Sequence[Record | str | Path], Spelled('RUN...')]",
    corpus: NameOrPath = "sample",
    *,
    few: Count = FEW,
    tolerance: Points | None = None,
    lengths: Annotated[Sequence[int], Spelled("--length"), Within(1)] = (),
    columns: Annotated[Sequence[str] | None, Commas()] = None,
    bins: Annotated[Sequence[int], Commas("give numbers, such as 0,1")] = (),
    number: float | str | None = None,
    centred: Annotated[bool, Spelled("--centred/--uncentred")] = True,
    use_cache: bool = True,
    overwrite: bool = False,
    card: Annotated[Path | None, Written("file")] = None,
    listener: Callable[[str], None] = print,
) -> None:
    '''Do something.

    Args:
        runs: run folders,
            two or more. In Python also records.
        corpus: a file, or `sample`.
        few: how many; see `lengths`.
        tolerance: points.
        lengths: another length.
        columns: columns, with commas.
        bins: where bins begin.
        number: a number, or a name.
        centred: whether to centre.
        use_cache: whether to read and write the cache.
        overwrite: whether to replace another one.
        card: a file.
        listener: told what happens.

    Raises:
        UserError: never.
    '''
"""


@pytest.fixture
def parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that parses a command line of a command made from the verb above."""
    (tmp_path / "a_verb.py").write_text(VERB, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    options_of.cache_clear()
    seen: list[Call] = []

    def command(asked: Annotated[Call, Verb("a_verb:verb")]) -> None:
        seen.append(asked)

    made = typer.Typer()
    made.command()(spelled_out(command))

    def run(*arguments: str) -> Any:
        done = CliRunner().invoke(made, list(arguments), env={"COLUMNS": "200"})
        if isinstance(done.exception, UserError):
            raise done.exception
        return seen.pop().options if seen else done.output

    return run


def test_a_command_is_made_of_a_verb_that_is_not_imported(parsed: Callable[..., Any]) -> None:
    help_ = parsed("--help")
    for text in (
        "RUN...",
        "Run folders, two or more.",
        "--few",
        "[default: 3]",
        "How many; see --length.",
        "Another length. Repeatable.",
        "--centred",
        "--uncentred",
        "--no-cache",
        "Neither read nor write the embedding cache.",
        "Replace another one.",
    ):
        assert text in help_, text
    assert "In Python" not in help_
    assert "listener" not in help_
    assert "--no-overwrite" not in help_


def test_what_is_typed_reaches_the_verb_and_what_is_not_typed_is_its_own_default(
    parsed: Callable[..., Any],
) -> None:
    assert parsed("a", "b") == {"runs": [Path("a"), Path("b")]}
    options = "--corpus x.txt --few 5 --length 3 --length 4 --columns one,two --bins 0,2 --number 1.5"
    typed = parsed("a", *options.split(), "--uncentred", "--no-cache", "--overwrite", "--card", "card.md")
    assert typed == {
        "runs": [Path("a")],
        "corpus": "x.txt",
        "few": 5,
        "lengths": [3, 4],
        "columns": ["one", "two"],
        "bins": [0, 2],
        "number": 1.5,
        "centred": False,
        "use_cache": False,
        "overwrite": True,
        "card": Path("card.md"),
    }
    assert parsed("a", "--number", "simcse")["number"] == "simcse"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("a --few 0", "--few 0: give a number from 1"),
        ("a --tolerance 101", "--tolerance 101.0: give a number from 0 to 100"),
        ("a --length 0", "--length 0: give a number from 1"),
        ("a --bins 0,x", "--bins 0,x: give numbers, such as 0,1."),
        ("a --bins 0,1000001", "--bins 1000001: give a number from -1,000,000 to 1,000,000."),
        ("a --card .", "cannot write"),
    ],
)
def test_what_a_parameter_says_of_its_values_is_checked(
    parsed: Callable[..., Any], arguments: str, sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        parsed(*arguments.split())


def test_an_option_without_a_line_under_args_is_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare_verb.py").write_text('def verb(*, few: int = 1) -> None:\n    """Do."""\n', encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyError, match="few"):
        options_of("bare_verb:verb")


def test_what_verbs_say_of_their_options_loads_neither_typer_nor_numpy() -> None:
    code = "import sys, stsbench.base.options; print({'typer', 'numpy', 'torch', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
