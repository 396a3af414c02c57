"""The bundled data: the catalogued files, with the design that its cards state."""

import hashlib
import re
from collections import Counter
from importlib.resources import files

import pandas as pd
import pytest

from stsbench.data.benchmarks import load_labelled, load_sample, sample_sentences
from stsbench.data.catalogue import data_sets, source
from stsbench.data.fetch import catalogued_files
from stsbench.data.locate import bundled_root
from stsbench.data.sentences import sentences_in
from stsbench.data.triples import COLUMNS, load_triples

ROOT = bundled_root(source("sample"))
LABELLED = [name for name in data_sets() if name.startswith("sample-")]
KINDS = ["negation", "antonym", "role-swap", "number", "tense", "quantifier", "synonym", "typo", "reordering"]


def words(sentence: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", sentence.lower())


def items_of(name: str) -> list[tuple[str, ...]]:
    """Return the sentences of each row: two for a pair, one otherwise."""
    if name == "sentences":
        return [(sentence,) for sentence in sample_sentences()]
    table = load_sample().pairs if name == "sample" else load_labelled(name, text="sample").items
    return [tuple(filter(None, row)) for row in zip(table["sentence1"], table["sentence2"], strict=True)]


@pytest.mark.parametrize("file", catalogued_files("sample"), ids=lambda file: file.path)
def test_the_catalogue_describes_the_files_of_the_sample(file) -> None:
    data = (ROOT / file.path).read_bytes()
    line = f'lines = {data.count(10)}, sha256 = "{hashlib.sha256(data).hexdigest()}"'
    assert line == f'lines = {file.lines}, sha256 = "{file.sha256}"', (
        f"{file.path} has changed: write {line} (and the count) into its entry in stsbench/data/entries/tasks"
    )
    assert b"\r" not in data


def test_every_file_of_the_sample_is_catalogued() -> None:
    paths = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.tsv")}
    assert paths == {file.path for file in catalogued_files("sample")}


@pytest.mark.parametrize("name", LABELLED)
def test_a_labelled_set_has_its_splits_and_labels(name: str) -> None:
    data = load_labelled(name, text="sample")
    assert (data.task, data.text, data.status) == (name, "sample", "verified")
    assert len(set(data.items.groupby("split")["label"].value_counts().groupby("split").nunique())) == 1
    assert set(data.items["label"]) == set(data.classes)
    assert data.items["sentence2"].notna().all() == (name == "sample-paraphrases")
    # Splits are blocks, and no ten rows in order have a single label.
    assert list(dict.fromkeys(data.items["split"])) == sorted(
        set(data.items["split"]), key=["all", "train", "dev", "test"].index
    )
    labels = data.items["label"].tolist()
    assert all(len(set(labels[start : start + 10])) > 1 for start in range(len(labels) - 9))


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
    bands = pairs["gold"].astype(int).clip(upper=4)
    assert pd.crosstab(pairs["subset"], bands).min().min() >= 4
    assert (pairs["gold"] * 5).round(9).mod(1).eq(0).all()
    for row in pairs.itertuples():
        meaning, _, length = row.design.removesuffix("-length").rpartition("-")
        low, high = {"same-meaning": (3.8, 5.1), "related": (1.6, 3.8), "different-meaning": (0, 1.6)}[meaning]
        assert low <= row.gold < high, row
        difference = abs(len(row.sentence1.split()) - len(row.sentence2.split()))
        assert (difference <= 3) == (length == "same"), row
        assert (difference >= 4) == (length == "different"), row


def test_no_sentence_occurs_twice_in_the_bundled_data() -> None:
    triples = [sentence for triple in load_triples().rows for sentence in triple[1:]]
    for names, more in (([*LABELLED, "sentences"], []), (["sample"], triples)):
        texts = [sentence for name in names for row in items_of(name) for sentence in row] + more
        counted = Counter(" ".join(words(text)) for text in texts)
        assert [text for text, times in counted.items() if times > 1] == []
        assert all(text == " ".join(text.split()) != "" for text in texts)


def test_the_triples_are_those_of_their_card() -> None:
    probes = files("stsbench.data") / "probes"
    content = (probes / "triples.tsv").read_bytes()
    # Its sentences were checked word by word: read the card before changing one.
    assert hashlib.sha256(content).hexdigest() == SHA256
    assert content.decode("ascii").startswith("\t".join(COLUMNS) + "\n")
    bundled = load_triples()
    assert (bundled.name, bundled.notes) == ("bundled", ())
    assert list(Counter(row.kind for row in bundled.rows).items()) == [(kind, 40) for kind in KINDS]
    card = (probes / "CARD.md").read_text(encoding="utf-8")
    assert set(KINDS) == set(re.findall(r"^\| `([a-z-]+)` \|", card, re.MULTILINE)) - {"kind"}
    assert "CC0 1.0" in card


SHA256 = "96ac2791d3ec0b73478a19eb8dd552f289d4fe3ee46b07eabb8458568a39e2d8"


@pytest.mark.shared
def test_no_sentence_of_the_triples_is_in_the_benchmarks(shared) -> None:
    def plain(text: str) -> str:
        return " ".join(re.findall(r"[a-z0-9]+", text.casefold().replace("'", "")))

    triples = {plain(sentence) for row in load_triples().rows for sentence in row[1:]}
    lines = 0
    for path in (shared / "data").rglob("*"):
        if path.is_file():
            for line in path.read_bytes().decode("utf-8", errors="replace").splitlines():
                lines += 1
                assert not triples & {plain(cell) for cell in line.split("\t")}, (path, line)
    assert lines > 100_000
    assert len(sentences_in(load_sample())) == 504
