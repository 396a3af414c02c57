"""Which rows a run is checked against."""

from collections.abc import Callable

import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.judging.published import rows_to_check

MakeRun = Callable[..., sb.RunRecord]

STS = {"STS-B": 50.0}


def names(run: sb.RunRecord, against: str = "auto") -> list[str]:
    return [row.name for row in rows_to_check(run, against)]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("princeton-nlp/unsup-simcse-bert-base-uncased", "esimcse-coling2022-3/unsup-simcse-bert-base"),
        ("ffgcc/ESimCSE-bert-base-uncased", "esimcse-coling2022-3/esimcse-bert-base"),
        ("sentence-transformers/all-MiniLM-L6-v2", "mteb-all-minilm-l6-v2/all-minilm-l6-v2"),
        ("bert-base-uncased", "simcse-slides-sts/bert-base-first-last"),
    ],
)
def test_auto_finds_the_row_by_the_checkpoints_name(model: str, expected: str, make_run: MakeRun) -> None:
    assert names(make_run(STS, {"name": model, "pooling": "avg_static_last"})) == [expected]


def test_of_a_checkpoint_with_several_poolings_auto_takes_the_runs_own(make_run: MakeRun) -> None:
    run = make_run({"MR": 50.0}, {"name": "bert-base-uncased", "pooling": "avg"})
    assert names(run) == ["simcse-slides-transfer/bert-base-avg"]


def test_auto_does_not_guess(make_run: MakeRun) -> None:
    with pytest.raises(UserError, match=r"no published row is known for me/mine: name one with --against"):
        names(make_run(STS, {"name": "me/mine"}))
    for name in ("/models/esimcse-bert-base-uncased/", "somebody/esimcse-bert-base-uncased"):
        with pytest.raises(UserError, match="named like esimcse-bert-base"):
            names(make_run(STS, {"name": name}))


def test_a_checkpoint_without_a_printed_row_is_told_as_such(make_run: MakeRun) -> None:
    with pytest.raises(UserError, match="no row of sup-simcse-bert-large is included"):
        names(make_run(STS, {"name": "princeton-nlp/sup-simcse-bert-large-uncased"}))


def test_a_system_stands_for_those_of_its_rows_that_have_a_measured_task(make_run: MakeRun) -> None:
    both = ["simcse-slides-sts/sup-simcse-bert-base", "simcse-slides-transfer/sup-simcse-bert-base"]
    assert names(make_run(STS), "sup-simcse-bert-base") == both[:1]
    assert names(make_run({"MR": 50.0}), "sup-simcse") == both[1:]
    assert names(make_run({"STS-B": 50.0, "MR": 50.0}), "sup-simcse") == both
    assert names(make_run({"sample": 50.0}), "sup-simcse") == both[:1]


def test_a_full_name_is_that_row_alone(make_run: MakeRun) -> None:
    name = "simcse-slides-sts/sup-simcse-bert-base"
    assert names(make_run({"MR": 50.0}), name) == [name]


def test_a_row_that_does_not_exist_is_refused_with_a_suggestion(make_run: MakeRun) -> None:
    with pytest.raises(UserError, match="did you mean esimcse-bert-base"):
        names(make_run(STS), "esimcse-bert-bas")
