"""How a choice is called: in a sentence, in a table, and what it means."""

from stsbench.base.words import listed
from stsbench.diagnosis.claim import Claim
from stsbench.diagnosis.grid import (
    AGGREGATION,
    AVERAGE_OF,
    COMPARISON,
    MAX_LENGTH,
    METRIC,
    POOLING,
    REGRESSED,
    TEXT,
    split_of,
    tasks_in,
)
from stsbench.diagnosis.search import NEIGHBOURHOOD, Candidate, Change, Search
from stsbench.records.record import AVERAGE
from stsbench.scoring.tasks import SAMPLE, SUPERVISED
from stsbench.statistics.similarity import SIMILARITIES

_PATTERNS = {
    POOLING: "pooling `{}`",
    AGGREGATION: "aggregation `{}`",
    METRIC: "{}",
    TEXT: "{}",
    MAX_LENGTH: "a maximum length of {} sub-words",
    COMPARISON: "{}",
    AVERAGE_OF: "the mean {}",
}
_NAMES = {
    METRIC: {"spearman": "Spearman's correlation", "pearson": "Pearson's correlation"},
    TEXT: {"senteval": "SentEval's text", "raw": "the raw text"},
    COMPARISON: {
        "cosine": "cosine",
        "dot": "the dot product",
        "euclidean": "the Euclidean distance",
        "manhattan": "the Manhattan distance",
        SUPERVISED: "the regressor that SentEval trains on it",
    },
}
_LABELS = {
    POOLING: "pooling {}",
    AGGREGATION: "aggregation {}",
    METRIC: "metric {}",
    TEXT: "{} text",
    MAX_LENGTH: "length {}",
    COMPARISON: "similarity {}",
    AVERAGE_OF: "mean {}",
}
_MEANINGS = {
    (AGGREGATION, "all"): "`all` is one correlation over all pairs, as SimCSE, ESimCSE and MoCoSE report.",
    (AGGREGATION, "mean"): "`mean` is the plain mean over subsets.",
    (AGGREGATION, "wmean"): "`wmean` is the mean over subsets weighted by pairs, SentEval's headline.",
    (POOLING, "cls"): "`cls` is the first token through the dense+tanh head: supervised SimCSE is scored so.",
    (POOLING, "cls_before_pooler"): (
        "`cls_before_pooler` is the first token without the head: unsupervised SimCSE and ESimCSE are scored so."
    ),
    (POOLING, "avg"): "`avg` is the mean of the last layer.",
    (POOLING, "avg_top2"): "`avg_top2` is the mean of the last two layers.",
    (POOLING, "avg_first_last"): (
        "`avg_first_last` is the mean of the first Transformer layer and the last; the papers' first-last numbers "
        "were taken with the embedding layer, `avg_static_last`."
    ),
    (POOLING, "avg_static_last"): (
        "`avg_static_last` is the mean of the embedding layer and the last: the papers' first-last numbers."
    ),
    (TEXT, "raw"): "The raw text is as first released; the papers score SentEval's, tokenised and lower-cased.",
    (split_of("SICK-R"), "all"): "MTEB scores SICK-R so, the papers its test split alone.",
    (
        split_of("STS-B"),
        "all",
    ): "The `all` entry for STS-B in the SimCSE scripts' output is this, not the test split.",
    (split_of("SICK-R"), "dev"): "The papers score its test split.",
    (split_of("STS-B"), "dev"): "Checkpoints are chosen by this number; the papers' tables have the test split.",
    (COMPARISON, SUPERVISED): "It was trained with one seed; another moves it by some tenths of a point.",
    (AVERAGE_OF, SAMPLE): "The sample comes with stsbench and is measured where no data is found.",
}


def phrase(choice: str, value: str) -> str:
    """Return a choice as the subject of a sentence.

    >>> phrase("aggregation", "wmean"), phrase("SICK-R split", "all")
    ('aggregation `wmean`', 'the whole of SICK-R (train, dev and test)')
    """
    if task := task_of(choice):
        return f"the whole of {task} (train, dev and test)" if value == "all" else f"{task}'s {value} split"
    if choice == AVERAGE_OF and _is_no_mean(value):
        return "the bundled sample" if value == SAMPLE else value
    name, comma, scaling = value.partition(", ")
    name = _NAMES.get(choice, {}).get(name, name)
    return _PATTERNS[choice].format(f"{name} of vectors {scaling}" if comma else name)


def label(choice: str, value: str) -> str:
    """Return a choice as an entry of a table.

    >>> label("aggregation", "wmean"), label("SICK-R split", "all")
    ('aggregation wmean', 'SICK-R all')
    """
    if task := task_of(choice):
        return f"{task} {value}"
    if choice == AVERAGE_OF and _is_no_mean(value):
        return value
    return _LABELS[choice].format(value.removesuffix(" to unit length"))


def meaning(choice: str, value: str) -> str:
    """Return a sentence on what a choice means and who takes it; empty where its name says all."""
    return _MEANINGS.get((choice, value), "")


def task_of(choice: str) -> str:
    """Return the task whose split a choice is; empty for other choices."""
    return choice.removesuffix(" split") if choice.endswith(" split") else ""


def _is_no_mean(average: str) -> bool:
    return average == SAMPLE or average.endswith(" alone")


_OPTIONS = {
    POOLING: "--pooling",
    AGGREGATION: "--aggregation",
    METRIC: "--metric",
    TEXT: "--text",
    MAX_LENGTH: "--max-length",
}


def options_of(search: Search, candidate: Candidate) -> str:
    """Return what to add to the person's own `stsbench run` to get a setting's scores; in the claim's tasks."""
    changed = {change.choice: change.value for change in candidate.changes}
    similarity, _, scaling = changed.pop(COMPARISON, "").partition(", ")
    tasks = list(search.claim.tasks)
    if AVERAGE in tasks:
        tasks = tasks_in(changed.get(AVERAGE_OF, ""), list(search.grid.scores))
    splits = {task: changed.get(split_of(task), "") for task in tasks}
    if similarity == SUPERVISED:
        splits |= dict.fromkeys(REGRESSED & splits.keys(), SUPERVISED)
    options = [f"--tasks {','.join(f'{task}:{split}' if split else task for task, split in splits.items())}"]
    options += [f"{option} {changed[choice]}" for choice, option in _OPTIONS.items() if choice in changed]
    options += [f"--similarity {similarity}"] if similarity in SIMILARITIES else []
    options += ["--no-normalize" if scaling.startswith("not ") else "--normalize"] if scaling else []
    return " ".join(options)


WEAK = 0.05
"""From this chance on, that a setting gives the claim is called weak evidence."""

_ELSEWHERE = "The grid does not hold other weights, seeds, prompts or precisions: look there."
_COUNTS = {2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six", 7: "Seven"}


def verdict(search: Search) -> str:
    """Return in a sentence or two what explains the claim, or that nothing does."""
    if search.default.fits:
        return f"{_subject(search.claim)} {_is(search)} what your setting gives: there is no gap to explain."
    if search.explanations:
        return _explained(search, search.explanations[0].best)
    return _unexplained(search)


def remarks(search: Search) -> list[str]:
    """Return what else a reader should know of the verdict, a sentence each."""
    if search.default.fits:
        return []
    if not search.explanations:
        return [*(_partly(search) if len(search.claim.values) > 1 else []), _ELSEWHERE]
    first = search.explanations[0]
    best = first.best
    found = [text for change in best.changes if (text := meaning(change.choice, change.value))]
    stated = [change for change in best.changes if _is_stated(search.claim, change)]
    if stated:
        found.append(f"The row itself states {listed([phrase(c.choice, c.value) for c in stated])}.")
    alike = [other for other in first.alike if other.count == best.count]
    if alike:
        found.append(f"The claim cannot tell it from {'; nor from '.join(_settings(other) for other in alike)}.")
    chance = search.chance(best.count)
    if chance >= WEAK:
        found.append(
            f"This is weak evidence: settings this simple would explain {_percent(chance)} of all numbers within "
            f"{NEIGHBOURHOOD:g} points of the claimed. Give the numbers of more tasks."
        )
    found.append(f"`stsbench run` gives it with `{options_of(search, best)}`.")
    return found


def _explained(search: Search, best: Candidate) -> str:
    subject, default = _subject(search.claim), _numbers(search, search.default)
    if len(best.changes) == 1:
        (change,) = best.changes
        found = f" ({_numbers(search, best)})" if len(best.scores) == 1 else ""
        sentence = f"{subject} {_is(search)} what {_settings(best)} gives{found}"
        return f"{sentence}; {_instead(change)} {default}."
    count = _COUNTS.get(len(best.changes), str(len(best.changes)))
    return (
        f"No single choice explains {_lower(subject)}. {count} together do: {_settings(best)} "
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
            f"The nearest with one change is {_settings(single)}: "
            f"{_numbers(search, single)}{_off(search, single)}."
        )
    if not search.coincidences and nearest.count > 1:
        sentences.append(
            f"The nearest of all changes {nearest.count} choices ({_settings(nearest)}): "
            f"{_numbers(search, nearest)}{_off(search, nearest)}."
        )
    return " ".join(sentences)


def _partly(search: Search) -> list[str]:
    """Return which of several numbers one setting gives, if it is most of them, and what gives the others."""
    most = search.most
    given = search.fitting(most)
    if 2 * sum(given) < len(given):
        return []
    fitting = [value.task for value, fits in zip(search.claim.values, given, strict=True) if fits]
    setting = _settings(most)
    found = [f"{setting[0].upper()}{setting[1:]} gives {len(fitting)} of the {len(given)}: {', '.join(fitting)}."]
    for value, fits in zip(search.claim.values, given, strict=True):
        alone = search.of(value)
        if fits:
            continue
        if alone.default.fits or (alone.explanations and alone.explanations[0].best.count == 1):
            best = alone.default if alone.default.fits else alone.explanations[0].best
            found.append(f"The {value} on {value.task} is what {_settings(best)} gives.")
        else:
            found.append(f"The {value} on {value.task} is what no single choice gives.")
    return found


def _subject(claim: Claim) -> str:
    if len(claim.values) > 1:
        tasks = ", ".join(claim.tasks)
        return (
            f"Your {len(claim.values)} numbers ({tasks})" if claim.row is None else f"What {claim.row.name} prints"
        )
    (value,) = claim.values
    on = "as the average" if value.task == AVERAGE else f"on {value.task}"
    return f"Your {value} {on}" if claim.row is None else f"The {value} {on} of {claim.row.name}"


def _lower(subject: str) -> str:
    return subject[0].lower() + subject[1:]


def _is(search: Search) -> str:
    return "are" if len(search.claim.values) > 1 and search.claim.row is None else "is"


def _settings(candidate: Candidate) -> str:
    return listed([phrase(change.choice, change.value) for change in candidate.changes]) or "your setting"


def _numbers(search: Search, candidate: Candidate) -> str:
    """Return the one number that a setting gives; of several, the one that is farthest off."""
    values = search.claim.values
    if len(values) == 1:
        return f"{candidate.scores[0]:.{max(2, values[0].decimals)}f}"
    if candidate.fits:
        return "them all"
    worst = max(range(len(values)), key=lambda k: abs(candidate.scores[k] - values[k].score))
    off, score, value = candidate.distance, candidate.scores[worst], values[worst]
    return f"numbers up to {off:.2f} off ({value.task}: {score:.2f} for {value.score:.2f})"


def _off(search: Search, candidate: Candidate) -> str:
    if len(candidate.scores) > 1:
        return ""
    difference = candidate.scores[0] - search.claim.values[0].score
    return f", {abs(difference):.2f} {'above' if difference > 0 else 'below'}"


def _instead(change: Change) -> str:
    """Return the beginning of a clause that ends in what the person's own setting gives."""
    own = phrase(change.choice, change.default)
    if change.choice == AVERAGE_OF:
        return f"{own} is"
    if change.choice == POOLING:
        return f"with `{change.default}`, your setting, the model gives"
    if change.choice == AGGREGATION:
        papers = ", the papers' aggregation," if change.default == "all" else ""
        return f"under `{change.default}`{papers} the same vectors give"
    if change.choice in {METRIC, COMPARISON}:
        return f"by {own} the same vectors give"
    return f"{own} gives"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _is_stated(claim: Claim, change: Change) -> bool:
    return any((change.choice, change.value) in value.stated for value in claim.values)
