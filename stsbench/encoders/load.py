"""From a model's name to an encoder: a published system, a checkpoint, word vectors or a callable."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.extras import MINILM as MINILM_EXTRA
from stsbench.base.extras import MODELS, require
from stsbench.encoders.backends import require_attention, require_backend, resolve_device
from stsbench.encoders.callables import CallableEncoder, from_function, import_function, is_callable
from stsbench.encoders.checkpoint import ADAPTER_CONFIG, PACKAGED, Checkpoint, find_checkpoint
from stsbench.encoders.choices import Choices, resolve
from stsbench.encoders.fitted import FittedEncoder, holds_fit, read_fit
from stsbench.encoders.libraries import reporting_failures
from stsbench.encoders.mteb_models import PREFIX, load_from_mteb
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.prompts import SidedEncoder
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.sentence_transformers import (
    is_of_model2vec,
    load_with_library,
    notes_on_code,
    read_settings,
)
from stsbench.encoders.template import NO_TEMPLATE
from stsbench.encoders.tokenizer import position_limit
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import ABOUT, PROMPTS, TORCH, Use, option_of, spell_options
from stsbench.encoders.vector_files import WORD_VECTOR_SUFFIXES, SavedVectors, StaticEncoder
from stsbench.encoders.weights import base_of, find_base

Model = Encoder | str | Path | Callable[[list[str]], Any]
"""What `load` accepts."""


@spell_options
def load(model: Model, **options: Any) -> Encoder:
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
        options: the fields of `Use`.

    Raises:
        UserError: if there is no such model, or it cannot be used as asked.

    >>> load(lambda sentences: [[len(sentence), 1.0] for sentence in sentences]).identity.kind
    'function'
    """
    return load_with(model, Use(**options))


def load_with(model: Model, use: Use) -> Encoder:
    """Loads an encoder, as `load` does."""
    if len(given := [option_of(name) for name in PROMPTS if getattr(use, name) is not None]) > 1:
        raise UserError(f"{' and '.join(given)} both set the text before a sentence. Give one of them.")
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


def _load_fitted(name: str, folder: Path, asked: Use) -> FittedEncoder:
    """Loads a folder of `stsbench fit`: the model, and what was fitted to its vectors."""
    require(MODELS, f"what was fitted in {name}")
    about, tensors = read_fit(folder)
    use, fitted_for = about.use_of(name, asked), about.model.name
    try:
        base = load_with(fitted_for, use)
    except UserError as error:
        raise UserError(
            f"{name} was fitted for {fitted_for}, which cannot be loaded: {error} Restore the model, or fit again."
        ) from error
    notes = (*about.notes_of(name, asked), *base.notes)
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
    first, second = use.own_prompts or (use.prompt, None)
    settings = choices.settings(replace(use, prompt=first, prompts=None), saved)
    notes = [*choices.notes, *checkpoint.own_notes()]
    if use.trust_remote_code:
        notes += notes_on_code(checkpoint)
    if adapter is not None:
        notes.append(f"{checkpoint.name} is an adapter, merged into the weights of {base_of(adapter)}.")
    kind = "sentence-transformers" if saved else "transformer"
    encoder = TransformerEncoder(checkpoint, settings, kind, tuple(notes), adapter)
    return encoder if second is None else SidedEncoder((encoder, encoder.with_use(prompt=second)), encoder.notes)


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
