"""`train`: from a recipe and a corpus to a checkpoint with its record, card and dev curve; resumable.

Mistakes are reported before anything begins: recipe, folder, corpus, dev set, base. At the end the best checkpoint
is measured on the dev set like any other.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from stsbench._version import __version__
from stsbench.base.errors import MODELS, InterruptError, UserError, by_interrupt, require
from stsbench.base.files import atomic_path
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed
from stsbench.encoders.backends import resolve_device
from stsbench.encoders.checkpoint import MINILM, PACKAGED
from stsbench.encoders.load import load
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.published.catalogue import logged_dev_scores, logged_systems
from stsbench.records.export import model_card
from stsbench.records.parts import HeadScore, redact
from stsbench.records.record import RunRecord
from stsbench.records.store import load_run, save_run
from stsbench.render.charts import line
from stsbench.render.figures import colours, new_figure, save_figure, style
from stsbench.render.table import Result, Table, Tables
from stsbench.scoring.kinds.sts import StsPairs
from stsbench.scoring.measure import measure_encoder
from stsbench.scoring.run import RUNS
from stsbench.scoring.settings import Settings, Stages
from stsbench.training.folder import RunFolder, copy_checkpoint, read_start, write_start
from stsbench.training.job import Job, Surroundings, prepare
from stsbench.training.log import Best, Listener, best_of, log_frame, percent, read_log
from stsbench.training.recipe import Recipe, as_yaml, file_places, read_recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANEL, _MARGIN = 1.9, 0.5  # inches


@dataclass(frozen=True)
class Training(Result):
    """A finished training.

    Attributes:
        folder: holds the checkpoint, `run.json`, `log.jsonl`, `recipe.yaml` and the dev curve.
        recipe: in full.
        best: the step that was selected and its dev score.
        steps: taken.
        record: of the checkpoint on the dev set.
        log: its lines, as in `log.jsonl`.
        leads: whether this is the first of several processes, which reports the result.
    """

    folder: Path
    recipe: Recipe
    best: Best
    steps: int
    record: RunRecord
    log: Sequence[dict[str, Any]] = field(default=(), repr=False)
    leads: bool = True

    @property
    def frame(self) -> pd.DataFrame:
        """The losses and dev scores, a row for each line of the log; see `log_frame`."""
        return log_frame(self.log)

    def table(self) -> Tables:
        """Returns a row with the dev score before and of the best checkpoint, and the last loss."""
        losses = [line["loss"] for line in self.log if "loss" in line]
        before = next((line["dev"] for line in self.log if "dev" in line), None)
        kept = self.record.scores[0].value
        row: dict[str, Any] = {
            "Recipe": self.recipe.name,
            "Selected on": self.recipe.selection.task,
            "Dev before × 100": None if before is None else 100 * before,
            "Best dev × 100": None if kept is None else 100 * kept,
            "At step": self.best.step,
            "Steps": self.steps,
            "Last loss": f"{losses[-1]:.4g}" if losses else None,
        }
        for head in self.record.heads:
            row[f"{head.task} {head.measure} × 100"] = None if head.score is None else 100 * head.score
        remarks = tuple(str(line["remark"]) for line in self.log if "remark" in line)
        caption = f"Training {self.folder.resolve().name}"
        return Tables([Table(pd.DataFrame([row]), caption, name="training", notes=remarks)])

    def plot(self) -> "Figure":
        """Draws the dev curve next to a published one."""
        return draw_dev_curve(self.frame, self.recipe, self.steps)

    def to_dict(self) -> Any:
        """Returns the record as plain data, with the training under `training`."""
        best = {"step": self.best.step, "dev": self.record.scores[0].value}
        training = {
            "folder": str(self.folder),
            "steps": self.steps,
            "best": best,
            "heads": {head.task: {head.measure: head.score} for head in self.record.heads},
            "recipe": self.recipe.model_dump(mode="json"),
            "log": list(self.log),
        }
        return {**json.loads(self.record.model_dump_json()), "training": training}


def draw_dev_curve(log: pd.DataFrame, recipe: Recipe, steps: int) -> "Figure":
    curve, system = log.dropna(subset=["dev"]), recipe.name.removesuffix("-released")
    rows = 1 + bool(recipe.tasks)
    with style():
        figure = new_figure(_MARGIN + _PANEL * rows)
        axes, *more = figure.subplots(rows, 1, squeeze=False, sharex=True)[:, 0]
        ours, authors = colours(["ours", "authors"]).values()
        share, score = (100 * curve["step"] / steps).to_numpy(), (100 * curve["dev"]).to_numpy()
        line(axes, f"{recipe.name}, {steps} steps", share, score, ours, marker=".", markersize=3)
        if recipe.selection.task == "STS-B:dev" and system in logged_systems():
            scores = logged_dev_scores(system)
            label = f"{system}, the authors' log, best {100 * scores['STS-B'].max():.2f}"
            its_share = 100 * scores["step"] / scores["step"].max()
            line(axes, label, its_share, 100 * scores["STS-B"], authors, linewidth=0.8)
        axes.set_ylabel(f"Spearman × 100, {recipe.selection.task}")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1))
        for below in more:
            for name, colour in colours(list(recipe.tasks)).items():
                column = f"{name} {recipe.tasks[name].measure}"
                line(below, column, share, 100 * curve[column], colour, marker=".", markersize=3)
            below.set_ylabel("heads on their dev sets × 100")
            below.legend(loc="lower left", bbox_to_anchor=(0, 1))
        figure.axes[-1].set_xlabel("share of the training (%)")
    return figure


def train(
    recipe: str | Path | None = None,
    corpus: str | Path | None = None,
    out: str | Path | None = None,
    *,
    base: str | Path | None = None,
    seed: int | None = None,
    overrides: Mapping[str, Any] | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    resume: str | Path | None = None,
    device: str = "auto",
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
    listeners: Sequence[Listener] = (),
    notice: Callable[[str], None] = lambda _: None,
    command: str = "",
) -> Training:
    """Trains a sentence encoder by a recipe, or resumes a stopped training.

    Processes started by `torchrun` or `accelerate launch` share the work; the first one scores and saves.

    Args:
        recipe: the name of a known recipe, or a YAML file.
        corpus: text (one sentence per line), .csv, .tsv, .jsonl or .parquet, .gz and .zst too; by default the
            recipe's.
        out: the folder of the training; by default `runs/<recipe>`.
        base: the checkpoint to start from; by default the recipe's.
        seed: the seed of everything random; by default the recipe's.
        overrides: changes to the recipe: `{"optimiser.batch": 32}`, or `["optimiser.batch=32"]`.
        columns: names of the corpus columns to read, in order; by default all.
        resume: resume the training in this folder, instead of all of the above, with bit-identical weights.
        device: `auto`, `cpu`, `cuda` or `mps`.
        data_dirs: folders to look for the dev set in, before `STSBENCH_DATA` and the cache.
        progress: called with the progress.
        listeners: called with each line of the log, such as `run.log` of an experiment tracker.
        notice: called with each notice.
        command: the command line, for the record.

    Returns:
        The training; its `folder` is a checkpoint, `record` its record on the dev set, `plot()` its dev curve.

    Raises:
        UserError: for a mistake, in one sentence; nothing is overwritten.
    """
    require(MODELS, "training")
    from stsbench.training.distributed import join_world

    if (recipe is None) == (resume is None):
        raise UserError("name a recipe, or a folder with --resume, and not both; --list names the recipes.")
    if resume is not None:
        _refuse_with_resume(corpus=corpus, out=out, base=base, seed=seed, set=overrides, columns=columns)
        folder = RunFolder(Path(resume).expanduser())
        began = read_start(folder)
        if folder.is_finished:
            raise UserError(f"the training in {folder.path} is finished.")
        chosen = Recipe.model_validate(began.recipe)
    else:
        began = None
        options = {
            "corpus.path": None if corpus is None else str(corpus),
            "base": None if base is None else str(base),
            "seed": seed,
            "corpus.names": columns,
        }
        given = {key: value for key, value in options.items() if value is not None}
        chosen = read_recipe(str(recipe), overrides, given)
        folder = RunFolder(RUNS / chosen.name if out is None else Path(out).expanduser())
    device = resolve_device(device)
    if chosen.precision == "fp16" and device == "cpu":
        raise UserError("precision fp16 needs a GPU: use --set precision=fp32.")
    world, device = join_world(device)
    if not world.leads:
        progress, listeners, notice = silent, (), lambda _: None
    begins = began is None and world.leads
    if begins:
        folder.require_free()  # before reading anything, and again under the lock
    job = prepare(chosen, folder, began, Surroundings(world, device, data_dirs, progress, notice, command))
    with folder.alone() if world.leads else nullcontext():
        if begins:
            folder.require_free()
        with _interrupt_names_resume(folder):
            steps = job.run(listeners)
            if world.leads:
                _publish(job, steps)
        world.wait()
    world.leave()
    log = read_log(folder.log)
    return Training(folder.path, job.recipe, best_of(log), steps, load_run(folder.path), log, world.leads)


@contextmanager
def _interrupt_names_resume(folder: RunFolder) -> Iterator[None]:
    """Names the command that resumes, because the original command does not continue a training that has begun."""
    try:
        yield
    except BaseException as error:
        if not (by_interrupt(error) and folder.start.is_file()):
            raise
        place = "the last save" if folder.state.is_file() else "its first step"
        raise InterruptError(
            f"interrupted: `stsbench train --resume {folder.path}` resumes from {place}."
        ) from error


def _refuse_with_resume(**given: Any) -> None:
    named = [f"--{name}" for name, value in given.items() if value not in (None, (), [], {})]
    if named:
        raise UserError(f"{' and '.join(named)}: not with --resume, which keeps the settings of the training.")


def _publish(job: Job, steps: int) -> None:
    """Publishes the best checkpoint with its record on the dev set; if it is killed, resuming does it again."""
    folder, log = job.folder, read_log(job.folder.log)
    best = best_of(log)
    copy_checkpoint(folder.checkpoint(best.step), folder.path)
    record = _measure(job, log, best)
    with atomic_path(folder.card) as path:
        path.write_text(_card(job, record, best, steps), encoding="utf-8")
    figure = draw_dev_curve(log_frame(log), job.recipe, steps)
    for path in (folder.curve, folder.curve.with_suffix(".svg")):
        save_figure(figure, path)
    write_start(folder, replace(job.start, finished=True), job.recipe)
    folder.state.unlink(missing_ok=True)


def _measure(job: Job, log: Sequence[dict[str, Any]], best: Best) -> RunRecord:
    checkpoint = job.folder.path
    encoder = load(str(checkpoint), device=job.around.device.partition(":")[0])
    assert isinstance(encoder, TransformerEncoder)  # it was written as one
    encoder.notes = (*encoder.notes, *job.findings)
    settings = Settings(use_cache=False, command=job.start.command)
    record = measure_encoder(encoder, [StsPairs(job.dev)], settings, Stages(job.around.progress))
    heads = _heads(job, log, best)
    return save_run(record.model_copy(update={"heads": heads}), checkpoint, overwrite=True)


def _heads(job: Job, log: Sequence[dict[str, Any]], best: Best) -> tuple[HeadScore, ...]:
    at_best = (line["tasks"] for line in log if line["step"] == best.step and "tasks" in line)
    scores: dict[str, Any] = next(at_best, {})
    return tuple(
        HeadScore(
            task=task.name,
            kind=task.part.kind,
            measure=task.part.measure,
            score=scores[task.name][task.part.measure],
            ntrain=len(task.train),
            ndev=len(task.dev),
        )
        for task in job.tasks
    )


def _card(job: Job, record: RunRecord, best: Best, steps: int) -> str:
    recipe, head = _public_recipe(job), job.recipe.head
    where = "after the head" if head.evaluate else "before the head"
    about_head = "" if head.kind == "none" else f" ({head.kind}, in training; vectors are {where})"
    return model_card(
        job.folder.path.resolve().name,
        # The command may name folders of the user.
        [record.model_copy(update={"command": ""})],
        base_model=recipe.base,
        library="sentence-transformers",
        about=[
            f"A sentence encoder: `{recipe.base}` trained with stsbench {__version__} by the recipe "
            f"`{recipe.name}` on {len(job.store):,} rows of text. The checkpoint is that of step {best.step} "
            f"of {steps}, the best on {recipe.selection.task}.",
            f"Pooling: `{recipe.pooling}`{about_head}. Read it with `SentenceTransformer(folder)`, "
            "`AutoModel`, or `stsbench run --model folder`.",
            *(finding[0].upper() + finding[1:] for finding in job.corpus_findings),
            *_about_tasks(job, record),
        ],
        after_scores=" ".join(
            [
                "The checkpoint was selected by this score, which therefore does not measure it on other data.",
                *job.test_remarks,
            ]
        ),
        recipe=as_yaml(recipe),
    )


def _about_tasks(job: Job, record: RunRecord) -> list[str]:
    if not record.heads:
        return []
    reached = [f"{head.task} {head.measure} {percent(head.score)}" for head in record.heads]
    tables = " ".join(task.finding[0].upper() + task.finding[1:] for task in job.tasks)
    return [f"Heads trained with it, which are not in the checkpoint: on dev, {listed(reached)}. {tables}"]


def _public_recipe(job: Job) -> Recipe:
    values = job.recipe.model_dump()
    base = Path(job.recipe.base).expanduser()
    is_packaged = job.recipe.base == PACKAGED
    values["base"] = MINILM if is_packaged else base.resolve().name if base.is_dir() else redact(str(base))
    for part, key in file_places(values):
        is_name = key == "model" and not Path(part[key]).expanduser().exists()
        part[key] = redact(part[key]) if is_name else part[key].replace("\\", "/").rpartition("/")[2]
    return Recipe.model_validate(values)
