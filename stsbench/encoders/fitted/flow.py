"""A flow: an invertible map of vectors whose Jacobian's determinant is known, so that a likelihood can be taken.

It is a small Glow (Kingma and Dhariwal, 2018) on vectors, as BERT-flow has it (Li et al., 2020): a step is an
actnorm, a mixing of the dimensions, and a coupling of one half with the other.

From the papers: actnorm whose first values make the training vectors of mean 0 and variance 1 (Glow, 3.1); the
affine coupling, whose last layer starts at zero, so that each starts as the identity (3.3); the standard normal as
the latents' density. From BERT-flow's public code (bohanli/BERT-flow, flow/config/config_l3_d3_w32.json):
permutations in place of invertible 1x1 convolutions, and couplings that shift and do not scale, the default here.

Ours: no levels, so that no dimension leaves early; a drawn permutation stays as it is; fully connected layers in
the coupling; a scale's logarithm is bounded by `LIMIT` through a hyperbolic tangent, where Glow has a sigmoid.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stsbench.encoders.protocol import FloatMatrix

Coupling = Literal["affine", "additive"]

LIMIT = 2.0
"""No coupling scales by more than e to this, or less than e to minus this."""

_ROWS_AT_ONCE = 4096
# A dimension with a smaller share of the largest standard deviation is rounding noise, as in `postprocess`.
_NOISE = 1e-4


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

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return asdict(self)


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
        said = self.network(first)
        if not self.is_affine:
            return said, torch.zeros_like(said)
        shift, raw = said.chunk(2, dim=1)
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
