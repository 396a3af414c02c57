"""SentEval's PyTorch classifier: a net with Adam and early stopping, trained for many folds at once.

The SimCSE papers report its accuracies. They are noisy: a different seed changes them by tenths of a point, and so
do other hardware and other versions of PyTorch, because rounding decides when a net stops.

SentEval gives every net the same seed. Nets with equally many training rows therefore start from the same weights
and draw the same permutations, and train side by side: one product per layer serves all folds and regularisers.
The loss is the mean over the batch, as in SentEval with PyTorch 0.4.1 or newer (which ignores `size_average`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.scoring.classifiers import Design, Features, Fold, Rows

if TYPE_CHECKING:
    import torch

_OPTIMIZERS = ("Adadelta", "Adagrad", "Adam", "Adamax", "ASGD", "RMSprop", "Rprop", "SGD")
"""PyTorch's names; SentEval writes them in lower case."""

_HELD_OUT = 0.05
"""Without a dev set, a final fit holds out this share of its training rows to stop early."""


@dataclass(frozen=True)
class NetSettings:
    """The net and its training, with SentEval's names and defaults.

    Attributes:
        nhid: number of hidden units; 0 for logistic regression.
        optim: the optimiser and its options, for example `adam` or `sgd,lr=0.1`.
        batch_size: rows per step.
        tenacity: number of checks without a better dev accuracy that are allowed in all; the next one stops.
        epoch_size: passes over the training rows between two checks.
        max_epoch: training stops at the first check after this many passes.
        dropout: probability of dropping a hidden unit.
    """

    nhid: int = 0
    optim: str = "adam"
    batch_size: int = 64
    tenacity: int = 5
    epoch_size: int = 4
    max_epoch: int = 200
    dropout: float = 0.0


@dataclass
class Mlp:
    """SentEval's net as a classifier of the transfer tasks. The seed sets the weights and the order of rows."""

    settings: NetSettings = field(default_factory=NetSettings)
    seed: int = 1111
    device: str = "cpu"

    notes: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        optimizer = self.settings.optim.partition(",")[0]
        hidden = f"-nhid{self.settings.nhid}" if self.settings.nhid else ""
        return f"mlp-{optimizer}{hidden}"

    def grid(self, _design: Design) -> tuple[float, ...]:
        return (1e-5, 1e-4, 1e-3, 1e-2)

    def predict(
        self, x: Features, y: Rows, classes: int, folds: Sequence[Fold], regularisers: Sequence[Sequence[float]]
    ) -> list[NDArray[np.int16]]:
        """Returns each fold's (held-out rows, regularisers) predictions, at the best accuracy on dev.

        A fold without a dev set holds out 5 % of its training rows. Folds of one size train together.
        """
        import torch

        inputs = torch.as_tensor(np.ascontiguousarray(x, dtype=np.float32), device=self.device)
        labels = torch.as_tensor(y, device=self.device)
        plans = [self._plan(fold, tuple(grid)) for fold, grid in zip(folds, regularisers, strict=True)]
        by_size: dict[tuple[int, int], list[int]] = {}
        for number, plan in enumerate(plans):
            by_size.setdefault((len(plan.train), plan.drawn), []).append(number)
        predictions: dict[int, NDArray[np.int16]] = {}
        with torch.random.fork_rng(devices=[] if self.device == "cpu" else None):
            for numbers in by_size.values():
                nets = _Nets(inputs, labels, classes, [plans[number] for number in numbers], self)
                predictions |= dict(zip(numbers, nets.train(), strict=True))
        return [predictions[number] for number in range(len(plans))]

    def _plan(self, fold: Fold, regularisers: tuple[float, ...]) -> "_Plan":
        if fold.dev is not None:
            return _Plan(fold.train, fold.dev, fold.held_out, regularisers)
        order = np.random.RandomState(self.seed).permutation(len(fold.train))
        # The original divides by zero if the dev set is empty.
        held = max(int(_HELD_OUT * len(fold.train)), 1)
        dev, train = fold.train[order[:held]], fold.train[order[held:]]
        return _Plan(train, dev, fold.held_out, regularisers, drawn=len(fold.train))


@dataclass(frozen=True)
class _Plan:
    """Nets that share their rows, one per regulariser.

    `drawn` is the length of the permutation that split off the dev rows (0 for none), drawn from the same random
    stream as the order of the rows.
    """

    train: Rows
    dev: Rows
    predict: Rows
    regularisers: tuple[float, ...]
    drawn: int = 0


class _Nets:
    """Nets that train in step: f plans with equally many rows, r regularisers each.

    Parameters have the shapes (f, d, r, o) and (f, 1, r, o) for the first layer, (f, r, h, k) and (f, 1, r, k)
    for the second.
    """

    def __init__(
        self, x: "torch.Tensor", y: "torch.Tensor", classes: int, plans: Sequence[_Plan], classifier: Mlp
    ) -> None:
        import torch

        self.x, self.y, self.plans, self.settings = x, y, plans, classifier.settings
        self.stream = np.random.RandomState(classifier.seed)
        if plans[0].drawn:
            self.stream.permutation(plans[0].drawn)
        self.rows = torch.as_tensor(np.stack([plan.train for plan in plans]), device=x.device)
        self.decay = torch.tensor([plan.regularisers for plan in plans], dtype=torch.float32, device=x.device)
        torch.manual_seed(classifier.seed)
        self.parameters = [
            layer.to(x.device).requires_grad_()
            for layer in _initial(x.shape[1], self.settings.nhid, classes, *self.decay.shape)
        ]
        self.optimizer = make_optimizer(self.settings.optim, self.parameters)

    def train(self) -> list[NDArray[np.int16]]:
        """Trains all nets; returns for each plan its (rows to predict, r) predictions at the best dev accuracy."""
        shape = tuple(self.decay.shape)
        best, misses = np.full(shape, -1.0), np.zeros(shape, dtype=np.int64)
        running = np.ones(shape, dtype=bool)
        predictions = [np.zeros((len(plan.predict), shape[1]), dtype=np.int16) for plan in self.plans]
        active, passes = np.arange(shape[0]), 0
        while len(active) and passes <= self.settings.max_epoch:
            for _ in range(self.settings.epoch_size):
                self._one_pass()
            passes += self.settings.epoch_size
            for place, number in enumerate(active.tolist()):
                plan = self.plans[number]
                actual = self.y[plan.dev.tolist()].cpu().numpy()
                accuracy = (self._classes(place, plan.dev) == actual[:, None]).mean(axis=0)
                better = running[number] & (accuracy > best[number])
                if better.any():
                    predictions[number][:, better] = self._classes(place, plan.predict)[:, better]
                    best[number][better] = accuracy[better]
                worse = running[number] & ~better
                running[number][worse & (misses[number] >= self.settings.tenacity)] = False
                misses[number][worse] += 1
            still_running = running[active].any(axis=1)
            if not still_running.all():
                active = active[still_running]
                self._keep(np.flatnonzero(still_running))
        return predictions

    def _one_pass(self) -> None:
        import torch
        from torch.nn import functional

        order = torch.as_tensor(self.stream.permutation(self.rows.shape[1]), device=self.rows.device)
        for rows in self.rows[:, order].split(self.settings.batch_size, dim=1):  # type: ignore[no-untyped-call]
            logits = self._logits(self.x[rows], self.parameters, self.settings.dropout)
            targets = self.y[rows][:, :, None].expand(logits.shape[:3])
            loss = functional.cross_entropy(logits.flatten(0, 2), targets.flatten(), reduction="sum")
            gradients = torch.autograd.grad(loss / rows.shape[1], self.parameters)
            for layer, (parameter, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
                # The optimiser's own weight decay, with one value per net. The weights of the second layer have
                # the regularisers' axis in front of the hidden units'.
                decay = self.decay[:, :, None, None] if layer == 2 else self.decay[:, None, :, None]
                parameter.grad = gradient + decay * parameter.detach()
            self.optimizer.step()

    def _logits(
        self, x: "torch.Tensor", parameters: "Sequence[torch.Tensor]", dropout: float = 0.0
    ) -> "torch.Tensor":
        """Returns the (f, b, r, k) outputs of the nets for (f, b, d) inputs."""
        import torch
        from torch.nn import functional

        first, bias, *second = parameters
        outputs = torch.bmm(x, first.flatten(2)).view(*x.shape[:2], *first.shape[2:]) + bias
        if not second:
            return outputs
        if dropout:
            # Every net draws the same mask, because SentEval seeds them alike.
            mask = functional.dropout(torch.ones(outputs.shape[1], outputs.shape[3], device=x.device), dropout)
            outputs = outputs * mask.unsqueeze(1)
        weights, last = second
        logits: torch.Tensor = torch.einsum("fbrh,frhk->fbrk", outputs.sigmoid(), weights) + last
        return logits

    def _classes(self, place: int, rows: Rows) -> NDArray[np.int16]:
        """Returns the (rows, r) classes predicted by the nets of one plan."""
        import torch

        with torch.no_grad():
            inputs = self.x[torch.as_tensor(rows, device=self.x.device)][None]
            logits = self._logits(inputs, [parameter[place : place + 1] for parameter in self.parameters])[0]
        classes: NDArray[np.int16] = logits.argmax(dim=2).cpu().numpy().astype(np.int16)
        return classes

    def _keep(self, places: NDArray[np.int64]) -> None:
        """Drops the plans that have stopped, with their share of the optimiser's state."""
        import torch

        keep = torch.as_tensor(places, device=self.x.device)
        self.rows, self.decay = self.rows[keep], self.decay[keep]
        before, states = self.parameters, self.optimizer.state
        self.parameters = [parameter.detach()[keep].requires_grad_() for parameter in before]
        self.optimizer = make_optimizer(self.settings.optim, self.parameters)
        for old, new in zip(before, self.parameters, strict=True):
            self.optimizer.state[new] = {
                name: value[keep] if getattr(value, "shape", None) == old.shape else value
                for name, value in states[old].items()
            }


def net_settings(options: dict[str, Any]) -> NetSettings:
    """Returns the settings in SentEval's `classifier` dictionary.

    >>> net_settings({"nhid": 0, "optim": "rmsprop", "tenacity": 3}).tenacity
    3
    """
    unknown = [name for name in options if name not in NetSettings.__dataclass_fields__]
    if unknown:
        known = ", ".join(NetSettings.__dataclass_fields__)
        raise UserError(f"unknown classifier option {unknown[0]!r}: choose from {known}.")
    return replace(NetSettings(), **options)


def make_optimizer(options: str, parameters: "Sequence[torch.Tensor]") -> "torch.optim.Optimizer":
    """Returns the optimiser in SentEval's notation: `adam`, `sgd,lr=0.1`."""
    import torch

    name, *pairs = options.replace(" ", "").split(",")
    classes = {known.lower(): known for known in _OPTIMIZERS}
    if name not in classes:
        raise UserError(f"unknown optimizer {name!r}: {suggestion(name, classes)}")
    try:
        values = {key: float(value) for key, value in (pair.split("=") for pair in pairs)}
        optimizer: torch.optim.Optimizer = getattr(torch.optim, classes[name])(list(parameters), **values)
    except (TypeError, ValueError) as error:
        raise UserError(f"cannot use the optimizer {options!r}: {error}.") from error
    return optimizer


def _initial(inputs: int, hidden: int, classes: int, plans: int, regularisers: int) -> "list[torch.Tensor]":
    """Returns the initial parameters of PyTorch's layers, the same for every net."""
    import torch

    def spread(values: "torch.Tensor", shape: tuple[int, ...]) -> "torch.Tensor":
        # A plain clone would keep the strides of the expanded tensor, and every product would copy it.
        return values.detach().expand(shape).clone(memory_format=torch.contiguous_format)

    first = torch.nn.Linear(inputs, hidden or classes)
    width = hidden or classes
    layers = [
        spread(first.weight.T[None, :, None], (plans, inputs, regularisers, width)),
        spread(first.bias[None, None, None], (plans, 1, regularisers, width)),
    ]
    if hidden:
        second = torch.nn.Linear(hidden, classes)
        layers += [
            spread(second.weight.T[None, None], (plans, regularisers, hidden, classes)),
            spread(second.bias[None, None, None], (plans, 1, regularisers, classes)),
        ]
    return layers
