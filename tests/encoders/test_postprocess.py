"""Whitening against plain NumPy; the flow, whose log-determinant is that of its Jacobian."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stsbench.base.errors import UserError
from stsbench.encoders.fitted import truncate, whiten
from stsbench.encoders.flow import Flow, FlowSettings, apply_flow, fit_flow, notes_on


@pytest.fixture
def vectors():
    mixing = np.random.default_rng(1).normal(size=(8, 8))
    return (np.random.default_rng(2).normal(size=(60, 8)) @ mixing + 3).astype(np.float32)


@pytest.mark.parametrize("dimensions", [None, 3])
def test_whitening_is_the_formula_of_its_paper(dimensions, vectors):
    reference = vectors[:40].astype(np.float64)
    mean = reference.sum(0) / 40
    centred = reference - mean
    values, directions = np.linalg.eigh(centred.T @ centred / 39)
    order = np.argsort(-values)[: dimensions or 8]
    expected = (vectors - mean) @ directions[:, order] @ np.diag(values[order] ** -0.5)
    ours = whiten(vectors, vectors[:40], dimensions)
    signs = np.sign((ours * expected).sum(0))
    np.testing.assert_allclose(ours, expected * signs, rtol=1e-6, atol=1e-8)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), rows=st.integers(12, 50), dimensions=st.integers(1, 6))
def test_whitened_reference_vectors_have_unit_covariance_and_no_mean(seed, rows, dimensions):
    random = np.random.default_rng(seed)
    vectors = (random.normal(size=(rows, 6)) * random.uniform(0.1, 9, 6) + 5).astype(np.float32)
    whitened = whiten(vectors, vectors, dimensions)
    np.testing.assert_allclose(whitened.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(np.atleast_2d(np.cov(whitened, rowvar=False)), np.eye(dimensions), atol=1e-5)


def test_all_dimensions_are_those_in_which_the_sentences_vary(vectors):
    assert np.array_equal(whiten(vectors, vectors[:5]), whiten(vectors, vectors[:5], 4))
    assert whiten(vectors, vectors).shape == (60, 8)


def drawn(dimensions, *settings, seed=0):
    """Return a flow all of whose parameters are drawn, as after a training."""
    torch.manual_seed(seed)
    flow = Flow(dimensions, FlowSettings(*settings)).double()
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.copy_(0.4 * torch.randn_like(parameter))
    return flow


def fitted(vectors, *architecture, **training):
    return fit_flow(vectors, np.arange(len(vectors)), FlowSettings(*architecture, **training))


@pytest.fixture
def bent():
    """Return 400 vectors of five dimensions that no linear map makes normal."""
    chance = np.random.default_rng(3)
    first = chance.normal(size=(400, 2))
    second = np.stack([first[:, 0] ** 2, np.sin(2 * first[:, 1]), first.sum(axis=1)], axis=1)
    return (np.concatenate([first, second + 0.1 * chance.normal(size=second.shape)], axis=1) * 3 + 7).astype(
        np.float32
    )


@pytest.mark.parametrize(("dimensions", "depth"), [(2, 1), (5, 3), (6, 4)])
def test_the_likelihood_is_that_of_the_latents_and_of_autograds_jacobian(dimensions, depth):
    flow = drawn(dimensions, depth, 8, seed=dimensions)
    vectors = torch.randn(3, dimensions, dtype=torch.float64)
    normal = torch.distributions.MultivariateNormal(
        torch.zeros(dimensions).double(), torch.eye(dimensions).double()
    )
    for row, vector in enumerate(vectors):
        jacobian = torch.autograd.functional.jacobian(lambda x: flow(x[None])[0], vector)
        sign, expected = torch.linalg.slogdet(jacobian)
        assert sign.abs() == 1
        torch.testing.assert_close(flow.log_determinant, expected, rtol=1e-10, atol=1e-10)
        likelihood = normal.log_prob(flow(vectors)[row]) + expected
        torch.testing.assert_close(flow.log_likelihood(vectors)[row], likelihood, rtol=1e-10, atol=1e-10)


def test_a_dimension_without_variance_is_not_blown_up(bent):
    bent[:, 2] = 4.0
    flow, log = fitted(bent, 6, 8, steps=3, batch=64)
    assert np.isfinite([line["nll"] for line in log]).all()
    assert np.abs(apply_flow(flow, bent)).max() < 50


def held_out_of(log):
    return [line["held_out"] for line in log if "held_out" in line]


def test_if_it_overfits_the_state_with_the_best_held_out_likelihood_is_kept_with_a_note(bent):
    few = bent[:60]
    flow, log = fitted(few, 6, 64, steps=200, batch=32, learning_rate=5e-3, seed=1)
    (kept,) = (line for line in log if line["kept"])
    assert kept["held_out"] == min(held_out_of(log)) < log[-1]["held_out"] - 0.1
    assert 0 < kept["step"] < 200
    held_out = np.sort(np.random.default_rng(1).permutation(60)[:3])
    with torch.no_grad():
        found = float(-flow.log_likelihood(torch.from_numpy(few[held_out]).double()).mean() / 5)
    assert found == pytest.approx(kept["held_out"], abs=1e-5)
    (note,) = notes_on(log)
    assert note.startswith(f"Held-out vectors became less likely after step {kept['step']} of 200 (NLL ")


def test_training_makes_held_out_vectors_more_likely_than_a_gaussian_does(bent):
    _, log = fitted(bent, 4, 32, batch=64, learning_rate=5e-3)
    assert (log[-1]["kept"], notes_on(log)) == (True, ())
    flow, log = fitted(bent, 4, 32, steps=70, learning_rate=8e-3, batch=128, seed=5)
    held_out = held_out_of(log)
    assert [line["step"] for line in log] == list(range(71))
    assert held_out[-1] < held_out[0] - 0.2
    # A Gaussian of the same mean and covariance is the best that a linear map can do.
    covariance = np.cov(bent, rowvar=False)
    gaussian = 0.5 * (np.log(2 * np.pi) + 1 + np.linalg.slogdet(covariance)[1] / 5)
    assert log[-1]["nll"] < gaussian
    with torch.no_grad():
        everything = float(-flow.log_likelihood(torch.from_numpy(bent).double()).mean() / 5)
    assert everything == pytest.approx(log[-1]["nll"], abs=0.15)


def test_training_leaves_the_generator_of_torch_alone(bent):
    state = torch.get_rng_state()
    fitted(bent, 2, 8, steps=2, batch=32)
    assert torch.equal(state, torch.get_rng_state())


MISTAKES = [
    *(
        (lambda vectors, _, d=d: truncate(vectors, d), rf"--dimensions {d}: the model's vectors have 8")
        for d in (0, -1, 9)
    ),
    (lambda vectors, _: whiten(vectors, vectors[:5], 5), r"vary in 4 of 8; keep fewer \(--whiten 4\)"),
    (lambda vectors, _: whiten(vectors, vectors[:5], 5, task="STS16"), "5 sentences of STS16 vary in 4 of 8"),
    (lambda vectors, _: whiten(vectors, vectors[:1], 1), "needs at least 2 sentences"),
    (lambda vectors, _: whiten(vectors, vectors[[0, 0, 0]], 1), "whitening needs different vectors"),
    (lambda _, bent: fitted(bent[:, :1]), "these have one"),
    (lambda _, bent: fitted(np.repeat(bent[:1], 40, axis=0)), "40 or more different vectors"),
    (lambda _, bent: fitted(bent[:39]), "40 or more different vectors"),
    (lambda _, bent: fitted(bent, depth=8, width=16, steps=50, learning_rate=1e9), r"is infinite at step \d+"),
]


@pytest.mark.parametrize(("process", "message"), MISTAKES)
def test_what_cannot_be_whitened_or_fitted_is_refused(process, message, vectors, bent):
    with pytest.raises(UserError, match=message):
        process(vectors, bent)
