"""`--devices`: batches shared over several GPUs or groups of cores, with the vectors that one of them gives.

The planner makes the same batches whatever computes them, and takes their vectors in the same order. So vectors do
not depend on how many places there are, or on which is the quicker.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.base.machine import cores
from stsbench.encoders.protocol import Encoder, FloatMatrix, Place, TokenSequence
from stsbench.encoders.use import TORCH

if TYPE_CHECKING:
    from stsbench.encoders.transformer import TransformerEncoder

ALL = "all"


@dataclass(frozen=True)
class Cores:
    """Some of the cores, of which each thread of ours that computes takes so many; the weights are held once."""

    count: int

    def forward(
        self, encoder: "TransformerEncoder", sequences: Sequence[TokenSequence], poolings: Sequence[str]
    ) -> dict[str, FloatMatrix]:
        """Compute with so many threads."""
        import torch

        torch.set_num_threads(self.count)
        return encoder.forward(sequences, poolings)


@dataclass
class Gpu:
    """One of several GPUs, with a network of its own."""

    number: int
    _own: "dict[int, tuple[TransformerEncoder, TransformerEncoder]]" = field(default_factory=dict)

    def forward(
        self, encoder: "TransformerEncoder", sequences: Sequence[TokenSequence], poolings: Sequence[str]
    ) -> dict[str, FloatMatrix]:
        """Compute with this GPU's network, which is loaded at the first batch."""
        import torch

        # `cuda` is this one for all that this thread does meanwhile.
        with torch.cuda.device(self.number):
            return self._here(encoder).forward(sequences, poolings)

    def _here(self, encoder: "TransformerEncoder") -> "TransformerEncoder":
        """Return the encoder with a network of this GPU; those that share one elsewhere share one here."""
        if id(encoder) not in self._own:
            loaded = None if encoder.loaded is None else self._here(encoder.loaded)
            # Kept with it, so that no other comes to its number.
            self._own[id(encoder)] = encoder, replace(encoder, loaded=loaded)
        return self._own[id(encoder)][1]


def placed(encoder: Encoder, devices: str | None = None, on: str | None = None) -> Encoder:
    """Return a checkpoint's encoder whose batches are shared over devices, or over a cluster.

    Args:
        encoder: as it was loaded.
        devices: numbers with commas, of GPUs, or of groups of cores where the encoder computes on the CPU, which
            share the cores evenly; or `all`, every GPU, or each core alone. None for one, as it is.
        on: `ray`, in place of devices; None for here.

    Raises:
        UserError: if the encoder is none of a checkpoint that torch computes, or there are no such devices.
    """
    if devices is None and on is None:
        return encoder
    if devices is not None and on is not None:
        raise UserError("--devices are of this machine, and --on is for others: leave one of them out.")
    if on not in {None, "ray"}:
        raise UserError(f"--on {on}: batches run on `ray`, or here without it.")
    option = "--on" if devices is None else "--devices"
    from stsbench.encoders.fitted import FittedEncoder
    from stsbench.encoders.sides import SidedEncoder
    from stsbench.encoders.transformer import TransformerEncoder

    if isinstance(encoder, FittedEncoder):
        return replace(encoder, base=placed(encoder.base, devices, on))
    if isinstance(encoder, SidedEncoder):
        first = placed(encoder.sides[0], devices, on)
        assert isinstance(first, TransformerEncoder)
        # One network for both sides, as before.
        return replace(encoder, sides=(first, first.with_use(prompt=encoder.sides[1].identity.use.prompt)))
    if not isinstance(encoder, TransformerEncoder) or encoder.use.backend != TORCH:
        raise UserError(
            f"{option} shares the batches of a checkpoint that torch computes, and {encoder.identity.name} is "
            "none: leave it out."
        )
    if devices is not None:
        return replace(encoder, places=_places(devices, encoder.use.device))
    from stsbench.encoders.on_ray import ray_workers

    return replace(encoder, places=ray_workers(encoder.use.device))


def _places(devices: str, device: str) -> tuple[Place, ...]:
    """Return the places that `--devices` names, for an encoder on a device."""
    names = [name.strip() for name in devices.split(",")]
    if devices != ALL and (not all(map(str.isdecimal, names)) or len(set(names)) < len(names)):
        raise UserError(f"--devices {devices}: give numbers with commas, each once (0,1), or all.")
    if device == "cpu":
        count = cores() if devices == ALL else len(names)
        if count > cores():
            raise UserError(f"--devices {devices}: {count} groups of cores, and there are {cores()} cores.")
        if devices != ALL and max(map(int, names)) >= cores():
            raise UserError(f"--devices {devices}: groups of cores are numbered 0 to {cores() - 1} here.")
        return (Cores(cores() // count),) * count
    if device != "cuda":
        raise UserError(f"--devices: there is but one {device}: leave it out.")
    import torch

    there = torch.cuda.device_count()
    numbers = range(there) if devices == ALL else [int(name) for name in names]
    if absent := [number for number in numbers if number >= there]:
        raise UserError(f"--devices {devices}: there is no GPU {absent[0]}, the last is {there - 1}.")
    return tuple(map(Gpu, numbers))
