"""The supervised regressor is the original SentEval's, and another measurement than cosine."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch

from stsbench.base.errors import UserError
from stsbench.data.tables import StsData
from stsbench.scoring.kinds.relatedness import Relatedness, regress
from stsbench.scoring.settings import Intervals, Settings
from stsbench.scoring.task import Rows, Scoring, Vectors


@pytest.fixture
def scored():
    rng = np.random.default_rng(0)
    splits = np.repeat(["train", "dev", "test"], [200, 60, 60])
    u, v = rng.normal(size=(2, len(splits), 8)).astype(np.float32)
    gold = np.clip(3 + (u * v).sum(axis=1) / 2, 0, 5).round(1)
    texts = [" ".join(["owl"] * count) for count in rng.integers(1, 9, len(splits))]
    pairs = pd.DataFrame(
        {
            "subset": "toy",
            "split": splits,
            "pair_id": [str(row) for row in range(len(splits))],
            "gold": gold,
            "sentence1": texts,
            "sentence2": texts[::-1],
        }
    )
    return StsData("toy", "all", "senteval", pairs, (0.0, 5.0), "verified", "0" * 64, (), ()), u, v


def shares_by_hand(scores):
    below, bins = np.floor(scores)[:, np.newaxis], np.arange(1, 6)
    rest = scores[:, np.newaxis] - below
    return np.where(bins == below + 1, rest, np.where(bins == below, 1 - rest, 0))


def by_hand(data, u, v):
    pairs = data.pairs
    words = [[len(text.split()) for text in pairs[side]] for side in ("sentence1", "sentence2")]
    order = sorted(range(len(pairs)), key=lambda row: (words[0][row], words[1][row], pairs["gold"][row]))
    x = np.hstack([np.abs(u - v), u * v])[order]
    gold, split = pairs["gold"].to_numpy()[order], pairs["split"].to_numpy()[order]
    sets = {name: torch.as_tensor(x[split == name]) for name in ("train", "dev", "test")}
    shares = torch.as_tensor(shares_by_hand(gold[split == "train"]).astype(np.float32))
    stream = np.random.RandomState(1111)
    torch.manual_seed(1111)
    net = torch.nn.Sequential(torch.nn.Linear(x.shape[1], 5), torch.nn.Softmax(dim=-1))
    optimizer = torch.optim.Adam(net.parameters())

    def predict(name):
        with torch.no_grad():
            return net(sets[name]).numpy() @ np.arange(1, 6)

    best, count, passes, stop, kept = -1.0, 0, 0, False, None
    while not stop and passes <= 1000:
        for _ in range(50):
            order = stream.permutation(len(shares))
            for start in range(0, len(order), 64):
                rows = order[start : start + 64]
                loss = torch.nn.functional.mse_loss(net(sets["train"][rows]), shares[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        passes += 50
        found = scipy.stats.pearsonr(predict("dev"), gold[split == "dev"])[0]
        if found > best:
            best, kept = found, predict("test")
        else:
            stop = count >= 3
            count += 1
    return best, scipy.stats.pearsonr(kept, gold[split == "test"])[0]


def test_scores_are_those_of_the_original_written_out(scored):
    data, u, v = scored
    task, rows = Relatedness(data), np.arange(2 * len(u))
    items = task.items(Vectors(np.concatenate([u, v]), rows, rows), Settings())
    assert set(items.table["split"]) == {"test"}
    given = task.numbers(Rows(items.table, items.table.iloc[:0]), Scoring(None, items.training, Intervals()))
    numbers = {number.statistic: number for number in (*given.numbers, *items.stated)}
    dev, test = by_hand(*scored)
    assert (numbers["dev"].value, numbers["pearson"].value) == pytest.approx((dev, test), abs=2e-4)
    low, high = numbers["pearson"].interval
    assert low < numbers["pearson"].value < high
    assert {name: number.items for name, number in numbers.items()} == dict.fromkeys(
        ("pearson", "spearman", "mse", "dev"), 60
    )
    spearman = scipy.stats.spearmanr(items.table["gold"], items.table["supervised"])[0]
    assert numbers["spearman"].value == pytest.approx(spearman)


def test_the_seed_counts_and_every_split_is_needed(scored):
    data, u, v = scored
    other = regress(data, u, v, seed=5, stop_by="spearman")
    assert regress(data, u, v, seed=5, stop_by="spearman").predicted.tolist() == other.predicted.tolist()
    assert regress(data, u, v).predicted.tolist() != other.predicted.tolist()
    data.pairs.loc[data.pairs["split"] == "dev", "split"] = "train"
    with pytest.raises(UserError, match="supervised toy needs its train, dev and test splits"):
        regress(data, u, v)
