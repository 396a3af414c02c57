"""Masked-language models: the words that they guess for views, and the masks of their loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from stsbench.base.errors import UserError
from stsbench.encoders.checkpoint import Checkpoint, find_checkpoint, quiet_transformers
from stsbench.encoders.load import resolve
from stsbench.encoders.tokenizer import Tokenizer, model_limit

_ROWS_AT_ONCE = 32

IGNORED = -100
"""The label of a token that is not predicted."""


def masked_language_network(checkpoint: Checkpoint) -> Any:
    """Returns a checkpoint's masked-language model; None if its head is not trained."""
    from transformers import AutoModelForMaskedLM

    with quiet_transformers():
        try:
            network, info = AutoModelForMaskedLM.from_pretrained(checkpoint.folder, output_loading_info=True)
        except ValueError as error:
            raise UserError(f"{checkpoint.name} has an architecture without masked-language model.") from error
    return None if info["missing_keys"] else network


@cache
def guesser(name: str) -> "Guesser":
    """Returns a masked-language model, loaded at the first call."""
    checkpoint = find_checkpoint(resolve(name).name)
    tokenizer = Tokenizer(checkpoint, trust_remote_code=False)
    network = masked_language_network(checkpoint)
    if network is None or tokenizer.mask_id is None:
        raise UserError(
            f"{checkpoint.name} has no masked-language head (or no mask token), so it cannot guess words: name "
            "another model in the view."
        )
    return Guesser(checkpoint, network.eval(), tokenizer)


@dataclass
class Guesser:
    """A masked-language model in evaluation mode, with its tokenizer."""

    checkpoint: Checkpoint
    network: Any
    tokenizer: Tokenizer
    device: str = "cpu"

    def to(self, device: str) -> "Guesser":
        self.network, self.device = self.network.to(device), device
        return self

    def fill(self, sentences: Sequence[Sequence[str | None]]) -> list[list[str]]:
        """Returns sentences with the best guess for each open word (None), truncated to the model's length."""
        mask = str(self.tokenizer.mask)
        texts = [" ".join(mask if word is None else word for word in words) for words in sentences]
        sequences = self.tokenizer(texts, model_limit(self.checkpoint))
        guesses: list[list[str]] = [[] for _ in sentences]
        is_open = [row for row, words in enumerate(sentences) if None in words]
        order = sorted(is_open, key=lambda row: len(sequences[row]))
        for start in range(0, len(order), _ROWS_AT_ONCE):
            rows = order[start : start + _ROWS_AT_ONCE]
            for row, logits in zip(rows, self._logits([sequences[row] for row in rows]), strict=True):
                best = logits[self._open_places(sequences[row], sentences[row])].argmax(1)
                guesses[row] = self.tokenizer.texts(best.tolist())
        return [_filled(words, of_row) for words, of_row in zip(sentences, guesses, strict=True)]

    def _open_places(self, ids: Sequence[int], words: Sequence[str | None]) -> list[int]:
        mask = str(self.tokenizer.mask)
        is_open = [flag for word in words for flag in ([True] if word is None else [False] * word.count(mask))]
        masks = [place for place, token in enumerate(ids) if token == self.tokenizer.mask_id]
        return [place for place, flag in zip(masks, is_open, strict=False) if flag]

    def _logits(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        rows = [torch.tensor(sequence) for sequence in sequences]
        ids = pad_sequence(rows, batch_first=True, padding_value=self.tokenizer.pad_id)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        with torch.no_grad():
            output = self.network(
                input_ids=ids.to(self.device), attention_mask=mask.to(self.device), return_dict=True
            )
        logits: Tensor = output.logits.float().cpu()
        # Special tokens are not guessed.
        logits[:, :, self.tokenizer.special_ids] = -torch.inf
        return logits


def _filled(words: Sequence[str | None], guesses: Sequence[str]) -> list[str]:
    left = iter(guesses)
    pieces = [next(left, "") if word is None else word for word in words]
    return [piece for piece in pieces if piece]


def mask_tokens(
    sequences: Sequence[NDArray[np.int64]],
    *,
    share: float,
    mask_id: int,
    vocabulary: int,
    around: tuple[int, int],
    rng: np.random.Generator,
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Returns masked copies of sequences, and labels: the token if it is to be predicted, else `IGNORED`.

    Each sub-word is chosen with probability `share`, of which 80 % are masked, 10 % become a random token and 10 %
    stay (BERT, section 3.1). `around` has the numbers of special tokens before and after, which are never chosen.
    """
    before, behind = around
    seen, labels = [], []
    for sequence in sequences:
        places = np.arange(len(sequence))
        inner = (places >= before) & (places < len(sequence) - behind)
        chosen = inner & (rng.random(len(sequence)) < share)
        fates = rng.random(len(sequence))
        random = rng.integers(vocabulary, size=len(sequence))
        seen.append(
            np.select(
                [chosen & (fates < 0.8), chosen & (fates < 0.9)],
                [np.full_like(sequence, mask_id), random],
                sequence,
            )
        )
        labels.append(np.where(chosen, sequence, IGNORED))
    return seen, labels
