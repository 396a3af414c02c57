"""Where a token stands and what it attends to is as the model's own code has it, or as it was asked for."""

import numpy as np
import pytest
from tiny_models import edit, vectors_of

from stsbench.base.errors import UserError
from stsbench.encoders import network
from stsbench.encoders.backends import other_masks
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.load import load
from stsbench.encoders.network import attended
from stsbench.encoders.template import Template

READ = ["The dog ran home.", "She reads.", "Rain fell all night, and the river rose."]

_TEMPLATE = Template(name="t", texts="so: {sentence} ends", pooling="last")


class _Plain:
    """A checkpoint by Transformers alone, one row at a time, with the positions of its own code."""

    def __init__(self, folder):
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).eval()

    def ids(self, text):
        return list(self.tokenizer(text)["input_ids"])

    def last(self, ids, positions=None):
        import torch

        given = {} if positions is None else {"position_ids": torch.tensor([positions])}
        with torch.no_grad():
            return self.model(torch.tensor([ids]), **given).last_hidden_state[0, -1].numpy()

    def own(self, ids):
        """Return positions as RoBERTa's code and that of its kin counts them, and as BERT's does."""
        found, pad = [], getattr(self.model.embeddings, "padding_idx", None)
        if self.model.config.model_type == "bert":
            return list(range(len(ids)))
        for token in ids:
            found.append(pad if token == pad else pad + 1 + sum(place != pad for place in found))
        return found

    def without(self, text, subtract, positions):
        """Return the vector that is to be subtracted of a sentence."""
        whole = self.ids(f"so: {text} ends")
        alone, around = self.ids("so: ends"), len(self.ids(" ends")) - 1
        gap, at = len(whole) - len(alone), len(alone) - around
        pads = gap if subtract == "padded_template" else 0
        ids = [*alone[:at], *[self.tokenizer.pad_token_id] * pads, *alone[at:]]
        if positions == "own":
            return self.last(ids)
        standing = self.own(whole) if positions == "with_sentence" else list(range(len(whole)))
        return self.last(ids, [*standing[:at], *standing[at : at + pads], *standing[at + gap :]])


@pytest.mark.parametrize("positions", ["with_sentence", "from_zero", "own"])
@pytest.mark.parametrize("subtract", ["template", "padded_template"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet"])
def test_what_is_subtracted_stands_where_the_page_says(kind, subtract, positions, tiny):
    folder = tiny(kind)
    plain = _Plain(folder)
    template = _TEMPLATE.model_copy(update={"subtract": subtract, "positions": positions})
    expected = [
        plain.last(plain.ids(f"so: {text} ends")) - plain.without(text, subtract, positions) for text in READ
    ]
    found = vectors_of(load(folder, template=template), READ)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


TEXTS = ["the dog ran home", "rain fell all night, and the river rose", "bread", "the dog ran to the cold water"]


def vectors(folder, texts, pooling="avg", **use):
    return vectors_of(load(folder, device="cpu", pooling=pooling, **use), texts, normalize=False)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "albert", "mpnet", "gpt2"])
@pytest.mark.parametrize("mask", ["causal", "bidirectional"])
def test_a_first_token_sees_the_others_if_the_mask_says_so_and_never_the_padding(tiny, kind, mask):
    folder = tiny(kind)
    first = vectors(folder, TEXTS, "cls_before_pooler", attention_mask=mask)
    # The same first token, and other ones behind it.
    assert np.allclose(first[0], first[3], atol=1e-6) == (mask == "causal")
    alone = np.concatenate([vectors(folder, [text], attention_mask=mask) for text in TEXTS])
    np.testing.assert_allclose(vectors(folder, TEXTS, attention_mask=mask), alone, atol=2e-6)
    own = "causal" if kind == "gpt2" else "bidirectional"
    is_own = np.allclose(vectors(folder, TEXTS), alone, atol=2e-6)
    assert is_own == (mask == own)


@pytest.mark.parametrize(
    ("mask", "other", "words"),
    [
        ("causal", lambda mask, kind, dtype: mask, "does not obey --attention-mask causal"),
        ("bidirectional", lambda mask, kind, dtype: attended(mask, "causal", dtype), "does not obey"),
        ("causal", lambda mask, kind, dtype: mask[:, None, :3, :3], "does not accept an attention mask"),
    ],
    ids=["own mask", "always causal", "fails"],
)
def test_a_network_that_does_not_obey_its_mask_is_refused(tiny, monkeypatch, mask, other, words):
    monkeypatch.setattr(network, "attended", other)
    with pytest.raises(UserError, match=words):
        vectors(tiny("bert"), TEXTS, attention_mask=mask)


def test_a_sentence_beyond_a_window_of_attention_is_refused(tiny):
    folder = tiny("gpt2")
    edit(folder / "config.json", sliding_window=9)
    vectors(folder, ["bread"], attention_mask="bidirectional")
    with pytest.raises(UserError, match=r"attend within a window of 9 sub-words.*--max-length 9"):
        vectors(folder, [" ".join(TEXTS)], attention_mask="bidirectional")


def test_a_decoder_may_lack_a_mask_and_an_encoder_none(tiny):
    gpt2, bert = tiny("gpt2"), tiny("bert")
    for folder, config, lacking in (
        (bert, {}, ()),
        (gpt2, {}, ("bidirectional",)),
        (bert, {"is_decoder": True}, ("bidirectional",)),
        (gpt2, {"is_causal": False}, ("causal", "bidirectional")),
    ):
        edit(folder / "config.json", **config)
        assert other_masks(Checkpoint("it", folder)) == lacking
