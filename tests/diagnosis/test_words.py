"""The verdict, the remarks and the table of a diagnosis."""

import numpy as np
import pytest

from stsbench.diagnosis.axes import AGGREGATION, POOLING, SECOND_TEST, TEXT, average_axis, read_claim, split_axis
from stsbench.diagnosis.result import Diagnosis, facts
from stsbench.diagnosis.search import Grid, Search
from stsbench.encoders.protocol import Identity
from stsbench.encoders.use import own_use
from stsbench.published.catalogue import checkpoints

TASKS = ("STS16", "SICK-R")
GRID = Grid(
    (
        POOLING.over(("avg", "cls_before_pooler"), "avg"),
        AGGREGATION,
        split_axis("SICK-R", ("test", "all")),
        average_axis(TASKS),
    ),
    {
        "STS16": np.array([[78.99, 81.30, 81.21], [73.55, 76.60, 76.50]]).reshape(2, 3, 1, 1),
        "SICK-R": np.array([[77.15, 77.58], [70.47, 70.53]]).reshape(2, 1, 2, 1),
    },
)


def diagnosis(claim: str) -> Diagnosis:
    return Diagnosis("toy", Search(GRID, read_claim(claim).about(TASKS)))


@pytest.mark.parametrize(
    ("claim", "fragments"),
    [
        ("STS16=81.21", ["comes from aggregation wmean, which gives 81.21.", "gives 78.99, 2.22 below"]),
        ("STS16=73.55,SICK-R=70.47", ["come from pooling cls_before_pooler.", "is up to 6.68 off (SICK-R:"]),
        ("STS16=81.21,SICK-R=77.58", ["`--tasks STS16,SICK-R:all --aggregation wmean`", "and SICK-R split all ("]),
        ("STS16=78.99", ["Your setting gives the claimed 78.99 on STS16: there is no gap to explain."]),
        ("78.99", ["comes from STS16 alone, which gives 78.99.", "add `--tasks STS16` to `stsbench run`."]),
        (
            "STS16=90.00",
            ["None of 6 settings gives the claimed 90.00", "aggregation mean, gives 81.30, 8.70 below."],
        ),
    ],
)
def test_the_sentence_and_the_remarks_name_what_explains_the_claim(claim: str, fragments: list[str]) -> None:
    found = diagnosis(claim)
    text = "\n".join([*found.remarks, *found.sentence.splitlines()])
    assert [fragment for fragment in fragments if fragment not in text] == []


def test_the_command_names_the_split_in_the_text_that_it_chooses() -> None:
    axes = (split_axis("STS-B", ("test", SECOND_TEST)), TEXT.over(("raw",), "senteval"), average_axis(("STS-B",)))
    scores = {"STS-B": np.array([[70.0, 71.0], [72.0, 73.0]])[..., None]}
    for claim, names in (("72", "STS-B:test@senteval-v2"), ("73", "STS-B:test@raw-v2 --text raw")):
        search = Search(Grid(axes, scores), read_claim(f"STS-B={claim}.00").about(("STS-B",)))
        assert f"add `--tasks {names}` to" in Diagnosis("toy", search).sentence


def test_the_table_and_the_data_have_the_claim_your_setting_and_what_explains_it() -> None:
    found = diagnosis("STS16=81.21")
    assert found.frame.groupby("task")["split"].agg(set).to_dict() == {"STS16": {""}, "SICK-R": {"test", "all"}}
    (table,) = (table.frame for table in found.table())
    assert table["setting"].tolist() == ["claimed", "your setting", "aggregation wmean"]
    assert table["STS16"].tolist() == [81.21, 78.99, 81.21]
    assert table["changes"].tolist()[1:] == [0, 1]
    data = found.to_dict()
    assert (data["explained"], data["default"]["scores"]) == (True, {"STS16": 78.99})
    assert data["explanations"][0]["changes"] == {"aggregation": "wmean"}
    assert diagnosis("STS16=90.00").to_dict()["explained"] is False


MINILM = checkpoints()["all-minilm-l6-v2"].weights_sha256


def test_the_first_fact_is_that_the_row_is_of_another_model() -> None:
    identity = Identity("minilm", "transformer", own_use("avg"), weights_sha256=MINILM)
    first, *_ = facts(read_claim("row:unsup-simcse-bert-base"), identity)
    assert "is a row of princeton-nlp/unsup-simcse-bert-base-uncased; you measured minilm." in first
    assert facts(read_claim("STS16=78.99"), identity) == []
