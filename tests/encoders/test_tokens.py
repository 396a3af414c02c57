"""Tokens: what is read of a text, how long it was, and that its vector is its own."""

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
@pytest.mark.parametrize("budget", [1, 24, 4096])
def test_vectors_do_not_depend_on_batches_or_order(kind, budget, tiny, sentences, vectors_of):
    encoder = load(tiny(kind), pooling="avg")
    alone = np.concatenate([vectors_of(encoder, [sentence]) for sentence in sentences])
    together = vectors_of(encoder, sentences, token_budget=budget)
    backwards = vectors_of(encoder, sentences[::-1], token_budget=budget)
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(backwards[::-1], alone, atol=1e-5)


def test_equal_texts_and_equal_token_sequences_share_a_row(tiny):
    encoder = load(tiny(), pooling="avg")
    found = embed(encoder, ["The dog", "the  dog", "a cat", "The dog"], use_cache=False)
    assert found.rows[0] == found.rows[1] == found.rows[3] != found.rows[2]
    assert found.vectors["avg"].shape == (2, 32)
    assert (found.cost.texts, found.cost.sequences, found.cost.encoded) == (3, 2, 2)


def test_no_texts_give_no_vectors(tiny):
    found = embed(load(tiny(), pooling="avg"), [])
    assert len(found.rows) == len(found.vectors["avg"]) == 0


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
def test_lengths_count_sub_words_without_special_tokens(kind, tiny, sentences):
    from transformers import AutoTokenizer

    folder = tiny(kind)
    found = embed(load(folder, pooling="avg"), sentences, use_cache=False)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    expected = [len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in sentences]
    assert found.lengths.tolist() == expected
    assert not found.truncated.any()


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_lengths_do_not_count_the_prompt_even_where_it_runs_into_the_first_word(kind, tiny, sentences):
    folder = tiny(kind)
    plain = embed(load(folder, pooling="avg"), sentences, use_cache=False)
    # "query:" and the blank before the next word are one token or two, depending on that word.
    prompted = embed(load(folder, pooling="avg", prompt="so she "), sentences, use_cache=False)
    assert prompted.lengths.tolist() == plain.lengths.tolist()


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_prompt_gives_the_vectors_of_the_texts_that_start_with_it(kind, tiny, sentences, vectors_of):
    folder = tiny(kind)
    prompted = vectors_of(load(folder, pooling="avg", prompt="the cat "), sentences)
    written_out = vectors_of(load(folder, pooling="avg"), ["the cat " + text for text in sentences])
    np.testing.assert_allclose(prompted, written_out, atol=1e-5)


def test_a_text_is_cut_at_the_limit_and_only_cut_ones_are_counted(tiny, vectors_of):
    from transformers import AutoTokenizer

    folder = tiny()
    words = ["a", "the", "dog", "cat", "a", "the", "dog", "cat"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    pieces = [len(tokenizer(" ".join(words[:n]), add_special_tokens=False)["input_ids"]) for n in (1, 2, 8)]
    limit = pieces[1] + 2
    encoder = load(folder, pooling="avg", max_length=limit)
    texts = [" ".join(words[:n]) for n in (1, 2, 8)]
    found = embed(encoder, texts, use_cache=False)
    assert found.truncated.tolist() == [False, False, True]
    assert found.lengths.tolist() == pieces
    assert found.rows[1] == found.rows[2], "what is left of the long one is the middle one"


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet", "gpt2", "distilbert", "albert"])
def test_a_text_longer_than_the_model_reads_is_cut_at_its_positions(kind, tiny, vectors_of):
    encoder = load(tiny(kind), pooling="avg")
    assert encoder.identity.use.max_length == 48
    found = embed(encoder, ["the dog and the cat " * 40, "the dog"], use_cache=False)
    assert found.truncated.tolist() == [True, False]
    assert len(encoder.tokenize(["the dog and the cat " * 40]).sequences[0]) == 48


def test_the_padding_offset_holds_where_the_config_leaves_it_to_the_default(tiny, edit):
    folder = tiny("roberta")
    edit(folder / "config.json", pad_token_id=None)
    encoder = load(folder, pooling="avg")
    assert encoder.identity.use.max_length == 48
    assert embed(encoder, ["the dog and the cat " * 40], use_cache=False).truncated.all()


def test_the_tokenizers_own_limit_counts_unless_the_person_asks_for_more(tiny, edit):
    folder = tiny()
    edit(folder / "tokenizer_config.json", model_max_length=16)
    assert load(folder, pooling="avg").identity.use.max_length == 16
    assert load(folder, pooling="avg", max_length=40).identity.use.max_length == 40
    with pytest.raises(UserError, match="reads at most 48 sub-words: --max-length 49 is too long"):
        load(folder, pooling="avg", max_length=49)
    with pytest.raises(UserError, match="maximum length of 2 leaves no room"):
        load(folder, pooling="avg", max_length=2)


def test_a_tokenizers_stored_truncation_and_padding_do_not_count(tiny, sentences, vectors_of):
    import tokenizers

    folder = tiny()
    expected = vectors_of(load(folder, pooling="avg"), sentences)
    stored = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    stored.enable_truncation(4)
    stored.enable_padding(length=30)
    stored.save(str(folder / "tokenizer.json"))
    found = embed(load(folder, pooling="avg"), sentences, use_cache=False)
    np.testing.assert_allclose(found.vectors["avg"][found.rows], expected, atol=1e-5)
    assert not found.truncated.any()


def test_a_tokenizer_without_any_token_to_pad_with_is_refused(tiny, edit, vectors_of):
    folder = tiny("gpt2")
    edit(folder / "tokenizer_config.json", pad_token=None, eos_token=None)
    with pytest.raises(UserError, match=r"neither a padding token nor an end-of-text token: name one in its tok"):
        vectors_of(load(folder, pooling="last"), ["a cat"])


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
def test_a_checkpoint_without_tokenizer_is_refused(kind, tiny, vectors_of):
    folder = tiny(kind)
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(UserError, match=r"holds no tokenizer|cannot load the tokenizer"):
        vectors_of(load(folder, pooling="avg"), ["a cat"])


def test_another_models_tokenizer_is_refused(tiny, vectors_of):
    folder, other = tiny("bert"), tiny("roberta")
    (folder / "tokenizer.json").write_bytes((other / "tokenizer.json").read_bytes())
    (folder / "tokenizer_config.json").write_bytes((other / "tokenizer_config.json").read_bytes())
    with pytest.raises(UserError, match=r"tokenizer of .* gives token .* but the model knows"):
        vectors_of(load(folder, pooling="avg"), ["Nobody knows why the bridge is closed today"])


def test_a_damaged_tokenizer_is_told_in_one_sentence(tiny, vectors_of):
    folder = tiny()
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match="cannot load the tokenizer of"):
        vectors_of(load(folder, pooling="avg"), ["a cat"])


def test_a_tokenizer_that_marks_token_types_is_refused(tiny, edit, vectors_of):
    import tokenizers

    folder = tiny()
    stored = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    stored.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A:0 [SEP]:0 [CLS]:2", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    stored.save(str(folder / "tokenizer.json"))
    names = ["input_ids", "token_type_ids", "attention_mask"]
    edit(folder / "tokenizer_config.json", model_input_names=names)
    with pytest.raises(UserError, match="marks token types"):
        vectors_of(load(folder, pooling="avg"), ["a cat"])


def test_a_text_with_half_a_character_is_told_in_a_sentence(tiny):
    encoder = load(tiny(), prompt="half\udcff")
    with pytest.raises(UserError, match=r"'half\\udcff.*' is no text: a character in it is not UTF-8"):
        embed(encoder, ["owl"], use_cache=False)
