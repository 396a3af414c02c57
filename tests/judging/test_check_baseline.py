"""A run against its predecessor's: no score may drop by more than a little, and all must be there."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.judging.baseline import check_baseline
from stsbench.records.parts import Score
from stsbench.records.signature import Signature

MakeRun = Callable[..., sb.RunRecord]

OLD = {"STS12": 70.0, "STS-B": 80.0}


@pytest.mark.parametrize(("score", "verdict"), [(90.0, "pass"), (79.71, "pass"), (79.69, "fail")])
def test_a_score_may_rise_as_it_likes_and_drop_a_little(score: float, verdict: str, make_run: MakeRun) -> None:
    found = check_baseline(make_run(OLD | {"STS-B": score}), make_run(OLD), 0.3)
    assert found.verdict == verdict
    assert [cell.verdict for cell in found.cells][:2] == ["pass", verdict]


def test_the_average_is_looked_at_too(make_run: MakeRun) -> None:
    found = check_baseline(make_run({"STS12": 69.8, "STS-B": 79.8}), make_run(OLD), 0.1)
    assert [cell.name for cell in found.of("fail")] == ["STS12", "STS-B", "Avg."]
    assert found.cells[-1].difference == pytest.approx(-0.2)


def test_a_single_task_has_no_average(make_run: MakeRun) -> None:
    found = check_baseline(make_run({"STS-B": 80.0}), make_run({"STS-B": 80.0}))
    assert [cell.name for cell in found.cells] == ["STS-B"]


def test_a_task_that_is_missing_keeps_the_gate_shut(make_run: MakeRun) -> None:
    found = check_baseline(make_run({"STS12": 70.0}), make_run(OLD))
    assert found.exit_code == 2
    assert "task is not measured here and STS-B there (measure with --tasks STS-B)" in found.sentence


def test_a_task_more_than_the_baseline_has_is_no_obstacle(make_run: MakeRun) -> None:
    assert check_baseline(make_run(OLD), make_run({"STS12": 70.0})).verdict == "pass"


@pytest.mark.parametrize(("field", "value"), [("split", "dev"), ("metric", "pearson"), ("text", "raw")])
def test_another_protocol_does_not_compare(field: str, value: str, make_run: MakeRun) -> None:
    found = check_baseline(make_run(OLD, **{field: value}), make_run(OLD))
    assert found.exit_code == 2
    assert f"{field} is {value} here" in found.sentence


def test_other_data_does_not_compare(make_run: MakeRun) -> None:
    old, new = make_run(OLD), make_run(OLD)
    scores = tuple(
        score.model_copy(update={"signature": score.signature.replace("data:3f2a91", "data:000000")})
        for score in new.scores
    )
    found = check_baseline(new.model_copy(update={"scores": scores}), old)
    assert "data is 000000 here and 3f2a91 there" in found.sentence


def test_another_use_of_the_model_is_noted_and_compares(make_run: MakeRun) -> None:
    found = check_baseline(make_run(OLD, {"pooling": "avg"}), make_run(OLD))
    assert found.verdict == "pass"
    assert found.notes == ("pooling: avg here, cls_before_pooler in the baseline",)
    assert found.run == "mine (pooling avg)"


def test_prompts_are_noted_as_texts_whichever_task_they_are_of(make_run: MakeRun) -> None:
    old = make_run(OLD)
    new = make_run(OLD, {"prompts": ("so: ", "")})
    last = replace(new.signatures[-1], use=replace(old.signatures[-1].use, prompt="it is "))
    scores = (*new.scores[:-1], new.scores[-1].model_copy(update={"signature": str(last)}))
    assert check_baseline(new.model_copy(update={"scores": scores}), old).notes == (
        "prompts: 'so: ', '' here, none in the baseline",
        "prompt: 'it is ' here, none in the baseline",
    )


def test_an_undefined_score_keeps_the_gate_shut(make_run: MakeRun) -> None:
    found = check_baseline(make_run(OLD | {"STS-B": None}), make_run(OLD))
    assert found.verdict == "fail"
    assert "STS-B undefined" in found.sentence


def test_a_negative_drop_is_refused(make_run: MakeRun) -> None:
    with pytest.raises(UserError, match="a drop of -1 points"):
        check_baseline(make_run(OLD), make_run(OLD), -1)


@pytest.mark.parametrize("folds", ["kfold10", "kfold5"])
def test_folds_that_a_file_does_not_tell_match_with_a_note(folds: str, tmp_path: Path) -> None:
    entry = {"acc": 75.0, "devacc": 74.0, "ndev": 40, "ntest": 40}
    file = tmp_path / "results.json"
    file.write_text(json.dumps({"MRPC": entry, "TREC": entry}), encoding="utf-8")
    theirs = sb.import_results(file)

    def measured(score: Score) -> Score:
        stated = replace(Signature.parse(score.signature), aggregation=folds, similarity="logreg", data="3f2a91")
        return score.model_copy(update={"signature": str(stated)})

    ours = theirs.model_copy(update={"scores": tuple(map(measured, theirs.scores))})
    for found in (check_baseline(ours, theirs), check_baseline(theirs, ours)):
        assert found.verdict == "pass", found.sentence
        assert "aggregation: an imported file does not say" in found.notes
    others = [
        score.model_copy(update={"signature": score.signature.replace(folds, "kfold7")}) for score in ours.scores
    ]
    other = ours.model_copy(update={"scores": tuple(others)})
    assert check_baseline(other, ours).verdict == "not comparable"
