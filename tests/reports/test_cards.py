"""Model cards and badges: what programs read of them is what the record says."""

import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest
from changed_records import with_value
from huggingface_hub import ModelCard

import stsbench as sb
from stsbench.records.labels import METHODS

Make = Callable[..., sb.RunRecord]
ROW, CHECKPOINT = "esimcse-coling2022-3/esimcse-bert-base", "ffgcc/esimcse-bert-base-uncased"
_SVG = "{http://www.w3.org/2000/svg}"


def test_a_card_reads_back_as_the_records_scores(make_record: Make) -> None:
    run = make_record()
    card = ModelCard(sb.model_card(run))
    assert card.data.model_name == "mine"
    results = card.data.eval_results or []
    assert [result.dataset_name for result in results] == ["toy", "other"]
    # As sentence-transformers writes it: between -1 and 1.
    assert {result.metric_type for result in results} == {"spearman_cosine"}
    assert [result.metric_value for result in results] == [round(task.value or 0, 6) for task in run.scores]
    assert [(result.metric_args or {})["signature"] for result in results] == run.signature.splitlines()
    assert f"{100 * (run.scores[0].value or 0):.2f}" in card.text
    assert "license" not in card.data.to_dict()


def test_a_card_is_to_the_byte_what_the_hubs_own_library_writes_of_it(make_record: Make) -> None:
    for run in (make_record(), make_record("a name: of its own - " + "long " * 40)):
        text = sb.model_card(run)
        assert text.startswith(f"---\n{ModelCard(text).data.to_yaml()}\n---\n\n# ")


def test_a_hostile_name_stays_text_in_a_card(hostile: sb.RunRecord) -> None:
    text = sb.model_card(hostile)
    card = ModelCard(text)
    assert "{{ 7 * 7 }}" in (card.data.model_name or "")
    assert "<script>" not in card.text.partition("```")[0]
    assert len(card.data.eval_results or []) == 2


def test_runs_of_one_model_share_a_card_and_others_do_not(make_record: Make) -> None:
    run = make_record()
    assert len(ModelCard(sb.model_card([run, run])).data.eval_results or []) > 0
    with pytest.raises(sb.UserError, match="one model"):
        sb.model_card([run, make_record("theirs")])


def test_an_undefined_score_is_in_no_card(make_record: Make) -> None:
    run = make_record()
    first, second = run.scores
    undefined = with_value(first, None), with_value(second, float("nan"))
    text = sb.model_card(run.model_copy(update={"scores": undefined}))
    assert ".nan" not in text
    assert ModelCard(text).data.eval_results is None


@pytest.mark.parametrize("interval", ["dyadic", "components", "independent"])
def test_a_card_names_the_intervals_that_it_prints(make_record: Make, interval: str) -> None:
    run = make_record()
    protocol = run.protocol.model_copy(update={"interval": interval, "level": 0.9})
    text = sb.model_card(run.model_copy(update={"protocol": protocol}))
    assert f"Scores x 100, with 90 % intervals: {METHODS[interval]}." in text.splitlines()


@pytest.mark.parametrize(("off", "told"), [(0.0, "pass: 2 of 2"), (-1.0, "fail: 1 of 2")])
def test_a_badge_tells_the_verdict(as_published: Make, off: float, told: str) -> None:
    drawing = ET.fromstring(sb.badge(as_published(ROW, CHECKPOINT, ("STS12", "STS13"), STS12=off)))
    texts = [element.text for element in drawing.iter(f"{_SVG}text")]
    assert texts == ["STS check", told]
    title = drawing.find(f"{_SVG}title")
    assert title is not None
    assert (title.text or "").startswith(told.partition(":")[0])


def test_a_badge_of_what_does_not_compare_says_so_and_is_well_formed(hostile: sb.RunRecord) -> None:
    drawing = ET.fromstring(sb.badge(hostile, against=ROW))
    assert [element.text for element in drawing.iter(f"{_SVG}text")] == ["STS check", "not comparable"]
    assert not list(drawing.iter(f"{_SVG}script"))
