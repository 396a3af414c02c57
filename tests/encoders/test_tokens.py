"""Tokens: what is read of a text, how long it is, and that its vector is its own."""

import numpy as np
import pytest

from stsbench.encoders.load import load
from stsbench.encoders.plan import embed

LONG = "the dog and the cat " * 40


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
def test_vectors_do_not_depend_on_batches_or_order(kind, tiny, sentences, vectors_of):
    encoder = load(tiny(kind), pooling="avg")
    alone = np.concatenate([vectors_of(encoder, [sentence]) for sentence in sentences])
    for budget in (1, 24, 4096):
        together = vectors_of(encoder, sentences, token_budget=budget)
        backwards = vectors_of(encoder, sentences[::-1], token_budget=budget)
        np.testing.assert_allclose(together, alone, atol=1e-5)
        np.testing.assert_allclose(backwards[::-1], alone, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2"])
@pytest.mark.parametrize("prompt", ["", "so she "])  # the latter merges with some first words
def test_lengths_count_sub_words_without_special_tokens_and_prompt(kind, prompt, tiny, sentences):
    from transformers import AutoTokenizer

    folder = tiny(kind)
    found = embed(load(folder, pooling="avg", prompt=prompt), sentences, use_cache=False)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    expected = [len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in sentences]
    assert found.lengths.tolist() == expected
    assert not found.truncated.any()


def test_only_truncated_texts_are_counted(tiny):
    from transformers import AutoTokenizer

    folder = tiny()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    texts = [" ".join(["a", "the", "dog", "cat", "a", "the", "dog", "cat"][:n]) for n in (1, 2, 8)]
    pieces = [len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts]
    found = embed(load(folder, pooling="avg", max_length=pieces[1] + 2), texts, use_cache=False)
    assert found.truncated.tolist() == [False, False, True]
    assert found.lengths.tolist() == pieces
    assert found.rows[1] == found.rows[2], "what is left of the long one is the middle one"


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet", "gpt2", "distilbert", "albert"])
def test_a_text_longer_than_the_model_reads_is_cut_at_its_positions(kind, tiny, edit):
    folder = tiny(kind)
    if kind == "roberta":  # the offset also applies if it is left to the default
        edit(folder / "config.json", pad_token_id=None)
    encoder = load(folder, pooling="avg")
    assert encoder.identity.use.max_length == 48
    assert embed(encoder, [LONG, "the dog"], use_cache=False).truncated.tolist() == [True, False]
    assert len(encoder.tokenize([LONG]).sequences[0]) == 48


def test_a_tokenizers_stored_truncation_and_padding_do_not_apply(tiny, sentences, vectors_of):
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
