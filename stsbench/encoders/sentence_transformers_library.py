"""Checkpoints with modules that are not read natively, encoded by the sentence-transformers library."""

from typing import Any

from stsbench.encoders.callables import CallableEncoder
from stsbench.encoders.checkpoint import Checkpoint, combined_sha256
from stsbench.encoders.protocol import Identity
from stsbench.encoders.sentence_transformers_config import own_prompt
from stsbench.foundation.errors import UserError

_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def load_with_library(
    checkpoint: Checkpoint,
    *,
    prompt: str | None,
    max_length: int | None,
    precision: str,
    device: str,
    trust_remote_code: bool,
) -> CallableEncoder:
    """Return an encoder that calls `SentenceTransformer.encode`.

    Args:
        checkpoint: the model's files.
        prompt: text put before every sentence; None for the checkpoint's own.
        max_length: sub-words kept; None for the checkpoint's own.
        precision: of the weights.
        device: to compute on.
        trust_remote_code: whether code from the checkpoint may run.
    """
    # Every file counts: which of them a module of unknown kind reads is not known here.
    files = [
        path for path in checkpoint.folder.rglob("*") if path.is_file() and path.suffix not in {".md", ".png"}
    ]
    used_prompt = own_prompt(checkpoint) if prompt is None else prompt
    loaded: list[Any] = []

    def encode(sentences: list[str]) -> Any:
        if not loaded:
            loaded.append(_load(checkpoint, max_length, precision, device, trust_remote_code))
        return loaded[0].encode(
            sentences,
            prompt=used_prompt or None,
            batch_size=32,
            show_progress_bar=False,
            convert_to_numpy=True,
        )

    identity = Identity(
        name=checkpoint.name,
        kind="sentence-transformers-library",
        pooling="own",
        revision=checkpoint.revision,
        weights_sha256=combined_sha256(files),
        max_length=max_length,
        prompt=used_prompt,
        precision=precision,
        device=device,
    )
    note = (
        f"{checkpoint.name} has modules that are not read natively: the sentence-transformers library "
        "encodes it; sub-word lengths and cut sentences are not counted."
    )
    return CallableEncoder(encode, identity, (note,))


def _load(
    checkpoint: Checkpoint, max_length: int | None, precision: str, device: str, trust_remote_code: bool
) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise UserError(
            f"{checkpoint.name} needs the sentence-transformers library: "
            "pip install 'stsbench[sentence-transformers]'."
        ) from error
    import torch

    try:
        model = SentenceTransformer(
            str(checkpoint.folder), device=device, trust_remote_code=trust_remote_code, local_files_only=True
        )
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        first_line = str(error).strip().partition("\n")[0]
        raise UserError(f"cannot load {checkpoint.name}: {first_line}") from error
    if max_length is not None:
        model.max_seq_length = max_length
    return model.to(getattr(torch, _DTYPES[precision]))
