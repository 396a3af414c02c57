"""The flow: its log-determinant is that of its Jacobian, it leads back, and training makes vectors more likely."""

import numpy as np
import pytest
import torch

from stsbench.base.errors import UserError
from stsbench.encoders.flow import (
    LIMIT,
    Flow,
    FlowDescent,
    FlowShape,
    apply_flow,
    fit_flow,
    flow_of,
    notes_on,
    parameters_of,
)


def drawn(shape: FlowShape, seed: int = 0) -> Flow:
    """Return a flow all of whose parameters are drawn, as after a training."""
    torch.manual_seed(seed)
    flow = Flow(shape).double()
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.copy_(0.4 * torch.randn_like(parameter))
    return flow


@pytest.fixture
def bent() -> np.ndarray:
    """Return 400 vectors of five dimensions that no linear map makes normal."""
    chance = np.random.default_rng(3)
    first = chance.normal(size=(400, 2))
    second = np.stack([first[:, 0] ** 2, np.sin(2 * first[:, 1]), first.sum(axis=1)], axis=1)
    return (np.concatenate([first, second + 0.1 * chance.normal(size=second.shape)], axis=1) * 3 + 7).astype(
        np.float32
    )


@pytest.mark.parametrize("coupling", ["affine", "additive"])
@pytest.mark.parametrize(("dimensions", "depth"), [(2, 1), (5, 3), (6, 4)])
def test_the_log_determinant_is_that_of_autograd_s_jacobian(dimensions, depth, coupling):
    flow = drawn(FlowShape(dimensions, depth, 8, coupling), seed=dimensions)
    vectors = torch.randn(3, dimensions, dtype=torch.float64)
    latents, log_determinant = flow(vectors)
    for row, vector in enumerate(vectors):
        jacobian = torch.autograd.functional.jacobian(lambda x: flow(x[None])[0][0], vector)
        sign, expected = torch.linalg.slogdet(jacobian)
        assert sign.abs() == 1
        torch.testing.assert_close(log_determinant[row], expected, rtol=1e-10, atol=1e-10)
    assert latents.shape == vectors.shape


@pytest.mark.parametrize("coupling", ["affine", "additive"])
def test_the_inverse_leads_back_both_ways(coupling):
    flow = drawn(FlowShape(7, 4, 16, coupling))
    vectors = torch.randn(50, 7, dtype=torch.float64)
    torch.testing.assert_close(flow.inverse(flow(vectors)[0]), vectors, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(flow(flow.inverse(vectors))[0], vectors, rtol=1e-9, atol=1e-9)


def test_the_density_that_the_likelihood_is_of_sums_to_one():
    flow = drawn(FlowShape(2, 2, 8, "affine"), seed=1)
    # Where the latents lie within five standard deviations nearly all of the density is.
    angle = torch.linspace(0, 2 * torch.pi, 200, dtype=torch.float64)
    with torch.no_grad():
        edge = flow.inverse(5 * torch.stack([angle.cos(), angle.sin()], dim=1))
    low, high = edge.amin(dim=0), edge.amax(dim=0)
    axes = [torch.linspace(float(a), float(b), 600, dtype=torch.float64) for a, b in zip(low, high, strict=True)]
    grid = torch.cartesian_prod(*axes)
    area = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
    with torch.no_grad():
        total = flow.log_likelihood(grid).exp().sum() * area
    assert float(total) == pytest.approx(1, abs=2e-3)


def test_the_actnorms_start_with_mean_0_and_variance_1(bent):
    torch.manual_seed(1)
    flow = Flow(FlowShape(5, 3, 8))
    flow.start(torch.from_numpy(bent))
    latents = apply_flow(flow.double(), bent)
    np.testing.assert_allclose(latents.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(latents.std(axis=0), 1, atol=1e-4)


def test_a_dimension_without_variance_is_not_blown_up(bent):
    bent[:, 2] = 4.0
    flow, log = fit_flow(bent, np.arange(400), FlowShape(5, 6, 8), FlowDescent(steps=3, batch=64))
    assert np.isfinite([line["nll"] for line in log]).all()
    assert np.abs(apply_flow(flow, bent)).max() < 50


def test_no_coupling_scales_beyond_its_limit():
    (step,) = Flow(FlowShape(4, 1, 8, "affine")).double().steps
    with torch.no_grad():
        step.network[-1].bias.fill_(1e9)
        _, log_determinant = step(torch.ones(1, 4, dtype=torch.float64))
    assert float(log_determinant) == pytest.approx(2 * LIMIT)


def held_out_of(log):
    return [line["held_out"] for line in log if "held_out" in line]


@pytest.mark.parametrize(("batch", "steps"), [(64, 6), (95, 4), (400, 1)])
def test_by_default_a_training_is_one_pass_over_the_sentences(bent, batch, steps):
    _, log = fit_flow(bent, np.arange(400), FlowShape(5, 2, 8), FlowDescent(batch=batch))
    assert log[-1]["step"] == steps  # of 380: a twentieth is held out
    twice = np.tile(np.arange(400), 2)
    _, log = fit_flow(bent, twice, FlowShape(5, 2, 8), FlowDescent(batch=batch))
    assert log[-1]["step"] == -(-760 // batch)


def test_of_a_training_that_overfits_the_state_of_the_best_held_out_likelihood_is_kept_and_that_is_said(bent):
    few, shape = bent[:60], FlowShape(5, 6, 64)
    descent = FlowDescent(steps=200, batch=32, learning_rate=5e-3, seed=1)
    flow, log = fit_flow(few, np.arange(60), shape, descent)
    (kept,) = (line for line in log if line["kept"])
    assert kept["held_out"] == min(held_out_of(log)) < log[-1]["held_out"] - 0.1
    assert 0 < kept["step"] < 200
    held_out = np.sort(np.random.default_rng(1).permutation(60)[:3])
    with torch.no_grad():
        found = float(-flow.log_likelihood(torch.from_numpy(few[held_out]).double()).mean() / 5)
    assert found == pytest.approx(kept["held_out"], abs=1e-5)
    (note,) = notes_on(log)
    assert note.startswith(f"Held-out vectors became less likely after step {kept['step']} of 200 (NLL ")


def test_what_does_not_overfit_needs_no_word_and_too_few_sentences_are_told(bent):
    _, log = fit_flow(bent, np.arange(400), FlowShape(5, 4, 32), FlowDescent(batch=64, learning_rate=5e-3))
    assert log[-1]["kept"]
    assert notes_on(log) == ()
    _, log = fit_flow(bent[:30], np.arange(30), FlowShape(5, 2, 8), FlowDescent(batch=64))
    assert log[-1]["kept"]
    assert "overfitting cannot be detected" in notes_on(log)[0]


@pytest.mark.parametrize("coupling", ["affine", "additive"])
def test_training_makes_held_out_vectors_more_likely_and_knows_the_likelihood(bent, coupling):
    shape = FlowShape(5, 4, 32, coupling)
    flow, log = fit_flow(bent, np.arange(400), shape, FlowDescent(steps=70, learning_rate=8e-3, batch=128, seed=5))
    held_out = held_out_of(log)
    assert [line["step"] for line in log] == list(range(71))
    assert held_out[-1] < held_out[0] - 0.2
    # A Gaussian of the same mean and covariance, the best that a linear map can do, is less likely.
    covariance = np.cov(bent, rowvar=False)
    gaussian = 0.5 * (np.log(2 * np.pi) + 1 + np.linalg.slogdet(covariance)[1] / 5)
    assert log[-1]["nll"] < gaussian
    with torch.no_grad():
        everything = float(-flow.log_likelihood(torch.from_numpy(bent).double()).mean() / 5)
    assert everything == pytest.approx(log[-1]["nll"], abs=0.15)


def test_the_same_seed_gives_the_same_bits_and_another_another_flow(bent):
    def parameters(seed):
        state = torch.get_rng_state()
        flow, log = fit_flow(bent, np.arange(400), FlowShape(5, 2, 8), FlowDescent(steps=5, batch=32, seed=seed))
        assert torch.equal(state, torch.get_rng_state())  # nobody else's numbers are drawn
        return parameters_of(flow), log

    (one, log), (same, same_log), (other, _) = parameters(3), parameters(3), parameters(4)
    assert log == same_log
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert any(not np.array_equal(one[name], other[name]) for name in one)


def test_a_flow_comes_back_from_its_parameters(bent):
    flow = drawn(FlowShape(5, 3, 8)).float()
    again = flow_of(flow.shape, parameters_of(flow))
    np.testing.assert_array_equal(apply_flow(flow.double(), bent), apply_flow(again, bent))
    for wrong in (FlowShape(5, 2, 8), FlowShape(5, 3, 9), FlowShape(5, 3, 8, "affine"), FlowShape(6, 3, 8)):
        with pytest.raises(ValueError, match="shape"):
            flow_of(wrong, parameters_of(flow))
    twice = parameters_of(flow) | {"steps.0.permutation": np.zeros(5, dtype=np.int64)}
    with pytest.raises(ValueError, match="no permutation"):
        flow_of(flow.shape, twice)


def test_vectors_that_no_flow_can_learn_from_are_refused(bent):
    with pytest.raises(UserError, match="these have one"):
        fit_flow(bent[:, :1], np.arange(400), FlowShape(1), FlowDescent())
    with pytest.raises(UserError, match="those of the 4 sentences are equal"):
        fit_flow(np.ones((1, 3), dtype=np.float32), np.zeros(4, dtype=np.int64), FlowShape(3), FlowDescent())


def test_a_likelihood_that_does_not_stay_finite_is_told_with_the_step(bent):
    with pytest.raises(UserError, match=r"is infinite at step \d+: use a smaller --learning-rate"):
        fit_flow(bent, np.arange(400), FlowShape(5, 8, 16, "affine"), FlowDescent(steps=50, learning_rate=1e4))
