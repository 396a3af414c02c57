"""stsbench: measure sentence embeddings, explain them, and prove the numbers.

>>> import stsbench as sb
>>> record = sb.evaluate(lambda sentences: [[len(s), s.count("a")] for s in sentences], "sample")
>>> record.scores[0].task
'sample'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stsbench._version import __version__

if TYPE_CHECKING:
    from stsbench.analysis.explain import explain
    from stsbench.base.errors import UserError
    from stsbench.diagnosis.diagnose import diagnose
    from stsbench.encoders.fit import fit
    from stsbench.encoders.load import embed, load
    from stsbench.judging.best_of import best_of
    from stsbench.judging.check import check
    from stsbench.judging.compare import compare
    from stsbench.judging.planning import plan
    from stsbench.judging.rank import rank
    from stsbench.records.record import RunRecord
    from stsbench.records.show import show
    from stsbench.records.store import load_run
    from stsbench.reports.report import model_card, report
    from stsbench.reproduction.reproduce import reproduce
    from stsbench.scoring.import_results import import_results
    from stsbench.scoring.measure import evaluate
    from stsbench.scoring.settings import Intervals
    from stsbench.scoring.settings import choose_protocol as protocol
    from stsbench.scoring.tasks import default_tasks
    from stsbench.sweeps.sweep import sweep
    from stsbench.training.train import train

    compress: Any
    density: Any
    dimensions: Any
    evalrank: Any
    geometry: Any
    hubness: Any
    length_bias: Any
    length_collapse: Any
    pair_kinds: Any
    probes: Any
    repetition_bias: Any
    retrieve: Any
    spectrum: Any
    stability: Any
    threshold: Any
    ties: Any

__all__ = [
    "Intervals",
    "RunRecord",
    "UserError",
    "__version__",
    "best_of",
    "board",
    "check",
    "compare",
    "compress",
    "default_tasks",
    "density",
    "diagnose",
    "dimensions",
    "embed",
    "evalrank",
    "evaluate",
    "explain",
    "explore",
    "fit",
    "geometry",
    "hubness",
    "import_results",
    "length_bias",
    "length_collapse",
    "load",
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
    "retrieve",
    "show",
    "spectrum",
    "stability",
    "sweep",
    "threshold",
    "ties",
    "train",
]

# The modules of public names other than analyses. Modules are imported when they are used.
_HOMES = {
    "Intervals": "stsbench.scoring.settings:Intervals",
    "RunRecord": "stsbench.records.record:RunRecord",
    "UserError": "stsbench.base.errors:UserError",
    "best_of": "stsbench.judging.best_of:best_of",
    "board": "stsbench.browsing.board:board",
    "check": "stsbench.judging.check:check",
    "compare": "stsbench.judging.compare:compare",
    "default_tasks": "stsbench.scoring.tasks:default_tasks",
    "diagnose": "stsbench.diagnosis.diagnose:diagnose",
    "embed": "stsbench.encoders.load:embed",
    "evaluate": "stsbench.scoring.measure:evaluate",
    "explain": "stsbench.analysis.explain:explain",
    "explore": "stsbench.browsing.explore:explore",
    "fit": "stsbench.encoders.fit:fit",
    "import_results": "stsbench.scoring.import_results:import_results",
    "load": "stsbench.encoders.load:load",
    "load_run": "stsbench.records.store:load_run",
    "model_card": "stsbench.reports.report:model_card",
    "plan": "stsbench.judging.planning:plan",
    "protocol": "stsbench.scoring.settings:choose_protocol",
    "rank": "stsbench.judging.rank:rank",
    "report": "stsbench.reports.report:report",
    "reproduce": "stsbench.reproduction.reproduce:reproduce",
    "show": "stsbench.records.show:show",
    "sweep": "stsbench.sweeps.sweep:sweep",
    "train": "stsbench.training.train:train",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        module, _, attribute = _HOMES[name].partition(":")
        return getattr(import_module(module), attribute)
    if name in __all__:
        from stsbench.analysis import analysis

        return analysis(name.replace("_", "-")).verb
    raise AttributeError(f"module 'stsbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
