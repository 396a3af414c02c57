"""Short, distinct labels of tasks and models, and the description of intervals."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from stsbench.data.catalogue import data_set, is_task
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.use import names, shown
from stsbench.records.kinds import ALL_TASKS, AVERAGES, BESIDE_TASKS
from stsbench.records.parts import ModelPart, NoInterval, ProtocolPart, Score, redact
from stsbench.render.formats import unique_labels
from stsbench.statistics import Dependence

if TYPE_CHECKING:
    from stsbench.records.record import RunRecord

_TELLING = (*(f"use.{name}" for name in names("encoding", "place", "afterwards")), "fitted", "weights_sha256")
"""The fields in which records of one model may differ, the most informative first."""

_SHOWN = 20
"""The most characters of a value in a label."""

NOT_PATHS = {"function", "vectors", "similarities", "predictions"}
"""The kinds of models whose name is not a path."""


def task_labels(scores: Sequence[Score]) -> list[str]:
    """Returns a name for each scored task; see `distinct_labels`."""
    # Trained tasks have a single split.
    return distinct_labels(
        [(score.task + score.about.suffix, "" if score.training else score.split, score.text) for score in scores]
    )


def distinct_labels(keys: Sequence[tuple[str, str, str]]) -> list[str]:
    """Returns a unique name for each (task, split, text); names of averages and other columns are not used.

    A split is added if papers report another one, or if a task has several. A text is added if a task has several.

    >>> distinct_labels([("STS-B", "test", "senteval"), ("STS-B", "dev", "senteval"), ("STS16", "test", "raw")])
    ['STS-B:test', 'STS-B:dev', 'STS16']
    >>> distinct_labels([("STS-B", "dev", "senteval")])
    ['STS-B:dev']
    """
    distinct = list(dict.fromkeys(keys))
    splits, texts = defaultdict(set), defaultdict(set)
    for task, split, text in distinct:
        splits[task].add(split)
        texts[task].add(text)
    names = []
    for task, split, text in distinct:
        shows_split = len(splits[task]) > 1 or not _is_reported(task, split)
        names.append(task + f":{split}" * shows_split + f"@{text}" * (len(texts[task]) > 1))
    unique = dict(zip(distinct, unique_labels(names, (*AVERAGES, ALL_TASKS, *BESIDE_TASKS)), strict=True))
    return [unique[key] for key in keys]


def _is_reported(task: str, split: str) -> bool:
    """Returns whether papers report this split of a task: test, or else the only one."""
    if not split or not is_task(task):
        return split in {"", "test", "all"}
    splits = {part.split for text in data_set(task).texts.values() for part in text.parts}
    return split == "test" if "test" in splits else splits == {split}


def labels(records: Sequence["RunRecord"]) -> list[str]:
    """Returns a short label for each record's model.

    It is the model's name: a path without its folders, a function without `__main__`. Records with the same name
    also show the settings in which they differ, or else their folder.
    """
    return model_labels([record.model for record in records], [record.folder for record in records])


def model_labels(models: Sequence[ModelPart], folders: Sequence[Path | None] = ()) -> list[str]:
    """Returns a label for each model; see `labels`. A folder is None for a model without a record."""
    names = labels = _names_with_choices(models)
    for place_of in (lambda folder: folder.name, lambda folder: redact(str(folder))):
        times = Counter(labels)
        labels = [
            f"{name} ({place_of(folder)})" if folder is not None and times[label] > 1 else label
            for name, label, folder in zip(names, labels, folders or [None] * len(names), strict=True)
        ]
    return unique_labels(labels)


def _names_with_choices(models: Sequence[ModelPart]) -> list[str]:
    """Returns the models' names, with the settings in which models of one name differ."""
    namesakes = defaultdict(list)
    for model in models:
        namesakes[_model_name(model)].append(model)
    labels = []
    for model in models:
        name, choices = _model_name(model), []
        for field in _TELLING:
            value_of = attrgetter(field)
            # Defaults are not shown.
            if len(set(map(value_of, namesakes[name]))) > 1 and value_of(model) not in {None, "", AUTO}:
                setting = field.removeprefix("use.")
                choices.append(f"{setting} {shown(setting, value_of(model), _SHOWN)}")
        labels.append(f"{name} ({', '.join(choices)})" if choices else name)
    return labels


def _model_name(model: ModelPart) -> str:
    # A model loaded by another library has that library's prefix (`mteb:/models/mine`).
    loader = f"{model.kind}:" if model.name.startswith(f"{model.kind}:") else ""
    name = model.name.removeprefix(loader)
    is_path = model.kind not in NOT_PATHS and name.startswith(("/", "~", "."))
    return loader + ((PurePath(name).name or name) if is_path else name.removeprefix("__main__:"))


METHODS: Mapping[Dependence, str] = {
    "dyadic": "pairs that share a sentence are treated as dependent",
    "components": "pairs linked by a chain of shared sentences are treated as dependent",
    "independent": "all pairs are treated as independent",
}
"""The methods of intervals in words."""

REASONS: Mapping[NoInterval, str] = {
    "undefined": "its correlation is undefined",
    "perfect": "a correlation of 1 or -1 has no variance to estimate",
    "few pairs": "it has fewer than four pairs (five for Kendall's tau)",
    "no spread": "all of its pairs contribute equally",
}
"""The reasons why a score has no interval."""


def interval_remarks(labelled: Sequence[tuple[str, "RunRecord"]]) -> Iterator[str]:
    """Yields the notes on the intervals of labelled records."""
    methods: dict[str, list[str]] = {}
    for label, record in labelled:
        if words := interval_in_words(record.protocol):
            methods.setdefault(words, []).append(label)
    for words, labels in methods.items():
        whose = f"{', '.join(labels)}: " if len(methods) > 1 else ""
        yield f"{whose}{words} (docs: error bars)"
    for label, record in labelled:
        for score in record.scores:
            if score.no_interval:
                yield f"{label}: {score.task} has no interval: {REASONS[score.no_interval]}"


def interval_in_words(protocol: ProtocolPart) -> str:
    """Returns the level and method of a record's intervals in words; empty if it has none."""
    return f"{100 * protocol.level:g} % intervals: {METHODS[protocol.interval]}" if protocol.interval else ""
