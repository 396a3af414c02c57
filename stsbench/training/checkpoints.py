"""The files of a training: checkpoints that other libraries load, and the state for resuming.

A checkpoint has the base's configuration and tokenizer, the trained weights, and sentence-transformers' modules:
pooling, scored heads, and the base's closing normalisation. If the model has a pooler of the head's shape, it gets
the head's weights, as in the SimCSE authors' checkpoints: `pooling cls` reads after the head, `cls_before_pooler`
before it. Notes on test data in training are in a file that every later measurement repeats.
"""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.base.files import (
    atomic_folder,
    atomic_path,
    files_below,
    remove_leftovers,
    sha256_of,
    writing,
)
from stsbench.encoders.checkpoint import NOTES
from stsbench.encoders.libraries import quiet_transformers
from stsbench.encoders.sentence_transformers import Dense, write_modules
from stsbench.training.folder import RunFolder
from stsbench.training.heads import dense_layers
from stsbench.training.recipe import Recipe
from stsbench.training.selection import Best

if TYPE_CHECKING:
    from torch import Tensor

    from stsbench.training.base import Base
    from stsbench.training.model import SentenceModel

Weights = Mapping[str, "Tensor"]
"""The state of a `SentenceModel`."""


@dataclass(frozen=True)
class CheckpointWriter:
    """Writes weights of the model as a checkpoint."""

    model: "SentenceModel"
    base: "Base"
    recipe: Recipe
    notes: Sequence[str] = ()

    def write(self, weights: Weights, folder: Path) -> None:
        """Write a checkpoint atomically."""
        with atomic_folder(folder) as building, _library_errors():
            self._write_transformer(weights, building)
            checkpoint, settings = self.base.checkpoint, self.base.encoder.settings
            for path in checkpoint.tokenizer_files():
                shutil.copyfile(path, building / path.relative_to(checkpoint.folder))
            if notes := list(dict.fromkeys([*checkpoint.own_notes(), *self.notes])):
                (building / NOTES).write_text(json.dumps({"notes": notes}, indent=2) + "\n", encoding="utf-8")
            layers: list[tuple[str, str, Dense | None]] = []
            scored = dense_layers(self.model.head) if self.recipe.head.evaluate else {}
            for layer, about in scored.items():
                tensors = _named(weights, f"head.{layer}".rstrip(".") + ".")
                layers.append((f"{len(layers) + 2}_Dense", "Dense", Dense(tensors, about["activation_function"])))
            if self.base.normalizes:
                layers.append((f"{len(layers) + 2}_Normalize", "Normalize", None))
            use = replace(settings.use, pooling=self.recipe.pooling, prompt="")
            write_modules(building, replace(settings, use=use), self.model.width, layers)

    def _write_transformer(self, weights: Weights, folder: Path) -> None:
        tensors, head = _named(weights, "transformer."), _named(weights, "head.0.")
        places = {"weight": "pooler.dense.weight", "bias": "pooler.dense.bias"}
        as_pooler = self.recipe.pooling == "cls_before_pooler" and self.recipe.head.kind == "dense-tanh"
        if as_pooler and all(
            name in head and tensors.get(place) is not None and tensors[place].shape == head[name].shape
            for name, place in places.items()
        ):
            tensors |= {place: head[name] for name, place in places.items()}
        with quiet_transformers():
            # safetensors refuses tensors that share memory.
            copies = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
            transformer: Any = self.model.transformer
            transformer.save_pretrained(folder, state_dict=copies)


@dataclass
class Keeper:
    """Saves a training: the best weights, in memory until the next save, and the last `keep` checkpoints."""

    folder: RunFolder
    writer: CheckpointWriter
    keep: int
    best: Best | None = None
    _weights: dict[str, Any] | None = field(default=None, repr=False)
    _saves: list[int] = field(default_factory=list)
    _best_files: dict[str, str] = field(default_factory=dict)

    def offer(self, step: int, score: float) -> None:
        """Keep the weights if the score is the best; the first of equal scores wins."""
        if self.best is None or score > self.best.score:
            self.best = Best(step, score)
            weights = self.writer.model.state_dict()
            self._weights = {name: tensor.detach().clone() for name, tensor in weights.items()}

    def save(self, step: int, state: Mapping[str, Any], log_size: int) -> None:
        """Write the best checkpoint and this step's, then the state, which commits them."""
        if self.best is not None and self._weights is not None:
            checkpoint = self.folder.checkpoint(self.best.step)
            self.writer.write(self._weights, checkpoint)
            self._best_files = {
                path.relative_to(checkpoint).as_posix(): sha256_of(path) for path in files_below(checkpoint)
            }
            self._weights = None
        if self.keep:
            if self.best is None or self.best.step != step:
                self.writer.write(self.writer.model.state_dict(), self.folder.checkpoint(step))
            self._saves = [*self._saves, step][-self.keep :]
        progress = {
            "step": step,
            "log_size": log_size,
            "log_sha256": _sha256_of_start(self.folder.log, log_size),
            "best": None if self.best is None else asdict(self.best),
            "best_files": self._best_files,
            "saves": self._saves,
        }
        save_state(self.folder.state, {**progress, **state})
        kept = {*self._saves, *([self.best.step] if self.best else [])}
        for path in self.folder.checkpoints.glob("step-*"):
            if int(path.name.removeprefix("step-")) not in kept:
                shutil.rmtree(path)

    def load(self, device: str) -> dict[str, Any] | None:
        """Return the last saved state, with its `step` and `log_size`; None without any."""
        if not self.folder.state.is_file():
            return None
        state = load_state(self.folder.state, device)
        self.best = None if state["best"] is None else Best(**state["best"])
        self._saves = list(state["saves"])
        self._best_files = dict(state["best_files"])
        log, remedy = self.folder.log, "restore it, or start the training again"
        if state["log_sha256"] != _sha256_of_start(log, int(state["log_size"])):
            raise UserError(f"{log} is not what the training wrote: {remedy}.")
        for name, written in self._best_files.items():
            assert self.best is not None
            path = self.folder.checkpoint(self.best.step) / name
            if not path.is_file() or sha256_of(path) != written:
                raise UserError(f"{path} is not what the training saved: {remedy}.")
        return state


def save_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write nested dictionaries and lists of tensors and plain values."""
    import torch

    with atomic_path(path) as temporary, _library_errors():
        torch.save(state, temporary)


def load_state(path: Path, device: str) -> dict[str, Any]:
    """Read a state without running code in it."""
    import torch

    try:
        # torch does not check the checksums that it writes.
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is not None:
                raise ValueError("a checksum does not agree")  # noqa: TRY301 - reported with those below
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # the libraries raise many kinds
        raise UserError(f"{path} is damaged ({type(error).__name__}): start the training again.") from error
    return state


def copy_checkpoint(checkpoint: Path, folder: Path) -> None:
    """Copy a checkpoint's files into the folder of the training, its configuration last."""
    with writing(folder):
        files = [path.relative_to(checkpoint) for path in files_below(checkpoint)]
        last = {Path("modules.json"), Path("config.json")}
        for path in sorted(files, key=lambda path: path in last):
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(target)
            with atomic_path(target) as copy:
                shutil.copyfile(checkpoint / path, copy)


@contextmanager
def _library_errors() -> Iterator[None]:
    """Turn the errors of torch's and safetensors' writers back into the system's OSError."""
    from safetensors import SafetensorError

    try:
        yield
    except (RuntimeError, SafetensorError) as error:
        raise OSError(str(error).strip().partition("\n")[0]) from error


def _sha256_of_start(path: Path, size: int) -> str | None:
    """Return the hash of a file's first bytes."""
    if not path.is_file() or path.stat().st_size < size:
        return None if size == 0 else "shorter"
    with path.open("rb") as stream:
        return hashlib.sha256(stream.read(size)).hexdigest()


def _named(weights: Weights, prefix: str) -> dict[str, "Tensor"]:
    return {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}
