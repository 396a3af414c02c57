"""Where batches are computed: `--devices` (several GPUs or groups of cores).

The planner makes the same batches and keeps their order, so vectors do not depend on the number of places.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.machine import cores
from stsbench.encoders.fitted import FittedEncoder
from stsbench.encoders.prompts import SidedEncoder
from stsbench.encoders.protocol import Encoder, FloatMatrix, Place, TokenSequence
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import TORCH

ALL = "all"


@dataclass(frozen=True)
class Cores:
    """A group of cores, used by one computing thread; the groups share the weights."""

    count: int

    def forward(
        self, encoder: TransformerEncoder, sequences: Sequence[TokenSequence], poolings: Sequence[str]
    ) -> dict[str, FloatMatrix]:
        """Computes with that many threads."""
        import torch

        torch.set_num_threads(self.count)
        return encoder.forward(sequences, poolings)


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
    """Returns a checkpoint's encoder whose batches are shared over devices.

    Args:
        encoder: as loaded.
        devices: comma-separated numbers of GPUs, or of equal groups of cores on a CPU; `all` for every GPU or
            core.

    Raises:
        UserError: if torch does not compute the encoder, or there are no such devices.
    """
    if isinstance(encoder, FittedEncoder):
        return replace(encoder, base=placed(encoder.base, devices))
    if isinstance(encoder, SidedEncoder):
        first: Any = placed(encoder.sides[0], devices)
        # Both sides share one network.
        return replace(encoder, sides=(first, first.with_use(prompt=encoder.sides[1].identity.use.prompt)))
    if not isinstance(encoder, TransformerEncoder) or encoder.use.backend != TORCH:
        raise UserError(
            f"--devices needs a checkpoint computed by torch, which {encoder.identity.name} is not: leave it out."
        )
    return replace(encoder, places=_local(devices, encoder.use.device))


def _local(devices: str, device: str) -> tuple[Place, ...]:
    """Returns the places of `--devices`, for an encoder on a device."""
    if device not in {"cpu", "cuda"}:
        raise UserError(f"--devices: there is only one {device}. Leave it out.")
    import torch

    count = cores() if device == "cpu" else torch.cuda.device_count()
    known = list(map(str, range(count)))
    names = known if devices == ALL else [name.strip() for name in devices.split(",")]
    if not set(names) <= set(known) or len(set(names)) < len(names):
        raise UserError(f"--devices {devices}: expected distinct numbers from 0 to {count - 1}, or all.")
    if device == "cpu":
        return (Cores(cores() // len(names)),) * len(names)
    return tuple(Gpu(int(name)) for name in names)
