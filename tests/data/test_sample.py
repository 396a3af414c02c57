"""The bundled data: the catalogued files, with the design that its cards state."""

import hashlib
from collections import Counter
from importlib.resources import files

import pytest

from stsbench.data.benchmarks import load_labelled, load_sample
from stsbench.data.catalogue import data_sets, source
from stsbench.data.corpus import COLUMNS, load_triples
from stsbench.data.fetch import catalogued_files
from stsbench.data.reading import bundled_root

ROOT = bundled_root(source("sample"))
LABELLED = [name for name in data_sets() if name.startswith("sample-")]
KINDS = ["negation", "antonym", "role-swap", "number", "tense", "quantifier", "synonym", "typo", "reordering"]


@pytest.mark.parametrize("file", catalogued_files("sample"), ids=lambda file: file.path)
def test_the_catalogue_describes_the_files_of_the_sample(file) -> None:
    data = (ROOT / file.path).read_bytes()
    line = f'lines = {data.count(10)}, sha256 = "{hashlib.sha256(data).hexdigest()}"'
    assert line == f'lines = {file.lines}, sha256 = "{file.sha256}"', (
        f"{file.path} has changed: write {line} (and the count) into its entry in stsbench/data/entries/tasks"
    )
    assert b"\r" not in data
    paths = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.tsv")}
    assert paths == {file.path for file in catalogued_files("sample")}


@pytest.mark.parametrize("name", LABELLED)
def test_a_labelled_set_has_its_splits_and_labels(name: str) -> None:
    data = load_labelled(name, text="sample")
    assert (data.task, data.text, data.status) == (name, "sample", "verified")
    assert len(set(data.items.groupby("split")["label"].value_counts().groupby("split").nunique())) == 1
    assert set(data.items["label"]) == set(data.classes)
    assert data.items["sentence2"].notna().all() == (name == "sample-paraphrases")


def test_the_pairs_have_their_design_whatever_you_have_set(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("STSBENCH_DATA", str(tmp_path / "nowhere"))
    sample = load_sample()
    assert (sample.task, sample.split, sample.text, sample.status) == ("sample", "test", "sample", "verified")
    pairs = sample.pairs
    assert list(pairs.columns) == ["subset", "split", "pair_id", "gold", "sentence1", "sentence2", "design"]
    assert pairs["pair_id"].is_unique
    assert set(pairs["subset"].value_counts()) == {36}
    assert pairs["subset"].nunique() == 7
    assert pairs.groupby(["subset", "design"]).size().unstack().min().min() >= 4
    for row in pairs.itertuples():
        meaning, _, length = row.design.removesuffix("-length").rpartition("-")
        low, high = {"same-meaning": (3.8, 5.1), "related": (1.6, 3.8), "different-meaning": (0, 1.6)}[meaning]
        assert low <= row.gold < high, row
        difference = abs(len(row.sentence1.split()) - len(row.sentence2.split()))
        assert (difference <= 3) == (length == "same"), row
        assert (difference >= 4) == (length == "different"), row


def test_the_triples_are_those_of_their_card() -> None:
    content = (files("stsbench.data") / "probes" / "triples.tsv").read_bytes()
    # Its sentences were checked word by word: read the card before changing one.
    assert hashlib.sha256(content).hexdigest() == SHA256
    assert content.decode("ascii").startswith("\t".join(COLUMNS) + "\n")
    bundled = load_triples()
    assert (bundled.name, bundled.notes) == ("bundled", ())
    assert list(Counter(row.kind for row in bundled.rows).items()) == [(kind, 40) for kind in KINDS]


SHA256 = "96ac2791d3ec0b73478a19eb8dd552f289d4fe3ee46b07eabb8458568a39e2d8"
