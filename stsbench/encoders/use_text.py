"""How a use is written: in signatures, which read back, in names of runs and in messages."""

import re
from typing import Any
from urllib.parse import quote, unquote

from stsbench.base.errors import UserError
from stsbench.encoders.use import ABOUT, DEFAULTS, FP32, PROMPTS, SIGNED, TORCH, UNKNOWN, Use, option_of

_PRECISION = re.compile(rf"(?:([a-z]+)-)?((?:fp32|bf16|fp16|int8)(?:#[0-9a-f]+)?|{UNKNOWN})")


def use_signature(use: Use) -> str:
    """Returns the use's part of a signature, such as `cls_before_pooler|len512|fp32`.

    Raises:
        UserError: if a text is not valid UTF-8.
    """
    parts = []
    for name in SIGNED:
        sign, value = ABOUT[name].sign, use.computed_in if name == "precision" else getattr(use, name)
        if name == "backend" or (sign and value in {DEFAULTS[name], "", False}):
            continue
        texts = value if isinstance(value, tuple) else ("" if value is True else str(value),)
        try:
            parts.append(f"{sign}{','.join(quote(text, safe=_safe_in(name)) for text in texts)}")
        except UnicodeEncodeError as error:
            raise UserError(f"{option_of(name)} {value!r} contains characters that are not UTF-8.") from error
    return "|".join(parts)


def read_use(text: str) -> Use:
    """Reads what `use_signature` writes.

    Raises:
        ValueError: if it is something else.

    >>> read_use("avg|len256|openvino-int8|norm").backend
    'openvino'
    """
    pooling, *parts = text.split("|")
    values: dict[str, Any] = {"pooling": unquote(pooling)}
    for part in parts:
        if precision := _PRECISION.fullmatch(part):
            values |= {"backend": precision[1] or TORCH, "precision": precision[2]}
            continue
        name = next((name for name in SIGNED if ABOUT[name].sign and part.startswith(str(ABOUT[name].sign))), "")
        if not name:
            raise ValueError(f"unknown part {part!r}")
        written, kind = part.removeprefix(str(ABOUT[name].sign)), ABOUT[name].type
        if kind == int | None:
            values[name] = int(written)
        elif kind == bool | None:
            values[name] = True
        elif name == "prompts":
            values[name] = tuple(map(unquote, written.split(",")))
        else:
            values[name] = unquote(written)
    use = Use(**values)
    if use_signature(use) != text:
        raise ValueError(f"not written by stsbench: {text!r}")
    return use


def signed_part(use: Use) -> Use:
    """Returns the part of a use that its signature states; a template is reduced to its short name."""
    values = {name: getattr(use, name) or DEFAULTS[name] for name in SIGNED}
    return Use(**values | {"template": str(use.template) if use.template else None, "whiten": use.whiten})


def name_parts(use: Use) -> dict[str, str]:
    """Returns what a run's name says about the use, by field: every named choice that is not the default."""
    named = [name for name, about in ABOUT.items() if about.named]
    parts = {name: str(getattr(use, name)) if name in use.changed() else "" for name in named}
    parts |= {
        "template": getattr(use.template, "name", ""),
        "precision": "" if use.computed_in in {FP32, UNKNOWN} else use.computed_in,
        "normalize": {None: "", True: "norm", False: "unnorm"}[use.normalize],
        "dimensions": "" if use.dimensions is None else f"dim{use.dimensions}",
        "whiten": use.whitening,
    }
    return {name: part for name, part in parts.items() if part}


def shown(name: str, value: object, most: int | None = None) -> str:
    """Formats the value of a field for readers; prompts are quoted.

    Args:
        name: of the field.
        value: its value; None and "" are shown as `none`.
        most: how many characters of a text to show; None for all.

    >>> shown("prompts", ("find: ", "")), shown("prompt", "search_query: ", 9), shown("pooling", "cls")
    ("'find: ', ''", "'search_qu…'", 'cls')
    """
    if value is None or value == "":
        return "none"
    texts = value if isinstance(value, tuple) else (str(value),)
    cut = [text if most is None or len(text) <= most else f"{text[:most]}…" for text in texts]
    return ", ".join(map(repr, cut) if name in PROMPTS else cut)


def _safe_in(name: str) -> str:
    """Returns the characters of a value that its signature does not escape."""
    return "+" if name in PROMPTS else "+@,#"
