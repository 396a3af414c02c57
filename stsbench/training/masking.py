"""BERT's masking: which sub-words a masked-language model has to guess, and what it sees in their place."""

import numpy as np
from numpy.typing import NDArray

from stsbench.training.batches import Sequences

IGNORED = -100
"""The label of a token that is not guessed."""


def mask_tokens(
    sequences: Sequences,
    *,
    share: float,
    mask_id: int,
    vocabulary: int,
    around: tuple[int, int],
    rng: np.random.Generator,
) -> tuple[Sequences, list[NDArray[np.int64]]]:
    """Return a masked copy of some sequences, and the labels: the token where it is to be guessed.

    Each sub-word is chosen with probability `share`. Of the chosen, 80 % are masked, 10 % are any token at random,
    10 % stay (BERT, section 3.1).

    Args:
        sequences: token ids, special tokens included.
        share: of the sub-words that are to be guessed.
        mask_id: the mask token.
        vocabulary: how many tokens there are.
        around: how many special tokens stand before and behind each sentence; they are never chosen.
        rng: where the draws come from.
    """
    before, behind = around
    seen, labels = [], []
    for sequence in sequences:
        places = np.arange(len(sequence))
        inner = (places >= before) & (places < len(sequence) - behind)
        chosen = inner & (rng.random(len(sequence)) < share)
        what = rng.random(len(sequence))
        other = rng.integers(vocabulary, size=len(sequence))
        seen.append(
            np.select(
                [chosen & (what < 0.8), chosen & (what < 0.9)], [np.full_like(sequence, mask_id), other], sequence
            )
        )
        labels.append(np.where(chosen, sequence, IGNORED))
    return seen, labels
