"""`train`: from a recipe and a corpus to a checkpoint with its record, card and dev curve; resumable.

What is missing or wrong is told before anything is begun, in the order in which a person names it: recipe,
folder, corpus, dev set, base.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

from stsbench.base.errors import InterruptError, UserError, by_interrupt
from stsbench.base.options import Commas, NameOrPath, Spelled
from stsbench.base.progress import Progress, silent
from stsbench.encoders.device import resolve_device
from stsbench.records.store import load_run
from stsbench.scoring.run import RUNS
from stsbench.training.folder import RunFolder, read_start, started_recipe
from stsbench.training.job import Surroundings, prepare
from stsbench.training.log import Listener, read_log, tensorboard_listener, wandb_listener
from stsbench.training.publishing import publish
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import read_recipe
from stsbench.training.result import Training
from stsbench.training.selection import best_of


def train(
    recipe: NameOrPath | None = None,
    corpus: NameOrPath | None = None,
    out: str | Path | None = None,
    *,
    base: NameOrPath | None = None,
    seed: int | None = None,
    overrides: Annotated[Sequence[str], Spelled("--set", "KEY=VALUE")] = (),
    columns: Annotated[Sequence[str] | None, Commas()] = None,
    resume: str | Path | None = None,
    device: str = "auto",
    data_dirs: Sequence[str | Path] = (),
    tensorboard: bool = False,
    wandb: bool = False,
    progress: Progress = silent,
    listeners: Sequence[Listener] = (),
    notice: Callable[[str], None] = lambda _: None,
    command: str = "",
    shared: str | Path | None = None,
) -> Training:
    """Train a sentence encoder by a recipe, or go on with a training that was stopped.

    Started by `torchrun` or `accelerate launch`, the processes share the work; the first one scores and saves.

    Args:
        recipe: a known recipe's name, or a YAML file.
        corpus: text (one sentence a line), .csv, .tsv, .jsonl or .parquet, .gz and .zst too; by default the
            recipe's.
        out: the folder of the training; by default `runs/<recipe>`.
        base: the checkpoint to start from; by default the recipe's.
        seed: the seed of everything random; by default the recipe's.
        overrides: change a value of the recipe, as `key=value`.
        columns: columns of the corpus to read, in order, with commas; by default all.
        resume: go on with the training in this folder, in place of all of the above, to the same weights bit by
            bit.
        device: `auto`, `cpu`, `cuda` or `mps`.
        data_dirs: folders to look for the dev set in, before `STSBENCH_DATA` and the cache.
        tensorboard: whether to write TensorBoard's files, too.
        wandb: whether to send the log to Weights & Biases, too.
        progress: told how far it is.
        listeners: told each line of the log.
        notice: told what the person should know.
        command: the command line, for the record.
        shared: a folder where trainings from one base share what it gives on the dev set before the first step;
            None to encode that set.

    Returns:
        What was trained, where `.folder` is a checkpoint, `.record` its record on the dev set, `.plot()` its dev
        curve.

    Raises:
        UserError: for a person's mistake, in one sentence; nothing is overwritten.
    """
    from stsbench.training.distributed import join_world

    if (recipe is None) == (resume is None):
        raise UserError("name a recipe, or a folder with --resume, and not both; --list names the recipes.")
    if resume is not None:
        _refuse_with_resume(corpus=corpus, out=out, base=base, seed=seed, set=overrides, columns=columns)
        folder = RunFolder(Path(resume).expanduser())
        began = read_start(folder)
        if folder.is_finished:
            raise UserError(f"the training in {folder.path} is finished: its checkpoint is there.")
        chosen = started_recipe(began)
    else:
        began = None
        changes = {"corpus.path": corpus, "base": base, "seed": seed, "corpus.names": columns}
        given = [f"{name}={_as_yaml_value(value)}" for name, value in changes.items() if value is not None]
        chosen = read_recipe(str(recipe), [*overrides, *given])
        folder = RunFolder(RUNS / chosen.name if out is None else Path(out).expanduser())
    device = resolve_device(device)
    _require_precisions(chosen, device)
    world, device = join_world(device)
    if not world.leads:
        progress, listeners, notice = silent, (), lambda _: None
    begins = began is None and world.leads
    if begins:
        folder.require_free()  # asked before anything is read, and again by the only one who is there
    shared_folder = None if shared is None else Path(shared)
    job = prepare(
        chosen, folder, began, Surroundings(world, device, data_dirs, progress, notice, command, shared_folder)
    )
    with folder.alone() if world.leads else nullcontext():
        if begins:
            folder.require_free()
        if world.leads:
            listeners = [*listeners, *_trackers(folder, chosen, tensorboard=tensorboard, wandb=wandb)]
        with _interrupt_names_resume(folder):
            steps = job.run(listeners)
            if world.leads:
                publish(job, steps)
        world.wait()
    world.leave()
    log = read_log(folder.log)
    return Training(folder.path, job.recipe, best_of(log), steps, load_run(folder.path), log, world.leads)


@contextmanager
def _interrupt_names_resume(folder: RunFolder) -> Iterator[None]:
    """Tell an interrupt with the command that goes on: the same one would refuse, as the training has begun.

    Raises:
        InterruptError: once the start is written; before that the folder is as it was.
    """
    try:
        yield
    except BaseException as error:
        if not (by_interrupt(error) and folder.start.is_file()):
            raise
        place = "the last save" if folder.state.is_file() else "its first step"
        raise InterruptError(
            f"interrupted: `stsbench train --resume {folder.path}` goes on from {place}."
        ) from error


def prepare_training(
    recipe: Recipe, *, data_dirs: Sequence[str | Path] = (), device: str = "auto", progress: Progress = silent
) -> None:
    """Read what a training by a recipe needs, and tokenise its corpus, without starting it.

    Args:
        recipe: of the training, or of the first of several that share base and corpus.
        data_dirs: folders to look for the dev set in.
        device: `auto`, `cpu`, `cuda` or `mps`.
        progress: told how far tokenising is.

    Raises:
        UserError: if something is missing or does not fit together.
    """
    from stsbench.training.distributed import World

    prepare(recipe, RunFolder(Path()), None, Surroundings(World(), resolve_device(device), data_dirs, progress))


def _require_precisions(recipe: Recipe, device: str) -> None:
    precisions = {"precision": recipe.precision, "selection.precision": recipe.selection.precision}
    for key, precision in precisions.items():
        if precision == "fp16" and device == "cpu":
            raise UserError(f"{key} fp16 needs a GPU: use --set {key}=fp32.")


def _trackers(folder: RunFolder, recipe: Recipe, *, tensorboard: bool, wandb: bool) -> list[Listener]:
    name = folder.path.resolve().name
    return [
        *([tensorboard_listener(folder.path / "tensorboard")] if tensorboard else []),
        *([wandb_listener(name, recipe.model_dump(mode="json"))] if wandb else []),
    ]


def _refuse_with_resume(**given: Any) -> None:
    named = [f"--{name}" for name, value in given.items() if value is not None and value != ()]
    if named:
        raise UserError(f"{' and '.join(named)}: not with --resume, which goes on as the training began.")


def _as_yaml_value(value: Any) -> str:
    plain = value if isinstance(value, int) else str(value) if isinstance(value, str | Path) else list(value)
    return json.dumps(plain)  # JSON is YAML
