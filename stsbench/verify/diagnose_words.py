"""What a search found, in words: which choice explains a number, or that none does."""

from stsbench.evaluation.tasks import SAMPLE
from stsbench.records.record import AVERAGE
from stsbench.verify.diagnose_claim import Claim
from stsbench.verify.diagnose_grid import (
    AGGREGATION,
    AVERAGE_OF,
    COMPARISON,
    MAX_LENGTH,
    METRIC,
    PLAIN,
    POOLING,
    ROUNDED,
    TEXT,
)
from stsbench.verify.diagnose_search import Candidate, Change, Search

WEAK = 0.05
"""From this chance on, that a setting gives a single number is called weak evidence."""

_PATTERNS = {
    POOLING: "pooling `{}`",
    AGGREGATION: "aggregation `{}`",
    METRIC: "{}",
    TEXT: "{}",
    MAX_LENGTH: "a maximum length of {} sub-words",
}
_NAMES = {
    METRIC: {"spearman": "Spearman's correlation", "pearson": "Pearson's correlation"},
    TEXT: {"senteval": "SentEval's tokenised, lower-cased text", "raw": "the raw text, cased and not tokenised"},
}
_MEANINGS = {
    AGGREGATION: {
        "all": "one correlation over all pairs, as SimCSE, ESimCSE and MoCoSE report",
        "mean": "the plain mean over subsets",
        "wmean": "the mean over subsets weighted by pairs, SentEval's headline",
    },
    POOLING: {
        "cls": "the first token through the dense+tanh head, as supervised SimCSE",
        "cls_before_pooler": "the first token without the head, as unsupervised SimCSE and ESimCSE",
        "avg": "the mean of the last layer",
        "avg_top2": "the mean of the last two layers",
        "avg_first_last": "the mean of the first Transformer layer and the last",
        "avg_static_last": "the mean of the embedding layer and the last, the published first-last",
        "max": "the largest value of each dimension",
        "last": "the last token",
    },
}
_COMPARISONS = {
    "cosine": "cosine",
    "dot": "the dot product",
    "euclidean": "the Euclidean distance",
    "manhattan": "the Manhattan distance",
    "supervised": "the regressors that SentEval trains on STS-B and SICK-R",
}
_SPLITS = {"train": "its train split", "dev": "its dev split", "test": "its test split, as in the papers"}
_ALL_PAIRS = "all its pairs, train, dev and test together"
_WHO_TAKES_ALL = {"SICK-R": ", as MTEB does", "STS-B": ", as `all` in the SimCSE scripts' output does"}


def verdict(search: Search) -> str:
    """Return in one or two sentences what explains the claim."""
    if search.default.fits:
        return f"{_subject(search.claim)} {_is(search)} what your setting gives: there is no gap to explain."
    if search.explanations:
        return _explained(search, search.explanations[0].best)
    return _unexplained(search)


def remarks(search: Search) -> list[str]:
    """Return what else a reader should know of the verdict, a sentence each."""
    if search.default.fits or not search.explanations:
        return _partly(search) if len(search.claim.values) > 1 and not search.default.fits else []
    first = search.explanations[0]
    found = [
        f"The claim cannot tell it from {_settings(other)}, which gives the same numbers."
        for other in first.alike
        if other.count == first.best.count
    ]
    stated = [change for change in first.best.changes if _is_stated(search.claim, change)]
    if stated:
        found.append(f"The row says so itself: {'; '.join(describe(change) for change in stated)}.")
    chance = search.chance(first.best.count)
    if chance is not None and chance >= WEAK:
        found.append(
            f"One number is weak evidence: settings this simple explain {100 * chance:.0f} % of all numbers "
            "within two points of it. Give the numbers of more tasks."
        )
    return found


def describe(change: Change) -> str:
    """Return a change as a person would say it.

    >>> describe(Change("aggregation", "wmean", "all"))
    'aggregation `wmean` (the mean over subsets weighted by pairs, SentEval's headline)'
    """
    return _phrase(change.choice, change.value)


def _explained(search: Search, best: Candidate) -> str:
    subject, settings = _subject(search.claim), _settings(best)
    if len(best.changes) == 1:
        (change,) = best.changes
        sentence = f"{subject} {_is(search)} what {settings} gives{_how_near(search, best)}"
    else:
        count = {2: "Two", 3: "Three", 4: "Four"}.get(len(best.changes), str(len(best.changes)))
        sentence = (
            f"No single choice explains {_lower(subject)}. {count} together do: {settings} "
            f"give {_numbers(search, best)}"
        )
        return f"{sentence}; your setting gives {_numbers(search, search.default)}."
    return f"{sentence}; {_instead(change)} {_numbers(search, search.default)}."


def _unexplained(search: Search) -> str:
    subject, default, nearest = _subject(search.claim), search.default, search.nearest
    sentences = [
        f"None of {search.settings:,} settings gives {_lower(subject)}.",
        f"Your own setting gives {_numbers(search, default)}{_off(search, default)}.",
    ]
    single = search.nearest_single
    if single.changes:
        sentences.append(
            f"The nearest with one change is {_settings(single)}: "
            f"{_numbers(search, single)}{_off(search, single)}."
        )
    if nearest.changes != single.changes and nearest.count:
        sentences.append(
            f"The nearest of all changes {nearest.count} choices ({_settings(nearest)}): "
            f"{_numbers(search, nearest)}{_off(search, nearest)}."
        )
    return " ".join(sentences)


def _partly(search: Search) -> list[str]:
    """Return which of several numbers one setting gives, and what gives each of the others alone."""
    most = search.most
    given = search.fitting(most)
    if not any(given):
        return []
    fitting = [value.task for value, fits in zip(search.claim.values, given, strict=True) if fits]
    setting = _settings(most) if most.changes else "your setting"
    found = [f"{setting[0].upper()}{setting[1:]} gives {len(fitting)} of the {len(given)}: {', '.join(fitting)}."]
    for value, fits in zip(search.claim.values, given, strict=True):
        if fits:
            continue
        alone = search.of(value)
        if alone.default.fits:
            found.append(f"{value} on {value.task} is what your setting gives.")
        elif alone.explanations and alone.explanations[0].best.count == 1:
            found.append(f"{value} on {value.task} is what {_settings(alone.explanations[0].best)} gives.")
        else:
            found.append(f"{value} on {value.task} is what no single choice gives.")
    return found


def _subject(claim: Claim) -> str:
    whose = "Your" if claim.row is None else f"{claim.row.name}:"
    if len(claim.values) > 1:
        tasks = ", ".join(claim.tasks)
        numbers = f"{len(claim.values)} numbers ({tasks})"
        return f"Your {numbers}" if claim.row is None else f"What {claim.row.name} prints ({tasks})"
    (value,) = claim.values
    of = "the average" if value.task == AVERAGE else value.task
    return f"{whose} {value} {'as' if value.task == AVERAGE else 'on'} {of}"


def _lower(subject: str) -> str:
    return subject[0].lower() + subject[1:] if subject.startswith(("Your", "What")) else subject


def _is(search: Search) -> str:
    return "are" if len(search.claim.values) > 1 and search.claim.row is None else "is"


def _settings(candidate: Candidate) -> str:
    return " and ".join(describe(change) for change in candidate.changes) or "your setting"


def _numbers(search: Search, candidate: Candidate) -> str:
    """Return the one number that a setting gives, or how far its worst is off."""
    if len(candidate.scores) == 1:
        return f"{candidate.scores[0]:.{max(2, search.claim.values[0].decimals)}f}"
    worst = max(
        range(len(candidate.scores)), key=lambda k: abs(candidate.scores[k] - search.claim.values[k].score)
    )
    value = search.claim.values[worst]
    return f"numbers up to {candidate.distance:.2f} away ({candidate.scores[worst]:.2f} on {value.task})"


def _off(search: Search, candidate: Candidate) -> str:
    if len(candidate.scores) > 1:
        return ""
    difference = candidate.scores[0] - search.claim.values[0].score
    return f", {abs(difference):.2f} {'above' if difference > 0 else 'below'}"


def _how_near(search: Search, best: Candidate) -> str:
    if len(best.scores) > 1:
        return f", to within {max(best.distance, 0.01):.2f}"
    return f" ({_numbers(search, best)})"


def _instead(change: Change) -> str:
    """Return the beginning of a clause that ends in what the person's own setting gives."""
    choice, default = change.choice, change.default
    if choice == AVERAGE_OF:
        return "the mean of all tasks is"
    if choice == POOLING:
        return f"with `{default}`, your setting, the model gives"
    if choice in {TEXT, MAX_LENGTH}:
        return f"with {_phrase(choice, default)} the model gives"
    if choice == AGGREGATION:
        papers = ", the papers' aggregation," if default == "all" else ""
        return f"under `{default}`{papers} the same vectors give"
    if choice in {METRIC, COMPARISON}:
        return f"by {_phrase(choice, default)}{',' if choice == METRIC else ''} the same vectors give"
    return f"{_phrase(choice, default).removeprefix(f'{_task_of(choice)} ')}, the same vectors give"


def _phrase(choice: str, value: str) -> str:
    if choice == AVERAGE_OF:
        return _average(value)
    if choice == COMPARISON:
        similarity, _, scaling = value.partition(", ")
        return _COMPARISONS[similarity] + (f" of vectors {scaling}" if scaling else "")
    if task := _task_of(choice):
        split = _ALL_PAIRS + _WHO_TAKES_ALL.get(task, "") if value == "all" else _SPLITS[value]
        return f"{task} on {split}"
    phrase = _PATTERNS[choice].format(_NAMES.get(choice, {}).get(value, value))
    meaning = _MEANINGS.get(choice, {}).get(value)
    return f"{phrase} ({meaning})" if meaning else phrase


def _task_of(choice: str) -> str:
    return choice.removesuffix(" split") if choice.endswith(" split") else ""


def _average(value: str) -> str:
    if value == SAMPLE:
        return "the bundled sample, 252 pairs, and none of the tasks"
    if value in {PLAIN, ROUNDED} or value.startswith("without "):
        return f"the {value}" if value in {PLAIN, ROUNDED} else f"the mean {value}"
    return f"{value} alone"


def _is_stated(claim: Claim, change: Change) -> bool:
    return any((change.choice, change.value) in value.stated for value in claim.values)
