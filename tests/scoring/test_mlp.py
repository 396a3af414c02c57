"""The batched net is SentEval's net: the same early stopping, the same draws, one net or many."""

import copy

import numpy as np
import pytest
import torch

from stsbench.base.errors import UserError
from stsbench.scoring.classifiers import Fold
from stsbench.scoring.kinds.classification import classify
from stsbench.scoring.mlp import Mlp, NetSettings, make_optimizer, net_settings


def rows(n=150, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    x = (rng.normal(size=(classes, 6))[y] + rng.normal(size=(n, 6))).astype(np.float32)
    return x, y


def one_net(x, y, classes, train, dev, l2, settings, held_out=None, seed=1111):
    """Train one net as SentEval's classifier does, in plain PyTorch; return its predictions of all rows."""
    stream = np.random.RandomState(seed)
    torch.manual_seed(seed)
    if settings.nhid:
        net = torch.nn.Sequential(
            torch.nn.Linear(x.shape[1], settings.nhid),
            torch.nn.Dropout(settings.dropout),
            torch.nn.Sigmoid(),
            torch.nn.Linear(settings.nhid, classes),
        )
    else:
        net = torch.nn.Sequential(torch.nn.Linear(x.shape[1], classes))
    optimizer = make_optimizer(settings.optim, list(net.parameters()))
    optimizer.param_groups[0]["weight_decay"] = l2
    if held_out:
        order = stream.permutation(len(train))
        cut = int(held_out * len(train))
        train, dev = train[order[cut:]], train[order[:cut]]
    inputs, labels = torch.as_tensor(x), torch.as_tensor(y)
    best, kept, count, passes, stop = -1.0, None, 0, 0, False
    while not stop and passes <= settings.max_epoch:
        net.train()
        for _ in range(settings.epoch_size):
            order = stream.permutation(len(train))
            for start in range(0, len(train), settings.batch_size):
                batch = train[order[start : start + settings.batch_size]]
                loss = torch.nn.functional.cross_entropy(net(inputs[batch]), labels[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        passes += settings.epoch_size
        net.eval()
        accuracy = float((net(inputs[dev]).argmax(1) == labels[dev]).double().mean())
        if accuracy > best:
            best, kept = accuracy, copy.deepcopy(net)
        else:
            stop = count >= settings.tenacity
            count += 1
    kept.eval()
    return kept(inputs).argmax(1).numpy()


@pytest.mark.parametrize(
    "settings",
    [
        NetSettings(),
        NetSettings(optim="rmsprop", batch_size=32, tenacity=3, epoch_size=2),
        NetSettings(optim="sgd,lr=0.1", max_epoch=20),
        NetSettings(nhid=5, tenacity=2),
        NetSettings(nhid=5, dropout=0.3, tenacity=1),
    ],
)
def test_nets_side_by_side_are_the_nets_one_by_one(settings):
    x, y = rows()
    every = np.arange(len(x))
    held_out = [*(every[every % 5 == k] for k in range(3)), every[120:149]]
    trained = [*(every[every % 5 != k] for k in range(3)), every[:120]]
    folds = [Fold(train, held, held) for train, held in zip(trained, held_out, strict=True)]
    grid = [1e-5, 1e-2, 0.3]
    found = Mlp(settings).predict(x, y, 3, folds, [grid] * len(folds))
    for column, fold in enumerate(folds):
        for place, l2 in enumerate(grid):
            alone = one_net(x, y, 3, fold.train, fold.held_out, l2, settings)
            assert found[column][:, place].tolist() == alone[fold.held_out].tolist()


@pytest.mark.parametrize("dev", [None, np.arange(90, 120)])
def test_a_final_fit_stops_by_the_dev_set_or_by_a_part_of_train(dev):
    x, y = rows()
    train, test = np.arange(120 if dev is None else 90), np.arange(120, 150)
    (found,) = Mlp().predict(x, y, 3, [Fold(train, test, dev)], [[1e-3]])
    alone = one_net(x, y, 3, train, dev, 1e-3, NetSettings(), held_out=0.05 if dev is None else None)
    assert found[:, 0].tolist() == alone[test].tolist()


def test_the_callers_random_numbers_are_left_alone(toy, vectors_of):
    torch.manual_seed(3)
    expected, legacy = torch.rand(1), np.random.mtrand._rand.get_state()[1].tolist()
    torch.manual_seed(3)
    data = toy("kfold")
    result = classify(data, vectors_of(data), classifier="mlp-adam", kfold=2)
    assert torch.rand(1) == expected
    assert np.random.mtrand._rand.get_state()[1].tolist() == legacy
    assert result.training.method == "mlp-adam"


def test_wrong_options_are_named():
    with pytest.raises(UserError, match="unknown classifier option 'nhidden': choose from nhid, optim"):
        net_settings({"nhidden": 3})
    for name in ("adamw", "adam,speed=3"):
        with pytest.raises(UserError, match=name):
            make_optimizer(name, [torch.zeros(1, requires_grad=True)])
