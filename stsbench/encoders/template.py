"""A template: how a sentence becomes the text that a model reads, and where its vector is read. Plain data.

PromptBERT asks `This sentence of "..." means [MASK].` and reads the mask; PromptEOL asks a language model for one
word and reads the last token; E5 wants `query: ` in front. Such a recipe moves a score by points, and so does a
full stop at the end of the sentence. So all of it is data, recorded in full: a YAML file of
`templates/`, or a person's own. `rendering` makes tokens of it, and `poolers` and `network` read the vectors.
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
from stsbench.encoders.poolers import pooling_name, pooling_problem

NO_TEMPLATE = "none"
"""What a person gives for no template, where a known checkpoint brings one."""

SENTENCE, MASK, BEGIN, END = "sentence", "mask", "begin", "end"
PLACES = (SENTENCE, MASK, BEGIN, END)
"""What stands in braces in a template's text: the sentence, the tokenizer's mask, its first and its last token."""

WITH_SENTENCE, FROM_ZERO, OWN = "with_sentence", "from_zero", "own"
"""Where the tokens of a template without its sentence stand (`Template.positions`)."""

_BRACES = re.compile(r"(\{[^{}]*\})")


def _full_stop(sentence: str) -> str:
    return sentence + "." if sentence and sentence[-1] not in ".?\"'" else sentence


def _spaced_full_stop(sentence: str) -> str:
    words = sentence.strip()
    return sentence + " ." if words and words[-1] not in string.punctuation else sentence


def _question_to_full_stop(sentence: str) -> str:
    return sentence[:-1] + "." if sentence.endswith("?") else sentence


RULES: dict[str, Callable[[str], str]] = {
    "strip": str.strip,
    "single_spaces": lambda sentence: " ".join(sentence.split()),
    "lower_case": str.lower,
    "full_stop": _full_stop,
    "spaced_full_stop": _spaced_full_stop,
    "single_quotes": lambda sentence: sentence.replace('"', "'"),
    "question_to_full_stop": _question_to_full_stop,
}
"""What is done to a sentence before it is put in, by name.

`full_stop` adds one unless the sentence ends in one of . ? " ' (PromptBERT); `spaced_full_stop` adds ` .` unless
it ends in punctuation (SNCSE); `single_quotes` makes every " a ' and `question_to_full_stop` a final ? a full stop
(PromptEOL).
"""

RuleName = Annotated[str, Field(min_length=1)]


class TemplateSource(BaseModel):
    """Where a template was read.

    Attributes:
        repository: `owner/name` on GitHub, or a page's address.
        commit: of the file; empty for a page.
        file: in the repository; empty for a page.
        what: what of the template stands there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    repository: str
    commit: str = ""
    file: str = ""
    what: str = ""


class Template(BaseModel):
    """How a sentence is asked, and where its vector is read.

    Attributes:
        name: its name, as signatures give it.
        title: what it is, in a few words.
        texts: what the model reads, with `{sentence}` in the place of the sentence and `{mask}` in that of the
            tokenizer's mask token. The vector is the mean over several texts.
        rules: what is done to the sentence first, names of `RULES` in order.
        tokenize: `together`: the whole text as one, with the tokenizer's own special tokens around it; `apart`:
            what stands around the sentence and the sentence each on its own, and no special token but those that
            the text names as `{begin}` and `{end}`.
        pooling: where the vector is read; a pooling without layers (see `poolers`).
        layers: which layers it is read from, the mean of several: 0 is the embedding layer, -1 the last.
        head: whether the checkpoint's own dense+tanh head stands behind it.
        subtract: `template`: the vector of the template without a sentence is subtracted, in which every token has
            the position that it has with the sentence (PromptBERT's denoising); `padded_template`: the same, with
            attended padding tokens in the place of the sentence (CoT-BERT's). Before the head.
        positions: of what is subtracted, where another than `with_sentence` is the public code's. `from_zero`: as
            with the sentence, but from 0 on in models that begin behind their padding token's place, too
            (PromptBERT's script); `own`: as the model's own code counts, to which padding takes no position in the
            models of that kind, attended to or not (CoT-BERT's).
        padding: the side on which shorter sequences of a batch are padded.
        precision: what the network computes in where the person does not say; empty for fp32.
        note: what differs from the paper or its code, and what a reader should know.
        paper: where it was published.
        sources: where it was read.

    >>> Template(name="mine", texts=["query: {sentence}"], pooling="avg").reading
    'avg'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
    title: str = ""
    texts: Annotated[tuple[str, ...], Field(min_length=1)]
    rules: tuple[RuleName, ...] = ()
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
        if problem := pooling_problem(self.reading):
            raise ValueError(f"pooling: {problem}".rstrip("."))
        if self.subtract == "no":
            if self.positions != WITH_SENTENCE:
                raise ValueError("positions: are of the template that is subtracted; add subtract")
        else:
            if any(self.pieces(text).count(f"{{{SENTENCE}}}") != 1 for text in self.texts):
                raise ValueError("subtract: the template alone is known of texts with one place for the sentence")
            if self.padding != "right" or self.tokenize != "together":
                raise ValueError("subtract: goes with padding right and tokenize together")
        return self

    def _check_text(self, text: str) -> None:
        places = [piece[1:-1] for piece in self.pieces(text) if _BRACES.fullmatch(piece)]
        for place in places:
            if place not in PLACES:
                raise ValueError(f"texts: unknown place {{{place}}}: {suggestion(place, PLACES)}".rstrip("."))
        if SENTENCE not in places:
            raise ValueError(f"texts: {text!r} has no place for the sentence; write {{{SENTENCE}}} there")
        if self.tokenize == "together" and {BEGIN, END} & {*places}:
            raise ValueError("texts: {begin} and {end} go with tokenize: apart; together, the tokenizer adds them")

    @staticmethod
    def pieces(text: str) -> list[str]:
        """Return a text in pieces: what stands around the places, and the places in their braces.

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
        """The hash over what vectors depend on, apart from where they are read."""
        names = {"texts", "rules", "tokenize", "subtract", "padding"}
        if self.subtract != "no":
            names.add("positions")
        values = self.model_dump(mode="json", include=names)
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def __str__(self) -> str:
        """Return the name in a signature, such as `promptbert#1a2b`, with the first digits of the digest."""
        return f"{self.name}#{self.digest[:4]}"

    def prepared(self, sentence: str) -> str:
        """Return the sentence as it is put in.

        >>> Template(name="mine", texts="{sentence}", rules=["full_stop"], pooling="avg").prepared("It rains")
        'It rains.'
        """
        for rule in self.rules:
            sentence = RULES[rule](sentence)
        return sentence


@cache
def template_names() -> tuple[str, ...]:
    """Return the names of the templates that come with the package.

    >>> "promptbert" in template_names()
    True
    """
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def read_template(wanted: str | Path | Template) -> Template:
    """Return a template.

    >>> read_template("e5").texts
    ('query: {sentence}',)
    """
    if isinstance(wanted, Template):
        return wanted
    path = Path(wanted).expanduser()
    if path.suffix not in {".yaml", ".yml"}:
        names = template_names()
        if str(wanted) not in names:
            every = f"choose one of {', '.join(names)}, or a .yaml file."
            raise UserError(f"unknown template {str(wanted)!r}: {suggestion(wanted, names, otherwise=every)}")
        return _known(str(wanted))
    if not path.is_file():
        raise UserError(f"there is no template file {path}: check the path.")
    return _read(path)


@cache
def _known(name: str) -> Template:
    return _read(_folder() / f"{name}.yaml")


def _read(path: Path) -> Template:
    draft = read_draft(path, "a template", "`docs/how-to/templates.md`")
    try:
        return Template.model_validate({"name": path.stem} | draft.values)
    except ValidationError as error:
        raise UserError(first_mistake(error, draft, str(path), known_keys(Template))) from error


def _folder() -> Path:
    return Path(str(files("stsbench.encoders") / "templates"))
