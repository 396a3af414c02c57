"""`--devices`: batches shared over several GPUs or groups of cores.

The planner makes the same batches and keeps their order, so vectors do not depend on the number of devices.
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
    """A group of cores, used by one computing thread; the groups share the weights."""

    count: int

    def forward(
        self, encoder: "TransformerEncoder", sequences: Sequence[TokenSequence], poolings: Sequence[str]
    ) -> dict[str, FloatMatrix]:
        """Computes with that many threads."""
        import torch

        torch.set_num_threads(self.count)
        return encoder.forward(sequences, poolings)


@dataclass
class Gpu:
    """One of several GPUs, each with its own network."""

    number: int
    _own: "dict[int, tuple[TransformerEncoder, TransformerEncoder]]" = field(default_factory=dict)

    def forward(
        self, encoder: "TransformerEncoder", sequences: Sequence[TokenSequence], poolings: Sequence[str]
    ) -> dict[str, FloatMatrix]:
        """Computes with this GPU's network, which is loaded at the first batch."""
        import torch

        # In this thread, `cuda` is this GPU.
        with torch.cuda.device(self.number):
            return self._here(encoder).forward(sequences, poolings)

    def _here(self, encoder: "TransformerEncoder") -> "TransformerEncoder":
        """Returns the encoder with this GPU's network; encoders that share a network share one here too."""
        if id(encoder) not in self._own:
            loaded = None if encoder.loaded is None else self._here(encoder.loaded)
            # Storing the encoder keeps its id from being reused.
            self._own[id(encoder)] = encoder, replace(encoder, loaded=loaded)
        return self._own[id(encoder)][1]


def placed(encoder: Encoder, devices: str | None = None, on: str | None = None) -> Encoder:
    """Returns a checkpoint's encoder whose batches are shared over devices, or over a cluster.

    Args:
        encoder: as loaded.
        devices: comma-separated numbers of GPUs, or of equal groups of cores on a CPU; `all` for every GPU or
            core; None for one device.
        on: `ray`, instead of devices.

    Raises:
        UserError: if torch does not compute the encoder, or there are no such devices.
    """
    if devices is None and on is None:
        return encoder
    if devices is not None and on is not None:
        raise UserError("--devices and --on exclude each other: leave one of them out.")
    if on not in {None, "ray"}:
        raise UserError(f"--on {on}: expected `ray`.")
    option = "--on" if devices is None else "--devices"
    from stsbench.encoders.fitted import FittedEncoder
    from stsbench.encoders.sides import SidedEncoder
    from stsbench.encoders.transformer import TransformerEncoder

    if isinstance(encoder, FittedEncoder):
        return replace(encoder, base=placed(encoder.base, devices, on))
    if isinstance(encoder, SidedEncoder):
        first = placed(encoder.sides[0], devices, on)
        assert isinstance(first, TransformerEncoder)
        # Both sides share one network.
        return replace(encoder, sides=(first, first.with_use(prompt=encoder.sides[1].identity.use.prompt)))
    if not isinstance(encoder, TransformerEncoder) or encoder.use.backend != TORCH:
        raise UserError(
            f"{option} needs a checkpoint computed by torch, and {encoder.identity.name} is not one: leave it out."
        )
    if devices is not None:
        return replace(encoder, places=_places(devices, encoder.use.device))
    from stsbench.encoders.on_ray import ray_workers

    return replace(encoder, places=ray_workers(encoder.use.device))


def _places(devices: str, device: str) -> tuple[Place, ...]:
    """Returns the places of `--devices`, for an encoder on a device."""
    names = [name.strip() for name in devices.split(",")]
    if devices != ALL and (not all(map(str.isdecimal, names)) or len(set(names)) < len(names)):
        raise UserError(f"--devices {devices}: expected distinct numbers with commas (0,1), or all.")
    if device == "cpu":
        count = cores() if devices == ALL else len(names)
        if count > cores():
            raise UserError(f"--devices {devices}: {count} groups of cores, but there are {cores()} cores.")
        if devices != ALL and max(map(int, names)) >= cores():
            raise UserError(f"--devices {devices}: groups of cores are numbered 0 to {cores() - 1} here.")
        return (Cores(cores() // count),) * count
    if device != "cuda":
        raise UserError(f"--devices: there is only one {device}: leave it out.")
    import torch

    there = torch.cuda.device_count()
    numbers = range(there) if devices == ALL else [int(name) for name in names]
    if absent := [number for number in numbers if number >= there]:
        raise UserError(f"--devices {devices}: no GPU {absent[0]}; the last is {there - 1}.")
    return tuple(map(Gpu, numbers))
