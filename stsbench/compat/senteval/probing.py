"""The ten probing tasks (Conneau et al. 2018), where their files are."""

from pathlib import Path

import pandas as pd

from stsbench.datasets import LabelledData
from stsbench.foundation.errors import UserError

FILES = {
    "Length": "sentence_length.txt",
    "WordContent": "word_content.txt",
    "Depth": "tree_depth.txt",
    "TopConstituents": "top_constituents.txt",
    "BigramShift": "bigram_shift.txt",
    "Tense": "past_present.txt",
    "SubjNumber": "subj_number.txt",
    "ObjNumber": "obj_number.txt",
    "OddManOut": "odd_man_out.txt",
    "CoordinationInversion": "coordination_inversion.txt",
}
"""The file of each task, in the folder `probing`."""

_SPLITS = {"tr": "train", "va": "dev", "te": "test"}


def load_probing(task: str, task_path: Path) -> LabelledData:
    """Read a probing task: lines of split, label and sentence, separated by tabs.

    Raises:
        UserError: if the file is missing or a line is broken.
    """
    path = task_path / "probing" / FILES[task]
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{task} needs {path}, which cannot be read: {error}.") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        cells = line.rstrip().split("\t")
        if len(cells) < 3 or cells[0] not in _SPLITS:
            raise UserError(f"{path}, line {number}: expected tr, va or te, a label and a sentence.")
        rows.append((_SPLITS[cells[0]], f"{number}", cells[1], cells[-1], None))
    items = pd.DataFrame(rows, columns=["split", "item_id", "label", "sentence1", "sentence2"], dtype=object)
    classes = sorted(set(items.loc[items["split"] == "train", "label"]))
    strange = items.loc[~items["label"].isin(classes)]
    if len(strange):
        row = strange.iloc[0]
        raise UserError(f"{path}, line {row['item_id']}: label {row['label']!r} does not occur in train.")
    return LabelledData(task, "senteval", items, tuple(classes), "user", "", (), ())
