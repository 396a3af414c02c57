"""A flow: an invertible map of vectors with a known Jacobian determinant, and its training by maximum likelihood.

It is a small Glow (Kingma and Dhariwal, 2018) on vectors, as BERT-flow has it (Li et al., 2020): a step is an
actnorm, a mixing of the dimensions, and a coupling of one half with the other.

From the papers: actnorm whose first values make the training vectors of mean 0 and variance 1 (Glow, 3.1); the
affine coupling, whose last layer starts at zero, so that each starts as the identity (3.3); the standard normal as
the latents' density. From BERT-flow's public code (bohanli/BERT-flow, flow/config/config_l3_d3_w32.json):
permutations in place of invertible 1x1 convolutions, and couplings that shift and do not scale, the default here.

Ours: no levels, so that no dimension leaves early; a drawn permutation stays as it is; fully connected layers in
the coupling; a scale's logarithm is bounded by `LIMIT` through a hyperbolic tangent, where Glow has a sigmoid.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.encoders.protocol import FloatMatrix

Coupling = Literal["affine", "additive"]

LIMIT = 2.0
"""No coupling scales by more than e to this, or less than e to minus this."""

_ROWS_AT_ONCE = 4096
# A dimension with a smaller share of the largest standard deviation is rounding noise, as in `postprocess`.
_NOISE = 1e-4

# Of the distinct vectors, one in so many is held out to see whether the likelihood holds for others; not of few.
_HELD_OUT_SHARE, _MOST_HELD_OUT, _FEWEST = 20, 1000, 40
_LOOKS = 20
_MOST_TO_START_WITH = 8192
# Of the largest number of a vector: what going there and back may lose in float64.
_EXACT = 1e-6


@dataclass(frozen=True)
class FlowShape:
    """What a flow is made of.

    Attributes:
        dimensions: of the vectors, at least 2.
        depth: steps.
        width: of the two hidden layers of a coupling.
        coupling: `additive` (BERT-flow: a shift alone) or `affine` (Glow: shift and scale).
    """

    dimensions: int
    depth: int = 6
    width: int = 256
    coupling: Coupling = "additive"


class _Step(nn.Module):
    """One step: y = permute(e^s (x + b)), of which the second half is then moved by what the first half says."""

    permutation: Tensor

    def __init__(self, shape: FlowShape) -> None:
        super().__init__()
        self.passed = shape.dimensions // 2
        moved = shape.dimensions - self.passed
        self.is_affine = shape.coupling == "affine"
        self.bias = nn.Parameter(torch.zeros(shape.dimensions))
        self.log_scale = nn.Parameter(torch.zeros(shape.dimensions))
        self.register_buffer("permutation", torch.randperm(shape.dimensions))
        self.network = nn.Sequential(
            nn.Linear(self.passed, shape.width),
            nn.ReLU(),
            nn.Linear(shape.width, shape.width),
            nn.ReLU(),
            last := nn.Linear(shape.width, moved * (2 if self.is_affine else 1)),
        )
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        vectors = (vectors + self.bias) * self.log_scale.exp()
        first, second = self._halves(vectors[:, self.permutation])
        shift, log_scale = self._move(first)
        moved = (second + shift) * log_scale.exp()
        return torch.cat([first, moved], dim=1), self.log_scale.sum() + log_scale.sum(dim=1)

    def inverse(self, latents: Tensor) -> Tensor:
        first, moved = self._halves(latents)
        shift, log_scale = self._move(first)
        mixed = torch.cat([first, moved * (-log_scale).exp() - shift], dim=1)
        vectors = torch.empty_like(mixed)
        vectors[:, self.permutation] = mixed
        return vectors * (-self.log_scale).exp() - self.bias

    @torch.no_grad()
    def start(self, vectors: Tensor) -> None:
        """Set the actnorm so that these vectors leave it with mean 0 and variance 1 in each dimension."""
        spread = vectors.std(dim=0, correction=0)
        # A dimension that hardly varies is not blown up to the size of the others, in each step more.
        spread = torch.where(spread > _NOISE * spread.max(), spread, spread.max())
        self.bias.copy_(-vectors.mean(dim=0))
        self.log_scale.copy_(-spread.log())

    def _halves(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        return vectors[:, : self.passed], vectors[:, self.passed :]

    def _move(self, first: Tensor) -> tuple[Tensor, Tensor]:
        moves = self.network(first)
        if not self.is_affine:
            return moves, torch.zeros_like(moves)
        shift, raw = moves.chunk(2, dim=1)
        return shift, LIMIT * torch.tanh(raw / LIMIT)


class Flow(nn.Module):
    """The map f from vectors to latents of the same dimensions, and back.

    Args:
        shape: what it is made of. Weights and permutations are drawn by torch's generator.

    >>> flow = Flow(FlowShape(4, depth=2, width=8)).double()
    >>> vectors = torch.randn(3, 4, dtype=torch.float64)
    >>> latents, log_determinant = flow(vectors)
    >>> bool(torch.allclose(flow.inverse(latents), vectors)), tuple(log_determinant.shape)
    (True, (3,))
    """

    def __init__(self, shape: FlowShape) -> None:
        super().__init__()
        self.shape = shape
        self.steps = nn.ModuleList(_Step(shape) for _ in range(shape.depth))

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return f(x), and `log |det df/dx|` of each row.

        Args:
            vectors: shape (rows, dimensions).
        """
        total = vectors.new_zeros(len(vectors))
        for step in self.steps:
            vectors, log_determinant = step(vectors)
            total = total + log_determinant
        return vectors, total

    def inverse(self, latents: Tensor) -> Tensor:
        """Return the vectors of latents of shape (rows, dimensions)."""
        for step in reversed(self.steps):
            latents = step.inverse(latents)  # type: ignore[operator]
        return latents

    def start(self, vectors: Tensor) -> None:
        """Set the actnorms one after the other by how these vectors arrive there (Glow, 3.1)."""
        for step in self.steps:
            step.start(vectors)  # type: ignore[operator]
            with torch.no_grad():
                vectors, _ = step(vectors)

    def log_likelihood(self, vectors: Tensor) -> Tensor:
        """Return log p(x) = log N(f(x); 0, I) + `log |det df/dx|` of each row, in nats."""
        latents, log_determinant = self(vectors)
        constant = 0.5 * self.shape.dimensions * math.log(2 * math.pi)
        result: Tensor = log_determinant - 0.5 * latents.square().sum(dim=1) - constant
        return result


def parameters_of(flow: Flow) -> dict[str, NDArray[Any]]:
    """Return all that a flow of a known shape consists of, by name."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in flow.state_dict().items()}


def flow_of(shape: FlowShape, parameters: Mapping[str, NDArray[Any]]) -> Flow:
    """Return the flow that has these parameters, in float64.

    Raises:
        ValueError: if they are not those of a flow of this shape.
    """
    with torch.random.fork_rng(devices=[]):
        flow = Flow(shape)
    try:
        flow.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in parameters.items()})
    except (RuntimeError, TypeError) as error:
        raise ValueError("not the parameters of a flow of this shape") from error
    for step in flow.steps:
        if not torch.equal(step.permutation.sort().values, torch.arange(shape.dimensions)):  # type: ignore[operator]
            raise ValueError("no permutation")
    return flow.double().eval()


def apply_flow(flow: Flow, vectors: FloatMatrix) -> NDArray[np.float64]:
    """Return f(x) of each row, computed in float64, so that it does not matter which rows come together.

    Args:
        flow: in float64.
        vectors: shape (rows, dimensions).
    """
    latents = np.empty(vectors.shape, dtype=np.float64)
    with torch.inference_mode():
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            block = vectors[start : start + _ROWS_AT_ONCE].astype(np.float64)
            latents[start : start + _ROWS_AT_ONCE] = flow(torch.from_numpy(block))[0].numpy()
    return latents


@dataclass(frozen=True)
class FlowDescent:
    """How the likelihood is maximised: Adam on batches of shuffled sentences.

    Attributes:
        steps: of the optimiser; None for one pass over the sentences, as BERT-flow takes.
        learning_rate: of Adam, falling to zero by half a cosine. BERT-flow's public command has 1e-3.
        batch: sentences a step.
        seed: of weights, permutations, held-out sentences and order.
    """

    steps: int | None = None
    learning_rate: float = 1e-3
    batch: int = 256
    seed: int = 42


def fit_flow(
    vectors: FloatMatrix,
    rows: NDArray[np.int64],
    shape: FlowShape,
    descent: FlowDescent,
    progress: Progress = silent,
) -> tuple[Flow, list[dict[str, Any]]]:
    """Return the flow under which the vectors are most likely, and the log of its training.

    The weights train in float32. A twentieth of the distinct vectors is held out, of forty or more: every so many
    steps the log says how likely they are, and the state in which they were likeliest is kept; without any, the
    last. That flow is held to its inverse in float64.

    Args:
        vectors: distinct ones, shape (n, d).
        rows: for each sentence the row of its vector: one that stands several times counts so often.
        shape: of the flow.
        descent: how to train.
        progress: told of the steps.

    Returns:
        The flow in float64, and a line a step, with `step`, `nll` (negative log-likelihood of the batch before
        the step, in nats a dimension), `kept` (whether the flow is as it was then) and, of some steps, `held_out`
        (of the held-out vectors).

    Raises:
        UserError: if the vectors do not differ or have one dimension, or the likelihood does not stay finite.
    """
    if vectors.shape[1] < 2:
        raise UserError("a flow moves one half of the dimensions by the other: these vectors have one.")
    if len(vectors) < 2 or not (vectors != vectors[0]).any():
        raise UserError(f"a flow needs vectors that differ: those of the {len(rows)} sentences are equal.")
    chance = np.random.default_rng(descent.seed)
    count = len(vectors)
    most = min(count // _HELD_OUT_SHARE, _MOST_HELD_OUT) if count >= _FEWEST else 0
    held_out = np.sort(chance.permutation(count)[:most]).astype(np.int64)
    train = rows[~np.isin(rows, held_out)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(descent.seed)
        flow = Flow(shape)
    everything = torch.from_numpy(vectors)
    flow.start(everything[chance.permutation(train)[:_MOST_TO_START_WITH]])
    optimiser = torch.optim.Adam(flow.parameters(), lr=descent.learning_rate)
    steps = descent.steps or math.ceil(len(train) / descent.batch)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    log: list[dict[str, Any]] = []
    looks = set(np.linspace(0, steps, _LOOKS + 1).astype(int).tolist()) if len(held_out) else {steps}
    order, kept, best = np.empty(0, dtype=np.int64), steps, np.inf
    state: dict[str, Tensor] = {}
    for step in range(steps + 1):
        while len(order) < descent.batch:
            order = np.concatenate([order, chance.permutation(train)])
        batch, order = order[: descent.batch], order[descent.batch :]
        loss = -flow.log_likelihood(everything[batch]).mean() / shape.dimensions
        line: dict[str, Any] = {"step": step, "nll": float(loss.detach()), "kept": False}
        if step in looks and len(held_out):
            with torch.no_grad():
                likelihoods = flow.log_likelihood(everything[held_out]).double()
            line["held_out"] = float(-likelihoods.mean() / shape.dimensions)
        if not np.isfinite(list(line.values())).all():
            raise UserError(
                f"the likelihood is no longer finite at step {step}: choose a smaller --learning-rate or --depth."
            )
        log.append(line)
        progress("fitting", step, steps)
        if step in looks and line.get("held_out", -np.inf) < best:
            kept, best = step, line.get("held_out", -np.inf)
            state = copy.deepcopy(flow.state_dict())
        if step < steps:
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            rate.step()
    log[kept]["kept"] = True
    flow.load_state_dict(state)
    flow = flow.double().eval()
    _demand_inverse(flow, everything[train[: descent.batch]].double())
    return flow, log


def notes_on(log: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what the person should know of a training, by its log: that it overfits, or that nothing shows it."""
    kept, last = next(line for line in log if line["kept"]), log[-1]
    if "held_out" not in kept:
        return ("There are too few distinct sentences to hold some out: nothing shows whether it overfits.",)
    if kept["step"] == last["step"]:
        return ()
    return (
        f"Vectors held out became less likely after step {kept['step']} of {last['step']} (NLL "
        f"{kept['held_out']:.3f}, {last['held_out']:.3f} at the end), whose flow is kept: fit on more sentences, "
        "or take fewer --steps.",
    )


@torch.no_grad()
def _demand_inverse(flow: Flow, vectors: Tensor) -> None:
    """Raise unless the flow leads back to where it came from."""
    lost = float((flow.inverse(flow(vectors)[0]) - vectors).abs().max() / vectors.abs().max())
    if not lost < _EXACT:
        raise UserError(
            f"the flow that was fitted cannot be inverted (it loses {lost:.1g} of a vector's size): choose a "
            "smaller --learning-rate or --depth."
        )
