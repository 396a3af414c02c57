"""How a model is used: one value, whose fields say of themselves what others need to know about them.

Loading, the identity of an encoder and the record hold the whole value. The command line's options, the cache's
key, signature, run name, labels, the checks of a record, what a sweep may vary and what `diagnose` tries iterate
over the fields. So a new option is a field here, its line in `UseOptions`, and the code that obeys it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, ParamSpec, TypedDict, TypeVar
from urllib.parse import quote, unquote

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.encoders.poolers import AUTO, POOLING_NAMES

if TYPE_CHECKING:
    from stsbench.encoders.template import Template

TORCH = "torch"
FP32 = "fp32"

FLASH = "flash_attention_2"
ATTENTIONS = ("eager", "sdpa", FLASH)
"""The kernels of attention that Transformers has, by its names."""

CAUSAL, BIDIRECTIONAL = "causal", "bidirectional"
MASKS = (CAUSAL, BIDIRECTIONAL)
"""What a token attends to: itself and what stands before it, or every token."""

PRECISIONS = {FP32: "float32", "bf16": "bfloat16", "fp16": "float16"}
"""What a person calls each precision, and what torch does."""

USUAL_LENGTHS = (32, 64, 128, 256, 512)
"""Maximum lengths that people set: SimCSE trains with 32, scripts often cut at 64 or 128, models at 256 or 512."""

UNKNOWN = "-"
"""A precision that the file of an imported score does not state, or another library's loader."""

_PRECISION = rf"(?:fp32|bf16|fp16|int8)(?:#[0-9a-f]+)?|{UNKNOWN}"


@dataclass(frozen=True)
class About:
    """What a field of `Use` says of itself.

    Attributes:
        help: for the command line and for `help()`.
        type: of its value on the command line.
        changes: `encoding`: the vectors that the encoder gives, and so the cache's key; `afterwards`: what is made
            of these vectors, which the cache holds as they were; `nothing`: no vector.
        sign: what stands before its value in a signature; None if signatures leave it out.
        always: whether the signature has it with the default value, too.
        end: what stands behind its value in a signature.
        safe: characters of its value that a signature does not escape.
        pattern: what its value looks like in a signature; empty for what its type says.
        named: its part of a run's name, made from the whole `Use`; None for no part.
        leads: whether that part stands before the tasks.
        least: the lowest number that makes sense.
        of_place: whether it says only where a model runs, which nobody varies to see what it does.
        later: whether the key of a vector leaves out its default: vectors were kept before there was such a field.
        sided: whether its value is a tuple, one text for each side of a pair.
        tried: returns the values that `diagnose` tries to explain a number; None where it tries none.
    """

    help: str
    type: Any = str
    changes: Literal["encoding", "afterwards", "nothing"] = "encoding"
    sign: str | None = None
    always: bool = False
    end: str = "|"
    safe: str = "+"
    pattern: str = ""
    named: "Callable[[Use], str] | None" = None
    leads: bool = False
    least: int | None = None
    of_place: bool = False
    later: bool = False
    sided: bool = False
    tried: Callable[[], Sequence[Any]] | None = None


def _option(default: Any, help: str, **about: Any) -> Any:
    return field(default=default, metadata={"about": About(help, **about)})


def _template_names() -> Sequence[str]:
    from stsbench.encoders.template import template_names

    return template_names()


@dataclass(frozen=True, kw_only=True)
class Loading:
    """The part of a `Use` that an encoder itself obeys: not what is done to its vectors afterwards."""

    pooling: str = _option(
        AUTO,
        "How token vectors become one: `auto` (the checkpoint's own), `cls`, `cls_before_pooler`, `avg`, "
        "`avg_top2`, `avg_first_last`, `avg_static_last`, `max`, `last`; with layers as in `last@-2`.",
        sign="",
        always=True,
        safe="+@,",
        named=lambda use: use.pooling,
        leads=True,
        tried=lambda: POOLING_NAMES,
    )
    max_length: int | None = _option(
        None,
        "How many sub-words of a sentence are read. Default: the model's own limit.",
        type=int | None,
        sign="len",
        least=1,
        tried=lambda: USUAL_LENGTHS,
    )
    prompt: str | None = _option(
        None,
        "The text before every sentence. Default: the checkpoint's own.",
        type=str | None,
        sign="prompt:",
        tried=lambda: ("",),
    )
    # No vector depends on it: an identity holds the prompt that has the name.
    prompt_name: str | None = _option(
        None,
        "The name of one of the checkpoint's prompts, to put before every sentence. Default: the one that the "
        "checkpoint names as its default, if it does.",
        type=str | None,
        changes="nothing",
    )
    prompts: str | tuple[str, str] | None = _option(
        None,
        "A prompt for each side of a pair, as in `query,document`: the name of one of the checkpoint's, or a text "
        "that has a white space or a colon; nothing for no prompt.",
        type=str | None,
        sign="prompts:",
        sided=True,
        later=True,
    )
    template: "str | Path | Template | None" = _option(
        None,
        "The text around every sentence and where it is read: a name as `promptbert`, a .yaml file, `none`.",
        type=str | None,
        sign="tmpl:",
        safe="+#",
        named=lambda use: getattr(use.template, "name", ""),
        leads=True,
        tried=_template_names,
    )
    backend: str = _option(
        TORCH,
        "The program that computes: `torch`, `openvino` or `onnx` (on the CPU).",
        sign="",
        end="-",
        pattern="[a-z]+",
    )
    precision: str = _option(
        FP32,
        "The precision to compute in: `fp32`, `bf16` or `fp16`; with a --backend `int8`, too.",
        sign="",
        always=True,
        safe="#",
        pattern=_PRECISION,
        named=lambda use: "" if use.computed_in in {FP32, UNKNOWN} else use.computed_in,
        tried=lambda: tuple(PRECISIONS),
    )
    revision: str | None = _option(
        None, "The branch, tag or commit on the Hub.", type=str | None, changes="nothing"
    )
    device: str = _option(AUTO, "Where to compute: `auto`, `cpu`, `cuda` or `mps`.", of_place=True)
    trust_remote_code: bool = _option(
        False,
        "Let Python code that comes with the checkpoint run.",
        type=bool,
        changes="nothing",
    )
    attention: str = _option(
        AUTO,
        "What computes attention in Transformers: `auto` (its choice), `eager`, `sdpa` or `flash_attention_2`.",
        sign="attn:",
        named=lambda use: "" if use.attention == AUTO else use.attention,
        later=True,
        tried=lambda: ATTENTIONS,
    )
    attention_mask: str = _option(
        AUTO,
        "What a token attends to: `auto` (as the model says), `causal` (nothing behind it) or `bidirectional`.",
        sign="mask:",
        named=lambda use: "" if use.attention_mask == AUTO else use.attention_mask,
        later=True,
        tried=lambda: MASKS,
    )


@dataclass(frozen=True, kw_only=True)
class Use(Loading):
    """How a model is used. An encoder's identity and a record hold what a choice that was left open became.

    The fields stand in the order of the signature; `UseOptions` says what each is.

    >>> Use(pooling="cls", max_length=128).changed()
    ['pooling', 'max_length']
    """

    # A record holds it: what it does not know is refused, and so is what JSON does not have.
    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "allow_inf_nan": False}

    normalize: bool | None = _option(
        None,
        "Scale vectors to unit length. Default: as the checkpoint says for similarities, never for the "
        "classifiers of the transfer tasks.",
        type=bool | None,
        changes="afterwards",
        sign="norm",
        named=lambda use: {None: "", True: "norm", False: "unnorm"}[use.normalize],
        tried=lambda: (True, False),
    )
    dimensions: int | None = _option(
        None,
        "How many leading dimensions of the vectors to keep (Matryoshka).",
        type=int | None,
        changes="afterwards",
        sign="dim",
        named=lambda use: "" if use.dimensions is None else f"dim{use.dimensions}",
        least=1,
    )
    whiten: int | None = _option(
        None,
        "Whiten on each task's sentences, and keep so many dimensions (0: all in which they vary).",
        type=int | None,
        changes="afterwards",
        named=lambda use: use.whitening,
        least=0,
    )

    @property
    def computed_in(self) -> str:
        """The precision with its back end, as the signature has it (`fp32`, `openvino-int8`)."""
        return self.precision if self.backend == TORCH else f"{self.backend}-{self.precision}"

    @property
    def whitening(self) -> str:
        """The whitening, as the signature has it (`whiten128`, `whiten` with all dimensions kept, or nothing)."""
        return "" if self.whiten is None else f"whiten{self.whiten or ''}"

    @property
    def own_template(self) -> "Template | None":
        """The template of an encoder, which was read when it was loaded."""
        assert not isinstance(self.template, str | Path), "it is what somebody asks for"
        return self.template

    @property
    def own_prompts(self) -> tuple[str, str] | None:
        """The texts before the first and the second sentences of pairs, of an encoder; None for one for all."""
        assert not isinstance(self.prompts, str), "it is what somebody asks for"
        return self.prompts

    def changed(self, changes: str | None = None) -> list[str]:
        """Return the names of the fields that differ from the defaults; of one kind of change, or of all."""
        return [
            name
            for name, about in ABOUT.items()
            if getattr(self, name) != _DEFAULTS[name] and changes in {None, about.changes}
        ]

    def key(self) -> dict[str, Any]:
        """Return what tells the encoder's vectors apart: a template by what is in it."""
        changed = self.changed("encoding")
        kept = [name for name in names("encoding") if name in changed or not ABOUT[name].later]
        values = {name: getattr(self, name) for name in kept}
        return {name: getattr(value, "digest", value) for name, value in values.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        template = self.own_template
        return vars(self) | {"template": template and template.model_dump(mode="json")}

    def processed(self, asked: "Use") -> "Use":
        """Return the same use, with the processing of vectors that is asked for."""
        return replace(self, **{name: getattr(asked, name) for name in asked.changed("afterwards")})

    def signed(self) -> "Use":
        """Return what its signature says, as `read_signature` gives it back: a template by its short name."""
        values = {name: getattr(self, name) or _DEFAULTS[name] for name in SIGNED}
        return Use(**values | {"template": str(self.template) if self.template else None, "whiten": self.whiten})

    def signature(self) -> str:
        """Return its part of a signature: `cls_before_pooler|len512|fp32`; the whitening stands elsewhere.

        Raises:
            UserError: if a prompt, say, holds a character that is not UTF-8.
        """
        text = ""
        for name in SIGNED:
            about, value = ABOUT[name], getattr(self, name)
            if not about.always and value in {_DEFAULTS[name], "", False}:
                continue
            parts = value if about.sided else () if isinstance(value, bool) else (str(value),)
            try:
                shown = ",".join(quote(part, safe=about.safe) for part in parts)
            except UnicodeEncodeError as error:
                raise UserError(
                    f"{option_of(name)} {value!r} is no text: a character in it is not UTF-8; write it anew."
                ) from error
            text += f"{about.sign}{shown}{about.end}"
        return text.removesuffix("|")


USUAL = Use()
"""Nothing is chosen: the model is used as its own files say."""

ABOUT: dict[str, About] = {option.name: option.metadata["about"] for option in fields(Use)}
"""What each field says of itself, in their order."""

_DEFAULTS: dict[str, Any] = {option.name: option.default for option in fields(Use)}

SIGNED = tuple(name for name, about in ABOUT.items() if about.sign is not None)
"""The fields that have a part of their own in a signature."""

PROMPTS = ("prompt", "prompt_name", "prompts")
"""The fields that say what stands before a sentence: a person gives one of them."""


def names(*changes: str) -> tuple[str, ...]:
    """Return the names of all fields, or of those with these values of `About.changes`."""
    return tuple(name for name, about in ABOUT.items() if not changes or about.changes in changes)


def option_of(name: str) -> str:
    """Return what a person calls a field: `--max-length`."""
    return f"--{name.replace('_', '-')}"


def shown(name: str, value: object, most: int | None = None) -> str:
    """Return the value of a field for a reader: the text before sentences in quotes, for each side its own.

    Args:
        name: of the field.
        value: None and an empty text are `none`.
        most: how many characters of a text are shown; None for all.

    >>> shown("prompts", ("find: ", "")), shown("prompt", "search_query: ", 9), shown("pooling", "cls")
    ("'find: ', ''", "'search_qu…'", 'cls')
    """
    if value is None or value == "":
        return "none"
    texts = value if isinstance(value, tuple) else (str(value),)
    cut = [text if most is None or len(text) <= most else f"{text[:most]}…" for text in texts]
    return ", ".join(map(repr, cut) if name in PROMPTS else cut)


def own_use(pooling: str, asked: Use = USUAL) -> Use:
    """Return how a model with one pooling of its own is used: only what is done to its vectors can be chosen."""
    return Use(pooling=pooling, prompt="", device="cpu").processed(asked)


def _pattern(name: str, about: About) -> str:
    plain = {int | None: r"\d+", bool | None: about.sign}.get(about.type, "[^|:]*")
    before = "" if about.type == bool | None else about.sign
    text = f"{before}(?P<{name}>{about.pattern or plain}){re.escape(about.end)}"
    return text if about.always else f"(?:{text})?"


SIGNATURE = "".join(_pattern(name, ABOUT[name]) for name in SIGNED)
"""The regular expression of what `Use.signature` writes, with its end; a group for each field."""


def read_signature(groups: "dict[str, str]") -> Use:
    """Return what the groups of `SIGNATURE` say.

    >>> read_signature(re.fullmatch(SIGNATURE, "avg|len256|openvino-int8|norm|").groupdict("")).signature()
    'avg|len256|openvino-int8|norm'
    """
    values: dict[str, Any] = {}
    for name, text in groups.items():
        if name in ABOUT and text:
            kind, is_sided = ABOUT[name].type, ABOUT[name].sided
            written = tuple(map(unquote, text.split(","))) if is_sided else unquote(text)
            values[name] = int(text) if kind == int | None else True if kind == bool | None else written
    return Use(**values)


class UseOptions(TypedDict, total=False):
    """The fields of `Use`, for a verb that takes them: `**use: Unpack[UseOptions]`.

    Attributes:
        pooling: one of `POOLING_NAMES`, a place with layers and head such as `last@-2`, or `auto`: the template's,
            the published one, the checkpoint's own, or else what its paper used.
        max_length: sub-words kept, special tokens included; None for the published one, or the model's own limit.
        prompt: text put before every sentence; None for the checkpoint's own, "" for none.
        prompt_name: the name of one of the checkpoint's prompts (`config_sentence_transformers.json`), put before
            every sentence in place of `prompt`; None for its default.
        prompts: in place of either a prompt for each side of a pair, as a tuple of two or as one text with a
            comma between (CSV's quoting): each is the name of one of the checkpoint's prompts, or a text that has
            a white space or a colon; "" for none.
        template: the text around every sentence and where its vector is read: the name of a known one such as
            `promptbert`, a YAML file, or a `Template`; None for what the checkpoint is known for, `none` for none.
        backend: the program that computes: `torch`, `openvino` or `onnx`.
        precision: `fp32`, `bf16` or `fp16`; with `openvino` `int8`, too.
        normalize: whether to scale the vectors to unit length. By default as the checkpoint says for similarities,
            and never for the classifiers of the transfer tasks: SentEval's scripts give these the vectors straight
            from the pooling, and its regularisers are made for their scale.
        dimensions: how many leading dimensions of the vectors to keep (Matryoshka); None for all.
        whiten: how many dimensions to keep when whitening on each task's own sentences; 0 for all in which they
            vary, None for no whitening.
        revision: a branch, tag or commit on the Hub.
        device: `auto`, `cpu`, `cuda` or `mps`.
        trust_remote_code: whether Python code that comes with a checkpoint may run.
        attention: the kernel that computes attention in Transformers: `eager`, `sdpa`, `flash_attention_2` (on
            CUDA in half precision, with the package flash-attn), or `auto` for what Transformers chooses. They
            give the same numbers but for their last bits; in half precision these show in a score.
        attention_mask: `causal` if a token is to attend to itself and to what stands before it, `bidirectional` if
            to every token; `auto` for what the checkpoint's own files and code say.
    """

    pooling: str
    max_length: int | None
    prompt: str | None
    prompt_name: str | None
    prompts: str | tuple[str, str] | None
    template: "str | Path | Template | None"
    backend: str
    precision: str
    normalize: bool | None
    dimensions: int | None
    whiten: int | None
    revision: str | None
    device: str
    trust_remote_code: bool
    attention: str
    attention_mask: str


_P = ParamSpec("_P")
_R = TypeVar("_R")


def takes_use(verb: Callable[_P, _R]) -> Callable[_P, _R]:
    """Spell out the `**use` of a verb: `help()` lists each option with its default, and a mistyped one is refused.

    What the verb's docstring says of `**use` is followed by what each option is.
    """
    plain = signature(verb)
    own = [parameter for parameter in plain.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
    options = [
        Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=option.type)
        for option in fields(Use)
    ]
    known = [parameter.name for parameter in [*own, *options]]

    @wraps(verb)
    def called(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
        for name in keywords:
            if name not in known:
                raise TypeError(f"{verb.__name__}() has no option {name!r}: {suggestion(name, known)}")
        return verb(*arguments, **keywords)

    called.__signature__ = plain.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    described = (UseOptions.__doc__ or "").partition("Attributes:\n")[2].rstrip()
    line_of_use = re.compile(r"^ +\*\*use: .*$", flags=re.MULTILINE)
    called.__doc__ = line_of_use.sub(lambda line: f"{line[0]}\n{described}", verb.__doc__ or "")
    # Who reads the source for the defaults would not find those of `Use`.
    del called.__wrapped__
    return called


def name_parts(use: Use, *, leading: bool) -> Iterator[str]:
    """Yield the parts of a run's name that say how its model is used: before the tasks (`leading`), or after."""
    for about in ABOUT.values():
        if about.named is not None and about.leads == leading and (part := about.named(use)):
            yield part
