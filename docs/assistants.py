"""Write `SKILL.md` and `llms.txt`, which tell assistants what each command answers, from the commands' own help.

python docs/assistants.py
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from stsbench.analysis import analyses
from stsbench.cli.app import COMMANDS, app

DOCS = Path(__file__).parent

_EXAMPLE = re.compile(r"`(stsbench [^`]+)`")

SUMMARY = (
    "Measures sentence embeddings (STS, SentEval transfer) the way papers report them, with intervals, signatures "
    "and records; checks, compares, diagnoses, analyses, trains and reports."
)
USE = "Use it to measure a sentence encoder, or to judge a published or measured STS score."

RULES = """\
- Start with `stsbench doctor`. Without benchmark data or a network, use `--model minilm --tasks sample`.
- Measure once: `stsbench run --out runs/NAME` leaves a record, and every other command reads records.
- Quote a score with its interval and its signature. Two scores are comparable only if their signatures agree
  before `||`.
- Never call a model better from two averages: run `stsbench compare`, and quote its sentence. A claim about a
  method needs at least five seeds of each: `stsbench compare --a RUNS --b RUNS`.
- If a number does not match a paper, run `stsbench check`, then `stsbench diagnose --claim TASK=NUMBER`, before
  searching for bugs. The usual causes are pooling, aggregation and split. If a server's vectors differ:
  `stsbench diagnose --model CHECKPOINT --like URL#NAME`.
- Choose the margin of `check --margin` before you look. Exit code 3 means too few pairs, not a pass.
- Parse `--json`, not the tables. `stsbench COMMAND --help-all` explains every option.
- Exit codes: 0 success, 1 a failed check, 2 a mistake or scores that are not comparable, 3 undecided."""

FOLDERS = (".", "how-to", "definitions", "reference")


def skill() -> str:
    """Return the skill, with a table of the commands."""
    lines = [
        "---",
        "name: stsbench",
        f"description: {SUMMARY} {USE}",
        "---",
        "",
        "# stsbench",
        "",
        "<!-- Written by docs/assistants.py: do not edit. -->",
        "",
        RULES,
        "",
        "llms.txt, next to this file, has a line and an example for each command and analysis:",
        "",
    ]
    for group, commands in COMMANDS.items():
        lines.append(f"- {group}: {', '.join(f'`{name}`' for name in commands)}")
    lines.append(f"- `explain NAME`: {', '.join(f'`{name}`' for name in analyses())}")
    return "\n".join(lines) + "\n"


def llms() -> str:
    """Return the index of the documentation for language models (llmstxt.org)."""
    lines = ["# stsbench", "", f"> {SUMMARY}", "", RULES, ""]
    heading = ""
    for group, name, about, example in _commands():
        if group != heading:
            lines += ["", f"## {group}", ""]
            heading = group
        lines.append(f"- [stsbench {name}](reference/commands/{name}.html): {about} Example: `{example}`")
    lines += ["", "## Analyses", ""]
    for name, kind in analyses().items():
        about = (kind.__doc__ or "").partition("\n")[0]
        lines.append(f"- [stsbench explain {name}](reference/commands/{name}.html): {about}")
    lines += ["", "## Pages", ""]
    for page in (page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md"))):
        text = page.read_text(encoding="utf-8")
        if text.startswith("# ") and page.name != "index.md":
            place = page.relative_to(DOCS).with_suffix(".html")
            lines.append(f"- [{text.splitlines()[0][2:]}]({place})")
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def _commands() -> Iterator[tuple[str, str, str, str]]:
    """Yield the group of each command, its name, its line and its first example."""
    root: Any = get_command(app)
    context = typer.Context(root, info_name="stsbench")
    for group, commands in COMMANDS.items():
        for name, (_, about) in commands.items():
            command = root.get_command(context, name)
            subcommands = getattr(command, "commands", None)
            helped = next(iter(subcommands.values())) if subcommands else command
            example = _EXAMPLE.search((helped.help or "").partition("Example")[2])
            yield group, name, about, example[1] if example else f"stsbench {name}"


def main() -> None:
    """Write both files."""
    for name, text in (("SKILL.md", skill()), ("llms.txt", llms())):
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
