"""What the tasks of a record share: pairs that an average counts in several tasks."""

from itertools import chain, combinations

from stsbench.base.errors import UserError
from stsbench.data.shared import FOLDED, unordered_pairs
from stsbench.records.labels import task_labels
from stsbench.records.record import RunRecord
from stsbench.render.section import Section
from stsbench.render.table import Table
from stsbench.reports.scores import Runs, task_names

_NOTE = (
    "Distinct pairs and sentences that both tasks have, by letters and digits, in either order; %: of the "
    "distinct pairs of each. An average over both counts them twice: stsbench run --exclude-overlap counts each "
    "pair once."
)


def shared_sentences(runs: Runs) -> Section:
    """Return a row for each two tasks of a record that share pairs, from the items tables that are there.

    A record without an items table has no rows: its scores stand elsewhere.
    """
    called = task_names(runs)
    rows: dict[tuple[str, str], dict[str, object]] = {}
    for label, record in runs.items():
        for first, second, counts in _of_record(record):
            a, b = called[label, first], called[label, second]
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
    by_key = {key: set(unordered_pairs(*(of_task[name] for name in FOLDED))) for key, of_task in rows.items()}
    compared = [score for score in record.scores if score.about.by_similarity and not score.training]
    labels = dict(zip(task_labels(compared), compared, strict=True))
    sets = {label: by_key[score.key] for label, score in labels.items()}
    shared: list[tuple[str, str, dict[str, object]]] = []
    for a, b in combinations(sets, 2):
        pairs = sets[a] & sets[b]
        # One task in two texts, or a part of it in another split, is no overlap of tasks.
        if not pairs or labels[a].task == labels[b].task:
            continue
        sentences = set(chain(*sets[a])) & set(chain(*sets[b]))
        shares = {"% of a": 100 * len(pairs) / len(sets[a]), "% of b": 100 * len(pairs) / len(sets[b])}
        shared.append((a, b, {"pairs": len(pairs), "sentences": len(sentences), **shares}))
    return shared
