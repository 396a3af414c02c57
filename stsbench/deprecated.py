"""Public names of version 0.1 that work for one version more, with a warning that says what to write instead."""

import warnings
from collections.abc import Callable
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPLACEMENTS = MappingProxyType(
    {
        "Diagnosis": "stsbench.diagnosis.result.Diagnosis",
        "Postprocessing": "evaluate(..., dimensions=, whiten=, normalize=)",
        "Signature": "stsbench.records.signature.Signature",
        "Training": "stsbench.training.result.Training",
        "plot_compare": "compare(...).plot()",
        "plot_density": "density(...).plot()",
        "plot_diagnose": "diagnose(...).plot()",
        "plot_geometry": "geometry(...).plot()",
        "plot_length_bias": "length_bias(...).plot()",
        "plot_repetition_bias": "repetition_bias(...).plot()",
        "plot_retrieve": "retrieve(...).plot()",
        "plot_spectrum": "spectrum(...).plot()",
        "plot_train": "train(...).plot(), or stsbench.training.result.dev_curves for several",
    }
)
"""What to write instead of each name."""

_TYPES = {
    "Diagnosis": "stsbench.diagnosis.result:Diagnosis",
    "Postprocessing": "stsbench.scoring.settings:Postprocessing",
    "Signature": "stsbench.records.signature:Signature",
    "Training": "stsbench.training.result:Training",
}

# What was drawn was the table of an analysis, which is a part of its result now.
_RESULTS = {
    "plot_density": "stsbench.analysis.density:Density",
    "plot_geometry": "stsbench.analysis.geometry:Geometry",
    "plot_length_bias": "stsbench.analysis.length_bias.verb:LengthBias",
    "plot_repetition_bias": "stsbench.analysis.repetition_bias.verb:RepetitionBias",
    "plot_retrieve": "stsbench.analysis.retrieve:Retrieval",
    "plot_spectrum": "stsbench.analysis.spectrum:Spectrum",
}


def stand_in(name: str) -> Any:
    """Return what a name of version 0.1 stood for, and warn of its end."""
    warnings.warn(
        f"stsbench.{name} goes with version 0.3: use {REPLACEMENTS[name]}.", DeprecationWarning, stacklevel=3
    )
    if name in _TYPES:
        return _named(_TYPES[name])
    if name == "plot_train":
        return _named("stsbench.training.result:dev_curves")
    return _plotting(_RESULTS.get(name))


def _named(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def _plotting(result_type: str | None) -> "Callable[..., Figure]":
    def plot(result: Any, **options: Any) -> "Figure":
        import pandas as pd

        if isinstance(result, pd.DataFrame) and result_type is not None:
            result = _named(result_type)(result)
        figure: Figure = result.plot(**options)
        return figure

    return plot
