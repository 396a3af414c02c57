"""Which scored pairs share sentences, in each task and across tasks: what intervals have to reckon with."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sample, load_sts
from stsbench.data.catalogue import SENTEVAL, data_set, paper_tasks, task_split_text
from stsbench.data.overview import DataOverview
from stsbench.data.sentence_ids import unordered_pairs
from stsbench.data.shared import NUMBERS, RELEASED
from stsbench.data.tables import StsData
from stsbench.statistics.dependence import Sharing

TOGETHER = "all tasks"
"""The rows of all tasks as one graph."""

_SAMPLE = "sample"


def sharing(tasks: Sequence[str] = (), data_dirs: Sequence[Path] = ()) -> DataOverview:
    """Return what the pairs of tasks share: the graph whose nodes are distinct sentences, and pairs its edges.

    Columns: task, split, same ("as released", or by "letters and digits" alone, case folded, since two releases
    tokenise one sentence differently), pairs, sentences (distinct), components, largest component (its pairs),
    sharing (% of pairs that share a sentence with another), repeated (% whose two sentences another pair has too),
    most (pairs that the most frequent sentence stands in), elsewhere (% of pairs that are a pair of another of
    these tasks). Of several tasks there are rows for all of them as one graph. Readers are shown a task as
    released, and all tasks both ways.

    Args:
        tasks: the tasks to look at, with a split (`STS-B:dev`) or a text (`STS12@raw`) where wanted; by default
            the test splits of all STS tasks, as SentEval released them.
        data_dirs: folders to look for data in first.

    Raises:
        UserError: if a task is none with scored pairs, or its data is not here or broken.

    >>> sharing(["sample"]).frame.loc[0, ["pairs", "sentences", "components"]].astype(int).to_list()
    [252, 504, 252]
    """
    import pandas as pd

    names = tasks or paper_tasks()
    read = [_read(name, data_dirs) for name in names]
    rows = [row for same in NUMBERS for row in _rows(read, same)]
    frame = pd.DataFrame(rows)
    order = {label: place for place, label in enumerate(dict.fromkeys(frame["task"]))}
    frame = frame.sort_values("task", key=lambda column: column.map(order), kind="stable", ignore_index=True)
    shown = frame[(frame["task"] == TOGETHER) | (frame["same"] == RELEASED) | (len(read) == 1)]
    return DataOverview(frame, shown.reset_index(drop=True))


def _read(name: str, data_dirs: Sequence[Path]) -> StsData:
    task, split, text = task_split_text(name)
    if task == _SAMPLE:
        if split or text:
            raise UserError("the sample has one split and one text: name it `sample`.")
        return load_sample()
    texts = data_set(task).texts
    usual = SENTEVAL if SENTEVAL in texts else next(iter(texts))
    return load_sts(task, split or "test", text or usual, data_dirs)


def _rows(tasks: Sequence[StsData], same: str) -> list[dict[str, object]]:
    ids = [tuple(NUMBERS[same](task.table[side]) for side in ("sentence1", "sentence2")) for task in tasks]
    edges = [unordered_pairs(*sides) for sides in ids]
    graphs = [Sharing.of(*sides) for sides in ids]
    rows, elsewhere = [], list[list[bool]]()
    for number, (task, graph) in enumerate(zip(tasks, graphs, strict=True)):
        others = {edge for place, of_task in enumerate(edges) if place != number for edge in of_task}
        elsewhere.append([edge in others for edge in edges[number]])
        rows.append(_row(task.task, task.split, same, graph, elsewhere[-1]))
    if len(tasks) > 1:
        rows.append(_row(TOGETHER, "", same, Sharing.join(graphs), list(chain(*elsewhere))))
    return rows


def _row(task: str, split: str, same: str, graph: Sharing, elsewhere: Sequence[bool]) -> dict[str, object]:
    about = graph.describe()
    return {
        "task": task,
        "split": split,
        "same": same,
        "pairs": about.pairs,
        "sentences": about.sentences,
        "components": about.components,
        "largest component": about.largest_component,
        "sharing": 100 * about.sharing,
        "repeated": 100 * about.repeated,
        "most": about.largest_degree,
        "elsewhere": 100 * float(np.mean(elsewhere)),
    }
