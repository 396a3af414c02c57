"""How a model is used, as a single value.

The parameters of `load`, command-line options, cache key, signature, run name, labels and sweeps iterate over the
fields of `Use`. A new option is a field here and the code that applies it; encoders that cannot apply it list it
in `not_obeyed` (sentence-transformers).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from inspect import Parameter, signature
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast
from urllib.parse import quote, unquote

from stsbench.base.errors import UserError
from stsbench.encoders.poolers import AUTO

if TYPE_CHECKING:
    from stsbench.encoders.template import Template

TORCH = "torch"
FP32 = "fp32"

FLASH = "flash_attention_2"
ATTENTIONS = ("eager", "sdpa", FLASH)
"""Attention kernels, by their names in Transformers."""

CAUSAL, BIDIRECTIONAL = "causal", "bidirectional"
MASKS = (CAUSAL, BIDIRECTIONAL)

PRECISIONS = {FP32: "float32", "bf16": "bfloat16", "fp16": "float16"}
"""Our names of precisions, and torch's."""

USUAL_LENGTHS = (32, 64, 128, 256, 512)
"""Common maximum lengths: SimCSE trains with 32, scripts often truncate at 64 or 128, models at 256 or 512."""

UNKNOWN = "-"
"""An unknown precision: of a server, a model of mteb, or an imported score."""


@dataclass(frozen=True)
class About:
    """What the rest of the program needs to know about a field of `Use`.

    Attributes:
        help: for the command line.
        type: of the value on the command line.
        changes: `encoding`: the encoder's vectors, and so the cache key; `place`: where they are computed, which
            moves their last bits; `afterwards`: the processing of cached vectors; `nothing`: no vector.
        sign: the text before the value in a signature, absent at the default; a flag is only the text; "": the
            value without text, always; None: never in a signature.
        named: whether a run's name contains it.
        least: the smallest valid number.
    """

    help: str
    type: Any = str
    changes: Literal["encoding", "place", "afterwards", "nothing"] = "encoding"
    sign: str | None = None
    named: bool = False
    least: int | None = None


def _option(default: Any, help: str, **about: Any) -> Any:
    return field(default=default, metadata={"about": About(help, **about)})


@dataclass(frozen=True, kw_only=True)
class Loading:
    """The fields of `Use` that an encoder obeys; the others change its vectors afterwards."""

    pooling: str = _option(
        AUTO,
        "How token vectors become a sentence vector: `auto` (the checkpoint's own), `cls`, `cls_before_pooler`, "
        "`avg`, `avg_top2`, `avg_first_last`, `avg_static_last`, `max`, `last`; with layers as in `last@-2`.",
        sign="",
        named=True,
    )
    max_length: int | None = _option(
        None,
        "Maximum number of sub-words read per sentence; by default the model's own limit.",
        type=int | None,
        sign="len",
        least=1,
    )
    prompt: str | None = _option(
        None,
        "The text before every sentence; by default the checkpoint's own.",
        type=str | None,
        sign="prompt:",
    )
    # Changes nothing: an identity holds the text of the prompt.
    prompt_name: str | None = _option(
        None,
        "The name of one of the checkpoint's prompts; by default the checkpoint's default prompt, if any.",
        type=str | None,
        changes="nothing",
    )
    prompts: str | tuple[str, str] | None = _option(
        None,
        "A prompt for each side of a pair, as in `query,document`: the name of one of the checkpoint's prompts, "
        "or a text with a space or a colon; empty for no prompt.",
        type=str | None,
        sign="prompts:",
    )
    template: "str | Path | Template | None" = _option(
        None,
        "The text around every sentence and where its vector is read: a name such as `promptbert`, a .yaml file, "
        "or `none`.",
        type=str | None,
        sign="tmpl:",
        named=True,
    )
    # In a signature it is a part of the precision: `openvino-int8`.
    backend: str = _option(TORCH, "The program that computes: `torch`, or `openvino` (on the CPU).", sign="")
    precision: str = _option(
        FP32,
        "The precision of the computation: `fp32`, `bf16` or `fp16`; with `openvino` also `int8`.",
        sign="",
        named=True,
    )
    revision: str | None = _option(
        None,
        "The branch, tag or commit on the Hub; for a server, a label of its model.",
        type=str | None,
        changes="nothing",
    )
    device: str = _option(AUTO, "Where to compute: `auto`, `cpu`, `cuda` or `mps`.", changes="place")
    trust_remote_code: bool = _option(
        False, "Allow the checkpoint's own Python code to run.", type=bool, changes="nothing"
    )
    attention: str = _option(
        AUTO,
        "The attention kernel in Transformers: `auto` (its choice), `eager`, `sdpa` or `flash_attention_2`.",
        sign="attn:",
        named=True,
    )
    attention_mask: str = _option(
        AUTO,
        "Which tokens a token attends to: `auto` (as the model defines), `causal` (itself and earlier ones) or "
        "`bidirectional` (all).",
        sign="mask:",
        named=True,
    )


@dataclass(frozen=True, kw_only=True)
class Use(Loading):
    """How a model is used. In an identity or a record no choice is left open.

    The fields are in the order of the signature.

    >>> Use(pooling="cls", max_length=128).changed()
    ['pooling', 'max_length']
    """

    # For pydantic: records reject unknown fields, and numbers that JSON cannot represent.
    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "allow_inf_nan": False}

    normalize: bool | None = _option(
        None,
        "Scale vectors to unit length; by default as the checkpoint does for similarities, and not for the "
        "classifiers of transfer tasks.",
        type=bool | None,
        changes="afterwards",
        sign="norm",
        named=True,
    )
    dimensions: int | None = _option(
        None,
        "The number of leading dimensions to keep (Matryoshka); by default all.",
        type=int | None,
        changes="afterwards",
        sign="dim",
        named=True,
        least=1,
    )
    # In a signature it follows what was fitted, as `post:whiten128`.
    whiten: int | None = _option(
        None,
        "Whiten on each task's sentences and keep this many dimensions (0: all in which they vary).",
        type=int | None,
        changes="afterwards",
        named=True,
        least=0,
    )

    @property
    def computed_in(self) -> str:
        """The precision and back end as in the signature (`fp32`, `openvino-int8`)."""
        return self.precision if self.backend == TORCH else f"{self.backend}-{self.precision}"

    @property
    def whitening(self) -> str:
        """The whitening as in the signature (`whiten128`, `whiten` if all dimensions are kept), or ""."""
        return "" if self.whiten is None else f"whiten{self.whiten or ''}"

    @property
    def own_template(self) -> "Template | None":
        """The template of a loaded encoder."""
        return cast("Template | None", self.template)

    @property
    def own_prompts(self) -> tuple[str, str] | None:
        """The prompts of a loaded encoder for the two sides of pairs; None for a single prompt."""
        return cast("tuple[str, str] | None", self.prompts)

    def changed(self, changes: str | None = None) -> list[str]:
        """Returns the fields that differ from the defaults; all, or those with this `About.changes`."""
        return [
            name
            for name, about in ABOUT.items()
            if getattr(self, name) != DEFAULTS[name] and changes in {None, about.changes}
        ]

    def key(self) -> dict[str, Any]:
        """Returns the fields that distinguish the encoder's vectors: those without their default."""
        values = {name: getattr(self, name) for name in (*self.changed("encoding"), *self.changed("place"))}
        return {name: getattr(value, "digest", value) for name, value in values.items()}

    def as_dict(self) -> dict[str, Any]:
        """Returns the fields as plain data."""
        template = self.own_template
        return vars(self) | {"template": template and template.model_dump(mode="json")}

    def processed(self, other: "Use") -> "Use":
        """Returns this use with the processing of vectors that another one chooses."""
        return replace(self, **{name: getattr(other, name) for name in other.changed("afterwards")})


USUAL = Use()
"""Every option at its default."""

ABOUT: dict[str, About] = {option.name: option.metadata["about"] for option in fields(Use)}

DEFAULTS: dict[str, Any] = {option.name: option.default for option in fields(Use)}

SIGNED = tuple(name for name, about in ABOUT.items() if about.sign is not None)
"""The fields that a signature states."""

PROMPTS = ("prompt", "prompt_name", "prompts")
"""The fields that set the text before a sentence: at most one of them can be given."""


def names(*changes: str) -> tuple[str, ...]:
    """Returns the names of all fields, or of those with one of these values of `About.changes`."""
    return tuple(name for name, about in ABOUT.items() if not changes or about.changes in changes)


def option_of(name: str) -> str:
    """Returns the command-line option of a field.

    >>> option_of("max_length")
    '--max-length'
    """
    return f"--{name.replace('_', '-')}"


def own_use(pooling: str, chosen: Use = USUAL) -> Use:
    """Returns the use of a model that has a single pooling: only the processing of its vectors can be chosen."""
    return Use(pooling=pooling, prompt="", device="cpu").processed(chosen)


_Load = TypeVar("_Load", bound=Callable[..., Any])


def spell_options(load: _Load) -> _Load:
    """Adds the fields of `Use` to the signature and docstring of a function that takes them as `**options`."""
    described = signature(load)
    kept = [parameter for parameter in described.parameters.values() if parameter.kind != Parameter.VAR_KEYWORD]
    options = [
        Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=option.type)
        for option in fields(Use)
    ]
    lines = [
        fill(f"{name}: {about.help}", 112, initial_indent=" " * 8, subsequent_indent=" " * 12)
        for name, about in ABOUT.items()
    ]
    load.__signature__ = described.replace(parameters=[*kept, *options])  # type: ignore[attr-defined]
    load.__doc__ = (load.__doc__ or "").replace("        options: the fields of `Use`.", "\n".join(lines))
    return load


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
        unescaped = "+" if name in PROMPTS else "+@,#"
        try:
            parts.append(f"{sign}{','.join(quote(text, safe=unescaped) for text in texts)}")
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
        elif kind in {bool, bool | None}:
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
    """Returns the part of a use that its signature states, with a template's short name."""
    values = {name: getattr(use, name) or DEFAULTS[name] for name in SIGNED}
    return Use(**values | {"template": str(use.template) if use.template else None, "whiten": use.whiten})


def name_parts(use: Use) -> dict[str, str]:
    """Returns the part of a use that a run's name states, by field: every named choice that is not the default."""
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
