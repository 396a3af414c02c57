"""How many sub-words a checkpoint reads, from its files alone."""

import re
from collections.abc import Sequence
from typing import Any

from stsbench.base.errors import UserError
from stsbench.encoders.checkpoint import Checkpoint, quiet_transformers, why

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


class Tokenizer:
    """Turns texts into the token ids that a model reads.

    Attributes:
        pad_id: the padding token.
        special_tokens: how many special tokens stand around a text.
        vocabulary: how many token ids there are.
        mask_id: the token that stands for a masked one; None where there is none.
        mask: how that token is written in a text.
        special_ids: the tokens that are no words: those around a text, padding, mask.
    """

    def __init__(self, checkpoint: Checkpoint, *, trust_remote_code: bool) -> None:
        """Load it.

        Raises:
            UserError: if it cannot be loaded, has no vocabulary or no padding token, or gives what is not read.
        """
        self._tokenizer = tokenizer = _load(checkpoint, trust_remote_code)
        if tokenizer.vocab_files_names and not checkpoint.has_vocabulary():
            # Transformers would go on with an empty vocabulary, to which every word is unknown.
            raise UserError(
                f"{checkpoint.folder} holds no tokenizer (no tokenizer.json, vocab.txt or the like): "
                "copy the tokenizer's files there."
            )
        if tokenizer.pad_token_id is None:
            raise UserError(
                f"the tokenizer of {checkpoint.name} has no padding token: "
                'name one in its tokenizer_config.json (for example "pad_token": its end-of-text token).'
            )
        if any(tokenizer("a").get("token_type_ids") or ()):
            raise UserError(
                f"the tokenizer of {checkpoint.name} marks token types in single sentences, as XLNet's does, "
                "which is not read here: save its vectors and score them with --vectors."
            )
        # The person's limit is applied here; the tokenizer's own advice about long texts is noise.
        tokenizer.model_max_length = NO_LIMIT
        tokenizer.padding_side = "right"
        self.pad_id = int(tokenizer.pad_token_id)
        self.special_tokens = int(tokenizer.num_special_tokens_to_add())
        self.vocabulary = len(tokenizer)
        self.mask_id: int | None = tokenizer.mask_token_id
        self.mask: str | None = tokenizer.mask_token
        self.special_ids: list[int] = sorted(tokenizer.all_special_ids)

    def __call__(
        self, texts: Sequence[str], limit: int | None = None, *, special_tokens: bool = True
    ) -> list[tuple[int, ...]]:
        """Return the token ids of each text, the first `limit` of them where a limit is given."""
        if not texts:
            return []
        try:
            encoded = self._tokenizer(
                list(texts),
                add_special_tokens=special_tokens,
                truncation=limit is not None,
                max_length=limit,
                padding=False,
                return_attention_mask=False,
                return_token_type_ids=False,
            )
        except TypeError as error:
            # Halves of characters come of options and names that are not UTF-8; files are read as it.
            broken = next((text for text in texts if not _is_text(text)), None)
            if broken is None:
                raise
            raise UserError(f"{broken!r} is no text: a character in it is not UTF-8; write it anew.") from error
        return [tuple(ids) for ids in encoded["input_ids"]]

    def texts(self, tokens: Sequence[int]) -> list[str]:
        """Return each token as it is written in a text, without the marks of a word's end or middle."""
        return [self._tokenizer.decode([token]).strip().removeprefix("##") for token in tokens]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _load(checkpoint: Checkpoint, trust_remote_code: bool) -> Any:
    from transformers import AutoTokenizer

    with quiet_transformers():
        try:
            return AutoTokenizer.from_pretrained(checkpoint.folder, trust_remote_code=trust_remote_code)
        except Exception as error:  # whatever it is, it is about the files of this tokenizer
            raise UserError(f"cannot load the tokenizer of {checkpoint.name}: {why(error)}") from error
