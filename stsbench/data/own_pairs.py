"""Your own scored pairs (`--data pairs.tsv`)."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.files import require_file, sha256_of
from stsbench.base.machine import require_memory
from stsbench.data.reading import Column, Schema, as_number, as_sentence, read_table
from stsbench.data.rows import PACKED
from stsbench.data.shared import sentence_ids, unordered_pairs
from stsbench.data.tables import FileRead, Pair, StsData, combined_sha256, pair_table

PAIRS = (
    Column("sentence1", as_sentence, ("sentence1", "s1", "text1", "sentence_a")),
    Column("sentence2", as_sentence, ("sentence2", "s2", "text2", "sentence_b")),
    Column("score", as_number, ("score", "gold", "label", "similarity")),
)

_SUBSET = "subset"
_ABSENT = "check the path given to --data"


def load_pairs(path: str | Path, subset_column: str = _SUBSET) -> StsData:
    """Reads your own pairs from a .tsv, .csv, .jsonl or .parquet file, the first three also with .gz or .zst.

    Columns are found by name, ignoring case: sentence1 (or s1, text1, sentence_a), sentence2 (s2, text2,
    sentence_b), score (gold, label, similarity), and the subset column if there is one. A TSV or CSV file without
    a header has exactly three columns: sentence1, sentence2, score. Whitespace around a sentence is dropped, blank
    lines are skipped. Assumptions about the file, and the number of repeated pairs, are notes.

    A `pair_id` is the pair's line in the file (Parquet: its row), the split is "all", the task is the file's name
    without its suffix (and so is the subset without such a column), and the gold range is that of the scores. A
    subset column with another name than `subset` is part of the file's name in `files`, and so of the data's hash
    and the signature.

    Args:
        path: the file.
        subset_column: the column with each pair's subset (default "subset", which may be absent).

    Raises:
        UserError: with file and line for all wrong rows (the first ten, and how many more), or if the file or a
            subset has fewer than two pairs or a single score, so that no correlation is defined.
    """
    path = Path(path).expanduser()
    require_file(path, absent=_ABSENT)
    require_memory(path.stat().st_size, f"the pairs of {path}", "measure a part of them")
    subset = Column(_SUBSET, as_sentence, (subset_column,), optional=subset_column == _SUBSET)
    table = read_table(path, Schema("pair", (*PAIRS, subset), [column.name for column in PAIRS], _ABSENT))
    task = Path(path.stem).stem if path.suffix.lower() in PACKED else path.stem
    named = table.frame if _SUBSET in table.frame else table.frame.assign(subset=task)
    columns = (named[name] for name in (_SUBSET, "line", "score", "sentence1", "sentence2"))
    pairs = pair_table(
        Pair(subset, "all", str(line), gold, first, second)
        for subset, line, gold, first, second in zip(*columns, strict=True)
    )
    _require_varied_scores(pairs, path)
    header = table.headers.get(_SUBSET, _SUBSET)
    subsets = "" if header.casefold() == _SUBSET else f", subsets by {header}"
    files = (FileRead(path.name + subsets, sha256_of(path), None),)
    return StsData(
        task=task,
        split="all",
        text="user",
        pairs=pairs,
        gold_range=(float(pairs["gold"].min()), float(pairs["gold"].max())),
        status="user",
        sha256=combined_sha256(files),
        files=files,
        problems=(),
        notes=(*table.rows.notes, *_notes(pairs, path)),
    )


def _notes(pairs: pd.DataFrame, path: Path) -> Iterator[str]:
    sides = [pairs["sentence1"], pairs["sentence2"]]
    if ".tsv" in path.name.lower():
        quoted = sum(len(text) > 1 and text[0] == text[-1] == '"' for side in sides for text in side)
        if quoted:
            yield f"{path.name}: {quoted:,} sentences are in quotes, which are read as text; in .csv they are not."
    both = unordered_pairs(*map(sentence_ids, sides))
    repeated = len(both) - len(set(both))
    if repeated:
        yield (
            f"{path.name}: {repeated:,} of {len(both):,} rows repeat the sentences of an earlier row, in either "
            "order; each counts as a pair."
        )


def _require_varied_scores(pairs: pd.DataFrame, path: Path) -> None:
    parts = [
        (f"{path}, subset {subset!r},", golds) for subset, golds in pairs.groupby("subset", sort=False)["gold"]
    ]
    for where, golds in [(str(path), pairs["gold"]), *parts]:
        if len(golds) == 1:
            raise UserError(f"{where} has a single pair: a correlation needs at least two; add pairs.")
        if golds.min() == golds.max():
            raise UserError(
                f"{where} has the score {golds.iloc[0]:g} for every pair: a correlation needs scores that differ."
            )
