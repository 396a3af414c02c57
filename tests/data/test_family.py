"""Sets outside the papers' seven are read from files of their shape, and what is wrong is told with its line."""

import gzip
import io
import json
from collections import Counter

import pandas as pd
import pytest

from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_sts
from stsbench.data.catalogue import data_set, data_sets, paper_tasks, source
from stsbench.data.describe import verify

PAIRS = [("The kettle sings.", "The kettle whistles.", 1.0), ("An owl naps.", "A bus leaves.", 0.0)]


def lines(*rows):
    return "".join(f"{row}\n" for row in rows).encode()


def packed(rows):
    return gzip.compress(lines(*(json.dumps(row, ensure_ascii=False) for row in rows)), mtime=0)


def parquet(rows):
    buffer = io.BytesIO()
    pd.DataFrame(rows).to_parquet(buffer)
    return buffer.getvalue()


def scored(low, high, **more):
    return [
        {"sentence1": one, "sentence2": other, "score": low + share * (high - low)} | more
        for one, other, share in PAIRS
    ]


TABBED = lines(*(f"{one}\t{other}\t{share:g}" for one, other, share in PAIRS))
# Indented as the release is: entries, not lines.
KOREAN = json.dumps(
    [
        {
            "guid": f"klue-sts-v1_dev_{given[0]:05}",
            **{"sentence1": one, "sentence2": other, "labels": {"label": sum(given) / 2}},
            "annotations": {"annotations": given},
        }
        for (one, other, _), given in zip(PAIRS, [(5, 4), (0, 1)], strict=True)
    ],
    indent=4,
).encode()
BIOSSES = lines(
    "sentence_id\tsentence_1\tsentence_2\tannotator_a\tannotator_b\tannotator_c\tannotator_d\tannotator_e",
    "1\tThe kettle sings.\tThe kettle whistles.\t4\t4\t3\t4\t4",
    "2\tAn owl naps.\tA bus leaves.\t0\t0\t1\t0\t0",
)
SEMREL = (
    b"PairID,Text,Score\n"
    b'AFR-1,"The kettle sings.\tThe kettle, it whistles.",1\n'
    b'AFR-2,"An owl naps.\nA bus leaves.",0\n'
)
GERMAN = b'The kettle sings.,"The kettle, it ""whistles"".",5.0\nAn owl naps.,A bus leaves.,0.0\n'
JAPANESE = [{"sentence_pair_id": a, "sentence1": a, "sentence2": b, "label": 5 * share} for a, b, share in PAIRS]
JSTS = lines(*map(json.dumps, JAPANESE))
AFQMC = lines(*(json.dumps({"sentence1": a, "sentence2": b, "label": f"{share:g}"}) for a, b, share in PAIRS))
PAWS_X = lines(
    "id\tsentence1\tsentence2\tlabel",
    *(f"{n}\t{one}\t{other}\t{share:g}" for n, (one, other, share) in enumerate(PAIRS)),
)
CNSD = lines("The kettle sings.\tThe kettle whistles.\t5", "An owl naps.\tA bus leaves.\t0")
EMPTY = {**scored(1, 4)[0], "sentence2": "", "lang": "en"}
STS22 = packed([*scored(1, 4, lang="en"), *scored(1, 4, lang="de-en"), EMPTY])

SETS = {
    "BIOSSES": ("test", "raw", BIOSSES, [3.8, 0.2]),
    "STS17": ("en-de", "raw", packed(scored(0, 5)), [5.0, 0.0]),
    "STS22": ("de-en", "raw", STS22, [4.0, 1.0]),
    "SemRel24": ("afr", "raw", SEMREL, [1.0, 0.0]),
    "JSTS": ("dev", "raw", JSTS, [5.0, 0.0]),
    "KLUE-STS": ("dev", "raw", KOREAN, [4.5, 0.5]),
    "PAWS-X": ("test", "zh", PAWS_X, [1.0, 0.0]),
    "ATEC": ("test", "raw", TABBED, [1.0, 0.0]),
    "BQ": ("dev", "raw", TABBED, [1.0, 0.0]),
    "LCQMC": ("test", "raw", TABBED, [1.0, 0.0]),
    "CNSD-STS-B": ("test", "raw", CNSD, [5.0, 0.0]),
    "AFQMC": ("dev", "raw", AFQMC, [1.0, 0.0]),
}


@pytest.fixture
def put(tmp_path):
    """Return a function that puts one file of a set where `stsbench data get` would, or a person who cloned it."""

    def place(task, split, text, content):
        variant = data_set(task).texts[text]
        (part,) = [part for part in variant.parts if part.split == split]
        path = tmp_path / "data" / source(variant.source).roots[0] / part.files[0].path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return place


def read(tmp_path, task, split, text="raw"):
    return load_sts(task, split, text, [tmp_path / "data"])


@pytest.mark.parametrize("task", SETS)
def test_a_set_is_read_from_files_of_its_shape(tmp_path, put, task):
    split, text, content, golds = SETS[task]
    put(task, split, text, content)
    data = read(tmp_path, task, split, text)
    assert (data.task, data.split, data.text) == (task, split, text)
    assert data.pairs["gold"].to_list() == pytest.approx(golds)
    assert [text.partition(" ")[0] for text in data.pairs["sentence1"]] == ["The", "An"]
    assert data.pairs["pair_id"].is_unique
    # Two pairs are not the catalogued number, and that is said.
    assert data.status == "modified"
    assert f"{data_set(task).texts[text].parts[0].split and split}: " in " ".join(data.problems)


def test_of_several_languages_in_one_file_each_is_a_split_and_a_subset(tmp_path, put):
    put("STS22", "en", "raw", STS22)
    whole = read(tmp_path, "STS22", "all").pairs  # with the empty text that everyone's copy has
    assert whole.groupby("subset", sort=False).size().to_dict() == {"en": 3, "de-en": 2}
    with pytest.raises(UserError, match="STS22 has no split 'test'"):
        read(tmp_path, "STS22", "test")


def test_a_set_with_the_catalogued_count_and_no_known_hash_is_unverified(tmp_path, put):
    put("STS22", "fr-pl", "raw", packed([row for _ in range(4) for row in scored(1, 4, lang="fr-pl")]))
    data = read(tmp_path, "STS22", "fr-pl")
    assert (data.status, data.problems, data.files[0].expected) == ("unverified", (), None)


def test_a_translation_and_a_second_version_of_sts_b_are_texts_of_it(tmp_path, put):
    put("STS-B", "test", "v2", parquet([{"sentence1": a, "sentence2": b, "score": 5 * c} for a, b, c in PAIRS]))
    second = read(tmp_path, "STS-B", "test", "v2")
    assert second.pairs["gold"].to_list() == [5.0, 0.0]
    assert second.problems == ("STS-B test: expected 1362 items, found 2.",)
    put("STS-B", "test", "de", GERMAN)
    data = read(tmp_path, "STS-B", "test", "de")
    assert data.pairs["sentence2"].to_list() == ['The kettle, it "whistles".', "A bus leaves."]
    assert (data.status, data.pairs["gold"].to_list()) == ("modified", [5.0, 0.0])
    assert any("expected sha256" in problem for problem in data.problems)


def test_ratings_are_kept_and_their_mean_is_the_gold_score(tmp_path, put):
    put("BIOSSES", "test", "raw", BIOSSES)
    pairs = read(tmp_path, "BIOSSES", "test").pairs
    assert pairs["ratings"].to_list() == [(4, 4, 3, 4, 4), (0, 0, 1, 0, 0)]
    put("KLUE-STS", "dev", "raw", KOREAN)
    assert read(tmp_path, "KLUE-STS", "dev").pairs["ratings"].to_list() == [(5, 4), (0, 1)]


WITH = (*scored(0, 5),)


@pytest.mark.parametrize(
    ("task", "content", "message"),
    [
        ("STS17", packed([*WITH, {"sentence1": "a", "sentence2": "b"}]), "line 3: 'score' is missing"),
        ("STS17", packed([*WITH, {**WITH[0], "sentence2": None}]), "line 3: sentence2 is None, not a sentence"),
        ("STS17", packed([*WITH, {**WITH[0], "sentence1": " "}]), "line 3: sentence1 is ' ', not a sentence"),
        ("STS17", packed([*WITH, {**WITH[0], "score": True}]), "line 3: gold score 'True' is not a number"),
        ("BIOSSES", BIOSSES + b"3\ta\tb\t1\t2\n", "scores.tsv, line 4: expected 8 columns"),
        ("BIOSSES", BIOSSES + b"3\ta\tb\t1\t2\t3\tx\t4\n", "line 4: expected ratings, found '1', '2', '3', 'x'"),
        ("BIOSSES", BIOSSES + b"3\ta\tb\t1\t2\t3\t9\t4\n", "line 4: rating 9 is not on the scale of BIOSSES"),
        ("BIOSSES", b"sentence_id\tsentence_1\n", "has no column 'sentence_2'"),
        ("SemRel24", SEMREL + b"AFR-3,only one,0.5\n", "labels.csv, line 5: expected two sentences in"),
        ("SemRel24", SEMREL + b'AFR-3,"a\tb\tc",0.5\n', "found 3"),
        ("KLUE-STS", KOREAN[:-20], "dev.json: not valid JSON ("),
        ("KLUE-STS", b'{"guid": 1}', "expected a JSON list of objects"),
        ("KLUE-STS", b"[2]", "dev.json, entry 1: expected a JSON object"),
        ("KLUE-STS", KOREAN.replace(b'"label"', b'"lable"', 1), "entry 1: 'labels.label' is missing"),
        ("ATEC", TABBED + b"a\tb\n", "ATEC.test.data, line 3: expected 3 tab-separated columns, found 2"),
        ("ATEC", TABBED + b"a\tb\tyes\n", "ATEC.test.data, line 3: gold score 'yes' is not a number"),
        ("AFQMC", b"", "dev.json is empty"),
        ("STS17", packed(scored(0, 1)), "no gold score is above 1, but the scale of STS17 is 0 to 5"),
        ("STS17", packed(scored(0, 100)), "line 1: gold score 100 is not on the scale of STS17, 0 to 5"),
        ("STS22", packed(scored(0, 4, lang="de-en")), "line 2: gold score 0 is not on the scale of STS22"),
    ],
)
def test_a_malformed_line_or_another_scale_is_an_error_with_file_and_line(tmp_path, put, task, content, message):
    split, text, _, _ = SETS[task]
    put(task, split, text, content)
    with pytest.raises(UserError) as failure:
        read(tmp_path, task, split, text)
    assert message in str(failure.value)
    assert "\n" not in str(failure.value)


@pytest.mark.shared
@pytest.mark.parametrize("text", ["raw", "senteval"])
def test_the_rule_makes_the_second_sts_b_of_the_first_with_its_exact_counts(shared, text):
    clean = load_sts("STS-B", "all", f"{text}-v2", [shared / "data"])
    counts = clean.pairs.groupby("split", sort=False).size().to_dict()
    assert (counts, clean.status) == ({"train": 5749, "dev": 1485, "test": 1362}, "verified")
    assert clean.notes[-1] == ("STS-B: left out 17 of 1,379 test pairs that occur twice or in another split.")
    # Recomputed by hand: no pair that is kept stands a second time anywhere, whichever sentence comes first.
    whole = load_sts("STS-B", "all", text, [shared / "data"]).pairs
    keys = [tuple(sorted(pair)) for pair in zip(whole["sentence1"], whole["sentence2"], strict=True)]
    count = Counter(keys)
    once = {pair_id for pair_id, key in zip(whole["pair_id"], keys, strict=True) if count[key] == 1}
    kept = set(clean.pairs["pair_id"])
    assert kept == {id_ for id_ in whole["pair_id"] if id_ in once or id_.startswith("train")}


def test_every_set_outside_the_papers_has_a_file_of_its_shape_and_is_verified_if_it_is_here(tmp_path, put):
    scored_sets = {name for name, entry in data_sets().items() if entry.kind == "sts"}
    assert set(SETS) == scored_sets - {*paper_tasks(), "sample"}
    assert set(verify().frame["source"]) == {"senteval", "sts-raw", "sample"}
    put("BIOSSES", "test", "raw", BIOSSES)
    rows = verify([tmp_path / "data"]).frame
    (row,) = rows[rows["source"] == "biosses"].to_dict("records")
    assert (row["status"], row["found_lines"], row["expected_sha256"]) == ("unverified", 3, "unverified")
    assert not verify([tmp_path / "data"], what=["BIOSSES"]).advice
    assert set(verify(what=["STS22"]).frame["status"]) == {"missing"}
    assert set(verify(what=["STS-B"]).frame["text"]) == {"senteval", "raw"}
