"""SentEval's PyTorch classifier: a net with Adam and early stopping, many at a time.

The numbers in the SimCSE papers come from it. They are noisy: a different seed moves them by tenths, and so do
other hardware and other versions of PyTorch, because rounding decides when a net stops.

SentEval seeds every net alike. So nets with equally many training rows start from the same weights and draw
the same permutations of their rows, and can be trained side by side: one product for each layer serves all
folds and regularisers. No library offers that, and so this net is ours. The loss is the mean over the batch (as
with every PyTorch since 0.4.1, which does not look at the `size_average` that SentEval sets afterwards).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.scoring.classifiers import UNSEEN, Design, Features, FinalFit, Fold, Rows
from stsbench.statistics.threads import in_torch_threads

if TYPE_CHECKING:
    import torch

_OPTIMIZERS = ("Adadelta", "Adagrad", "Adam", "Adamax", "ASGD", "RMSprop", "Rprop", "SGD")
"""PyTorch's names; SentEval's are in lower case."""

_HELD_OUT = 0.05
"""The share of a final fit's training rows that it stops early by, where there is no dev set."""

_SIDE_BY_SIDE = 50
"""Plans that train in step at most: of more, calls weigh less; of fewer, a step's numbers stay in the cache."""

_VECTOR = 64
"""A multiple of how many numbers any processor's vectors hold."""


@dataclass(frozen=True)
class NetSettings:
    """The net and its training, by SentEval's names and defaults.

    Attributes:
        nhid: hidden units; 0 for logistic regression.
        optim: the optimiser with its options, for example `adam` or `sgd,lr=0.1`.
        batch_size: rows of a step.
        tenacity: how many checks without a better dev accuracy are forgiven in all; the next one ends it.
        epoch_size: passes over the training rows between two checks.
        max_epoch: no check is followed by another pass once more passes than this were made.
        dropout: of the hidden units.
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
    """SentEval's net as a classifier of the transfer tasks; the seed is of weights and order of rows."""

    settings: NetSettings = field(default_factory=NetSettings)
    seed: int = 1111
    device: str = "cpu"

    @property
    def name(self) -> str:
        optimizer = self.settings.optim.partition(",")[0]
        hidden = f"-nhid{self.settings.nhid}" if self.settings.nhid else ""
        return f"mlp-{optimizer}{hidden}"

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def grid(self, _design: Design) -> tuple[float, ...]:
        return (1e-5, 1e-4, 1e-3, 1e-2)

    def validate(
        self, x: Features, y: Rows, classes: int, folds: Sequence[Fold], grid: Sequence[float]
    ) -> NDArray[np.int16]:
        """Return the (n, f, c) predictions of the rows held out by each fold, at the best dev accuracy."""
        predictions = np.full((len(x), len(folds), len(grid)), UNSEEN, dtype=np.int16)
        plans = [_Plan(fold.train, fold.held_out, fold.held_out, tuple(grid)) for fold in folds]
        for column, of_fold in enumerate(self._train(x, y, classes, plans)):
            predictions[folds[column].held_out, column] = of_fold
        return predictions

    def predict(self, x: Features, y: Rows, classes: int, fits: Sequence[FinalFit]) -> list[NDArray[np.int16]]:
        """Return each fit's predictions; without a dev set a fit holds out 5 % of its rows to stop by."""
        plans = [self._with_dev(fit) for fit in fits]
        return [of_fit[:, 0] for of_fit in self._train(x, y, classes, plans)]

    def _with_dev(self, fit: FinalFit) -> "_Plan":
        if fit.dev is not None:
            return _Plan(fit.train, fit.dev, fit.predict, (fit.regulariser,))
        order = np.random.RandomState(self.seed).permutation(len(fit.train))
        # A dev set of no rows would be a division by zero in the original.
        held = max(int(_HELD_OUT * len(fit.train)), 1)
        dev, train = fit.train[order[:held]], fit.train[order[held:]]
        return _Plan(train, dev, fit.predict, (fit.regulariser,), drawn=len(fit.train))

    def _train(self, x: Features, y: Rows, classes: int, plans: "Sequence[_Plan]") -> list[NDArray[np.int16]]:
        """Return each plan's (rows to predict, regularisers) predictions, plans of a size side by side."""
        import torch

        inputs = torch.as_tensor(np.ascontiguousarray(x, dtype=np.float32), device=self.device)
        labels = torch.as_tensor(y, device=self.device)
        sizes: dict[tuple[int, int], list[int]] = {}
        for number, plan in enumerate(plans):
            sizes.setdefault((len(plan.train), plan.drawn), []).append(number)
        blocks = [
            numbers[start : start + _SIDE_BY_SIDE]
            for numbers in sizes.values()
            for start in range(0, len(numbers), _SIDE_BY_SIDE)
        ]

        def block(numbers: list[int]) -> _Batch:
            return _Batch(inputs, labels, classes, [plans[number] for number in numbers], self)

        found: dict[int, NDArray[np.int16]] = {}
        with torch.random.fork_rng(devices=[] if self.device == "cpu" else None):
            if self.device == "cpu" and not self.settings.dropout:
                # A step is too small to be shared out between cores; a block is not.
                trained = in_torch_threads(_Batch.run, [block(numbers) for numbers in blocks])
            else:
                # Dropout draws from the one stream that a block is seeded by when it is made.
                trained = (block(numbers).run() for numbers in blocks)
            for numbers, predictions in zip(blocks, trained, strict=True):
                found.update(zip(numbers, predictions, strict=True))
        return [found[number] for number in range(len(plans))]


@dataclass(frozen=True)
class _Plan:
    """Nets that share their rows: one for each regulariser.

    `drawn`: the length of the permutation that split off the dev rows, 0 for none; it comes out of the same
    stream as the order of the rows.
    """

    train: Rows
    dev: Rows
    predict: Rows
    regularisers: tuple[float, ...]
    drawn: int = 0


class _Batch:
    """Nets that train in step: f plans of equally many rows, r regularisers each.

    Parameters have the shapes (f, d, r, o) and (f, 1, r, o) for the first layer, (f, r, h, k) and (f, 1, r, k)
    for the second.
    """

    def __init__(
        self, x: "torch.Tensor", y: "torch.Tensor", classes: int, plans: Sequence[_Plan], classifier: Mlp
    ) -> None:
        import torch

        self.x, self.y, self.plans, self.settings = x, y, list(plans), classifier.settings
        self.stream = np.random.RandomState(classifier.seed)
        if plans[0].drawn:
            self.stream.permutation(plans[0].drawn)
        self.rows = torch.as_tensor(np.stack([plan.train for plan in plans]), device=x.device)
        self.decay = torch.tensor([plan.regularisers for plan in plans], dtype=torch.float32, device=x.device)
        torch.manual_seed(classifier.seed)
        self._hold(_initial(x.shape[1], self.settings.nhid, classes, *self.decay.shape))

    def _hold(self, layers: "Sequence[torch.Tensor]") -> None:
        """Take these weights, in one piece of memory, so that the optimiser makes one call and not one a layer."""
        import torch

        self.shapes = [layer.shape for layer in layers]
        self.weights = _joined(layers).to(self.x.device).requires_grad_()
        self.weights.grad = torch.zeros_like(self.weights)
        self.parameters, self._slopes = self._parts(self.weights.detach()), self._parts(self.weights.grad)
        is_plain = self.settings.optim.strip() == "adam"
        self.optimizer = Adam(self.weights) if is_plain else make_optimizer(self.settings.optim, [self.weights])
        decays = [self.decay[:, None, :, None]] * len(layers)
        if len(layers) == 4:
            # The regularisers' axis is the second of the output layer's weights, else the third.
            decays[2] = self.decay[:, :, None, None]
        # In full, as that multiplies faster.
        self._decay = _joined([value.expand(shape) for value, shape in zip(decays, self.shapes, strict=True)])
        self._product = torch.empty_like(self._decay)
        self._inputs = self.x.new_empty(len(self.rows) * self.settings.batch_size, self.x.shape[1])

    def _parts(self, joined: "torch.Tensor") -> "list[torch.Tensor]":
        """Return the layers' views of what has a number for each weight."""
        pieces = joined.split([shape.numel() for shape in self.shapes])  # type: ignore[no-untyped-call]
        return [piece.view(shape) for piece, shape in zip(pieces, self.shapes, strict=True)]

    def run(self) -> list[NDArray[np.int16]]:
        """Train all nets; return for each plan its (rows to predict, r) predictions at the best dev accuracy."""
        shape = tuple(self.decay.shape)
        best, spent = np.full(shape, -1.0), np.zeros(shape, dtype=np.int64)
        running = np.ones(shape, dtype=bool)
        predictions = [np.full((len(plan.predict), shape[1]), UNSEEN, dtype=np.int16) for plan in self.plans]
        active, passes = np.arange(shape[0]), 0
        while len(active) and passes <= self.settings.max_epoch:
            for _ in range(self.settings.epoch_size):
                self._one_pass()
            passes += self.settings.epoch_size
            for place, number in enumerate(active):
                plan = self.plans[number]
                accuracy = self._accuracy(place, plan.dev)
                better = running[number] & (accuracy > best[number])
                if better.any():
                    predictions[number][:, better] = self._classes(place, plan.predict)[:, better]
                    best[number][better] = accuracy[better]
                worse = running[number] & ~better
                running[number][worse & (spent[number] >= self.settings.tenacity)] = False
                spent[number][worse] += 1
            going = running[active].any(axis=1)
            if not going.all():
                active = active[going]
                self._keep(np.flatnonzero(going))
        return predictions

    def _one_pass(self) -> None:
        import torch

        size, f = self.settings.batch_size, len(self.rows)
        order = torch.as_tensor(self.stream.permutation(self.rows.shape[1]), device=self.rows.device)
        # In the order of their use, so that a batch's rows lie side by side.
        rows = self.rows[:, order]
        for start in range(0, len(order), size):
            flat = rows[:, start : start + size].flatten()
            inputs = self._inputs[: len(flat)]
            torch.index_select(self.x, 0, flat, out=inputs)
            x = inputs.view(f, -1, self.x.shape[1])
            targets = self.y.index_select(0, flat).view(f, -1)
            if len(self.parameters) == 2:
                self._slope(x, targets)
            else:
                self._slope_by_autograd(x, targets)
            # The optimiser's own weight decay, for each net its own.
            if self.weights.grad is not None:
                self.weights.grad += torch.mul(self.weights.detach(), self._decay, out=self._product)
            self.optimizer.step()

    def _slope(self, x: "torch.Tensor", targets: "torch.Tensor") -> None:
        """Compute the gradient of the mean loss of a batch by the parameters of nets without hidden units.

        Args:
            x: (f, b, d) inputs.
            targets: (f, b) classes.
        """
        import torch

        slope = loss_slope(self._logits(x, self.parameters), targets)
        torch.bmm(x.transpose(1, 2), slope.flatten(2), out=self._slopes[0].flatten(2))
        torch.sum(slope, dim=1, keepdim=True, out=self._slopes[1])

    def _slope_by_autograd(self, x: "torch.Tensor", targets: "torch.Tensor") -> None:
        import torch
        from torch.nn import functional

        followed = [parameter.detach().requires_grad_() for parameter in self.parameters]
        logits = self._logits(x, followed, training=True)
        of_each = targets[:, :, None].expand(logits.shape[:3])
        loss = functional.cross_entropy(logits.flatten(0, 2), of_each.flatten(), reduction="sum")
        gradients = torch.autograd.grad(loss / targets.shape[1], followed)
        for slope, gradient in zip(self._slopes, gradients, strict=True):
            slope.copy_(gradient)

    def _logits(
        self, x: "torch.Tensor", parameters: "Sequence[torch.Tensor]", *, training: bool = False
    ) -> "torch.Tensor":
        """Return the (f, b, r, k) outputs for (f, b, d) inputs."""
        import torch
        from torch.nn import functional

        first, bias = parameters[:2]
        outputs = torch.bmm(x, first.flatten(2)).view(*x.shape[:2], *first.shape[2:]) + bias
        if len(parameters) == 2:
            return outputs
        if training and self.settings.dropout:
            # Every net draws the same mask, as they are seeded alike.
            outputs = outputs * functional.dropout(
                torch.ones(outputs.shape[1], outputs.shape[3], device=x.device), self.settings.dropout
            ).unsqueeze(1)
        second, last = parameters[2:]
        logits: torch.Tensor = torch.einsum("fbrh,frhk->fbrk", outputs.sigmoid(), second) + last
        return logits

    def _classes(self, place: int, rows: Rows) -> NDArray[np.int16]:
        """Return the (rows, r) predicted classes by the nets at a place of the batch."""
        import torch

        own = [parameter[place : place + 1] for parameter in self.parameters]
        inputs = self.x[torch.as_tensor(rows, device=self.x.device)][None]
        classes: NDArray[np.int16] = self._logits(inputs, own)[0].argmax(dim=2).cpu().numpy().astype(np.int16)
        return classes

    def _accuracy(self, place: int, rows: Rows) -> NDArray[np.float64]:
        actual = self.y[rows.tolist()].cpu().numpy()
        share: NDArray[np.float64] = (self._classes(place, rows) == actual[:, None]).mean(axis=0)
        return share

    def _keep(self, places: NDArray[np.int64]) -> None:
        """Drop the plans that have stopped, with their share of the optimiser's state."""
        import torch

        if not len(places):
            return
        keep = torch.as_tensor(places, device=self.x.device)
        kept = {
            name: _joined([part.index_select(0, keep) for part in self._parts(value)])
            if getattr(value, "shape", None) == self.weights.shape
            else value
            for name, value in self.optimizer.state[self.weights].items()
        }
        self.rows, self.decay = self.rows[keep], self.decay[keep]
        self._hold([parameter.index_select(0, keep) for parameter in self.parameters])
        self.optimizer.state[self.weights] = kept


class Adam:
    """PyTorch's `Adam` as it is by default, to the last bit, without what its class does around a step.

    It saves a second and a half of a `run` with this classifier, as the first optimiser of a process imports
    PyTorch's compiler, and half of the time of a step where a net is small.
    """

    _RATE, _EPSILON = 1e-3, 1e-8
    _DECAYS = 0.9, 0.999

    def __init__(self, weights: "torch.Tensor") -> None:
        import torch

        moments = {name: torch.zeros_like(weights) for name in ("exp_avg", "exp_avg_sq")}
        self.state: dict[Any, dict[str, Any]] = {weights: {"step": 0, **moments}}

    def step(self) -> None:
        ((weights, state),) = self.state.items()
        state["step"] += 1
        of_mean, of_square = self._DECAYS
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(weights.grad, 1 - of_mean)
        square.mul_(of_square).addcmul_(weights.grad, weights.grad, value=1 - of_square)
        spread = (square.sqrt() / (1 - of_square ** state["step"]) ** 0.5).add_(self._EPSILON)
        rate = self._RATE / (1 - of_mean ** state["step"])
        weights.detach().addcdiv_(mean, spread, value=-rate)


def _joined(layers: "Sequence[torch.Tensor]") -> "torch.Tensor":
    import torch

    return torch.cat([layer.flatten() for layer in layers])


def loss_slope(logits: "torch.Tensor", targets: "torch.Tensor") -> "torch.Tensor":
    """Return the gradient of every net's mean cross-entropy by its logits, to the last bit as autograd's.

    A softmax over the last of few numbers takes most of a step's time; with the classes in front it runs over long
    stretches of memory, in a tenth of it.

    Args:
        logits: (f, b, r, k) outputs of r nets on each of f batches of b rows.
        targets: (f, b) classes.

    Returns:
        (f, b, r, k), contiguous.

    Example:
        >>> import torch
        >>> loss_slope(torch.zeros(1, 2, 1, 2), torch.tensor([[0, 1]])).flatten(0, 2).tolist()
        [[-0.25, 0.25], [0.25, -0.25]]
    """
    import torch

    size, k = logits.shape[1], logits.shape[3]
    is_target = targets[:, :, None] == torch.arange(k, device=targets.device)
    of_loss = (is_target / -size)[:, :, None].expand_as(logits)
    backward = torch.ops.aten._log_softmax_backward_data
    # With the classes in front, a product with one over the batch is rounded once less, and what does not fill a
    # vector of the processor is computed by other instructions: that is the last, smaller batch of a pass.
    if size & (size - 1) or logits[..., 0].numel() % _VECTOR:
        slope: torch.Tensor = backward(of_loss.contiguous(), logits.log_softmax(dim=3), 3, logits.dtype)
        return slope
    shares = logits.permute(3, 0, 1, 2).contiguous().log_softmax(dim=0)
    slope = backward(of_loss.permute(3, 0, 1, 2).contiguous(), shares, 0, logits.dtype)
    return slope.permute(1, 2, 3, 0).contiguous()


def net_settings(options: dict[str, Any]) -> NetSettings:
    """Return the settings that SentEval's `classifier` dictionary names.

    >>> net_settings({"nhid": 0, "optim": "rmsprop", "tenacity": 3}).tenacity
    3
    """
    unknown = [name for name in options if name not in NetSettings.__dataclass_fields__]
    if unknown:
        known = ", ".join(NetSettings.__dataclass_fields__)
        raise UserError(f"unknown classifier option {unknown[0]!r}: choose from {known}.")
    return replace(NetSettings(), **options)


def make_optimizer(options: str, parameters: "Sequence[torch.Tensor]") -> "torch.optim.Optimizer":
    """Return the optimiser that SentEval's notation names: `adam`, `sgd,lr=0.1`."""
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
    """Return the parameters that PyTorch's layers start with, the same for every net."""
    import torch

    def spread(values: "torch.Tensor", shape: tuple[int, ...]) -> "torch.Tensor":
        # A plain clone would keep the expanded tensor's order of axes, and every product would copy it first.
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
