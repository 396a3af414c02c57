"""Models as mteb loads them, with its prompts and its normalisation: `mteb:NAME`.

mteb says which text stands before a sentence by the task that it is of, by the task's type, and by the type of
prompt that the task has for its side (embeddings-benchmark/mteb, `mteb/models/abs_encoder.py` at 2.26:
`get_prompt_name`, `get_instruction`). So there is an encoder for each text, and a task names those of its sides. A
task that mteb does not have is read as one of mteb's type STS.
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
"""What stands before the name of a model that mteb is to load."""

KIND = "mteb"
"""The kind of the identity of such a model, and its pooling: the rest is mteb's business."""

_NAMES = {task: name for name, task in MTEB_TASKS.items()}
_SIDES = (0, 1)
_BATCH = 32
"""mteb's own default: a batch's padding moves the last bits."""

_COMMIT = re.compile("[0-9a-f]{40}")
_LIKE = "STS12"
"""A task of mteb's type STS, whose metadata another one of that type is described by."""


class _Place(NamedTuple):
    """Where sentences stand: the metadata of mteb's task, and its type of prompt for their side, if it has one."""

    metadata: Any
    prompt_type: Any


@dataclass(frozen=True)
class _Loaded:
    """A model that mteb has loaded.

    Attributes:
        name: as the person named it.
        model: mteb's encoder.
        revision: the commit or version that mteb gives it.
        sha256: over what its vectors depend on but for the text before a sentence; None where nobody knows that.
        checkpoint: its folder, where it came from one.
    """

    name: str
    model: Any
    revision: str | None
    sha256: str | None
    checkpoint: Checkpoint | None = None

    def encode(self, place: _Place, sentences: list[str]) -> Any:
        """Return what mteb's encoder gives for sentences, shape (len(sentences), dimensions)."""
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
        """Return the text before sentences, or "" for none; None where mteb's encoder does not tell it."""
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
        # With a type of prompt the library looks for names of its own.
        return _default_prompt(model.model) if place.prompt_type is None else None


def _default_prompt(model: Any) -> str:
    """Return what a model of sentence-transformers puts before a sentence if nobody gives a prompt."""
    return str(model.prompts.get(model.default_prompt_name) or "")


@dataclass
class MtebEncoder:
    """A model of mteb's that reads the sentences of different tasks or sides with different texts before them.

    Attributes:
        identity: what the vectors depend on, but for these texts.
        notes: what the person should know.
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
        """Return the encoder of a side; see `reader_of`."""
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
        """Return the encoder that reads every sentence, if no task and no side has another."""
        readers = [self.reader(task, side) for task in (*_NAMES, "") for side in _SIDES]
        return readers[0] if all(reader is readers[0] for reader in readers) else None

    def notes_on(self, task: str, sentences: Sequence[str]) -> tuple[str, ...]:
        """Return a note on a task that mteb does not have."""
        if task in _NAMES:
            return ()
        prompt = self.reader(task, None).identity.use.prompt
        return (
            f"mteb has no {task}: its sentences are read as those of a task of the type STS (prompt {prompt!r}).",
        )

    def prepare(self, *, weights: bool) -> None:
        """Do nothing: the model was loaded to know its prompts."""

    def tokenize(self, texts: Sequence[str]) -> NoReturn:
        """Refuse: a text is read by its task."""
        raise UserError(
            f"{self.identity.name} has other prompts for other tasks or sides, by mteb's rules, and here "
            "sentences are read without a task: name the checkpoint itself, and its prompt with --prompt-name or "
            "--prompt."
        )

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> NoReturn:
        """Refuse: a text is read by its task."""
        self.tokenize([])


def _place(name: str | None, side: int | None) -> _Place:
    """Return where the sentences of a side of mteb's task stand; of no task of its own, as of one of type STS."""
    import mteb

    task = mteb.get_task(name or _LIKE)
    if name is None:
        # Its own name, so that no prompt is looked up by that of another task.
        own = {"name": "stsbench", "prompt": task.abstask_prompt}
        return _Place(task.metadata.model_copy(update=own), None)
    types = (getattr(task, "input1_prompt_type", None), getattr(task, "input2_prompt_type", None))
    return _Place(task.metadata, None if side is None else types[side])


def load_from_mteb(name: str, use: Use) -> Encoder:
    """Load a model as mteb does.

    Args:
        name: `mteb:` and the name of a model in mteb's registry or on the Hub, a folder of a checkpoint that
            sentence-transformers loads, or `minilm`.
        use: of which the revision, the device and whether code may run are obeyed, and what is done to vectors.

    Raises:
        UserError: if mteb is not installed, or cannot load it as an encoder of sentences.
    """
    require("mteb", name)
    import mteb
    from mteb.models import EncoderProtocol, SentenceTransformerEncoderWrapper

    model = name.removeprefix(PREFIX)
    if not model:
        raise UserError(f"{name} names no model: write its name or folder behind it, as in {PREFIX}{PACKAGED}.")
    with _quiet(), told(f"load {model} with mteb"):
        is_here = model == PACKAGED or Path(model).expanduser().exists()
        if not is_here and model.startswith(("/", "./", "../", "~")):
            raise UserError(f"{name} names no folder that is here: check the path behind {PREFIX}.")
        loaded = _of_folder(name, model, use) if is_here else _of_name(name, model, use)
    if not isinstance(loaded.model, EncoderProtocol):
        raise UserError(
            f"{name} is no encoder of sentences in mteb, but {type(loaded.model).__name__}: name another."
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
        f"{name} is loaded and encoded by mteb {mteb.__version__}, with its prompts: sub-word lengths and cut "
        "sentences are not counted."
    ]
    if loaded.sha256 is None:
        notes.append(f"{name} has no commit that is known to stay as it is: its vectors are not cached.")
    if isinstance(loaded.model, SentenceTransformerEncoderWrapper):
        read = loaded.model.model_prompts or {}
        if unread := [
            called for called, text in loaded.model.model.prompts.items() if text and called not in read
        ]:
            notes.append(
                f"mteb does not read the prompts that {name} calls {listed(unread)}: it takes those called as one "
                "of its tasks, as a type of tasks, `query` or `document`."
            )
    by_task = MtebEncoder(
        loaded, Identity(name, KIND, how.processed(use), weights_sha256=loaded.sha256), tuple(notes)
    )
    return by_task.alike() or by_task


def _length_of(network: Any) -> int | None:
    """Return how many sub-words a model reads; None where it says none, or infinitely many (static embeddings)."""
    length = getattr(network, "max_seq_length", None)
    return int(length) if isinstance(length, int | float) and math.isfinite(length) else None


def _of_folder(name: str, model: str, use: Use) -> _Loaded:
    """Return a checkpoint of sentence-transformers in a folder, in the wrapper that mteb gives to such a model."""
    from mteb.models import SentenceTransformerEncoderWrapper

    if use.revision is not None:
        raise UserError(f"{name} is a folder, which has no revisions: leave out --revision.")
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
    """Return a model of mteb's registry, or else of the Hub."""
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
            f"mteb's loader of {model} lets Python code run that comes with a checkpoint: read it, then pass "
            "--trust-remote-code."
        )
    more = {"trust_remote_code": True} if use.trust_remote_code and is_plain else {}
    loaded = about.load_model(device=resolve_device(use.device), **more)
    # A branch moves on; the revision in the registry goes with mteb's version.
    stays = about.revision and (model in MODEL_REGISTRY or _COMMIT.fullmatch(about.revision))
    sha256 = _digest(model=about.name, revision=about.revision) if stays else None
    return _Loaded(name, loaded, about.revision, sha256)


def _never_trusts(loader: Any) -> bool:
    """Return whether the file of a loader never says that a checkpoint's code may run; no if it cannot be read."""
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
    """Keep mteb and the libraries below it from printing: what a person has to know becomes notes."""
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
