"""Sets outside the papers' seven are measured through the ordinary path, by language."""

import gzip
import json

import pytest

PAIRS = [
    ("An owl naps.", "An owl sleeps.", 1.0),
    ("Rain fell.", "It rained a lot.", 0.6),
    ("A bus.", "Hot tea.", 0.0),
]


@pytest.fixture
def family(tmp_path):
    """Return a folder with small files of two sets, of invented sentences."""
    biosses = tmp_path / "family" / "biosses" / "annotation_pairs_scores.tsv"
    biosses.parent.mkdir(parents=True)
    raters = "\t".join(f"annotator_{name}" for name in "abcde")
    rows = [f"sentence_id\tsentence_1\tsentence_2\t{raters}"]
    for number, (one, other, share) in enumerate(PAIRS, 1):
        given = [round(4 * share)] * 4 + [min(4, round(4 * share) + 1)]
        rows.append("\t".join(map(str, [number, one, other, *given])))
    biosses.write_text("\n".join(rows) + "\n", encoding="utf-8")
    sts17 = tmp_path / "family" / "sts17" / "test"
    sts17.mkdir(parents=True)
    lines = [json.dumps({"sentence1": a, "sentence2": b, "score": 5 * share}) for a, b, share in PAIRS]
    for language in ("en-en", "en-de"):
        (sts17 / f"{language}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return tmp_path / "family"


def test_sets_and_languages_are_measured_by_name(stsbench, family):
    outcome = stsbench(
        "run", "-m", "toys:words", "--tasks", "BIOSSES,STS17:en-en,STS17:en-de", "--data-dir", family, "--json"
    )
    assert outcome.code == 0, outcome.err
    record = json.loads(next(family.parent.rglob("run.json")).read_text(encoding="utf-8"))
    assert [(score["task"], score["split"], score["numbers"][0]["items"]) for score in record["scores"]] == [
        ("BIOSSES", "test", 3),
        ("STS17", "en-en", 3),
        ("STS17", "en-de", 3),
    ]
    assert record["scores"][1]["signature"].startswith("STS17:en-en:all|spearman|cosine|text:raw|data:")
    assert record["scores"][0]["raters"]["ratings"] == 5
    assert "STS17 en-en: 250 items expected, 3 found." in record["notes"]


def test_a_reader_is_told_the_ceiling_that_raters_set(stsbench, family):
    outcome = stsbench("run", "-m", "toys:words", "--tasks", "BIOSSES", "--data-dir", family)
    assert outcome.code == 0, outcome.err
    assert "BIOSSES: the ceiling that its raters' agreement sets is a Pearson of 9" in outcome.out + outcome.err


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ("STS17", r"STS17 has no split 'test': choose one of ko-ko, ar-ar, en-ar, "),
        ("STS17:de-en", r"STS17 has no split 'de-en': "),
        ("STS-B@v3", r"STS-B has no text 'v3': choose one of senteval, raw, v2, raw-v2, "),
        ("STS-B@v2", r"STS-B was not found in .*: run `stsbench data get stsb-v2`"),
    ],
)
def test_what_is_not_there_is_told_in_a_sentence(stsbench, family, tasks, message):
    stsbench("run", "-m", "toys:words", "--tasks", tasks, "--data-dir", family).demand_one_sentence(message)
