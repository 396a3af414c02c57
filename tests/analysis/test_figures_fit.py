"""The figure of every analysis of models with long names; `tests/render/test_every_figure.py` looks at them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import stsbench as sb
from stsbench.analysis import ANALYSES, analysis
from stsbench.analysis.geometry import Geometry
from stsbench.analysis.hubness import Hubness

NAMES = ("minilm", "organisation/a-rather-long-checkpoint-name (dimensions 64)", "glove")

OPTIONS: dict[str, dict[str, Any]] = {
    "compress": {"sizes": [3], "draws": 2},
    "repetition-bias": {"queries": 5},
    "retrieve": {"query": ["short", "a query " * 20]},
}


def letters(texts: list[str], start: int) -> Any:
    """Return how often some letters are in each text."""
    return np.array([[0.1 + text.count(letter) for letter in "etaoinshrdlu"[start:]] for text in texts])


def measured(name: str) -> Any:
    """Return an analysis of three models on the sample."""
    kind = analysis(name)
    data = {"tasks": ["sample"]} if "tasks" in kind.parameters else {}
    data |= {"task": "sample"} if "task" in kind.parameters else {}
    result = kind(**data, **OPTIONS.get(name, {}))
    encoders = {model: sb.load(partial(letters, start=start)) for start, model in enumerate(NAMES)}
    return result.compute(result.inputs(encoders))


def of_long_tasks() -> Any:
    return Hubness(measured("hubness").frame.replace({"sample": "a-task-of-a-long-name"})).plot()


def of_a_path() -> Any:
    return Geometry(measured("geometry").frame, joined=True).plot()


FIGURES: dict[str, Callable[[], Any]] = {
    **{name: lambda name=name: measured(name).plot() for name in ANALYSES},
    "geometry, a path": of_a_path,
    "hubness, long tasks": of_long_tasks,
}
