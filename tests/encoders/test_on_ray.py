"""`--on ray`: a real Ray cluster of two nodes on this machine computes the batches, also when a worker is killed."""

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.encoders.cache import cache_files
from stsbench.encoders.places import placed
from stsbench.encoders.plan import embed

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'stsbench[ray]'")

pytestmark = pytest.mark.slow

LINES = [f"{'a word ' * (number % 11)}and line {number}." for number in range(300)]


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
    from ray.util.state import list_actors

    return [actor.pid for actor in list_actors() if actor.state == "ALIVE" and actor.class_name == "_Worker"]


def test_a_cluster_gives_the_vectors_of_this_machine_and_the_cache_is_written_once(tiny):
    folder = tiny("bert")
    shared = placed(sb.load(folder), on="ray")
    assert len(shared.places) == 2
    assert np.array_equal(vectors(shared), vectors(sb.load(folder), use_cache=False))
    (file,) = cache_files()
    assert file.vectors == len(set(LINES))
    # What is asked again is not computed again.
    assert embed(shared, LINES).cost.encoded == 0


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


def test_what_a_worker_has_against_its_files_is_one_sentence(tiny):
    folder = tiny("bert")
    shared = placed(sb.load(folder), on="ray")
    _ = shared.identity
    (folder / "config.json").write_text((folder / "config.json").read_text() + "\n", encoding="utf-8")
    with pytest.raises(
        UserError, match=r"^.* holds another model on the worker's machine than here: let both see"
    ):
        vectors(shared, use_cache=False)


def test_a_cluster_without_gpus_is_refused_where_one_is_needed():
    from stsbench.encoders.on_ray import ray_workers

    with pytest.raises(UserError, match="no machine of the cluster has a GPU"):
        ray_workers("cuda")
