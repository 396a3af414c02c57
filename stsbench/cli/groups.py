"""Options that come in groups: Typer knows single options only, commands share dataclasses of them."""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

from stsbench.cli.options import LARGEST, MODEL


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Returns a command whose dataclass parameters are spelled out: each field becomes an option.

    A field's annotation holds its `typer.Option`; a field of `Use` describes itself in its metadata. The command
    gets the dataclass.

    Args:
        command: a function as Typer takes it, with dataclasses among its parameters.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    options: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in groups:
            options += _options_of(groups[name])
        else:
            options.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    def called(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__signature__ = Signature(options)  # type: ignore[attr-defined]
    called.__annotations__ = {option.name: option.annotation for option in options}
    return called


def _options_of(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True) if not _is_use(group) else {}
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints.get(field.name) or _option_of_use(field.name, field.metadata["about"]),
        )
        for field in fields(group)
    ]


def _is_use(group: Any) -> bool:
    return all("about" in field.metadata for field in fields(group))


def _option_of_use(name: str, about: Any) -> Any:
    flag = [f"--{name.replace('_', '-')}"] if about.type is bool else []
    limits = {} if about.least is None else {"min": about.least, "max": LARGEST}
    return Annotated[about.type, typer.Option(*flag, help=about.help, rich_help_panel=MODEL, **limits)]
