"""A checkpoint that reads another number of sub-words, without loading its weights again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from stsbench.encoders.limits import position_limit
from stsbench.encoders.protocol import Encoder, FloatMatrix, Identity, Tokenized, TokenSequence
from stsbench.encoders.transformer import TransformerEncoder


@dataclass(frozen=True)
class RecutEncoder:
    """Cuts texts at another length and hands them to the network that is there.

    Attributes:
        encoder: the checkpoint as it was loaded.
        max_length: sub-words kept, special tokens included.
    """

    encoder: TransformerEncoder
    max_length: int

    @cached_property
    def identity(self) -> Identity:
        """The checkpoint's, with the other length."""
        return replace(self.encoder.identity, max_length=self.max_length)

    @property
    def notes(self) -> tuple[str, ...]:
        """The checkpoint's."""
        return self.encoder.notes

    @property
    def token_budget(self) -> int:
        """Padded tokens in one batch."""
        return self.encoder.token_budget

    def prepare(self, *, weights: bool) -> None:
        """Load the tokeniser, and the weights if asked and not there yet."""
        self._tokenizing.prepare(weights=False)
        if weights:
            self.encoder.prepare(weights=True)

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return the token ids up to the other length."""
        return self._tokenizing.tokenize(texts)

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return for each pooling an array of shape (len(sequences), dimensions), float32."""
        return self.encoder.forward(sequences, poolings)

    @cached_property
    def _tokenizing(self) -> TransformerEncoder:
        # Its network is never asked for, so no weights are loaded.
        return replace(self.encoder, settings=replace(self.encoder.settings, max_length=self.max_length))


def recut(encoder: Encoder, max_length: int) -> Encoder | None:
    """Return the encoder reading at most so many sub-words; None if it cannot be told to, or has no such limit.

    Args:
        encoder: any encoder; only a checkpoint that is read natively can be cut elsewhere.
        max_length: sub-words kept, special tokens included.
    """
    if not isinstance(encoder, TransformerEncoder):
        return None
    longest = position_limit(encoder.checkpoint)
    if longest is not None and max_length > longest:
        return None
    return RecutEncoder(encoder, max_length)
