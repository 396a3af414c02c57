"""What a person calls a model: a published system's name stands for its checkpoint, used as its paper used it."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.encoders import static
from stsbench.encoders.callables import CallableEncoder, from_function, import_function, is_callable
from stsbench.encoders.checkpoint import MINILM, PACKAGED, Checkpoint, CheckpointOptions, find_checkpoint
from stsbench.encoders.device import PRECISIONS, resolve_device
from stsbench.encoders.known import find_known
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.sentence_transformers import read_settings
from stsbench.encoders.tokenizer import model_limit, position_limit
from stsbench.encoders.transformer import TransformerEncoder, TransformerSettings, choose_pooling
from stsbench.published.catalogue import checkpoints, row, system
from stsbench.published.conflicts import as_printed
from stsbench.published.schema import Checkpoint as PublishedCheckpoint

@dataclass(frozen=True)
class LoadOptions:
    """How a model is loaded: what `load` takes beside the model, for whoever passes all of it on.

    Attributes:
        pooling: one of the poolers, or `auto`.
        max_length: sub-words kept, special tokens included; None for the published one, or the model's own limit.
        prompt: text put before every sentence; None for the checkpoint's own, "" for none.
        precision: `fp32`, `bf16` or `fp16`.
        device: `auto`, `cpu`, `cuda` or `mps`.
        revision: a branch, tag or commit on the Hub.
        trust_remote_code: whether Python code that comes with a checkpoint may run.
    """

    pooling: str = AUTO
    max_length: int | None = None
    prompt: str | None = None
    precision: str = "fp32"
    device: str = "auto"
    revision: str | None = None
    trust_remote_code: bool = False

    def changed(self) -> list[str]:
        """Return the names of the fields that differ from the defaults.

        >>> LoadOptions(pooling="cls", max_length=128).changed()
        ['pooling', 'max_length']
        """
        return [field.name for field in dataclasses.fields(self) if getattr(self, field.name) != field.default]


@dataclass(frozen=True)
class Resolved:
    """What to load for a model, and how.

    Attributes:
        name: what to load: a Hub name, or `minilm`.
        pooling: the person's choice, or the published one.
        max_length: likewise.
        notes: what the published name stands for and where that is said, and what is expected of it.
    """

    name: str
    pooling: str
    max_length: int | None
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
) -> Encoder:
    """Load an encoder. The weights themselves are read at the first sentence that is not in the cache.

    Args:
        model: a published system, such as `esimcse-bert-base`: its checkpoint is loaded, pooled as its paper
            pooled; or a checkpoint's folder or Hub name, a file of word vectors, `module:function`, a callable
            `list[str] -> array`, or an object with such a method `encode`.
        pooling: one of the poolers, or `auto`: the published one, the checkpoint's own, or else what its paper
            used.
        max_length: sub-words kept, special tokens included; None for the published one, or the model's own limit.
        prompt: text put before every sentence; None for the checkpoint's own, "" for none.
        precision: `fp32`, `bf16` or `fp16`.
        device: `auto`, `cpu`, `cuda` or `mps`.
        revision: a branch, tag or commit on the Hub.
        trust_remote_code: whether Python code that comes with a checkpoint may run.

    Raises:
        UserError: if there is no such model, or it cannot be used as asked.
    """
    return load_with(
        model, LoadOptions(pooling, max_length, prompt, precision, device, revision, trust_remote_code)
    )


def load_with(model: str | Path | Callable[[list[str]], Any], options: LoadOptions) -> Encoder:
    """Load an encoder, as `load` does.

    Raises:
        UserError: if there is no such model, or it cannot be used as asked.
    """
    found = resolve(model, options.pooling, options.max_length) if isinstance(model, str) else None
    if found is None:
        return load_checkpoint(model, **vars(options))
    chosen = replace(options, pooling=found.pooling, max_length=found.max_length)
    return _noted(load_checkpoint(found.name, **vars(chosen)), found.notes)


def resolve(name: str, pooling: str = "auto", max_length: int | None = None) -> Resolved | None:
    """Return what a published system's name stands for; None if it is none, or something else first.

    A folder or a file of that name comes first, then the packaged model.

    Raises:
        UserError: if the system has no public checkpoint.

    >>> found = resolve("esimcse-bert-base")
    >>> found.name, found.pooling, found.max_length
    ('ffgcc/esimcse-bert-base-uncased', 'cls_before_pooler', 512)
    """
    if name == PACKAGED or "/" in name or ":" in name or Path(name).expanduser().exists():
        return None
    try:
        measured = system(name)
    except UserError:
        return None
    entry = next((entry for entry in checkpoints().values() if entry.system == measured.name), None)
    if entry is None or not entry.hub:
        raise UserError(
            f"{measured.name} is a published system without a known checkpoint on the Hugging Face Hub: give the "
            "folder of one."
        )
    return Resolved(
        # By that name the packaged copy is found, too.
        PACKAGED if entry.hub == MINILM else entry.hub,
        entry.pooling if pooling == "auto" else pooling,
        entry.max_length if max_length is None else max_length,
        tuple(_notes(entry, pooling)),
    )


def _notes(entry: PublishedCheckpoint, pooling: str) -> list[str]:
    stated = f"{entry.name} is {entry.hub} ({entry.hub_source}), pooling {entry.pooling} ({entry.pooling_source})"
    if pooling not in {"auto", entry.pooling}:
        stated += f"; {pooling} was asked for, so its numbers are not to be expected"
    expected = [f"{entry.name} is expected to score as {_row(name)}." for name in entry.expected]
    return [f"{stated}.", *expected, *([f"{entry.name}: {entry.note}"] if entry.note else [])]


def _row(name: str) -> str:
    averages = [cell for cell in row(name).cells if cell.setting.task.startswith("Avg.")]
    return ", ".join([name, *(f"{cell.column} {as_printed(cell)}" for cell in averages)])


def _noted(encoder: Encoder, notes: tuple[str, ...]) -> Encoder:
    """Return the encoder of a checkpoint with sentences for the person before its own."""
    assert isinstance(encoder, TransformerEncoder | CallableEncoder)
    return dataclasses.replace(encoder, notes=(*notes, *encoder.notes))


def load_checkpoint(
    model: str | Path | Callable[[list[str]], Any],
    *,
    pooling: str = AUTO,
    max_length: int | None = None,
    prompt: str | None = None,
    precision: str = "fp32",
    device: str = "auto",
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> Encoder:
    """Load an encoder. The weights themselves are read at the first sentence that is not in the cache.

    Args:
        model: `minilm` (the packaged all-MiniLM-L6-v2 if installed, else the Hub's); a checkpoint's folder or
            Hugging Face Hub name (Transformers, sentence-transformers or SimCSE-style training checkpoint);
            a file of word vectors (GloVe or word2vec, text or binary); `module:function`; or any callable
            `list[str] -> array`, or an object with such a method `encode`.
        pooling: one of `POOLING_NAMES`, or `auto`: the checkpoint's own, or else what its paper used.
        max_length: sub-words kept, special tokens included; None for the model's own limit.
        prompt: text put before every sentence; None for the checkpoint's own, "" for none.
        precision: `fp32`, `bf16` or `fp16`.
        device: `auto`, `cpu`, `cuda` or `mps`.
        revision: a branch, tag or commit on the Hub.
        trust_remote_code: whether Python code that comes with a checkpoint may run.

    Raises:
        UserError: if there is no such model, or it cannot be used as asked.
    """
    if precision not in PRECISIONS:
        raise UserError(f"unknown precision {precision!r}: choose one of {', '.join(PRECISIONS)}.")
    if max_length is not None and max_length < 3:
        raise UserError(f"a maximum length of {max_length} leaves no room for a word: use 3 or more.")
    checkpoint_options = {
        "--max-length": max_length is not None,
        "--prompt": bool(prompt),
        "--precision": precision != "fp32",
        "--device": device not in {"auto", "cpu"},
        "--revision": revision is not None,
    }
    meant = [option for option, given in checkpoint_options.items() if given]
    if is_callable(model):
        _refuse("a callable", pooling != AUTO, meant)
        return from_function(model)
    name = str(model)
    path = Path(name).expanduser()
    if path.is_file() and any(suffix in static.SUFFIXES for suffix in path.suffixes[-2:]):
        _refuse("word vectors, which are averaged", pooling not in {AUTO, "avg"}, meant)
        return static.StaticEncoder(path, name)
    if ":" in name and not path.exists():
        _refuse("a callable", pooling != AUTO, meant)
        return import_function(name)

    checkpoint = find_checkpoint(name, revision=revision, with_code=trust_remote_code)
    if (code := checkpoint.own_code()) is not None and not trust_remote_code:
        raise UserError(
            f"{name} comes with Python code of its own ({code}), which does not run unless you trust it: "
            "read it, then pass --trust-remote-code."
        )
    options = CheckpointOptions(
        pooling=pooling,
        max_length=max_length,
        prompt=prompt,
        precision=precision,
        device=resolve_device(device),
        trust_remote_code=trust_remote_code,
    )
    own = read_settings(checkpoint)
    if own is None and checkpoint.modules() and pooling == AUTO:
        from stsbench.encoders.sentence_transformers import load_with_library

        return load_with_library(checkpoint, options)
    return _load_natively(checkpoint, own, options)


def _load_natively(checkpoint: Checkpoint, own: TransformerSettings | None, options: CheckpointOptions) -> Encoder:
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
    chosen, notes = choose_pooling(checkpoint, options.pooling, own.pooling if own else None)
    if own is None and checkpoint.modules():
        notes += (f"{name} has modules that are not read natively: --pooling {chosen} leaves them out.",)
    settings = own or TransformerSettings(chosen, model_limit(checkpoint))
    known = find_known(name)
    if options.prompt is None and not settings.prompt and known and known.prompt:
        settings = replace(settings, prompt=known.prompt)
        notes += (f"{name}: {known.prompt!r} is put before every sentence ({known.source}).",)
    settings = replace(
        settings,
        pooling=chosen,
        max_length=settings.max_length if options.max_length is None else options.max_length,
        prompt=settings.prompt if options.prompt is None else options.prompt,
    )
    return TransformerEncoder(
        checkpoint,
        settings,
        kind="sentence-transformers" if own else "transformer",
        precision=options.precision,
        device=options.device,
        notes=notes,
        trust_remote_code=options.trust_remote_code,
    )


def _refuse(what: str, other_pooling: bool, options: Sequence[str]) -> None:
    given = [*(["--pooling"] if other_pooling else []), *options]
    if given:
        raise UserError(f"{' and '.join(given)}: not for {what}.")
