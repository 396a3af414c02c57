"""What data sets share: every number counted again in a few lines of another kind, on real and on planted sets."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from stsbench.base.errors import UserError
from stsbench.cli.app import app
from stsbench.data.overlap import NEARLY, PAIRS, SENTENCES, overlap
from stsbench.data.shared import LETTERS, RELEASED, Met, near_matches, sentences_met, triples

YEARS = ["STS12", "STS13", "STS14", "STS15", "STS16"]
TOGETHER = "+".join(YEARS)


def letters(text: str) -> str:
    return "".join(re.findall(r"[^\W_]", text.casefold()))


def released_pairs(folder: Path, years: list[str], fold: bool) -> set[frozenset[str]]:
    """Read the scored pairs with nothing of the package."""
    pairs = set()
    for year in years:
        for file in sorted((folder / "downstream" / "STS" / f"{year}-en-test").glob("STS.input.*.txt")):
            gold = file.with_name(file.name.replace("input", "gs")).read_text(encoding="utf-8").split("\n")
            for line, score in zip(file.read_text(encoding="utf-8").split("\n"), gold, strict=True):
                if score.strip():
                    pairs.add(frozenset(letters(s) if fold else s.strip() for s in line.split("\t")[:2]))
    return pairs


def stsb_pairs(folder: Path, split: str, fold: bool) -> list[frozenset[str]]:
    lines = (folder / "downstream" / "STS" / "STSBenchmark" / f"sts-{split}.csv").read_text(encoding="utf-8")
    sides = [line.split("\t")[5:7] for line in lines.rstrip("\n").split("\n")]
    return [frozenset(letters(s) if fold else s.strip() for s in pair) for pair in sides]


@pytest.mark.shared
def test_a_third_of_the_pairs_of_sts12_to_sts16_are_pairs_of_stsbs_train_split(senteval: Path) -> None:
    found = overlap([TOGETHER, "STS-B:train"], data_dirs=[senteval])
    counts = []
    for same, fold in ((RELEASED, False), (LETTERS, True)):
        years, train = released_pairs(senteval, YEARS, fold), set(stsb_pairs(senteval, "train", fold))
        row = found.frame[(found.frame["unit"] == PAIRS) & (found.frame["same"] == same)].iloc[1]
        assert (row["distinct a"], row["distinct b"]) == (len(years), len(train))
        assert found.count(TOGETHER, "STS-B:train", PAIRS, same) == len(years & train)
        counts.append((len(years & train), len(years)))
    assert counts == [(4030, 12099), (4699, 12081)]


@pytest.mark.shared
def test_the_repetitions_of_the_transfer_tasks_are_counted(senteval: Path) -> None:
    found = overlap(["MPQA", "TREC"], data_dirs=[senteval])
    folder = senteval / "downstream"
    phrases = [
        line.strip()
        for name in ("mpqa.pos", "mpqa.neg")
        for line in (folder / "MPQA" / name).read_text(encoding="latin-1").split("\n")
        if line.strip()
    ]
    times = Counter(phrases)
    inside = found.frame[(found.frame["a"] == "MPQA") & (found.frame["b"] == "MPQA")].set_index("same")
    assert inside.loc[RELEASED, "shared a"] == sum(count > 1 for count in times.values())
    assert inside.loc[RELEASED, "rows a"] == sum(count for count in times.values() if count > 1)
    questions = [
        {
            letters(line.partition(" ")[2])
            for line in (folder / "TREC" / name).read_text(encoding="latin-1").rstrip("\n").split("\n")
        }
        for name in ("train_5500.label", "TREC_10.label")
    ]
    assert found.count("TREC:train", "TREC:test", SENTENCES) == len(questions[0] & questions[1])


def test_a_corpus_is_held_against_the_tasks_each_way(tmp_path: Path) -> None:
    first = overlap(["sample"]).frame
    sample = first["distinct a"].iloc[0]
    from stsbench.data.benchmarks import load_sample

    pair = load_sample().pairs.iloc[0]
    corpus = tmp_path / "corpus.tsv"
    changed = f"{pair['sentence1'].upper()} !"
    corpus.write_text(f"sent0\tsent1\n{pair['sentence2']}\t{changed}\nrain\tsun\n", encoding="utf-8")
    found = overlap(["sample"], corpora=[corpus], near=0.8)
    name = "corpus corpus.tsv"
    assert found.count("sample", name, PAIRS, RELEASED) == 0
    assert found.count("sample", name, PAIRS, LETTERS) == 1
    assert found.count(name, "sample", SENTENCES, RELEASED) == 1
    assert found.count("sample", name, SENTENCES, LETTERS) == 2
    assert found.count("sample", name, SENTENCES, NEARLY) >= 2
    assert found.frame.loc[found.frame["unit"] == PAIRS, "distinct a"].tolist() == [sample, sample]
    assert "letter triples" in str(found)
    with pytest.raises(KeyError):
        found.count("sample", "STS12")


def test_a_table_of_triplets_pairs_the_first_with_each_other_and_numbers_are_no_sentences(tmp_path: Path) -> None:
    from stsbench.data.sentences import read_corpus_set

    triplets = tmp_path / "nli.csv"
    triplets.write_text("sent0,sent1,hard_neg\na b,c d,e f\n", encoding="utf-8")
    found = read_corpus_set(triplets)
    assert list(zip(found.first, found.second or (), strict=True)) == [("a b", "c d"), ("a b", "e f")]
    scored = tmp_path / "scored.tsv"
    scored.write_text("id\tsentence1\tsentence2\tscore\n7\ta b\tc d\t4.5\n", encoding="utf-8")
    found = read_corpus_set(scored)
    assert (found.first, found.second) == (("a b",), ("c d",))
    assert read_corpus_set(scored, ["sentence2"]).texts == ("c d",)
    with pytest.raises(UserError, match="no column 'sent0'"):
        read_corpus_set(scored, ["sent0"])
    text = tmp_path / "text"
    text.write_text("a b\n", encoding="utf-8")
    with pytest.raises(UserError, match="no columns to name"):
        read_corpus_set(text, ["sentence2"])
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("1,2\n", encoding="utf-8")
    with pytest.raises(UserError, match="holds no sentence"):
        read_corpus_set(numbers)


@given(
    st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=8, unique=True),
    st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=8, unique=True),
    st.sampled_from([0.2, 0.5, 0.75, 0.8, 1.0]),
)
def test_every_near_duplicate_is_found_and_no_other(left: list[str], right: list[str], threshold: float) -> None:
    found = near_matches(left, right, threshold)

    def nearness(one: str, other: str) -> float:
        return len(triples(one) & triples(other)) / len(triples(one) | triples(other))

    near = [[nearness(one, other) >= threshold - 1e-9 for other in right] for one in left]
    assert found[0].tolist() == [any(row) for row in near]
    assert found[1].tolist() == [any(column) for column in zip(*near, strict=True)]


@pytest.mark.parametrize("threshold", [1e-320, 1e-12])
def test_the_smallest_threshold_asks_for_one_common_triple(threshold: float) -> None:
    found = near_matches(["kettle", "owl"], ["kettles", "rain"], threshold)
    assert [side.tolist() for side in found] == [[True, False], [True, False]]


def test_a_training_can_count_what_its_corpus_holds_of_the_test_sets_in_one_pass() -> None:
    sets = {"dev": ["It's a dog.", "A cat.", "..."], "test": ["rain falls", "snow"], "none": []}
    corpus = ["it 's a dog .", " snow ", "RAIN falls!", "snow"]
    assert sentences_met(iter(corpus), sets) == {
        "dev": Met(letters=1, distinct=2, released=0),
        "test": Met(letters=2, distinct=2, released=1),
        "none": Met(letters=0, distinct=0, released=0),
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["STS99"], "there is no task 'STS99'"),
        (["sample-questions:dev"], "has no split 'dev'"),
        (["STS12@lower"], "has no text 'lower'"),
        (["sample+sample-questions"], "cannot be joined"),
        (["sample", "--near", "0"], "give a share above 0"),
        (["sample", "--corpus", "absent.txt"], "absent.txt"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(arguments: list[str], said: str) -> None:
    with pytest.raises(UserError) as caught:
        CliRunner().invoke(app, ["data", "overlap", *arguments], standalone_mode=False, catch_exceptions=False)
    assert said in str(caught.value)


def test_the_command_prints_all_counts_as_json() -> None:
    done = CliRunner().invoke(
        app, ["data", "overlap", "sample", "sample-paraphrases", "--json"], standalone_mode=False
    )
    rows = json.loads(done.stdout)
    assert {(row["a"], row["b"]) for row in rows} >= {("sample", "sample"), ("sample", "sample-paraphrases:train")}
