"""What tasks and models are called in tables and messages: as short as tells them apart."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from stsbench.encoders.use import names
from stsbench.records.provenance import redact
from stsbench.render.cells import told_apart

if TYPE_CHECKING:
    from stsbench.records.parts import ModelPart, RunFields, ScoredPart

AVERAGE = "Avg."
TRANSFER_AVERAGE = "Avg. transfer"
ALL_TASKS = "all tasks"
"""What the mean over tasks, and all of their pairs together, are called where tasks are: no task is."""

# In what records of one model may differ, most telling first.
_TELLING = (*(f"use.{name}" for name in names("encoding", "afterwards")), "fitted", "weights_sha256")


def task_labels(parts: "Sequence[ScoredPart]") -> list[str]:
    """Return a name for each scored task: its own, with split and text only where those tell two apart."""
    return distinct_labels([_key(part) for part in parts])


def distinct_labels(keys: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return a name for each (task, split, text): of several splits or texts of one task, it says which.

    No two read alike, nor like what averages are called: a number follows where a task has such a name.

    >>> distinct_labels([("STS-B", "test", "senteval"), ("STS-B", "dev", "senteval"), ("STS16", "test", "raw")])
    ['STS-B:test', 'STS-B:dev', 'STS16']
    """
    splits, texts = defaultdict(set), defaultdict(set)
    for task, split, text in keys:
        splits[task].add(split)
        texts[task].add(text)
    distinct = list(dict.fromkeys(keys))
    names = [
        task + (f":{split}" if len(splits[task]) > 1 else "") + (f"@{text}" if len(texts[task]) > 1 else "")
        for task, split, text in distinct
    ]
    called = dict(zip(distinct, told_apart(names, (AVERAGE, TRANSFER_AVERAGE, ALL_TASKS)), strict=True))
    return [called[key] for key in keys]


def labels(records: "Sequence[RunFields]") -> list[str]:
    """Return a name for each record's model, as short as it can be and tell it from the others.

    That is the model's own name: of a path without folders, of a function of a script or a notebook without
    `__main__`. Where several have the same, what they differ in follows, or else the record's folder; a number
    where it has none.
    """
    return model_labels([record.model for record in records], [record.folder for record in records])


def model_labels(models: "Sequence[ModelPart]", folders: Sequence[Path | None] = ()) -> list[str]:
    """Return a name for each model as `labels` does.

    Args:
        models: what was measured, or is to be.
        folders: of their records, None for a model without one; by default none has one.
    """
    folders = folders or [None] * len(models)
    called = list(map(_model_name, models))
    namesakes = defaultdict(list)
    for model, name in zip(models, called, strict=True):
        namesakes[name].append(model)
    differing_of = {
        name: [field for field in _TELLING if len({attrgetter(field)(model) for model in alike}) > 1]
        for name, alike in namesakes.items()
    }
    chosen = []
    for model, name in zip(models, called, strict=True):
        differing = differing_of[name]
        # A choice that was not made (no dimensions left out, no prompt) goes without saying.
        values = {field: attrgetter(field)(model) for field in differing}
        choices = ", ".join(
            f"{field.removeprefix('use.')} {str(value)[:20]}"
            for field, value in values.items()
            if value not in {None, ""}
        )
        chosen.append(f"{name} ({choices})" if choices else name)
    places = [str(number) if folder is None else folder.name for number, folder in enumerate(folders, 1)]
    in_full = [
        place if folder is None else redact(str(folder)) for place, folder in zip(places, folders, strict=True)
    ]
    for candidates in (places, in_full, [str(number) for number, _ in enumerate(models, 1)]):
        several = [f"{label} ({place})" for label, place in zip(chosen, candidates, strict=True)]
        if len(set(several)) == len(several):
            break
    times = Counter(chosen)
    found = [distinct if times[label] > 1 else label for label, distinct in zip(chosen, several, strict=True)]
    # A model may be called what another was labelled.
    return told_apart(found)


def _key(part: "ScoredPart") -> tuple[str, str, str]:
    # What a record is made of imports NumPy, which the help of an analysis does without.
    from stsbench.records.parts import SupervisedPart, TaskPart

    if isinstance(part, SupervisedPart):
        return f"{part.task}:supervised", "", part.text
    return part.task, part.split if isinstance(part, TaskPart) else "", part.text


_NOT_PATHS = {"function", "vectors", "similarities", "predictions"}
"""The kinds of models whose name is no place on a disk."""


def _model_name(model: "ModelPart") -> str:
    is_path = model.kind not in _NOT_PATHS and model.name.startswith(("/", "~", "."))
    # A function of a script or a notebook is known by its own name.
    return PurePath(model.name).name or model.name if is_path else model.name.removeprefix("__main__:")
