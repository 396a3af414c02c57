"""stsbench: measure sentence embeddings, explain them, and prove the numbers.

>>> import stsbench as sb
>>> record = sb.evaluate(lambda sentences: [[len(s), s.count("a")] for s in sentences], "sample")
>>> record.tasks[0].task
'sample'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stsbench._version import __version__

if TYPE_CHECKING:
    from stsbench.encoders import SavedVectors, embed
    from stsbench.evaluation.protocols import choose_protocol as protocol
    from stsbench.evaluation.sts import Bootstrap
    from stsbench.foundation.errors import UserError
    from stsbench.records import RunRecord, Signature, load_run
    from stsbench.verify.diagnose import Diagnosis
    from stsbench.workflows.check import check
    from stsbench.workflows.compare import compare
    from stsbench.workflows.diagnose import diagnose
    from stsbench.workflows.evaluate import evaluate, evaluate_similarities
    from stsbench.workflows.models import load
    from stsbench.workflows.results import import_results
    from stsbench.workflows.settings import Postprocessing
    from stsbench.workflows.train import Training, train

__all__ = [
    "Bootstrap",
    "Diagnosis",
    "Postprocessing",
    "RunRecord",
    "SavedVectors",
    "Signature",
    "Training",
    "UserError",
    "__version__",
    "check",
    "compare",
    "diagnose",
    "embed",
    "evaluate",
    "evaluate_similarities",
    "import_results",
    "load",
    "load_run",
    "protocol",
    "train",
]

# Where each public name lives. Nothing is imported before it is asked for: `stsbench --help` needs no NumPy.
_HOMES = {
    "Bootstrap": "stsbench.evaluation.sts:Bootstrap",
    "Diagnosis": "stsbench.verify.diagnose:Diagnosis",
    "Postprocessing": "stsbench.workflows.settings:Postprocessing",
    "RunRecord": "stsbench.records:RunRecord",
    "SavedVectors": "stsbench.encoders:SavedVectors",
    "Signature": "stsbench.records:Signature",
    "Training": "stsbench.workflows.train:Training",
    "UserError": "stsbench.foundation.errors:UserError",
    "compare": "stsbench.workflows.compare:compare",
    "diagnose": "stsbench.workflows.diagnose:diagnose",
    "check": "stsbench.workflows.check:check",
    "embed": "stsbench.encoders:embed",
    "evaluate": "stsbench.workflows.evaluate:evaluate",
    "evaluate_similarities": "stsbench.workflows.evaluate:evaluate_similarities",
    "import_results": "stsbench.workflows.results:import_results",
    "load": "stsbench.workflows.models:load",
    "load_run": "stsbench.records:load_run",
    "protocol": "stsbench.evaluation.protocols:choose_protocol",
    "train": "stsbench.workflows.train:train",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'stsbench' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
