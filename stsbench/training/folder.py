"""The folder of a training: its files, its lock, and what the training started from."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path, remove_leftovers, writing
from stsbench.base.parsing import parse_json
from stsbench.training.log import LOG
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import as_yaml

_VERSION = 2


class RunFolder:
    """The folder of a training: recipe, log, best checkpoint, record, dev curve; `training/` has saved state."""

    def __init__(self, path: Path) -> None:
        """Set the paths; nothing is read or written."""
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
        """Return the folder of the checkpoint of a step."""
        return self.checkpoints / f"step-{step:06d}"

    @property
    def last_checkpoint(self) -> Path:
        """The last kept checkpoint."""
        return max(self.checkpoints.glob("step-*"))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep a second process from training here; delete the temporary files of killed writers."""
        from filelock import FileLock, Timeout

        with writing(self.path):
            self._inner.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self._lock, timeout=0):
                try:
                    self._clean()
                    yield
                finally:
                    if not self.start.is_file():  # nothing has begun
                        self._lock.unlink(missing_ok=True)
                        with suppress(OSError):
                            self._inner.rmdir()
                            self.path.rmdir()
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
        """Raise a UserError if the folder has any content."""
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
    """What a training started from, to compare a resumed one with.

    Attributes:
        tasks_sha256: of the labelled tables; "" without any.
        views_sha256: of the files that views read besides the corpus; "" without any.
        finished: whether the checkpoint is published; the state may still exist.
    """

    recipe: dict[str, Any]
    corpus_sha256: str
    dev_sha256: str
    base_sha256: str
    tokenizer_sha256: str
    tasks_sha256: str
    views_sha256: str
    threads: int
    world: int
    command: str
    environment: dict[str, Any]
    finished: bool = False
    version: int = _VERSION

    def differences(self, now: "Start") -> list[str]:
        """Return a notice if the environment differs; raise a UserError if the data does."""
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
                    f"the {what} differs from the one at the start of the training: restore it, or start anew."
                )
        if self.world != now.world:
            raise UserError(f"the training started with {self.world} processes: resume it with as many.")
        if (self.threads, self.environment) == (now.threads, now.environment):
            return []
        return [
            "threads or package versions differ from those at the start: weights may differ from those of an "
            "uninterrupted training in the last digits."
        ]


def write_start(folder: RunFolder, start: Start, recipe: Recipe) -> None:
    """Write the recipe and what the training started from."""
    # The start first: it alone is enough to resume.
    with atomic_path(folder.start) as path:
        path.write_text(json.dumps(asdict(start), indent=1) + "\n", encoding="utf-8")
    with atomic_path(folder.recipe) as path:
        path.write_text(as_yaml(recipe), encoding="utf-8")


def read_start(folder: RunFolder) -> Start:
    """Read the start of a training."""
    if not folder.start.is_file():
        raise UserError(f"{folder.path} holds no training: start one with `stsbench train RECIPE --out`.")
    try:
        content = parse_json(folder.start.read_bytes())
        if isinstance(content, dict) and content.get("version") != _VERSION:
            raise UserError(
                f"{folder.start} was written by another version of stsbench: start the training again."
            )
        return Start(**content)
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{folder.start} cannot be read ({error}): start the training again.") from error


def started_recipe(start: Start) -> Recipe:
    """Return the recipe of a started training."""
    try:
        return Recipe.model_validate(start.recipe)
    except ValidationError as error:
        raise UserError(
            "this version of stsbench cannot read the recipe of the training: start it again."
        ) from error
