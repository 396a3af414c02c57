"""`train`: from a recipe and a corpus to a checkpoint with its record, card and dev curve; resumable."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stsbench._version import __version__
from stsbench.datasets import StsData
from stsbench.encoders import load
from stsbench.encoders.checkpoint import MINILM
from stsbench.encoders.device import resolve_device
from stsbench.foundation.errors import UserError
from stsbench.foundation.files import atomic_path, sha256_of
from stsbench.foundation.paths import cache_dir
from stsbench.foundation.progress import Progress, silent
from stsbench.records import RunRecord
from stsbench.records.provenance import command_line, environment, redact, threads
from stsbench.training import trackers
from stsbench.training.card import CardScore, model_card
from stsbench.training.corpus import corpus_file, read_rows
from stsbench.training.log import Listener, Log, read_log
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import as_yaml, read_recipe, recipe_names, recipe_summary
from stsbench.training.selection import Best, LiveEncoder, Selector
from stsbench.training.state import RunFolder, Start, read_start, started_recipe, write_start
from stsbench.training.token_store import TokenStore, open_store
from stsbench.workflows.dev_curve import draw_dev_curve
from stsbench.workflows.evaluate import read_data
from stsbench.workflows.measure import measure_encoder
from stsbench.workflows.settings import Settings, Stages

__all__ = ["Training", "print_recipe", "recipe_list", "train"]

RUNS = Path("runs")

Notice = Callable[[str], None]


@dataclass(frozen=True)
class Training:
    """A finished training.

    Attributes:
        folder: holds the checkpoint, `run.json`, `log.jsonl`, `recipe.yaml` and the dev curve.
        recipe: in full.
        best: the step that was selected and its dev score.
        steps: taken.
        record: of the checkpoint on the dev set.
    """

    folder: Path
    recipe: Recipe
    best: Best
    steps: int
    record: RunRecord


def train(
    recipe: str | Path | None = None,
    corpus: str | Path | None = None,
    out: str | Path | None = None,
    *,
    base: str | None = None,
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
    notice: Notice = lambda _: None,
) -> Training:
    """Train a sentence encoder by a recipe, or go on with a training that was stopped.

    Started by `torchrun` or `accelerate launch`, the processes share the work; the first of them evaluates and saves.

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

    Raises:
        UserError: for a person's mistake, in one sentence; nothing is overwritten.
    """
    from stsbench.training.distributed import join_world

    if (recipe is None) == (resume is None):
        raise UserError("name a recipe, or a folder with --resume, and not both; --list names the recipes.")
    start: Start | None = None
    if resume is not None:
        _refuse_with_resume(corpus=corpus, out=out, base=base, seed=seed, set=overrides, columns=columns)
        folder = RunFolder(Path(resume).expanduser())
        start = read_start(folder)
        chosen = started_recipe(start)
    else:
        changes = {"corpus.path": corpus, "base": base, "seed": seed, "corpus.names": columns}
        given = [f"{name}={_as_yaml_value(value)}" for name, value in changes.items() if value is not None]
        chosen = read_recipe(str(recipe), [*overrides, *given])
        folder = RunFolder(RUNS / chosen.name if out is None else Path(out).expanduser())
    world, device = join_world(resolve_device(device))
    if chosen.precision == "fp16" and device == "cpu":
        raise UserError("precision fp16 needs a GPU: use --set precision=fp32.")
    leading = world.leads
    if start is None and leading:
        folder.require_free()
    watchers = list(listeners) if leading else []
    job = _Job(
        chosen, folder, start, [Path(path) for path in data_dirs], progress, notice if leading else lambda _: None
    )
    if not leading:
        return job.run(world, device, watchers)
    with folder.alone():
        if start is None:
            folder.require_free()
        if tensorboard:
            watchers.append(trackers.tensorboard(folder.path / "tensorboard", 0))
        if wandb:
            watchers.append(trackers.wandb(folder.path.name, chosen.model_dump(mode="json"), folder.path.name))
        try:
            return job.run(world, device, watchers)
        except KeyboardInterrupt as error:
            raise UserError(
                f"interrupted: `stsbench train --resume {folder.path}` goes on from the last save."
            ) from error


@dataclass
class _Job:
    """A training, from its folder to its result."""

    recipe: Recipe
    folder: RunFolder
    start: Start | None
    data_dirs: list[Path]
    progress: Progress
    notice: Notice

    def run(self, world: Any, device: str, listeners: Sequence[Listener]) -> Training:
        """Do what is left to do."""
        import torch

        from stsbench.training.base import find_base

        (dev,) = self._dev_set()
        base = find_base(self.recipe, device.partition(":")[0])
        for note in base.encoder.notes:
            self.notice(note)
        file = self._corpus()
        corpus_sha256 = sha256_of(file)
        now = Start(
            recipe=self.recipe.model_dump(mode="json"),
            corpus_sha256=corpus_sha256,
            base_sha256=str(base.encoder.identity.weights_sha256),
            tokenizer_sha256=str(base.encoder.identity.tokenizer_sha256),
            threads=threads(),
            world=world.size,
            command=command_line(sys.argv),
            environment=environment(),
        )
        if self.start is not None:
            self._hold_against(self.start, now)
        store = self._store(base, file, corpus_sha256, world)
        self.notice(f"corpus: {store.counts.told()}")
        with torch.random.fork_rng():
            best, steps = self._train(store, base, dev, world, device, listeners, now)
        if world.leads:
            record = self._publish(base, dev, best, steps, len(store), now)
        world.wait()
        if not world.leads:
            from stsbench.records import load_run

            record = load_run(self.folder.path)
        return Training(self.folder.path, self.recipe, best, steps, record)

    def _train(
        self,
        store: TokenStore,
        base: Any,
        dev: StsData,
        world: Any,
        device: str,
        listeners: Sequence[Listener],
        now: Start,
    ) -> tuple[Best, int]:
        """Take all steps that are left; return the best and the number of steps."""
        from stsbench.training.checkpoints import CheckpointWriter
        from stsbench.training.keeping import Keeper
        from stsbench.training.loop import Loop
        from stsbench.training.trainer import assemble

        trainer = assemble(self.recipe, store, base, world, device)
        settings = base.encoder.settings
        writer = CheckpointWriter(
            trainer.model, base.checkpoint, self.recipe, settings.max_length, settings.lower_case
        )
        keeper = Keeper(self.folder, writer, self.recipe.saving.keep)
        log = Log(self.folder.log if world.leads else None, listeners)
        done = 0
        if self.start is None:
            if world.leads:
                write_start(self.folder, now, self.recipe)
        else:
            done, size = keeper.resume(trainer, device)
            log.cut_back(size)
            self.notice(f"resumed after step {done} of {trainer.schedule.steps}.")
        encoder = LiveEncoder(base.encoder, trainer.evaluating, trainer.model)
        selector = Selector(encoder, dev, self.recipe.selection.geometry)
        Loop(self.recipe, trainer, selector, keeper, log, self.progress).run(done)
        # Only the leading process scores: the others learn what was selected from the log, if they ask.
        return keeper.best or Best(0, float("nan")), trainer.schedule.steps

    def _publish(self, base: Any, dev: StsData, best: Best, steps: int, rows: int, now: Start) -> RunRecord:
        """Put the best checkpoint in place, with its record, card and dev curve."""
        from stsbench.training.checkpoints import publish

        out = self.folder.path
        publish(self.folder.checkpoint(best.step), out)
        encoder = load(str(out), pooling=self.recipe.pooling if not self.recipe.head.evaluate else "auto")
        settings = Settings(use_cache=False, out=out, overwrite=True, command=now.command)
        record = measure_encoder(encoder, [dev], settings, Stages(self.progress))
        name = base.checkpoint.name
        public = self.recipe.model_copy(
            update={
                "base": MINILM if name == "minilm" else redact(name),
                "corpus": self.recipe.corpus.model_copy(update={"path": Path(self.recipe.corpus.path or "").name}),
            }
        )
        scores = [
            CardScore(
                task.task, task.split, task.score if task.score is not None else float("nan"), task.signature
            )
            for task in record.tasks
        ]
        card = model_card(
            public, out.resolve().name, scores, step=best.step, steps=steps, rows=rows, version=__version__
        )
        with atomic_path(out / "README.md") as path:
            path.write_text(card, encoding="utf-8")
        draw_dev_curve(read_log(self.folder.log), self.recipe, steps, out)
        write_start(self.folder, replace(self.start or now, finished=True), self.recipe)
        # There is nothing left to resume, and a state is several times the model.
        self.folder.state.unlink(missing_ok=True)
        return record

    def _dev_set(self) -> list[StsData]:
        from stsbench.evaluation.protocols import Protocol

        task = self.recipe.selection.task
        sets = read_data(task, protocol=Protocol(), data_dirs=self.data_dirs)
        if len(sets) != 1:
            raise UserError(f"selection.task {task!r} names {len(sets)} tasks: name one.")
        return sets

    def _corpus(self) -> Path:
        path = self.recipe.corpus.path
        if path is None:
            raise UserError("no corpus was named: use --corpus FILE.")
        file = corpus_file(path)
        if path != "sample":
            corpus = self.recipe.corpus.model_copy(update={"path": str(file.resolve())})
            self.recipe = self.recipe.model_copy(update={"corpus": corpus})
        return file

    def _store(self, base: Any, file: Path, corpus_sha256: str, world: Any) -> TokenStore:
        corpus, tokenizer = self.recipe.corpus, base.tokenizer
        if not world.leads:  # the first process builds what the others then find
            world.wait()
        store = open_store(
            cache_dir() / "tokens",
            {
                "corpus": corpus_sha256,
                "names": corpus.names,
                "columns": corpus.columns,
                "tokenizer": base.encoder.identity.tokenizer_sha256,
            },
            read_rows(file, corpus.columns, corpus.names),
            tokenizer,
            limit=corpus.max_length - tokenizer.special_tokens,
            lower_case=base.encoder.settings.lower_case,
            with_text=self.recipe.reads_text,
            progress=self.progress,
        )
        if world.leads:
            world.wait()
        return store

    def _hold_against(self, then: Start, now: Start) -> None:
        if then.finished:
            raise UserError(f"the training in {self.folder.path} is finished: its checkpoint is there.")
        for what, old, new in (
            ("corpus", then.corpus_sha256, now.corpus_sha256),
            ("base checkpoint", then.base_sha256, now.base_sha256),
            ("base's tokenizer", then.tokenizer_sha256, now.tokenizer_sha256),
        ):
            if old != new:
                raise UserError(
                    f"the {what} is another than the training started from: put it back, or start anew."
                )
        if then.world != now.world:
            raise UserError(f"the training started with {then.world} processes: resume it with as many.")
        if (then.threads, then.environment) != (now.threads, now.environment):
            self.notice(
                "threads or package versions are others than at the start: the weights may differ in the last digits "
                "from those of a training that was not stopped."
            )


def recipe_list() -> Any:
    """Return the recipes that come with stsbench, a row for each: `recipe`, `what`."""
    import pandas as pd

    return pd.DataFrame([{"recipe": name, "what": recipe_summary(name)} for name in recipe_names()])


def print_recipe(recipe: str, overrides: Sequence[str] = ()) -> str:
    """Return a recipe in full, as YAML."""
    return as_yaml(read_recipe(recipe, overrides))


def _refuse_with_resume(**given: Any) -> None:
    named = [f"--{name}" for name, value in given.items() if value]
    if named:
        raise UserError(f"{' and '.join(named)}: not with --resume, which goes on as the training began.")


def _as_yaml_value(value: Any) -> str:
    import json

    return json.dumps([str(v) for v in value] if isinstance(value, list | tuple) else value, default=str)
