"""Mathematics on arrays: similarities of pairs, correlations, aggregation, intervals, tests.

The names below are here because records need them, and reading a record should not import SciPy.
"""

from typing import Literal

Dependence = Literal["dyadic", "components", "independent"]
"""`dyadic`: pairs that share a sentence are dependent. `components`: so are pairs that a chain of shared sentences
connects. `independent`: no pairs are."""

DEPENDENCE: Dependence = "dyadic"
"""The default treatment of pairs that share sentences."""

LEVEL = 0.95
"""The default level of intervals."""

Reason = Literal["undefined", "perfect", "few pairs", "no spread"]
"""Why there is no interval. `undefined`: the value is NaN. `perfect`: a correlation of 1 or -1, whose variance
cannot be estimated. `few pairs`: fewer than four (five for Kendall's). `no spread`: all terms are zero."""
