"""`--on ray`: batches are computed by workers of a Ray cluster.

There is one worker with the network per GPU of the cluster, or per machine without a GPU. Texts are tokenised and
vectors are cached here. A worker that dies is restarted, and its batch is computed again.
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stsbench.base.cluster import connected
from stsbench.base.errors import UserError
from stsbench.encoders.hashed import HashedFiles
from stsbench.encoders.protocol import FloatMatrix, TokenSequence

if TYPE_CHECKING:
    from stsbench.encoders.checkpoint import Checkpoint
    from stsbench.encoders.transformer import TransformerEncoder

_LIVES = 3
"""How often a worker is restarted."""


@dataclass
class RayWorker:
    """A worker of a cluster, which computes one batch at a time."""

    ray: Any
    actor: Any
    where: str
    _told: dict[int, "tuple[TransformerEncoder, bytes, bytes]"] = field(default_factory=dict)

    def forward(
        self, encoder: "TransformerEncoder", sequences: Sequence[TokenSequence], poolings: Sequence[str]
    ) -> dict[str, FloatMatrix]:
        """Computes on the worker.

        Raises:
            UserError: if it died too often.
        """
        if id(encoder) not in self._told:
            # Storing the encoder keeps its id from being reused.
            self._told[id(encoder)] = encoder, *_sent(encoder)
        _, holder, settings = self._told[id(encoder)]
        coming = self.actor.forward.remote(holder, settings, list(sequences), list(poolings))
        try:
            vectors: dict[str, FloatMatrix] = self.ray.get(coming)
        except self.ray.exceptions.RayTaskError as error:
            # Our own error, without Ray's traceback.
            raise error.cause from None
        except self.ray.exceptions.RayError as error:
            _started.cache_clear()
            raise UserError(
                f"the worker on {self.where} died {_LIVES + 1} times: check its memory. The same command resumes "
                "from the cache."
            ) from error
        # Arrays in Ray's store are read-only.
        return {pooling: matrix.copy() for pooling, matrix in vectors.items()}


class _Worker:
    """Runs in the cluster."""

    def __init__(self, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)

    def forward(
        self, holder: bytes, settings: bytes, sequences: Sequence[TokenSequence], poolings: Sequence[str]
    ) -> dict[str, FloatMatrix]:
        return _used(holder, settings).forward(sequences, poolings)


@lru_cache(maxsize=2)
def _held(holder: bytes) -> "TransformerEncoder":
    """Returns an encoder with the files of this machine, which must have the same hashes."""
    encoder, key = pickle.loads(holder)
    if encoder.identity.key() != key:
        raise UserError(
            f"{encoder.checkpoint.folder} differs between this machine and the worker's: give both the same files."
        )
    loaded: TransformerEncoder = encoder
    return loaded


@lru_cache(maxsize=8)
def _used(holder: bytes, settings: bytes) -> "TransformerEncoder":
    held = _held(holder)
    return replace(held, settings=pickle.loads(settings), loaded=held)


def _sent(encoder: "TransformerEncoder") -> tuple[bytes, bytes]:
    """Returns, pickled, the encoder whose network a worker loads, and how it is used."""
    holder = encoder.loaded or encoder
    # The worker hashes its own files.
    sent = replace(
        holder,
        checkpoint=_anew(holder.checkpoint),
        adapter=None if holder.adapter is None else _anew(holder.adapter),
        loaded=None,
        places=(),
    )
    return pickle.dumps((sent, holder.identity.key())), pickle.dumps(encoder.settings)


def _anew(checkpoint: "Checkpoint") -> "Checkpoint":
    return replace(checkpoint, hashed=HashedFiles())


def ray_workers(device: str) -> tuple[RayWorker, ...]:
    """Returns one worker per GPU of a cluster, or per machine.

    They use all resources, so all encoders of this process share them.

    Args:
        device: `cuda` or `cpu`.

    Raises:
        UserError: if no cluster responds, or no machine has such a device.
    """
    context = connected().get_runtime_context()
    return _started(device, (context.get_node_id(), context.get_job_id()))


@lru_cache(maxsize=1)
def _started(device: str, _cluster: tuple[str, str]) -> tuple[RayWorker, ...]:
    """Starts the workers of the connected cluster."""
    ray = connected()
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    worker, workers = ray.remote(_Worker), []
    for node in ray.nodes():
        has = node["Resources"]
        gpus, cpus = int(has.get("GPU", 0)), int(has.get("CPU", 0))
        count = gpus if device == "cuda" else 1
        if not node["Alive"] or not cpus or not count:
            continue
        threads = max(1, cpus // count)
        asked = worker.options(
            num_cpus=threads,
            num_gpus=1 if device == "cuda" else 0,
            max_restarts=_LIVES,
            max_task_retries=_LIVES,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        )
        where = str(node["NodeManagerHostname"])
        workers += [RayWorker(ray, asked.remote(threads), where) for _ in range(count)]
    if not workers:
        raise UserError(f"--on ray: no machine of the cluster has a {'GPU' if device == 'cuda' else 'core'}.")
    return tuple(workers)
