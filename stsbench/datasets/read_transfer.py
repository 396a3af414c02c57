"""The transfer tasks: labelled sentences and labelled sentence pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from stsbench.datasets.catalogue import data_set, data_sets, text_variant
from stsbench.datasets.lines import CataloguedLines
from stsbench.datasets.reading import PartRead, account, demand_equal_length, read_parts, table_rows
from stsbench.datasets.schema import Label, TextVariant
from stsbench.datasets.tables import LabelledData
from stsbench.foundation.errors import UserError


class _Item(NamedTuple):
    split: str
    item_id: str
    label: Label
    sentence1: str
    sentence2: str | None


Classes = dict[str, Label]
"""The labels that a task may have, by how a file spells them."""


def load_labelled(task: str, data_dirs: Sequence[Path] = (), *, text: str = "senteval") -> LabelledData:
    """Read a labelled task: MR, CR, SUBJ, MPQA, SST2, SST5, TREC, MRPC, SICK-E or SNLI (dev and test).

    Labels are SentEval's: of MR, CR and MPQA positive is 1; of SUBJ objective is 1; TREC's is the coarse
    class; SICK-E's and SNLI's are the words in the files. Items come in the files' order (of the tasks with
    a file for each class the one for 1 first, as SentEval has it). A sentence is the file's own text without
    the whitespace around it. A few sentences of CR and MPQA are empty, in everyone's copy.

    An `item_id` is `<split>-<line>` with lines counted from 1, SICK's own number, or `<label>-<line>` for
    tasks without splits.

    Args:
        task: the task's name, in any case.
        data_dirs: folders to look in first (default: `STSBENCH_DATA`, then the cache).
        text: "senteval", or "sample" for the labelled sets of the bundled sample.

    Raises:
        UserError: if the task or text does not exist, or its files are missing or broken.
    """
    entry = data_set(task)
    if entry.classes is None:
        labelled = ", ".join(name for name, other in data_sets().items() if other.kind == "labelled")
        raise UserError(f"{entry.task} has similarity scores, not labels: choose one of {labelled}.")
    variant = text_variant(entry, text)
    reads = read_parts(entry, variant, variant.parts, data_dirs)
    read_items = _LAYOUTS[variant.layout]
    spelt: Classes = {str(label): label for label in entry.classes}
    found = [list(read_items(read, variant, spelt)) for read in reads]
    about = account(entry.task, reads, [len(items) for items in found])

    import pandas as pd

    rows = [item for items in found for item in items]
    return LabelledData(
        task=entry.task,
        text=text,
        items=pd.DataFrame(rows, columns=list(_Item._fields), dtype=object),
        classes=entry.classes,
        status=about.status,
        sha256=about.sha256,
        files=about.files,
        problems=about.problems,
    )


def _from_one_label(read: PartRead, _variant: TextVariant, classes: Classes) -> Iterator[_Item]:
    (file,) = read.files
    label = classes[str(read.part.label)]
    for line, text in enumerate(file.lines, start=1):
        yield _Item(read.part.split, f"{label}-{line}", label, text.strip(), None)


def _from_label_first(read: PartRead, _variant: TextVariant, classes: Classes) -> Iterator[_Item]:
    (file,) = read.files
    for line, text in enumerate(file.lines, start=1):
        spelling, _, sentence = text.strip().partition(" ")
        label = _label(spelling.partition(":")[0], classes, file, line)
        yield _Item(read.part.split, f"{read.part.split}-{line}", label, sentence.strip(), None)


def _from_parallel(read: PartRead, _variant: TextVariant, classes: Classes) -> Iterator[_Item]:
    first, second, labels = read.files
    demand_equal_length(first, second)
    demand_equal_length(first, labels)
    rows = zip(first.lines, second.lines, labels.lines, strict=True)
    for line, (sentence1, sentence2, spelling) in enumerate(rows, start=1):
        label = _label(spelling.strip(), classes, labels, line)
        item_id = f"{read.part.split}-{line}"
        yield _Item(read.part.split, item_id, label, sentence1.strip(), sentence2.strip())


def _from_table(read: PartRead, variant: TextVariant, classes: Classes) -> Iterator[_Item]:
    (file,) = read.files
    columns = variant.columns
    assert columns is not None, "the schema demands columns for a table"
    for line, cells in table_rows(file, variant):
        split = read.part.split if columns.split is None else cells[columns.split]
        yield _Item(
            split=split,
            item_id=f"{split}-{line}" if columns.id is None else cells[columns.id],
            label=_label(cells[columns.value].strip(), classes, file, line),
            sentence1=cells[columns.sentence1].strip(),
            sentence2=None if columns.sentence2 is None else cells[columns.sentence2].strip(),
        )


_LAYOUTS: dict[str, Callable[[PartRead, TextVariant, Classes], Iterator[_Item]]] = {
    "one-label": _from_one_label,
    "label-first": _from_label_first,
    "parallel": _from_parallel,
    "table": _from_table,
}


def _label(spelling: str, classes: Classes, file: CataloguedLines, line: int) -> Label:
    if spelling not in classes:
        raise UserError(
            f"{file.path}, line {line}: {spelling!r} is not a label of this task ({', '.join(classes)}); "
            "mend the line or get the file again."
        )
    return classes[spelling]
