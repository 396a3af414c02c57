"""Views that read more than the sentence: a lexicon of synonyms, a masked-language model."""

from collections import Counter

import numpy as np
import pytest
import torch
from scipy import stats

from stsbench.base.errors import UserError
from stsbench.training.guesses import guesser, read_lexicon
from stsbench.training.views import Crop, InTurn, MaskedInsertion, MaskedReplacement, Synonyms, WordDeletion

TABLE = "big\tlarge|great|huge\ncar\tauto|Car\nfast\tquick\n"

# Two synsets as WordNet's files have them: a licence, then offset, file, type, count of words, words with ids.
WORDNET = """\
  1 This is a licence of two spaces.
00001740 00 a 03 big 0 large 0 grand(ip) 1 001 = 05200169 n 0000 | above average
00002098 00 a 02 motor_vehicle 0 lone 0 000 | with a word of two parts
"""


@pytest.fixture
def lexicon(tmp_path):
    path = tmp_path / "synonyms.tsv"
    path.write_text(TABLE, encoding="utf-8")
    return str(path)


def test_each_known_word_goes_with_the_rate_and_each_synonym_is_as_likely(lexicon):
    view, rng = Synonyms(kind="synonyms", rate=0.4, lexicon=lexicon), np.random.default_rng(0)
    counts = Counter(view.text("a big house", rng) for _ in range(4000))
    kept = counts.pop("a big house")
    assert set(counts) == {"a large house", "a great house", "a huge house"}
    assert kept / 4000 == pytest.approx(0.6, abs=0.03)
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_a_synonym_takes_on_case_and_punctuation(lexicon):
    view, rng = Synonyms(kind="synonyms", rate=1, lexicon=lexicon), np.random.default_rng(0)
    assert view.text('"Fast," said FAST (fast).', rng) == '"Quick," said QUICK (quick).'
    assert view.text("-- 7", rng) == "-- 7"


def test_a_lexicon_is_read_from_a_table_and_from_wordnet(tmp_path, lexicon):
    (tmp_path / "data.adj").write_text(WORDNET, encoding="utf-8")
    assert read_lexicon(lexicon) == {"big": ("great", "huge", "large"), "car": ("auto",), "fast": ("quick",)}
    assert read_lexicon(str(tmp_path)) == {
        "big": ("grand", "large"),
        "large": ("big", "grand"),
        "grand": ("big", "large"),
    }


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.tsv", "big\tlarge\nsmall little\n", "a.tsv, line 2: write `word<TAB>synonym|synonym`"),
        ("a.tsv", "big\tlarge||great\n", "a.tsv, line 1: write"),
        ("a.tsv", "\n", "has no synonyms"),
        ("data.noun", "00001740 00 n xx big\n", "data.noun, line 1: not a line of WordNet's database"),
    ],
)
def test_a_broken_lexicon_is_told_with_file_and_line(name, content, said, tmp_path):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(UserError) as told:
        read_lexicon(str(tmp_path if name.startswith("data.") else tmp_path / name))
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_without_a_lexicon_a_training_says_how_to_come_by_one_before_it_begins(train, tmp_path):
    with pytest.raises(UserError, match="the view synonyms has no lexicon: use --set"):
        train("views.key={kind: synonyms, rate: 0.1}")
    with pytest.raises(UserError, match=r"there is no lexicon .*apt install wordnet-base"):
        train(f"views.key={{kind: synonyms, rate: 0.1, lexicon: {tmp_path / 'nowhere'}}}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="has no WordNet database"):
        read_lexicon(str(tmp_path / "empty"))
    assert not (tmp_path / "run").exists()


WORDS = "a man is playing on the guitar and another one is singing"


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
    sentences = [WORDS, " ".join(WORDS.split()[:3])] * 30
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
        if sentence == WORDS:
            counts.append(len(inserted))
        if len(counts) < 4 and not set(inserted) & set(WORDS.split()):
            assert inserted == best_guesses(base, " ".join(masked))
    assert set(counts) == {0, 1, 2, 3}  # int(0.25 * 12)


def test_replaced_words_are_the_share_that_the_recipe_says_each_equally_often(base):
    view, rng = MaskedReplacement(kind="masked-replacement", rate=0.25, model=str(base)), np.random.default_rng(0)
    words, places = WORDS.split(), np.zeros(12)
    for _ in range(2000):
        pieces = view.masked(words, rng)
        open_places = [place for place, piece in enumerate(pieces) if piece is None]
        assert len(open_places) == 3
        places[open_places] += 1
    assert stats.chisquare(places).pvalue > 1e-3
    assert view.masked(["alone"], rng) == [None]
    (text,) = view.texts([WORDS], np.random.default_rng(1))
    masked = [piece or "[MASK]" for piece in view.masked(words, np.random.default_rng(1))]
    expected = iter(best_guesses(base, " ".join(masked)))
    assert text.split() == [next(expected) if piece == "[MASK]" else piece for piece in masked]


def test_a_mask_that_stands_in_the_text_is_left_and_a_place_beyond_the_models_reach_stays_empty(base):
    ((first, second, third),) = guesser(str(base)).fill([["man", "[MASK]", None]])
    assert (first, second) == ("man", "[MASK]")
    assert [third] == best_guesses(base, "man [MASK] [MASK]")[1:]
    long = ["man"] * 80  # the base has 64 positions
    assert guesser(str(base)).fill([[*long, None]]) == [long]


def test_a_model_without_a_head_for_words_is_refused(base, tmp_path):
    from transformers import AutoModel, AutoTokenizer

    AutoModel.from_pretrained(base).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(base).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="has no masked-language head"):
        MaskedInsertion(kind="masked-insertion", rate=0.2, model=str(tmp_path)).require("cpu")


def test_views_in_turn_do_one_after_the_other():
    crop, delete = Crop(kind="crop", rate=0.5), WordDeletion(kind="word-deletion")
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(20):
        (both,) = InTurn(kind="in-turn", views=(crop, delete)).texts([WORDS], one)
        assert both == delete.text(crop.text(WORDS, other), other)


def test_a_training_keeps_where_its_lexicon_is_and_its_card_names_no_folder(train, lexicon, tmp_path, monkeypatch):
    import yaml

    monkeypatch.chdir(tmp_path)
    done = train("views.key={kind: synonyms, rate: 0.3, lexicon: synonyms.tsv}", "corpus.rows=8")
    kept = yaml.safe_load((done.folder / "recipe.yaml").read_text(encoding="utf-8"))["views"]["key"]["lexicon"]
    assert kept == lexicon
    card = (done.folder / "README.md").read_text(encoding="utf-8")
    assert "lexicon: synonyms.tsv" in card
    assert str(tmp_path) not in card
