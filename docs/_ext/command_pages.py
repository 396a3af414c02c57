"""The command reference, written from the commands themselves each time the site is built.

Names, options, defaults and examples are those of `stsbench COMMAND --help`, so a page cannot fall behind.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from sphinx.application import Sphinx
from typer.main import get_command

from stsbench.cli.app import app as stsbench
from stsbench.cli.app import commands as names

FOLDER = "reference/commands"

_EXAMPLES = re.compile(r"^Examples?:(?: `(?P<one>[^`]+)`|\n(?P<many>(?:\* `[^`]+`\n?)+))$", re.MULTILINE)
_BRACKETS = re.compile(r"\s*\[([^\[\]]*)\]$")


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name of each page and its Markdown: the index, then a page for each command or group of commands.

    >>> dict(pages())["cite"].splitlines()[0]
    '# `stsbench cite`'
    """
    root: Any = get_command(stsbench)
    context = typer.Context(root, info_name="stsbench")
    commands = {name: root.get_command(context, name) for name in names()}
    yield "index", _index(commands)
    for name, command in commands.items():
        yield _page(name), "\n\n".join(_sections(command, f"stsbench {name}", "#")) + "\n"


def _page(name: str) -> str:
    return name.rpartition(" ")[2]


def _index(commands: dict[str, Any]) -> str:
    rows = [f"| [`{name}`]({_page(name)}.md) | {_first_line(command)} |" for name, command in commands.items()]
    table = "\n".join(["| command | |", "| --- | --- |", *rows])
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *map(_page, commands), "```"])
    return f"{_INTRODUCTION}\n\n{table}\n\n{toctree}\n"


_INTRODUCTION = """\
# Commands

The help of every command. Exit codes: 0 for success, 1 for a failed check, 2 for a mistake, which is one sentence
on standard error. Tables go to standard output, everything else to standard error. `stsbench
--install-completion` sets up tab completion."""


def _first_line(command: Any) -> str:
    return str(command.help).split("\n", maxsplit=1)[0]


def _sections(command: Any, name: str, level: str) -> Iterator[str]:
    """Yield the parts of a command's page; the commands of a group follow it on the same page."""
    yield f"{level} `{name}`"
    if subcommands := getattr(command, "commands", None):
        yield str(command.help)
        for short, subcommand in subcommands.items():
            yield from _sections(subcommand, f"{name} {short}", f"{level}#")
        return
    about, examples = _without_examples(command.help)
    yield about
    yield "```bash\n" + "\n".join(examples) + "\n```"
    yield f"```{{program}} {name}\n```"
    yield from _options(command, name, f"{level}#")


def _without_examples(text: str) -> tuple[str, list[str]]:
    """Split a help text into text and examples."""
    found = _EXAMPLES.search(text)
    if found is None:
        raise ValueError(f"no example in: {text}")
    examples = [found["one"]] if found["one"] else re.findall(r"`([^`]+)`", found["many"])
    return (text[: found.start()] + text[found.end() :]).strip(), examples


def _options(command: Any, name: str, level: str) -> Iterator[str]:
    """Yield arguments and options under the headings that the help groups them by."""
    context = typer.Context(command, info_name=name)
    panels: dict[str, list[str]] = {}
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            is_argument = parameter.param_type_name == "argument"
            panel = getattr(parameter, "rich_help_panel", None)
            heading = panel if isinstance(panel, str) else "Arguments" if is_argument else "Options"
            panels.setdefault(heading, []).append(_option(parameter, *record))
    for heading, options in panels.items():
        yield f"{level} {heading}"
        yield from options


def _option(parameter: Any, record: str, text: str) -> str:
    """Return an option as Sphinx's directive, which gives it an anchor and a place in the index."""
    if parameter.param_type_name == "argument":
        signature = record.partition(" ")[0]
    else:
        # "--model, -m <list[str]>" without the names is the type of the option's value.
        value = re.sub(r"(?<!\S)--?[a-z][\w-]*,?|/", "", record).strip()
        value = re.sub(r"<list\[(\w+)\]>", lambda kind: f"<{kind[1].lower()}>...", value)
        names = [*sorted(parameter.opts, key=len, reverse=True), *parameter.secondary_opts]
        signature = f"{', '.join(names)} {value}".strip()
    brackets = _BRACKETS.search(text)
    if brackets:
        facts = [fact.partition("default: ") for fact in brackets[1].split("; ")]
        told = [f"Default: `{value}`." if mark else f"{before.capitalize()}." for before, mark, value in facts]
        text = " ".join([text[: brackets.start()].strip(), *told]).strip()
    return f":::{{option}} {signature}\n{text}\n:::"


def write(app: Sphinx) -> None:
    """Write the pages that changed; remove those of commands that are gone."""
    folder = Path(app.srcdir) / FOLDER
    wanted = {f"{name}.md": text for name, text in pages()}
    if folder.is_dir() and {path.name for path in folder.iterdir()} - set(wanted):
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in wanted.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write before the sources are searched."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
