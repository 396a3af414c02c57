"""The training of a flow by maximum likelihood, on vectors that stay as they are."""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.encoders.fitted.flow import Flow, FlowShape
from stsbench.encoders.protocol import FloatMatrix

# Of the distinct vectors, one in so many is held out to see whether the likelihood holds for others; not of few.
_HELD_OUT_SHARE, _MOST_HELD_OUT, _FEWEST = 20, 1000, 40
_LOOKS = 20
_MOST_TO_START_WITH = 8192
# Of the largest number of a vector: what going there and back may lose in float64.
_EXACT = 1e-6


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

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return asdict(self)


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
    held_out = _held_out(len(vectors), chance)
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
    state: dict[str, torch.Tensor] = {}
    for step in range(steps + 1):
        while len(order) < descent.batch:
            order = np.concatenate([order, chance.permutation(train)])
        batch, order = order[: descent.batch], order[descent.batch :]
        loss = -flow.log_likelihood(everything[batch]).mean() / shape.dimensions
        line: dict[str, Any] = {"step": step, "nll": float(loss.detach()), "kept": False}
        if step in looks and len(held_out):
            line["held_out"] = _nll(flow, everything[held_out])
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


def _held_out(count: int, chance: np.random.Generator) -> NDArray[np.int64]:
    wanted = min(count // _HELD_OUT_SHARE, _MOST_HELD_OUT) if count >= _FEWEST else 0
    return np.sort(chance.permutation(count)[:wanted]).astype(np.int64)


@torch.no_grad()
def _nll(flow: Flow, vectors: torch.Tensor) -> float:
    return float(-flow.log_likelihood(vectors).double().mean() / flow.shape.dimensions)


@torch.no_grad()
def _demand_inverse(flow: Flow, vectors: torch.Tensor) -> None:
    """Raise unless the flow leads back to where it came from.

    Raises:
        UserError: if it has become so steep that float64 does not hold it.
    """
    lost = float((flow.inverse(flow(vectors)[0]) - vectors).abs().max() / vectors.abs().max())
    if not lost < _EXACT:
        raise UserError(
            f"the flow that was fitted cannot be inverted (it loses {lost:.1g} of a vector's size): choose a "
            "smaller --learning-rate or --depth."
        )
