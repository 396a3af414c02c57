"""`stsbench fit`: what it prints, and what it refuses in a sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stsbench.data.sentences import read_sentences

Stsbench = Callable[..., Any]


@pytest.fixture
def words(stsbench: Stsbench) -> Path:
    """Return a file of word vectors with every word of the sample's pairs."""
    chance = np.random.default_rng(0)
    known = {word for text in read_sentences("sample").texts for word in text.lower().split()}
    lines = [f"{word} {' '.join(f'{value:.4f}' for value in chance.normal(size=6))}\n" for word in sorted(known)]
    Path("words.txt").write_text("".join(lines), encoding="utf-8")
    return Path("words.txt")


def test_a_fit_is_printed_and_measured(stsbench: Stsbench, words: Path) -> None:
    made = stsbench("fit", "whitening", "-m", words, "-s", "sample", "--dimensions", "4", "-o", "white", "--json")
    assert made.code == 0, made.err
    told = json.loads(made.out)
    assert (told["dimensions"], told["width"], told["sentences"]["count"]) == (4, 6, 504)
    assert [line["direction"] for line in told["log"]] == [1, 2, 3, 4]
    assert "measure it: stsbench run --model white" in made.err
    measured = stsbench("run", "-m", "white", "--tasks", "sample", "--no-intervals", "--json", "-q")
    record = json.loads(measured.out)
    assert "|post:whitening4+sample|" in record["scores"][0]["signature"]
    assert any("transductive on sample" in note for note in record["notes"])
    shown = stsbench("fit", "flow", "-m", words, "-s", "sample", "--steps", "2", "--width", "4", "-o", "flow")
    assert shown.code == 0, shown.err
    assert "NLL held out" in shown.out
    assert Path("flow/log.jsonl").read_text(encoding="utf-8").count("\n") == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("whitening -m words.txt --out new", "--sentences is missing"),
        ("whitening -m words.txt -s sample", "--out is missing"),
        ("whitening -m words.txt -s sample --dimensions 0 -o new", "--dimensions 0: give a number from 1"),
        ("whitening -m words.txt -s sample --dimensions 7 -o new", r"keep fewer \(--dimensions 6\)"),
        ("whitening -m words.txt -s sample --steps 7 -o new", "has no option --steps"),
        ("whitening -m toys:words -s sample -o new", "no model whose weights have a hash"),
        ("whitening -m words.txt -s STS99 -o new", "there is no task 'STS99'"),
        ("whitening -m words.txt -s sample -o words.txt", "words.txt is not a folder"),
        ("whitening -m words.txt -s sample -o .", "holds something: choose another folder with --out"),
        ("flow -m words.txt -s sample --coupling cubic -o new", "coupling 'cubic'"),
        ("flow -m words.txt -s sample --learning-rate 0 -o new", "--learning-rate 0.0: give a number from"),
        ("flow -m words.txt -s sample --json --csv -o new", "--json and --csv cannot go together"),
    ],
)
def test_what_cannot_be_fitted_is_told_and_nothing_is_left(
    stsbench: Stsbench, words: Path, arguments: str, message: str
) -> None:
    stsbench("fit", *arguments.split()).demand_one_sentence(message)
    assert not Path("new").exists()
