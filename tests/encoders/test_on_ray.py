"""`--on ray`: a real Ray cluster of two nodes on this machine computes the batches, also without a worker."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.encoders.cache import cache_files
from stsbench.encoders.places import placed
from stsbench.encoders.plan import embed

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'stsbench[ray]'")

pytestmark = pytest.mark.slow

TEXT = "a small cat sat on the old mat by the door and the dog ran home over the green field"
WORDS = TEXT.split()
LINES = [" ".join(WORDS[number : number + 1 + number % 9]) for number in range(len(WORDS) - 9)] * 2


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[str]:
    """Start a cluster of two nodes with a core each, and connect to it."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, configure_logging=False, log_to_driver=False)
    yield cluster.address
    ray.shutdown()
    cluster.shutdown()


def vectors(encoder, **options):
    (matrix,) = embed(encoder, LINES, token_budget=64, **options).vectors.values()
    return matrix


def worker_processes():
    """Return the processes that compute."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if b"ray::_Worker" in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
    return found


def test_a_cluster_gives_the_vectors_of_this_machine_and_the_cache_is_written_once(tiny):
    folder = tiny("bert")
    shared = placed(sb.load(folder), on="ray")
    assert len(shared.places) == 2
    assert np.array_equal(vectors(shared), vectors(sb.load(folder), use_cache=False))
    (file,) = cache_files()
    assert file.vectors == embed(shared, LINES).cost.sequences > 10
    # What is asked again is not computed again.
    assert embed(shared, LINES).cost.encoded == 0


def test_encoders_of_one_process_share_the_workers(tiny):
    folder = tiny("bert")
    several = [placed(sb.load(folder, pooling=pooling), on="ray") for pooling in ("avg", "cls_before_pooler")]
    assert several[0].places == several[1].places
    for encoder in several:
        alone = sb.load(folder, pooling=encoder.use.pooling)
        assert np.array_equal(vectors(encoder, use_cache=False), vectors(alone, use_cache=False))


def test_a_worker_that_is_killed_changes_nothing(tiny):
    folder, killed = tiny("bert"), []

    def kill(_stage, _done, _total):
        if not killed:
            killed.extend(worker_processes()[-1:])
            for process in killed:
                os.kill(process, signal.SIGKILL)

    shared = placed(sb.load(folder), on="ray")
    again = vectors(shared, progress=kill, use_cache=False)
    assert killed
    assert np.array_equal(again, vectors(sb.load(folder), use_cache=False))


def test_a_worker_that_sees_other_files_says_so_in_one_sentence(tiny):
    encoder = placed(sb.load(tiny("bert")), on="ray")
    _ = encoder.identity
    elsewhere = replace(encoder.checkpoint, folder=tiny("bert", name="another"))
    (elsewhere.folder / "config.json").write_text(
        (elsewhere.folder / "config.json").read_text(encoding="utf-8") + "\n", encoding="utf-8"
    )
    encoder.checkpoint = elsewhere
    with pytest.raises(UserError, match=r"^\S*another differs between this machine and the worker's: give"):
        vectors(encoder, use_cache=False)


def test_a_cluster_without_gpus_is_refused_where_one_is_needed():
    from stsbench.encoders.places import ray_workers

    with pytest.raises(UserError, match="no machine of the cluster has a GPU"):
        ray_workers("cuda")
