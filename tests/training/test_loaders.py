"""A checkpoint of a training gives the same vectors here, in sentence-transformers and in Transformers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb
from stsbench.data.benchmarks import sample_sentences
from stsbench.encoders.plan import embed

Train = Callable[..., Any]

HEADS = [
    (("pooling=avg",), "avg"),
    (("pooling=cls_before_pooler", "head=dense-tanh"), "cls_before_pooler"),
    (("pooling=cls_before_pooler", "head={kind: dense-tanh, evaluate: true}"), "cls"),
]


@pytest.mark.parametrize(("overrides", "pooling"), HEADS, ids=["avg", "head in training only", "head scored"])
def test_three_loaders_give_the_same_vectors(overrides: tuple[str, ...], pooling: str, train: Train) -> None:
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("sentence_transformers")
    from transformers import AutoModel, AutoTokenizer

    folder = train(*overrides).folder
    sentences = sample_sentences()[:20]

    def vectors(place: Path) -> Any:
        embeddings = embed(sb.load(place), sentences, use_cache=False)
        (matrix,) = embeddings.vectors.values()
        return matrix[embeddings.rows]

    expected = vectors(folder)
    scale = np.linalg.norm(expected, axis=1).max()
    by_library = library.SentenceTransformer(str(folder), device="cpu").encode(sentences)
    assert np.abs(by_library - expected).max() < 1e-6 * scale
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        states = [
            model(**tokenizer(text, return_tensors="pt", truncation=True, max_length=64)) for text in sentences
        ]
    read = {
        "avg": lambda state: state.last_hidden_state[0].mean(0),
        "cls_before_pooler": lambda state: state.last_hidden_state[0, 0],
        "cls": lambda state: state.pooler_output[0],
    }[pooling]
    by_transformers = np.stack([read(state).numpy() for state in states])
    assert np.abs(by_transformers - expected).max() < 1e-6 * scale
