"""Test sentences in a training corpus."""

import gzip
import tracemalloc
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.data.benchmarks import load_sts
from stsbench.judging.overlap import overlap, overlaps_of

TASKS = {
    "x": ["An owl sings .", "An owl sings .", "the bus is late", "it 's raining"],
    "y": ["the  bus is LATE", "a kettle", "..."],
}


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def counts(corpus: Path) -> dict[str, tuple[int, int, int]]:
    return {entry.task: (entry.sentences, entry.found, entry.found_by_letters) for entry in overlap(corpus, TASKS)}


def test_distinct_sentences_are_counted_by_task_whatever_their_case_and_spaces(tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.txt", "The bus\tis late ", "an owl sings", "It's raining!", "nothing of that")
    assert counts(corpus) == {"x": (3, 1, 3), "y": (3, 1, 1), "all tasks": (5, 1, 3)}
    (x, *_) = overlap(corpus, TASKS)
    assert (x.corpus, x.share, x.share_by_letters) == ("a.txt", pytest.approx(1 / 3), 1.0)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_sentence_is_found_however_unicode_writes_its_accents(form: str, tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.txt", unicodedata.normalize(form, "Th\u00e9 \u00e0 la  CR\u00c8ME"))
    for other in ("NFC", "NFD"):
        (found,) = overlap(corpus, {"x": [unicodedata.normalize(other, "th\u00e9 \u00e0 la cr\u00e8me")]})
        assert (found.found, found.found_by_letters) == (1, 1)


def test_punctuation_alone_is_found_as_it_stands_and_not_in_any_other(tmp_path: Path) -> None:
    assert counts(write(tmp_path / "a.txt", "!", ""))["y"] == (3, 0, 0)
    assert counts(write(tmp_path / "a.txt", "..."))["y"] == (3, 1, 1)


def test_a_packed_corpus_is_read_as_it_is(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.txt", "a kettle", "the bus is late")
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert counts(packed) == counts(plain)


def test_every_cell_of_a_table_is_a_text(tmp_path: Path) -> None:
    corpus = write(tmp_path / "nli.csv", "sent0,sent1", '"a kettle","the bus', ' is late"')
    assert counts(corpus)["y"] == (3, 2, 2)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("nli.tsv", "a kettle\tthe bus is late\tno"),
        ("nli.jsonl", '{"sent0": "a kettle", "sent1": "the bus is late"}'),
        ("nli.JSONL", '{"sent0": "a kettle", "sent1": "the bus is late"}'),
    ],
)
def test_every_cell_of_the_other_formats_is_one_too(tmp_path: Path, name: str, row: str) -> None:
    assert counts(write(tmp_path / name, row))["y"] == (3, 2, 2)


def test_a_single_task_has_no_total(tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.txt", "a")
    assert [entry.task for entry in overlap(corpus, {"x": TASKS["x"]})] == ["x"]


def test_bytes_that_are_not_utf8_match_nothing_and_stop_nothing(tmp_path: Path) -> None:
    corpus = tmp_path / "a.txt"
    corpus.write_bytes(b"a kettl\xe9\nthe bus is late\r\n")
    assert counts(corpus)["y"] == (3, 1, 1)


def test_the_corpus_is_never_held(tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.txt", *(f"sentence number {number} of many" for number in range(20_000)))
    told: list[tuple[str, int, int]] = []
    tracemalloc.start()
    overlap(corpus, TASKS, lambda *progress: told.append(progress))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < corpus.stat().st_size / 2
    assert told[-1] == ("corpus", corpus.stat().st_size, corpus.stat().st_size)


@pytest.mark.parametrize(("name", "content"), [("a.txt.gz", b"not packed"), ("nowhere/a.txt", None)])
def test_a_corpus_that_cannot_be_read_is_told(tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(sb.UserError, match=r"cannot read the corpus .*a\.txt"):
        overlap(tmp_path / name, TASKS)


def test_of_a_run_with_a_view_the_sentences_of_the_whole_split_are_looked_for(
    hash_encode: Callable[..., Any], benchmark_folder: Path, tmp_path: Path
) -> None:
    options = {"data_dirs": [benchmark_folder], "intervals": sb.Intervals(None), "use_cache": False}
    view = sb.evaluate(hash_encode, "STS16", **options, view=sb.PairView(overlap=True))
    assert view.scores[0].split == "test~overlap"
    sentences = load_sts("STS16", data_dirs=[benchmark_folder]).pairs["sentence1"]
    corpus = write(tmp_path / "a.txt", sentences[0])
    (entry,), notes = overlaps_of([view], [corpus], [benchmark_folder])
    assert (entry.task, entry.found) == ("STS16", 1)
    assert any("STS16" in note and "not those" in note for note in notes)
