"""The losses, as functions of vectors. Symbols as in the papers: N sentences, temperature t, cosine similarity."""

import math

import torch
from torch import Tensor
from torch.nn import functional


def info_nce(
    query: Tensor,
    key: Tensor,
    *,
    temperature: float,
    hard: Tensor | None = None,
    hard_weight: float = 1.0,
    queue: Tensor | None = None,
) -> Tensor:
    """Return the mean over i of -log(exp(s(q_i, k_i)/t) / sum of exp(s(q_i, c)/t) over all columns c).

    The columns are all keys (SimCSE, equation 1), all hard negatives, the own one weighted (equation 5 and
    appendix: its term is multiplied by alpha), and all queue vectors (ESimCSE, equation 6).

    Args:
        query: (N, d).
        key: (N, d); row i is the positive of query i.
        temperature: t.
        hard: (N, d) hard negatives, or None.
        hard_weight: alpha of the own hard negative.
        queue: (M, d) further negatives, which get no gradient; None or no rows for none.

    Returns:
        A scalar, in float32 or what the vectors are.

    >>> vectors = torch.eye(3, dtype=torch.float64)
    >>> round(info_nce(vectors, vectors, temperature=1.0).item(), 6) == round(math.log(1 + 2 / math.e), 6)
    True
    """
    query = functional.normalize(query, dim=-1)
    columns = [key] if hard is None else [key, hard]
    if queue is not None and len(queue):
        columns.append(queue.detach())
    logits = query @ functional.normalize(torch.cat(columns), dim=-1).T / temperature
    rows = torch.arange(len(query), device=query.device)
    if hard is not None and hard_weight != 1:
        own = torch.zeros_like(logits)
        own[rows, len(key) + rows] = math.log(hard_weight)
        logits = logits + own
    return functional.cross_entropy(logits, rows)
