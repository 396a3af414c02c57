"""`--on ray`: batches are tasks of a Ray cluster.

A worker for each GPU of the cluster, or for each machine without one, holds the network. Texts are tokenised here,
and vectors come back here, so that the embedding cache is written once. A worker that dies is started again, and
what it computed is computed again.
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
"""How often a worker is started again."""


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
        """Have the worker compute.

        Raises:
            UserError: if it died more often than it is started again.
        """
        if id(encoder) not in self._told:
            # Kept with it, so that no other comes to its number.
            self._told[id(encoder)] = encoder, *_sent(encoder)
        _, holder, settings = self._told[id(encoder)]
        coming = self.actor.forward.remote(holder, settings, list(sequences), list(poolings))
        try:
            vectors: dict[str, FloatMatrix] = self.ray.get(coming)
        except self.ray.exceptions.RayTaskError as error:
            # Ours, as it was raised there: without the text of where.
            raise error.cause from None
        except self.ray.exceptions.RayError as error:
            _started.cache_clear()
            raise UserError(
                f"the worker on {self.where} ended {_LIVES + 1} times: look at what ended it (its memory, most "
                "often); the same command goes on from the cache."
            ) from error
        # Arrays that come from Ray's store cannot be written into.
        return {pooling: matrix.copy() for pooling, matrix in vectors.items()}


class _Worker:
    """What runs in the cluster."""

    def __init__(self, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)

    def forward(
        self, holder: bytes, settings: bytes, sequences: Sequence[TokenSequence], poolings: Sequence[str]
    ) -> dict[str, FloatMatrix]:
        return _used(holder, settings).forward(sequences, poolings)


@lru_cache(maxsize=2)
def _held(holder: bytes) -> "TransformerEncoder":
    """Return an encoder whose network is loaded from what lies on this machine, and is the same as there."""
    encoder, key = pickle.loads(holder)
    if encoder.identity.key() != key:
        raise UserError(
            f"{encoder.checkpoint.folder} holds another model on the worker's machine than here: let both see the "
            "same files."
        )
    loaded: TransformerEncoder = encoder
    return loaded


@lru_cache(maxsize=8)
def _used(holder: bytes, settings: bytes) -> "TransformerEncoder":
    held = _held(holder)
    return replace(held, settings=pickle.loads(settings), loaded=held)


def _sent(encoder: "TransformerEncoder") -> tuple[bytes, bytes]:
    """Return what a worker is told: the encoder whose network it loads, and how that is used."""
    holder = encoder.loaded or encoder
    # The files are hashed there, where they may lie elsewhere on the disk.
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
    """Return a worker for each GPU of a cluster, or each machine of it.

    They take all that is there, so all encoders of this process share them: others would wait for ever.

    Args:
        device: `cuda` or `cpu`, as the encoder computes.

    Raises:
        UserError: if no cluster answers, or none of its machines has what is needed.
    """
    context = connected().get_runtime_context()
    return _started(device, (context.get_node_id(), context.get_job_id()))


@lru_cache(maxsize=1)
def _started(device: str, _cluster: tuple[str, str]) -> tuple[RayWorker, ...]:
    """Start the workers of a cluster to which this process is connected."""
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
        raise UserError(f"--on ray: no machine of the cluster has a {'GPU' if device == 'cuda' else 'free core'}.")
    return tuple(workers)
