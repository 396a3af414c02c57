"""From a name, a path or a callable to an encoder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from stsbench.encoders import static
from stsbench.encoders.callables import from_function, import_function
from stsbench.encoders.checkpoint import find_checkpoint
from stsbench.encoders.device import PRECISIONS, resolve_device
from stsbench.encoders.known import find_known
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.sentence_transformers_config import read_settings
from stsbench.encoders.transformer import TransformerEncoder, TransformerSettings, choose_pooling, model_limit
from stsbench.foundation.errors import UserError


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
        model: `minilm` (the packaged all-MiniLM-L6-v2 if installed, else the Hub's); a checkpoint's folder or
            Hugging Face Hub name (Transformers, sentence-transformers or SimCSE-style training checkpoint);
            a file of word vectors (GloVe or word2vec, text or binary); `module:function`; or any callable
            `list[str] -> array`.
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
    if callable(model):
        return from_function(model)
    name = str(model)
    path = Path(name).expanduser()
    if path.is_file() and any(suffix in static.SUFFIXES for suffix in path.suffixes[-2:]):
        if pooling not in (AUTO, "avg"):
            raise UserError(f"word vectors are averaged: pooling {pooling} is not for {name}.")
        return static.StaticEncoder(path, name)
    if ":" in name and not path.exists():
        return import_function(name)

    checkpoint = find_checkpoint(name, revision=revision)
    device = resolve_device(device)
    own = read_settings(checkpoint) if (checkpoint.folder / "modules.json").is_file() else None
    if own is None and (checkpoint.folder / "modules.json").is_file() and pooling == AUTO:
        from stsbench.encoders.sentence_transformers_library import load_with_library

        return load_with_library(
            checkpoint,
            prompt=prompt,
            max_length=max_length,
            precision=precision,
            device=device,
            trust_remote_code=trust_remote_code,
        )
    limit = model_limit(checkpoint)
    if max_length is not None and limit is not None and max_length > limit:
        raise UserError(f"{name} reads at most {limit} sub-words: --max-length {max_length} is too long.")
    chosen, notes = choose_pooling(checkpoint, pooling, own.pooling if own else None)
    known = find_known(name)
    settings = own or TransformerSettings(chosen, limit, prompt=known.prompt if known else "")
    settings = replace(
        settings,
        pooling=chosen,
        max_length=settings.max_length if max_length is None else max_length,
        prompt=settings.prompt if prompt is None else prompt,
    )
    return TransformerEncoder(
        checkpoint,
        settings,
        kind="sentence-transformers" if own else "transformer",
        precision=precision,
        device=device,
        notes=notes,
        trust_remote_code=trust_remote_code,
    )
