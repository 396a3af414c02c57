"""Several GPUs: `--devices`.

The planner makes the same batches and keeps their order, so vectors do not depend on the number of GPUs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stsbench.base.errors import UserError
from stsbench.encoders.fitted import FittedEncoder
from stsbench.encoders.prompts import SidedEncoder
from stsbench.encoders.protocol import Encoder, FloatMatrix, TokenSequence
from stsbench.encoders.transformer import TransformerEncoder


@dataclass
class Gpu:
    """One of several GPUs, each with its own network, loaded at the first batch."""

    number: int
    _own: dict[int, tuple[TransformerEncoder, TransformerEncoder]] = field(default_factory=dict)

    def forward(
        self, encoder: TransformerEncoder, sequences: Sequence[TokenSequence], poolings: Sequence[str]
    ) -> dict[str, FloatMatrix]:
        """Computes with this GPU's network."""
        import torch

        # In this thread, `cuda` is this GPU.
        with torch.cuda.device(self.number):
            return self._here(encoder).forward(sequences, poolings)

    def _here(self, encoder: TransformerEncoder) -> TransformerEncoder:
        """Returns the encoder with this GPU's network; encoders that share a network share one here too."""
        if id(encoder) not in self._own:
            loaded = None if encoder.loaded is None else self._here(encoder.loaded)
            # Storing the encoder keeps its id from being reused.
            self._own[id(encoder)] = encoder, replace(encoder, loaded=loaded)
        return self._own[id(encoder)][1]


def placed(encoder: Encoder, devices: str) -> Encoder:
    """Returns a checkpoint's encoder whose batches are shared over GPUs.

    Args:
        encoder: as loaded.
        devices: comma-separated numbers of GPUs, or `all`.

    Raises:
        UserError: if the encoder is not computed on a GPU, or there are no such GPUs.
    """
    if isinstance(encoder, FittedEncoder):
        return replace(encoder, base=placed(encoder.base, devices))
    if isinstance(encoder, SidedEncoder):
        first: Any = placed(encoder.sides[0], devices)
        # Both sides share one network.
        return replace(encoder, sides=(first, first.with_use(prompt=encoder.sides[1].identity.use.prompt)))
    if not isinstance(encoder, TransformerEncoder) or encoder.use.device != "cuda":
        raise UserError(
            f"--devices needs a checkpoint computed on GPUs, which {encoder.identity.name} is not: leave it out."
        )
    import torch

    known = list(map(str, range(torch.cuda.device_count())))
    names = known if devices == "all" else [name.strip() for name in devices.split(",")]
    if not set(names) <= set(known) or len(set(names)) < len(names):
        raise UserError(f"--devices {devices}: expected distinct numbers from 0 to {len(known) - 1}, or all.")
    return replace(encoder, places=tuple(Gpu(int(name)) for name in names))
