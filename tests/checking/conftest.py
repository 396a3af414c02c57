"""Records whose scores are chosen: what a run must look like to be judged."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

import stsbench as sb
from stsbench.encoders.use import Use, names
from stsbench.published.catalogue import row
from stsbench.records.parts import DataPart, ModelPart, ProtocolPart, SubsetPart, TaskPart
from stsbench.records.signature import Signature

MODEL = {"name": "mine", "kind": "transformer"}
USE = Use(pooling="cls_before_pooler", max_length=512, prompt="", device="cpu")
PROTOCOL = {"aggregation": "all", "metric": "spearman", "similarity": "cosine"}


def make_part(
    task: str,
    score: float | None,
    model: ModelPart,
    *,
    split: str = "test",
    text: str = "senteval",
    status: Any = "verified",
    truncated: int = 0,
    **protocol: str,
) -> TaskPart:
    chosen = PROTOCOL | protocol
    share = None if score is None else score / 100
    signature = Signature(task, split, text=text, data="3f2a91", use=model.use, **chosen)
    names = ("one", "two") if task[-2:].isdigit() else ("whole",)
    values = {chosen["metric"]: share}
    return TaskPart(
        task=task,
        split=split,
        text=text,
        pairs=10,
        score=share,
        scores={chosen["aggregation"]: values},
        subsets=tuple(SubsetPart(name=name, pairs=5, scores=values) for name in names),
        signature=str(signature),
        data=DataPart(status=status, sha256="3f2a91" + "0" * 58),
        identical_pairs=0,
        zero_pairs=0,
        truncated_sentences=truncated,
    )


@pytest.fixture
def make_run() -> Callable[..., sb.RunRecord]:
    """Return a maker of records: task to score x 100, the model's fields, and what holds for every task."""

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
            tasks=tuple(make_part(task, score, used, **every) for task, score in scores.items()),
            environment={},
            seconds={},
            encoding={},
        )

    return make


@pytest.fixture(scope="session")
def printed() -> Callable[[str], dict[str, float]]:
    """Return what gives the scores of a published row by task, averages left out."""

    def scores_of(name: str) -> dict[str, float]:
        cells = [cell for cell in row(name).cells if not cell.setting.task.startswith(("Avg.", "delta"))]
        return {cell.setting.task: cell.score for cell in cells if cell.score is not None}

    return scores_of
