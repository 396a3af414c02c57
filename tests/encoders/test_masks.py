"""What a token attends to is what was asked for, whatever else is in the batch, or the checkpoint is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.encoders import network
from stsbench.encoders.backends import other_masks
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.load import load
from stsbench.encoders.network import attended
from stsbench.encoders.plan import embed

Tiny = Callable[..., Path]

TEXTS = ["the dog ran home", "rain fell all night, and the river rose", "bread", "the dog ran to the cold water"]


def vectors(folder: Path, texts: list[str], pooling: str = "avg", **use: Any) -> NDArray[np.float32]:
    encoder = load(folder, device="cpu", pooling=pooling, **use)
    made = embed(encoder, texts, normalize=False, use_cache=False)
    return made.vectors[pooling][made.rows]


def says(folder: Path, **values: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return folder


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "albert", "mpnet", "gpt2"])
@pytest.mark.parametrize("mask", ["causal", "bidirectional"])
def test_a_first_token_sees_the_others_if_the_mask_says_so_and_never_the_padding(
    tiny: Tiny, kind: str, mask: str
) -> None:
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
def test_a_network_that_does_not_obey_its_mask_is_refused(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, mask: str, other: Callable[..., Any], words: str
) -> None:
    monkeypatch.setattr(network, "attended", other)
    with pytest.raises(UserError, match=words):
        vectors(tiny("bert"), TEXTS, attention_mask=mask)


def test_a_sentence_beyond_a_window_of_attention_is_refused(tiny: Tiny) -> None:
    folder = says(tiny("gpt2"), sliding_window=9)
    vectors(folder, ["bread"], attention_mask="bidirectional")
    with pytest.raises(UserError, match=r"attend within a window of 9 sub-words.*--max-length 9"):
        vectors(folder, [" ".join(TEXTS)], attention_mask="bidirectional")


def test_a_decoder_may_lack_a_mask_and_an_encoder_none(tiny: Tiny) -> None:
    gpt2, bert = tiny("gpt2"), tiny("bert")
    for folder, config, lacking in (
        (bert, {}, ()),
        (gpt2, {}, ("bidirectional",)),
        (bert, {"is_decoder": True}, ("bidirectional",)),
        (gpt2, {"is_causal": False}, ("causal", "bidirectional")),
    ):
        assert other_masks(Checkpoint("it", says(folder, **config))) == lacking
