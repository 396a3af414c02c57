"""The bundled sample is read, and is the one that the catalogue describes."""

import hashlib

import pytest

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sample, load_sample_labelled, sample_sentences
from stsbench.data.catalogue import source
from stsbench.data.fetch import catalogued_files
from stsbench.data.locate import bundled_root

NAMES = ["movies", "products", "subjectivity", "opinions", "sentiment", "questions", "paraphrases"]


@pytest.mark.parametrize("file", catalogued_files("sample"), ids=lambda file: file.path)
def test_the_catalogue_describes_the_files_of_the_sample(file):
    data = (bundled_root(source("sample")) / file.path).read_bytes()
    found = f'lines = {data.count(10)}, sha256 = "{hashlib.sha256(data).hexdigest()}"'
    assert found == f'lines = {file.lines}, sha256 = "{file.sha256}"', (
        f"{file.path} has changed: write {found} (and the count) into its entry in stsbench/data/entries/tasks"
    )


def test_every_file_of_the_sample_is_catalogued():
    root = bundled_root(source("sample"))
    there = {path.relative_to(root).as_posix() for path in root.rglob("*.tsv")}
    assert there == {file.path for file in catalogued_files("sample")}


def test_the_pairs_state_their_design():
    sample = load_sample()
    assert (sample.task, sample.split, sample.text, sample.status) == ("sample", "test", "sample", "verified")
    assert list(sample.pairs.columns) == [
        "subset",
        "split",
        "pair_id",
        "gold",
        "sentence1",
        "sentence2",
        "design",
    ]
    assert sample.pairs["gold"].between(*sample.gold_range).all()
    assert sample.pairs["pair_id"].is_unique
    assert sample.pairs["subset"].nunique() == 7


@pytest.mark.parametrize("name", NAMES)
def test_a_labelled_set_is_read_with_its_splits(name):
    data = load_sample_labelled(name)
    assert (data.task, data.text, data.status) == (f"sample-{name}", "sample", "verified")
    assert set(data.items["label"]) == set(data.classes)
    assert set(data.items["split"]) <= {"all", "train", "dev", "test"}
    assert data.items["sentence2"].notna().all() == (name == "paraphrases")


def test_an_unknown_labelled_set_is_answered_with_the_known_ones():
    with pytest.raises(UserError, match=r"no labelled set 'books': choose one of movies, products, "):
        load_sample_labelled("books")


def test_the_sentences_are_one_a_line():
    sentences = sample_sentences()
    assert len(sentences) == 400
    assert all(sentence == sentence.strip() != "" for sentence in sentences)


def test_the_sample_is_read_whatever_the_person_has_set(tmp_path, monkeypatch):
    monkeypatch.setenv("STSBENCH_DATA", str(tmp_path / "nowhere"))
    assert load_sample().status == "verified"
