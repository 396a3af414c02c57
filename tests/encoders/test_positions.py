"""One rule for positions: a token stands where the model's own code puts it when its sentence is encoded alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.template import Template

TEXTS = ["The dog ran home.", "She reads.", "Rain fell all night, and the river rose."]

_TEMPLATE = Template(name="t", texts="so: {sentence} ends", pooling="last")


@pytest.fixture
def checkpoint(tiny: Callable[..., Path], edit: Callable[..., None]) -> Callable[[str], Path]:
    """Return a function that makes a tiny checkpoint of a model type."""

    def make(kind: str) -> Path:
        folder = tiny("roberta" if kind in {"camembert", "xlm-roberta"} else kind, name=kind)
        edit(folder / "config.json", model_type=kind)
        return folder

    return make


class _Plain:
    """A checkpoint by Transformers alone, one row at a time, with the positions of its own code."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).eval()

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text)["input_ids"])

    def last(self, ids: list[int], positions: list[int] | None = None) -> Any:
        import torch

        given = {} if positions is None else {"position_ids": torch.tensor([positions])}
        with torch.no_grad():
            return self.model(torch.tensor([ids]), **given).last_hidden_state[0, -1].numpy()

    def own(self, ids: list[int]) -> list[int]:
        """Return positions as RoBERTa's code and that of its kin counts them, and as BERT's does."""
        found, pad = [], getattr(self.model.embeddings, "padding_idx", None)
        if self.model.config.model_type == "bert":
            return list(range(len(ids)))
        for token in ids:
            found.append(pad if token == pad else pad + 1 + sum(place != pad for place in found))
        return found

    def without(self, text: str, subtract: str, positions: str) -> Any:
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
def test_what_is_subtracted_stands_where_the_page_says(
    kind: str, subtract: Any, positions: Any, checkpoint: Callable[[str], Path]
) -> None:
    folder = checkpoint(kind)
    plain = _Plain(folder)
    template = _TEMPLATE.model_copy(update={"subtract": subtract, "positions": positions})
    found = embed(load(folder, template=template), TEXTS, use_cache=False)
    expected = [
        plain.last(plain.ids(f"so: {text} ends")) - plain.without(text, subtract, positions) for text in TEXTS
    ]
    np.testing.assert_allclose(found.vectors["last"][found.rows], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["roberta", "mpnet"])
def test_padding_on_the_left_gives_a_literal_padding_token_no_position(
    kind: str, checkpoint: Callable[[str], Path]
) -> None:
    folder = checkpoint(kind)
    template = Template(name="left", texts="{sentence}", pooling="last", padding="left")
    texts = [*TEXTS, "She <pad> reads."]
    found = embed(load(folder, template=template), texts, use_cache=False)
    plain = _Plain(folder)
    expected = [plain.last(plain.ids(text)) for text in texts]
    np.testing.assert_allclose(found.vectors["last"][found.rows], expected, rtol=0, atol=1e-5)
