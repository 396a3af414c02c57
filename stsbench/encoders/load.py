"""Loads an encoder by a model's name, and makes the choices that you leave open.

Pooling, prompt, template and length come from you, else from the checkpoint's files, else from the known
checkpoints in `published`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stsbench.base.errors import MINILM as MINILM_EXTRA
from stsbench.base.errors import MODELS, UserError, require
from stsbench.base.progress import Progress, silent
from stsbench.encoders import plan
from stsbench.encoders.backends import require_combination, resolve_device
from stsbench.encoders.checkpoint import (
    ADAPTER_CONFIG,
    MINILM,
    PACKAGED,
    Checkpoint,
    find_checkpoint,
    reporting_failures,
)
from stsbench.encoders.endpoint import is_address, load_endpoint
from stsbench.encoders.fitted import FittedEncoder, holds_fit, read_fit
from stsbench.encoders.mteb_models import PREFIX, load_from_mteb
from stsbench.encoders.poolers import AUTO, parse_pooling
from stsbench.encoders.prompts import SidedEncoder, in_sides, named_prompts, own_prompt, prompts_as_texts
from stsbench.encoders.protocol import Encoder, FloatMatrix
from stsbench.encoders.sentence_transformers import is_of_model2vec, load_with_library, read_settings
from stsbench.encoders.simple import (
    WORD_VECTOR_SUFFIXES,
    CallableEncoder,
    SavedVectors,
    StaticEncoder,
    from_function,
    import_function,
    is_callable,
)
from stsbench.encoders.template import NO_TEMPLATE, Template, read_template
from stsbench.encoders.tokenizer import model_limit, position_limit
from stsbench.encoders.transformer import TransformerEncoder, TransformerSettings
from stsbench.encoders.use import ABOUT, FP32, PROMPTS, TORCH, USUAL, Use, option_of, spell_options
from stsbench.encoders.weights import base_of, find_base
from stsbench.published.catalogue import checkpoint_by_name, checkpoint_named_like, identified_checkpoint, system
from stsbench.published.schema import KnownCheckpoint

Model = Encoder | str | Path | Callable[[list[str]], Any]
"""What `load` accepts."""


@spell_options
def load(model: Model, **options: Any) -> Encoder:
    """Load an encoder. The weights are read at the first sentence that is not in the cache.

    Args:
        model: a published system, such as `esimcse-bert-base`: its checkpoint, pooled as in its paper; `minilm`
            (the packaged all-MiniLM-L6-v2 if installed, else the Hub's); a checkpoint's folder or Hugging Face Hub
            name (Transformers, sentence-transformers or SimCSE-style training checkpoint); the folder of a fitted
            whitening or flow (`fit`); static embeddings (sentence-transformers' or model2vec's folder); a file of
            word vectors (GloVe or word2vec, text or binary); `mteb:NAME`, as mteb loads the model, with its
            prompts; the address and name of a served model (`http://127.0.0.1:8000/v1#NAME`: the OpenAI embeddings
            protocol); `module:function`; any callable `list[str] -> array`, or an object with such a method
            `encode`; saved vectors (`stsbench.encoders.simple.SavedVectors`); or a loaded encoder, which is
            returned unchanged.
        options: the fields of `Use`.

    Raises:
        UserError: if there is no such model, or it does not take an option.

    >>> load(lambda sentences: [[len(sentence), 1.0] for sentence in sentences]).identity.kind
    'function'
    """
    return load_with(model, Use(**options))


def embed(
    model: Model, texts: Sequence[str], *, use_cache: bool = True, progress: Progress = silent
) -> FloatMatrix:
    """Embed texts.

    Args:
        model: what `load` accepts.
        texts: any number; equal texts are encoded once.
        use_cache: whether to read and write the embedding cache.
        progress: called with the number of tokens encoded so far.

    Returns:
        An array of shape (texts, dimensions), float32, in the order of the texts.

    Raises:
        UserError: if there is no such model, or its vectors are not finite.

    >>> embed(lambda texts: [[len(text), 1.0] for text in texts], ["A dog.", "A cat sat."]).tolist()
    [[6.0, 1.0], [10.0, 1.0]]
    """
    if isinstance(texts, str):
        raise UserError("texts is a single string: give a list of texts.")
    embeddings = plan.embed(load(model), texts, use_cache=use_cache, progress=progress)
    (vectors,) = embeddings.vectors.values()
    return vectors[embeddings.rows]


def load_with(model: Model, use: Use) -> Encoder:
    """Loads an encoder, as `load` does."""
    if len(given := [option_of(name) for name in PROMPTS if getattr(use, name) is not None]) > 1:
        raise UserError(f"{' and '.join(given)} both set the text before a sentence. Give one of them.")
    require_combination(use)
    if use.backend != TORCH:
        use = replace(use, device="cpu")
    if use.max_length is not None and use.max_length < 3:
        raise UserError(f"--max-length {use.max_length} leaves no room for a word. Use 3 or more.")
    if isinstance(model, Encoder) or is_callable(model):
        return _load_object(model, use)
    return _load_named(str(model), use)


def _load_named(name: str, use: Use) -> Encoder:
    if is_address(name):
        _refuse(replace(use, prompt=None, prompt_name=None, prompts=None, revision=None), "a server")
        return load_endpoint(name, use)
    path = Path(name).expanduser()
    if path.is_file() and any(suffix in WORD_VECTOR_SUFFIXES for suffix in path.suffixes[-2:]):
        _refuse(use, "word vectors, which are averaged", pooling="avg")
        return StaticEncoder(path, name, use)
    if name.startswith(PREFIX):
        _refuse(replace(use, device=AUTO, revision=None), "a model that mteb loads")
        return load_from_mteb(name, use)
    if ":" in name and not path.exists():
        _refuse(use, "a callable")
        return import_function(name, use)
    if holds_fit(path):
        return _load_fitted(name, path, use)
    resolved = resolve(name, use)
    with reporting_failures(f"load {name}"):
        encoder = _load_checkpoint(resolved.name, resolved.use)
    return replace(encoder, notes=(*resolved.notes, *encoder.notes))


def _load_object(model: Any, use: Use) -> Encoder:
    """Returns a callable as an encoder, or a loaded encoder; only saved vectors take options."""
    if not isinstance(model, Encoder):
        _refuse(use, "a callable")
        return from_function(model, use)
    if not use.changed():
        return model
    if isinstance(model, SavedVectors):
        _refuse(use, "saved vectors")
        return replace(model, chosen=use)
    raise UserError(
        f"{option_of(use.changed()[0])} needs a model to load, but {model.identity.name} is loaded already: pass "
        "the option when you load it."
    )


def _refuse(use: Use, what: str, *, pooling: str = AUTO) -> None:
    """Raises a UserError for options that only checkpoints obey."""
    harmless = {
        "pooling": pooling,
        "prompt": "",
        "device": "cpu",
        "trust_remote_code": True,
        "template": NO_TEMPLATE,
    }
    refused = [
        option_of(name)
        for name in use.changed()
        if ABOUT[name].changes != "afterwards" and getattr(use, name) != harmless.get(name)
    ]
    if refused:
        raise UserError(f"{' and '.join(refused)}: not for {what}.")


def _load_fitted(name: str, folder: Path, chosen: Use) -> FittedEncoder:
    """Loads a folder of `stsbench fit`: the model, and the fitted map."""
    require(MODELS, f"what was fitted in {name}")
    about, tensors = read_fit(folder)
    use, fitted_for = about.use_of(name, chosen), about.model.name
    try:
        base = load_with(fitted_for, use)
    except UserError as error:
        raise UserError(
            f"{name} was fitted for {fitted_for}, which cannot be loaded: {error} Restore the model, or fit again."
        ) from error
    notes = (*about.notes_of(name, chosen), *base.notes)
    return FittedEncoder(name, about, base, tensors, notes)


def _load_checkpoint(name: str, use: Use) -> TransformerEncoder | CallableEncoder | SidedEncoder:
    require(MODELS, f"the checkpoint {name}", by=MINILM_EXTRA if name == PACKAGED else "")
    checkpoint = find_checkpoint(name, revision=use.revision, with_code=use.trust_remote_code)
    adapter = checkpoint if (checkpoint.folder / ADAPTER_CONFIG).is_file() else None
    if adapter is not None:
        checkpoint = find_base(adapter)
    if (code := checkpoint.own_code()) is not None and not use.trust_remote_code:
        raise UserError(
            f"{name} needs Python code of its own ({code}), which runs only if you trust it. Read it, then pass "
            "--trust-remote-code."
        )
    choices, saved = Choices(checkpoint), read_settings(checkpoint)
    use = replace(choices.texts(use), device=resolve_device(use.device))
    is_of_library = bool(checkpoint.modules()) or is_of_model2vec(checkpoint)
    if saved is None and is_of_library and use.pooling == AUTO and adapter is None:
        by_library = load_with_library(checkpoint, use)
        return replace(by_library, notes=(*by_library.notes, *choices.notes))
    _require_readable(checkpoint, use)
    settings = choices.settings(use, saved)
    notes = [*choices.notes, *checkpoint.own_notes(with_code=use.trust_remote_code)]
    if adapter is not None:
        notes.append(f"{checkpoint.name} is an adapter, merged into the weights of {base_of(adapter)}.")
    kind = "sentence-transformers" if saved else "transformer"
    encoder = TransformerEncoder(checkpoint, settings, kind, tuple(notes), adapter)
    return in_sides(encoder, use, lambda prompt: encoder.with_use(prompt=prompt))


def _require_readable(checkpoint: Checkpoint, use: Use) -> None:
    """Raises a UserError for a checkpoint that is not an encoder, or a length beyond its positions."""
    name, config = checkpoint.name, checkpoint.json("config.json")
    if not config or is_of_model2vec(checkpoint):
        raise UserError(f"{name} has no config.json of a Transformer, so --pooling does not apply to it.")
    if config.get("is_encoder_decoder") and not checkpoint.is_half:
        raise UserError(
            f"{name} is an encoder-decoder, for which there is no pooling. Save its vectors for --vectors."
        )
    longest = position_limit(checkpoint)
    if use.max_length is not None and longest is not None and use.max_length > longest:
        raise UserError(f"{name} reads at most {longest} sub-words, so --max-length {use.max_length} is too long.")


@dataclass(frozen=True)
class Resolved:
    """The model to load for a name, how to use it, and notes on both."""

    name: str
    use: Use
    notes: tuple[str, ...] = ()


def resolve(name: str, use: Use = USUAL) -> Resolved:
    """Finds the checkpoint of a published system; a known Hub name is kept, and used as published.

    A folder or file of that name takes precedence, then the packaged model; other names are returned unchanged.

    >>> resolved = resolve("esimcse-bert-base")
    >>> resolved.name, resolved.use.pooling, resolved.use.max_length
    ('ffgcc/esimcse-bert-base-uncased', 'cls_before_pooler', 512)
    """
    if name == PACKAGED or ":" in name or Path(name).expanduser().exists():
        return Resolved(name, use)
    known, is_hub_name = checkpoint_by_name(name), "/" in name
    if is_hub_name and (known is None or known.hub.casefold() != name.casefold()):
        return Resolved(name, use)
    if known is None or not known.hub:
        try:
            published = known.system if known else system(name).name
        except UserError:  # not a published system either
            return Resolved(name, use)
        raise UserError(
            f"{published} is a published system without a known checkpoint on the Hugging Face Hub. Give the "
            "folder of one."
        )
    # Your own template defines where it is read.
    as_published = use.pooling == AUTO and use.template in {None, NO_TEMPLATE}
    used = replace(
        use,
        pooling=known.pooling if as_published else use.pooling,
        max_length=known.max_length if use.max_length is None else use.max_length,
    )
    if is_hub_name:
        note = f"pooling {known.pooling} was chosen for {known.hub} (unverified). {known.note}".rstrip()
        is_unsure = use.pooling == AUTO and "pooling" in known.unverified
        return Resolved(name, used, (note,) if is_unsure else ())
    about = f"{known.hub} ({known.hub_source}), pooling {known.pooling} ({known.pooling_source})"
    notes = (f"{known.name} is {about}.", *([f"{known.name}: {known.note}"] if known.note else []))
    # The short name also finds the packaged copy.
    return Resolved(PACKAGED if known.hub == MINILM else known.hub, used, notes)


class Choices:
    """Resolves the open choices of a use for one checkpoint, with notes on them and on mismatches."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.notes: list[str] = []
        self._checkpoint, self._name = checkpoint, checkpoint.name
        self._known = checkpoint_named_like(self._name)
        # Otherwise only a folder has a similar name.
        self._is_certain = identified_checkpoint(self._name) is not None

    def texts(self, use: Use) -> Use:
        """Returns a use with the template, and prompts as texts instead of names."""
        use = replace(use, template=self._template(use))
        use, notes = prompts_as_texts(self._name, named_prompts(self._checkpoint), use)
        self.notes += notes
        return use

    def settings(self, use: Use, saved: TransformerSettings | None) -> TransformerSettings:
        """Returns how a checkpoint that is read natively is used.

        Args:
            use: with the prompts' texts.
            saved: the checkpoint's own settings, None if they are not all read natively.
        """
        template = use.own_template
        own = saved or TransformerSettings(Use(max_length=model_limit(self._checkpoint)))
        if template is None:
            pooling = self._pooling(use.pooling, saved.use.pooling if saved else None)
        else:
            pooling = self._pooling_in(template, use.pooling)
        if saved is None and self._checkpoint.modules():
            self.notes.append(
                f"{self._name} has modules that are not read natively: --pooling {pooling} leaves them out."
            )
        length = own.use.max_length if use.max_length is None else use.max_length
        use = replace(use, pooling=pooling, max_length=length, prompt="" if use.prompts else self._prompt(use))
        if template is not None and template.precision and use.computed_in == FP32:
            use = replace(use, precision=template.precision)
            self.notes.append(f"template {template.name} uses {template.precision}.")
        return replace(own, use=replace(use, prompts=None))

    def _template(self, use: Use) -> Template | None:
        if use.template == NO_TEMPLATE:
            return None
        if use.template is not None:
            template = read_template(use.template)
            if given := [option_of(field) for field in PROMPTS if getattr(use, field)]:
                raise UserError(
                    f"{given[0]} and --template both set the text before a sentence. Write the prompt into the "
                    "template."
                )
            return template
        known = self._known
        if known is None or not known.template or any(getattr(use, field) is not None for field in PROMPTS):
            return None
        self._note_likeness(f"template {known.template}", "--template", known)
        return read_template(known.template)

    def _prompt(self, use: Use) -> str:
        known, own = self._known, own_prompt(self._checkpoint)
        prompt = own if use.prompt is None else use.prompt
        if use.own_template is not None:
            if prompt:
                self.notes.append(
                    f"{self._name}: template {use.own_template.name} replaces the checkpoint's prompt {prompt!r}."
                )
            return ""
        if use.prompt is not None or own or known is None or not known.prompt:
            return prompt
        if self._is_certain:
            self.notes.append(f"{self._name}: {known.prompt!r} is put before every sentence ({known.usage}).")
        self._note_likeness(f"prompt {known.prompt!r}", "--prompt", known)
        return known.prompt

    def _pooling(self, pooling: str, configured: str | None) -> str:
        """Returns the user's pooling, or else that of the checkpoint's configuration or of its paper."""
        known = self._known
        expected = configured or (known.pooling if known else None)
        if pooling != AUTO:
            if parse_pooling(pooling, also=(AUTO,)).is_of_template:
                raise UserError(
                    f"pooling {pooling} is read in a template. Add --template, or choose another pooling."
                )
            if expected not in {None, pooling}:
                source = f"its paper: {known.usage}" if known and not configured else "its own configuration"
                self.notes.append(f"pooling {pooling} differs from {expected} for {self._name} ({source}).")
            return pooling
        if expected is not None:
            if known and not configured:
                self._note_likeness(f"pooling {expected}", "--pooling", known)
            return expected
        architectures = self._checkpoint.json("config.json").get("architectures") or ()
        if any(str(name).endswith("ForCL") for name in architectures):
            self.notes.append(
                f"{self._name} is a SimCSE training checkpoint: pooling cls_before_pooler was chosen, as for "
                "unsupervised models. For a supervised one use --pooling cls."
            )
            return "cls_before_pooler"
        self.notes.append(
            f"{self._name} does not state its pooling: avg was chosen. Set --pooling if its paper used another."
        )
        return "avg"

    def _pooling_in(self, template: Template, pooling: str) -> str:
        """Returns the user's pooling, or else that of the template."""
        if template.note:
            self.notes.append(f"template {template.name}: {template.note}")
        if pooling in {AUTO, template.reading}:
            return template.reading
        parse_pooling(pooling, also=(AUTO,))
        self.notes.append(
            f"pooling {pooling} differs from {template.reading}, where template {template.name} is read."
        )
        return pooling

    def _note_likeness(self, choice: str, option: str, known: KnownCheckpoint) -> None:
        if not self._is_certain:
            self.notes.append(
                f"{choice} was chosen because {self._name} is named like {known.hub}. Set {option} if it is "
                "another model."
            )
