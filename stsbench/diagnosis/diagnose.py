"""`diagnose`: read the claim and the data, encode once, score every setting, hold the claim against the scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import data_set
from stsbench.data.locate import DataNotFoundError
from stsbench.data.own_pairs import load_pairs
from stsbench.data.tables import StsData
from stsbench.diagnosis.choices import METRICS, REGRESSED, SECOND_TEST
from stsbench.diagnosis.claim import Claim, read_claim
from stsbench.diagnosis.encoding import encode_all
from stsbench.diagnosis.further import DEFAULT_SECONDS, Budget, search_further
from stsbench.diagnosis.result import Diagnosis
from stsbench.diagnosis.scores import DiagnosisData, TaskPairs, build_grid
from stsbench.diagnosis.search import WEAK, Search
from stsbench.diagnosis.words import facts
from stsbench.encoders.load import Model, load
from stsbench.encoders.protocol import Encoder
from stsbench.encoders.use import ABOUT, option_of
from stsbench.published.catalogue import checkpoint_named_like, checkpoint_of_system, known_checkpoint
from stsbench.records.kinds import AVERAGE
from stsbench.scoring.kinds.sts import demand_spread
from stsbench.scoring.settings import TEXTS, Protocol, Stages
from stsbench.scoring.tasks import SAMPLE, STS_TASKS

_SPLITS = ("test", "dev", "all")


def diagnose(
    encoder: Model,
    claim: str | float | Mapping[str, float],
    *,
    tasks: str | StsData | Sequence[str | StsData] = "sts",
    data: str | Path | None = None,
    data_dirs: Sequence[str | Path] = (),
    protocol: Protocol | None = None,
    tolerance: float | None = None,
    lengths: Sequence[int] | None = None,
    supervised: bool = False,
    further: int = 1,
    budget: float = DEFAULT_SECONDS,
    most_sentences: int | None = None,
    use_cache: bool = True,
    progress: Progress = silent,
) -> Diagnosis:
    """Find out which setting gives a number that was measured, or read, elsewhere.

    Everything is encoded once, with all poolers from one forward pass. The settings that give the claim are
    ranked by how few choices they change from the default, then by distance. Where these give no answer, or one of
    several choices that many numbers would have, other ways of using the encoder are tried, each of which takes
    vectors of its own: prompts, templates, rules for the sentence, layers, precisions, attention, padding. Only
    what can matter to the checkpoint is tried, and `notes` say what was not.

    Args:
        encoder: what `load` accepts; its pooling and maximum length are the default.
        claim: the number to explain: `76.25` (of `tasks`), numbers by task such as `STS16=81.21,SICK-R=77.58`, or
            `row:NAME` of `stsbench published`. In Python also a mapping by task.
        tasks: what a bare number was measured on: `sts` (the average of the seven tasks), `sample`, one task, or
            several with commas. In Python also data that was read already.
        data: your own pairs, on which a bare number was measured, instead of `tasks`.
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.
        protocol: the other default choices; `simcse` by default (see `stsbench.protocol`).
        tolerance: how many points a score may differ from the claim; by default half a unit of the claim's last
            digit, and 0.005, as the last bits of vectors differ between machines.
        lengths: another maximum length to try besides the model's own; 32, 64, 128, 256 and 512 by default, where
            they cut.
        supervised: whether to try SentEval's trained regressors for STS-B and SICK-R too, which takes minutes.
        further: how many of the other choices (prompt, template, rules, layer, precision, attention, padding) may
            change at once where the grid has no answer: 0, 1 or 2.
        budget: seconds after which the search beyond the grid starts no further pass; a pass that has started is
            finished.
        most_sentences: how many sentences the search beyond the grid may encode; by default any number.
        use_cache: whether to read and write the embedding cache.
        progress: told how far it is.

    Returns:
        A diagnosis, whose `.verdict` says it in words, `.table()` lists the settings that matter, `.frame` has all
        scores, `.plot()` draws those with one other choice.

    Raises:
        UserError: for a person's mistake, in one sentence.

    >>> diagnosis = diagnose(lambda sentences: [[len(s), s.count("e")] for s in sentences], 99.99, tasks="sample")
    >>> diagnosis.explained
    False
    """
    stages, limits = Stages(progress), Budget(further, budget, most_sentences)
    protocol = protocol or Protocol()
    if protocol.metric not in METRICS:
        raise UserError(
            f"diagnose compares by {' and '.join(METRICS)}: choose one of them, not {protocol.metric}."
        )
    read = read_claim(claim, tolerance)
    chosen = _tasks_of(read, tasks, data)
    names = tuple(task if isinstance(task, str) else task.task for task in chosen)
    read, is_sts = read.about(names), names == STS_TASKS
    encoder = load(encoder)
    for name in encoder.identity.use.changed("afterwards"):
        if ABOUT[name].tried is None:
            raise UserError(f"{option_of(name)} is none of the choices that diagnose tries: leave it out.")
    pairs = _read_all(
        chosen, names, protocol, [Path(folder) for folder in data_dirs], sample=is_sts and AVERAGE in read.tasks
    )
    stages.done("data")
    identity = encoder.identity
    pairs = _readable_by(encoder, pairs, protocol.text)
    stages.done("hash")
    encoded = encode_all(encoder, pairs.sentences, lengths=lengths, use_cache=use_cache, progress=progress)
    stages.done("encode")
    stages.seconds |= {stage: round(value, 3) for stage, value in encoded.seconds.items()}
    grid = build_grid(
        pairs, encoded, identity=identity, protocol=protocol, supervised=supervised, progress=progress
    )
    search = Search(grid, read)
    _demand_a_score(search)
    measured = grid.value(AVERAGE, grid.default) if is_sts else None
    stages.done("scores")
    beyond = None
    if further and not search.default.fits and not is_telling(search):
        search, beyond = search_further(
            encoder,
            search,
            pairs,
            encoded,
            protocol=protocol,
            budget=limits,
            likely=likely_templates(read, identity.name),
            use_cache=use_cache,
            progress=progress,
        )
        stages.done("further")
    notes = [*encoder.notes, *pairs.notes, *encoded.notes, *([beyond.note] if beyond else [])]
    is_explained = search.explanations or (beyond and search.beyond.explanations)
    if not supervised and not is_explained and {*REGRESSED, AVERAGE} & set(read.tasks):
        notes.append(_NO_REGRESSORS)
    return Diagnosis(
        model=identity.name,
        search=search,
        facts=tuple(facts(read, identity, measured=measured)),
        notes=tuple(notes),
        seconds=stages.seconds,
        encoding=encoded.encoding,
        further=beyond,
    )


def is_telling(search: Search) -> bool:
    """Return whether the grid has an answer that makes it needless to look further.

    That is a single choice, or several that few numbers nearby would have met as well.
    """
    best = search.explanations[0].best if search.explanations else None
    return best is not None and (best.count <= 1 or search.chance(best.count) < WEAK)


def likely_templates(claim: Claim, model: str) -> list[str]:
    """Return the templates that the model, and the row that is claimed, are known to be used with."""
    of_row = [checkpoint_of_system(claim.row.row.system)] if claim.row else []
    known = [*of_row, known_checkpoint(model) or checkpoint_named_like(model)]
    return [entry.template for entry in known if entry and entry.template]


_NO_REGRESSORS = (
    "Not tried: the regressors that SentEval trains on STS-B and SICK-R, which can be 20 points above cosine "
    "(--supervised; it takes minutes)."
)


def _demand_a_score(search: Search) -> None:
    """Refuse to explain a difference to a number that is not there."""
    undefined = [
        task for task, score in zip(search.claim.tasks, search.default.scores, strict=True) if not isfinite(score)
    ]
    if undefined:
        raise UserError(
            f"{', '.join(undefined)}: this encoder has no score in your own setting, as it gives all pairs the "
            "same similarity: look at its prompt and maximum length, or whether its vectors are all alike."
        )


def _tasks_of(
    claim: Claim, tasks: str | StsData | Sequence[str | StsData], data: str | Path | None
) -> list[str | StsData]:
    """Return what has to be scored, in the papers' order."""
    if data is not None:
        if claim.tasks != ("",):
            raise UserError("a claim about data of your own is one number, its score: leave out the tasks' names.")
        return [load_pairs(Path(data).expanduser())]
    if claim.tasks != ("",) and AVERAGE not in claim.tasks:
        order = [*STS_TASKS, *claim.tasks]
        return [task for task in dict.fromkeys(order) if task in claim.tasks]
    chosen = _by_name([tasks] if isinstance(tasks, str | StsData) else tasks)
    if not chosen:
        raise UserError("no task was named: use `sts`, or names such as STS16.")
    if SAMPLE in chosen and len(chosen) > 1:
        raise UserError("the sample is part of no average: name it alone, or leave it out.")
    missing = [task for task in claim.tasks if task not in {"", AVERAGE, *chosen}]
    if missing:
        raise UserError(
            f"the claim names {missing[0]}, which is not among the tasks: add it, or leave --tasks out."
        )
    return list(chosen.values())


def _by_name(tasks: Iterable[str | StsData]) -> dict[str, str | StsData]:
    """Return each task once, `sts` being the papers' seven."""
    chosen: dict[str, str | StsData] = {}
    for item in tasks:
        if isinstance(item, StsData):
            chosen.setdefault(item.task, item)
            continue
        for name in filter(None, map(str.strip, item.split(","))):
            for task in STS_TASKS if name.casefold() == "sts" else [data_set(name).task]:
                chosen.setdefault(task, task)
    return chosen


def _read_all(
    tasks: Sequence[str | StsData],
    names: tuple[str, ...],
    protocol: Protocol,
    data_dirs: Sequence[Path],
    *,
    sample: bool,
) -> DiagnosisData:
    """Read tasks in every text and split; the sample may come along, as what was scored by mistake."""
    sets: list[TaskPairs] = []
    absent: list[str] = []
    texts = (protocol.text, *(text for text in TEXTS if text != protocol.text))
    for task in [*tasks, *([SAMPLE] if sample else [])]:
        if isinstance(task, StsData):
            demand_spread(task)
            sets.append(TaskPairs(task, None, (task.split,), task.split))
            continue
        variants = [text for text in texts if text in data_set(task).texts]
        for text in variants if len(variants) > 1 else [None]:
            try:
                sets.append(_read(task, text, protocol, data_dirs))
            except DataNotFoundError:
                if text in {None, protocol.text}:
                    raise
                absent.append(f"{task} ({text})")
    notes = (f"Not tried, as it was not found: {', '.join(absent)}.",) if absent else ()
    return DiagnosisData(tuple(sets), names, notes)


def _read(task: str, text: str | None, protocol: Protocol, data_dirs: Sequence[Path]) -> TaskPairs:
    entry = data_set(task)
    variant = text or next(iter(entry.texts))
    there = {part.split for part in entry.texts[variant].parts}
    several = len(there) > 1
    data = load_sts(task, "all" if several else next(iter(there)), variant, data_dirs)
    demand_spread(data)
    if not several:
        return TaskPairs(data, text, (data.split,), data.split)
    splits = tuple(split for split in _SPLITS if split == "all" or split in there)
    if f"{variant}-v2" in entry.texts:
        second = set(load_sts(task, "test", f"{variant}-v2", data_dirs).pairs["pair_id"])
        places = zip(data.pairs["split"], data.pairs["pair_id"], strict=True)
        is_second = np.array([split == "test" and pair in second for split, pair in places])
        data = replace(data, pairs=data.pairs.assign(**{SECOND_TEST: is_second}))
        splits = (*splits, SECOND_TEST)
    return TaskPairs(data, text, splits, protocol.sick_split if task == "SICK-R" else "test")


def _readable_by(encoder: Encoder, data: DiagnosisData, text: str) -> DiagnosisData:
    """Return what saved vectors are there for: all, or the tasks in one text and their default split alone."""
    if encoder.identity.kind != "vectors":
        return data
    try:
        encoder.tokenize(data.sentences)
    except UserError:
        pass
    else:
        return data
    kept = [
        replace(task, data=_only(task.data, task.default_split), splits=(task.default_split,))
        for task in data.sets
        if task.text in {None, text} and task.data.task in data.tasks
    ]
    note = "Not tried: other splits and texts, for whose sentences there are no vectors."
    return replace(data, sets=tuple(kept), notes=(*data.notes, note))


def _only(data: StsData, split: str) -> StsData:
    if split == "all":
        return data
    return replace(data, split=split, pairs=data.pairs[data.pairs["split"] == split].reset_index(drop=True))
