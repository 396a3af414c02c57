"""From what a person writes to tasks."""

from collections.abc import Callable

import pandas as pd
import pytest

from stsbench import UserError, protocol
from stsbench.data.tables import StsData
from stsbench.scoring.kinds.sts import StsPairs
from stsbench.scoring.tasks import STS_TASKS, TaskSpec, parse_tasks, read_data, read_task

SIMCSE, MTEB, RAW = protocol(), protocol("mteb"), protocol(text="raw")


def test_sts_means_the_seven_tasks_on_their_test_splits() -> None:
    assert parse_tasks("sts", SIMCSE) == [TaskSpec(task, "test", "senteval") for task in STS_TASKS]
    assert len(STS_TASKS) == 7


def test_mteb_scores_sick_on_all_of_it_and_nothing_else() -> None:
    assert {spec.task: spec.split for spec in parse_tasks("sts", MTEB)} == dict.fromkeys(STS_TASKS, "test") | {
        "SICK-R": "all"
    }


def test_the_raw_text_is_chosen_where_there_is_one() -> None:
    texts = {spec.task: spec.text for spec in parse_tasks("sts", RAW)}
    assert set(texts.values()) == {"raw", "senteval"}
    assert [task for task, text in texts.items() if text == "senteval"] == ["SICK-R"]


@pytest.mark.parametrize(
    ("written", "spec"),
    [
        ("STS-B:dev", ("STS-B", "dev", "senteval")),
        ("stsbenchmark", ("STS-B", "test", "senteval")),
        ("STS12@raw", ("STS12", "test", "raw")),
        ("STS-B:train@raw", ("STS-B", "train", "raw")),
        ("SICK-R:all", ("SICK-R", "all", "senteval")),
        (" sick_r ", ("SICK-R", "test", "senteval")),
        ("sample", ("sample", "test", "sample")),
    ],
)
def test_a_task_may_name_its_split_and_text(written: str, spec: tuple[str, str, str]) -> None:
    assert parse_tasks(written, SIMCSE) == [TaskSpec(*spec)]


def test_a_split_that_is_named_goes_before_the_protocol_s() -> None:
    assert parse_tasks("SICK-R:test", MTEB) == [TaskSpec("SICK-R", "test", "senteval")]


def test_commas_lists_and_blanks_name_several_and_each_is_scored_once() -> None:
    expected = [TaskSpec("STS16", "test", "senteval"), TaskSpec("STS-B", "dev", "senteval")]
    assert parse_tasks("STS16, STS-B:dev", SIMCSE) == expected
    assert parse_tasks(["sts16", "STS-B:dev,STS2016,", "STS16:test@senteval"], SIMCSE) == expected
    assert parse_tasks("STS16,sts", SIMCSE)[0].task == "STS16"
    assert len(parse_tasks("STS16,sts", SIMCSE)) == 7


@pytest.mark.parametrize("nothing", ["", " , ", []])
def test_no_task_at_all_is_a_mistake(nothing: str | list[str]) -> None:
    with pytest.raises(UserError, match="no task was named"):
        parse_tasks(nothing, SIMCSE)


def test_an_unknown_task_is_answered_with_a_near_one() -> None:
    with pytest.raises(UserError, match=r"there is no task 'STS18': did you mean STS1\d\?"):
        parse_tasks("STS18", SIMCSE)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("sample:dev", "sample has no split 'dev': choose one of test"),
        ("sample@raw", "sample has no text 'raw'"),
        ("STS16:dev", "STS16 has no split 'dev'"),
        ("SICK-R@raw", "SICK-R has no text 'raw': choose one of senteval"),
    ],
)
def test_a_split_or_text_that_there_is_not_is_a_mistake(written: str, message: str) -> None:
    (spec,) = parse_tasks(written, SIMCSE)
    with pytest.raises(UserError, match=message):
        read_task(spec)


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
