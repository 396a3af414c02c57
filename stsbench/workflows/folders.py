"""Where a run is kept if the person does not say."""

import hashlib
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from stsbench.datasets import StsData
from stsbench.encoders import Identity
from stsbench.evaluation.protocols import Protocol
from stsbench.evaluation.relatedness import Supervised
from stsbench.evaluation.tasks import GROUPS, SUPERVISED, TaskData
from stsbench.records.store import held_by
from stsbench.workflows.recording import Recording
from stsbench.workflows.settings import Classification, Settings

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
