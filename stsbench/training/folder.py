"""The folder of one training: what lies where, who may write there, and what the training started from."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, remove_leftovers, told_as_unwritable
from stsbench.base.parsing import parse_json
from stsbench.base.words import listed
from stsbench.training.log import LOG
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import as_yaml, read_recipe

_VERSION = 1


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
        return self.path / "recipe.yaml"

    @property
    def log(self) -> Path:
        """The training log."""
        return self.path / LOG

    @property
    def card(self) -> Path:
        """The model card."""
        return self.path / "README.md"

    @property
    def curve(self) -> Path:
        """The picture of the dev curve; the same stands beside it as `.svg`."""
        return self.path / "dev-curve.png"

    @property
    def start(self) -> Path:
        """What the training started from."""
        return self._inner / "start.json"

    @property
    def state(self) -> Path:
        """The last state saved."""
        return self._inner / "state.pt"

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints kept."""
        return self._inner / "checkpoints"

    @property
    def _inner(self) -> Path:
        return self.path / "training"

    @property
    def _lock(self) -> Path:
        return self._inner / ".lock"

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do for a training that was begun here: the state is the last thing to go.

        Raises:
            UserError: if the folder holds no training, or one that cannot be read.
        """
        return read_start(self).finished and not self.state.exists()

    def checkpoint(self, step: int) -> Path:
        """Return the folder of the checkpoint of a step."""
        return self.checkpoints / f"step-{step:06d}"

    @property
    def last_checkpoint(self) -> Path:
        """The checkpoint of the last step that was kept."""
        return max(self.checkpoints.glob("step-*"))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep a second process from training here; delete what writers left that were killed.

        Raises:
            UserError: if another process is training here.
        """
        from filelock import FileLock, Timeout

        with told_as_unwritable(self.path):
            self._inner.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self._lock, timeout=0):
                try:
                    self._clean()
                    yield
                finally:
                    if not self.start.is_file():  # nothing has begun, so nothing is left
                        self._lock.unlink(missing_ok=True)
                        with suppress(OSError):
                            self._inner.rmdir()
                            self.path.rmdir()
        except Timeout as error:
            raise UserError(
                f"another process is training in {self.path}: wait for it, or stop it first."
            ) from error

    def _clean(self) -> None:
        with told_as_unwritable(self.path):
            for target in (
                self.recipe,
                self.card,
                self.curve,
                self.curve.with_suffix(".svg"),
                self.start,
                self.state,
            ):
                remove_leftovers(target)
                if target.exists() and not target.is_file():
                    raise UserError(f"{target} is no file: move it away.")
            for leftover in self.checkpoints.glob(".step-*"):
                shutil.rmtree(leftover)

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
            what = "a finished training" if self.is_finished else "an unfinished training"
            way = "" if self.is_finished else f"go on with it (`stsbench train --resume {self.path}`), or "
            raise UserError(f"{self.path} holds {what}: {way}choose another folder with --out.")
        ours = {self._inner, self._lock}
        others = [path for path in (*self.path.iterdir(), *self._inner.glob("*")) if path not in ours]
        if others:
            raise UserError(f"{self.path} is not empty ({others[0].name}, ...): choose another folder with --out.")


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
        tasks_sha256: of the labelled tables; "" where there are none.
        views_sha256: of the files that views read beside the corpus; "" where they read none.
        finished: whether the training has ended and its checkpoint is published; its state may still be there.
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
    views_sha256: str = ""
    tasks_sha256: str = ""
    version: int = _VERSION

    def differences(self, now: "Start") -> list[str]:
        """Return what the person should know when a training goes on in changed surroundings.

        Raises:
            UserError: if it would become another training.
        """
        for what, old, new in (
            ("corpus", self.corpus_sha256, now.corpus_sha256),
            ("dev set", self.dev_sha256, now.dev_sha256),
            ("base checkpoint", self.base_sha256, now.base_sha256),
            ("base's tokenizer", self.tokenizer_sha256, now.tokenizer_sha256),
            ("labelled table of a task", self.tasks_sha256, now.tasks_sha256),
            ("lexicon or model of a view", self.views_sha256, now.views_sha256),
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
    # The start first: with it alone the training can go on, where the recipe alone would only be in the way.
    with atomic_path(folder.start) as path:
        path.write_text(json.dumps(asdict(start), indent=1) + "\n", encoding="utf-8")
    with atomic_path(folder.recipe) as path:
        path.write_text(as_yaml(recipe), encoding="utf-8")


def read_start(folder: RunFolder) -> Start:
    """Read what a training started from.

    Raises:
        UserError: if the folder holds no training, or one that cannot be read.
    """
    if not folder.start.is_file():
        raise UserError(f"{folder.path} holds no training: start one with `stsbench train RECIPE --out`.")
    try:
        start = Start(**parse_json(folder.start.read_bytes()))
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


def edits(folder: RunFolder, recipe: Recipe) -> list[str]:
    """Return what the person should know if `recipe.yaml` is no longer what the training started with."""
    try:
        written = read_recipe(folder.recipe)
    except UserError as error:
        changes = str(error).rstrip(".")
    else:
        if written == recipe:
            return []
        changes = listed(_differing(written.model_dump(), recipe.model_dump()))
    return [
        f"{folder.recipe} was changed since the training began ({changes}): it goes on with the recipe that it "
        "started with; for another, start anew with --out."
    ]


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return the keys that differ, with dots."""
    names = []
    for key in dict.fromkeys([*one, *other]):
        a, b = one.get(key), other.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            names += [f"{key}.{name}" for name in _differing(a, b)]
        elif a != b:
            names.append(key)
    return names
