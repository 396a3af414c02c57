"""What stands at the top of a report: the few sentences that a reader needs, each with where to read on.

The scores with their intervals, where they stand among published ones, the verdicts, how runs differ, what is odd,
and what was found; beside them a picture. A sentence that says nothing of the runs at hand is left out.
"""

from collections.abc import Iterator, Mapping, Sequence

from stsbench.base.words import listed
from stsbench.judging.matching import AVERAGES
from stsbench.records.kinds import KINDS, Kind
from stsbench.records.record import RunRecord
from stsbench.render.section import Pointer, Section
from stsbench.render.table import interval
from stsbench.reports.scores import Runs
from stsbench.reports.standing import Standing, strip

IN_SHORT, TITLE = "in-short", "In short"

_EACH = 3
"""Up to so many runs have a sentence each; of more, the highest and the lowest are named."""

_MOST_SENTENCES = 4
"""Up to so many verdicts, or comparisons, stand here; the sections have them all."""


def in_short(
    runs: Runs,
    sections: Sequence[Section],
    standings: Mapping[str, Sequence[Standing]] | None = None,
    found: Sequence[Pointer] = (),
) -> Section:
    """Return the top of a report: sentences which lead to its sections, and the picture of where runs stand.

    Args:
        runs: the report's.
        sections: what it goes on with.
        standings: by run, where it stands among published models; of many runs none.
        found: what stands out.
    """
    parts = {part.name: part for section in sections for part in section.walk()}
    figure = strip(standings or {})
    anchors = {*parts, *(table.name for part in parts.values() for table in part.tables)}
    anchors |= {figure.name} if figure else set()
    pointers = [*_scores(runs, standings or {}), *_verdicts(parts), *_differences(parts), *_odd(runs)]
    kept = [pointer if pointer.to in anchors else Pointer(pointer.text) for pointer in (*pointers, *found)]
    return Section(IN_SHORT, TITLE, pointers=tuple(kept), figures=(figure,) if figure else ())


def _scores(runs: Runs, standings: Mapping[str, Sequence[Standing]]) -> Iterator[Pointer]:
    for kind in KINDS.values():
        headlines = {label: score for label, run in runs.items() if (score := _score(run, kind)) is not None}
        anchor = f"scores-{kind.name}"
        if len(headlines) <= _EACH:
            for label, (value, limits, of) in headlines.items():
                among = _among(runs[label], kind, standings.get(label, ()))
                yield Pointer(f"{label} scores {value:.2f}{limits} {of}{among}.", anchor)
            continue
        subjects = {of for _, _, of in headlines.values()}
        if len(subjects) == 1:
            ranked = sorted(headlines, key=lambda label: headlines[label][0])
            lowest, highest = (
                f"{label} with {headlines[label][0]:.2f}{headlines[label][1]}" for label in (ranked[0], ranked[-1])
            )
            sentence = f"Of {len(headlines)} runs {highest} is the highest {subjects.pop()}, {lowest} the lowest."
            yield Pointer(sentence, anchor)


def _score(run: RunRecord, kind: Kind) -> tuple[float, str, str] | None:
    """Return a run's headline x 100, its interval in words, and what it is of; None for a run without one."""
    average, scores = run.average(kind.name), run.scores_of(kind.name)
    if average is not None and average.value is not None:
        what = f"on average over {len(average.tasks)} tasks ({kind.average})"
        return 100 * average.value, _limits(average.interval, run), what
    if len(scores) != 1 or scores[0].value is None:
        return None
    (score,) = scores
    where = score.task if score.training else f"{score.task}, {score.split}"
    return 100 * scores[0].value, _limits(score.interval, run), f"on {where}"


def _among(run: RunRecord, kind: Kind, places: Sequence[Standing]) -> str:
    """Return above how many published models a run's headline is, as a clause; empty where none compares."""
    average = run.average(kind.name)
    tasks = set(average.tasks) if average else {score.task for score in run.scores_of(kind.name)}
    place = next((place for place in places if set(AVERAGES.get(place.task, (place.task,))) == tasks), None)
    if place is None:
        return ""
    low, high = place.limits or (place.value, place.value)
    inside = sum(low <= score <= high for score in place.scores.values())
    near = f" ({inside} lie inside that interval)" if inside > 1 else ""
    return f", above {place.below} of {len(place.scores)} published models that compare{near}"


def _limits(limits: tuple[float, float] | None, run: RunRecord) -> str:
    if limits is None:
        return ""
    return f" ({100 * run.protocol.level:g} % {interval(100 * limits[0], 100 * limits[1])})"


def _verdicts(parts: dict[str, Section]) -> Iterator[Pointer]:
    if "checks" in parts:
        yield from (Pointer(sentence, "checks") for sentence in parts["checks"].points[:_MOST_SENTENCES])


def _differences(parts: dict[str, Section]) -> Iterator[Pointer]:
    if "comparisons" in parts:
        compared = parts["comparisons"].parts[:_MOST_SENTENCES]
        yield from (Pointer(part.text[0], part.name) for part in compared if part.text)


def _odd(runs: Runs) -> Iterator[Pointer]:
    """Yield what a reader would not expect: changed data, undefined scores, zero vectors."""
    for label, run in runs.items():
        changed = [score.task for score in run.scores if score.data.status == "modified"]
        if changed:
            names = listed(list(dict.fromkeys(changed)))
            sentence = f"Odd: {label} read {names} from files that are not the published ones."
            yield Pointer(sentence, "reproducibility")
        undefined = [score.task for score in run.scores if score.value is None]
        if undefined:
            sentence = f"Odd: {label} has no score on {listed(undefined)}: all similarities are the same."
            yield Pointer(sentence, "scores")
        zero = sum(score.counts.get("zero_pairs", 0) for score in run.scores)
        if zero:
            sentence = f"Odd: {zero:,} pairs of {label} have a zero vector; their cosine counts as 0."
            yield Pointer(sentence, "scores")
