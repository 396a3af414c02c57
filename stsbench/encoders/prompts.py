"""The text before a sentence: a text, a prompt of the checkpoint by name, or a prompt for each side of a pair.

A sentence-transformers checkpoint names prompts in `config_sentence_transformers.json`, and possibly a default.
Vectors depend on the text only, so loading replaces names by texts.
"""

import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.encoders.checkpoint import AGAIN, Checkpoint
from stsbench.encoders.use import PROMPTS, Use, option_of

LIBRARY_CONFIG = "config_sentence_transformers.json"

_TEXT = re.compile(r"[\s:]")
"""What distinguishes a prompt's text from a prompt's name."""


def named_prompts(checkpoint: Checkpoint) -> dict[str, str]:
    """Returns the checkpoint's prompts by name."""
    config = checkpoint.json(LIBRARY_CONFIG)
    prompts: dict[str, str] = config.value("prompts", dict) or {}
    if not all(isinstance(text, str) for text in prompts.values()):
        raise UserError(f"{config.path}: a prompt is not a text. {AGAIN}")
    return prompts


def own_prompt(checkpoint: Checkpoint) -> str:
    """Returns the checkpoint's default prompt, or ""."""
    config, prompts = checkpoint.json(LIBRARY_CONFIG), named_prompts(checkpoint)
    name = config.value("default_prompt_name", str)
    if name is not None and name not in prompts:
        raise UserError(f"{config.path}: the default prompt {name!r} is not among its prompts. Use --prompt.")
    return "" if name is None else prompts[name]


def require_one_choice(use: Use) -> None:
    """Raises a UserError if two options set the text before a sentence."""
    given = [option_of(name) for name in PROMPTS if getattr(use, name) is not None]
    if len(given) > 1:
        raise UserError(f"{' and '.join(given)} both set the text before a sentence. Give one of them.")


def as_texts(checkpoint: Checkpoint, asked: Use) -> tuple[Use, tuple[str, ...]]:
    """Replaces prompt names in a use by their texts, and two equal prompts by one; returns notes too.

    Raises:
        UserError: if the checkpoint has no prompt of that name, or there are not exactly two sides.
    """
    name = checkpoint.name
    if asked.prompt_name is not None:
        text = _by_name(checkpoint, asked.prompt_name)
        note = f"{name}: its prompt {asked.prompt_name!r}, {text!r}, is put before every sentence."
        return replace(asked, prompt=text, prompt_name=None), (note,)
    if asked.prompts is None:
        return asked, _notes_on_name(checkpoint, asked.prompt)
    sides = both_sides(asked.prompts)
    first, second = (_of_side(checkpoint, side) for side in sides)
    notes = tuple(
        f"{name}: its prompt {side!r}, {text!r}, is put before the {number} sentence of every pair."
        for number, side, text in zip(("first", "second"), sides, (first, second), strict=True)
        if text != side
    )
    if first == second:
        return replace(asked, prompt=first, prompts=None), notes
    return replace(asked, prompts=(first, second)), notes


def both_sides(given: str | Sequence[str]) -> tuple[str, str]:
    """Splits the value of `--prompts`: two texts, or one text with a comma, quoted as in CSV.

    >>> both_sides("query,document"), both_sides('"to, fro: ",')
    (('query', 'document'), ('to, fro: ', ''))

    Raises:
        UserError: if these are not two.
    """
    sides: Sequence[str] = ()
    if isinstance(given, str):
        with suppress(csv.Error, StopIteration):
            sides = next(csv.reader([given], strict=True))
    else:
        sides = given
    if len(sides) != 2 or not all(isinstance(side, str) for side in sides):
        raise UserError(
            f"--prompts {given!r}: expected one prompt for each of the two sides of a pair. Put one comma between "
            "them, and double quotes around a prompt with a comma, quote or line break."
        )
    return sides[0], sides[1]


def _of_side(checkpoint: Checkpoint, given: str) -> str:
    """Returns the text for one side; the text of one of the checkpoint's prompts is always taken as a text."""
    prompts = named_prompts(checkpoint)
    if not given or given in prompts:
        return prompts.get(given, "")
    return given if _TEXT.search(given) or given in prompts.values() else _by_name(checkpoint, given)


def _by_name(checkpoint: Checkpoint, name: str) -> str:
    prompts = named_prompts(checkpoint)
    if name in prompts:
        return prompts[name]
    if not prompts:
        raise UserError(
            f"{checkpoint.name} has no {LIBRARY_CONFIG} with prompts, so there is no prompt {name!r}. Give the "
            "text with --prompt or, with a space or colon in it, with --prompts."
        )
    raise UserError(f"{checkpoint.name} has no prompt named {name!r}: {suggestion(name, prompts)}")


def _notes_on_name(checkpoint: Checkpoint, given: str | None) -> tuple[str, ...]:
    """Returns a note if a text given as prompt is the name of a prompt."""
    name = (given or "").strip()
    prompt = named_prompts(checkpoint).get(name)
    if not name or prompt in {None, given}:
        return ()
    return (
        f"{checkpoint.name} has a prompt named {name!r} ({prompt!r}), but --prompt takes a text, so {given!r} is "
        "put "
        f"before every sentence. Use --prompt-name {name} for that prompt.",
    )
