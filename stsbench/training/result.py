"""What a training leaves: the best checkpoint in its place, with its record, its card and the dev curve."""

import math
from dataclasses import replace

from stsbench._version import __version__
from stsbench.base.files import atomic_path
from stsbench.encoders.checkpoint import MINILM
from stsbench.encoders.load import load_checkpoint as load
from stsbench.records.provenance import redact
from stsbench.scoring.measure import measure_encoder
from stsbench.scoring.settings import Settings, Stages
from stsbench.training.card import CardScore, model_card
from stsbench.training.dev_curve import draw_dev_curve
from stsbench.training.job import Job
from stsbench.training.log import read_log
from stsbench.training.recipe import Recipe
from stsbench.training.selection import best_of
from stsbench.training.state import write_start


def publish_result(job: Job, steps: int) -> None:
    """Publish the best checkpoint of a training that has taken all its steps, with its record on the dev set.

    Killed in between, it is done again when the training is resumed.
    """
    from stsbench.training.checkpoints import publish

    out, log = job.folder.path, read_log(job.folder.log)
    best = best_of(log)
    publish(job.folder.checkpoint(best.step), out)
    # As a person would load it: the checkpoint says itself how it is pooled.
    settings = Settings(use_cache=False, out=out, overwrite=True, command=job.start.command)
    record = measure_encoder(
        load(str(out), device=job.device.partition(":")[0]), [job.dev], settings, Stages(job.progress)
    )
    (task,) = record.tasks
    score = CardScore(task.task, task.split, math.nan if task.score is None else task.score, task.signature)
    card = model_card(
        _public(job.recipe),
        out.resolve().name,
        [score],
        step=best.step,
        steps=steps,
        rows=len(job.store),
        version=__version__,
    )
    with atomic_path(out / "README.md") as path:
        path.write_text(card, encoding="utf-8")
    draw_dev_curve(log, job.recipe, steps, out)
    write_start(job.folder, replace(job.start, finished=True), job.recipe)
    # There is nothing left to resume, and a state is several times the model.
    job.folder.state.unlink(missing_ok=True)


def _public(recipe: Recipe) -> Recipe:
    """Return a recipe that names no folder of the person's."""
    path = recipe.corpus.path
    name = None if path is None else path.replace("\\", "/").rpartition("/")[2]
    return recipe.model_copy(
        update={
            "base": MINILM if recipe.base == "minilm" else redact(recipe.base),
            "corpus": recipe.corpus.model_copy(update={"path": name}),
        }
    )
