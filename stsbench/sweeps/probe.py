"""A few steps of a training, timed: what a forecast is made from."""

import time
from dataclasses import asdict, dataclass

import yaml

from stsbench.base.files import cache_at
from stsbench.sweeps.folder import ExperimentFolder, write_json
from stsbench.sweeps.measuring import log_line, read_tasks

PROBE = "probe-"
"""Before a unit: take a few of its steps, and write into `PROBED` how long they took."""

PROBED = "probe.json"

_IMPORT_SECONDS = 5.0
_RECORD_BYTES, _PAIR_BYTES = 100_000, 30
"""What a forecast takes for: loading torch; a record, and each of its sentences."""


@dataclass(frozen=True)
class Probed:
    """What a training would take.

    Attributes:
        rows: of its corpus.
        seconds_per_row: of its training.
        dev_seconds: of a score on its development set.
        start_seconds: until its first step.
        measuring_seconds: of measuring its checkpoint on the tasks.
        record_bytes: of its record.
        weight_bytes: of its checkpoint.
    """

    rows: int
    seconds_per_row: float
    dev_seconds: float
    start_seconds: float
    measuring_seconds: float
    record_bytes: int
    weight_bytes: int


def probe(folder: ExperimentFolder, unit: str) -> None:
    """Take three steps of a training, and write down what all of it would take.

    Raises:
        UserError: if it cannot be trained.
    """
    import torch

    from stsbench.data.corpus import corpus_file, read_rows
    from stsbench.training.log import read_log
    from stsbench.training.recipe import Recipe
    from stsbench.training.train import train

    start = time.perf_counter()
    job = next(job for job in folder.job_list().jobs if job.unit == unit)
    torch.set_num_threads(job.threads)
    recipe = Recipe.model_validate(job.recipe)
    changes = {
        "corpus.rows": 3 * recipe.optimiser.batch * recipe.optimiser.accumulate,
        "optimiser.epochs": 1,
        "selection.every": 10**9,
        "saving.every": 10**9,
        "log_every": 1,
    }
    file = folder.path / "probe.yaml"
    file.write_text(yaml.safe_dump(dict(job.recipe or {}), sort_keys=False), encoding="utf-8")
    with cache_at(folder.cache):
        overrides = [f"{key}={value}" for key, value in changes.items()]
        training = train(file, out=folder.work(unit), overrides=overrides, notice=log_line)
    log = read_log(training.folder / "log.jsonl")
    steps = [line["time"]["seconds"] for line in log if line["kind"] == "train"]
    scores = [line["time"]["seconds"] for line in log if line["kind"] == "dev"]
    dev, measured = (
        sum(len(set(task.sentences())) for task in tasks)
        for tasks in (read_tasks(job, recipe.selection.task), read_tasks(job))
    )
    corpus = corpus_file(str(recipe.corpus.path))
    # The first step warms up, and so does the first score.
    later = steps[1:] or steps
    probed = Probed(
        rows=sum(1 for _ in read_rows(corpus, recipe.corpus.columns, recipe.corpus.names)),
        seconds_per_row=sum(later) / len(later) / recipe.optimiser.batch / recipe.optimiser.accumulate,
        dev_seconds=scores[-1],
        start_seconds=time.perf_counter() - start - sum(steps) - sum(scores) + _IMPORT_SECONDS,
        measuring_seconds=scores[-1] * measured / dev,
        record_bytes=_RECORD_BYTES + _PAIR_BYTES * measured,
        weight_bytes=sum(path.stat().st_size for path in training.folder.glob("*.safetensors")),
    )
    write_json(folder.path / PROBED, asdict(probed))
