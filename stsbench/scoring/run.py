"""The steps of `stsbench run`: choose models and folders, then measure a model."""

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.data.views import split_and_view
from stsbench.encoders.checkpoint import PACKAGED, packaged_model
from stsbench.encoders.load import load_with
from stsbench.encoders.protocol import Encoder, Identity
from stsbench.encoders.simple import SavedVectors
from stsbench.encoders.use import Use, name_parts
from stsbench.records.kinds import KINDS
from stsbench.records.labels import NOT_PATHS
from stsbench.records.parts import redact
from stsbench.records.record import RunRecord
from stsbench.records.store import held_by, load_run
from stsbench.scoring.measure import Recording, SavedBesideError, measure_encoder
from stsbench.scoring.settings import Classification, Protocol, Settings, Stages
from stsbench.scoring.task import Task
from stsbench.scoring.tasks import GROUPS

RUNS = Path("runs")
"""The folder of records without `--out`."""


@dataclass(frozen=True)
class LazyModel:
    """A model to measure, loaded when its turn comes."""

    name: str
    load: Callable[[], Encoder]


def choose_models(
    use: Use,
    *,
    models: Sequence[str] = (),
    functions: Sequence[str] = (),
    vectors: Path | None = None,
    sentences: Path | None = None,
) -> list[LazyModel]:
    """Returns the models to measure, without duplicates; the packaged model if none is named.

    Args:
        use: how they are used.
        models: Hub names, folders, `minilm`, published systems (such as `esimcse-bert-base`), files of word
            vectors, `mteb:NAME`, `module:function` or servers' addresses (`http://127.0.0.1:8000/v1#NAME`).
        functions: your own functions `list[str] -> array`: `mymodel:encode`.
        vectors: saved vectors, a .npy matrix, with `sentences`.
        sentences: the sentences of `vectors`, one per line.
    """
    if (vectors is None) != (sentences is None):
        raise UserError("--vectors needs --sentences and vice versa: the matrix, and the sentence of each row.")
    for name in functions:
        if ":" not in name:
            raise UserError(f"--encoder-module {name}: expected MODULE:FUNCTION, such as mymodel:encode.")

    def by_name(name: str) -> LazyModel:
        return LazyModel(redact(name), lambda: load_with(name, use))

    chosen = [by_name(name) for name in dict.fromkeys([*models, *functions])]
    if vectors is not None and sentences is not None:
        saved = SavedVectors(vectors, sentences, use)
        chosen.append(LazyModel(str(vectors), lambda: saved))
    if not chosen:
        if packaged_model() is None:
            raise UserError("no model was named: use --model NAME, or first pip install 'stsbench[minilm]'.")
        chosen.append(by_name(PACKAGED))
    return chosen


def measure(
    encoder: Encoder, tasks: Sequence[Task], settings: Settings, stages: Stages, taken: Collection[Path] = ()
) -> RunRecord:
    """Measures and records an encoder; without `settings.out` in the folder from `choose_folder`."""
    if settings.out is not None:
        return measure_encoder(encoder, tasks, settings, stages)
    folder = choose_folder(encoder, tasks, settings, taken)
    try:
        return measure_encoder(encoder, tasks, replace(settings, out=folder), stages)
    except SavedBesideError as error:
        return error.record  # The folder was our choice, so another one is as good.


def choose_folder(
    encoder: Encoder, tasks: Sequence[Task], settings: Settings, taken: Collection[Path] = ()
) -> Path:
    """Returns a folder named after the model, its use and the tasks.

    The same measurement always gets the same folder. If a different measurement has that folder, or this command
    has just written it, its maximum length follows the name if that differs, else digits of its hash.
    """
    folder = RUNS / run_name(encoder.identity, tasks, settings)
    measurement = Recording.of(tasks, encoder.identity, settings, encoder).measurement
    held = None if settings.overwrite else held_by(folder, measurement)
    if folder not in taken and held is None:
        return folder
    length = encoder.identity.use.max_length
    longer = folder.with_name(f"{folder.name}-len{length}")
    with suppress(UserError):
        differs = load_run(folder).model.use.max_length != length
        if differs and longer not in taken and held_by(longer, measurement) is None:
            return longer
    return folder.with_name(f"{folder.name}-{measurement.digits}")


def run_name(identity: Identity, tasks: Sequence[Task], settings: Settings) -> str:
    """Returns the name of a run: model, pooling, tasks, and every choice that is not the default."""
    default, protocol, how, usual = Protocol(), settings.protocol, settings.classification, Classification()
    use = name_parts(identity.use)
    choices = ("name", "aggregation", "metric", "similarity", "text")
    views = [split_and_view(task.pairs.split)[1] for task in tasks if task.pairs is not None]
    parts = [
        # Resolved, because `.` has a name, too.
        Path(identity.name).expanduser().resolve().name if identity.kind not in NOT_PATHS else identity.name,
        *(use.pop(name) for name in ("pooling", "template") if name in use),
        _tasks_in_name(tasks),
        *dict.fromkeys(filter(None, views)),
        *(getattr(protocol, name) for name in choices if getattr(protocol, name) != getattr(default, name)),
        *use.values(),
        *([] if how.classifier == usual.classifier else [how.classifier]),
        *([] if how.kfold == usual.kfold else [f"kfold{how.kfold}"]),
        *([] if how.seed == usual.seed else [f"seed{how.seed}"]),
    ]
    # File names are limited to 255 bytes; digits may follow.
    name = re.sub(r"[^\w.-]+", "_", "-".join(parts)).strip("_.-").encode()[:200].decode(errors="ignore")
    return name or "run"


def _tasks_in_name(tasks: Sequence[Task]) -> str:
    names = []
    for task in tasks:
        split = "" if task.pairs is None else split_and_view(task.pairs.split)[0]
        suffix = KINDS[task.kind].suffix.replace(":", "-")
        names.append(task.data.task + suffix + (f"-{split}" if split not in {"", "test", "all"} else ""))
    for group, members in GROUPS.items():
        if names == [member.replace(":", "-") for member in members]:
            return group
    return "_".join(names)
