"""From what a person calls a model to an encoder: a published system, a checkpoint, word vectors or a callable.

`load` is the verb, `load_with` the same for whoever passes a set of options on. A published system stands for its
checkpoint, used as its paper used it (`resolve`). What neither the person nor the checkpoint says about pooling
and prompt, the list of known checkpoints in `published` says.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.encoders import static
from stsbench.encoders.adapter import find_base, is_adapter
from stsbench.encoders.callables import CallableEncoder, from_function, import_function, is_callable
from stsbench.encoders.checkpoint import ADAPTER_CONFIG, MINILM, PACKAGED, Checkpoint, find_checkpoint
from stsbench.encoders.device import TORCH, require_backend, resolve_device, split_precision
from stsbench.encoders.fitted.encoder import FitAbout, FittedEncoder
from stsbench.encoders.fitted.folder import holds_fit, map_reader, read_about, read_seen
from stsbench.encoders.fitted.layered import has_layer, without_layer
from stsbench.encoders.poolers import AUTO, parse_pooling
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.sentence_transformers import (
    has_transformer_config,
    load_with_library,
    notes_on_code,
    notes_on_prompt,
    read_settings,
)
from stsbench.encoders.template import Template
from stsbench.encoders.template_files import NO_TEMPLATE, read_template
from stsbench.encoders.tokenizer import model_limit, position_limit
from stsbench.encoders.transformer import TransformerEncoder, TransformerSettings
from stsbench.encoders.weights import notes_on_unread
from stsbench.published.catalogue import hub_checkpoints, known_checkpoint, row, system
from stsbench.published.schema import KnownCheckpoint


@dataclass(frozen=True)
class LoadOptions:
    """How a model is loaded: what `load` takes beside the model, for whoever passes all of it on.

    Attributes:
        pooling: one of `POOLING_NAMES`, a place with layers and head (see `poolers`), or `auto`.
        max_length: sub-words kept, special tokens included; None for the published one, or the model's own limit.
        prompt: text put before every sentence; None for the checkpoint's own, "" for none.
        precision: `fp32`, `bf16` or `fp16`; computed by another program than torch `openvino-fp32`,
            `openvino-bf16`, `openvino-int8` or `onnx-fp32`.
        device: `auto`, `cpu`, `cuda` or `mps`.
        revision: a branch, tag or commit on the Hub.
        trust_remote_code: whether Python code that comes with a checkpoint may run.
        template: the text around every sentence and where its vector is read: the name of a known one, a YAML
            file, or a `Template`; None for that of the known checkpoint, `none` for none.
    """

    pooling: str = AUTO
    max_length: int | None = None
    prompt: str | None = None
    precision: str = "fp32"
    device: str = "auto"
    revision: str | None = None
    trust_remote_code: bool = False
    template: str | Path | Template | None = None

    def changed(self) -> list[str]:
        """Return the names of the fields that differ from the defaults.

        >>> LoadOptions(pooling="cls", max_length=128).changed()
        ['pooling', 'max_length']
        """
        return [field.name for field in fields(self) if getattr(self, field.name) != field.default]


@dataclass(frozen=True)
class Resolved:
    """What to load for a name, and how.

    Attributes:
        name: what to load: a Hub name, `minilm`, or the name as it was given.
        options: the person's choices, and the published ones where the person made none.
        notes: what a published name stands for and where that is said, and what is expected of it.
    """

    name: str
    options: LoadOptions
    notes: tuple[str, ...] = ()


def load(
    model: str | Path | Callable[[list[str]], Any],
    *,
    pooling: str = AUTO,
    max_length: int | None = None,
    prompt: str | None = None,
    precision: str = "fp32",
    device: str = "auto",
    revision: str | None = None,
    trust_remote_code: bool = False,
    template: str | Path | Template | None = None,
) -> Encoder:
    """Load an encoder. The weights themselves are read at the first sentence that is not in the cache.

    Args:
        model: a published system, such as `esimcse-bert-base`: its checkpoint is loaded, pooled as its paper
            pooled; `minilm` (the packaged all-MiniLM-L6-v2 if installed, else the Hub's); a checkpoint's folder or
            Hugging Face Hub name (Transformers, sentence-transformers or SimCSE-style training checkpoint); the
            folder of what was fitted for one (`fit`); a file of word vectors (GloVe or word2vec, text or binary);
            `module:function`; any callable `list[str] -> array`, or an object with such a method `encode`.
        pooling: one of `POOLING_NAMES`, a place with layers and head such as `last@-2`, or `auto`: the template's,
            the published one, the checkpoint's own, or else what its paper used.
        max_length: sub-words kept, special tokens included; None for the published one, or the model's own limit.
        prompt: text put before every sentence; None for the checkpoint's own, "" for none.
        precision: `fp32`, `bf16` or `fp16`; computed by another program than torch `openvino-fp32`,
            `openvino-bf16`, `openvino-int8` or `onnx-fp32`.
        device: `auto`, `cpu`, `cuda` or `mps`.
        revision: a branch, tag or commit on the Hub.
        trust_remote_code: whether Python code that comes with a checkpoint may run.
        template: the text around every sentence and where its vector is read: the name of a known one such as
            `promptbert`, a YAML file, or a `Template`; None for what the checkpoint is known for, `none` for none.

    Raises:
        UserError: if there is no such model, or it cannot be used as asked.

    >>> load(lambda sentences: [[len(sentence), 1.0] for sentence in sentences]).identity.kind
    'function'
    """
    return load_with(
        model,
        LoadOptions(pooling, max_length, prompt, precision, device, revision, trust_remote_code, template),
    )


def load_with(model: str | Path | Callable[[list[str]], Any], options: LoadOptions) -> Encoder:
    """Load an encoder, as `load` does.

    Raises:
        UserError: if there is no such model, or it cannot be used as asked.
    """
    backend, _ = split_precision(options.precision)
    if backend != TORCH:
        require_backend(backend, options.device)
        options = replace(options, device="cpu")
    if options.max_length is not None and options.max_length < 3:
        raise UserError(f"a maximum length of {options.max_length} leaves no room for a word: use 3 or more.")
    if is_callable(model):
        _refuse(options, "a callable")
        return from_function(model)
    name = str(model)
    path = Path(name).expanduser()
    if path.is_file() and any(suffix in static.SUFFIXES for suffix in path.suffixes[-2:]):
        _refuse(options, "word vectors, which are averaged", poolings=(AUTO, "avg"))
        return static.StaticEncoder(path, name)
    if ":" in name and not path.exists():
        _refuse(options, "a callable")
        return import_function(name)
    if holds_fit(path):
        return _load_fitted(name, path, options)
    resolved = resolve(name, options)
    encoder = _load_checkpoint(resolved.name, resolved.options)
    return replace(encoder, notes=(*resolved.notes, *encoder.notes))


def _load_fitted(name: str, folder: Path, options: LoadOptions) -> FittedEncoder:
    """Return the encoder of a folder that `stsbench fit` wrote.

    Raises:
        UserError: if it is damaged, another pooling is asked for, or the model cannot be loaded.
    """
    about = read_about(folder)
    model = about.model
    if options.template not in {None, NO_TEMPLATE}:
        raise UserError(f"{name}: the {about.method} was fitted without a template: leave out --template.")
    options = replace(options, template=NO_TEMPLATE)
    if options.pooling not in {AUTO, model.pooling}:
        raise UserError(
            f"{name}: the {about.method} was fitted with pooling {model.pooling}: leave out --pooling "
            f"{options.pooling}, or fit again with it."
        )
    if model.is_here:
        checkpoint = Checkpoint(name, folder)
        saved = read_settings(checkpoint)
        if saved is None or not has_layer(saved):
            raise UserError(
                f"{folder / 'modules.json'} no longer ends in the dense layer that was fitted: fit again."
            )
        chosen = replace(_as_fitted(about, options), device=resolve_device(options.device))
        # By its kind before, its vectors are found in the cache.
        base: Encoder = replace(_load_natively(checkpoint, without_layer(saved), chosen), kind=model.kind)
    else:
        base = _load_fitted_for(name, about, options)
    changed = tuple(
        f"{name}: the {about.method} was fitted with {field} {then!r}, and is used with {now!r}."
        for field in ("max_length", "prompt", "precision")
        if (now := getattr(options, field)) is not None and now != (then := getattr(model, field))
    )
    notes = (f"{name}: {about.sentence}", *changed, *base.notes)
    return FittedEncoder(name, about, base, map_reader(folder, about), read_seen(folder, about), notes)


def _as_fitted(about: FitAbout, options: LoadOptions) -> LoadOptions:
    """Return the options with what the fit was made with, where the person made no choice."""
    model = about.model
    if model.kind == "static":
        return replace(options, template=None)
    return replace(
        options,
        pooling=model.pooling if model.kind in {"transformer", "sentence-transformers"} else AUTO,
        max_length=model.max_length if options.max_length is None else options.max_length,
        prompt=model.prompt if options.prompt is None else options.prompt,
    )


def _load_fitted_for(name: str, about: FitAbout, options: LoadOptions) -> Encoder:
    """Return the model that something was fitted for, found again by its name and used as it was.

    Raises:
        UserError: if it cannot be loaded.
    """
    model = about.model
    used = _as_fitted(about, options)
    used = replace(used, revision=model.revision if options.revision is None else options.revision)
    if holds_fit(Path(model.name)):
        raise UserError(f"{name} was fitted for {model.name}, where something else was fitted since: fit again.")
    try:
        return load_with(model.name, used)
    except UserError as error:
        raise UserError(
            f"{name} was fitted for {model.name}, which cannot be loaded: {str(error).rstrip('.')}; put it back, "
            "or fit again."
        ) from error


def _refuse(options: LoadOptions, what: str, *, poolings: Sequence[str] = (AUTO,)) -> None:
    """Refuse the options that are for checkpoints, but for values that ask for nothing.

    Raises:
        UserError: naming those that were given.
    """
    harmless: dict[str, Sequence[object]] = {
        "pooling": poolings,
        "prompt": ("",),
        "device": ("cpu",),
        "trust_remote_code": (True,),
        "template": (NO_TEMPLATE,),
    }
    refused = [
        f"--{name.replace('_', '-')}"
        for name in options.changed()
        if getattr(options, name) not in harmless.get(name, ())
    ]
    if refused:
        raise UserError(f"{' and '.join(refused)}: not for {what}.")


def resolve(name: str, options: LoadOptions = LoadOptions()) -> Resolved:
    """Return what a published system's name stands for; a Hub name that is known stands for itself, used likewise.

    A folder or a file of that name comes first, then the packaged model; any other name stays as it is.

    Raises:
        UserError: if the system has no public checkpoint.

    >>> resolved = resolve("esimcse-bert-base")
    >>> resolved.name, resolved.options.pooling, resolved.options.max_length
    ('ffgcc/esimcse-bert-base-uncased', 'cls_before_pooler', 512)
    """
    if name == PACKAGED or ":" in name or Path(name).expanduser().exists():
        return Resolved(name, options)
    known = known_checkpoint(name)
    by_hub_name = "/" in name
    if by_hub_name and (known is None or known.hub.casefold() != name.casefold()):
        return Resolved(name, options)
    if known is None or not known.hub:
        try:
            measured = known.system if known else system(name).name
        except UserError:
            return Resolved(name, options)
        raise UserError(
            f"{measured} is a published system without a known checkpoint on the Hugging Face Hub: give the "
            "folder of one."
        )
    # A template that the person names says where it is read.
    as_published = options.pooling == AUTO and options.template in {None, NO_TEMPLATE}
    used = replace(
        options,
        pooling=known.pooling if as_published else options.pooling,
        max_length=known.max_length if options.max_length is None else options.max_length,
    )
    if by_hub_name:
        return Resolved(name, used, _doubts(known, options.pooling))
    # By its short name the packaged copy is found, too.
    return Resolved(PACKAGED if known.hub == MINILM else known.hub, used, _introduction(known, options.pooling))


def _introduction(known: KnownCheckpoint, pooling: str) -> tuple[str, ...]:
    stated = f"{known.name} is {known.hub} ({known.hub_source}), pooling {known.pooling} ({known.pooling_source})"
    if pooling not in {AUTO, known.pooling}:
        stated += f"; {pooling} was asked for, so its numbers are not to be expected"
    expected = [f"{known.name} is expected to score as {_row(name)}." for name in known.expected]
    return (f"{stated}.", *expected, *([f"{known.name}: {known.note}"] if known.note else []))


def _doubts(known: KnownCheckpoint, pooling: str) -> tuple[str, ...]:
    if pooling != AUTO or "pooling" not in known.unverified:
        return ()
    return (f"pooling {known.pooling} was chosen for {known.hub} (unverified). {known.note}".rstrip(),)


def _row(name: str) -> str:
    averages = [cell for cell in row(name).cells if cell.setting.task.startswith("Avg.")]
    return ", ".join([name, *(f"{cell.column} {cell.printed}" for cell in averages)])


def _load_checkpoint(name: str, options: LoadOptions) -> TransformerEncoder | CallableEncoder:
    checkpoint = find_checkpoint(name, revision=options.revision, with_code=options.trust_remote_code)
    adapter = checkpoint if is_adapter(checkpoint) else None
    if adapter is not None:
        checkpoint = find_base(adapter)
    if (code := checkpoint.own_code()) is not None and not options.trust_remote_code:
        raise UserError(
            f"{name} comes with Python code of its own ({code}), which does not run unless you trust it: "
            "read it, then pass --trust-remote-code."
        )
    template = _choose_template(name, options)
    options = replace(options, device=resolve_device(options.device), template=template)
    settings = read_settings(checkpoint, trust_remote_code=options.trust_remote_code)
    if settings is None and checkpoint.modules() and options.pooling == AUTO and adapter is None:
        if split_precision(options.precision)[0] != TORCH:
            raise UserError(
                f"{name} has modules that are not read natively, so the sentence-transformers library encodes it, "
                "and --backend is not for that: leave it out, or choose a --pooling."
            )
        if template is not None:
            raise UserError(
                f"{name} has modules that are not read natively, so the sentence-transformers library encodes it, "
                "and --template is not for that: give its text with --prompt, or choose a --pooling."
            )
        return load_with_library(
            checkpoint,
            max_length=options.max_length,
            prompt=options.prompt,
            precision=options.precision,
            device=options.device,
            trust_remote_code=options.trust_remote_code,
        )
    return _load_natively(checkpoint, settings, options, adapter)


def _choose_template(name: str, options: LoadOptions) -> Template | None:
    """Return the template that the person names, or else that of the known checkpoint.

    Raises:
        UserError: if there is no such template, or a prompt is asked for as well.
    """
    known = next(iter(hub_checkpoints(name)), None)
    if options.template is None:
        # A prompt is another choice of what stands before the sentence.
        by_its_paper = known is not None and known.template and options.prompt is None
        return read_template(known.template) if known is not None and by_its_paper else None
    if options.template == NO_TEMPLATE:
        return None
    template = read_template(options.template)
    if options.prompt:
        raise UserError(
            "--prompt and --template both say what stands before a sentence: write the prompt into the template."
        )
    return template


def _load_natively(
    checkpoint: Checkpoint,
    saved: TransformerSettings | None,
    options: LoadOptions,
    adapter: Checkpoint | None = None,
) -> TransformerEncoder:
    """Return the encoder of a Transformers checkpoint; `saved` is what its sentence-transformers files say."""
    name, config = checkpoint.name, checkpoint.json("config.json")
    if not config:
        raise UserError(f"{name} has no Transformer's config.json at its top: --pooling is not for it.")
    if config.get("is_encoder_decoder"):
        raise UserError(
            f"{name} is an encoder-decoder ({config.get('model_type')}), whose sentence vectors depend on more "
            "than a pooling: give a sentence-transformers checkpoint of it, or save its vectors for --vectors."
        )
    longest = position_limit(checkpoint)
    if options.max_length is not None and longest is not None and options.max_length > longest:
        raise UserError(
            f"{name} reads at most {longest} sub-words: --max-length {options.max_length} is too long."
        )
    known = next(iter(hub_checkpoints(name)), None)
    template = options.template if isinstance(options.template, Template) else None
    if template is None:
        pooling, notes = _choose_pooling(checkpoint, options.pooling, saved.pooling if saved else None, known)
    else:
        pooling, notes = _of_template(template, options, known, name)
    if saved is None and checkpoint.modules():
        notes += (f"{name} has modules that are not read natively: --pooling {pooling} leaves them out.",)
    settings = saved or TransformerSettings(pooling, model_limit(checkpoint))
    prompt = settings.prompt if options.prompt is None else options.prompt
    notes += _notes_on_files(checkpoint, saved)
    notes += notes_on_prompt(checkpoint, options.prompt)
    if template is not None:
        if prompt:
            notes += (f"{name}: template {template.name} takes the place of its own prompt {prompt!r}.",)
        prompt = ""
    elif options.prompt is None and not prompt and known and known.prompt:
        prompt = known.prompt
        notes += (f"{name}: {prompt!r} is put before every sentence ({known.usage}).",)
    if options.trust_remote_code:
        notes += notes_on_code(name, checkpoint.code_elsewhere())
    if adapter is not None:
        base = adapter.json(ADAPTER_CONFIG)["base_model_name_or_path"]
        notes += (f"{name} is an adapter: its differences are added to the weights of {base}.",)
    by_template = template.precision if template and options.precision == "fp32" else ""
    if by_template:
        notes += (f"template {template.name if template else ''} asks for {by_template}.",)
    return TransformerEncoder(
        checkpoint,
        replace(
            settings,
            pooling=pooling,
            max_length=settings.max_length if options.max_length is None else options.max_length,
            prompt=prompt,
            template=template,
        ),
        kind="sentence-transformers" if saved else "transformer",
        precision=by_template or options.precision,
        device=options.device,
        notes=notes,
        trust_remote_code=options.trust_remote_code,
        adapter=adapter,
    )


def _of_template(
    template: Template, options: LoadOptions, known: KnownCheckpoint | None, name: str
) -> tuple[str, tuple[str, ...]]:
    """Return the pooling to use with a template, and what the person should know about both.

    Raises:
        UserError: if the pooling is unknown.
    """
    notes: tuple[str, ...] = ()
    if template.note:
        notes += (f"template {template.name}: {template.note}",)
    if known is not None and known.template and read_template(known.template).digest != template.digest:
        notes += (f"template {template.name} differs from {known.template} for {name} ({known.usage}).",)
    if options.pooling in {AUTO, template.reading}:
        return template.reading, notes
    parse_pooling(options.pooling, also=(AUTO,))
    return options.pooling, (
        *notes,
        f"pooling {options.pooling} differs from {template.reading}, where template {template.name} is read.",
    )


def _notes_on_files(checkpoint: Checkpoint, saved: TransformerSettings | None) -> tuple[str, ...]:
    """Return notes on files that the person may think are read, and on those that one would expect."""
    name, model_type = checkpoint.name, str(checkpoint.json("config.json").get("model_type"))
    notes = notes_on_unread(name, checkpoint.weight_files(), model_type)
    if unnamed := checkpoint.unnamed_modules():
        notes += (f"{name} holds {', '.join(unnamed)}, which its modules.json does not name: left out.",)
    if saved is not None and not has_transformer_config(checkpoint):
        read = "all" if saved.max_length is None else f"at most {saved.max_length}"
        notes += (f"{name} does not say how many sub-words it reads (no sentence_bert_config.json): {read}.",)
    if not checkpoint.json("tokenizer_config.json"):
        notes += (
            f"{name} has no tokenizer_config.json: its words are split and cased as its architecture's are.",
        )
    return (*notes, *checkpoint.own_notes())


def _choose_pooling(
    checkpoint: Checkpoint, wanted: str, configured: str | None, known: KnownCheckpoint | None
) -> tuple[str, tuple[str, ...]]:
    """Return the pooling to use and what the person should know about the choice.

    Args:
        checkpoint: the model.
        wanted: what the person asked for; `auto` follows the checkpoint, then the list of known ones.
        configured: the pooling that the checkpoint's own configuration names, if it does.
        known: what is known of a checkpoint of that name.

    Raises:
        UserError: if the pooling is unknown.
    """
    # An unknown one is refused here, before anything is loaded.
    if wanted != AUTO and parse_pooling(wanted, also=(AUTO,)).is_of_template:
        raise UserError(f"pooling {wanted} is read in a template: add --template, or choose another.")
    expected = configured or (known.pooling if known else None)
    if wanted != AUTO:
        if expected is None or wanted == expected:
            return wanted, ()
        said_by = "its own configuration says" if configured or known is None else f"its paper used: {known.usage}"
        return wanted, (f"pooling {wanted} differs from {expected} for {checkpoint.name} ({said_by}).",)
    if expected is not None:
        return expected, ()
    architectures = checkpoint.json("config.json").get("architectures") or []
    if any(str(name).endswith("ForCL") for name in architectures):
        return "cls_before_pooler", (
            f"{checkpoint.name} is a SimCSE training checkpoint: pooling cls_before_pooler, as unsupervised "
            "models are scored; a supervised one wants --pooling cls.",
        )
    return "avg", (
        f"{checkpoint.name} does not say how to pool: pooling avg was chosen; "
        "set --pooling if its paper used another.",
    )
