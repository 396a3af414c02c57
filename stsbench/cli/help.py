"""How a command's help is folded: first what its examples use, of everything else the names, under their headings.

A page of fifty options hides the five that most people need. Which those are is said once, by the examples that
each command has anyway; `--help-all` explains every option.
"""

import re
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from typer.core import TyperCommand

from stsbench.cli.output import say

HELP_ALL = "--help-all"

MANY = 20
"""Options of a command. One that has no more shows them all."""


class FoldedHelp(TyperCommand):
    """A command whose `--help` explains the options of its examples, and names the others."""

    _is_folded = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take `--help-all` for `--help` of all options."""
        if HELP_ALL in args:
            self._is_folded, args = False, ["--help"]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; of a command with many options, those that its examples do not use as names alone."""
        _leave_out_types_of_flags(self, ctx)
        folded = self._unused() if self._is_folded and len(self.params) > MANY else []
        for parameter in folded:
            parameter.hidden = True
        super().format_help(ctx, formatter)
        for parameter in folded:
            parameter.hidden = False
        if folded:
            width = get_terminal_size().columns
            say(f"More options, which `{ctx.command_path} {HELP_ALL}` explains:")
            for heading in dict.fromkeys(map(_heading, folded)):
                names = [max(option.opts, key=len) for option in folded if _heading(option) == heading]
                text = f"{heading}: {' '.join(names)}"
                say(*wrap(text, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False))

    def _unused(self) -> list[Any]:
        """Return the options that no example of this command uses."""
        examples = (self.help or "").partition("Example")[2]
        used = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", examples))
        return [
            parameter
            for parameter in self.params
            if parameter.param_type_name == "option" and not used.intersection(parameter.opts)
        ]


def _heading(parameter: Any) -> str:
    return parameter.rich_help_panel or "Options"


def _leave_out_types_of_flags(command: FoldedHelp, ctx: Any) -> None:
    """Let the help of flags say no type: they take no value."""
    for parameter in command.get_params(ctx):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
