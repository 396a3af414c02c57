"""`train`: from a recipe and a corpus to a checkpoint with its record, card and dev curve; resumable."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.encoders.device import resolve_device
from stsbench.records.provenance import command_line
from stsbench.records.record import RunRecord
from stsbench.records.store import load_run
from stsbench.scoring.run import RUNS
from stsbench.training.job import Job
from stsbench.training.log import Listener, read_log
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import read_recipe
from stsbench.training.result import publish_result
from stsbench.training.selection import Best, best_of
from stsbench.training.state import RunFolder, Start, read_start, started_recipe

__all__ = ["Training", "command_line", "train"]


@dataclass(frozen=True)
class Training:
    """A finished training.

    Attributes:
        folder: holds the checkpoint, `run.json`, `log.jsonl`, `recipe.yaml` and the dev curve.
        recipe: in full.
        best: the step that was selected and its dev score.
        steps: taken.
        record: of the checkpoint on the dev set.
        leads: whether this is the first of the processes that trained: the one to speak of it.
    """

    folder: Path
    recipe: Recipe
    best: Best
    steps: int
    record: RunRecord
    leads: bool = True


def train(
    recipe: str | Path | None = None,
    corpus: str | Path | None = None,
    out: str | Path | None = None,
    *,
    base: str | Path | None = None,
    seed: int | None = None,
    overrides: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    resume: str | Path | None = None,
    device: str = "auto",
    data_dirs: Sequence[str | Path] = (),
    tensorboard: bool = False,
    wandb: bool = False,
    progress: Progress = silent,
    listeners: Sequence[Listener] = (),
    notice: Callable[[str], None] = lambda _: None,
    command: str = "",
) -> Training:
    """Train a sentence encoder by a recipe, or go on with a training that was stopped.

    Started by `torchrun` or `accelerate launch`, the processes share the work; the first one scores and saves.

    Args:
        recipe: a known recipe's name, or a YAML file.
        corpus: text (one sentence a line), .csv, .tsv, .jsonl or .parquet; by default the recipe's.
        out: folder of the training; by default `runs/<recipe>`.
        base: the checkpoint to start from; by default the recipe's.
        seed: of everything random; by default the recipe's.
        overrides: changes to the recipe, as `key=value`.
        columns: which columns of the corpus to read, in order.
        resume: the folder of a training to go on with, in place of all of the above.
        device: `auto`, `cpu`, `cuda` or `mps`.
        data_dirs: folders to look for the dev set in, before `STSBENCH_DATA` and the cache.
        tensorboard: whether to write TensorBoard's files, too.
        wandb: whether to send the log to Weights & Biases, too.
        progress: told how far it is.
        listeners: told each line of the log.
        notice: told what the person should know.
        command: the command line, for the record.

    Raises:
        UserError: for a person's mistake, in one sentence; nothing is overwritten.
    """
    from stsbench.training.distributed import join_world

    if (recipe is None) == (resume is None):
        raise UserError("name a recipe, or a folder with --resume, and not both; --list names the recipes.")
    then: Start | None = None
    if resume is not None:
        _refuse_with_resume(corpus=corpus, out=out, base=base, seed=seed, set=overrides, columns=columns)
        folder = RunFolder(Path(resume).expanduser())
        then = read_start(folder)
        if then.finished:
            raise UserError(f"the training in {folder.path} is finished: its checkpoint is there.")
        chosen = started_recipe(then)
    else:
        changes = {"corpus.path": corpus, "base": base, "seed": seed, "corpus.names": columns}
        given = [f"{name}={_as_yaml_value(value)}" for name, value in changes.items() if value is not None]
        chosen = read_recipe(str(recipe), [*overrides, *given])
        folder = RunFolder(RUNS / chosen.name if out is None else Path(out).expanduser())
    device = resolve_device(device)
    if chosen.precision == "fp16" and device == "cpu":
        raise UserError("precision fp16 needs a GPU: use --set precision=fp32.")
    world, device = join_world(device)
    if not world.leads:
        progress, listeners, notice = silent, (), lambda _: None
    if then is None and world.leads:
        folder.require_free()  # asked before anything is read, and again by the only one who is there
    job = Job.prepare(
        chosen,
        folder,
        then,
        world=world,
        device=device,
        data_dirs=data_dirs,
        progress=progress,
        notice=notice,
        command=command,
    )
    with _held(folder, new=then is None) if world.leads else nullcontext():
        trackers = _trackers(folder, chosen, tensorboard=tensorboard, wandb=wandb) if world.leads else []
        try:
            steps = job.run([*listeners, *trackers])
            if world.leads:
                publish_result(job, steps)
        except KeyboardInterrupt as error:
            raise UserError(
                f"interrupted: `stsbench train --resume {folder.path}` goes on from the last save."
            ) from error
        world.wait()
    world.leave()
    best = best_of(read_log(folder.log))
    return Training(folder.path, job.recipe, best, steps, load_run(folder.path), world.leads)


@contextmanager
def _held(folder: RunFolder, *, new: bool) -> Iterator[None]:
    """Hold the folder, so that no second training runs in it."""
    with folder.alone():
        if new:
            folder.require_free()
        yield


def _trackers(folder: RunFolder, recipe: Recipe, *, tensorboard: bool, wandb: bool) -> list[Listener]:
    from stsbench.training import log as trackers

    name = folder.path.resolve().name
    return [
        *([trackers.tensorboard(folder.path / "tensorboard")] if tensorboard else []),
        *([trackers.wandb(name, recipe.model_dump(mode="json"))] if wandb else []),
    ]


def _refuse_with_resume(**given: Any) -> None:
    named = [f"--{name}" for name, value in given.items() if value is not None and value != ()]
    if named:
        raise UserError(f"{' and '.join(named)}: not with --resume, which goes on as the training began.")


def _as_yaml_value(value: Any) -> str:
    plain = value if isinstance(value, int) else str(value) if isinstance(value, str | Path) else list(value)
    return json.dumps(plain)  # JSON is YAML
