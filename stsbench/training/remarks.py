"""What a person should know of a recipe, in sentences: for the log, the card, the record and the report."""

import math

from stsbench.base.words import listed
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_parts import CosineDecay
from stsbench.training.tasks import CONTRASTIVE

_HIGHEST_RATE = 0.01
_LOWEST_TEMPERATURE, _HIGHEST_TEMPERATURE = 1e-3, 10.0
_LARGEST_QUEUE = 65_536

SELECTED_ON_TEST = (
    "Selected on test: the checkpoint was chosen by its score on a test set, {task}, so that score is no result."
)
TRAINED_ON_TASKS = (
    "Trained on test sentences: the corpus is the evaluation tasks' own text, without its scores, so scores on "
    "those tasks are not like those of encoders that never saw it."
)
TRAINED_ON_TEST_PAIRS = (
    "Trained on test pairs: pairs of STS-B's dev and test sets were kept in the labelled data of {tasks}, so "
    "scores on STS-B, and on tasks that share pairs with it, are no results."
)
"""What the log, the card, the record and the report say of a training that has met what it is measured on."""


def traceable_distance(recipe: Recipe) -> tuple[float, float] | None:
    """Return MoCoSE's maximum traceable distance at the lowest and at the highest decay; None without a queue.

    d = 1 / (1 - eta) + queue / batch (section 5.7): how many steps back what a loss sees was made, infinite
    where the target stands still.
    """
    queue, target = recipe.negatives.queue, recipe.target
    if queue is None or target is None:
        return None
    decays = (target.decay.start, target.decay.end) if isinstance(target.decay, CosineDecay) else (target.decay,)
    terms = [math.inf if eta == 1 else 1 / (1 - eta) for eta in decays]
    batches = queue.size / recipe.optimiser.batch
    return min(terms) + batches, max(terms) + batches


def traceable_sentence(recipe: Recipe) -> str | None:
    """Return the maximum traceable distance as a sentence; None without a queue."""
    distance = traceable_distance(recipe)
    if distance is None:
        return None
    low, high = (f"{steps:.2f}" for steps in distance)
    steps = low if low == high else f"{low} to {high}"
    return f"maximum traceable distance {steps} steps (1 / (1 - decay) + queue / batch; MoCoSE, section 5.7)"


def tasks_sentence(recipe: Recipe) -> str | None:
    """Return the tasks, their measures and phases as a sentence; None without tasks."""
    if not recipe.tasks:
        return None
    tasks = listed([f"{name} ({part.kind}, {part.measure})" for name, part in recipe.tasks.items()])
    phases = [", ".join(phase.takes) for phase in recipe.phases]
    when = f"in phases: {', then '.join(phases)}" if phases else f"together with the {CONTRASTIVE} term"
    return f"heads, each scored on dev by its own measure: {tasks}; {when}"


def remarks_on_tests(recipe: Recipe) -> list[str]:
    """Return how the training has met what encoders are measured on, a sentence for each way.

    >>> from stsbench.training.recipe_files import read_recipe
    >>> remarks_on_tests(read_recipe("demo"))
    []
    """
    sentences = [SELECTED_ON_TEST.format(task=recipe.selection.task)] if recipe.selection.on_test else []
    sentences += [TRAINED_ON_TASKS] if recipe.corpus.of_tasks else []
    if recipe.keeps_test_pairs:
        pairs = [name for name, part in recipe.tasks.items() if part.sentences > 1]
        sentences.append(TRAINED_ON_TEST_PAIRS.format(tasks=listed(pairs)))
    return sentences


def remarks(recipe: Recipe) -> list[str]:
    """Return what is allowed but far from anything that trains well, a sentence for each.

    The limits are ours, far beyond what the papers of these methods and their code use; the largest queue is
    that of MoCo for images (He et al. 2020).
    """
    rate, temperature, queue = recipe.optimiser.learning_rate, recipe.objective.temperature, recipe.negatives.queue
    sentences = []
    if rate > _HIGHEST_RATE:
        sentences.append(
            f"optimiser.learning_rate {rate:g} is far above the papers' 1e-5 to 5e-5: expect the encoder to "
            "forget what it knew."
        )
    if not _LOWEST_TEMPERATURE <= temperature <= _HIGHEST_TEMPERATURE:
        effect = "alone the nearest sentence counts" if temperature < 1 else "all sentences count alike"
        sentences.append(f"objective.temperature {temperature:g} is far from the papers' 0.05: {effect}.")
    if queue is not None and queue.size > _LARGEST_QUEUE:
        sentences.append(
            f"negatives.queue.size {queue.size:,} holds {queue.size / recipe.optimiser.batch:,.0f} batches, the "
            "papers' 2 to 8: its oldest vectors are of an encoder long gone, and each loss reads them all."
        )
    return sentences
