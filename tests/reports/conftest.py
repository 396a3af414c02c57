"""Records to report on: measured on invented sentences, hostile ones, and such as print a paper's numbers."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.published.catalogue import row

HOSTILE = (
    "<script>alert('model')</script><img src=x onerror=alert(1)> \"quoted\" & `ticked` |pipe| "
    "\u05e9\u05dc\u05d5\u05dd \u202eevil\u202c ]]> --> {{ 7 * 7 }} $\\frac{$ " + "y" * 3000
)
"""What a model may be called: markup, quotes, right-to-left text, a direction override, a template's braces."""


@pytest.fixture
def make_record(hash_encode: Callable[..., Any], toy_data: Callable[..., StsData]) -> Callable[..., sb.RunRecord]:
    """Return a maker of records that are called as is wished; another seed is another measurement."""

    def make(name: str = "mine", *, seed: int = 0, **changes: Any) -> sb.RunRecord:
        data = [toy_data("toy", pairs=12), toy_data("other", pairs=12, seed=1)]
        measured = sb.evaluate(
            lambda sentences: hash_encode(sentences) + 0.01 * seed,
            data,
            intervals=sb.Intervals(),
            use_cache=False,
        )
        model = measured.model.model_copy(update={"name": name})
        renamed = measured.model_copy(update={"model": model, **changes})
        return renamed.with_items(measured.items)

    return make


@pytest.fixture
def hostile(make_record: Callable[..., sb.RunRecord]) -> sb.RunRecord:
    """Return a record in which every text is an attack, some of them very long."""
    return make_record(
        HOSTILE,
        notes=(HOSTILE, "x" * 5000),
        command=f"stsbench run\n```\n{HOSTILE}",
        environment={HOSTILE: HOSTILE, "packages": {HOSTILE: HOSTILE}},
    )


@pytest.fixture
def as_published(tmp_path: Path) -> Callable[..., sb.RunRecord]:
    """Return a maker of imported records that hold the scores of a published row, some of them off."""

    def make(name: str, model: str, tasks: Sequence[str] = (), **off: float) -> sb.RunRecord:
        cells = [cell for cell in row(name).cells if not cell.setting.task.startswith(("Avg.", "delta"))]
        scores = {cell.setting.task: cell.score for cell in cells if cell.score is not None}
        table = {
            {"STS-B": "STSBenchmark"}.get(task, task): (score + off.get(task, 0)) / 100
            for task, score in scores.items()
            if not tasks or task in tasks
        }
        path = tmp_path / "results.json"
        path.write_text(json.dumps({"model": model, "cosine_spearman": table}), encoding="utf-8")
        return sb.import_results(path)

    return make
