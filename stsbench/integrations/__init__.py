"""Dev scores with intervals in other training loops, and early stopping when no rise is significant.

`StsEvaluator` is for sentence-transformers (`SentenceTransformerTrainer` and `model.fit`), `WithIntervals` for its
own evaluators, `StsCallback` for Transformers' `Trainer`; `StopWithoutRise` stops any of these trainings.

`evaluator` and `callback` adapt to each library, `dev_scores` measures the current weights and compares
evaluations.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from stsbench.integrations.callback import StopWithoutRise, StsCallback
    from stsbench.integrations.dev_scores import DevScore, DevScores
    from stsbench.integrations.evaluator import StsEvaluator, WithIntervals

__all__ = ["DevScore", "DevScores", "StopWithoutRise", "StsCallback", "StsEvaluator", "WithIntervals"]

# Each needs another library, so each is imported when it is used.
_HOMES = {
    "DevScore": "dev_scores",
    "DevScores": "dev_scores",
    "StopWithoutRise": "callback",
    "StsCallback": "callback",
    "StsEvaluator": "evaluator",
    "WithIntervals": "evaluator",
}


def __getattr__(name: str) -> "Any":
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
