"""Parts of a computation at the same time: their order, their errors, and the threads of the linear algebra."""

import threading

import numpy as np
import pytest
import torch
from threadpoolctl import ThreadpoolController, threadpool_limits

from stsbench.statistics.geometry import uniformity
from stsbench.statistics.threads import in_threads, in_torch_threads


@pytest.fixture
def blas():
    return ThreadpoolController().select(user_api="blas")


def threads_of(blas):
    return {library["num_threads"] for library in blas.info()}


def test_parts_come_in_the_order_of_the_items_although_a_later_one_ends_first():
    later = threading.Event()

    def computed(item):
        if item == 0:
            assert later.wait(10)
        later.set()
        return item

    with threadpool_limits(2, "blas"):
        assert list(in_threads(computed, [0, 1, 2])) == [0, 1, 2]


def test_linear_algebra_has_one_thread_inside_and_its_own_number_after(blas):
    with threadpool_limits(2, "blas"):
        before = threads_of(blas)
        assert list(in_threads(lambda _: threads_of(blas), range(3))) == [{1}] * 3
        assert threads_of(blas) == before


def test_a_linear_algebra_of_one_thread_starts_none():
    with threadpool_limits(1, "blas"):
        assert set(in_threads(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}


def test_an_error_in_a_part_is_raised_and_the_number_of_threads_is_as_before(blas):
    def failing(item):
        raise ValueError(f"part {item}")

    with threadpool_limits(2, "blas"):
        before = threads_of(blas)
        with pytest.raises(ValueError, match="part 0"):
            list(in_threads(failing, range(5)))
        assert threads_of(blas) == before


def test_numbers_are_the_same_with_one_thread_and_with_two():
    vectors = np.random.default_rng(0).standard_normal((5000, 16)).astype(np.float32)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            found.append(uniformity(vectors))
    assert found[0] == found[1]


@pytest.fixture
def three_torch_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_torch_threads")
def test_pytorch_has_one_thread_in_each_part_and_its_own_number_after():
    started = threading.Barrier(2)

    def threads(_):
        started.wait(10)
        return torch.get_num_threads(), threading.get_ident()

    (first, here), (second, there) = in_torch_threads(threads, [0, 1])
    assert (first, second) == (1, 1)
    assert here != there
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_torch_threads")
def test_a_single_part_has_all_threads_of_pytorch():
    assert list(in_torch_threads(lambda _: torch.get_num_threads(), [0])) == [3]


@pytest.mark.usefixtures("three_torch_threads")
def test_after_an_error_in_a_part_pytorch_has_its_threads_again():
    def failing(item):
        raise ValueError(f"part {item}")

    with pytest.raises(ValueError, match="part 0"):
        list(in_torch_threads(failing, [0, 1]))
    assert torch.get_num_threads() == 3
