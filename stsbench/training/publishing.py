"""The end of a training: its best checkpoint published, with record, card and dev curve."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stsbench._version import __version__
from stsbench.base.files import atomic_path
from stsbench.base.words import listed
from stsbench.encoders.checkpoint import MINILM, PACKAGED
from stsbench.encoders.load import load
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.published.catalogue import known_checkpoint
from stsbench.records.export import model_card
from stsbench.records.parts import HeadScore
from stsbench.records.provenance import redact
from stsbench.records.record import RunRecord
from stsbench.records.store import save_run
from stsbench.render.figures import save_figure
from stsbench.scoring.kinds.sts import StsPairs
from stsbench.scoring.measure import measure_encoder
from stsbench.scoring.settings import Settings, Stages
from stsbench.training.folder import write_start
from stsbench.training.job import Job
from stsbench.training.log import log_frame, read_log
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import as_yaml
from stsbench.training.result import draw_dev_curve
from stsbench.training.selection import Best, best_of

_SELECTED = "The checkpoint was selected by this score, which therefore does not measure it on other data."


def publish(job: Job, steps: int) -> None:
    """Publish the best checkpoint of a training that has taken all its steps, with its record on the dev set.

    Killed in between, it is done again when the training is resumed.
    """
    from stsbench.training.checkpoints import copy_checkpoint

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
    # There is nothing left to resume, and a state is several times the model.
    folder.state.unlink(missing_ok=True)


def _measure(job: Job, log: Sequence[dict[str, Any]], best: Best) -> RunRecord:
    """Measure the published checkpoint on the dev set as a person would: it says itself how it is pooled."""
    checkpoint = job.folder.path
    encoder = load(str(checkpoint), device=job.around.device.partition(":")[0])
    assert isinstance(encoder, TransformerEncoder)  # it was written as one
    encoder.notes = (*encoder.notes, *job.findings)
    settings = Settings(use_cache=False, command=job.start.command)
    record = measure_encoder(encoder, [StsPairs(job.dev)], settings, Stages(job.around.progress))
    heads = _heads(job, log, best)
    return save_run(record.model_copy(update={"heads": heads}), checkpoint, overwrite=True)


def _heads(job: Job, log: Sequence[dict[str, Any]], best: Best) -> tuple[HeadScore, ...]:
    """Return what the heads of the tasks reached at the step that was selected."""
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
    recipe, head, scored = _public_recipe(job), job.recipe.head, job.recipe.scored_heads
    behind = f"behind the {scored[-1]}" if scored else "before the head"
    about_head = "" if head.kind == "none" and not scored else f" ({head.kind}, in training; vectors are {behind})"
    return model_card(
        job.folder.path.resolve().name,
        # The command may name the person's folders.
        [record.model_copy(update={"command": ""})],
        base_model=recipe.base,
        library="sentence-transformers",
        about=[
            f"A sentence encoder: `{recipe.base}` trained with stsbench {__version__} by the recipe "
            f"`{recipe.name}` on {len(job.store):,} rows of text. The checkpoint is that of step {best.step} "
            f"of {steps}, the best on {recipe.selection.task}.",
            f"Pooling: `{recipe.pooling}`{about_head}. Read it with `SentenceTransformer(folder)`, "
            "`AutoModel`, or `stsbench run --model folder`.",
            *map(_as_sentence, job.corpus_findings),
            *_about_tasks(job, record),
        ],
        after_scores=" ".join([_SELECTED, *job.test_remarks]),
        recipe=as_yaml(recipe),
    )


def _about_tasks(job: Job, record: RunRecord) -> list[str]:
    if not record.heads:
        return []
    reached = [
        f"{head.task} {head.measure} {'undefined' if head.score is None else f'{100 * head.score:.2f}'}"
        for head in record.heads
    ]
    tables = " ".join(_as_sentence(task.sentence()) for task in job.tasks)
    return [f"Heads trained with it, which are not in the checkpoint: on dev, {listed(reached)}. {tables}"]


def _as_sentence(finding: str) -> str:
    return finding[0].upper() + finding[1:]


def _public_recipe(job: Job) -> Recipe:
    """Return the recipe without the name of any folder of the person's."""
    recipe = job.recipe
    path = None if recipe.corpus.path is None else _file_name(recipe.corpus.path)
    return recipe.model_copy(
        update={
            "base": _public_name(recipe.base, job.start.base_sha256),
            "corpus": recipe.corpus.model_copy(update={"path": path}),
            "views": recipe.views.with_paths(_own_name),
            "tasks": {name: part.with_paths(_file_name) for name, part in recipe.tasks.items()},
        }
    )


def _own_name(name: str) -> str:
    """Return the last part of a path; a name of the Hub stays."""
    return _file_name(name) if Path(name).expanduser().exists() else redact(name)


def _public_name(base: str, weights_sha256: str) -> str:
    """Return what others know a base by: of a folder its name on the Hub if the weights say it, else its own."""
    if base == PACKAGED:
        return MINILM
    folder = Path(base).expanduser()
    if not folder.is_dir():
        return redact(base)
    folder = folder.resolve()
    known = known_checkpoint(folder.name, weights_sha256=weights_sha256)
    if known is not None and known.weights_sha256 == weights_sha256:
        return known.hub or known.name
    # The Hub's own cache names a folder by the commit, below one that is named by the model.
    of_cache = [part.removeprefix("models--") for part in folder.parts if part.startswith("models--")]
    return of_cache[-1].replace("--", "/") if of_cache else folder.name


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
