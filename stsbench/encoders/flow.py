"""A flow: an invertible map of vectors with a known Jacobian determinant, trained by maximum likelihood.

A small Glow (Kingma and Dhariwal, 2018) on vectors, as in BERT-flow (Li et al., 2020). A step is an actnorm, a
permutation of the dimensions and a coupling of the two halves. As in the papers: actnorm is initialised so that
training vectors get mean 0 and variance 1 (Glow, 3.1), the last layer of a coupling starts at zero (3.3), and
latents are standard normal. As in BERT-flow's public code (bohanli/BERT-flow, flow/config/config_l3_d3_w32.json):
permutations instead of invertible 1x1 convolutions, and additive couplings.

Differences here: one level, so no dimension leaves early; fixed permutations; fully connected couplings.
"""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.encoders.protocol import FloatMatrix

_ROWS_AT_ONCE = 4096
# Dimensions with a smaller share of the largest standard deviation are rounding noise, as in `fitted`.
_NOISE = 1e-4

_FEWEST = 40
# Every _HELD_OUT_SHARE-th distinct vector is held out, to detect overfitting.
_HELD_OUT_SHARE, _MOST_HELD_OUT = 20, 1000
_LOOKS = 20
_MOST_TO_START_WITH = 8192


@dataclass(frozen=True)
class FlowSettings:
    """The architecture of a flow, and how its likelihood is maximised: Adam on batches of shuffled sentences.

    Attributes:
        depth: number of steps of the flow.
        width: of the two hidden layers of a coupling.
        steps: of the optimiser; None for one pass over the sentences, as in BERT-flow.
        learning_rate: of Adam, decaying to zero as a half cosine; 1e-3 as in BERT-flow's public command.
        batch: sentences per step of the optimiser.
        seed: of weights, permutations, held-out sentences and order.
    """

    depth: int = 6
    width: int = 256
    steps: int | None = None
    learning_rate: float = 1e-3
    batch: int = 256
    seed: int = 42


class _Step(nn.Module):
    """y = permute(e^s (x + b)), then the second half is shifted by a function of the first."""

    permutation: Tensor

    def __init__(self, dimensions: int, settings: FlowSettings) -> None:
        super().__init__()
        self.passed = dimensions // 2
        self.bias = nn.Parameter(torch.zeros(dimensions))
        self.log_scale = nn.Parameter(torch.zeros(dimensions))
        self.register_buffer("permutation", torch.randperm(dimensions))
        self.network = nn.Sequential(
            nn.Linear(self.passed, settings.width),
            nn.ReLU(),
            nn.Linear(settings.width, settings.width),
            nn.ReLU(),
            last := nn.Linear(settings.width, dimensions - self.passed),
        )
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        vectors = ((vectors + self.bias) * self.log_scale.exp())[:, self.permutation]
        first, second = vectors[:, : self.passed], vectors[:, self.passed :]
        return torch.cat([first, second + self.network(first)], dim=1)

    @torch.no_grad()
    def start(self, vectors: Tensor) -> None:
        """Initialises the actnorm so that these vectors get mean 0 and variance 1 in each dimension."""
        spread = vectors.std(dim=0, correction=0)
        # Dimensions that hardly vary are not scaled up to the others.
        spread = torch.where(spread > _NOISE * spread.max(), spread, spread.max())
        self.bias.copy_(-vectors.mean(dim=0))
        self.log_scale.copy_(-spread.log())


class Flow(nn.Module):
    """The map f from vectors to latents of the same dimensions.

    Args:
        dimensions: of the vectors, at least 2.
        settings: its architecture. Weights and permutations are drawn by torch's generator.

    >>> flow = Flow(4, FlowSettings(depth=2, width=8))
    >>> tuple(flow(torch.randn(3, 4)).shape), float(flow.log_determinant)
    ((3, 4), 0.0)
    """

    def __init__(self, dimensions: int, settings: FlowSettings) -> None:
        super().__init__()
        self.dimensions = dimensions
        self.steps: Any = nn.ModuleList(_Step(dimensions, settings) for _ in range(settings.depth))

    def forward(self, vectors: Tensor) -> Tensor:
        """Returns f(x) of each row, shape (rows, dimensions)."""
        for step in self.steps:
            vectors = step(vectors)
        return vectors

    @property
    def log_determinant(self) -> Tensor:
        """`log |det df/dx|`, the same for all x because couplings are additive."""
        total: Tensor = sum(step.log_scale.sum() for step in self.steps)
        return total

    @torch.no_grad()
    def start(self, vectors: Tensor) -> None:
        """Initialises the actnorms in order, from these vectors (Glow, 3.1)."""
        for step in self.steps:
            step.start(vectors)
            vectors = step(vectors)

    def log_likelihood(self, vectors: Tensor) -> Tensor:
        """Returns log p(x) = log N(f(x); 0, I) + `log |det df/dx|` of each row, in nats."""
        constant = 0.5 * self.dimensions * math.log(2 * math.pi)
        result: Tensor = self.log_determinant - 0.5 * self(vectors).square().sum(dim=1) - constant
        return result


def flow_of(dimensions: int, settings: FlowSettings, parameters: Mapping[str, NDArray[Any]]) -> Flow:
    """Returns the flow with these parameters, in float64."""
    with torch.random.fork_rng(devices=[]):
        flow = Flow(dimensions, settings)
    flow.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in parameters.items()})
    return flow.double().eval()


def apply_flow(flow: Flow, vectors: FloatMatrix) -> NDArray[np.float64]:
    """Returns f(x) of each row, in float64, so that it does not depend on the other rows.

    Args:
        flow: in float64.
        vectors: shape (rows, dimensions).
    """
    latents = np.empty(vectors.shape, dtype=np.float64)
    with torch.inference_mode():
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            block = vectors[start : start + _ROWS_AT_ONCE].astype(np.float64)
            latents[start : start + _ROWS_AT_ONCE] = flow(torch.from_numpy(block)).numpy()
    return latents


def fit_flow(
    vectors: FloatMatrix, rows: NDArray[np.int64], settings: FlowSettings, progress: Progress = silent
) -> tuple[Flow, list[dict[str, Any]]]:
    """Trains a flow by maximum likelihood.

    Weights are float32. 5 % of the distinct vectors are held out; the state with their best likelihood is kept.

    Args:
        vectors: distinct vectors, shape (n, d).
        rows: for each sentence the row of its vector; repeated sentences count repeatedly.
        settings: of the flow and its training.
        progress: called with the steps.

    Returns:
        The flow in float64, and one line per step with `step`, `nll` (negative log-likelihood of the batch before
        the step, in nats per dimension), `kept` (whether this state is returned) and, for some steps, `held_out`.

    Raises:
        UserError: if there are fewer than 40 vectors, they are equal or have one dimension, or the likelihood
            becomes infinite.
    """
    count, dimensions = vectors.shape
    if dimensions < 2:
        raise UserError("a flow needs vectors of two or more dimensions: these have one.")
    if count < _FEWEST or not (vectors != vectors[0]).any():
        raise UserError(f"a flow needs {_FEWEST} or more different vectors: fit it on more sentences.")
    chance = np.random.default_rng(settings.seed)
    held_out = np.sort(chance.permutation(count)[: min(count // _HELD_OUT_SHARE, _MOST_HELD_OUT)])
    train = rows[~np.isin(rows, held_out)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        flow = Flow(dimensions, settings)
    everything = torch.from_numpy(vectors)
    flow.start(everything[chance.permutation(train)[:_MOST_TO_START_WITH]])
    optimiser = torch.optim.Adam(flow.parameters(), lr=settings.learning_rate)
    steps = settings.steps or math.ceil(len(train) / settings.batch)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    log: list[dict[str, Any]] = []
    looks = set(np.linspace(0, steps, _LOOKS + 1).astype(int).tolist())
    kept, best, state = 0, np.inf, dict[str, Tensor]()
    for step, batch in zip(range(steps + 1), _batches(train, settings.batch, chance), strict=False):
        loss = -flow.log_likelihood(everything[batch]).mean() / dimensions
        line: dict[str, Any] = {"step": step, "nll": float(loss.detach()), "kept": False}
        if step in looks:
            with torch.no_grad():
                likelihoods = flow.log_likelihood(everything[held_out]).double()
            line["held_out"] = float(-likelihoods.mean() / dimensions)
        if not np.isfinite(list(line.values())).all():
            raise UserError(f"the likelihood is infinite at step {step}: use a smaller --learning-rate.")
        log.append(line)
        progress("fitting", step, steps)
        if line.get("held_out", np.inf) < best:
            kept, best, state = step, line["held_out"], copy.deepcopy(flow.state_dict())
        if step < steps:
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            rate.step()
    log[kept]["kept"] = True
    flow.load_state_dict(state)
    return flow.double().eval(), log


def _batches(rows: NDArray[np.int64], size: int, chance: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yields batches of shuffled rows without end; a batch may span two passes."""
    order = np.empty(0, dtype=np.int64)
    while True:
        while len(order) < size:
            order = np.concatenate([order, chance.permutation(rows)])
        yield order[:size]
        order = order[size:]


def notes_on(log: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Returns a note on overfitting, from the log of a training."""
    kept, last = next(line for line in log if line["kept"]), log[-1]
    if kept["step"] == last["step"]:
        return ()
    return (
        f"Held-out vectors became less likely after step {kept['step']} of {last['step']} (NLL "
        f"{kept['held_out']:.3f}, {last['held_out']:.3f} at the end); that state is kept. Fit on more sentences, "
        "or use fewer --steps.",
    )
