"""Folders of runs that differ a little."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stsbench as sb

Runs = Callable[..., Path]


@pytest.fixture
def board_runs(tmp_path: Path, hash_encode: Callable[..., Any], toy_data: Callable[..., Any]) -> Runs:
    """Return a maker of runs below a folder, of two tasks with their average.

    Each has a name, and how much it knows of gold: 0 for nothing, the more the higher its scores.
    """
    root = tmp_path / "runs"

    def made(**known: float) -> Path:
        data = [toy_data("toy", pairs=60), toy_data("other", pairs=50, seed=1)]
        pairs = [row for task in data for row in task.pairs.to_dict("records")]
        golds = {row["sentence2"]: (row["sentence1"], row["gold"]) for row in pairs}
        for name, share in known.items():

            def encode(sentences: list[str], share: float = share) -> Any:
                partners = [golds.get(sentence, (sentence, 0.0)) for sentence in sentences]
                firsts = hash_encode([first for first, _ in partners])
                return hash_encode(sentences) + share * np.array([[gold] for _, gold in partners]) * firsts

            encode.__module__, encode.__qualname__ = "__main__", name
            sb.evaluate(encode, data, use_cache=False, out=root / name)
        return root

    return made
