"""Triplets of premise, entailed and contradicting sentence from natural language inference data."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from stsbench.base.errors import UserError
from stsbench.base.files import atomic_path
from stsbench.base.options import Written
from stsbench.data.rows import decode, read_bytes, split_lines

HEADER = ("sent0", "sent1", "hard_neg")
"""The columns of the file that the SimCSE authors host; `stsbench train` reads three columns under any name."""

_LABELS = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class TripletCounts:
    """How much there was, and what came of it.

    Attributes:
        pairs: sentence pairs read.
        premises: distinct ones.
        triplets: written.
        without: premises that lack an entailed or a contradicting sentence.
        file: where they are.
    """

    pairs: int
    premises: int
    triplets: int
    without: int
    file: Path


@dataclass
class _Hypotheses:
    entailment: list[str] = field(default_factory=list)
    contradiction: list[str] = field(default_factory=list)


def write_nli_triplets(
    folders: Sequence[Path],
    out: Annotated[str | Path, Written("file")] = "nli-triplets.csv",
    split: str = "train",
) -> TripletCounts:
    """Write triplets (premise, entailment, contradiction) as CSV.

    Of each premise the first entailed sentence goes with the first contradicting one, the second with the second,
    as far as there are both. Premises stand in the order in which they are first met. The same files give the same
    triplets.

    Args:
        folders: folders with `s1.SPLIT`, `s2.SPLIT` and `labels.SPLIT`, one line a pair, as SentEval lays out SNLI
            and InferSent both SNLI and MultiNLI.
        out: the CSV file to write.
        split: the split to read: `train`, `dev`, `dev.matched`, ...

    Raises:
        UserError: if a file is missing or broken, or no premise has both.
    """
    by_premise: dict[str, _Hypotheses] = {}
    pairs = 0
    for folder in folders:
        for premise, hypothesis, label in _pairs(folder, split):
            pairs += 1
            if premise:
                hypotheses = by_premise.setdefault(premise, _Hypotheses())
                if hypothesis and label != "neutral":
                    getattr(hypotheses, label).append(hypothesis)
    triplets = list(_triplets(by_premise))
    if not triplets:
        raise UserError(f"no premise in {', '.join(map(str, folders))} has an entailment and a contradiction.")
    with atomic_path(Path(out)) as path, path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(triplets)
    without = sum(not (kinds.entailment and kinds.contradiction) for kinds in by_premise.values())
    return TripletCounts(pairs, len(by_premise), len(triplets), without, Path(out))


def _triplets(by_premise: dict[str, _Hypotheses]) -> Iterator[tuple[str, str, str]]:
    for premise, hypotheses in by_premise.items():
        # A sentence that stands there twice makes no second triplet.
        entailed, contradicting = dict.fromkeys(hypotheses.entailment), dict.fromkeys(hypotheses.contradiction)
        for entailment, contradiction in zip(entailed, contradicting, strict=False):
            yield premise, entailment, contradiction


def _pairs(folder: Path, split: str) -> Iterable[tuple[str, str, str]]:
    files = [folder / f"{name}.{split}" for name in ("s1", "s2", "labels")]
    for file in files:
        if not file.is_file():
            splits = sorted(path.name.removeprefix("labels.") for path in folder.glob("labels.*"))
            hint = f"splits there: {', '.join(splits)}" if splits else "no split is there"
            raise UserError(f"there is no {file}: {hint}; choose one with --split, or another folder.")
    first, second, labels = ([text.strip() for text in _lines(file)] for file in files)
    if not len(first) == len(second) == len(labels):
        raise UserError(
            f"{files[0]} has {len(first)} lines, {files[1].name} {len(second)} and {files[2].name} {len(labels)}: "
            "they must match line by line, so get all three again."
        )
    for line, label in enumerate(labels, start=1):
        if label not in _LABELS:
            raise UserError(f"{files[2]}, line {line}: {label!r} is not a label ({', '.join(_LABELS)}); mend it.")
    return zip(first, second, labels, strict=True)


def _lines(file: Path) -> list[str]:
    data = read_bytes(file)
    try:
        return split_lines(data.decode("utf-8"))
    except UnicodeDecodeError:
        # SentEval's copy of SNLI is Latin-1.
        return split_lines(decode(data, file, "latin-1"))
