"""What a back end's file brings: `FILE`, `PACKAGES`, `export` to write the layers and `load` to compute them."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

Compute = Callable[[Integers, Integers], list[NDArray[np.float32]]]
"""Token ids and mask of shape (rows, width) to the hidden states of every layer, (rows, width, dimensions)."""
