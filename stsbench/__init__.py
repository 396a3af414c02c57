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
    from stsbench.analysis.density import density
    from stsbench.analysis.density import figure as plot_density
    from stsbench.analysis.explain import explain
    from stsbench.analysis.geometry import figure as plot_geometry
    from stsbench.analysis.geometry import geometry
    from stsbench.analysis.length_bias.verb import figure as plot_length_bias
    from stsbench.analysis.length_bias.verb import length_bias
    from stsbench.analysis.repetition_bias.verb import figure as plot_repetition_bias
    from stsbench.analysis.repetition_bias.verb import repetition_bias
    from stsbench.analysis.retrieve import figure as plot_retrieve
    from stsbench.analysis.retrieve import retrieve
    from stsbench.analysis.spectrum import figure as plot_spectrum
    from stsbench.analysis.spectrum import spectrum
    from stsbench.base.errors import UserError
    from stsbench.checking.check import check
    from stsbench.comparison.compare import compare
    from stsbench.comparison.tables import figure as plot_compare
    from stsbench.diagnosis.diagnose import diagnose
    from stsbench.diagnosis.heat import figure as plot_diagnose
    from stsbench.diagnosis.result import Diagnosis
    from stsbench.encoders.load import load
    from stsbench.encoders.plan import embed
    from stsbench.encoders.saved import SavedVectors
    from stsbench.records.imports.read import import_results
    from stsbench.records.record import RunRecord
    from stsbench.records.show import show
    from stsbench.records.signature import Signature
    from stsbench.records.store import load_run
    from stsbench.reports.cards import badge, model_card
    from stsbench.reports.report import report
    from stsbench.scoring.evaluate import evaluate, evaluate_similarities
    from stsbench.scoring.protocols import choose_protocol as protocol
    from stsbench.scoring.settings import Postprocessing
    from stsbench.scoring.sts import Bootstrap
    from stsbench.scoring.vectors import default_tasks
    from stsbench.training.dev_curve import figure as plot_train
    from stsbench.training.train import Training, train

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
    "Bootstrap": "stsbench.scoring.sts:Bootstrap",
    "Diagnosis": "stsbench.diagnosis.result:Diagnosis",
    "Postprocessing": "stsbench.scoring.settings:Postprocessing",
    "RunRecord": "stsbench.records.record:RunRecord",
    "SavedVectors": "stsbench.encoders.saved:SavedVectors",
    "Signature": "stsbench.records.signature:Signature",
    "Training": "stsbench.training.train:Training",
    "UserError": "stsbench.base.errors:UserError",
    "badge": "stsbench.reports.cards:badge",
    "check": "stsbench.checking.check:check",
    "compare": "stsbench.comparison.compare:compare",
    "default_tasks": "stsbench.scoring.vectors:default_tasks",
    "density": "stsbench.analysis.density:density",
    "diagnose": "stsbench.diagnosis.diagnose:diagnose",
    "embed": "stsbench.encoders.plan:embed",
    "evaluate": "stsbench.scoring.evaluate:evaluate",
    "evaluate_similarities": "stsbench.scoring.evaluate:evaluate_similarities",
    "explain": "stsbench.analysis.explain:explain",
    "geometry": "stsbench.analysis.geometry:geometry",
    "import_results": "stsbench.records.imports.read:import_results",
    "length_bias": "stsbench.analysis.length_bias.verb:length_bias",
    "load": "stsbench.encoders.load:load",
    "load_run": "stsbench.records.store:load_run",
    "model_card": "stsbench.reports.cards:model_card",
    "plot_compare": "stsbench.comparison.tables:figure",
    "plot_density": "stsbench.analysis.density:figure",
    "plot_diagnose": "stsbench.diagnosis.heat:figure",
    "plot_geometry": "stsbench.analysis.geometry:figure",
    "plot_length_bias": "stsbench.analysis.length_bias.verb:figure",
    "plot_repetition_bias": "stsbench.analysis.repetition_bias.verb:figure",
    "plot_retrieve": "stsbench.analysis.retrieve:figure",
    "plot_spectrum": "stsbench.analysis.spectrum:figure",
    "plot_train": "stsbench.training.dev_curve:figure",
    "protocol": "stsbench.scoring.protocols:choose_protocol",
    "repetition_bias": "stsbench.analysis.repetition_bias.verb:repetition_bias",
    "report": "stsbench.reports.report:report",
    "retrieve": "stsbench.analysis.retrieve:retrieve",
    "show": "stsbench.records.show:show",
    "spectrum": "stsbench.analysis.spectrum:spectrum",
    "train": "stsbench.training.train:train",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'stsbench' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
