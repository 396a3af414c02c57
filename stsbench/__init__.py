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
    from stsbench.workflows.analysed_data import default_tasks
    from stsbench.workflows.cards import badge, model_card
    from stsbench.workflows.check import check
    from stsbench.workflows.compare import compare
    from stsbench.workflows.comparison_tables import figure as plot_compare
    from stsbench.workflows.density import density
    from stsbench.workflows.density import figure as plot_density
    from stsbench.workflows.dev_curve import figure as plot_train
    from stsbench.workflows.diagnose import diagnose
    from stsbench.workflows.diagnose_output import figure as plot_diagnose
    from stsbench.workflows.evaluate import evaluate, evaluate_similarities
    from stsbench.workflows.explain import explain
    from stsbench.workflows.geometry import figure as plot_geometry
    from stsbench.workflows.geometry import geometry
    from stsbench.workflows.length_bias import figure as plot_length_bias
    from stsbench.workflows.length_bias import length_bias
    from stsbench.workflows.models import load
    from stsbench.workflows.repetition_bias import figure as plot_repetition_bias
    from stsbench.workflows.repetition_bias import repetition_bias
    from stsbench.workflows.report import report
    from stsbench.workflows.results import import_results
    from stsbench.workflows.retrieve import figure as plot_retrieve
    from stsbench.workflows.retrieve import retrieve
    from stsbench.workflows.settings import Postprocessing
    from stsbench.workflows.show import show
    from stsbench.workflows.spectrum import figure as plot_spectrum
    from stsbench.workflows.spectrum import spectrum
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
    "badge",
    "check",
    "compare",
    "default_tasks",
    "density",
    "diagnose",
    "embed",
    "evaluate",
    "evaluate_similarities",
    "explain",
    "geometry",
    "import_results",
    "length_bias",
    "load",
    "load_run",
    "model_card",
    "plot_compare",
    "plot_density",
    "plot_diagnose",
    "plot_geometry",
    "plot_length_bias",
    "plot_repetition_bias",
    "plot_retrieve",
    "plot_spectrum",
    "plot_train",
    "protocol",
    "repetition_bias",
    "report",
    "retrieve",
    "show",
    "spectrum",
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
    "badge": "stsbench.workflows.cards:badge",
    "check": "stsbench.workflows.check:check",
    "compare": "stsbench.workflows.compare:compare",
    "default_tasks": "stsbench.workflows.analysed_data:default_tasks",
    "density": "stsbench.workflows.density:density",
    "diagnose": "stsbench.workflows.diagnose:diagnose",
    "embed": "stsbench.encoders:embed",
    "evaluate": "stsbench.workflows.evaluate:evaluate",
    "evaluate_similarities": "stsbench.workflows.evaluate:evaluate_similarities",
    "explain": "stsbench.workflows.explain:explain",
    "geometry": "stsbench.workflows.geometry:geometry",
    "import_results": "stsbench.workflows.results:import_results",
    "length_bias": "stsbench.workflows.length_bias:length_bias",
    "load": "stsbench.workflows.models:load",
    "load_run": "stsbench.records:load_run",
    "model_card": "stsbench.workflows.cards:model_card",
    "plot_compare": "stsbench.workflows.comparison_tables:figure",
    "plot_density": "stsbench.workflows.density:figure",
    "plot_diagnose": "stsbench.workflows.diagnose_output:figure",
    "plot_geometry": "stsbench.workflows.geometry:figure",
    "plot_length_bias": "stsbench.workflows.length_bias:figure",
    "plot_repetition_bias": "stsbench.workflows.repetition_bias:figure",
    "plot_retrieve": "stsbench.workflows.retrieve:figure",
    "plot_spectrum": "stsbench.workflows.spectrum:figure",
    "plot_train": "stsbench.workflows.dev_curve:figure",
    "protocol": "stsbench.evaluation.protocols:choose_protocol",
    "repetition_bias": "stsbench.workflows.repetition_bias:repetition_bias",
    "report": "stsbench.workflows.report:report",
    "retrieve": "stsbench.workflows.retrieve:retrieve",
    "show": "stsbench.workflows.show:show",
    "spectrum": "stsbench.workflows.spectrum:spectrum",
    "train": "stsbench.workflows.train:train",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'stsbench' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
