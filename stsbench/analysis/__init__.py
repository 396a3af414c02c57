"""Analyses of the causes of a score, one file each, listed here in the order of the documentation.

`base.py` defines the parts of an analysis; the command line, `explain`, reports and the documentation find all
analyses in `ANALYSES`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stsbench.analysis.base import Analysis

ANALYSES = {
    "length-bias": "stsbench.analysis.length_bias:LengthBias",
    "pair-kinds": "stsbench.analysis.pair_kinds:PairKinds",
    "length-collapse": "stsbench.analysis.length_collapse:LengthCollapse",
    "geometry": "stsbench.analysis.geometry:Geometry",
    "spectrum": "stsbench.analysis.spectrum:Spectrum",
    "dimensions": "stsbench.analysis.dimensions:Dimensions",
    "density": "stsbench.analysis.density:Density",
    "evalrank": "stsbench.analysis.evalrank:EvalRank",
    "compress": "stsbench.analysis.compress:Compress",
    "ties": "stsbench.analysis.ties:Ties",
    "hubness": "stsbench.analysis.hubness:Hubness",
    "repetition-bias": "stsbench.analysis.repetition_bias:RepetitionBias",
    "stability": "stsbench.analysis.stability:Stability",
    "probes": "stsbench.analysis.probes:Probes",
    "threshold": "stsbench.analysis.threshold:Threshold",
    "retrieve": "stsbench.analysis.retrieve:Retrieve",
}
"""The class of each analysis by name; it is imported when it is used."""


def analysis(name: str) -> "type[Analysis]":
    """Imports an analysis.

    >>> analysis("geometry").title
    'Alignment and uniformity'
    """
    module, _, class_name = ANALYSES[name].partition(":")
    found: type[Analysis] = getattr(import_module(module), class_name)
    return found


def analyses() -> "dict[str, type[Analysis]]":
    """Imports all analyses; returns them by name, in their order."""
    return {name: analysis(name) for name in ANALYSES}
