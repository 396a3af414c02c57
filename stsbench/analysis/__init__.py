"""What is behind a score: the analyses that there are, a line each, in the order in which readers meet them.

Whatever goes over all analyses goes over these: the command line, `explain`, reports, the documentation, and the
tests that hold each of them to be complete. Each verb returns an `AnalysisResult`, and `explain` all of them as an
`Explanation`. Read `result.py` (what an analysis is made of), any of them, such as `spectrum.py`, then
`explain.py` and `command.py`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stsbench.analysis.result import AnalysisCommand

ANALYSES = {
    "length-bias": "stsbench.analysis.length_bias:LengthBiasCommand",
    "pair-kinds": "stsbench.analysis.pair_kinds:PairKindsCommand",
    "length-collapse": "stsbench.analysis.length_collapse:LengthCollapseCommand",
    "geometry": "stsbench.analysis.geometry:GeometryCommand",
    "spectrum": "stsbench.analysis.spectrum:SpectrumCommand",
    "dimensions": "stsbench.analysis.dimensions:DimensionsCommand",
    "density": "stsbench.analysis.density:DensityCommand",
    "evalrank": "stsbench.analysis.evalrank:EvalRankCommand",
    "compress": "stsbench.analysis.compress:CompressCommand",
    "ties": "stsbench.analysis.ties:TiesCommand",
    "hubness": "stsbench.analysis.hubness:HubnessCommand",
    "repetition-bias": "stsbench.analysis.repetition_bias:RepetitionBiasCommand",
    "stability": "stsbench.analysis.stability:StabilityCommand",
    "probes": "stsbench.analysis.probes:ProbesCommand",
    "retrieve": "stsbench.analysis.retrieve:RetrieveCommand",
}
"""Where the command of each analysis is, by its name. Imported when it is asked for."""


def analysis(name: str) -> "type[AnalysisCommand]":
    """Return the command of an analysis, and with it all of the analysis.

    >>> analysis("geometry").result.title
    'Alignment and uniformity'
    """
    module, _, class_name = ANALYSES[name].partition(":")
    command: type[AnalysisCommand] = getattr(import_module(module), class_name)
    return command


def analyses() -> "dict[str, type[AnalysisCommand]]":
    """Return all analyses by name, in their order."""
    return {name: analysis(name) for name in ANALYSES}
