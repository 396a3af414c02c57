"""The views draw as the papers' equations define, with a lexicon or a masked-language model where needed."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from stsbench.training.guesses import guesser
from stsbench.training.views import (
    Crop,
    InTurn,
    MaskedInsertion,
    MaskedReplacement,
    MaskInsertion,
    StopWords,
    SubwordRepetition,
    Typos,
    WordDeletion,
    WordRepetition,
    doubled,
)

DRAWS = 20_000


# The paper's equation 3; then the public code: int(0.32 * 27) = 8, less one; capped at 10, less one; and so on.
@pytest.mark.parametrize(
    ("variant", "size", "rate", "most"),
    [
        *(("paper", *case) for case in ((25, 0.32, 8), (4, 0.32, 2), (30, 0.2, 6), (9, 1.0, 9))),
        *(("released", *case) for case in ((25, 0.32, 7), (60, 0.32, 9), (4, 0.32, 0), (1, 0.32, 0))),
    ],
)
def test_the_number_of_doubled_subwords_is_uniform_up_to_the_most(variant, size, rate, most):
    view, rng = SubwordRepetition(kind="subword-repetition", rate=rate, variant=variant), np.random.default_rng(0)
    tokens = np.arange(size)
    counts = np.bincount([len(view.tokens(tokens, rng)) - size for _ in range(DRAWS)], minlength=most + 1)
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


SENTENCE = "a man is playing on the guitar and another one is singing"


def best_guesses(base, text):
    """Return what stands at each mask by the model itself, one sentence at a time."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer, network = AutoTokenizer.from_pretrained(base), AutoModelForMaskedLM.from_pretrained(base).eval()
    encoded = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        logits = network(**encoded).logits[0]
    logits[:, tokenizer.all_special_ids] = -torch.inf
    masks = (encoded["input_ids"][0] == tokenizer.mask_token_id).nonzero().flatten()
    return [tokenizer.decode([int(logits[place].argmax())]).removeprefix("##") for place in masks]


def test_inserted_words_are_the_models_best_and_as_many_as_the_paper_doubles(base):
    view, rng = MaskedInsertion(kind="masked-insertion", rate=0.25, model=str(base)), np.random.default_rng(0)
    sentences = [SENTENCE, " ".join(SENTENCE.split()[:3])] * 30
    counts = []
    for sentence, text in zip(sentences, view.texts(sentences, rng), strict=True):
        kept, found, masked = sentence.split(), text.split(), []
        for word in found:  # at most one word is inserted behind each
            if kept and word == kept[0]:
                masked.append(kept.pop(0))
            else:
                masked.append("[MASK]")
        assert not kept
        inserted = [word for word, mark in zip(found, masked, strict=True) if mark == "[MASK]"]
        if sentence == SENTENCE:
            counts.append(len(inserted))
        if len(counts) < 4 and not set(inserted) & set(SENTENCE.split()):
            assert inserted == best_guesses(base, " ".join(masked))
    assert set(counts) == {0, 1, 2, 3}  # int(0.25 * 12)


def test_replaced_words_are_the_share_that_the_recipe_says_each_equally_often(base):
    view, rng = MaskedReplacement(kind="masked-replacement", rate=0.25, model=str(base)), np.random.default_rng(0)
    words, places = SENTENCE.split(), np.zeros(12)
    for _ in range(2000):
        pieces = view.masked(words, rng)
        open_places = [place for place, piece in enumerate(pieces) if piece is None]
        assert len(open_places) == 3
        places[open_places] += 1
    assert stats.chisquare(places).pvalue > 1e-3
    assert view.masked(["alone"], rng) == [None]
    (text,) = view.texts([SENTENCE], np.random.default_rng(1))
    masked = [piece or "[MASK]" for piece in view.masked(words, np.random.default_rng(1))]
    expected = iter(best_guesses(base, " ".join(masked)))
    assert text.split() == [next(expected) if piece == "[MASK]" else piece for piece in masked]


def test_a_mask_that_stands_in_the_text_is_left_and_a_place_beyond_the_models_reach_stays_empty(base):
    ((first, second, third),) = guesser(str(base)).fill([["man", "[MASK]", None]])
    assert (first, second) == ("man", "[MASK]")
    assert [third] == best_guesses(base, "man [MASK] [MASK]")[1:]
    long = ["man"] * 80  # the base has 64 positions
    assert guesser(str(base)).fill([[*long, None]]) == [long]


def test_special_tokens_are_not_guessed(base, monkeypatch):
    model = guesser(str(base))
    expected, forward = model.fill([["man", None]]), model.network.forward

    def with_special_tokens_first(**given):
        output = forward(**given)
        output.logits[:, :, model.tokenizer.special_ids] = 1e9
        return output

    monkeypatch.setattr(model.network, "forward", with_special_tokens_first)
    assert model.fill([["man", None]]) == expected


def test_views_in_turn_do_one_after_the_other():
    crop, delete = Crop(kind="crop", rate=0.5), WordDeletion(kind="word-deletion")
    rng, same = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(20):
        (text,) = InTurn(kind="in-turn", views=(crop, delete)).texts([SENTENCE], rng)
        assert text == delete.text(crop.text(SENTENCE, same), same)
