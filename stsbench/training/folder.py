"""The folder of a training: its files, its lock, its inputs, and its saved weights and state."""

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_folder, atomic_path, files_below, remove_leftovers, sha256_of, writing
from stsbench.base.parsing import first_error, parse_json
from stsbench.encoders.checkpoint import NOTES, quiet_transformers
from stsbench.encoders.sentence_transformers import Dense, write_modules
from stsbench.training.log import LOG, Best
from stsbench.training.recipe import Recipe, as_yaml

if TYPE_CHECKING:
    from torch import Tensor

    from stsbench.training.base import Base
    from stsbench.training.model import SentenceModel

Weights = Mapping[str, "Tensor"]


class RunFolder:
    """The folder of a training: recipe, log, best checkpoint, record, dev curve; `training/` has saved state."""

    def __init__(self, path: Path) -> None:
        self.path, self._inner = path, path / "training"
        self.recipe, self.log, self.card = path / "recipe.yaml", path / LOG, path / "README.md"
        self.curve = path / "dev-curve.png"
        self.start, self.state = self._inner / "start.json", self._inner / "state.pt"
        self.checkpoints, self._lock = self._inner / "checkpoints", self._inner / ".lock"

    @property
    def is_finished(self) -> bool:
        """Whether the training is published; deleting the state is its last step."""
        return read_start(self).finished and not self.state.exists()

    def checkpoint(self, step: int) -> Path:
        return self.checkpoints / f"step-{step:06d}"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps a second process from training here; deletes the temporary files of killed writers."""
        from filelock import FileLock, Timeout

        with writing(self.path):
            self._inner.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self._lock, timeout=0):
                self._clean()
                yield
        except Timeout as error:
            raise UserError(
                f"another process is training in {self.path}: wait for it, or stop it first."
            ) from error

    def _clean(self) -> None:
        with writing(self.path):
            curves = (self.curve, self.curve.with_suffix(".svg"))
            for target in (self.recipe, self.card, *curves, self.start, self.state):
                remove_leftovers(target)
                if target.exists() and not target.is_file():
                    raise UserError(f"{target} is not a file: move it away.")
            for leftover in self.checkpoints.glob(".step-*"):
                leftover.unlink() if leftover.is_file() else shutil.rmtree(leftover)

    def require_free(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise UserError(f"{self.path} is a file: choose a folder with --out.")
        if self.start.is_file():
            what = "a finished training" if self.is_finished else "an unfinished training"
            way = "" if self.is_finished else f"resume it (`stsbench train --resume {self.path}`), or "
            raise UserError(f"{self.path} holds {what}: {way}choose another folder with --out.")
        ours = {self._inner, self._lock}
        foreign = [path for path in (*self.path.iterdir(), *self._inner.glob("*")) if path not in ours]
        if foreign:
            raise UserError(
                f"{self.path} is not empty ({foreign[0].name}, ...): choose another folder with --out."
            )


@dataclass(frozen=True)
class Start:
    """The inputs of a training, compared when it is resumed.

    Attributes:
        sha256: of the data, by kind; "" for data that the recipe does not have.
        finished: whether the checkpoint is published; the state may still exist.
    """

    recipe: dict[str, Any]
    sha256: dict[str, str]
    threads: int
    world: int
    command: str
    environment: dict[str, Any]
    finished: bool = False

    def differences(self, now: "Start") -> list[str]:
        for what, sha256 in now.sha256.items():
            if self.sha256[what] != sha256:
                raise UserError(
                    f"the {what} differs from the one at the start of the training: restore it, or start anew."
                )
        if self.world != now.world:
            raise UserError(f"the training started with {self.world} processes: resume it with the same number.")
        if (self.threads, self.environment) == (now.threads, now.environment):
            return []
        return [
            "threads or package versions differ from those at the start: weights may differ from those of an "
            "uninterrupted training in the last digits."
        ]


def write_start(folder: RunFolder, start: Start, recipe: Recipe) -> None:
    # The start comes first, because it alone is enough to resume.
    with atomic_path(folder.start) as path:
        path.write_text(json.dumps(asdict(start), indent=1) + "\n", encoding="utf-8")
    with atomic_path(folder.recipe) as path:
        path.write_text(as_yaml(recipe), encoding="utf-8")


def read_start(folder: RunFolder) -> Start:
    if not folder.start.is_file():
        raise UserError(f"{folder.path} holds no training: start one with `stsbench train RECIPE --out`.")
    try:
        start = Start(**parse_json(folder.start.read_bytes()))
        Recipe.model_validate(start.recipe)
    except (OSError, ValueError, TypeError) as error:
        why = first_error(error) if isinstance(error, ValidationError) else error
        raise UserError(f"{folder.start} cannot be read ({why}): start the training again.") from error
    return start


@dataclass(frozen=True)
class CheckpointWriter:
    """Writes weights of the model as a checkpoint."""

    model: "SentenceModel"
    base: "Base"
    recipe: Recipe
    notes: Sequence[str] = ()

    def write(self, weights: Weights, folder: Path) -> None:
        with atomic_folder(folder) as building, _library_errors():
            self._write_transformer(weights, building)
            checkpoint, settings = self.base.encoder.checkpoint, self.base.encoder.settings
            for path in checkpoint.tokenizer_files():
                shutil.copyfile(path, building / path.relative_to(checkpoint.folder))
            if notes := list(dict.fromkeys([*checkpoint.own_notes(), *self.notes])):
                (building / NOTES).write_text(json.dumps({"notes": notes}, indent=2) + "\n", encoding="utf-8")
            layers: list[tuple[str, str, Dense | None]] = []
            if self.recipe.head.evaluate:
                activation = "activation.Tanh" if self.recipe.head.kind == "dense-tanh" else "linear.Identity"
                dense = Dense(_named(weights, "head.0."), f"torch.nn.modules.{activation}")
                layers.append(("2_Dense", "Dense", dense))
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
        """Keeps the weights if the score is the best; the first of equal scores wins."""
        if self.best is None or score > self.best.score:
            self.best = Best(step, score)
            weights = self.writer.model.state_dict()
            self._weights = {name: tensor.detach().clone() for name, tensor in weights.items()}

    def save(self, step: int, state: Mapping[str, Any], log_size: int) -> None:
        """Writes the best checkpoint and this step's, then the state, which commits them."""
        if self.best is not None and self._weights is not None:
            checkpoint = self.folder.checkpoint(self.best.step)
            self.writer.write(self._weights, checkpoint)
            self._best_files = {
                path.relative_to(checkpoint).as_posix(): sha256_of(path) for path in files_below(checkpoint)
            }
            self._weights = None
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
        """Returns the last saved state, with its `step` and `log_size`; None without any."""
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
    import torch

    with atomic_path(path) as temporary, _library_errors():
        torch.save(state, temporary)


def load_state(path: Path, device: str) -> dict[str, Any]:
    """Reads a state without running code in it."""
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
    """Copies a checkpoint's files into the folder of the training, its configuration last."""
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
    """Turns the errors of torch's and safetensors' writers back into the system's OSError."""
    from safetensors import SafetensorError

    try:
        yield
    except (RuntimeError, SafetensorError) as error:
        raise OSError(str(error).strip().partition("\n")[0]) from error


def _sha256_of_start(path: Path, size: int) -> str | None:
    if not path.is_file() or path.stat().st_size < size:
        return None if size == 0 else "shorter"
    with path.open("rb") as stream:
        return hashlib.sha256(stream.read(size)).hexdigest()


def _named(weights: Weights, prefix: str) -> dict[str, "Tensor"]:
    return {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}
