"""The numbers of the page on overlap, counted again from the files with nothing of the package."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "overlap.md"
YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")

pytestmark = [pytest.mark.shared, pytest.mark.long]


@cache
def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def lines(path: Path, encoding: str = "utf-8") -> list[str]:
    return [line for line in path.read_text(encoding=encoding).split("\n") if line.strip()]


class Plain:
    """Pairs and sentences by letters and digits."""

    def __init__(self, senteval: Path) -> None:
        self.folder = senteval / "downstream"

    @cache  # noqa: B019 (there is one of it)
    def year(self, name: str) -> list[frozenset[str]]:
        pairs = []
        for file in sorted((self.folder / "STS" / f"{name}-en-test").glob("STS.input.*.txt")):
            gold = file.with_name(file.name.replace("input", "gs")).read_text(encoding="utf-8").split("\n")
            for line, score in zip(file.read_text(encoding="utf-8").split("\n"), gold, strict=True):
                if score.strip():
                    pairs.append(frozenset(map(letters, line.split("\t")[:2])))
        return pairs

    @cache  # noqa: B019
    def stsb(self, split: str) -> list[frozenset[str]]:
        rows = lines(self.folder / "STS" / "STSBenchmark" / f"sts-{split}.csv")
        return [frozenset(map(letters, row.split("\t")[5:7])) for row in rows]

    @cache  # noqa: B019
    def sick(self, name: str) -> list[frozenset[str]]:
        rows = lines(self.folder / "SICK" / f"SICK_{name}.txt")[1:]
        return [frozenset(map(letters, row.split("\t")[1:3])) for row in rows]

    def mrpc(self, split: str) -> list[frozenset[str]]:
        rows = lines(self.folder / "MRPC" / f"msr_paraphrase_{split}.txt", "utf-8-sig")[1:]
        return [frozenset(map(letters, row.split("\t")[3:5])) for row in rows]

    def sentences(self, *names: str) -> list[str]:
        return [letters(line) for name in names for line in lines(self.folder / name, "latin-1")]

    def sst2(self, split: str) -> set[str]:
        rows = lines(self.folder / "SST" / "binary" / f"sentiment-{split}")
        return {letters(row.rpartition("\t")[0]) for row in rows} - {""}


def inside(pairs: Iterable[frozenset[str]]) -> set[str]:
    return {side for pair in pairs for side in pair}


def says(text: str) -> bool:
    """Return whether the page says something, however its lines are broken."""
    return " ".join(text.split()) in " ".join(PAGE.read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def plain(senteval: Path) -> Plain:
    return Plain(senteval)


def test_what_the_sts_tasks_share_is_as_the_page_says(plain: Plain) -> None:
    years = [pair for name in YEARS for pair in plain.year(name)]
    splits = {split: plain.stsb(split) for split in ("train", "dev", "test")}
    assert says(f"STS12 to STS16 have {len(years):,} scored pairs")
    assert says(f"| by letters and digits | {len(set(years)):,} | {len(set(years) & set(splits['train'])):,} |")
    also = len(inside(years) & inside(splits["train"]))
    assert says(f"STS-B's train split also has {also:,} of their distinct sentences")
    again = sum(pair in set(years) for pair in splits["test"])
    assert says(f"Of STS-B's {len(splits['test']):,} test pairs, {again:,} are test pairs of STS12 to STS16")
    own = [len(set(splits["test"]) & set(splits[split])) for split in ("train", "dev")]
    assert says(f"train split has {own[0]} of its distinct test pairs, and its dev split {own[1]}")
    train, test = plain.sick("train"), plain.sick("test_annotated")
    shared = len(set(train) & set(test)), len(inside(train) & inside(test))
    assert says(f"SICK-R's train split has {shared[0]} pairs and {shared[1]:,} sentences of its test split")


def test_what_the_transfer_tasks_share_is_as_the_page_says(plain: Plain) -> None:
    files = {
        "MR": ("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
        "CR": ("CR/custrev.pos", "CR/custrev.neg"),
        "SUBJ": ("SUBJ/subj.objective", "SUBJ/subj.subjective"),
        "MPQA": ("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
    }
    sets = {name: plain.sentences(*paths) for name, paths in files.items()}
    for name, sentences in sets.items():
        times = [count for count in Counter(filter(None, sentences)).values() if count > 1]
        assert re.search(
            rf"\| {name} \| \| {len(times)} \({sum(times):,} rows(?: of [\d,]+)?\) \|", PAGE.read_text("utf-8")
        )
    sst2 = {split: plain.sst2(split) for split in ("train", "dev", "test")}
    assert says(f"| SST2 | {len(sst2['train'] & sst2['test'])} sentences | |")
    mr, subj = (set(sets[name]) - {""} for name in ("MR", "SUBJ"))
    films = len(mr & set.union(*sst2.values()))
    assert says(f"MR and SUBJ share {len(mr & subj):,} sentences, MR and SST2 {films:,}")
    train, test = plain.mrpc("train"), plain.mrpc("test")
    shared = len(set(train) & set(test)), len(inside(train) & inside(test))
    assert says(f"| MRPC | {shared[0]} pairs, {shared[1]} sentences | |")


def test_as_many_pairs_are_left_out_as_the_page_says(plain: Plain) -> None:
    tasks = [*map(plain.year, YEARS), plain.stsb("test"), plain.sick("test_annotated")]
    before: set[frozenset[str]] = set()
    once, seen = [], inside(plain.stsb("train"))
    for pairs in tasks:
        once.append(sum(pair in before for pair in pairs))
        before |= set(pairs)
    left_out = [sum(bool(pair & seen) for pair in pairs) for pairs in tasks]
    for counts in (once, left_out):
        assert says(f"| pairs left out | {' | '.join(f'{count:,}' for count in counts)} | |")
    assert says(f"`stsb-train.txt` has the {len(distinct_as_released(plain)):,} distinct sentences")


def distinct_as_released(plain: Plain) -> set[str]:
    rows = lines(plain.folder / "STS" / "STSBenchmark" / "sts-train.csv")
    return {side for row in rows for side in row.split("\t")[5:7]}
