"""Checkpoints with modules that are not read natively, encoded by the sentence-transformers library."""

from pathlib import Path
from typing import Any

from stsbench.encoders.callables import CallableEncoder
from stsbench.encoders.checkpoint import Checkpoint, CheckpointOptions, why
from stsbench.encoders.protocol import Identity
from stsbench.encoders.quiet import quiet_transformers
from stsbench.encoders.sentence_transformers_config import own_prompt
from stsbench.foundation.errors import UserError

_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
_NOT_READ = {".md", ".png"}


def load_with_library(checkpoint: Checkpoint, options: CheckpointOptions) -> CallableEncoder:
    """Return an encoder that calls `SentenceTransformer.encode`, pooled as the checkpoint says."""
    prompt = own_prompt(checkpoint) if options.prompt is None else options.prompt
    model: Any = None

    def load_model() -> None:
        nonlocal model
        model = model or _load(checkpoint, options)

    def encode(sentences: list[str]) -> Any:
        load_model()
        # An empty prompt is given too: without one, the library takes the checkpoint's own.
        return model.encode(sentences, prompt=prompt, show_progress_bar=False, convert_to_numpy=True)

    identity = Identity(
        name=checkpoint.name,
        kind="sentence-transformers-library",
        pooling="own",
        revision=checkpoint.revision,
        weights_sha256=checkpoint.sha256(_files(checkpoint.folder)),
        max_length=options.max_length,
        prompt=prompt,
        precision=options.precision,
        device=options.device,
    )
    note = (
        f"{checkpoint.name} has modules that are not read natively: the sentence-transformers library "
        "encodes it; sub-word lengths and cut sentences are not counted."
    )
    return CallableEncoder(encode, identity, (note,), load_model)


def _files(folder: Path) -> list[Path]:
    # Every file counts: which of them a module of unknown kind reads is not known here.
    return [
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.suffix not in _NOT_READ
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]


def _load(checkpoint: Checkpoint, options: CheckpointOptions) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise UserError(
            f"{checkpoint.name} needs the sentence-transformers library: "
            "pip install 'stsbench[sentence-transformers]'."
        ) from error
    import torch

    with quiet_transformers():
        try:
            model = SentenceTransformer(
                str(checkpoint.folder),
                device=options.device,
                trust_remote_code=options.trust_remote_code,
                local_files_only=True,
            )
        except Exception as error:  # whatever it is, it is about the files of this checkpoint
            raise UserError(f"cannot load {checkpoint.name}: {why(error)}") from error
    if options.max_length is not None:
        model.max_seq_length = options.max_length
    return model.to(getattr(torch, _DTYPES[options.precision]))
