"""What a diagnosis says, and what it does not say."""

import numpy as np
import pytest

from stsbench.diagnosis.choices import AGGREGATION, COMPARISON, METRIC, POOLING, REGRESSOR, Comparing, split_of
from stsbench.diagnosis.claim import read_claim
from stsbench.diagnosis.grid import Axis, Grid, axis_of_means
from stsbench.diagnosis.result import Diagnosis
from stsbench.diagnosis.search import Search
from stsbench.diagnosis.words import facts
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import own_use
from stsbench.published.catalogue import checkpoints

POOLINGS = Axis(POOLING, ("avg", "cls_before_pooler"))
AGGREGATIONS = Axis(AGGREGATION, ("all", "mean", "wmean"))
SPLITS = Axis(split_of("SICK-R"), ("test", "all"))
AXES = (POOLINGS, AGGREGATIONS, SPLITS, axis_of_means(("STS16", "SICK-R"), with_sample=False))
GRID = Grid(
    AXES,
    {
        "STS16": np.array([[78.99, 81.30, 81.21], [73.55, 76.60, 76.50]]).reshape(2, 3, 1, 1),
        "SICK-R": np.array([[77.15, 77.58], [70.47, 70.53]]).reshape(2, 1, 2, 1),
    },
)


def diagnosis(claim: str) -> Diagnosis:
    return Diagnosis("toy", Search(GRID, read_claim(claim).about(("STS16", "SICK-R"))))


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (
            "STS16=81.21",
            "Your 81.21 on STS16 is what aggregation `wmean` gives (81.21); under `all`, the papers' aggregation, "
            "the same vectors give 78.99.",
        ),
        (
            "SICK-R=77.58",
            "Your 77.58 on SICK-R is what the whole of SICK-R (train, dev and test) gives (77.58); "
            "SICK-R's test split gives 77.15.",
        ),
        (
            "STS16=73.55,SICK-R=70.47",
            "Your 2 numbers (STS16, SICK-R) are what pooling `cls_before_pooler` gives; with `avg`, your setting, "
            "the model gives numbers up to 6.68 off (SICK-R: 77.15 for 70.47).",
        ),
        (
            "STS16=81.21,SICK-R=77.58",
            "No single choice explains your 2 numbers (STS16, SICK-R). Two together do: aggregation `wmean` and "
            "the whole of SICK-R (train, dev and test) give them all; your setting gives numbers up to 2.22 off "
            "(STS16: 78.99 for 81.21).",
        ),
        ("STS16=78.99", "Your 78.99 on STS16 is what your setting gives: there is no gap to explain."),
        ("78.99", "Your 78.99 as the average is what STS16 alone gives (78.99); the mean of all tasks is 78.07."),
        (
            "STS16=90.00",
            "None of 6 settings gives your 90.00 on STS16. Your own gives 78.99, 11.01 below. The nearest with "
            "one change is aggregation `mean`: 81.30, 8.70 below.",
        ),
    ],
)
def test_the_verdict_names_the_choice_or_says_that_none_does(claim: str, verdict: str) -> None:
    assert diagnosis(claim).verdict == verdict


def test_a_finding_comes_with_its_meaning_and_the_options_that_give_it() -> None:
    said = diagnosis("STS16=81.21,SICK-R=77.58").remarks
    assert "MTEB scores SICK-R so, the papers its test split alone." in said
    assert "`stsbench run` gives it with `--tasks STS16,SICK-R:all --aggregation wmean`." in said


def test_of_several_numbers_each_that_does_not_fit_is_explained_alone() -> None:
    said = diagnosis("STS16=81.21,SICK-R=70.47").remarks
    assert said[0] == "Aggregation `wmean` gives 1 of the 2: STS16."
    assert said[1] == "The 70.47 on SICK-R is what pooling `cls_before_pooler` gives."


def test_the_table_has_the_claim_the_default_and_what_explains_it() -> None:
    (table,) = (table.frame for table in diagnosis("STS16=81.21").table())
    assert table["setting"].tolist() == ["claimed", "your setting", "aggregation wmean"]
    assert table["STS16"].tolist() == [81.21, 78.99, 81.21]
    assert table["changes"].tolist()[1:] == [0, 1]


def test_the_data_say_what_the_words_say() -> None:
    found = diagnosis("STS16=81.21").to_dict()
    assert found["explained"] is True
    assert found["explanations"][0]["changes"] == {"aggregation": "wmean"}
    assert found["default"]["scores"] == {"STS16": 78.99}
    assert diagnosis("STS16=90.00").to_dict()["explained"] is False


def test_the_grid_has_a_row_per_score() -> None:
    table = GRID.frame
    assert len(table) == 6 + 4
    row = table[(table["task"] == "SICK-R") & (table["split"] == "all") & (table["pooling"] == "avg")]
    assert (row["score"].item(), row["changes"].item(), row["aggregation"].item()) == (77.58, 1, "all")


def test_a_row_is_held_against_the_pooler_that_its_paper_used_and_against_other_seeds() -> None:
    claim = read_claim("row:unsup-simcse-bert-base")
    said = facts(
        claim,
        Identity("princeton-nlp/unsup-simcse-bert-base-uncased", "transformer", own_use("avg")),
        measured=75.0,
    )
    assert said[0].startswith("unsup-simcse-bert-base was scored with pooling `cls_before_pooler` (README")
    assert "Over 50 seeds unsup-simcse-bert-base averages 75.11, from 73.16 to 76.70" in said[1]
    assert said[2:] == ["The claimed 76.25 is above 45 of them.", "Your 75.00 is above 22 of them."]


def test_a_row_of_another_model_is_said_to_be_one_and_the_measured_is_no_seed_of_it() -> None:
    weights = checkpoints()["all-minilm-l6-v2"].weights_sha256
    measured = Identity("minilm", "transformer", own_use("avg"), weights_sha256=weights)
    said = facts(read_claim("row:unsup-simcse-bert-base"), measured, measured=78.87)
    assert "is a row of princeton-nlp/unsup-simcse-bert-base-uncased; you measured minilm." in said[0]
    assert not any("78.87" in sentence for sentence in said)


def test_a_number_that_is_printed_somewhere_is_said_to_be() -> None:
    (sentence,) = facts(read_claim("avg=74.54"), Identity("my/own", "transformer", own_use("avg")), measured=None)
    assert sentence.startswith("74.54 as the average is printed in ")
    assert "simcse-slides-sts/unsup-simcse-bert-base-preprint" in sentence
    assert facts(read_claim("avg=74.5"), Identity("my/own", "transformer", own_use("avg")), measured=None) == []


def test_a_number_that_is_printed_of_the_models_own_weights_is_said_to_be() -> None:
    known = checkpoints()["all-minilm-l6-v2"]
    for name in ("minilm", "my/folder"):
        identity = Identity(name, "transformer", own_use("avg"), weights_sha256=known.weights_sha256)
        (sentence,) = facts(read_claim("STS16=78.99"), identity, measured=None)
        assert sentence == (
            "78.99 on STS16 is printed in mteb-all-minilm-l6-v2/all-minilm-l6-v2 (your model's), "
            "mocose-acl2022-1/mocose-bert-base."
        )


def test_files_that_are_not_those_of_the_known_checkpoint_are_told() -> None:
    known = checkpoints()["all-minilm-l6-v2"]
    identity = Identity(
        "minilm", "transformer", own_use("avg"), weights_sha256=known.weights_sha256, tokenizer_sha256="0" * 64
    )
    said = facts(read_claim("STS16=12.34"), identity, measured=None)
    assert said == [
        "Your tokenizer's files are not the ones that all-minilm-l6-v2 was scored with (SHA-256 f2f018c8cffe…)."
    ]


def test_a_diagnosis_shows_itself_with_its_verdict_table_and_remarks() -> None:
    shown = diagnosis("STS16=81.21")
    for text in (str(shown), shown._repr_html_()):
        assert text.index(shown.verdict) < text.index("aggregation wmean") < text.index(shown.remarks[0])


def command_of(metric: str, claim: str, own: Comparing) -> str:
    """Return the command for a claim that SICK-R's regressor alone gives, by one of the metrics."""
    axes = (
        Axis.of(METRIC, ("spearman", "pearson"), metric),
        Axis(COMPARISON, (own, REGRESSOR)),
        axis_of_means(("STS16", "SICK-R"), with_sample=False),
    )
    scores = np.array([[77.0, 82.0], [78.0, 84.0]]).reshape(2, 2, 1)
    grid = Grid(axes, {"STS16": np.array([[70.0, 70.0], [71.0, 71.0]]).reshape(2, 2, 1), "SICK-R": scores})
    return Diagnosis("toy", Search(grid, read_claim(claim).about(("STS16", "SICK-R")))).remarks[-1]


@pytest.mark.parametrize(
    ("metric", "claim", "own", "command"),
    [
        ("pearson", "SICK-R=84.00", "cosine", "gives it with `--tasks SICK-R:supervised`."),
        ("spearman", "SICK-R=82.00", "cosine", "gives it with `--tasks SICK-R:supervised --format csv`."),
        ("pearson", "STS16=71,SICK-R=84", "cosine", "gives it with `--tasks STS16,SICK-R:supervised`."),
        (
            "pearson",
            "STS16=71,SICK-R=84",
            "dot",
            "gives it with `--tasks STS16,SICK-R:supervised --similarity cosine`.",
        ),
        (
            "pearson",
            "77.50",
            "cosine",
            "gives the scores of which it is the mean with `--tasks STS16,SICK-R:supervised`.",
        ),
    ],
)
def test_the_command_of_a_regressor_is_one_that_prints_its_number(
    metric: str, claim: str, own: str, command: str
) -> None:
    assert command_of(metric, claim, Comparing(own)) == f"`stsbench run` {command}"
