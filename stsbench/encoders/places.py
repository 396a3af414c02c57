"""Where batches are computed: `--devices` (several GPUs or groups of cores) and `--on ray` (a Ray cluster).

The planner makes the same batches and keeps their order, so vectors do not depend on the number of places. This
process tokenises the texts and caches the vectors.
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.machine import cores, ray_cluster
from stsbench.encoders.fitted import FittedEncoder
from stsbench.encoders.hashed import HashedFiles
from stsbench.encoders.protocol import Encoder, FloatMatrix, Place, TokenSequence
from stsbench.encoders.sides import SidedEncoder
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import TORCH

ALL = "all"

_RESTARTS = 3
"""How often a worker of a cluster is restarted; its batch is then computed again."""


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


@dataclass(frozen=True)
class RayWorker:
    """A worker of a Ray cluster, which computes one batch at a time."""

    ray: Any
    actor: Any
    where: str

    def forward(
        self, encoder: TransformerEncoder, sequences: Sequence[TokenSequence], poolings: Sequence[str]
    ) -> dict[str, FloatMatrix]:
        """Computes on the worker; raises a UserError if it died too often."""
        result = self.actor.forward.remote(*_pickled(encoder), list(sequences), list(poolings))
        try:
            vectors: dict[str, FloatMatrix] = self.ray.get(result)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None  # our own error, without Ray's traceback
        except self.ray.exceptions.RayError as error:
            _started.cache_clear()
            raise UserError(
                f"the worker on {self.where} died {_RESTARTS + 1} times. Check its memory; the same command "
                "resumes from the cache."
            ) from error
        # Arrays in Ray's store are read-only.
        return {pooling: matrix.copy() for pooling, matrix in vectors.items()}


class _Worker:
    """Runs in the cluster."""

    def __init__(self, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)

    def forward(
        self, network: bytes, settings: bytes, sequences: Sequence[TokenSequence], poolings: Sequence[str]
    ) -> dict[str, FloatMatrix]:
        return _with_settings(network, settings).forward(sequences, poolings)


def _pickled(encoder: TransformerEncoder) -> tuple[bytes, bytes]:
    """Returns the encoder whose network a worker loads, with its key, and the settings of this encoder."""
    holder = encoder.loaded or encoder
    # The worker hashes its own files.
    checkpoint = replace(holder.checkpoint, hashed=HashedFiles())
    adapter = holder.adapter and replace(holder.adapter, hashed=HashedFiles())
    plain = replace(holder, checkpoint=checkpoint, adapter=adapter, loaded=None, places=())
    return pickle.dumps((plain, holder.identity.key())), pickle.dumps(encoder.settings)


@lru_cache(maxsize=2)
def _unpickled(network: bytes) -> TransformerEncoder:
    """Returns an encoder with the files of this machine, which must have the same hashes."""
    encoder: TransformerEncoder
    encoder, key = pickle.loads(network)
    if encoder.identity.key() != key:
        raise UserError(
            f"{encoder.checkpoint.folder} differs between this machine and the worker's. Give both the same files."
        )
    return encoder


@lru_cache(maxsize=8)
def _with_settings(network: bytes, settings: bytes) -> TransformerEncoder:
    loaded = _unpickled(network)
    return replace(loaded, settings=pickle.loads(settings), loaded=loaded)


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
    if isinstance(encoder, FittedEncoder):
        return replace(encoder, base=placed(encoder.base, devices, on))
    if isinstance(encoder, SidedEncoder):
        first: Any = placed(encoder.sides[0], devices, on)
        # Both sides share one network.
        return replace(encoder, sides=(first, first.with_use(prompt=encoder.sides[1].identity.use.prompt)))
    if not isinstance(encoder, TransformerEncoder) or encoder.use.backend != TORCH:
        option = "--on" if devices is None else "--devices"
        raise UserError(
            f"{option} needs a checkpoint computed by torch, and {encoder.identity.name} is not one: leave it out."
        )
    device = encoder.use.device
    return replace(encoder, places=ray_workers(device) if devices is None else _local(devices, device))


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


def ray_workers(device: str) -> tuple[RayWorker, ...]:
    """Returns one worker per GPU of a cluster, or per machine if `device` is `cpu`.

    They use all resources, so all encoders of this process share them.

    Raises:
        UserError: if no cluster responds, or no machine has such a device.
    """
    context = ray_cluster().get_runtime_context()
    return _started(device, (context.get_node_id(), context.get_job_id()))


@lru_cache(maxsize=1)
def _started(device: str, _cluster: tuple[str, str]) -> tuple[RayWorker, ...]:
    """Starts the workers of the connected cluster."""
    ray = ray_cluster()
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    worker, workers = ray.remote(_Worker), []
    for node in ray.nodes():
        gpus, cpus = (int(node["Resources"].get(kind, 0)) for kind in ("GPU", "CPU"))
        count = gpus if device == "cuda" else 1
        if not node["Alive"] or not cpus or not count:
            continue
        threads = max(1, cpus // count)
        options = worker.options(
            num_cpus=threads,
            num_gpus=1 if device == "cuda" else 0,
            max_restarts=_RESTARTS,
            max_task_retries=_RESTARTS,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        )
        where = str(node["NodeManagerHostname"])
        workers += [RayWorker(ray, options.remote(threads), where) for _ in range(count)]
    if not workers:
        raise UserError(f"--on ray: no machine of the cluster has a {'GPU' if device == 'cuda' else 'core'}.")
    return tuple(workers)
