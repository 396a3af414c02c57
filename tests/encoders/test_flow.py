"""The flow: its log-determinant is that of its Jacobian, it leads back, and training makes vectors more likely."""

import numpy as np
import pytest
import torch

from stsbench.base.errors import UserError
from stsbench.encoders.flow import LIMIT, Flow, FlowSettings, apply_flow, fit_flow, flow_of, notes_on


def drawn(dimensions: int, *settings, seed: int = 0) -> Flow:
    """Return a flow all of whose parameters are drawn, as after a training."""
    torch.manual_seed(seed)
    flow = Flow(dimensions, FlowSettings(*settings)).double()
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.copy_(0.4 * torch.randn_like(parameter))
    return flow


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


@pytest.mark.parametrize("coupling", ["affine", "additive"])
@pytest.mark.parametrize(("dimensions", "depth"), [(2, 1), (5, 3), (6, 4)])
def test_the_log_determinant_is_that_of_autograd_s_jacobian(dimensions, depth, coupling):
    flow = drawn(dimensions, depth, 8, coupling, seed=dimensions)
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
    flow = drawn(7, 4, 16, coupling)
    vectors = torch.randn(50, 7, dtype=torch.float64)
    torch.testing.assert_close(flow.inverse(flow(vectors)[0]), vectors, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(flow(flow.inverse(vectors))[0], vectors, rtol=1e-9, atol=1e-9)


def test_the_density_that_the_likelihood_is_of_sums_to_one():
    flow = drawn(2, 2, 8, "affine", seed=1)
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
    flow = Flow(5, FlowSettings(3, 8))
    flow.start(torch.from_numpy(bent))
    latents = apply_flow(flow.double(), bent)
    np.testing.assert_allclose(latents.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(latents.std(axis=0), 1, atol=1e-4)


def test_a_dimension_without_variance_is_not_blown_up(bent):
    bent[:, 2] = 4.0
    flow, log = fitted(bent, 6, 8, steps=3, batch=64)
    assert np.isfinite([line["nll"] for line in log]).all()
    assert np.abs(apply_flow(flow, bent)).max() < 50


def test_no_coupling_scales_beyond_its_limit():
    (step,) = Flow(4, FlowSettings(1, 8, "affine")).double().steps
    with torch.no_grad():
        step.network[-1].bias.fill_(1e9)
        _, log_determinant = step(torch.ones(1, 4, dtype=torch.float64))
    assert float(log_determinant) == pytest.approx(2 * LIMIT)


def held_out_of(log):
    return [line["held_out"] for line in log if "held_out" in line]


@pytest.mark.parametrize(("batch", "steps"), [(64, 6), (95, 4), (400, 1)])
def test_by_default_a_training_is_one_pass_over_the_sentences(bent, batch, steps):
    settings = FlowSettings(2, 8, batch=batch)
    _, log = fit_flow(bent, np.arange(400), settings)
    assert log[-1]["step"] == steps  # of 380: a twentieth is held out
    _, log = fit_flow(bent, np.tile(np.arange(400), 2), settings)
    assert log[-1]["step"] == -(-760 // batch)


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


def test_without_overfitting_there_is_no_note_unless_too_few_sentences_can_show_it(bent):
    _, log = fitted(bent, 4, 32, batch=64, learning_rate=5e-3)
    assert (log[-1]["kept"], notes_on(log)) == (True, ())
    _, log = fitted(bent[:30], 2, 8, batch=64)
    assert log[-1]["kept"]
    assert "overfitting cannot be detected" in notes_on(log)[0]


@pytest.mark.parametrize("coupling", ["affine", "additive"])
def test_training_makes_held_out_vectors_more_likely_than_a_gaussian_does(bent, coupling):
    flow, log = fitted(bent, 4, 32, coupling, steps=70, learning_rate=8e-3, batch=128, seed=5)
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


def test_the_same_seed_gives_the_same_bits_and_leaves_torch_s_generator_alone(bent):
    state = torch.get_rng_state()
    (one, log), (same, same_log), (other, _) = (
        fitted(bent, 2, 8, steps=5, batch=32, seed=seed) for seed in (3, 3, 4)
    )
    assert torch.equal(state, torch.get_rng_state())
    assert log == same_log
    first, second, third = (flow.parameters_by_name() for flow in (one, same, other))
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert any(not np.array_equal(first[name], third[name]) for name in first)


def test_a_flow_comes_back_from_its_parameters(bent):
    flow = drawn(5, 3, 8).float()
    again = flow_of(5, FlowSettings(3, 8), flow.parameters_by_name())
    np.testing.assert_array_equal(apply_flow(flow.double(), bent), apply_flow(again, bent))


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (lambda bent: bent[:, :1], {}, "these have one"),
        (lambda bent: np.repeat(bent[:1], 4, axis=0), {}, "those of the 4 sentences are equal"),
        (
            lambda bent: bent,
            {"depth": 8, "width": 16, "coupling": "affine", "steps": 50, "learning_rate": 1e4},
            r"is infinite at step \d+: use a smaller --learning-rate",
        ),
    ],
)
def test_what_no_flow_can_be_fitted_to_is_refused(change, settings, message, bent):
    with pytest.raises(UserError, match=message):
        fitted(change(bent), **settings)
