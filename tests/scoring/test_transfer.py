"""Transfer scores follow SentEval's protocol; held against plain loops with scikit-learn and PyTorch."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled
from stsbench.data.tables import LabelledData
from stsbench.encoders.simple import CallableEncoder, from_function
from stsbench.records.signature import Signature
from stsbench.scoring.classifiers import Fold, arrange
from stsbench.scoring.kinds.classification import classify
from stsbench.scoring.mlp import Mlp, NetSettings, make_optimizer, net_settings
from stsbench.scoring.settings import Classification

SPLITS = {"nested": ("all",), "kfold": ("train", "test"), "split": ("train", "dev", "test")}


def toy(design: str = "nested", *, classes: int = 2, pairs: bool = False, n: int = 90) -> LabelledData:
    """Return a task of invented sentences of one to six words."""
    rng = np.random.default_rng(7)
    splits = np.repeat(SPLITS[design], n)

    def sentences() -> list[str]:
        return [" ".join(["owl"] * count) for count in rng.integers(1, 7, len(splits))]

    items = pd.DataFrame(
        {
            "split": splits,
            "item_id": [f"{split}-{row}" for row, split in enumerate(splits)],
            "label": [f"class{code}" for code in np.arange(len(splits)) % classes],
            "sentence1": sentences(),
            "sentence2": sentences() if pairs else None,
        },
        dtype=object,
    )
    names = tuple(f"class{code}" for code in range(classes))
    return LabelledData("toy", "senteval", items, names, "verified", "0" * 64, (), ())


def vectors_of(data: LabelledData, noise: float = 1.0, d: int = 5) -> np.ndarray:
    """Return vectors that tell the classes apart, more or less."""
    rng = np.random.default_rng(11)
    codes = [data.classes.index(label) for label in data.items["label"]]
    centres = rng.normal(size=(len(data.classes), d))
    return (centres[codes] + noise * rng.normal(size=(len(codes), d))).astype(np.float32)


def order_by_python(data):
    """Sort item positions with Python's `sorted`, split by split, as SentEval does."""
    positions = []
    for split in dict.fromkeys(data.items["split"]):
        rows = [
            (len(item.sentence1.split()), len((item.sentence2 or "").split()), data.classes.index(item.label), row)
            for row, item in enumerate(data.items.itertuples())
            if item.split == split
        ]
        positions += [row[3] for row in sorted(rows, key=lambda row: row[:3])]
    return positions


@pytest.mark.parametrize(("design", "pairs"), [("nested", False), ("kfold", True), ("split", False)])
def test_rows_are_sorted_by_tokens_then_label_and_ties_stay(design, pairs):
    data = toy(design, pairs=pairs, classes=3)
    task = arrange(data)
    assert task.design == design
    assert task.order.tolist() == order_by_python(data)
    assert [data.classes[code] for code in task.labels] == data.items["label"].iloc[task.order].tolist()


@pytest.mark.parametrize("design", ["nested", "kfold", "split"])
def test_a_net_stops_by_the_rows_that_select_its_regulariser(design):
    for selection in arrange(toy(design)).selections(3, 1111):
        assert all(fold.dev.tolist() == fold.held_out.tolist() for fold in selection.folds)
        assert (selection.final.dev is None) == (design != "split")


def fit(x, y, c):
    return LogisticRegression(C=c, tol=1e-10, max_iter=20_000).fit(x, y)


def percent(value):
    return round(100 * float(value), 2)


def folds(y, k, seed=1111):
    return list(StratifiedKFold(k, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))


def mean_score(x, y, c, pairs):
    return percent(np.mean([fit(x[train], y[train], c).score(x[held], y[held]) for train, held in pairs]))


@pytest.mark.parametrize(
    ("design", "pairs", "classes", "seed"),
    [("nested", False, 2, 5), ("kfold", False, 2, 5), ("kfold", True, 2, 1111), ("split", False, 3, 5)],
)
def test_scores_are_those_of_the_protocol_written_out(design, pairs, classes, seed):
    data = toy(design, n=120, pairs=pairs, classes=classes)
    u, v = vectors_of(data, noise=2.0), vectors_of(data, noise=0.5)[::-1]
    task = arrange(data)
    x = np.hstack([np.abs(u - v), u * v])[task.order] if pairs else u[task.order]
    y, (train, dev, test) = task.labels, (task.rows(split) for split in ("train", "dev", "test"))
    every, acc, devacc, chosen, predicted = np.arange(len(x)), [], [], [], np.zeros(len(x), dtype=int)
    grid = [2.0**power for power in (range(-1, 6) if design == "kfold" else range(-2, 4))]
    outer = folds(y, 5) if design == "nested" else [(train, test)]
    for fitted, tested in outer:
        inner = [(fitted, dev)] if design == "split" else folds(y[fitted], 5, 1111 if design == "nested" else seed)
        inner = inner if design == "split" else [(fitted[a], fitted[b]) for a, b in inner]
        scores = [mean_score(x, y, c, inner) for c in grid]
        best = int(np.argmax(scores))
        devacc.append(scores[best])
        chosen.append(grid[best])
        predicted[tested] = fit(x[fitted], y[fitted], grid[best]).predict(x[tested])
        acc.append(percent((predicted[tested] == y[tested]).mean()))
    result = classify(data, u, v if pairs else None, kfold=5, seed=seed)
    assert (result.acc, result.devacc) == (round(np.mean(acc), 2), round(np.mean(devacc), 2))
    assert (result.training.design, result.training.chosen) == (design, tuple(chosen))
    assert result.f1 == (percent(f1_score(y[test], predicted[test])) if pairs else None)
    rows = every if design == "nested" else test
    table = result.table[result.table["split"] == ("all" if design == "nested" else "test")]
    by_position = dict(zip(task.order[rows], predicted[rows], strict=True))
    assert table["item_id"].tolist() == [data.items["item_id"][place] for place in sorted(by_position)]
    assert table["prediction"].tolist() == [data.classes[by_position[place]] for place in sorted(by_position)]
    assert (result.ndev, result.ntest) == (len({"nested": every, "kfold": train, "split": dev}[design]), len(rows))
    used = {"nested": {0, 1, 2, 3, 4}, "kfold": {-1, 0, 1, 2, 3, 4}, "split": {-1}}[design]
    assert set(result.table["fold"]) == used


PARAMETERS = [torch.zeros(1, requires_grad=True)]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda data, u: classify(data, u[:-1]), ValueError, "expected 180 vectors"),
        (lambda data, u: classify(data, u, u), ValueError, "one sentence per item"),
        (lambda data, u: classify(data, u * np.nan), ValueError, "not a finite number"),
        (lambda data, u: classify(data, u, classifier="svm"), UserError, "'svm': choose one of logreg, mlp-adam"),
        (lambda data, u: classify(data, u, kfold=1), UserError, "1 folds are too few"),
        (lambda data, u: classify(data, u, kfold=46), UserError, "class0 of toy has 45 .* too few for 46"),
        (lambda data, u: arrange(relabelled(data)), UserError, "toy has the splits dev, test; expected"),
        (lambda *_: net_settings({"nhidden": 3}), UserError, "option 'nhidden': choose from nhid, optim"),
        (lambda *_: make_optimizer("adamw", PARAMETERS), UserError, "adamw"),
        (lambda *_: make_optimizer("adam,speed=3", PARAMETERS), UserError, "adam,speed=3"),
    ],
)
def test_mistakes_are_named(change, error, words):
    data = toy("kfold")
    with pytest.raises(error, match=words):
        change(data, vectors_of(data))


def relabelled(data):
    return replace(data, items=data.items.assign(split=data.items["split"].replace("train", "dev")))


TASKS = ["sample-products", "sample-questions", "sample-paraphrases", "sample-sentiment"]


@pytest.fixture(scope="module")
def vectors():
    """Return an encoder that separates classes: hashed words."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashed = HashingVectorizer(n_features=64, norm=None)
    return lambda sentences: hashed.transform(sentences).toarray()


def test_each_task_scores_as_it_does_alone_and_in_any_order(vectors):
    record = sb.evaluate(vectors, ["sample", *TASKS])
    designs = [part.signature.partition(":")[2].split("|")[:3] for part in record.scores[1:]]
    assert [design[0] for design in designs] == ["all:nested10", *["test:kfold10"] * 2, "test:split"]
    assert {tuple(design[1:]) for design in designs} == {("acc", "logreg")}
    for part in record.scores_of("transfer"):
        data = load_labelled(part.task, text="sample")
        names = [name for name in ("sentence1", "sentence2") if data.items[name].notna().all()]
        alone = classify(data, *(np.array(vectors(list(data.items[name]))) for name in names))
        expected = {"acc": alone.acc, "devacc": alone.devacc, "f1": alone.f1}
        assert {number.statistic: 100 * number.value for number in part.numbers} == pytest.approx(
            {name: value for name, value in expected.items() if value is not None}
        )
        assert part.training == alone.training
        own = record.items[record.items["task"] == part.task]
        assert own["prediction"].tolist() == alone.table["prediction"].tolist()
    again = sb.evaluate(vectors, [*TASKS[::-1], "sample"])
    assert {score.task: score for score in again.scores} == {score.task: score for score in record.scores}
    assert again.averages[0].value == record.averages[0].value


def test_the_closing_normalisation_is_for_similarities_unless_you_ask_for_it(vectors):
    plain = from_function(vectors)
    normal = CallableEncoder(vectors, replace(plain.identity, normalizes=True))
    without = CallableEncoder(vectors, replace(normal.identity, use=replace(plain.identity.use, normalize=False)))
    tasks = ["sample", load_labelled("sample-products", text="sample")]

    def evaluate(encoder):
        record = sb.evaluate(encoder, tasks)
        return record.compared_pairs()["dot"].tolist(), record.scores_of("transfer")[0], record.scores[0].signature

    (dots, bare, _), (unit, own, of_own) = evaluate(plain), evaluate(normal)
    assert own == bare
    assert "|norm|" in of_own
    assert "|norm|" not in own.signature
    assert max(map(abs, unit)) <= 1 + 1e-6 < max(map(abs, dots))
    forced, with_unit, _ = evaluate(sb.load(vectors, normalize=True))
    assert "|norm|" in with_unit.signature
    assert with_unit.value != bare.value
    assert forced == unit
    assert evaluate(without)[0] == dots


def test_the_net_is_a_classifier_and_its_seed_counts(vectors):
    nets = [Classification(classifier="mlp-adam", kfold=2, seed=seed) for seed in (1, 1, 2)]
    one, again, other = (sb.evaluate(vectors, "sample-questions", classification=net).scores[0] for net in nets)
    assert one == again != other
    assert one.training.grid == (1e-5, 1e-4, 1e-3, 1e-2)
    assert Signature.parse(one.signature).similarity == "mlp-adam"


def rows(n=150, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    x = (rng.normal(size=(classes, 6))[y] + rng.normal(size=(n, 6))).astype(np.float32)
    return x, y


def one_net(x, y, classes, train, dev, l2, settings, held_out=None, seed=1111):
    """Train one net as SentEval's classifier does, in plain PyTorch; return its predictions of all rows."""
    stream = np.random.RandomState(seed)
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(x.shape[1], settings.nhid or classes)]
    if settings.nhid:
        layers += [torch.nn.Dropout(settings.dropout), torch.nn.Sigmoid(), torch.nn.Linear(settings.nhid, classes)]
    net = torch.nn.Sequential(*layers)
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


def test_the_callers_random_numbers_are_left_alone():
    torch.manual_seed(3)
    expected, legacy = torch.rand(1), np.random.mtrand._rand.get_state()[1].tolist()
    torch.manual_seed(3)
    data = toy("kfold")
    result = classify(data, vectors_of(data), classifier="mlp-adam", kfold=2)
    assert torch.rand(1) == expected
    assert np.random.mtrand._rand.get_state()[1].tolist() == legacy
    assert result.training.method == "mlp-adam"
