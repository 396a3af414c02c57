"""What stands before a sentence: a text, one of the checkpoint's prompts, or a prompt for each side of a pair.

A sentence-transformers checkpoint names prompts in `config_sentence_transformers.json`, and may name one of them
as its default. Vectors depend on the text alone: where a checkpoint is loaded, names become texts.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import replace

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.use import PROMPTS, Use, option_of

LIBRARY_CONFIG = "config_sentence_transformers.json"

_TEXT = re.compile(r"[\s:]")
"""What a text has that stands before a sentence, and a name has not."""

_Prompts = tuple[Use, tuple[str, ...]]
"""A use whose prompts are texts, and what the person should know about them."""


def named_prompts(checkpoint: Checkpoint) -> dict[str, str]:
    """Return the prompts that the checkpoint itself names, by their names."""
    return dict(checkpoint.json(LIBRARY_CONFIG).get("prompts") or {})


def own_prompt(checkpoint: Checkpoint) -> str:
    """Return the prompt that the checkpoint itself puts before every sentence, if it names one as its default."""
    wanted, prompts = checkpoint.json(LIBRARY_CONFIG).get("default_prompt_name"), named_prompts(checkpoint)
    if wanted is None:
        return ""
    if wanted not in prompts:
        raise UserError(
            f"{checkpoint.folder / LIBRARY_CONFIG} names the prompt {wanted!r}, which is not among its prompts: "
            "fetch the checkpoint again, or give --prompt."
        )
    return prompts[wanted]


def require_one_choice(use: Use) -> None:
    """Refuse two options that both say what stands before a sentence."""
    given = [option_of(name) for name in PROMPTS if getattr(use, name) is not None]
    if len(given) > 1:
        raise UserError(f"{' and '.join(given)} both say what stands before a sentence: give one of them.")


def as_texts(checkpoint: Checkpoint, asked: Use) -> _Prompts:
    """Return a use in which a prompt's name has become its text, and two sides with one prompt that prompt.

    Raises:
        UserError: if the checkpoint has no prompt of that name, or there is not one for each of two sides.
    """
    if asked.prompt_name is not None:
        text = _by_name(checkpoint, asked.prompt_name)
        note = f"{checkpoint.name}: its prompt {asked.prompt_name!r}, {text!r}, is put before every sentence."
        return replace(asked, prompt=text, prompt_name=None), (note,)
    if asked.prompts is None:
        return asked, _notes_on_name(checkpoint, asked.prompt)
    sides = both_sides(asked.prompts)
    first, second = (_of_side(checkpoint, side) for side in sides)
    notes = tuple(
        f"{checkpoint.name}: its prompt {name!r}, {text!r}, is put before the {number} sentence of every pair."
        for number, name, text in zip(("first", "second"), sides, (first, second), strict=True)
        if text != name
    )
    if first == second:
        return replace(asked, prompt=first, prompts=None), notes
    return replace(asked, prompts=(first, second)), notes


def both_sides(given: str | Sequence[str]) -> tuple[str, str]:
    """Return what is given for either side of a pair, as a tuple of two or as one text with a comma between.

    >>> both_sides("query,document"), both_sides('"to, fro: ",')
    (('query', 'document'), ('to, fro: ', ''))

    Raises:
        UserError: if these are not two.
    """
    if isinstance(given, str):
        try:
            lines = list(csv.reader([given], strict=True))
        except csv.Error:
            lines = []
        sides: Sequence[str] = lines[0] if lines else ()
    else:
        sides = given
    if len(sides) != 2 or not all(isinstance(side, str) for side in sides):
        raise UserError(
            f"--prompts {given!r} is not one prompt for each of the two sides of a pair: put one comma between "
            "them, as in query,document, and double quotes around one that has a comma, a double quote or a line "
            "break of its own."
        )
    return sides[0], sides[1]


def _of_side(checkpoint: Checkpoint, given: str) -> str:
    """Return the text of a side; a text of the checkpoint's own counts as one, whatever it looks like."""
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
            f"{checkpoint.name} names no prompts (in a {LIBRARY_CONFIG}), so none is called {name!r}: give the "
            "text itself, with --prompt or, with a white space or a colon in it, with --prompts."
        )
    raise UserError(f"{checkpoint.name} has no prompt named {name!r}: {suggestion(name, prompts)}")


def _notes_on_name(checkpoint: Checkpoint, given: str | None) -> tuple[str, ...]:
    """Return a note where the text that a person puts before every sentence is the name of a prompt."""
    name = (given or "").strip()
    prompt = named_prompts(checkpoint).get(name)
    if not name or prompt in {None, given}:
        return ()
    return (
        f"{checkpoint.name} has a prompt named {name!r}, which is {prompt!r}; --prompt takes the text itself, so "
        f"{given!r} is put before every sentence: give --prompt-name {name} if the one of that name was meant.",
    )
