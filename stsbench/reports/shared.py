"""What the tasks of a record share: pairs that an average counts in several tasks."""

from itertools import combinations
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.data.plain_table import PlainTable
from stsbench.data.sentence_ids import FOLDED, unordered_pairs
from stsbench.records.labels import task_labels
from stsbench.records.record import RunRecord
from stsbench.render.section import Section
from stsbench.render.table import Table
from stsbench.reports.scores import Runs, task_names

if TYPE_CHECKING:
    pass

_NOTE = (
    "Distinct pairs and sentences that both tasks have, by letters and digits, in either order; %: of the "
    "distinct pairs of each. An average over both counts them twice: stsbench run --exclude-overlap counts each "
    "pair once."
)


def shared_sentences(runs: Runs) -> Section:
    """Return a row for each two tasks of a record that share pairs, from the pair tables that are there.

    A record without a pair table, or of a version that did not number sentences, has no rows: its scores stand
    elsewhere.
    """
    called = task_names(runs)
    rows: dict[tuple[str, str], dict[str, object]] = {}
    for label, record in runs.items():
        for one, other, counts in _of_record(record):
            a, b = called[label, one], called[label, other]
            rows.setdefault((a, b), {"a": a, "b": b} | counts)
    section = Section("shared", "Shared sentences")
    if not rows:
        return section
    import pandas as pd

    table = Table(
        pd.DataFrame(list(rows.values())),
        "Pairs that stand in two tasks",
        decimals=1,
        name="shared-pairs",
        notes=(_NOTE,),
    )
    return Section("shared", "Shared sentences", tables=(table,))


def _of_record(record: RunRecord) -> list[tuple[str, str, dict[str, object]]]:
    if len(record.scores) < 2 or record.is_imported:
        return []
    try:
        rows = record.rows_by_score()
    except UserError:
        return []
    pairs_alone = [score for score in record.scores if score.about.by_similarity and not score.training]
    labels = dict(zip(task_labels(pairs_alone), pairs_alone, strict=True))
    sets = {label: _pairs(rows[score.key]) for label, score in labels.items()}
    shared: list[tuple[str, str, dict[str, object]]] = []
    for one, other in combinations(sets, 2):
        if labels[one].task == labels[other].task:
            continue  # one task in two texts, or a part of it in another split, is no overlap of tasks
        pairs = sets[one] & sets[other]
        if pairs:
            sentences = {side for pair in sets[one] for side in pair} & {s for pair in sets[other] for s in pair}
            row: dict[str, object] = {"pairs": len(pairs), "sentences": len(sentences)}
            shares = {"% of a": 100 * len(pairs) / len(sets[one]), "% of b": 100 * len(pairs) / len(sets[other])}
            shared.append((one, other, row | shares))
    return shared


def _pairs(rows: PlainTable) -> set[tuple[int, int]]:
    return set(unordered_pairs(*(rows[name] for name in FOLDED)))
