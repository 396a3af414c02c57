"""Models as mteb loads them, with its prompts and its normalisation: `mteb:NAME`.

mteb chooses the prompt of a sentence by its task, the task's type and the side of the pair
(embeddings-benchmark/mteb, `mteb/models/abs_encoder.py` at 2.26: `get_prompt_name`, `get_instruction`). So there
is one encoder per prompt. A task that mteb does not have is treated as one of mteb's type STS.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from stsbench._version import __version__
from stsbench.base.errors import UserError, require
from stsbench.base.files import fingerprint
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.encoders.backends import resolve_device
from stsbench.encoders.checkpoint import (
    PACKAGED,
    Checkpoint,
    find_checkpoint,
    quiet_transformers,
    reporting_failures,
)
from stsbench.encoders.protocol import Encoder, Identity, OwnPooling, TokenSequence
from stsbench.encoders.simple import CallableEncoder
from stsbench.encoders.use import PRECISIONS, UNKNOWN, Use

PREFIX = "mteb:"
"""The prefix of models that mteb loads."""

KIND = "mteb"
"""The kind of the identity of such a model, and its pooling."""

_NAMES = {task: name for name, task in MTEB_TASKS.items()}
_BATCH = 32
"""mteb's default; the padding of a batch changes the last bits."""

_COMMIT = re.compile("[0-9a-f]{40}")
_Hashed = dict[str, str | None] | None
_LIKE = "STS12"
"""The task of mteb's type STS whose metadata is used for tasks that mteb does not have."""


def _place(task: str, side: int | None) -> tuple[Any, Any]:
    """Returns the metadata of mteb's task, and its type of prompt for one side of a pair, if it has one."""
    import mteb

    known = mteb.get_task(_NAMES.get(task, _LIKE))
    if task not in _NAMES:
        # Under a new name, so that no prompt of another task is used.
        return known.metadata.model_copy(update={"name": "stsbench", "prompt": known.abstask_prompt}), None
    return known.metadata, None if side is None else getattr(known, f"input{side + 1}_prompt_type", None)


@dataclass
class MtebEncoder(OwnPooling):
    """A model of mteb with different prompts for different tasks or sides; its own identity has none of them."""

    model: Any
    identity: Identity
    notes: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None
    _readers: dict[tuple[str | None, ...], CallableEncoder] = field(default_factory=dict)

    def reader(self, task: str, side: int | None) -> CallableEncoder:
        """Returns the encoder of a side; see `reader_of`."""
        metadata, prompt_type = _place(task, side)
        prompt = self._prompt(metadata, prompt_type)
        of_side = None if prompt_type is None else str(prompt_type.value)
        modules = tuple(filter(None, [metadata.name if prompt is None else None, of_side]))
        if (prompt, *modules) not in self._readers:
            identity = replace(self.identity, use=replace(self.identity.use, prompt=prompt or ""), modules=modules)
            encode = partial(self._encode, metadata, prompt_type)
            self._readers[prompt, *modules] = CallableEncoder(encode, identity, self.notes)
        return self._readers[prompt, *modules]

    def alike(self) -> CallableEncoder | None:
        """Returns the encoder of all sentences, or None if tasks or sides differ."""
        readers = [self.reader(task, side) for task in (*_NAMES, "") for side in (0, 1)]
        return readers[0] if all(reader is readers[0] for reader in readers) else None

    def notes_on(self, task: str, sentences: Sequence[str]) -> tuple[str, ...]:
        """Returns a note on a task that mteb does not have."""
        if task in _NAMES:
            return ()
        prompt = self.reader(task, None).identity.use.prompt
        return (
            f"mteb has no task {task}: its sentences are read as of a task of the type STS (prompt {prompt!r}).",
        )

    def tokenize(self, texts: Sequence[str]) -> NoReturn:
        """Raises a UserError, because the prompt depends on the task."""
        raise UserError(
            f"{self.identity.name} has different prompts for different tasks or sides, and sentences are read "
            "without a task here: use the checkpoint itself, with --prompt-name or --prompt."
        )

    def vectors(self, sequences: Sequence[TokenSequence]) -> NoReturn:
        """Raises a UserError, because the prompt depends on the task."""
        self.tokenize([])

    def _encode(self, metadata: Any, prompt_type: Any, sentences: list[str]) -> Any:
        from datasets import Dataset
        from torch.utils.data import DataLoader

        with quiet_transformers():
            vectors = self.model.encode(
                DataLoader(Dataset.from_dict({"text": sentences}), batch_size=_BATCH),
                task_metadata=metadata,
                hf_split="test",
                hf_subset="default",
                prompt_type=prompt_type,
                batch_size=_BATCH,
                show_progress_bar=False,
            )
        if self.checkpoint is not None:
            self.checkpoint.require_unchanged()
        return vectors

    def _prompt(self, metadata: Any, prompt_type: Any) -> str | None:
        """Returns the prompt, "" for none; None if mteb's encoder does not expose it."""
        from mteb.models import SentenceTransformerEncoderWrapper
        from mteb.models.instruct_wrapper import InstructSentenceTransformerModel

        model, encode = self.model, type(self.model).encode
        if encode is InstructSentenceTransformerModel.encode:
            is_document = prompt_type is not None and prompt_type.value == "document"
            if model.apply_instruction_to_passages or not is_document:
                return str(model.get_task_instruction(metadata, prompt_type))
        elif encode is not SentenceTransformerEncoderWrapper.encode:
            return None
        elif (name := model.get_prompt_name(metadata, prompt_type)) is not None:
            return str(model.model_prompts[name])
        elif prompt_type is not None:  # sentence-transformers looks for its own prompt names
            return None
        return str(model.model.prompts.get(model.model.default_prompt_name) or "")


def load_from_mteb(name: str, use: Use) -> Encoder:
    """Loads a model as mteb does.

    Args:
        name: `mteb:` and the name of a model in mteb's registry or on the Hub, a folder that sentence-transformers
            loads, or `minilm`.
        use: revision, device, trust in code, and the processing of vectors.

    Raises:
        UserError: if mteb is not installed, or cannot load it as an encoder of sentences.
    """
    require("mteb", name)
    import mteb
    from mteb.models import EncoderProtocol

    bare = name.removeprefix(PREFIX)
    if not bare:
        raise UserError(f"{name} lacks the name of a model: for example {PREFIX}{PACKAGED}.")
    checkpoint = None
    with quiet_transformers(), reporting_failures(f"load {bare} with mteb"):
        if bare == PACKAGED or Path(bare).expanduser().exists():
            checkpoint = find_checkpoint(bare)
            model, hashed, revision = *_of_folder(name, checkpoint, use), None
        elif bare.startswith(("/", "./", "../", "~")):
            raise UserError(f"{name}: no such folder. Check the path.")
        else:
            model, hashed, revision = _of_name(bare, use)
    if not isinstance(model, EncoderProtocol):
        raise UserError(
            f"{name} is a {type(model).__name__} in mteb, not an encoder of sentences: use another model."
        )
    network = getattr(model, "model", None)
    length, dtype = getattr(network, "max_seq_length", None), str(getattr(network, "dtype", ""))
    how = Use(
        pooling=KIND,
        # Infinite for static embeddings.
        max_length=int(length) if isinstance(length, int | float) and math.isfinite(length) else None,
        precision=next((short for short, long in PRECISIONS.items() if dtype == f"torch.{long}"), UNKNOWN),
        revision=revision,
        device=resolve_device(use.device),
        trust_remote_code=use.trust_remote_code,
    )
    notes = [
        f"{name} is loaded and encoded by mteb {mteb.__version__}, with its prompts: sub-word lengths and "
        "truncated sentences are not counted."
    ]
    sha256 = None if hashed is None else fingerprint({**hashed, "mteb": mteb.__version__, "stsbench": __version__})
    if sha256 is None:
        notes.append(f"{name} has no fixed commit: its vectors are not cached.")
    identity = Identity(name, KIND, how.processed(use), weights_sha256=sha256)
    by_task = MtebEncoder(model, identity, tuple(notes), checkpoint)
    return by_task.alike() or by_task


def _of_folder(name: str, checkpoint: Checkpoint, use: Use) -> tuple[Any, _Hashed]:
    """Returns a sentence-transformers folder in mteb's wrapper for such models, and its hash."""
    from mteb.models import SentenceTransformerEncoderWrapper

    if use.revision is not None:
        raise UserError(f"{name} is a folder without revisions: leave out --revision.")
    hashed = checkpoint.sha256(checkpoint.all_files())
    model = SentenceTransformerEncoderWrapper(
        str(checkpoint.folder),
        device=resolve_device(use.device),
        local_files_only=True,
        trust_remote_code=use.trust_remote_code,
    )
    runs_code_elsewhere = checkpoint.code_elsewhere(with_code=use.trust_remote_code) is not None
    return model, None if runs_code_elsewhere else {"files": hashed}


def _of_name(name: str, use: Use) -> tuple[Any, _Hashed, str | None]:
    """Returns a model of mteb's registry or of the Hub, its fixed commit, and its revision."""
    import mteb
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.get_model_meta import MODEL_REGISTRY
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel

    about = mteb.get_model_meta(name, use.revision, fetch_from_hf=True)
    is_plain = about.loader in {SentenceTransformerEncoderWrapper, InstructSentenceTransformerModel}
    if not use.trust_remote_code and (not is_plain or about.loader_kwargs.get("trust_remote_code")):
        raise UserError(
            f"mteb's loader of {name} may run Python code from the checkpoint: read it, then add "
            "--trust-remote-code."
        )
    more = {"trust_remote_code": True} if use.trust_remote_code and is_plain else {}
    model = about.load_model(device=resolve_device(use.device), **more)
    # A branch can change; a revision in the registry is fixed by mteb's version.
    is_fixed = about.revision and (name in MODEL_REGISTRY or _COMMIT.fullmatch(about.revision))
    return model, {"model": about.name, "revision": about.revision} if is_fixed else None, about.revision
