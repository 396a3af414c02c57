"""`diagnose`: why a number is off."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.catalogue import data_set
from stsbench.data.own_pairs import load_pairs
from stsbench.data.tables import StsData
from stsbench.diagnosis.build import build_grid, texts_of
from stsbench.diagnosis.claim import Claim, facts, read_claim
from stsbench.diagnosis.data import is_sts, narrowed, read_all
from stsbench.diagnosis.encoding import encode_all
from stsbench.diagnosis.grid import METRICS, REGRESSED
from stsbench.diagnosis.heat import draw, save
from stsbench.diagnosis.result import Diagnosis
from stsbench.diagnosis.search import Search
from stsbench.encoders.load import load
from stsbench.encoders.protocol import Encoder
from stsbench.records.record import AVERAGE
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.run import Subject
from stsbench.scoring.settings import Stages
from stsbench.scoring.tasks import SAMPLE, STS_TASKS

__all__ = ["diagnose", "draw", "only_encoder", "save"]


def diagnose(
    encoder: Encoder | str | Path | Callable[[list[str]], Any],
    claim: str | float | Mapping[str, float],
    *,
    tasks: str | StsData | Sequence[str | StsData] = "sts",
    data: str | Path | None = None,
    data_dirs: Sequence[str | Path] = (),
    protocol: Protocol | None = None,
    tolerance: float | None = None,
    lengths: Sequence[int] | None = None,
    supervised: bool = False,
    use_cache: bool = True,
    progress: Progress = silent,
) -> Diagnosis:
    """Find out which setting gives a number that was measured, or read, elsewhere.

    Everything is encoded once, with all poolers from one forward pass. The settings that give the claim are
    ranked by how few choices they change from the default, then by distance.

    Args:
        encoder: an encoder, or what `load` makes one of; its pooling and maximum length are the default.
        claim: a number (`76.25`), numbers by task (`"STS16=81.21,SICK-R=77.58"`, or a mapping), or `"row:NAME"`.
        tasks: what a bare number is of: `sts` (the average of the seven tasks), one task, or several; names, or
            data that was read already.
        data: a file of scored pairs of the person's own that a bare number is of, instead of `tasks`.
        data_dirs: folders to look for data in, before `STSBENCH_DATA` and the cache.
        protocol: the other default choices; `simcse` by default (see `stsbench.protocol`).
        tolerance: how far a score may be from a number; by default half a unit of its last digit, and 0.005.
        lengths: maximum lengths to try besides the model's own; 32, 64, 128, 256 and 512 by default.
        supervised: whether to try SentEval's trained regressors for STS-B and SICK-R too, which takes minutes.
        use_cache: whether to read and write the embedding cache.
        progress: told how far it is.

    Returns:
        The diagnosis; `.verdict` says it in words, `.table()` lists the settings, `.grid.table()` all scores.

    Raises:
        UserError: for a person's mistake, in one sentence.

    >>> found = diagnose(lambda sentences: [[len(s), s.count("e")] for s in sentences], 99.99, tasks="sample")
    >>> found.explained
    False
    """
    stages, protocol = Stages(progress), protocol or Protocol()
    if protocol.metric not in METRICS:
        raise UserError(
            f"diagnose compares by {' and '.join(METRICS)}: choose one of them, not {protocol.metric}."
        )
    wanted = read_claim(claim, tolerance)
    chosen = _tasks_of(wanted, tasks, data)
    names = tuple(task if isinstance(task, str) else task.task for task in chosen)
    wanted = wanted.about(names)
    encoder = encoder if isinstance(encoder, Encoder) else load(encoder)
    pairs = read_all(
        chosen, protocol, [Path(folder) for folder in data_dirs], sample=is_sts(names) and AVERAGE in wanted.tasks
    )
    stages.done("data")
    identity = encoder.identity
    if identity.kind == "vectors" and not _has_all(encoder, texts_of(pairs)):
        pairs = narrowed(pairs, protocol.text)
    stages.done("hash")
    encoded = encode_all(encoder, texts_of(pairs), lengths=lengths, use_cache=use_cache, progress=progress)
    stages.done("encode")
    stages.seconds |= {stage: round(value, 3) for stage, value in encoded.seconds.items()}
    grid = build_grid(pairs, encoded, own=identity, protocol=protocol, supervised=supervised, progress=progress)
    search = Search(grid, wanted)
    measured = grid.value(AVERAGE, grid.default) if is_sts(names) else None
    stages.done("scores")
    return Diagnosis(
        model=identity.name,
        search=search,
        facts=tuple(facts(wanted, model=identity.name, pooling=identity.pooling, measured=measured)),
        notes=(
            *encoder.notes,
            *pairs.notes,
            *encoded.notes,
            *_untried(wanted, supervised=supervised, explained=bool(search.explanations)),
        ),
        seconds=stages.seconds,
        encoding=encoded.encoding,
    )


def _has_all(saved: Encoder, texts: Sequence[str]) -> bool:
    try:
        saved.tokenize(texts)
    except UserError:
        return False
    return True


def only_encoder(wanted: Sequence[Subject]) -> Encoder:
    """Return the one encoder that is meant.

    Raises:
        UserError: if several are, or it cannot be loaded.
    """
    if len(wanted) > 1:
        raise UserError("--model and --vectors cannot go together: diagnose looks at one of them.")
    ready = wanted[0].prepare()
    assert isinstance(ready, Encoder), "no similarities were asked for"
    return ready


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
    items = [tasks] if isinstance(tasks, str | StsData) else list(tasks)
    chosen: list[str | StsData] = []
    for item in items:
        if isinstance(item, StsData):
            chosen.append(item)
            continue
        for name in filter(None, map(str.strip, item.split(","))):
            chosen += STS_TASKS if name.casefold() == "sts" else [data_set(name).task]
    if not chosen:
        raise UserError("no task was named: use `sts`, or names such as STS16.")
    if SAMPLE in chosen and len(chosen) > 1:
        raise UserError("the sample is part of no average: name it alone, or leave it out.")
    missing = [task for task in claim.tasks if task not in {"", AVERAGE, *chosen}]
    if missing:
        raise UserError(
            f"the claim names {missing[0]}, which is not among the tasks: add it, or leave --tasks out."
        )
    return [task for place, task in enumerate(chosen) if isinstance(task, StsData) or task not in chosen[:place]]


def _untried(claim: Claim, *, supervised: bool, explained: bool) -> list[str]:
    regressed = {*REGRESSED, AVERAGE} & set(claim.tasks)
    if supervised or explained or not regressed:
        return []
    return [
        "Not tried: the regressors that SentEval trains on STS-B and SICK-R, which can be 20 points above cosine "
        "(--supervised; it takes minutes)."
    ]
