"""Short, distinct labels of tasks and models, and the description of intervals."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path, PurePath

from stsbench.data.catalogue import data_set, is_task
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.use import names, shown
from stsbench.records.kinds import ALL_TASKS, AVERAGES
from stsbench.records.parts import ModelPart, NoInterval, ProtocolPart, RunFields, Score
from stsbench.records.provenance import redact
from stsbench.render.cells import unique_labels
from stsbench.statistics.dependence import Dependence

# The fields in which records of one model may differ, the most informative first.
_TELLING = (*(f"use.{name}" for name in names("encoding", "place", "afterwards")), "fitted", "weights_sha256")


_SHOWN = 20
"""The most characters of a value in a label."""


def task_labels(scores: Sequence[Score]) -> list[str]:
    """Return a name for each scored task: its own, with split and text only where those tell two apart."""
    # What is trained has one split: it is told from the others by what its kind says after the name.
    return distinct_labels(
        [(score.task + score.about.suffix, "" if score.training else score.split, score.text) for score in scores]
    )


def distinct_labels(keys: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return a name for each (task, split, text).

    The split is named where it is not the one that papers report, and where a task has several; so is the text.

    No two read alike, nor like what averages are called: a number follows where a task has such a name.

    >>> distinct_labels([("STS-B", "test", "senteval"), ("STS-B", "dev", "senteval"), ("STS16", "test", "raw")])
    ['STS-B:test', 'STS-B:dev', 'STS16']
    >>> distinct_labels([("STS-B", "dev", "senteval")])
    ['STS-B:dev']
    """
    splits, texts = defaultdict(set), defaultdict(set)
    for task, split, text in keys:
        splits[task].add(split)
        texts[task].add(text)
    distinct = list(dict.fromkeys(keys))
    names = []
    for task, split, text in distinct:
        shows_split = len(splits[task]) > 1 or not _is_reported(task, split)
        names.append(task + f":{split}" * shows_split + f"@{text}" * (len(texts[task]) > 1))
    called = dict(zip(distinct, unique_labels(names, (*AVERAGES, ALL_TASKS)), strict=True))
    return [called[key] for key in keys]


def _is_reported(task: str, split: str) -> bool:
    """Whether papers report this split of a task: test, or else the only one. What is trained has no split."""
    if not split or not is_task(task):
        return split in {"", "test", "all"}
    splits = {part.split for text in data_set(task).texts.values() for part in text.parts}
    return split == "test" if "test" in splits else splits == {split}


def labels(records: Sequence[RunFields]) -> list[str]:
    """Return a short label for each record's model.

    It is the model's name: a path without its folders, a function without `__main__`. Records with the same name
    also show the settings in which they differ, or else their folder, or else a number.
    """
    return model_labels([record.model for record in records], [record.folder for record in records])


def name_beside(model: ModelPart, other: ModelPart) -> str:
    """Return a model's label beside another model: its name, with settings if both have the same name."""
    return _names_with_choices([model, other])[0]


def model_labels(models: Sequence[ModelPart], folders: Sequence[Path | None] = ()) -> list[str]:
    """Return a label for each model; see `labels`. A folder is None for a model without a record."""
    folders = folders or [None] * len(models)
    called = _names_with_choices(models)
    times = Counter(called)
    distinct = _names_with_places(called, folders)
    # A model's own name may equal another model's label.
    labels = [place if times[name] > 1 else name for name, place in zip(called, distinct, strict=True)]
    return unique_labels(labels)


def _names_with_choices(models: Sequence[ModelPart]) -> list[str]:
    """Return the models' names, with the settings in which models of one name differ."""
    namesakes = defaultdict(list)
    for model in models:
        namesakes[_model_name(model)].append(model)
    differing = {
        name: [field for field in _TELLING if len({attrgetter(field)(model) for model in alike}) > 1]
        for name, alike in namesakes.items()
    }
    called = []
    for model in models:
        name = _model_name(model)
        # Defaults are not shown.
        values = [(field.removeprefix("use."), attrgetter(field)(model)) for field in differing[name]]
        choices = ", ".join(
            f"{field} {shown(field, value, _SHOWN)}" for field, value in values if value not in {None, "", AUTO}
        )
        called.append(f"{name} ({choices})" if choices else name)
    return called


def _names_with_places(called: Sequence[str], folders: Sequence[Path | None]) -> list[str]:
    """Return names with the shortest distinct form of their records' folders, or with numbers."""
    numbered = list(enumerate(folders, 1))
    short = [str(number) if folder is None else folder.name for number, folder in numbered]
    in_full = [str(number) if folder is None else redact(str(folder)) for number, folder in numbered]
    for places in (short, in_full, [str(number) for number, _ in numbered]):
        several = [f"{name} ({place})" for name, place in zip(called, places, strict=True)]
        if len(set(several)) == len(several):
            break
    return several


NOT_PATHS = {"function", "vectors", "similarities", "predictions"}
"""The kinds of models whose name is not a path."""


def _model_name(model: ModelPart) -> str:
    # A model loaded by another library has that library's prefix (`mteb:/models/mine`).
    loader = f"{model.kind}:" if model.name.startswith(f"{model.kind}:") else ""
    name = model.name.removeprefix(loader)
    is_path = model.kind not in NOT_PATHS and name.startswith(("/", "~", "."))
    return loader + ((PurePath(name).name or name) if is_path else name.removeprefix("__main__:"))


INTERVAL_OF = (
    "new pairs from the same subsets, with new sentences and the same pattern of sharing; the subsets are fixed"
)
"""What an interval is about."""

METHODS: Mapping[Dependence, str] = {
    "dyadic": "dyadic (pairs that share a sentence depend on each other)",
    "components": "components (pairs that a chain of shared sentences joins depend on each other)",
    "independent": "independent (although some pairs share sentences)",
}
"""The methods of intervals in words."""

REASONS: Mapping[NoInterval, str] = {
    "undefined": "its correlation is undefined",
    "perfect": "a correlation of 1 or -1 does not show how far it would vary",
    "few pairs": "it has fewer than four pairs (five of Kendall's tau)",
    "no spread": "all of its pairs contribute alike",
}
"""Why a score has no interval."""


def interval_in_words(protocol: ProtocolPart) -> str:
    """Return the level and method of a record's intervals in words; empty if it has none."""
    return (protocol.interval and f"{100 * protocol.level:g} %, {METHODS[protocol.interval]}") or ""


def interval_remarks(labelled: Sequence[tuple[str, RunFields]]) -> Iterator[str]:
    """Yield the notes on the intervals of labelled records."""
    methods: dict[str, list[str]] = {}
    for label, record in labelled:
        if words := interval_in_words(record.protocol):
            methods.setdefault(words, []).append(label)
    for words, labels in methods.items():
        whose = f" of {', '.join(labels)}" if len(methods) > 1 else ""
        yield f"intervals{whose}: {words}; of {INTERVAL_OF}"
    for label, record in labelled:
        for score in record.scores:
            if score.no_interval:
                yield f"{label}: {score.task} has no interval: {REASONS[score.no_interval]}"
