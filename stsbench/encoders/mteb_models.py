"""Models as mteb loads them, with its prompts and its normalisation: `mteb:NAME`.

mteb chooses the prompt of a sentence by its task, the task's type and the side of the pair
(embeddings-benchmark/mteb, `mteb/models/abs_encoder.py` at 2.26: `get_prompt_name`, `get_instruction`). So there
is one encoder per prompt. A task that mteb does not have is read as one of mteb's type STS.
"""

import inspect
import logging
import math
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from stsbench._version import __version__
from stsbench.base.errors import UserError
from stsbench.base.extras import require
from stsbench.base.manifest import fingerprint
from stsbench.base.words import listed
from stsbench.data.catalogue import MTEB_TASKS
from stsbench.encoders.callables import CallableEncoder
from stsbench.encoders.checkpoint import Checkpoint, find_checkpoint
from stsbench.encoders.device import resolve_device
from stsbench.encoders.hub import PACKAGED
from stsbench.encoders.libraries import quiet_transformers, told
from stsbench.encoders.protocol import Encoder, Identity, TokenSequence
from stsbench.encoders.use import PRECISIONS, UNKNOWN, Use

PREFIX = "mteb:"
"""The prefix of models that mteb loads."""

KIND = "mteb"
"""The kind of the identity of such a model, and its pooling."""

_NAMES = {task: name for name, task in MTEB_TASKS.items()}
_SIDES = (0, 1)
_BATCH = 32
"""mteb's default; the padding of a batch changes the last bits."""

_COMMIT = re.compile("[0-9a-f]{40}")
_LIKE = "STS12"
"""The task of mteb's type STS whose metadata is used for tasks that mteb does not have."""


class _Place(NamedTuple):
    """The metadata of mteb's task, and its type of prompt for one side of a pair, if it has one."""

    metadata: Any
    prompt_type: Any


@dataclass(frozen=True)
class _Loaded:
    """A model that mteb has loaded.

    Attributes:
        name: as the user named it.
        model: mteb's encoder.
        revision: its commit or version in mteb.
        sha256: hash of everything but the prompt that its vectors depend on; None if unknown.
        checkpoint: its folder, if it came from one.
    """

    name: str
    model: Any
    revision: str | None
    sha256: str | None
    checkpoint: Checkpoint | None = None

    def encode(self, place: _Place, sentences: list[str]) -> Any:
        """Returns the vectors of mteb's encoder, shape (len(sentences), dimensions)."""
        from datasets import Dataset
        from torch.utils.data import DataLoader

        with _quiet():
            vectors = self.model.encode(
                DataLoader(Dataset.from_dict({"text": sentences}), batch_size=_BATCH),
                task_metadata=place.metadata,
                hf_split="test",
                hf_subset="default",
                prompt_type=place.prompt_type,
                batch_size=_BATCH,
                show_progress_bar=False,
            )
        if self.checkpoint is not None:
            self.checkpoint.hashed.require_unchanged()
        return vectors

    def prompt(self, place: _Place) -> str | None:
        """Returns the prompt, "" for none; None if mteb's encoder does not expose it."""
        from mteb.models import SentenceTransformerEncoderWrapper
        from mteb.models.instruct_wrapper import InstructSentenceTransformerModel

        model, encode = self.model, type(self.model).encode
        if encode is InstructSentenceTransformerModel.encode:
            is_document = place.prompt_type is not None and place.prompt_type.value == "document"
            if model.apply_instruction_to_passages or not is_document:
                return str(model.get_task_instruction(*place))
            return _default_prompt(model.model)
        if encode is not SentenceTransformerEncoderWrapper.encode:
            return None
        name = model.get_prompt_name(*place)
        if name is not None:
            return str(model.model_prompts[name])
        # With a type of prompt, sentence-transformers looks for its own prompt names.
        return _default_prompt(model.model) if place.prompt_type is None else None


def _default_prompt(model: Any) -> str:
    """Returns the default prompt of a sentence-transformers model."""
    return str(model.prompts.get(model.default_prompt_name) or "")


@dataclass
class MtebEncoder:
    """A model of mteb with different prompts for different tasks or sides.

    Attributes:
        identity: what the vectors depend on, apart from the prompt.
        notes: for the user.
    """

    loaded: _Loaded
    identity: Identity
    notes: tuple[str, ...] = ()
    _readers: dict[tuple[str | None, ...], CallableEncoder] = field(default_factory=dict)

    @property
    def token_budget(self) -> int:
        """Characters in one batch."""
        return CallableEncoder.token_budget

    def reader(self, task: str, side: int | None) -> CallableEncoder:
        """Returns the encoder of a side; see `reader_of`."""
        place = _place(_NAMES.get(task), side)
        prompt = self.loaded.prompt(place)
        of_side = None if place.prompt_type is None else str(place.prompt_type.value)
        modules = tuple(filter(None, [place.metadata.name if prompt is None else None, of_side]))
        if (prompt, *modules) not in self._readers:
            identity = replace(self.identity, use=replace(self.identity.use, prompt=prompt or ""), modules=modules)
            self._readers[prompt, *modules] = CallableEncoder(
                partial(self.loaded.encode, place), identity, self.notes
            )
        return self._readers[prompt, *modules]

    def alike(self) -> CallableEncoder | None:
        """Returns the encoder of all sentences, or None if tasks or sides differ."""
        readers = [self.reader(task, side) for task in (*_NAMES, "") for side in _SIDES]
        return readers[0] if all(reader is readers[0] for reader in readers) else None

    def notes_on(self, task: str, sentences: Sequence[str]) -> tuple[str, ...]:
        """Returns a note on a task that mteb does not have."""
        if task in _NAMES:
            return ()
        prompt = self.reader(task, None).identity.use.prompt
        return (
            f"mteb has no task {task}: its sentences are read as of a task of the type STS (prompt {prompt!r}).",
        )

    def prepare(self, *, weights: bool) -> None:
        """Does nothing: the model is loaded already."""

    def tokenize(self, texts: Sequence[str]) -> NoReturn:
        """Refuses: the prompt depends on the task."""
        raise UserError(
            f"{self.identity.name} has different prompts for different tasks or sides, and sentences are read "
            "without a task here: use the checkpoint itself, with --prompt-name or --prompt."
        )

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> NoReturn:
        """Refuses: the prompt depends on the task."""
        self.tokenize([])


def _place(name: str | None, side: int | None) -> _Place:
    """Returns mteb's metadata and type of prompt for one side of a task."""
    import mteb

    task = mteb.get_task(name or _LIKE)
    if name is None:
        # Under a new name, so that no prompt of another task is used.
        own = {"name": "stsbench", "prompt": task.abstask_prompt}
        return _Place(task.metadata.model_copy(update=own), None)
    types = (getattr(task, "input1_prompt_type", None), getattr(task, "input2_prompt_type", None))
    return _Place(task.metadata, None if side is None else types[side])


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
    from mteb.models import EncoderProtocol, SentenceTransformerEncoderWrapper

    model = name.removeprefix(PREFIX)
    if not model:
        raise UserError(f"{name} lacks the name of a model: for example {PREFIX}{PACKAGED}.")
    with _quiet(), told(f"load {model} with mteb"):
        is_here = model == PACKAGED or Path(model).expanduser().exists()
        if not is_here and model.startswith(("/", "./", "../", "~")):
            raise UserError(f"{name}: no such folder. Check the path.")
        loaded = _of_folder(name, model, use) if is_here else _of_name(name, model, use)
    if not isinstance(loaded.model, EncoderProtocol):
        raise UserError(
            f"{name} is a {type(loaded.model).__name__} in mteb, not an encoder of sentences: use another model."
        )
    network = getattr(loaded.model, "model", None)
    dtypes = {f"torch.{long}": short for short, long in PRECISIONS.items()}
    how = Use(
        pooling=KIND,
        max_length=_length_of(network),
        precision=dtypes.get(str(getattr(network, "dtype", "")), UNKNOWN),
        revision=loaded.revision,
        device=resolve_device(use.device),
        trust_remote_code=use.trust_remote_code,
    )
    notes = [
        f"{name} is loaded and encoded by mteb {mteb.__version__}, with its prompts: sub-word lengths and "
        "truncated sentences are not counted."
    ]
    if loaded.sha256 is None:
        notes.append(f"{name} has no fixed commit: its vectors are not cached.")
    if isinstance(loaded.model, SentenceTransformerEncoderWrapper):
        read = loaded.model.model_prompts or {}
        if unread := [
            called for called, text in loaded.model.model.prompts.items() if text and called not in read
        ]:
            notes.append(
                f"mteb ignores the prompts of {name} that are called {listed(unread)}: it uses those named after "
                "its tasks or types of tasks, `query` and `document`."
            )
    by_task = MtebEncoder(
        loaded, Identity(name, KIND, how.processed(use), weights_sha256=loaded.sha256), tuple(notes)
    )
    return by_task.alike() or by_task


def _length_of(network: Any) -> int | None:
    """Returns the maximum length in sub-words; None if unknown or unlimited."""
    length = getattr(network, "max_seq_length", None)
    return int(length) if isinstance(length, int | float) and math.isfinite(length) else None


def _of_folder(name: str, model: str, use: Use) -> _Loaded:
    """Loads a sentence-transformers folder in mteb's wrapper for such models."""
    from mteb.models import SentenceTransformerEncoderWrapper

    if use.revision is not None:
        raise UserError(f"{name} is a folder without revisions: leave out --revision.")
    checkpoint = find_checkpoint(model)
    with checkpoint.reading(checkpoint.all_files):
        loaded = SentenceTransformerEncoderWrapper(
            str(checkpoint.folder),
            device=resolve_device(use.device),
            local_files_only=True,
            trust_remote_code=use.trust_remote_code,
        )
    elsewhere = checkpoint.code_elsewhere() if use.trust_remote_code else None
    files = None if elsewhere else checkpoint.sha256(checkpoint.all_files())
    return _Loaded(name, loaded, None, files and _digest(files=files), checkpoint)


def _of_name(name: str, model: str, use: Use) -> _Loaded:
    """Loads a model of mteb's registry, or of the Hub."""
    import mteb
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.get_model_meta import MODEL_REGISTRY
    from mteb.models.instruct_wrapper import InstructSentenceTransformerModel

    about = mteb.get_model_meta(model, use.revision, fetch_from_hf=True)
    is_plain = about.loader in {SentenceTransformerEncoderWrapper, InstructSentenceTransformerModel}
    if not use.trust_remote_code and (
        about.loader_kwargs.get("trust_remote_code") or not (is_plain or _never_trusts(about.loader))
    ):
        raise UserError(
            f"mteb's loader of {model} runs Python code from the checkpoint: read it, then add "
            "--trust-remote-code."
        )
    more = {"trust_remote_code": True} if use.trust_remote_code and is_plain else {}
    loaded = about.load_model(device=resolve_device(use.device), **more)
    # A branch moves; a revision in the registry is fixed by mteb's version.
    stays = about.revision and (model in MODEL_REGISTRY or _COMMIT.fullmatch(about.revision))
    sha256 = _digest(model=about.name, revision=about.revision) if stays else None
    return _Loaded(name, loaded, about.revision, sha256)


def _never_trusts(loader: Any) -> bool:
    """Returns whether the source of a loader never trusts code from a checkpoint."""
    try:
        return "trust_remote_code" not in inspect.getsource(
            sys.modules[getattr(loader, "func", loader).__module__]
        )
    except (AttributeError, KeyError, OSError, TypeError):
        return False


def _digest(**what: str | None) -> str:
    import mteb

    return fingerprint({**what, "mteb": mteb.__version__, "stsbench": __version__})


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences mteb and the libraries below it."""
    logs = [logging.getLogger(name) for name in ("mteb", "sentence_transformers")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), quiet_transformers():
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
