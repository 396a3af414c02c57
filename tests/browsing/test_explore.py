"""The page: what it holds, what it refuses, and that text of data and models stays text."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb

HOSTILE = '</script><img src=x onerror="alert(1)"> {{ 7 * 7 }} \u2028'


def data_of(page: str) -> Any:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    return json.loads(text)


@pytest.fixture
def own_pairs(tmp_path: Path) -> Path:
    path = tmp_path / "own.jsonl"
    rows = [
        {"sentence1": f"{HOSTILE} one {number}", "sentence2": f"secret words {number % 3}", "score": number}
        for number in range(8)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture
def record(hash_encode: Callable[..., Any], own_pairs: Path) -> sb.RunRecord:
    return sb.evaluate(hash_encode, data=own_pairs, use_cache=False)


def test_sentences_are_text_and_never_markup(record: sb.RunRecord, own_pairs: Path) -> None:
    page = sb.explore(record, data=[own_pairs]).html
    assert "<img" not in page
    assert any(sentence.startswith(HOSTILE.strip()) for sentence in data_of(page)["sentences"])
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_without_text_no_sentence_is_in_the_page(record: sb.RunRecord) -> None:
    page = sb.explore(record, without_text=True).html
    assert "secret words" not in page
    assert data_of(page)["sentences"] is None


def test_what_is_not_here_is_asked_for(record: sb.RunRecord) -> None:
    with pytest.raises(sb.UserError, match=r"11 of the runs' 11 sentences are not here: .*--data.*--without-text"):
        sb.explore(record)


def test_the_sample_has_its_sentences(hash_encode: Callable[..., Any]) -> None:
    explored = sb.explore(sb.evaluate(hash_encode, "sample", use_cache=False))
    frame = explored.frame
    assert frame["sentence_a"].str.len().min() > 0
    assert len(data_of(explored.html)["columns"]["overlap"]) == len(frame)


def test_two_are_the_most(record: sb.RunRecord) -> None:
    with pytest.raises(sb.UserError, match="3 runs are named: explore one, or two"):
        sb.explore([record, record, record])


def test_labels_and_predictions_are_there_for_transfer_tasks(hash_encode: Callable[..., Any]) -> None:
    explored = sb.explore(sb.evaluate(hash_encode, "sample-questions", use_cache=False))
    frame = explored.frame
    assert ((frame["label"] == frame["prediction_a"]) == (frame["correct_a"] == 1)).all()
    assert not explored.tasks[0].is_ranked


def test_given_items_have_their_scores(tmp_path: Path) -> None:
    table = tmp_path / "items.csv"
    table.write_text("task,item,score\nsearch,q1,0.5\nsearch,q2,1.0\nsearch,q3,0.0\n")
    explored = sb.explore(sb.import_results(table))
    assert explored.frame["score_a"].tolist() == [0.5, 1.0, 0.0]


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(record: sb.RunRecord) -> None:
    shown = sb.explore(record, without_text=True)._repr_html_()
    assert shown.startswith("<iframe")
    assert 'sandbox="allow-scripts allow-downloads"' in shown
    assert "<script" not in shown
