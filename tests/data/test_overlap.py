"""Ids of sentences, and what data sets share: every number is recomputed in a few lines."""

import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sample, load_sts, read_splits
from stsbench.data.sentences import PAIRS, SENTENCES, overlap, read_corpus_set
from stsbench.data.tables import LETTERS, RELEASED, folded_ids, same_letters

YEARS = ["STS12", "STS13", "STS14", "STS15", "STS16"]
TOGETHER = "+".join(YEARS)


def letters(text: str) -> str:
    return "".join(re.findall(r"[^\W_]", text.casefold()))


def released_pairs(folder: Path, years: list[str], fold: bool) -> list[frozenset[str]]:
    """Read the scored pairs with nothing of the package."""
    pairs = []
    for year in years:
        for file in sorted((folder / "downstream" / "STS" / f"{year}-en-test").glob("STS.input.*.txt")):
            gold = file.with_name(file.name.replace("input", "gs")).read_text(encoding="utf-8").split("\n")
            for line, score in zip(file.read_text(encoding="utf-8").split("\n"), gold, strict=True):
                if score.strip():
                    pairs.append(frozenset(letters(s) if fold else s.strip() for s in line.split("\t")[:2]))
    return pairs


def stsb_pairs(folder: Path, split: str, fold: bool) -> list[frozenset[str]]:
    lines = (folder / "downstream" / "STS" / "STSBenchmark" / f"sts-{split}.csv").read_text(encoding="utf-8")
    sides = [line.split("\t")[5:7] for line in lines.rstrip("\n").split("\n")]
    return [frozenset(letters(s) if fold else s.strip() for s in pair) for pair in sides]


@pytest.mark.shared
def test_a_third_of_the_pairs_of_sts12_to_sts16_are_pairs_of_stsbs_train_split(senteval: Path) -> None:
    frame = overlap([TOGETHER, "STS-B:train"], data_dirs=[senteval]).frame
    counts = []
    for same, fold in ((RELEASED, False), (LETTERS, True)):
        years, train = Counter(released_pairs(senteval, YEARS, fold)), set(stsb_pairs(senteval, "train", fold))
        rows = frame.set_index(["a", "b", "unit", "same"])
        row, within = (rows.loc[(TOGETHER, name, PAIRS, same)] for name in ("STS-B:train", TOGETHER))
        shared, repeated = years.keys() & train, [times for times in years.values() if times > 1]
        assert (row["distinct a"], row["distinct b"]) == (len(years), len(train))
        assert row["shared a"] == row["shared b"] == len(shared)
        assert row["rows a"] == sum(years[pair] for pair in shared)
        assert (within["shared a"], within["rows a"]) == (len(repeated), sum(repeated))
        counts.append((len(shared), len(years)))
    assert counts == [(4030, 12099), (4699, 12081)]


def test_a_corpus_is_compared_with_the_tasks_each_way(tmp_path: Path) -> None:
    sample = overlap(["sample"]).frame["distinct a"].iloc[0]
    pair = load_sample().pairs.iloc[0]
    corpus = tmp_path / "corpus.tsv"
    changed = f"{pair['sentence1'].upper()} !"
    corpus.write_text(f"sent0\tsent1\n{pair['sentence2']}\t{changed}\nrain\tsun\n", encoding="utf-8")
    frame = overlap(["sample"], corpora=[corpus]).frame
    counts = {(row["unit"], row["same"]): (row["shared a"], row["distinct b"]) for row in frame.to_dict("records")}
    assert counts == {
        (SENTENCES, RELEASED): (1, 4),
        (SENTENCES, LETTERS): (2, 4),
        (PAIRS, RELEASED): (0, 2),
        (PAIRS, LETTERS): (1, 2),
    }
    assert frame.loc[frame["unit"] == PAIRS, "distinct a"].tolist() == [sample, sample]
    assert frame["rows a"].tolist() == [1, 1, 0, 1]
    assert frame["b"].unique().tolist() == ["corpus corpus.tsv"]


def test_the_first_sentence_of_a_row_is_paired_with_each_other_and_numbers_are_ignored(tmp_path: Path) -> None:
    triplets, scored = tmp_path / "nli.csv", tmp_path / "scored.tsv"
    triplets.write_text("sent0,sent1,hard_neg\na b,c d,e f\n", encoding="utf-8")
    corpus = read_corpus_set(triplets)
    assert list(zip(corpus.first, corpus.second or (), strict=True)) == [("a b", "c d"), ("a b", "e f")]
    scored.write_text("id\tsentence1\tsentence2\tscore\n7\ta b\tc d\t4.5\n", encoding="utf-8")
    corpus = read_corpus_set(scored)
    assert (corpus.first, corpus.second) == (("a b",), ("c d",))
    assert read_corpus_set(scored, ["sentence2"]).texts == ("c d",)
    (tmp_path / "nli.csv.txt").write_text("a b\na b\n", encoding="utf-8")
    assert read_corpus_set(tmp_path / "nli.csv.txt").texts == ("a b",)  # lines of text, as its last suffix states
    for name, text, columns, message in (
        ("scored.tsv", "sentence1\tsentence2\na\tb\n", ["sent0"], "no column 'sent0'"),
        ("text", "a b\n", ["sentence2"], "no columns to name"),
        ("numbers.csv", "1,2\n", None, "has no sentences"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=message):
            read_corpus_set(tmp_path / name, columns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sample-questions:dev"], "has no split 'dev'"),
        (["STS12@lower"], "has no text 'lower'"),
        (["sample+sample-questions"], "cannot be joined"),
    ],
)
def test_a_mistake_is_an_error(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        overlap(arguments)


def test_case_folding_and_unicode_forms_agree_in_any_order() -> None:
    for text in ("\u0390", "\u01f0", "\u1e9b\u0323", "\ufb03", "Stra\u00dfe", "\u03aa\u0301"):
        forms = [unicodedata.normalize(form, t) for form in ("NFC", "NFD") for t in (text, text.upper())]
        assert len({same_letters(form) for form in forms}) == 1, text
    assert same_letters("caf\u00e9") != same_letters("cafe")
    assert len(set(folded_ids(["...", "!", "?!"]).tolist())) == 3


def test_splits_that_cannot_be_read_are_returned_with_their_errors(benchmark_folder: Path) -> None:
    next(benchmark_folder.rglob("sts-dev.csv")).unlink()
    sets, absent = read_splits(["STS-B:dev", "STS-B:test"], [benchmark_folder])
    assert list(sets) == ["STS-B:test"]
    assert sets["STS-B:test"].pairs.equals(load_sts("STS-B", data_dirs=[benchmark_folder]).pairs)
    assert list(absent) == ["STS-B:dev"]
    assert isinstance(absent["STS-B:dev"], UserError)
