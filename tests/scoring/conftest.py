"""Small labelled tasks."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from stsbench.data.tables import LabelledData

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
