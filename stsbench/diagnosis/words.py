"""The facts, the verdict and the remarks of a diagnosis in words."""

from typing import Any

from stsbench.base.words import listed
from stsbench.diagnosis.axes import AVERAGE_OF, TEXT
from stsbench.diagnosis.claim import Claim
from stsbench.diagnosis.search import NEIGHBOURHOOD, WEAK, Candidate, Search
from stsbench.encoders.protocol import Identity
from stsbench.published.catalogue import (
    checkpoint_named_like,
    checkpoint_of_system,
    identified_checkpoint,
    known_checkpoint,
)
from stsbench.published.schema import KnownCheckpoint
from stsbench.records.kinds import AVERAGE

_ELSEWHERE = (
    "Not tried: other weights and seeds, prompts that the checkpoint does not name, and SentEval's trained "
    "regressors (`stsbench run --tasks STS-B:supervised,SICK-R:supervised`)."
)
_COUNTS = {2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six", 7: "Seven"}


def verdict(search: Search, beyond: Search | None = None) -> str:
    """Returns in a few sentences what explains the claim, or that nothing does.

    `beyond` is the search beyond the grid, if there was one.
    """
    subject, default = _subject(search.claim), search.default
    if default.fits:
        return f"Your setting gives {_lower(subject)}: there is no gap to explain."
    own = f"Your setting {_result(search, default)}."
    if search.explanations:
        best = search.explanations[0].best
        if len(best.changes) > 1:
            together = (
                f"{_COUNTS.get(best.count, best.count)} together do: {setting(best)} ({_result(search, best)})."
            )
            return f"No single choice explains {_lower(subject)}. {together} {own}"
        cause = f"{subject} {'come' if len(best.scores) > 1 else 'comes'} from {setting(best)}"
        number = f", which {_result(search, best)}" if len(best.scores) == 1 else ""
        return f"{cause}{number}. {_upper(best.changes[0].default)} {_result(search, default)}."
    if search.coincidences:
        count = search.coincidences[0].best.count
        share = f"{100 * search.chance(count):.0f} %"
        sentences = [
            f"No simple setting gives {_lower(subject)}. Changing {count} choices at once does, but that gives "
            f"{share} of all numbers nearby, so it explains nothing. {own}"
        ]
    else:
        sentences = [f"None of {search.settings:,} settings gives {_lower(subject)}. {own}"]
    single, nearest = search.nearest_single, search.nearest
    if single.count:
        sentences.append(f"The nearest with one change, {setting(single)}, {_result(search, single)}.")
    if not search.coincidences and nearest.count > 1:
        sentences.append(f"The nearest of all, {setting(nearest)}, {_result(search, nearest)}.")
    if beyond is not None and beyond.nearest.count:
        sentences.append(
            f"Nor does any of {beyond.settings - 1:,} settings beyond the grid: the nearest, "
            f"{setting(beyond.nearest)}, {_result(beyond, beyond.nearest)}."
        )
    return " ".join(sentences)


def remarks(search: Search) -> list[str]:
    """Returns what else the reader should know of the verdict, as sentences."""
    if search.default.fits:
        return []
    if not search.explanations:
        return [_ELSEWHERE]
    first = search.explanations[0]
    best = first.best
    sentences = [change.meaning for change in best.changes if change.meaning]
    if alike := [setting(candidate) for candidate in first.alike if candidate.count == best.count]:
        sentences.append(f"The claim cannot distinguish it from {'; or from '.join(alike)}.")
    chance = search.chance(best.count)
    if chance >= WEAK:
        sentences.append(
            f"This is weak evidence: settings this simple would explain {100 * chance:.0f} % of all numbers "
            f"within {NEIGHBOURHOOD:g} points of the claim. Give the numbers of more tasks."
        )
    return sentences


def setting(candidate: Candidate) -> str:
    """Returns the changes of a setting in words."""
    return listed([change.label for change in candidate.changes]) or "your setting"


def command(search: Search, candidate: Candidate) -> str:
    """Returns the options of `stsbench run` that give a setting's scores, besides your own."""
    changes = candidate.changes[len(candidate.point.changes) :]
    changed: dict[str, Any] = {change.axis.name: change.value for change in changes}
    mean = changed.get(AVERAGE_OF, search.grid.axes[-1].values[0])
    tasks = mean.tasks if AVERAGE in search.claim.tasks else search.claim.tasks
    splits = {task: changed.get(f"{task} split", "") for task in tasks}
    if changed.get(TEXT.name) == "raw":
        splits = {task: split.replace("senteval-v2", "raw-v2") for task, split in splits.items()}
    names = ",".join(f"{task}:{split}" if split else task for task, split in splits.items())
    options = [f"--tasks {names}", *(change.option for change in changes), *candidate.point.options]
    text = " ".join(filter(None, options))
    lacking = [change.label for change in candidate.point.changes if not change.option]
    if lacking:
        return f"`stsbench run` has no option for {listed(lacking)}. The rest is `{text}`."
    return f"`stsbench run` gives it with `{text}`."


def _subject(claim: Claim) -> str:
    if len(claim.values) > 1:
        numbers = f"Your {len(claim.values)} numbers ({', '.join(claim.tasks)})"
        return numbers if claim.row is None else f"The numbers of {claim.row.name}"
    (value,) = claim.values
    return f"Your {value} {value.on}" if claim.row is None else f"The {value} {value.on} of {claim.row.name}"


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def _result(search: Search, candidate: Candidate) -> str:
    """Returns what a setting gives and how far off it is; for several numbers, how many match and the farthest."""
    values = search.claim.values
    if len(values) == 1:
        score, value = candidate.scores[0], values[0]
        number = f"gives {score:.{max(2, value.decimals)}f}"
        if candidate.fits:
            return number
        # A distance of 0.00 would look like a match.
        distance = f"{candidate.distance:.2f}" if candidate.distance >= 0.005 else "less than 0.01"
        return f"{number}, {distance} {'above' if score > value.score else 'below'}"
    given = sum(search.given_by(candidate))
    if candidate.fits:
        return "gives them all"
    score, value = candidate.farthest(values)
    return (
        f"gives {given} of {len(values)} and is up to {candidate.distance:.2f} off "
        f"({value.task}: {score:.2f} instead of {value.score:.2f})"
    )


def facts(claim: Claim, identity: Identity) -> list[str]:
    """Returns what published documents state, as sentences: first how the model differs from the published one."""
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
        sentences += _differences(expected, identity, with_files=expected == of_model)
    return [*sentences, *(row.row.notes if row else ())]


def likely_templates(claim: Claim, model: str) -> tuple[str, ...]:
    """Returns the templates that the model and the claimed row are known to use."""
    of_row = checkpoint_of_system(claim.row.row.system) if claim.row else None
    entries = (of_row, known_checkpoint(model) or checkpoint_named_like(model))
    return tuple(entry.template for entry in entries if entry and entry.template)


def _differences(expected: KnownCheckpoint, identity: Identity, *, with_files: bool) -> list[str]:
    """Returns how a known checkpoint's files and use differ from yours."""
    compared = expected.files_compared(identity.weights_sha256, identity.tokenizer_sha256) if with_files else ()
    sentences = [
        f"Your {what} differ from those that {expected.name} was scored with (SHA-256 {own[:12]}…)."
        for what, is_same, own in compared
        if not is_same
    ]
    use = identity.use
    if expected.pooling and expected.pooling != use.pooling:
        sentences.append(
            f"{expected.name} was scored with pooling {expected.pooling} ({expected.pooling_source}); you use "
            f"{use.pooling}."
        )
    template = use.own_template.name if use.own_template else ""
    if expected.template and expected.template != template:
        sentences.append(
            f"{expected.name} was scored with template {expected.template}; you use {template or 'none'}."
        )
    return sentences
