"""SentEval's `engine`: the class `SE`."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.compat.senteval.batches import Batcher, Prepare
from stsbench.compat.senteval.shapes import TwoShapes
from stsbench.compat.senteval.surroundings import tell_of_another_senteval
from stsbench.compat.senteval.tasks import (
    FILES,
    NAMES,
    SUPERVISED,
    UNSUPERVISED,
    evaluate_both,
    evaluate_labelled,
    evaluate_regressor,
    evaluate_similarity,
    load_probing,
)
from stsbench.compat.senteval.utils import dotdict
from stsbench.data.benchmarks import load_labelled, load_sts
from stsbench.data.tables import LabelledData, StsData

RESULTS = ("both", "senteval", "simcse")
VARIABLE = "STSBENCH_SENTEVAL"
"""The environment variable that chooses the shape of results where the parameters do not."""

CACHE_VARIABLE = "STSBENCH_SENTEVAL_CACHE"
"""The environment variable that keeps the vectors of sentences, unless it is empty."""

_DEFAULTS: dict[str, Any] = {
    "usepytorch": True,
    "seed": 1111,
    "batch_size": 128,
    "nhid": 0,
    "kfold": 5,
    "tokens": "str",
}
_Data = TypeVar("_Data", LabelledData, StsData)

_FINE_TUNED = "-finetune"
_DEV = "STSBenchmark-dev"
_UNOFFERED = {
    "STSBenchmark-fix": "its mended pairs are not part of the SentEval data that is catalogued here",
    "SNLI": "its training pairs are not part of the SentEval data that is catalogued here",
    "ImageCaptionRetrieval": "its COCO features are no longer published",
}


class SE:
    """SentEval's evaluator.

    Args:
        params: see the package's description; entries that are yours are kept for your functions.
        batcher: called as `batcher(params, batch)` with a list of token lists; returns one row for each, as a
            NumPy array or a torch tensor.
        prepare: called as `prepare(params, samples)` with all of a task's token lists before its first batch;
            what it returns is not looked at.

    Raises:
        UserError: if a parameter cannot be used.
    """

    def __init__(self, params: dict[str, Any], batcher: Batcher, prepare: Prepare | None = None) -> None:
        self.params = dotdict(_DEFAULTS | dict(params))
        self.params.results = self.params.results or os.environ.get(VARIABLE) or "both"
        self.params.cache = bool(self.params.cache or os.environ.get(CACHE_VARIABLE))
        self.params.classifier = self.params.classifier or {"nhid": 0}
        for name, value, allowed in (
            ("results", self.params.results, RESULTS),
            ("tokens", self.params.tokens, ("str", "bytes")),
        ):
            if value not in allowed:
                raise UserError(f"params[{name!r}] is {value!r}: {suggestion(value, allowed)}")
        if "nhid" not in self.params.classifier:
            raise UserError("params['classifier'] names no 'nhid': say how many hidden units, 0 for none.")
        if not self.params.task_path or not Path(self.params.task_path).is_dir():
            raise UserError(
                f"params['task_path'] is {self.params.task_path!r}, which is not a folder "
                f"(seen from {Path.cwd()}): name the one that holds SentEval's `downstream`."
            )
        tell_of_another_senteval()
        self.batcher = batcher
        self.prepare: Prepare = prepare or (lambda _params, _samples: None)
        self.results: dict[str, Any] = {}
        self.list_tasks = [*NAMES, *SUPERVISED, *UNSUPERVISED, *FILES]
        if self.params.results != "senteval":
            self.list_tasks += [*(name + _FINE_TUNED for name in SUPERVISED), _DEV]

    def eval(self, name: str | list[str]) -> dict[str, Any]:
        """Evaluate one task, or each of a list.

        Raises:
            UserError: if there is no such task, its data is missing or broken, or the batcher returns no
                vectors.
        """
        if not isinstance(name, str):
            self.results = {task: self.eval(task) for task in name}
            return self.results
        if name in _UNOFFERED:
            raise UserError(f"{name} cannot be evaluated: {_UNOFFERED[name]}.")
        if name not in self.list_tasks:
            raise UserError(f"there is no task {name!r}: choose from {', '.join(self.list_tasks)}.")
        self.params.current_task = name
        self.results = self._evaluator(name)()
        if not isinstance(self.results, TwoShapes):
            logging.debug("%s: %s", name, {key: value for key, value in self.results.items() if key != "yhat"})
        return self.results

    def _evaluator(self, name: str) -> Callable[[], dict[str, Any]]:
        folder, functions = Path(self.params.task_path), (self.params, self.batcher, self.prepare)
        if name in NAMES:
            return lambda: evaluate_labelled(_noted(load_labelled(NAMES[name], [folder])), *functions)
        if name in FILES:
            return lambda: evaluate_labelled(load_probing(name, folder), *functions)
        if name in UNSUPERVISED or name == _DEV:
            task, split = (name, "test") if name in UNSUPERVISED else ("STS-B", "dev")
            data = _noted(load_sts(task, split, data_dirs=[folder]))
            return lambda: evaluate_similarity(data, *functions, pooled=self.params.results != "senteval")
        data = _noted(load_sts(SUPERVISED[name.removesuffix(_FINE_TUNED)], "all", data_dirs=[folder]))
        if name.endswith(_FINE_TUNED):
            return lambda: evaluate_regressor(data, *functions, stop_by="spearman")
        return {
            "senteval": lambda: evaluate_regressor(data, *functions, stop_by="pearson"),
            "simcse": lambda: evaluate_similarity(data, *functions, pooled=True),
            "both": lambda: evaluate_both(data, *functions),
        }[self.params.results]


def _noted(data: _Data) -> _Data:
    """Log what is not as catalogued in the data."""
    for problem in data.problems:
        logging.warning(problem)
    return data
