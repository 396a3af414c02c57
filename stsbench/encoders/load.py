"""From what a person calls a model to an encoder: a published system, a checkpoint, word vectors or a callable.

`load` is the verb, `load_with` the same for whoever passes a `Use` on. A published system stands for its
checkpoint, used as its paper used it (`resolve`). What neither the person nor the checkpoint says about pooling
and prompt, the list of known checkpoints in `published` says.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from stsbench.base.errors import UserError
from stsbench.base.extras import MINILM as MINILM_EXTRA
from stsbench.base.extras import MODELS, require
from stsbench.encoders.adapter import base_of, find_base, is_adapter
from stsbench.encoders.callables import CallableEncoder, from_function, import_function, is_callable
from stsbench.encoders.checkpoint import MINILM, PACKAGED, Checkpoint, find_checkpoint
from stsbench.encoders.device import require_attention, require_backend, require_precision, resolve_device
from stsbench.encoders.fitted import FittedEncoder
from stsbench.encoders.fitted_folder import holds_fit, read_about, read_map, read_seen, without_layer
from stsbench.encoders.mteb_models import PREFIX, load_from_mteb
from stsbench.encoders.poolers import AUTO, parse_pooling
from stsbench.encoders.prompts import as_texts, own_prompt, require_one_choice
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.sentence_transformers import (
    has_transformer_config,
    load_with_library,
    notes_on_code,
    pools_without_prompt,
    read_settings,
)
from stsbench.encoders.sides import SidedEncoder
from stsbench.encoders.template import NO_TEMPLATE, Template, read_template
from stsbench.encoders.token_tables import TABLE_POOLINGS, TokenTable, TokenTableEncoder, find_table, load_table
from stsbench.encoders.tokenizer import model_limit, position_limit
from stsbench.encoders.transformer import TransformerEncoder, TransformerSettings
from stsbench.encoders.use import ABOUT, FP32, PROMPTS, TORCH, USUAL, Use, UseOptions, option_of, takes_use
from stsbench.encoders.vector_files import WORD_VECTOR_SUFFIXES, StaticEncoder
from stsbench.encoders.weights import notes_on_unread
from stsbench.published.catalogue import checkpoints_named_like, hub_checkpoints, known_checkpoint, row, system
from stsbench.published.schema import KnownCheckpoint

_Choice = tuple[str, tuple[str, ...]]
"""A choice that was made for the person, and what they should know about it."""


@dataclass(frozen=True)
class Resolved:
    """What to load for a name, how to use it, and what to tell the person about that."""

    name: str
    use: Use
    notes: tuple[str, ...] = ()


@takes_use
def load(model: str | Path | Callable[[list[str]], Any], **use: Unpack[UseOptions]) -> Encoder:
    """Load an encoder. The weights themselves are read at the first sentence that is not in the cache.

    Args:
        model: a published system, such as `esimcse-bert-base`: its checkpoint is loaded, pooled as its paper
            pooled; `minilm` (the packaged all-MiniLM-L6-v2 if installed, else the Hub's); a checkpoint's folder or
            Hugging Face Hub name (Transformers, sentence-transformers or SimCSE-style training checkpoint); the
            folder of what was fitted for one (`fit`); static embeddings (sentence-transformers' or model2vec's
            folder); a file of word vectors (GloVe or word2vec, text or binary);
            `mteb:NAME`, as mteb loads the model, with its prompts; `module:function`; any callable
            `list[str] -> array`, or an object with such a method `encode`.
        **use: how the model is used.

    Raises:
        UserError: if there is no such model, or it cannot be used as asked.

    >>> load(lambda sentences: [[len(sentence), 1.0] for sentence in sentences]).identity.kind
    'function'
    """
    return load_with(model, Use(**use))


def load_with(model: str | Path | Callable[[list[str]], Any], use: Use) -> Encoder:
    """Load an encoder, as `load` does."""
    require_one_choice(use)
    require_precision(use.backend, use.precision)
    require_attention(use)
    if use.backend != TORCH:
        require_backend(use.backend, use.device)
        use = replace(use, device="cpu")
    if use.max_length is not None and use.max_length < 3:
        raise UserError(f"a maximum length of {use.max_length} leaves no room for a word: use 3 or more.")
    if is_callable(model):
        _refuse(use, "a callable")
        return from_function(model, use)
    name = str(model)
    path = Path(name).expanduser()
    if path.is_file() and any(suffix in WORD_VECTOR_SUFFIXES for suffix in path.suffixes[-2:]):
        _refuse(use, "word vectors, which are averaged", poolings=(AUTO, "avg"))
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
    encoder = _load_checkpoint(resolved.name, resolved.use)
    return replace(encoder, notes=(*resolved.notes, *encoder.notes))


def _load_fitted(name: str, folder: Path, asked: Use) -> FittedEncoder:
    """Return the encoder of a folder that `stsbench fit` wrote: the model, with what was fitted as its tail."""
    require(MODELS, f"what was fitted in {name}")
    about = read_about(folder)
    model, use = about.model, about.use_of(name, asked)
    if model.is_here:
        base: Encoder = without_layer(folder, _load_checkpoint(name, use), model.kind)
    elif holds_fit(Path(model.name)):
        raise UserError(f"{name} was fitted for {model.name}, where something else was fitted since: fit again.")
    else:
        try:
            base = load_with(model.name, use)
        except UserError as error:
            raise UserError(
                f"{name} was fitted for {model.name}, which cannot be loaded: {str(error).rstrip('.')}; put it "
                "back, or fit again."
            ) from error
    notes = (*about.notes_of(name, asked), *base.notes)
    return FittedEncoder(name, about, base, partial(read_map, folder, about), read_seen(folder, about), notes)


def _refuse(use: Use, what: str, *, poolings: Sequence[str] = (AUTO,), also: Sequence[str] = ()) -> None:
    """Refuse what can be chosen for checkpoints alone, but for values that ask for nothing, and fields in `also`.

    What is done to vectors afterwards can be done to any.
    """
    harmless: dict[str, Sequence[object]] = {
        "pooling": poolings,
        "prompt": ("",),
        "device": ("cpu",),
        "trust_remote_code": (True,),
        "template": (NO_TEMPLATE,),
    }
    refused = [
        option_of(name)
        for name in use.changed()
        if ABOUT[name].changes != "afterwards"
        and name not in also
        and getattr(use, name) not in harmless.get(name, ())
    ]
    if refused:
        raise UserError(f"{' and '.join(refused)}: not for {what}.")


def resolve(name: str, use: Use = USUAL) -> Resolved:
    """Return what a published system's name stands for; a Hub name that is known stands for itself, used likewise.

    A folder or a file of that name comes first, then the packaged model; any other name stays as it is.

    >>> resolved = resolve("esimcse-bert-base")
    >>> resolved.name, resolved.use.pooling, resolved.use.max_length
    ('ffgcc/esimcse-bert-base-uncased', 'cls_before_pooler', 512)
    """
    if name == PACKAGED or ":" in name or Path(name).expanduser().exists():
        return Resolved(name, use)
    known = known_checkpoint(name)
    by_hub_name = "/" in name
    if by_hub_name and (known is None or known.hub.casefold() != name.casefold()):
        return Resolved(name, use)
    if known is None or not known.hub:
        try:
            measured = known.system if known else system(name).name
        except UserError:  # no published system either
            return Resolved(name, use)
        raise UserError(
            f"{measured} is a published system without a known checkpoint on the Hugging Face Hub: give the "
            "folder of one."
        )
    # A template that the person names says where it is read.
    as_published = use.pooling == AUTO and use.template in {None, NO_TEMPLATE}
    used = replace(
        use,
        pooling=known.pooling if as_published else use.pooling,
        max_length=known.max_length if use.max_length is None else use.max_length,
    )
    if by_hub_name:
        unsure = use.pooling == AUTO and "pooling" in known.unverified
        doubt = f"pooling {known.pooling} was chosen for {known.hub} (unverified). {known.note}".rstrip()
        return Resolved(name, used, (doubt,) if unsure else ())
    # By its short name the packaged copy is found, too.
    return Resolved(PACKAGED if known.hub == MINILM else known.hub, used, _introduction(known, use.pooling))


def _introduction(known: KnownCheckpoint, pooling: str) -> tuple[str, ...]:
    stated = f"{known.name} is {known.hub} ({known.hub_source}), pooling {known.pooling} ({known.pooling_source})"
    if pooling not in {AUTO, known.pooling}:
        stated += f"; {pooling} was asked for, so its numbers are not to be expected"
    expected = [f"{known.name} is expected to score as {_row(name)}." for name in known.expected]
    return (f"{stated}.", *expected, *([f"{known.name}: {known.note}"] if known.note else []))


def _row(name: str) -> str:
    averages = [cell for cell in row(name).cells if cell.setting.task.startswith("Avg.")]
    return ", ".join([name, *(f"{cell.column} {cell.printed}" for cell in averages)])


def _load_checkpoint(
    name: str, use: Use
) -> TransformerEncoder | TokenTableEncoder | CallableEncoder | SidedEncoder:
    needs = partial(require, MODELS, f"the checkpoint {name}", by=MINILM_EXTRA if name == PACKAGED else "")
    # A table of token vectors that is here needs no more than its tokenizer: no torch, no Transformers.
    if not Path(name).expanduser().is_dir():
        needs()
    checkpoint = find_checkpoint(name, revision=use.revision, with_code=use.trust_remote_code)
    adapter = checkpoint if is_adapter(checkpoint) else None
    if adapter is not None:
        checkpoint = find_base(adapter)
    if (code := checkpoint.own_code()) is not None and not use.trust_remote_code:
        raise UserError(
            f"{name} comes with Python code of its own ({code}), which does not run unless you trust it: "
            "read it, then pass --trust-remote-code."
        )
    table = find_table(checkpoint) if adapter is None else None
    if table is not None and (static := _load_static(table, use)) is not None:
        return static
    needs()
    use, notes = as_texts(checkpoint, replace(use, template=_choose_template(name, use)))
    use = replace(use, device=resolve_device(use.device))
    saved = read_settings(checkpoint, trust_remote_code=use.trust_remote_code)
    if saved is None and checkpoint.modules() and use.pooling == AUTO and adapter is None:
        by_library = load_with_library(checkpoint, use)
        return replace(by_library, notes=(*by_library.notes, *notes))
    first, second = use.own_prompts or (use.prompt, None)
    encoder = _load_natively(checkpoint, saved, replace(use, prompt=first, prompts=None))
    if adapter is not None:
        notes += (
            f"{checkpoint.name} is an adapter: its differences are added to the weights of {base_of(adapter)}.",
        )
    encoder = replace(encoder, adapter=adapter, notes=(*encoder.notes, *notes))
    return encoder if second is None else SidedEncoder((encoder, encoder.with_use(prompt=second)), encoder.notes)


def _load_static(table: TokenTable, asked: Use) -> TokenTableEncoder | SidedEncoder | None:
    """Return the encoder of static embeddings; None where their library alone can do what follows them."""
    use, notes = as_texts(table.checkpoint, asked)
    first, second = use.own_prompts or (use.prompt, None)
    encoder = load_table(table, replace(use, prompt=first, prompts=None))
    if encoder is None:
        return None
    what = f"static embeddings, which are averaged in fp32 (--pooling {' or '.join(TABLE_POOLINGS)})"
    _refuse(asked, what, poolings=(AUTO, *TABLE_POOLINGS), also=("max_length", *PROMPTS, "revision"))
    encoder = replace(encoder, notes=(*encoder.notes, *notes))
    return encoder if second is None else SidedEncoder((encoder, encoder.used(prompt=second)), encoder.notes)


def _choose_template(name: str, use: Use) -> Template | None:
    """Return the template that the person names, or else that of the known checkpoint."""
    if use.template is None:
        known = next(iter(checkpoints_named_like(name)), None)
        # A prompt is another choice of what stands before the sentence.
        return (
            None
            if known is None or not known.template or any(getattr(use, name) is not None for name in PROMPTS)
            else read_template(known.template)
        )
    if use.template == NO_TEMPLATE:
        return None
    template = read_template(use.template)
    if given := [option_of(name) for name in PROMPTS if getattr(use, name)]:
        raise UserError(
            f"{given[0]} and --template both say what stands before a sentence: write the prompt into the "
            "template."
        )
    return template


def _load_natively(checkpoint: Checkpoint, saved: TransformerSettings | None, asked: Use) -> TransformerEncoder:
    """Return the encoder of a Transformers checkpoint, whose own settings are None where they are not all read."""
    name = checkpoint.name
    _require_readable(checkpoint, asked)
    known = next(iter(checkpoints_named_like(name)), None)
    template = asked.template if isinstance(asked.template, Template) else None
    if template is None:
        pooling, notes = _choose_pooling(checkpoint, asked.pooling, saved.use.pooling if saved else None, known)
    else:
        pooling, notes = _pooling_of(template, asked, known, name)
    if saved is None and checkpoint.modules():
        notes += (f"{name} has modules that are not read natively: --pooling {pooling} leaves them out.",)
    settings = saved or TransformerSettings(Use(max_length=model_limit(checkpoint)))
    notes += _notes_on_files(checkpoint, saved)
    prompt, notes_on_it = _choose_prompt(checkpoint, own_prompt(checkpoint), asked, known)
    notes += notes_on_it
    if prompt and pools_without_prompt(checkpoint):
        notes += (
            f"{name} leaves its prompt out of the pooling (include_prompt is false), and {pooling} takes it in.",
        )
    if asked.trust_remote_code:
        notes += notes_on_code(name, checkpoint.code_elsewhere())
    length = settings.use.max_length if asked.max_length is None else asked.max_length
    use = replace(asked, pooling=pooling, max_length=length, prompt=prompt, template=template)
    if template is not None and template.precision and asked.computed_in == FP32:
        use = replace(use, precision=template.precision)
        notes += (f"template {template.name} asks for {template.precision}.",)
    kind = "sentence-transformers" if saved else "transformer"
    return TransformerEncoder(checkpoint, replace(settings, use=use), kind, notes)


def _require_readable(checkpoint: Checkpoint, use: Use) -> None:
    """Refuse a checkpoint that is no Transformer's encoder, and a length that it cannot read."""
    name, config = checkpoint.name, checkpoint.json("config.json")
    if not config:
        raise UserError(f"{name} has no Transformer's config.json at its top: --pooling is not for it.")
    if config.get("is_encoder_decoder"):
        raise UserError(
            f"{name} is an encoder-decoder ({config.get('model_type')}), whose sentence vectors depend on more "
            "than a pooling: give a sentence-transformers checkpoint of it, or save its vectors for --vectors."
        )
    longest = position_limit(checkpoint)
    if use.max_length is not None and longest is not None and use.max_length > longest:
        raise UserError(f"{name} reads at most {longest} sub-words: --max-length {use.max_length} is too long.")


def _choose_prompt(checkpoint: Checkpoint, own: str, asked: Use, known: KnownCheckpoint | None) -> _Choice:
    """Return the text to put before every sentence; `own` is the checkpoint's default."""
    name, prompt = checkpoint.name, own if asked.prompt is None else asked.prompt
    if isinstance(asked.template, Template):
        note = f"{name}: template {asked.template.name} takes the place of its own prompt {prompt!r}."
        return "", (note,) if prompt else ()
    if asked.prompt is None and not prompt and known and known.prompt:
        return known.prompt, (f"{name}: {known.prompt!r} is put before every sentence ({known.usage}).",)
    return prompt, ()


def _pooling_of(template: Template, use: Use, known: KnownCheckpoint | None, name: str) -> _Choice:
    """Return the pooling to use with a template."""
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


def _notes_on_files(checkpoint: Checkpoint, saved: TransformerSettings | None) -> tuple[str, ...]:
    """Return notes on files that the person may think are read, and on those that one would expect."""
    name, model_type = checkpoint.name, str(checkpoint.json("config.json").get("model_type"))
    notes = notes_on_unread(name, checkpoint.weight_files(), model_type)
    if unnamed := checkpoint.unnamed_modules():
        notes += (f"{name} holds {', '.join(unnamed)}, which its modules.json does not name: left out.",)
    if saved is not None and not has_transformer_config(checkpoint):
        read = "all" if (most := saved.use.max_length) is None else f"at most {most}"
        notes += (f"{name} does not say how many sub-words it reads (no sentence_bert_config.json): {read}.",)
    if not checkpoint.json("tokenizer_config.json"):
        note = f"{name} has no tokenizer_config.json: its words are split and cased as its architecture's are."
        notes += (note,)
    return (*notes, *checkpoint.own_notes())


def _choose_pooling(
    checkpoint: Checkpoint, wanted: str, configured: str | None, known: KnownCheckpoint | None
) -> _Choice:
    """Return the pooling to use: the wanted one, or the one that the checkpoint or else its paper names."""
    # An unknown one is refused here, before anything is loaded.
    if wanted != AUTO and parse_pooling(wanted, also=(AUTO,)).is_of_template:
        raise UserError(f"pooling {wanted} is read in a template: add --template, or choose another.")
    expected = configured or (known.pooling if known else None)
    if wanted != AUTO:
        if expected is None or wanted == expected:
            return wanted, ()
        said_by = "its own configuration says" if configured or known is None else f"its paper used: {known.usage}"
        return wanted, (f"pooling {wanted} differs from {expected} for {checkpoint.name} ({said_by}).",)
    if configured is None and known and not hub_checkpoints(checkpoint.name):
        return known.pooling, (
            f"pooling {known.pooling} was chosen because {checkpoint.name} is named like {known.hub}; "
            "set --pooling if it is another model.",
        )
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
