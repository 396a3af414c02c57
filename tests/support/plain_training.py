"""The plain computation that trainings are held against."""

from collections.abc import Callable, Iterable
from typing import Any

import torch


def plain_vectors(model: Any, head: Callable[[Any], Any], sequences: Iterable[Any]) -> Any:
    """Encode one sentence at a time by its token ids, without padding, chunks or embeddings given from outside."""
    rows = []
    for sequence in sequences:
        states = model.transformer(input_ids=torch.tensor(sequence).unsqueeze(0)).last_hidden_state[0]
        rows.append(head(states.mean(0)))
    return torch.stack(rows)
