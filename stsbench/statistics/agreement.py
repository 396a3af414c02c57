"""What the agreement of raters allows: how reliable gold scores are, how high a correlation with them can be."""

import numpy as np
from numpy.typing import NDArray


def reliability(gold: NDArray[np.float64], raters: NDArray[np.float64], variances: NDArray[np.float64]) -> float:
    """Return the share of the variance of gold scores that is not the raters' noise.

    With s_i^2 the variance of the k_i ratings of pair i, the noise of its mean is s_i^2 / k_i, and

        R = 1 - mean_i(s_i^2 / k_i) / var(gold),

    which is the intraclass correlation ICC(1, k) where every pair has k ratings (Shrout and Fleiss 1979). Raters
    may be others for every pair; what one of them gives too high or too low throughout counts as noise. Pairs with
    fewer than two ratings say nothing of noise and are left out.

    Args:
        gold: (n,) means of the ratings.
        raters: (n,) how many ratings each pair has; NaN where nobody says.
        variances: (n,) of the ratings of each pair, with k - 1 in the denominator.

    Returns:
        At most 1; negative where raters differ more within pairs than pairs do. NaN where fewer than two pairs
        have two ratings, or all gold scores are equal.

    >>> gold, two = np.array([0.5, 2.0, 4.5]), np.array([2.0, 2.0, 2.0])
    >>> round(reliability(gold, two, np.array([0.5, 0.0, 0.5])), 4)
    0.9592
    """
    rated = (raters >= 2) & np.isfinite(variances)
    if rated.sum() < 2:
        return float("nan")
    spread = float(np.var(gold[rated], ddof=1))
    if spread == 0:
        return float("nan")
    return float(1 - np.mean(variances[rated] / raters[rated]) / spread)


def ceiling(reliable: float) -> float:
    """Return the Pearson correlation with gold that a similarity without any error has: the root of reliability.

    What people agree on in the long run correlates with the mean of a few of them no higher (Spearman 1904). Of
    ranks it is an approximation.

    Args:
        reliable: what `reliability` gives.

    Returns:
        Between 0 and 1; NaN where there is no reliability, or a negative one.

    >>> ceiling(0.81)
    0.9
    """
    return float(np.sqrt(reliable)) if reliable >= 0 else float("nan")
