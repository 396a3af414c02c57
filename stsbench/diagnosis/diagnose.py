"""`diagnose`: read the claim and the data, encode, score all settings, compare the claim with the scores."""

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.data.tables import StsData
from stsbench.diagnosis.axes import METRIC, read_claim
from stsbench.diagnosis.data import choose_tasks, encode_all, read_pairs, readable_by
from stsbench.diagnosis.result import Diagnosis, facts, likely_templates
from stsbench.diagnosis.scores import build_grid, search_further
from stsbench.diagnosis.search import WEAK, Search
from stsbench.diagnosis.variations import Case
from stsbench.encoders.load import Model, load
from stsbench.encoders.use import ABOUT, option_of
from stsbench.scoring.settings import Protocol, Stages


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
    budget: float = 60.0,
    use_cache: bool = True,
    progress: Progress = silent,
) -> Diagnosis:
    """Finds the setting that gives a number that was measured elsewhere.

    Everything is encoded once, with all poolings from one forward pass. The settings that give the claim are
    ranked by the number of changed choices, then by distance. If none does, other ways of using it are tried:
    prompts, templates, rules for the sentence, layers, precisions, attention, padding. Only what can matter to the
    checkpoint is tried; `notes` names the rest.

    Args:
        encoder: what `load` accepts; its pooling and maximum length are your setting.
        claim: the number to explain: `76.25` (of `tasks`), numbers by task such as `STS16=81.21,SICK-R=77.58` or a
            mapping, or `row:NAME` of `stsbench published`.
        tasks: what a bare number was measured on: `sts` (the average of the seven tasks), `sample`, one task, or
            several with commas. In Python also data that you have read.
        data: your own pairs, on which a bare number was measured, instead of `tasks`.
        data_dirs: folders to search for data before `STSBENCH_DATA` and the cache.
        protocol: your other choices; `simcse` by default (see `stsbench.protocol`).
        tolerance: how many points a score may differ from the claim; by default half a unit of the claim's last
            digit plus 0.005, because the last bits of vectors differ between machines.
        lengths: maximum lengths to try; by default 32, 64, 128, 256, 512 and those that the checkpoint states.
        budget: seconds for the search beyond the grid; 0 for none. No forward pass starts later.
        use_cache: whether to read and write the embedding cache.
        progress: receives the progress of each stage.

    Returns:
        A diagnosis. Its `.verdict` is the answer in words, `.table()` lists the settings that matter, `.frame` has
        all scores, `.plot()` draws single changes.

    Raises:
        UserError: if the claim cannot be read, data are missing, or an option is invalid.

    >>> diagnosis = diagnose(lambda sentences: [[len(s), s.count("e")] for s in sentences], 99.99, tasks="sample")
    >>> diagnosis.explained
    False
    """
    stages, protocol = Stages(progress), protocol or Protocol()
    if not (isfinite(budget) and budget >= 0):
        raise UserError(f"a budget of {budget:g} seconds: give 0 or more.")
    if protocol.metric not in METRIC.values:
        raise UserError(
            f"diagnose compares by {' and '.join(METRIC.values)}: choose one of them, not {protocol.metric}."
        )
    asked = read_claim(claim, tolerance)
    chosen = choose_tasks(asked, tasks, data)
    names = tuple(task if isinstance(task, str) else task.task for task in chosen)
    asked = asked.about(names)
    encoder = load(encoder)
    for name in encoder.identity.use.changed("afterwards"):
        if ABOUT[name].tried is None:
            raise UserError(f"{option_of(name)} is none of the choices that diagnose tries: leave it out.")
    pairs = read_pairs(chosen, protocol, [Path(folder) for folder in data_dirs])
    stages.done("data")
    identity = encoder.identity
    pairs = readable_by(encoder, pairs, protocol.text)
    stages.done("hash")
    encoded = encode_all(encoder, pairs.sentences, lengths=lengths, use_cache=use_cache, progress=progress)
    stages.done("encode")
    grid = build_grid(pairs, encoded, identity=identity, protocol=protocol, progress=progress)
    search, beyond = Search(grid, asked), None
    _require_scores(search)
    stages.done("scores")
    if budget and not search.default.fits and not _is_convincing(search):
        likely = likely_templates(asked, identity.name)
        search, beyond = search_further(
            Case(encoder, search.default.distance, likely),
            search,
            pairs,
            encoded,
            protocol=protocol,
            seconds=budget,
            use_cache=use_cache,
            progress=progress,
        )
        stages.done("further")
    notes = [*encoder.notes, *pairs.notes, *encoded.notes, *([beyond.note] if beyond else [])]
    cost = dict(vars(encoded.cost))
    return Diagnosis(
        model=identity.name,
        search=search,
        facts=tuple(facts(asked, identity)),
        notes=tuple(notes),
        seconds=stages.seconds | {stage: round(taken, 3) for stage, taken in cost.pop("seconds").items()},
        encoding=cost,
        further=beyond,
    )


def _is_convincing(search: Search) -> bool:
    """Returns whether a single choice gives the claim, or several that would give few numbers nearby."""
    best = search.explanations[0].best if search.explanations else None
    return best is not None and (best.count <= 1 or search.chance(best.count) < WEAK)


def _require_scores(search: Search) -> None:
    undefined = [
        task for task, score in zip(search.claim.tasks, search.default.scores, strict=True) if not isfinite(score)
    ]
    if undefined:
        raise UserError(
            f"{', '.join(undefined)}: this encoder has no score in your own setting, because all pairs have the "
            "same similarity. Check its prompt and maximum length, or whether all its vectors are equal."
        )
