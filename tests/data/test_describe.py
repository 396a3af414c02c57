"""What is said of a person's own pairs: each number counted again, and nothing of their text given away."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from stsbench.base.errors import UserError
from stsbench.cli.app import app
from stsbench.data.describe import describe
from stsbench.statistics.intervals import difference_error

ROWS = [
    ("An owl naps.", "A bus leaves.", 0.0, "one"),
    ("a bus leaves .", "an owl naps .", 2.0, "one"),
    ("Rain falls.", "It rains tonight again.", 4.0, "two"),
    ("Rain falls.", "The kettle sings.", 1.0, "two"),
    ("The tram is late.", "The tram is late.", 4.0, "two"),
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "own.tsv"
    lines = ["sentence1\tsentence2\tscore\tsubset", *("\t".join(map(str, row)) for row in ROWS)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_each_number_is_what_a_count_by_hand_gives(table: Path) -> None:
    about = describe(table)
    value = about.value
    assert [value("pairs", what) for what in ("all", "subsets", "repeated", "repeated with other scores")] == [
        5,
        2,
        2,
        2,
    ]
    assert value("pairs", "of one sentence twice") == 1
    assert (value("sentences", "distinct"), value("sentences", "distinct by letters and digits")) == (8, 6)
    lengths = [len(side.split()) for row in ROWS for side in row[:2]]
    assert value("words of a sentence", "mean") == pytest.approx(np.mean(lengths))
    assert value("scores", "standard deviation") == pytest.approx(np.std([row[2] for row in ROWS], ddof=1))
    assert value("scores", "% of pairs with the commonest") == 40
    assert (
        value("shared sentences", "% of pairs that share one"),
        value("shared sentences", "chains of such pairs"),
    ) == (
        80,
        3,
    )
    assert about.histogram["pairs"].sum() == 5
    assert value("subset two", "mean") == 3
    # All five pairs, and three chains of them.
    ratio = value("smallest difference", "if each chain counts as one pair") / value(
        "smallest difference", "if pairs are independent"
    )
    assert ratio == pytest.approx(np.sqrt(5 / 3))
    assert any("are not here: STS12" in note for note in about.notes)


def test_the_standard_error_that_is_assumed_is_that_of_simulated_scores() -> None:
    rng = np.random.default_rng(3)
    covariance = [[1, 0.8, 0.8], [0.8, 1, 0.9], [0.8, 0.9, 1]]
    drawn = rng.multivariate_normal([0, 0, 0], covariance, size=(3000, 300))
    drawn = drawn - drawn.mean(axis=1, keepdims=True)
    drawn /= np.sqrt((drawn**2).sum(axis=1, keepdims=True))
    differences = (drawn[..., 0] * drawn[..., 1]).sum(axis=1) - (drawn[..., 0] * drawn[..., 2]).sum(axis=1)
    assert differences.std() == pytest.approx(difference_error(300, 0.8, 0.9), rel=0.05)


def test_the_card_is_markdown_that_holds_no_sentence(table: Path, tmp_path: Path) -> None:
    card = tmp_path / "card.md"
    done = CliRunner().invoke(
        app, ["data", "describe", str(table), "--card", str(card), "--json"], standalone_mode=False
    )
    rows = {(row["about"], row["what"]): row["value"] for row in json.loads(done.stdout)}
    assert rows["pairs", "all"] == 5
    text = card.read_text(encoding="utf-8")
    assert text.startswith("# own\n")
    assert "From its author" in text
    assert not any(side in text or side in done.stdout for row in ROWS for side in row[:2])


@pytest.mark.shared
def test_what_stands_in_the_tasks_is_told(senteval: Path, tmp_path: Path) -> None:
    from stsbench.data.benchmarks import load_sts

    theirs = load_sts("STS16", data_dirs=[senteval]).pairs.head(20)
    path = tmp_path / "mine.jsonl"
    rows = theirs.rename(columns={"gold": "score"})[["sentence1", "sentence2", "score"]]
    path.write_text(rows.to_json(orient="records", lines=True, force_ascii=False), encoding="utf-8")
    about = describe(path, data_dirs=[senteval])
    distinct = len({frozenset(pair) for pair in zip(rows["sentence1"], rows["sentence2"], strict=True)})
    assert about.value("shared with STS16", "pairs, as released") == distinct
    assert not about.notes[-1].startswith("Not looked at")


def test_a_split_that_the_sample_does_not_have_is_refused() -> None:
    with pytest.raises(UserError, match="has no split 'dev'"):
        describe("sample:dev")


def test_a_broken_line_is_told_with_its_place(table: Path) -> None:
    table.write_text(table.read_text(encoding="utf-8") + "a\tb\tfour\ttwo\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"own\.tsv, line 7: the score 'four'"):
        describe(table)
