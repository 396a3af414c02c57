"""The state of a training on disk: everything that the next step depends on, whole or absent."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, told_as_unwritable
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import as_yaml

_VERSION = 1

RECIPE, LOG, START, STATE = "recipe.yaml", "log.jsonl", "start.json", "state.pt"
_OWN_FOLDER, _LOCK = "training", ".lock"


@dataclass(frozen=True)
class RunFolder:
    """The folder of one training.

    At the top lie the recipe, the log, and at the end the best checkpoint with its record and dev curve; below
    `training/` what resuming needs.
    """

    path: Path

    @property
    def recipe(self) -> Path:
        """The recipe in full."""
        return self.path / RECIPE

    @property
    def log(self) -> Path:
        """The training log."""
        return self.path / LOG

    @property
    def start(self) -> Path:
        """What the training started from."""
        return self.path / _OWN_FOLDER / START

    @property
    def state(self) -> Path:
        """The last state saved."""
        return self.path / _OWN_FOLDER / STATE

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints kept."""
        return self.path / _OWN_FOLDER / "checkpoints"

    def checkpoint(self, step: int) -> Path:
        """Return the folder of the checkpoint of a step."""
        return self.checkpoints / f"step-{step:06d}"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep a second process from training here.

        Raises:
            UserError: if one is.
        """
        from filelock import FileLock, Timeout

        own = self.path / _OWN_FOLDER
        with told_as_unwritable(self.path):
            own.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(own / _LOCK, timeout=0):
                try:
                    yield
                finally:
                    if not self.start.is_file():  # nothing has begun, so nothing is left
                        (own / _LOCK).unlink(missing_ok=True)
                        with suppress(OSError):
                            own.rmdir()
                            self.path.rmdir()
        except Timeout as error:
            raise UserError(
                f"another process is training in {self.path}: wait for it, or stop it first."
            ) from error

    def require_free(self) -> None:
        """Make sure that nothing is lost if a training starts here.

        Raises:
            UserError: if the folder holds anything.
        """
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise UserError(f"{self.path} is a file: choose a folder with --out.")
        if self.start.is_file():
            what = "a finished training" if read_start(self).finished else "an unfinished training"
            way = (
                "" if read_start(self).finished else f"go on with it (`stsbench train --resume {self.path}`), or "
            )
            raise UserError(f"{self.path} holds {what}: {way}choose another folder with --out.")
        own = self.path / _OWN_FOLDER
        held = [path for path in (*self.path.iterdir(), *own.glob("*")) if path not in {own, own / _LOCK}]
        if held:
            raise UserError(f"{self.path} is not empty ({held[0].name}, ...): choose another folder with --out.")


@dataclass(frozen=True)
class Start:
    """What a training started from, so that a resumed one can be held against it.

    Attributes:
        recipe: in full.
        corpus_sha256: of the corpus file.
        dev_sha256: of the dev set.
        base_sha256: of the base's weights.
        tokenizer_sha256: of the base's tokenizer.
        threads: that torch computed with.
        world: processes.
        command: as it was typed.
        environment: versions.
        finished: whether the training has ended and its checkpoint is published.
    """

    recipe: dict[str, Any]
    corpus_sha256: str
    dev_sha256: str
    base_sha256: str
    tokenizer_sha256: str
    threads: int
    world: int
    command: str
    environment: dict[str, Any]
    finished: bool = False
    version: int = _VERSION

    def held_against(self, now: "Start") -> list[str]:
        """Return what the person should know when a training goes on in changed surroundings.

        Raises:
            UserError: if it would become another training.
        """
        for what, old, new in (
            ("corpus", self.corpus_sha256, now.corpus_sha256),
            ("dev set", self.dev_sha256, now.dev_sha256),
            ("base checkpoint", self.base_sha256, now.base_sha256),
            ("base's tokenizer", self.tokenizer_sha256, now.tokenizer_sha256),
        ):
            if old != new:
                raise UserError(
                    f"the {what} is another than the training started from: put it back, or start anew."
                )
        if self.world != now.world:
            raise UserError(f"the training started with {self.world} processes: resume it with as many.")
        if (self.threads, self.environment) == (now.threads, now.environment):
            return []
        return [
            "threads or package versions are others than at the start: the weights may differ in the last digits "
            "from those of a training that was not stopped."
        ]


def write_start(folder: RunFolder, start: Start, recipe: Recipe) -> None:
    """Write the recipe and what the training started from."""
    with atomic_path(folder.recipe) as path:
        path.write_text(as_yaml(recipe), encoding="utf-8")
    with atomic_path(folder.start) as path:
        path.write_text(json.dumps(asdict(start), indent=1) + "\n", encoding="utf-8")


def read_start(folder: RunFolder) -> Start:
    """Read what a training started from.

    Raises:
        UserError: if the folder holds no training, or one that cannot be read.
    """
    if not folder.start.is_file():
        raise UserError(f"{folder.path} holds no training: start one with `stsbench train RECIPE --out`.")
    try:
        start = Start(**json.loads(folder.start.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{folder.start} cannot be read ({error}): start the training again.") from error
    if start.version != _VERSION:
        raise UserError(f"{folder.start} was written by another version of stsbench: start the training again.")
    return start


def started_recipe(start: Start) -> Recipe:
    """Return the recipe of a training that was started.

    Raises:
        UserError: if this version of stsbench does not know it.
    """
    try:
        return Recipe.model_validate(start.recipe)
    except ValidationError as error:
        raise UserError(
            "this version of stsbench does not know the recipe of the training: start it again."
        ) from error


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write a state: nested dictionaries and lists of tensors and plain values.

    Raises:
        UserError: if the disk is full or the folder cannot be written; the state before is untouched.
    """
    import torch

    with atomic_path(path) as temporary:
        torch.save(state, temporary)


def load_state(path: Path, device: str) -> dict[str, Any]:
    """Read a state; no code that it may hold runs.

    Raises:
        UserError: if it is damaged.
    """
    import torch

    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # the libraries raise a dozen kinds for what is one thing to the person
        raise UserError(f"{path} is damaged ({type(error).__name__}): start the training again.") from error
    return state
