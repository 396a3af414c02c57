"""Several tests at once: p-values that stay honest however many there are."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values adjusted by Holm's step-down procedure (Holm 1979).

    Rejecting what is below alpha afterwards keeps the chance of even one false rejection at alpha, however the
    tests depend on one another.

    Args:
        p_values: (m,) p-values of one family; a NaN (no test was possible) stays NaN and does not count.

    Returns:
        (m,) adjusted p-values, at most 1, in the order given.

    Example:
        >>> holm([0.01, 0.04, 0.03, 0.005]).round(6).tolist()
        [0.03, 0.06, 0.06, 0.02]
    """
    values = np.array(p_values, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    steps = np.arange(len(order), 0, -1) * values[order]
    values[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return values
