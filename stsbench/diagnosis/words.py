"""What a diagnosis says: the verdict, what else to know of it, and what published documents say of the claim.

How a single choice is called stands with the choice, in `choices.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from stsbench.base.words import listed
from stsbench.diagnosis.choices import (
    AVERAGE_OF,
    COMPARISON,
    METRIC,
    REGRESSED,
    REGRESSOR,
    TEXT,
    Change,
    Choice,
    Comparing,
    split_of,
)
from stsbench.diagnosis.claim import Claim, Value
from stsbench.diagnosis.grid import Grid
from stsbench.diagnosis.search import NEIGHBOURHOOD, WEAK, Candidate, Search
from stsbench.encoders.protocol import Identity
from stsbench.published.catalogue import checkpoint_of_system, identified_checkpoint, rows
from stsbench.published.measured import seeded_systems, seeds, source
from stsbench.published.schema import KnownCheckpoint
from stsbench.records.kinds import AVERAGE

_ELSEWHERE = "Other weights and seeds were not tried, nor prompts that the checkpoint does not name: look there."
_COUNTS = {2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six", 7: "Seven"}
_MOST_PRINTS = 3


def verdict(search: Search, beyond: Search | None = None) -> str:
    """Return in a sentence or two what explains the claim, or that nothing does.

    `beyond` is the claim held against the lazy axes, if these were searched.
    """
    if search.default.fits:
        return f"{_subject(search.claim)} {_is(search)} what your setting gives: there is no gap to explain."
    if search.explanations:
        return _explained(search, search.explanations[0].best)
    return " ".join(filter(None, [_unexplained(search), _unexplained_beyond(beyond) if beyond else ""]))


def remarks(search: Search) -> list[str]:
    """Return what else a reader should know of the verdict, a sentence each."""
    if search.default.fits:
        return []
    if not search.explanations:
        return [*(_partly(search) if len(search.claim.values) > 1 else []), _ELSEWHERE]
    first = search.explanations[0]
    best = first.best
    sentences = list(filter(None, (change.meaning for change in best.changes)))
    stated = [change for change in best.changes if _is_stated(search.claim, change)]
    if stated:
        sentences.append(f"The row itself states {_phrases(stated)}.")
    alike = [candidate for candidate in first.alike if candidate.count == best.count]
    if alike:
        sentences.append(f"The claim cannot tell it from {'; nor from '.join(map(_setting, alike))}.")
    chance = search.chance(best.count)
    if chance >= WEAK:
        sentences.append(
            f"This is weak evidence: settings this simple would explain {_percent(chance)} of all numbers within "
            f"{NEIGHBOURHOOD:g} points of the claimed. Give the numbers of more tasks."
        )
    return [*sentences, _command(search, best)]


def facts(claim: Claim, identity: Identity, *, measured: float | None) -> list[str]:
    """Return what published documents say, a sentence each; `measured` is the model's average, x 100."""
    row = claim.row
    of_model = identified_checkpoint(
        identity.name, pooling=identity.use.pooling, weights_sha256=identity.weights_sha256
    )
    of_row = checkpoint_of_system(row.row.system) if row else None
    sentences = []
    if row and of_model and of_row and of_model.name != of_row.name:
        sentences.append(f"{row.name} is a row of {of_row.hub or of_row.name}; you measured {identity.name}.")
    expected = of_row or of_model
    if expected:
        sentences += _used_otherwise(expected, identity, with_files=expected == of_model)
    printed = row.row.notes if row else [_where_printed(value, of_model) for value in claim.values]
    system = row.row.system if row else of_model.system if of_model else ""
    is_other = of_model is not None and of_model.system != system
    return [*sentences, *filter(None, printed), *_among_seeds(system, claim, None if is_other else measured)]


def _used_otherwise(expected: KnownCheckpoint, identity: Identity, *, with_files: bool) -> list[str]:
    """Return how a known checkpoint was used when it was scored, where the person uses it otherwise."""
    sentences = []
    if expected.pooling and expected.pooling != identity.use.pooling:
        sentences.append(
            f"{expected.name} was scored with pooling `{expected.pooling}` ({expected.pooling_source}); "
            f"your setting is `{identity.use.pooling}`."
        )
    template = identity.use.own_template.name if identity.use.own_template else ""
    if expected.template and expected.template != template:
        yours = f"`{template}`" if template else "none"
        sentences.append(f"{expected.name} was scored with the template `{expected.template}`; yours is {yours}.")
    compared = expected.files_compared(identity.weights_sha256, identity.tokenizer_sha256) if with_files else ()
    return sentences + [
        f"Your {what} are not the ones that {expected.name} was scored with (SHA-256 {own[:12]}…)."
        for what, is_same, own in compared
        if not is_same
    ]


def _explained(search: Search, best: Candidate) -> str:
    subject, default = _subject(search.claim), _numbers(search, search.default)
    if len(best.changes) == 1:
        (change,) = best.changes
        number = f" ({_numbers(search, best)})" if len(best.scores) == 1 else ""
        sentence = f"{subject} {_is(search)} what {_setting(best)} gives{number}"
        return f"{sentence}; {change.choice.instead_of(change.default)} {default}."
    count = _COUNTS.get(len(best.changes), str(len(best.changes)))
    return (
        f"No single choice explains {_lower(subject)}. {count} together do: {_setting(best)} "
        f"give {_numbers(search, best)}; your setting gives {default}."
    )


def _unexplained(search: Search) -> str:
    subject, single, nearest = _lower(_subject(search.claim)), search.nearest_single, search.nearest
    if search.coincidences:
        count = search.coincidences[0].best.count
        sentences = [
            f"No simple setting gives {subject}. Changing {count} choices at once does, but so it does for "
            f"{_percent(search.chance(count))} of all numbers nearby: that explains nothing."
        ]
    else:
        sentences = [f"None of {search.settings:,} settings gives {subject}."]
    sentences.append(f"Your own gives {_numbers(search, search.default)}{_off(search, search.default)}.")
    if single.count:
        sentences.append(
            f"The nearest with one change is {_setting(single)}: {_numbers(search, single)}{_off(search, single)}."
        )
    if not search.coincidences and nearest.count > 1:
        sentences.append(
            f"The nearest of all changes {nearest.count} choices ({_setting(nearest)}): "
            f"{_numbers(search, nearest)}{_off(search, nearest)}."
        )
    return " ".join(sentences)


def _unexplained_beyond(beyond: Search) -> str:
    """Return how near the settings beyond the grid come, if any were tried."""
    nearest = beyond.nearest
    if not nearest.count:
        return ""
    tried = f"{beyond.settings - 1:,} settings beyond the grid were tried too, and none of them gives it. "
    return tried + f"The nearest is {_setting(nearest)}, with {_numbers(beyond, nearest)}{_off(beyond, nearest)}."


def _partly(search: Search) -> list[str]:
    """Return which of several numbers one setting gives, if it is most of them, and what gives the others."""
    given = search.given_by(search.most)
    if 2 * sum(given) < len(given):
        return []
    fitting = [value.task for value, fits in zip(search.claim.values, given, strict=True) if fits]
    setting = _setting(search.most)
    sentences = [
        f"{setting[0].upper()}{setting[1:]} gives {len(fitting)} of the {len(given)}: {', '.join(fitting)}."
    ]
    for value, fits in zip(search.claim.values, given, strict=True):
        if fits:
            continue
        alone, setting = search.alone(value), "no single choice"
        if alone.default.fits or (alone.explanations and alone.explanations[0].best.count == 1):
            setting = _setting(alone.default if alone.default.fits else alone.explanations[0].best)
        sentences.append(f"The {value} on {value.task} is what {setting} gives.")
    return sentences


def _command(search: Search, candidate: Candidate) -> str:
    """Return how to get a setting's scores from `stsbench run`: what to add to the person's own command."""
    grid, point, is_average = search.grid, candidate.point, AVERAGE in search.claim.tasks
    changed = {change.choice: change.value for change in candidate.changes[len(point.changes) :]}
    comparing = changed.pop(COMPARISON, None)
    mean = changed.get(AVERAGE_OF) or grid.default_of(AVERAGE_OF)
    tasks = mean.tasks if is_average else search.claim.tasks
    by_parts = comparing == REGRESSOR and is_average and len(tasks) > 1
    what = "gives the scores of which it is the mean" if by_parts else "gives it"
    options = [
        f"--tasks {_tasks_with_splits(tasks, changed, is_regressed=comparing == REGRESSOR)}",
        *(f"{choice.option} {value}" for choice, value in changed.items() if choice.option),
        *point.options,
        *_comparing_options(comparing, grid, changed.get(METRIC), tasks),
    ]
    by_hand = [change.choice.by_hand for change in point.changes if change.choice.by_hand]
    besides = f", after {' and '.join(by_hand)}, for which there is no option" if by_hand else ""
    return f"`stsbench run` {what} with `{' '.join(options)}`{besides}."


def _tasks_with_splits(tasks: Sequence[str], changed: Mapping[Choice, Any], *, is_regressed: bool) -> str:
    splits = {task: changed.get(split_of(task), "") for task in tasks}
    if changed.get(TEXT) == "raw":
        splits = {task: split.replace("senteval-v2", "raw-v2") for task, split in splits.items()}
    if is_regressed:
        splits |= dict.fromkeys(REGRESSED & splits.keys(), REGRESSOR.similarity)
    return ",".join(f"{task}:{split}" if split else task for task, split in splits.items())


def _comparing_options(
    comparing: Comparing | None, grid: Grid, metric: str | None, tasks: Sequence[str]
) -> list[str]:
    if comparing is None:
        return []
    if comparing == REGRESSOR:
        # Tables show the regressor's headline, Pearson's correlation; CSV has both.
        is_spearman = (metric or grid.default_of(METRIC)) == "spearman"
        options = ["--format csv"] if is_spearman and REGRESSED & set(tasks) else []
        other_default = set(tasks) - REGRESSED and grid.default_of(COMPARISON).similarity != "cosine"
        return [*options, "--similarity cosine"] if other_default else options
    scaling = {None: [], True: ["--normalize"], False: ["--no-normalize"]}[comparing.normalize]
    return [f"--similarity {comparing.similarity}", *scaling]


def _where_printed(value: Value, of_model: KnownCheckpoint | None) -> str:
    """Return where just this number is printed, those rows first that are of the model itself."""
    if value.decimals < 2:
        return ""
    task = "Avg. STS" if value.task == AVERAGE else value.task
    names = [
        row.name
        for row in rows().values()
        for cell in row.cells
        if cell.setting.task == task
        and cell.score is not None
        and round(cell.score, value.decimals) == value.score
        and cell.setting.metric in {"spearman", "pearson"}
    ]
    own = of_model.expected if of_model else ()
    names = sorted(dict.fromkeys(names), key=lambda name: name not in own)
    few, more = names[:_MOST_PRINTS], len(names[_MOST_PRINTS:])
    if not few:
        return ""
    said = ", ".join(f"{name} (your model's)" if name in own else name for name in few)
    return f"{value} {value.on} is printed in {said}{f' and {more} more' if more else ''}."


def _among_seeds(system: str, claim: Claim, measured: float | None) -> list[str]:
    """Return where the numbers lie among those of other seeds, where a system has been trained with many."""
    if system not in seeded_systems():
        return []
    averages, about = seeds(system)["Avg."], source("seeds")
    claimed = next((value.score for value in claim.values if value.task == AVERAGE), None)
    if claimed is None and len(claim.values) == 7:
        claimed = sum(value.score for value in claim.values) / 7
    return [
        f"Over {len(averages)} seeds {system} averages {averages.mean():.2f}, from {averages.min():.2f} to "
        f"{averages.max():.2f} ({about.address}: {about.note.partition('.')[0].lower()}).",
        *(
            f"{whose} {number:.2f} is above {(averages < number).sum()} of them."
            for whose, number in (("The claimed", claimed), ("Your", measured))
            if number is not None
        ),
    ]


def _subject(claim: Claim) -> str:
    if len(claim.values) > 1:
        tasks = ", ".join(claim.tasks)
        return (
            f"Your {len(claim.values)} numbers ({tasks})" if claim.row is None else f"What {claim.row.name} prints"
        )
    (value,) = claim.values
    return f"Your {value} {value.on}" if claim.row is None else f"The {value} {value.on} of {claim.row.name}"


def _lower(subject: str) -> str:
    return subject[0].lower() + subject[1:]


def _is(search: Search) -> str:
    return "are" if len(search.claim.values) > 1 and search.claim.row is None else "is"


def _setting(candidate: Candidate) -> str:
    return _phrases(candidate.changes) or "your setting"


def _phrases(changes: Sequence[Change]) -> str:
    return listed([change.choice.phrase_of(change.value) for change in changes])


def _numbers(search: Search, candidate: Candidate) -> str:
    """Return the one number that a setting gives; of several, the one that is farthest off."""
    values = search.claim.values
    if len(values) == 1:
        return f"{candidate.scores[0]:.{max(2, values[0].decimals)}f}"
    if candidate.fits:
        return "them all"
    score, value = candidate.farthest(values)
    return f"numbers up to {candidate.distance:.2f} off ({value.task}: {score:.2f} for {value.score:.2f})"


def _off(search: Search, candidate: Candidate) -> str:
    if len(candidate.scores) > 1:
        return ""
    difference = candidate.scores[0] - search.claim.values[0].score
    # A distance of 0.00 would read as a hit.
    distance = f"{abs(difference):.2f}"
    distance = "less than 0.01" if distance == "0.00" else distance
    return f", {distance} {'above' if difference > 0 else 'below'}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _is_stated(claim: Claim, change: Change) -> bool:
    return any((change.choice.name, str(change.value)) in value.stated for value in claim.values)
