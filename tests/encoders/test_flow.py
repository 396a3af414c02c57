"""The flow: its log-determinant is that of its Jacobian, and training makes vectors more likely."""

import numpy as np
import pytest
import torch

from stsbench.base.errors import UserError
from stsbench.encoders.flow import Flow, FlowSettings, apply_flow, fit_flow, flow_of, notes_on


def drawn(dimensions: int, *settings, seed: int = 0) -> Flow:
    """Return a flow all of whose parameters are drawn, as after a training."""
    torch.manual_seed(seed)
    flow = Flow(dimensions, FlowSettings(*settings)).double()
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.copy_(0.4 * torch.randn_like(parameter))
    return flow


def parameters_of(flow):
    return {name: tensor.numpy() for name, tensor in flow.float().state_dict().items()}


def fitted(vectors, *architecture, **training):
    """Fit a flow to distinct vectors, each of them one sentence."""
    return fit_flow(vectors, np.arange(len(vectors)), FlowSettings(*architecture, **training))


@pytest.fixture
def bent() -> np.ndarray:
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


def test_by_default_a_training_is_one_pass_over_the_sentences(bent):
    _, log = fit_flow(bent, np.tile(np.arange(400), 2), FlowSettings(2, 8, batch=95))
    assert log[-1]["step"] == 8  # of 760: a twentieth is held out


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


def test_a_flow_comes_back_from_its_parameters(bent):
    flow = drawn(5, 3, 8).float()
    again = flow_of(5, FlowSettings(3, 8), parameters_of(flow))
    np.testing.assert_array_equal(apply_flow(flow.double(), bent), apply_flow(again, bent))


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (lambda bent: bent[:, :1], {}, "these have one"),
        (lambda bent: np.repeat(bent[:1], 40, axis=0), {}, "40 or more different vectors"),
        (lambda bent: bent[:39], {}, "40 or more different vectors"),
        (
            lambda bent: bent,
            {"depth": 8, "width": 16, "steps": 50, "learning_rate": 1e9},
            r"is infinite at step \d+",
        ),
    ],
)
def test_what_no_flow_can_be_fitted_to_is_refused(change, settings, message, bent):
    with pytest.raises(UserError, match=message):
        fitted(change(bent), **settings)
