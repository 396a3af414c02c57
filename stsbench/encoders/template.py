"""A template: the text around a sentence, and the place where the vector is read. Plain data.

PromptBERT completes `This sentence of "..." means [MASK].` and reads the mask; PromptEOL asks a language model for
one word and reads the last token; E5 needs `query: ` first. Such a choice changes a score by points, so a record
stores the whole template. A template is a YAML file in `templates/`, or your own.
"""

import hashlib
import json
import re
import string
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from stsbench.base.errors import UserError
from stsbench.base.parsing import first_mistake, known_keys, read_draft
from stsbench.base.words import suggestion
from stsbench.encoders.poolers import parse_pooling, pooling_name

NO_TEMPLATE = "none"
"""The value of `--template` that switches off the template of a known checkpoint."""

SENTENCE, MASK, BEGIN, END = "sentence", "mask", "begin", "end"
PLACES = (SENTENCE, MASK, BEGIN, END)
"""The places in a template's text, in braces: the sentence, and the tokenizer's mask, first and last token."""

WITH_SENTENCE, FROM_ZERO, OWN = "with_sentence", "from_zero", "own"
"""The positions of a template without its sentence (`Template.positions`)."""

_BRACES = re.compile(r"(\{[^{}]*\})")


def _full_stop(sentence: str) -> str:
    return sentence + "." if sentence and sentence[-1] not in ".?\"'" else sentence


def _spaced_full_stop(sentence: str) -> str:
    words = sentence.strip()
    return sentence + " ." if words and words[-1] not in string.punctuation else sentence


RULES: dict[str, Callable[[str], str]] = {
    "strip": str.strip,
    "single_spaces": lambda sentence: " ".join(sentence.split()),
    "lower_case": str.lower,
    "full_stop": _full_stop,
    "spaced_full_stop": _spaced_full_stop,
    "single_quotes": lambda sentence: sentence.replace('"', "'"),
    "question_to_full_stop": lambda sentence: sentence[:-1] + "." if sentence.endswith("?") else sentence,
}
"""The changes to a sentence before it is inserted, by name.

`full_stop` adds one unless the sentence ends in one of . ? " ' (PromptBERT); `spaced_full_stop` adds ` .` unless
it ends in punctuation (SNCSE); `single_quotes` turns " into ', and `question_to_full_stop` a final ? into a full
stop (PromptEOL).
"""


class TemplateSource(BaseModel):
    """A file on GitHub, or a page without commit and file, and the part of the template that it documents."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repository: str
    commit: str = ""
    file: str = ""
    what: str = ""


class Template(BaseModel):
    """The text around a sentence, and where its vector is read.

    Attributes:
        name: as in signatures.
        title: a short description.
        texts: the texts that the model reads, with `{sentence}` for the sentence and `{mask}` for the mask token.
            The vector is the mean over several texts.
        rules: changes to the sentence: names of `RULES`, in order.
        tokenize: `together`: the whole text at once, with the tokenizer's special tokens; `apart`: the sentence
            and each piece around it separately, without special tokens except `{begin}` and `{end}` in the text.
        pooling: where the vector is read, without layers (see `poolers`).
        layers: the layers whose mean is read: 0 is the embedding layer, -1 the last.
        head: whether the checkpoint's dense+tanh head follows.
        subtract: `template`: subtract the vector of the template without a sentence, with every token at the
            position that it has with the sentence (PromptBERT's denoising); `padded_template`: the same with
            attended padding tokens instead of the sentence (CoT-BERT's). Before the head.
        positions: of the subtracted one. `with_sentence`; `from_zero`: counted from 0 even in models that start
            after their padding id (PromptBERT's script); `own`: as the model's code counts (CoT-BERT's).
        padding: the padded side of shorter sequences.
        precision: of the computation if the user chooses none; "" for fp32.
        note: differences from the paper or its code, and remarks.
        paper: where it was published.
        sources: where it was read.

    >>> Template(name="mine", texts=["query: {sentence}"], pooling="avg").reading
    'avg'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
    title: str = ""
    texts: Annotated[tuple[str, ...], Field(min_length=1)]
    rules: tuple[str, ...] = ()
    tokenize: Literal["together", "apart"] = "together"
    pooling: str
    layers: tuple[int, ...] = ()
    head: bool = False
    subtract: Literal["no", "template", "padded_template"] = "no"
    positions: Literal["with_sentence", "from_zero", "own"] = "with_sentence"
    padding: Literal["right", "left"] = "right"
    precision: Literal["", "fp32", "bf16", "fp16"] = ""
    note: str = ""
    paper: str = ""
    sources: tuple[TemplateSource, ...] = ()

    @field_validator("texts", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("rules")
    @classmethod
    def _known_rules(cls, rules: tuple[str, ...]) -> tuple[str, ...]:
        for rule in rules:
            if rule not in RULES:
                raise ValueError(f"unknown rule {rule!r}: {suggestion(rule, RULES)}".rstrip("."))
        return rules

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        for text in self.texts:
            self._check_text(text)
        try:
            parse_pooling(self.reading)
        except UserError as error:
            raise ValueError(f"pooling: {error}".rstrip(".")) from error
        if self.subtract == "no" and self.positions != WITH_SENTENCE:
            raise ValueError("positions: needs subtract")
        if self.subtract != "no":
            if any(self.pieces(text).count(f"{{{SENTENCE}}}") != 1 for text in self.texts):
                raise ValueError("subtract: needs texts with one place for the sentence")
            if self.padding != "right" or self.tokenize != "together":
                raise ValueError("subtract: needs padding right and tokenize together")
        return self

    def _check_text(self, text: str) -> None:
        places = [piece[1:-1] for piece in self.pieces(text) if _BRACES.fullmatch(piece)]
        for place in places:
            if place not in PLACES:
                raise ValueError(f"texts: unknown place {{{place}}}: {suggestion(place, PLACES)}".rstrip("."))
        if SENTENCE not in places:
            raise ValueError(f"texts: {text!r} has no place for the sentence; add {{{SENTENCE}}}")
        if self.tokenize == "together" and {BEGIN, END} & {*places}:
            raise ValueError("texts: {begin} and {end} need tokenize: apart; otherwise the tokenizer adds them")

    @staticmethod
    def pieces(text: str) -> list[str]:
        """Splits a text into its places, in braces, and what is between them.

        >>> Template.pieces('"{sentence}" means {mask}.')
        ['"', '{sentence}', '" means ', '{mask}', '.']
        """
        return [piece for piece in _BRACES.split(text) if piece]

    @property
    def reading(self) -> str:
        """The full name of the pooling, such as `mask2`, `last@-2`, `mask+head`."""
        return pooling_name(self.pooling, head=self.head, layers=self.layers)

    @property
    def digest(self) -> str:
        """A hash of everything that vectors depend on, except where they are read."""
        names = {"texts", "rules", "tokenize", "subtract", "padding"}
        if self.subtract != "no":
            names.add("positions")
        values = self.model_dump(mode="json", include=names)
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def __str__(self) -> str:
        """Returns the name in a signature, such as `promptbert#1a2b`, with the first digits of the digest."""
        return f"{self.name}#{self.digest[:4]}"

    def prepared(self, sentence: str) -> str:
        """Applies the rules to a sentence.

        >>> Template(name="mine", texts="{sentence}", rules=["full_stop"], pooling="avg").prepared("It rains")
        'It rains.'
        """
        for rule in self.rules:
            sentence = RULES[rule](sentence)
        return sentence


@cache
def template_names() -> tuple[str, ...]:
    """Returns the names of the packaged templates.

    >>> "promptbert" in template_names()
    True
    """
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def read_template(wanted: str | Path | Template) -> Template:
    """Returns a packaged template by name, or one from a YAML file.

    >>> read_template("e5").texts
    ('query: {sentence}',)
    """
    if isinstance(wanted, Template):
        return wanted
    path = Path(wanted).expanduser()
    if path.suffix in {".yaml", ".yml"}:
        return _read(path)
    names = template_names()
    if str(wanted) not in names:
        every = f"choose one of {', '.join(names)}, or a .yaml file."
        raise UserError(f"unknown template {str(wanted)!r}: {suggestion(wanted, names, otherwise=every)}")
    return _read(_folder() / f"{wanted}.yaml")


def _read(path: Path) -> Template:
    draft = read_draft(path, "a template", "`docs/how-to/templates.md`")
    try:
        return Template.model_validate({"name": path.stem} | draft.values)
    except ValidationError as error:
        raise UserError(first_mistake(error, draft, str(path), known_keys(Template))) from error


def _folder() -> Path:
    return Path(str(files("stsbench.encoders") / "templates"))
