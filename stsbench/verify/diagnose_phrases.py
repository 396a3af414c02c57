"""How a choice is called: in a sentence, in a table, and what it means."""

from stsbench.evaluation.tasks import SAMPLE, SUPERVISED
from stsbench.verify.diagnose_grid import (
    AGGREGATION,
    AVERAGE_OF,
    COMPARISON,
    MAX_LENGTH,
    METRIC,
    POOLING,
    TEXT,
    split_of,
)

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
