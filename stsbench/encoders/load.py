"""From a model's name to an encoder: a published system, a checkpoint, word vectors or a callable.

A published system is loaded as its checkpoint, used as in its paper (`resolve`). A pooling or prompt that neither
the user nor the checkpoint chooses comes from the list of known checkpoints in `published`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.extras import MINILM as MINILM_EXTRA
from stsbench.base.extras import MODELS, require
from stsbench.encoders.adapter import base_of, find_base, is_adapter
from stsbench.encoders.callables import CallableEncoder, from_function, import_function, is_callable
from stsbench.encoders.checkpoint import Checkpoint, find_checkpoint
from stsbench.encoders.device import require_attention, require_backend, resolve_device
from stsbench.encoders.fitted import FittedEncoder, holds_fit, read_fit, without_layer
from stsbench.encoders.hub import PACKAGED
from stsbench.encoders.libraries import reporting_failures
from stsbench.encoders.mteb_models import PREFIX, load_from_mteb
from stsbench.encoders.poolers import AUTO, parse_pooling
from stsbench.encoders.prompts import as_texts, own_prompt, require_one_choice
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.published_names import resolve
from stsbench.encoders.sentence_transformers import (
    is_of_model2vec,
    load_with_library,
    notes_on_code,
    read_settings,
)
from stsbench.encoders.sides import SidedEncoder
from stsbench.encoders.template import NO_TEMPLATE, Template, read_template
from stsbench.encoders.tokenizer import model_limit, position_limit
from stsbench.encoders.transformer import TransformerEncoder, TransformerSettings
from stsbench.encoders.use import ABOUT, FP32, PROMPTS, TORCH, Use, option_of, spell_options
from stsbench.encoders.vector_files import WORD_VECTOR_SUFFIXES, SavedVectors, StaticEncoder
from stsbench.published.catalogue import checkpoint_named_like, identified_checkpoint
from stsbench.published.schema import KnownCheckpoint

_Choice = tuple[str, tuple[str, ...]]
"""A choice made for the user, and notes on it."""

_NO_CHOICE: dict[str, Sequence[object]] = {
    "pooling": (AUTO,),
    "prompt": ("",),
    "device": ("cpu",),
    "trust_remote_code": (True,),
    "template": (NO_TEMPLATE,),
}
"""Values that any model accepts, because they ask for nothing."""


Model = Encoder | str | Path | Callable[[list[str]], Any]
"""What `load` accepts."""


@spell_options(Use)
def load(model: Model, use: Use) -> Encoder:
    """Load an encoder. The weights are read at the first sentence that is not in the cache.

    Args:
        model: a published system, such as `esimcse-bert-base`: its checkpoint is loaded, pooled as its paper
            pooled; `minilm` (the packaged all-MiniLM-L6-v2 if installed, else the Hub's); a checkpoint's folder or
            Hugging Face Hub name (Transformers, sentence-transformers or SimCSE-style training checkpoint); the
            folder of what was fitted for one (`fit`); static embeddings (sentence-transformers' or model2vec's
            folder); a file of word vectors (GloVe or word2vec, text or binary);
            `mteb:NAME`, as mteb loads the model, with its prompts; `module:function`; any callable
            `list[str] -> array`, or an object with such a method `encode`; `SavedVectors`; or a loaded encoder,
            which is returned unchanged.
        use: how it is used.

    Raises:
        UserError: if there is no such model, or it cannot be used as asked.

    >>> load(lambda sentences: [[len(sentence), 1.0] for sentence in sentences]).identity.kind
    'function'
    """
    return load_with(model, use)


def load_with(model: Model, use: Use) -> Encoder:
    """Loads an encoder, as `load` does."""
    require_one_choice(use)
    require_attention(use)
    require_backend(use)
    if use.backend != TORCH:
        use = replace(use, device="cpu")
    if use.max_length is not None and use.max_length < 3:
        raise UserError(f"--max-length {use.max_length} leaves no room for a word. Use 3 or more.")
    if isinstance(model, Encoder) or is_callable(model):
        return _load_object(model, use)
    name = str(model)
    path = Path(name).expanduser()
    if path.is_file() and any(suffix in WORD_VECTOR_SUFFIXES for suffix in path.suffixes[-2:]):
        _refuse(use, "word vectors, which are averaged", pooling=(AUTO, "avg"))
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
    """Returns a callable as an encoder, or a loaded encoder; of these only saved vectors take options."""
    if not isinstance(model, Encoder):
        _refuse(use, "a callable")
        return from_function(model, use)
    if not use.changed():
        return model
    if isinstance(model, SavedVectors):
        _refuse(use, "saved vectors")
        return replace(model, asked=use)
    raise UserError(
        f"{option_of(use.changed()[0])} needs a model to load, but {model.identity.name} is loaded already: pass "
        "the option when you load it."
    )


def _refuse(use: Use, what: str, *, pooling: Sequence[str] = (AUTO,), also: Sequence[str] = ()) -> None:
    """Raises a UserError for options that only checkpoints obey, except those in `also`."""
    accepted = _NO_CHOICE | {"pooling": pooling}
    refused = [
        option_of(name)
        for name in use.changed()
        if ABOUT[name].changes != "afterwards"
        and name not in also
        and getattr(use, name) not in accepted.get(name, ())
    ]
    if refused:
        raise UserError(f"{' and '.join(refused)}: not for {what}.")


def _load_fitted(name: str, folder: Path, asked: Use) -> FittedEncoder:
    """Loads a folder of `stsbench fit`: the model, and what was fitted to its vectors."""
    require(MODELS, f"what was fitted in {name}")
    about, tensors = read_fit(folder)
    model, use = about.model, about.use_of(name, asked)
    if about.is_here:
        base: Encoder = without_layer(folder, _load_checkpoint(name, use), model.kind)
    elif holds_fit(Path(model.name)):
        raise UserError(f"{name} was fitted for {model.name}, which has been replaced by another fit. Fit again.")
    else:
        try:
            base = load_with(model.name, use)
        except UserError as error:
            raise UserError(
                f"{name} was fitted for {model.name}, which cannot be loaded: {error} Restore the model, or fit "
                "again."
            ) from error
    notes = (*about.notes_of(name, asked), *base.notes)
    return FittedEncoder(name, about, base, tensors, notes)


def _load_checkpoint(name: str, use: Use) -> TransformerEncoder | CallableEncoder | SidedEncoder:
    require(MODELS, f"the checkpoint {name}", by=MINILM_EXTRA if name == PACKAGED else "")
    checkpoint = find_checkpoint(name, revision=use.revision, with_code=use.trust_remote_code)
    adapter = checkpoint if is_adapter(checkpoint) else None
    if adapter is not None:
        checkpoint = find_base(adapter)
    if (code := checkpoint.own_code()) is not None and not use.trust_remote_code:
        raise UserError(
            f"{name} needs Python code of its own ({code}), which runs only if you trust it. Read it, then pass "
            "--trust-remote-code."
        )
    template, hints = _choose_template(name, use)
    use, notes = as_texts(checkpoint, replace(use, template=template))
    notes += hints
    use = replace(use, device=resolve_device(use.device))
    saved = read_settings(checkpoint)
    is_of_library = bool(checkpoint.modules()) or is_of_model2vec(checkpoint)
    if saved is None and is_of_library and use.pooling == AUTO and adapter is None:
        by_library = load_with_library(checkpoint, use)
        return replace(by_library, notes=(*by_library.notes, *notes))
    first, second = use.own_prompts or (use.prompt, None)
    encoder = _load_natively(checkpoint, saved, replace(use, prompt=first, prompts=None))
    if adapter is not None:
        notes += (f"{checkpoint.name} is an adapter, merged into the weights of {base_of(adapter)}.",)
    encoder = replace(encoder, adapter=adapter, notes=(*encoder.notes, *notes))
    return encoder if second is None else SidedEncoder((encoder, encoder.with_use(prompt=second)), encoder.notes)


def _choose_template(name: str, use: Use) -> tuple[Template | None, tuple[str, ...]]:
    """Returns the user's template, or else that of a known checkpoint, and notes."""
    if use.template is None:
        known = checkpoint_named_like(name)
        if known is None or not known.template or any(getattr(use, field) is not None for field in PROMPTS):
            return None, ()
        template = read_template(known.template)
        if _is_identified(name):
            return template, ()
        return template, (_hint(f"template {template.name}", name, known, "--template"),)
    if use.template == NO_TEMPLATE:
        return None, ()
    template = read_template(use.template)
    if given := [option_of(field) for field in PROMPTS if getattr(use, field)]:
        raise UserError(
            f"{given[0]} and --template both set the text before a sentence. Write the prompt into the template."
        )
    return template, ()


def _load_natively(checkpoint: Checkpoint, saved: TransformerSettings | None, asked: Use) -> TransformerEncoder:
    """Loads a Transformers checkpoint; `saved` are its own settings, None if they are not all read natively."""
    name = checkpoint.name
    _require_readable(checkpoint, asked)
    known = checkpoint_named_like(name)
    template = asked.template if isinstance(asked.template, Template) else None
    if template is None:
        pooling, notes = _choose_pooling(checkpoint, asked.pooling, saved.use.pooling if saved else None, known)
    else:
        pooling, notes = _pooling_of(template, asked, known, name)
    if saved is None and checkpoint.modules():
        notes += (f"{name} has modules that are not read natively: --pooling {pooling} leaves them out.",)
    settings = saved or TransformerSettings(Use(max_length=model_limit(checkpoint)))
    prompt, notes_on_prompt = _choose_prompt(checkpoint, own_prompt(checkpoint), asked, known)
    notes += (*checkpoint.own_notes(), *notes_on_prompt)
    if asked.trust_remote_code:
        notes += notes_on_code(name, checkpoint.code_elsewhere())
    length = settings.use.max_length if asked.max_length is None else asked.max_length
    use = replace(asked, pooling=pooling, max_length=length, prompt=prompt, template=template)
    if template is not None and template.precision and asked.computed_in == FP32:
        use = replace(use, precision=template.precision)
        notes += (f"template {template.name} uses {template.precision}.",)
    kind = "sentence-transformers" if saved else "transformer"
    return TransformerEncoder(checkpoint, replace(settings, use=use), kind, notes)


def _require_readable(checkpoint: Checkpoint, use: Use) -> None:
    """Raises a UserError for a checkpoint that is not an encoder, or a length beyond its positions."""
    name, config = checkpoint.name, checkpoint.json("config.json")
    if not config or is_of_model2vec(checkpoint):
        raise UserError(f"{name} has no config.json of a Transformer, so --pooling does not apply to it.")
    if config.get("is_encoder_decoder"):
        raise UserError(f"{name} is an encoder-decoder, which no pooling reads. Save its vectors for --vectors.")
    longest = position_limit(checkpoint)
    if use.max_length is not None and longest is not None and use.max_length > longest:
        raise UserError(f"{name} reads at most {longest} sub-words, so --max-length {use.max_length} is too long.")


def _choose_prompt(checkpoint: Checkpoint, own: str, asked: Use, known: KnownCheckpoint | None) -> _Choice:
    """Returns the text before every sentence; `own` is the checkpoint's default."""
    name, prompt = checkpoint.name, own if asked.prompt is None else asked.prompt
    if isinstance(asked.template, Template):
        note = f"{name}: template {asked.template.name} replaces the checkpoint's prompt {prompt!r}."
        return "", (note,) if prompt else ()
    if asked.prompt is None and not prompt and known and known.prompt:
        if not _is_identified(name):
            return known.prompt, (_hint(f"prompt {known.prompt!r}", name, known, "--prompt"),)
        return known.prompt, (f"{name}: {known.prompt!r} is put before every sentence ({known.usage}).",)
    return prompt, ()


def _is_identified(name: str) -> bool:
    return identified_checkpoint(name) is not None


def _hint(choice: str, name: str, known: KnownCheckpoint, option: str) -> str:
    """Returns the note on a choice that only a folder's name suggests."""
    return f"{choice} was chosen because {name} is named like {known.hub}. Set {option} if it is another model."


def _pooling_of(template: Template, use: Use, known: KnownCheckpoint | None, name: str) -> _Choice:
    """Returns the pooling to use with a template."""
    notes: tuple[str, ...] = ()
    if template.note:
        notes += (f"template {template.name}: {template.note}",)
    if known is not None and known.template and read_template(known.template).digest != template.digest:
        notes += (f"template {template.name} differs from {known.template} for {name} ({known.usage}).",)
    if use.pooling in {AUTO, template.reading}:
        return template.reading, notes
    parse_pooling(use.pooling, also=(AUTO,))
    note = f"pooling {use.pooling} differs from {template.reading}, where template {template.name} is read."
    return use.pooling, (*notes, note)


def _choose_pooling(
    checkpoint: Checkpoint, asked: str, configured: str | None, known: KnownCheckpoint | None
) -> _Choice:
    """Returns the user's pooling, or else that of the checkpoint or its paper."""
    if asked != AUTO and parse_pooling(asked, also=(AUTO,)).is_of_template:
        raise UserError(f"pooling {asked} is read in a template. Add --template, or choose another pooling.")
    expected = configured or (known.pooling if known else None)
    if asked != AUTO:
        if expected is None or asked == expected:
            return asked, ()
        source = "its own configuration" if configured or known is None else f"its paper: {known.usage}"
        return asked, (f"pooling {asked} differs from {expected} for {checkpoint.name} ({source}).",)
    if configured is None and known and not _is_identified(checkpoint.name):
        return known.pooling, (_hint(f"pooling {known.pooling}", checkpoint.name, known, "--pooling"),)
    if expected is not None:
        return expected, ()
    architectures = checkpoint.json("config.json").get("architectures") or ()
    if any(str(name).endswith("ForCL") for name in architectures):
        return "cls_before_pooler", (
            f"{checkpoint.name} is a SimCSE training checkpoint: pooling cls_before_pooler was chosen, as for "
            "unsupervised models. For a supervised one use --pooling cls.",
        )
    return "avg", (
        f"{checkpoint.name} does not state its pooling: avg was chosen. Set --pooling if its paper used another.",
    )
