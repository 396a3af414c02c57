"""stsbench: measure sentence embeddings, explain them, and prove the numbers.

>>> import stsbench as sb
>>> record = sb.evaluate(lambda sentences: [[len(s), s.count("a")] for s in sentences], "sample")
>>> record.scores[0].task
'sample'
"""

from stsbench._version import __version__

# True to type checkers. `typing` takes time to import, and this file is where an interrupt may come first.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from stsbench.analysis.compress import compress
    from stsbench.analysis.density import density
    from stsbench.analysis.dimensions import dimensions
    from stsbench.analysis.evalrank import evalrank
    from stsbench.analysis.explain import explain
    from stsbench.analysis.geometry import geometry
    from stsbench.analysis.hubness import hubness
    from stsbench.analysis.length_bias import length_bias
    from stsbench.analysis.length_collapse import length_collapse
    from stsbench.analysis.pair_kinds import pair_kinds
    from stsbench.analysis.probes import probes
    from stsbench.analysis.repetition_bias import repetition_bias
    from stsbench.analysis.retrieve import retrieve
    from stsbench.analysis.spectrum import spectrum
    from stsbench.analysis.stability import stability
    from stsbench.analysis.threshold import threshold
    from stsbench.analysis.ties import ties
    from stsbench.base.errors import UserError
    from stsbench.data.tables import load_pairs
    from stsbench.data.views import PairView
    from stsbench.diagnosis.diagnose import diagnose
    from stsbench.encoders.embedded import embed, embed_file
    from stsbench.encoders.fit import fit
    from stsbench.encoders.load import load
    from stsbench.encoders.simple import SavedVectors
    from stsbench.judging.best_of import best_of
    from stsbench.judging.check import check
    from stsbench.judging.compare import compare
    from stsbench.judging.planning import plan
    from stsbench.judging.rank import rank
    from stsbench.records.export import export_results
    from stsbench.records.record import RunRecord
    from stsbench.records.show import cite, show
    from stsbench.records.store import load_run
    from stsbench.reports.report import model_card, report
    from stsbench.reproduction.reproduce import reproduce, reproductions
    from stsbench.scoring.import_results import import_results
    from stsbench.scoring.measure import evaluate
    from stsbench.scoring.settings import Classification, Intervals
    from stsbench.scoring.settings import choose_protocol as protocol
    from stsbench.scoring.tasks import default_tasks
    from stsbench.sweeps.sweep import sweep
    from stsbench.training.train import train

__all__ = [
    "Classification",
    "Intervals",
    "PairView",
    "RunRecord",
    "SavedVectors",
    "UserError",
    "__version__",
    "best_of",
    "board",
    "check",
    "cite",
    "compare",
    "compress",
    "default_tasks",
    "density",
    "diagnose",
    "dimensions",
    "embed",
    "embed_file",
    "evalrank",
    "evaluate",
    "explain",
    "explore",
    "export_results",
    "fit",
    "geometry",
    "hubness",
    "import_results",
    "length_bias",
    "length_collapse",
    "load",
    "load_pairs",
    "load_run",
    "model_card",
    "pair_kinds",
    "plan",
    "probes",
    "protocol",
    "rank",
    "repetition_bias",
    "report",
    "reproduce",
    "reproductions",
    "retrieve",
    "show",
    "spectrum",
    "stability",
    "sweep",
    "threshold",
    "ties",
    "train",
]

# Where each public name lives. Nothing is imported before it is asked for: `stsbench --help` needs no NumPy.
_HOMES = {
    "Classification": "stsbench.scoring.settings:Classification",
    "Intervals": "stsbench.scoring.settings:Intervals",
    "PairView": "stsbench.data.views:PairView",
    "RunRecord": "stsbench.records.record:RunRecord",
    "SavedVectors": "stsbench.encoders.simple:SavedVectors",
    "UserError": "stsbench.base.errors:UserError",
    "best_of": "stsbench.judging.best_of:best_of",
    "board": "stsbench.browsing.board:board",
    "check": "stsbench.judging.check:check",
    "cite": "stsbench.records.show:cite",
    "compare": "stsbench.judging.compare:compare",
    "compress": "stsbench.analysis.compress:compress",
    "default_tasks": "stsbench.scoring.tasks:default_tasks",
    "density": "stsbench.analysis.density:density",
    "diagnose": "stsbench.diagnosis.diagnose:diagnose",
    "dimensions": "stsbench.analysis.dimensions:dimensions",
    "embed": "stsbench.encoders.embedded:embed",
    "evalrank": "stsbench.analysis.evalrank:evalrank",
    "evaluate": "stsbench.scoring.measure:evaluate",
    "explain": "stsbench.analysis.explain:explain",
    "explore": "stsbench.browsing.explore:explore",
    "export_results": "stsbench.records.export:export_results",
    "embed_file": "stsbench.encoders.embedded:embed_file",
    "fit": "stsbench.encoders.fit:fit",
    "geometry": "stsbench.analysis.geometry:geometry",
    "hubness": "stsbench.analysis.hubness:hubness",
    "import_results": "stsbench.scoring.import_results:import_results",
    "length_bias": "stsbench.analysis.length_bias:length_bias",
    "length_collapse": "stsbench.analysis.length_collapse:length_collapse",
    "load": "stsbench.encoders.load:load",
    "load_pairs": "stsbench.data.tables:load_pairs",
    "load_run": "stsbench.records.store:load_run",
    "model_card": "stsbench.reports.report:model_card",
    "pair_kinds": "stsbench.analysis.pair_kinds:pair_kinds",
    "plan": "stsbench.judging.planning:plan",
    "probes": "stsbench.analysis.probes:probes",
    "protocol": "stsbench.scoring.settings:choose_protocol",
    "rank": "stsbench.judging.rank:rank",
    "repetition_bias": "stsbench.analysis.repetition_bias:repetition_bias",
    "report": "stsbench.reports.report:report",
    "reproduce": "stsbench.reproduction.reproduce:reproduce",
    "reproductions": "stsbench.reproduction.reproduce:reproductions",
    "retrieve": "stsbench.analysis.retrieve:retrieve",
    "show": "stsbench.records.show:show",
    "spectrum": "stsbench.analysis.spectrum:spectrum",
    "stability": "stsbench.analysis.stability:stability",
    "sweep": "stsbench.sweeps.sweep:sweep",
    "threshold": "stsbench.analysis.threshold:threshold",
    "ties": "stsbench.analysis.ties:ties",
    "train": "stsbench.training.train:train",
}


def __getattr__(name: str) -> "Any":
    if name in _HOMES:
        from importlib import import_module

        module, _, attribute = _HOMES[name].partition(":")
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module 'stsbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
