"""How many sub-words a checkpoint reads, from its files alone."""

import re

from stsbench.encoders.checkpoint import Checkpoint

# Position ids of RoBERTa-like models start after the padding index, so that many positions cannot be used.
_OFFSET_POSITIONS = re.compile("roberta|camembert|mpnet|longformer|ernie_m|data2vec-text|luke|ibert|xmod|lilt|esm")
_OFFSET_PADDING_ID = 1

# Transformers writes a huge number for "no limit known".
NO_LIMIT = 1_000_000


def position_limit(checkpoint: Checkpoint) -> int | None:
    """Return how many sub-words the model has positions for, special tokens included; None if unlimited."""
    config = checkpoint.json("config.json")
    # GPT-2 and its kin call it n_positions.
    positions = config.get("max_position_embeddings") or config.get("n_positions")
    if not isinstance(positions, int) or positions <= 0:
        return None
    if not _OFFSET_POSITIONS.search(str(config.get("model_type"))):
        return positions
    padding_id = config.get("pad_token_id")
    return positions - (padding_id if isinstance(padding_id, int) else _OFFSET_PADDING_ID) - 1


def model_limit(checkpoint: Checkpoint) -> int | None:
    """Return how many sub-words are read if nobody says otherwise: the tokenizer's limit and the positions'."""
    own = checkpoint.json("tokenizer_config.json").get("model_max_length")
    limits = [
        own if isinstance(own, int | float) and own > 0 else NO_LIMIT,
        position_limit(checkpoint) or NO_LIMIT,
    ]
    limit = int(min(limits))
    return limit if limit < NO_LIMIT else None
