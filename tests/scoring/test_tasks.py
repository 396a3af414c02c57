"""From names to tasks, and protocols: named sets of choices."""

from collections.abc import Callable

import pandas as pd
import pytest

from stsbench import UserError, protocol
from stsbench.data.tables import StsData
from stsbench.scoring.kinds.sts import StsPairs
from stsbench.scoring.settings import Protocol
from stsbench.scoring.tasks import STS_TASKS, TaskSpec, parse_tasks, read_data, read_task

SIMCSE, MTEB, RAW = protocol(), protocol("mteb"), protocol(text="raw")


def test_sts_is_the_seven_tasks_with_the_splits_and_texts_of_the_protocol() -> None:
    assert parse_tasks("sts", SIMCSE) == [TaskSpec(task, "test", "senteval") for task in STS_TASKS]
    assert len(STS_TASKS) == 7
    splits = {spec.task: spec.split for spec in parse_tasks("sts", MTEB)}
    assert splits == dict.fromkeys(STS_TASKS, "test") | {"SICK-R": "all"}
    texts = {spec.task: spec.text for spec in parse_tasks("sts", RAW)}
    assert texts == dict.fromkeys(STS_TASKS, "raw") | {"SICK-R": "senteval"}


@pytest.mark.parametrize(
    ("written", "protocol", "specs"),
    [
        ("STS-B:dev", SIMCSE, [("STS-B", "dev", "senteval")]),
        ("stsbenchmark", SIMCSE, [("STS-B", "test", "senteval")]),
        ("STS12@raw", SIMCSE, [("STS12", "test", "raw")]),
        ("STS-B:train@raw", SIMCSE, [("STS-B", "train", "raw")]),
        ("SICK-R:test", MTEB, [("SICK-R", "test", "senteval")]),
        (" sick_r ", SIMCSE, [("SICK-R", "test", "senteval")]),
        ("sample", SIMCSE, [("sample", "test", "sample")]),
        ("STS16, STS-B:dev", SIMCSE, [("STS16", "test", "senteval"), ("STS-B", "dev", "senteval")]),
        (["sts16", "STS2016,", "STS16:test@senteval"], SIMCSE, [("STS16", "test", "senteval")]),
    ],
)
def test_names_have_splits_and_texts_and_each_task_is_scored_once(
    written: str | list[str], protocol: Protocol, specs: list[tuple[str, str, str]]
) -> None:
    assert parse_tasks(written, protocol) == [TaskSpec(*spec) for spec in specs]
    assert [spec.task for spec in parse_tasks("STS16,sts", SIMCSE)][::6] == ["STS16", "SICK-R"]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        *((nothing, "no task was named") for nothing in ("", " , ", [])),
        ("STS18", r"there is no task 'STS18': did you mean STS1\d\?"),
        ("sample:dev", "sample has no split 'dev': choose one of test"),
        ("sample@raw", "sample has no text 'raw'"),
        ("STS16:dev", "STS16 has no split 'dev'"),
        ("SICK-R@raw", "SICK-R has no text 'raw': choose one of senteval"),
    ],
)
def test_mistakes_in_names_are_named(written: str | list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_task(*parse_tasks(written, SIMCSE))


def data_of(*gold: float) -> StsPairs:
    pairs = pd.DataFrame({"gold": gold}, dtype="float64")
    return StsPairs(StsData("STS13", "test", "senteval", pairs, (0.0, 5.0), "modified", "0" * 64, (), ()))


@pytest.mark.parametrize(
    ("gold", "message"),
    [((), "has 0 scored pairs"), ((3.0,), "has 1 scored pairs"), ((3.0, 3.0), "has the score 3 for every pair")],
)
def test_gold_scores_on_which_no_correlation_is_defined_are_a_mistake(
    gold: tuple[float, ...], message: str
) -> None:
    with pytest.raises(UserError, match=f"STS13, split test, text senteval, {message}: a correlation needs"):
        data_of(*gold).demand_scorable()
    data_of(3.0, 3.0, 4.0).demand_scorable()


def test_two_tasks_of_one_name_are_refused_as_no_row_could_be_told_to_be_of_one(
    toy_data: Callable[..., StsData],
) -> None:
    data = [toy_data(), toy_data(seed=1)]
    with pytest.raises(UserError, match="two tasks are named toy: give each once"):
        read_data(data, protocol=SIMCSE)
    assert read_data([toy_data(), toy_data(split="dev")], protocol=SIMCSE)


@pytest.mark.parametrize("option", ["aggregation", "metric", "similarity", "text"])
def test_an_unknown_choice_is_answered_with_the_known_ones(option: str) -> None:
    with pytest.raises(UserError, match=rf"^unknown {option} 'x': choose one of \w+, \w+"):
        protocol(**{option: "x"})
