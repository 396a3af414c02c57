"""SentEval's `engine`: the class `SE`, and the calls that Transformers 5 removed and old scripts use."""

import importlib.machinery
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.compat.senteval.batches import Batcher, Prepare, Results, Script
from stsbench.compat.senteval.tasks import (
    FILES,
    NAMES,
    SPLITS,
    SUPERVISED,
    UNSUPERVISED,
    evaluate_labelled,
    evaluate_regressor,
    evaluate_similarity,
    evaluate_splits,
    load_probing,
)
from stsbench.compat.senteval.utils import dotdict
from stsbench.data.benchmarks import load_labelled, load_sts
from stsbench.data.reading import places
from stsbench.data.tables import LabelledData, StsData

RESULTS = ("both", "senteval", "simcse")
VARIABLE = "STSBENCH_SENTEVAL"
"""The environment variable for the keys of results, unless the parameters set them."""

SPLITS_VARIABLE = "STSBENCH_SENTEVAL_SPLITS"
"""The environment variable for the splits, unless the parameters set them."""

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

_LOG = logging.getLogger("stsbench.compat.senteval")
_warned: set[str] = set()

_FINE_TUNED = "-finetune"
_DEV = "STSBenchmark-dev"
_UNOFFERED = {
    "STSBenchmark-fix": "its corrected pairs are not part of the SentEval data that is catalogued here",
    "SNLI": "its training pairs are not part of the SentEval data that is catalogued here",
    "ImageCaptionRetrieval": "its COCO features are no longer published",
    "CocoCXC": "its ratings of COCO's captions (Crisscrossed Captions) are not part of the SentEval data that is "
    "catalogued here",
}


class SE:
    """SentEval's evaluator.

    Args:
        params: see the package's description; other entries are kept for your functions.
        batcher: called as `batcher(params, batch)` with a list of token lists; returns one row for each, as a
            NumPy array or a torch tensor.
        prepare: called as `prepare(params, samples)` with all of a task's token lists before its first batch;
            its result is ignored.

    Raises:
        UserError: if a parameter cannot be used.
    """

    def __init__(self, params: dict[str, Any], batcher: Batcher, prepare: Prepare | None = None) -> None:
        self.params = dotdict(_DEFAULTS | dict(params))
        self.params.results = self.params.results or os.environ.get(VARIABLE) or "both"
        self.params.splits = splits_of(self.params.splits or os.environ.get(SPLITS_VARIABLE))
        self.params.cache = bool(self.params.cache or os.environ.get(CACHE_VARIABLE))
        self.params.classifier = self.params.classifier or {"nhid": 0}
        for name, value, allowed in (
            ("results", self.params.results, RESULTS),
            ("tokens", self.params.tokens, ("str", "bytes")),
        ):
            if value not in allowed:
                raise UserError(f"params[{name!r}] is {value!r}: {suggestion(value, allowed)}")
        if "nhid" not in self.params.classifier:
            raise UserError("params['classifier'] has no 'nhid': set the number of hidden units, 0 for none.")
        self._data_dirs = self._folder()
        warn_of_another_senteval()
        self.batcher = batcher
        self.prepare: Prepare = prepare or (lambda _params, _samples: None)
        self.results: dict[str, Any] = {}
        self.list_tasks = [*NAMES, *SUPERVISED, *UNSUPERVISED, *FILES]
        if self.params.results != "senteval":
            self.list_tasks += [*(name + _FINE_TUNED for name in SUPERVISED), _DEV]

    def eval(self, name: str | list[str]) -> dict[str, Any]:
        """Evaluates one task, or each of a list.

        Raises:
            UserError: if there is no such task, its data is missing or broken, or the batcher returns no
                vectors.
        """
        if not isinstance(name, str):
            # Missing data is reported before the first task is evaluated.
            ready = {task: self._evaluator(task) for task in name}
            self.results = {task: self._evaluated(task, ready.pop(task)) for task in list(ready)}
            return self.results
        self.results = self._evaluated(name, self._evaluator(name))
        return self.results

    def _evaluated(self, name: str, evaluate: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        self.params.current_task = name
        results = evaluate()
        if not isinstance(results, Results):
            logging.debug("%s: %s", name, results)
        return results

    def _folder(self) -> list[Path]:
        """Returns the folder of the data, if it exists; other files are searched in the usual places."""
        folder = self.params.task_path
        if folder and Path(folder).is_dir():
            return [Path(folder)]
        warn_once(
            f"params['task_path'] is {folder!r}, which is not a folder (seen from {Path.cwd()}): data is looked "
            f"for in {', '.join(f'{place.folder} ({place.origin})' for place in places())}."
        )
        return []

    def _evaluator(self, name: str) -> Callable[[], dict[str, Any]]:
        """Reads a task's data, and returns the function that evaluates it."""
        if name in _UNOFFERED:
            raise UserError(f"{name} cannot be evaluated: {_UNOFFERED[name]}.")
        if name not in self.list_tasks:
            raise UserError(f"there is no task {name!r}: choose from {', '.join(self.list_tasks)}.")
        folders, script = self._data_dirs, Script(self.params, self.batcher, self.prepare)
        if name in NAMES or name in FILES:
            labelled = (
                _noted(load_labelled(NAMES[name], folders)) if name in NAMES else load_probing(name, folders)
            )
            return lambda: evaluate_labelled(labelled, script)
        if name in UNSUPERVISED or name == _DEV:
            task, split = (name, "test") if name in UNSUPERVISED else ("STS-B", "dev")
            pairs = _noted(load_sts(task, split, data_dirs=folders))
            return lambda: evaluate_similarity(pairs, script, pooled=self.params.results != "senteval")
        data = _noted(load_sts(SUPERVISED[name.removesuffix(_FINE_TUNED)], "all", data_dirs=folders))
        if name.endswith(_FINE_TUNED):
            return lambda: evaluate_regressor(data, script, stop_by="spearman")
        if self.params.results == "senteval":
            return lambda: evaluate_regressor(data, script, stop_by="pearson")
        return lambda: evaluate_splits(data, script, trained=self.params.results == "both")


def splits_of(named: str | Sequence[str] | None) -> tuple[str, ...]:
    """Returns the splits in a list or a comma-separated text; empty for None."""
    names = named.replace(",", " ").split() if isinstance(named, str) else list(named or ())
    for name in names:
        if name not in SPLITS:
            raise UserError(f"there is no split {name!r}: {suggestion(name, SPLITS)}")
    return tuple(names)


def _noted(data: _Data) -> _Data:
    """Logs the differences from the catalogued data."""
    for problem in data.problems:
        logging.warning(problem)
    return data


def warn_once(message: str) -> None:
    """Logs a warning, unless this process has logged it before."""
    if message not in _warned:
        _warned.add(message)
        _LOG.warning(message)


def warn_of_another_senteval() -> None:
    """Warns that the SentEval on `sys.path` is not used, if this package replaces it."""
    if "senteval" not in sys.modules:
        return
    installed = importlib.machinery.PathFinder.find_spec("senteval")
    # A folder without __init__.py, such as one of data, has no origin.
    if installed is not None and installed.origin and Path(installed.origin).is_file():
        warn_once(f"The SentEval in {Path(installed.origin).parent} is not used: stsbench replaces it.")


def supply_removed_calls() -> None:
    """Restores calls that Transformers 5 removed and these scripts use; existing ones are unchanged.

    - `tokenizer.batch_encode_plus` and `tokenizer.encode_plus` call `tokenizer(...)`.
    - `from_pretrained(load_in_8bit=..., load_in_4bit=...)` sets `quantization_config=BitsAndBytesConfig(...)`,
      or nothing if both are False.
    """
    with suppress(ModuleNotFoundError):  # a script may not use Transformers
        import transformers

        for name in ("batch_encode_plus", "encode_plus"):
            if not hasattr(transformers.PreTrainedTokenizerBase, name):
                setattr(transformers.PreTrainedTokenizerBase, name, _calling(name))
        load = transformers.PreTrainedModel.from_pretrained.__func__
        if int(transformers.__version__.split(".")[0]) >= 5 and load.__module__ != __name__:
            setattr(transformers.PreTrainedModel, "from_pretrained", classmethod(_with_bits(load)))  # noqa: B010


def _calling(name: str) -> Any:
    def call(self: Any, text: Any, *more: Any, **options: Any) -> Any:
        warn_once(f"Transformers 5 has no tokenizer.{name}: stsbench calls tokenizer(...) instead.")
        # The second argument of `batch_encode_plus` is `add_special_tokens`, that of `encode_plus` a second text.
        if name == "batch_encode_plus" and more:
            options["add_special_tokens"], more = more[0], ()
        return self(text, *more, **options)

    return call


def _with_bits(load: Any) -> Any:
    @wraps(load, assigned=("__name__", "__qualname__", "__doc__"))
    def from_pretrained(cls: Any, *arguments: Any, **options: Any) -> Any:
        import transformers

        bits = {name: options.pop(name) for name in ("load_in_8bit", "load_in_4bit") if name in options}
        if bits:
            warn_once("Transformers 5 has no load_in_8bit: stsbench uses BitsAndBytesConfig if it is True.")
        if any(bits.values()) and options.get("quantization_config") is None:
            options["quantization_config"] = transformers.BitsAndBytesConfig(**bits)
        return load(cls, *arguments, **options)

    return from_pretrained
