"""Models measured on small data, and records with chosen scores."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.encoders.use import Use, names
from stsbench.published.catalogue import row
from stsbench.records.parts import DataPart, ModelPart, Number, ProtocolPart, Score
from stsbench.records.signature import Signature

Measure = Callable[..., sb.RunRecord]

MODEL = {"name": "mine", "kind": "transformer"}
USE = Use(pooling="cls_before_pooler", max_length=512, prompt="", device="cpu")
PROTOCOL = {"aggregation": "all", "metric": "spearman", "similarity": "cosine"}


@pytest.fixture
def measure(hash_encode: Callable[[list[str]], NDArray[np.float64]], toy_data: Callable[..., StsData]) -> Measure:
    """Returns a function that measures vectors with noise on toy tasks."""

    def run(tasks: Any = None, *, noise: float = 0.0, seed: int = 0, **options: Any) -> sb.RunRecord:
        def encode(sentences: list[str]) -> NDArray[np.float64]:
            vectors = hash_encode(sentences)
            return vectors + noise * np.random.default_rng(seed).normal(size=vectors.shape)

        return sb.evaluate(encode, tasks or [toy_data("x", pairs=60), toy_data("y", seed=1)], **options)

    return run


def made_score(
    task: str,
    score: float | None,
    model: ModelPart,
    *,
    split: str = "test",
    text: str = "senteval",
    status: Any = "verified",
    truncated: int = 0,
    **protocol: str,
) -> Score:
    chosen = PROTOCOL | protocol
    share = None if score is None else score / 100
    signature = Signature(task, split, text=text, data="3f2a91", use=model.use, **chosen)
    subsets = ("one", "two") if task[-2:].isdigit() else ("whole",)
    metric = chosen["metric"]
    whole = Number(statistic=metric, aggregation=chosen["aggregation"], value=share, items=10)
    return Score(
        kind="sts",
        task=task,
        split=split,
        text=text,
        numbers=(whole, *(Number(statistic=metric, subset=name, value=share, items=5) for name in subsets)),
        signature=str(signature),
        data=DataPart(status=status, sha256="3f2a91" + "0" * 58),
        truncated_sentences=truncated,
    )


@pytest.fixture
def make_run() -> Callable[..., sb.RunRecord]:
    """Returns a maker of records: scores x 100 by task, the model's fields, and what holds for every task."""

    def make(
        scores: Mapping[str, float | None], model: Mapping[str, Any] | None = None, **every: Any
    ) -> sb.RunRecord:
        chosen = dict(model or {})
        use = replace(USE, **{name: chosen.pop(name) for name in names() if name in chosen})
        used = ModelPart(**(MODEL | chosen), use=use)
        protocol = PROTOCOL | {name: every[name] for name in PROTOCOL if name in every}
        return sb.RunRecord(
            stsbench="0",
            created="",
            model=used,
            protocol=ProtocolPart(name="simcse", **protocol, interval=None, level=0.95),
            scores=tuple(made_score(task, score, used, **every) for task, score in scores.items()),
            environment={},
            seconds={},
            encoding={},
        )

    return make


@pytest.fixture(scope="session")
def printed() -> Callable[[str], dict[str, float]]:
    """Returns a function that returns the scores of a published row by task, without averages."""

    def scores_of(name: str) -> dict[str, float]:
        cells = [cell for cell in row(name).cells if not cell.setting.task.startswith(("Avg.", "delta"))]
        return {cell.setting.task: cell.score for cell in cells if cell.score is not None}

    return scores_of
