"""The views draw as the papers' equations say, and keep the sentence's order."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from stsbench.training.views import (
    Crop,
    MaskInsertion,
    StopWords,
    SubwordRepetition,
    Typos,
    WordDeletion,
    WordRepetition,
    doubled,
)

DRAWS = 20_000


def lengths(view: SubwordRepetition, size: int) -> np.ndarray:
    rng, tokens = np.random.default_rng(0), np.arange(size)
    return np.array([len(view.tokens(tokens, rng)) - size for _ in range(DRAWS)])


@pytest.mark.parametrize(("size", "rate", "most"), [(25, 0.32, 8), (4, 0.32, 2), (30, 0.2, 6), (9, 1.0, 9)])
def test_the_paper_doubles_uniformly_up_to_equation_3(size, rate, most):
    view = SubwordRepetition(kind="subword-repetition", rate=rate)
    counts = np.bincount(lengths(view, size), minlength=most + 1)
    assert len(counts) == most + 1
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(("size", "rate", "most"), [(25, 0.32, 7), (60, 0.32, 9), (4, 0.32, 0), (1, 0.32, 0)])
def test_the_released_code_doubles_at_most_nine(size, rate, most):
    # int(0.32 * 27) = 8, less one; capped at 10, less one; int(0.32 * 6) = 1, less one.
    view = SubwordRepetition(kind="subword-repetition", rate=rate, variant="released")
    counts = np.bincount(lengths(view, size), minlength=most + 1)
    assert len(counts) == most + 1
    assert most == 0 or stats.chisquare(counts).pvalue > 1e-3


def test_every_position_is_doubled_equally_often_as_equation_4_says():
    rng, size, most = np.random.default_rng(1), 12, 5
    marks = np.array([doubled(size, most, rng) for _ in range(DRAWS)])
    assert stats.chisquare(marks.sum(0)).pvalue > 1e-3
    # And given how many, every set of positions is as likely as any other.
    pairs = marks[marks.sum(1) == 2]
    codes = [tuple(np.flatnonzero(row)) for row in pairs]
    counts = [codes.count((i, j)) for i in range(size) for j in range(i + 1, size)]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_a_doubled_subword_stands_beside_itself_and_the_order_is_kept():
    view, rng = SubwordRepetition(kind="subword-repetition", rate=0.5), np.random.default_rng(2)
    tokens = np.arange(10)
    for _ in range(50):
        seen = view.tokens(tokens, rng)
        assert (np.diff(seen) >= 0).all()
        assert np.unique(seen).tolist() == tokens.tolist()
        assert np.bincount(seen).max() <= 2


def test_words_are_doubled_whole_and_by_the_same_law():
    view, rng = WordRepetition(kind="word-repetition", rate=0.32), np.random.default_rng(3)
    sentence = "the long word microbiology stands in this one sentence , as said"
    counts = np.zeros(4, dtype=int)
    for _ in range(4000):
        words = view.text(sentence, rng).split()
        assert list(dict.fromkeys(words)) == sentence.split()
        counts[len(words) - len(sentence.split())] += 1
    assert stats.chisquare(counts).pvalue > 1e-3  # int(0.32 * 12) = 3


WORDS = "red green blue amber violet ivory teal coral olive plum"


@pytest.mark.parametrize(("rate", "length"), [(0.1, 9), (0.3, 7), (0.95, 1)])
def test_a_crop_is_a_stretch_whose_start_is_uniform(rate, length):
    view, rng = Crop(kind="crop", rate=rate), np.random.default_rng(0)
    words = WORDS.split()
    starts = []
    for _ in range(2000):
        kept = view.text(WORDS, rng).split()
        start = words.index(kept[0])
        assert kept == words[start : start + length]
        starts.append(start)
    assert stats.chisquare(np.bincount(starts, minlength=11 - length)).pvalue > 1e-3


@pytest.mark.parametrize(("rate", "length"), [(0.3, 7), (None, 9), (0.99, 1)])
def test_deletion_leaves_the_others_in_order_each_equally_often(rate, length):
    view, rng = WordDeletion(kind="word-deletion", rate=rate), np.random.default_rng(0)
    words, seen = WORDS.split(), np.zeros(10)
    for _ in range(2000):
        places = [words.index(word) for word in view.text(WORDS, rng).split()]
        assert len(places) == length
        assert places == sorted(set(places))
        seen[places] += 1
    assert stats.chisquare(seen).pvalue > 1e-3
    assert WordDeletion(kind="word-deletion").text("alone", rng) == "alone"


@pytest.mark.parametrize(
    "view", [StopWords(kind="stop-words", rate=0.5), MaskInsertion(kind="mask-insertion", rate=0.5, mask="<m>")]
)
def test_insertions_stand_behind_as_many_words_as_the_paper_doubles(view):
    rng, counts = np.random.default_rng(0), []
    for _ in range(3000):
        found, words = view.text(WORDS, rng).split(), iter(WORDS.split())
        others = [word for word in found if word not in WORDS.split()]
        assert [word for word in found if word in WORDS.split()] == list(words)
        assert found[0] == "red"
        assert all(a in WORDS.split() or b in WORDS.split() for a, b in pairwise(found))  # at most one behind each
        assert all(word == "<m>" or word in ENGLISH_STOP_WORDS for word in others)
        counts.append(len(found) - 10)
    assert stats.chisquare(np.bincount(counts, minlength=6)).pvalue > 1e-3


def test_a_typo_changes_a_word_by_one_letter():
    view, rng = Typos(kind="typos", rate=0.4), np.random.default_rng(0)
    changed = 0
    for _ in range(500):
        for word, found in zip(WORDS.split(), view.text(WORDS, rng).split(), strict=True):
            if found != word:
                changed += 1
                assert abs(len(found) - len(word)) <= 1
                assert sorted(found) == sorted(word) or len(found) != len(word)
    # Swapping two like letters, as in green, changes nothing.
    assert changed / 5000 == pytest.approx(0.4, abs=0.03)


OWN = """
from typing import Literal
from stsbench.training.heads import HeadPart
from stsbench.training.views import TextView

class Backwards(TextView):
    kind: str
    times: int = 1
    def text(self, sentence, rng):
        for _ in range(self.times):
            sentence = " ".join(reversed(sentence.split()))
        return sentence

class Halved(HeadPart):
    kind: str
    def build(self, base):
        from torch import nn
        return nn.Sequential(nn.Linear(base.width, base.width // 2))

class Nothing:
    pass
"""


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("mine.py:Nothing", "is not a TextView or TokenView"),
        ("mine.py:Absent", "cannot be imported"),
        ("absent.py:View", "there is no file absent.py"),
        ("no_such_module:View", "No module named 'no_such_module'"),
        ("{kind: 'mine.py:Backwards', times: soon}", "times"),
    ],
)
def test_what_is_wrong_with_ones_own_part_is_one_sentence(kind, said, tmp_path, monkeypatch):
    from stsbench.base.errors import UserError
    from stsbench.training.recipe import read_recipe

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN, encoding="utf-8")
    with pytest.raises(UserError, match=r"--set views\.key") as told:
        read_recipe("demo", [f"views.key={kind}" if kind[0] == "{" else f"views.key={{kind: '{kind}'}}"])
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_the_view_and_the_head_that_the_documentation_shows_train_as_it_says(tmp_path, monkeypatch, base, corpus):
    import re
    from pathlib import Path

    import stsbench as sb

    page = Path(__file__).parents[2] / "docs" / "how-to" / "train.md"
    if not page.is_file():
        pytest.skip("needs docs/")
    shown = dict(
        re.findall(r"```(?:python|yaml)\n# (parts\.py|mine\.yaml)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    )
    assert set(shown) == {"parts.py", "mine.yaml"}
    monkeypatch.chdir(tmp_path)
    for name, text in shown.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    changes = [f"base={base}", "selection.task=sample", "optimiser.batch=8", "corpus.rows=16"]
    done = sb.train("mine.yaml", corpus, tmp_path / "run", overrides=changes, device="cpu")
    assert (done.recipe.views.key.rate, done.recipe.head.width) == (0.3, 32)
    assert sb.embed(done.folder, ["a sentence"], use_cache=False).shape == (1, 32)
