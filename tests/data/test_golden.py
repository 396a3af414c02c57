"""The benchmarks as read: a hash over every id, label or score, and sentence of each task and text."""

import hashlib
from pathlib import Path

import pytest

from stsbench.data.benchmarks import load_labelled, load_sts
from stsbench.data.catalogue import data_set

GOLDEN = {
    "STS12@senteval": (3108, "f4a1ae5958397558"),
    "STS12@raw": (3108, "4a97747e3286047e"),
    "STS13@senteval": (1500, "9bc45d4d96e58025"),
    "STS13@raw": (1500, "44fc23b5401e0136"),
    "STS14@senteval": (3750, "dcd5a58b2db7c415"),
    "STS14@raw": (3750, "1f62a995e3734b59"),
    "STS15@senteval": (3000, "5fa29712511e9d50"),
    "STS15@raw": (3000, "82993cde18b0b540"),
    "STS16@senteval": (1186, "45b2e6695a7eddcb"),
    "STS16@raw": (1186, "c91f94f56a899f7e"),
    "STS-B@senteval": (8628, "7f2ec1185c711277"),
    "STS-B@raw": (8628, "199b7bb788dea460"),
    "SICK-R@senteval": (9927, "d1001d5a87bdd68d"),
    "MR@senteval": (10662, "4c95571177b5d72e"),
    "CR@senteval": (3775, "532edc485661b716"),
    "SUBJ@senteval": (10000, "51e06b345958d80a"),
    "MPQA@senteval": (10606, "142a2b402ace6098"),
    "SST2@senteval": (70042, "8bf9d65670b3d2e0"),
    "SST5@senteval": (11855, "50d7eed2120a6626"),
    "TREC@senteval": (5952, "33f849af942114f9"),
    "MRPC@senteval": (5801, "281b5d7f3eb215c6"),
    "SICK-E@senteval": (9927, "55612ab2c447ddfd"),
    "SNLI@senteval": (19666, "edf10b459723591f"),
}


CLASSES = {
    "SST5": [0, 1, 2, 3, 4],
    "TREC": ["ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"],
    "SICK-E": ["CONTRADICTION", "NEUTRAL", "ENTAILMENT"],
    "SNLI": ["entailment", "neutral", "contradiction"],
}


@pytest.mark.shared
@pytest.mark.parametrize("name", GOLDEN)
def test_a_benchmark_is_read_to_the_last_byte(shared: Path, name: str) -> None:
    task, _, text = name.partition("@")
    folders = [shared / "data"]
    if data_set(task).kind == "sts":
        data = load_sts(task, data_set(task).texts[text].whole, text, folders)
        table = data.pairs
        assert table["gold"].between(*data.gold_range).all()
    else:
        data = load_labelled(task, folders, text=text)
        table = data.items
        assert list(data.classes) == CLASSES.get(task, [0, 1])
    assert (data.status, data.problems) == ("verified", ())
    rows = "\n".join(repr(row) for row in table.astype(object).itertuples(index=False, name=None))
    digest = hashlib.sha256(f"{list(table.columns)}\n{data.sha256}\n{rows}".encode()).hexdigest()
    assert (len(table), digest[:16]) == GOLDEN[name]
