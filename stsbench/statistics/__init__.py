"""Mathematics on arrays: similarities of pairs, correlations, aggregation, intervals, tests.

The names below are here because records need them, and reading a record should not import SciPy.
"""

from typing import Literal

Dependence = Literal["dyadic", "components", "independent"]
"""Dependent pairs. `dyadic`: those that share a sentence; `components`: those in a chain of shared sentences."""

DEPENDENCE: Dependence = "dyadic"
"""The default treatment of pairs that share sentences."""

LEVEL = 0.95
"""The default level of intervals."""

Reason = Literal["undefined", "perfect", "few pairs", "no spread"]
"""The reason why there is no interval. `undefined`: the value is NaN. `perfect`: a correlation of 1 or -1, whose
variance cannot be estimated. `few pairs`: fewer than four (five for Kendall's). `no spread`: all terms are
zero."""
