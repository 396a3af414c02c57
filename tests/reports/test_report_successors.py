"""`report --paper` knows the tables that were read from public repositories."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

import stsbench as sb
from stsbench.published.catalogue import papers, tables


@pytest.mark.parametrize(
    ("paper", "row", "model", "table"),
    [
        ("diffcse", "diffcse-roberta-base", "voidism/diffcse-roberta-base-sts", "diffcse-sts"),
        ("pcl", "pcl-bert-large", "qiyuw/pcl-bert-large-uncased", "pcl-sts"),
    ],
)
def test_a_run_of_a_successor_stands_under_its_published_row(
    as_published: Callable[..., sb.RunRecord], tmp_path: Path, paper: str, row: str, model: str, table: str
) -> None:
    page = sb.report(as_published(row, model), tmp_path / "out", paper=paper)
    (path,) = page.parent.rglob(f"{table}.csv")
    with path.open(encoding="utf-8", newline="") as stream:
        found = list(csv.DictReader(stream))
    sources = [entry["source"] for entry in found]
    assert sources.count("published") == len(tables()[table].rows)
    here = sources.index("here")
    assert float(found[here]["STS12"]) == pytest.approx(float(found[here - 1]["STS12"]))
    assert papers()[paper].title in page.read_text(encoding="utf-8")
