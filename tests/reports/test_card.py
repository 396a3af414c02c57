"""Model cards: programs read the record's scores from them."""

from collections.abc import Callable

import pytest
from changed_records import with_value
from huggingface_hub import ModelCard

import stsbench as sb
from stsbench.records.labels import METHODS

Make = Callable[..., sb.RunRecord]


def test_a_card_reads_back_as_the_records_scores(make_record: Make) -> None:
    run = make_record()
    text = sb.model_card(run)
    card = ModelCard(text)
    assert text.startswith(f"---\n{card.data.to_yaml()}\n---\n\n# ")
    assert card.data.model_name == "mine"
    results = card.data.eval_results or []
    assert [result.dataset_name for result in results] == ["toy", "other"]
    # sentence-transformers writes scores between -1 and 1.
    assert {result.metric_type for result in results} == {"spearman_cosine"}
    assert [result.metric_value for result in results] == [round(task.value or 0, 6) for task in run.scores]
    assert [(result.metric_args or {})["signature"] for result in results] == run.signature.splitlines()
    assert f"{100 * (run.scores[0].value or 0):.2f}" in card.text
    protocol = run.protocol.model_copy(update={"interval": "components", "level": 0.9})
    text = sb.model_card(run.model_copy(update={"protocol": protocol}))
    assert f"Scores x 100, with 90 % intervals: {METHODS['components']}." in text.splitlines()
    with pytest.raises(sb.UserError, match="one model"):
        sb.model_card([run, make_record("theirs")])


def test_a_hostile_name_stays_text_and_an_undefined_score_is_left_out(hostile: sb.RunRecord) -> None:
    card = ModelCard(sb.model_card(hostile))
    assert "{{ 7 * 7 }}" in (card.data.model_name or "")
    assert "<script>" not in card.text.partition("```")[0]
    first, second = hostile.scores
    undefined = with_value(first, None), with_value(second, float("nan"))
    text = sb.model_card(hostile.model_copy(update={"scores": undefined}))
    assert ModelCard(text).data.eval_results is None
