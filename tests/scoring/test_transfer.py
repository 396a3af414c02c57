"""A transfer score follows SentEval's protocol, step by step, and says what it is."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from stsbench.base.errors import UserError
from stsbench.scoring.classifiers import arrange
from stsbench.scoring.kinds.classification import Classification, choose, classify
from stsbench.scoring.settings import Intervals, Settings
from stsbench.scoring.task import Rows, Scoring, Vectors
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import mean_terms
from stsbench.statistics.intervals import share_interval


def fit(x, y, c):
    return LogisticRegression(C=c, tol=1e-10, max_iter=20_000).fit(x, y)


def percent(value):
    return round(100 * float(value), 2)


def folds(y, k=10):
    return list(StratifiedKFold(k, shuffle=True, random_state=1111).split(np.zeros(len(y)), y))


def nested_by_hand(x, y):
    test, dev, chosen = [], [], []
    grid = [2.0**power for power in range(-2, 4)]
    for train, held in folds(y, 5):
        inner = folds(y[train], 5)
        scores = [
            percent(np.mean([fit(x[train][a], y[train][a], c).score(x[train][b], y[train][b]) for a, b in inner]))
            for c in grid
        ]
        best = int(np.argmax(scores))
        dev.append(scores[best])
        chosen.append(grid[best])
        test.append(percent(fit(x[train], y[train], grid[best]).score(x[held], y[held])))
    return round(np.mean(test), 2), round(np.mean(dev), 2), tuple(chosen)


def test_nested_scores_are_those_of_the_protocol_written_out(toy, vectors_of):
    data = toy("nested", n=120)
    vectors = vectors_of(data, noise=1.5)
    task = arrange(data)
    result = classify(data, vectors, kfold=5)
    assert (result.acc, result.devacc, result.training.chosen) == nested_by_hand(vectors[task.order], task.labels)
    assert (result.training.design, result.ndev, result.ntest, result.training.kfold) == ("nested", 120, 120, 5)
    assert sorted(set(result.table["fold"])) == [0, 1, 2, 3, 4]
    assert result.table["correct"].mean() * 100 == pytest.approx(result.acc, abs=0.02)
    assert result.table["item_id"].tolist() == data.items["item_id"].tolist()


@pytest.mark.parametrize("pairs", [False, True])
def test_kfold_scores_are_those_of_the_protocol_written_out(toy, vectors_of, pairs):
    data = toy("kfold", n=120, pairs=pairs)
    u, v = vectors_of(data, noise=2.0), vectors_of(data, noise=0.5)[::-1]
    task = arrange(data)
    x = np.hstack([np.abs(u - v), u * v])[task.order] if pairs else u[task.order]
    y, train, test = task.labels, task.rows("train"), task.rows("test")
    grid = [2.0**power for power in range(-1, 6)]
    inner = [(train[a], train[b]) for a, b in folds(y[train])]
    scores = [percent(np.mean([fit(x[a], y[a], c).score(x[b], y[b]) for a, b in inner])) for c in grid]
    best = int(np.argmax(scores))
    final = fit(x[train], y[train], grid[best])
    result = classify(data, u, v if pairs else None)
    assert (result.devacc, result.training.chosen) == (scores[best], (grid[best],))
    assert result.acc == percent(final.score(x[test], y[test]))
    assert result.f1 == (percent(f1_score(y[test], final.predict(x[test]))) if pairs else None)


def test_split_scores_are_those_of_the_protocol_written_out(toy, vectors_of):
    data = toy("split", classes=3)
    vectors = vectors_of(data, noise=1.5)
    task = arrange(data)
    x, y = vectors[task.order], task.labels
    train, dev, test = (task.rows(split) for split in ("train", "dev", "test"))
    fits = [fit(x[train], y[train], 2.0**power) for power in range(-2, 4)]
    scores = [percent(found.score(x[dev], y[dev])) for found in fits]
    best = int(np.argmax(scores))
    result = classify(data, vectors)
    assert (result.acc, result.devacc) == (percent(fits[best].score(x[test], y[test])), scores[best])
    assert result.table.groupby("split")["correct"].mean().mul(100).round(2).to_dict() == {
        "dev": result.devacc,
        "test": result.acc,
    }


def test_of_equal_rounded_means_the_first_wins():
    assert choose([0.90, 0.912341, 0.912349, 0.91]) == 1


def numbers(data, *vectors, intervals=None):
    """Return the numbers of a task by statistic, with their intervals, and its items."""
    task, settings = Classification(data), Settings(intervals=intervals or Intervals())
    of_sentences = np.concatenate(vectors)
    rows = np.arange(len(of_sentences))
    items = task.items(Vectors(of_sentences, rows, rows), settings)
    meaning = task.meaning(settings)
    given = task.numbers(Rows.of(items.table, meaning.split), Scoring(None, items.training, settings.intervals))
    return {number.statistic: number for number in (*given.numbers, *items.stated)}, items.table


def test_intervals_hold_the_scores_and_can_be_left_out(toy, vectors_of):
    data = toy("kfold", pairs=True)
    u = vectors_of(data, noise=2.0)
    with_intervals, _ = numbers(data, u, u[::-1])
    without, _ = numbers(data, u, u[::-1], intervals=Intervals(None))
    assert set(with_intervals) == set(without) == {"acc", "devacc", "f1"}
    for name, number in with_intervals.items():
        assert number.interval[0] < number.value < number.interval[1]
        assert (without[name].value, without[name].interval) == (number.value, None)


def test_items_of_the_same_sentence_count_as_dependent(toy, vectors_of):
    # Six sentences in all, so that each stands in fifteen items.
    data = toy("kfold")
    assert data.items["sentence1"].nunique() == 6
    u = vectors_of(data, noise=2.0)
    methods = ("dyadic", "components", "independent")
    scored = {name: numbers(data, u, intervals=Intervals(interval=name)) for name in methods}
    acc = {name: of_method["acc"] for name, (of_method, _) in scored.items()}
    assert len({number.value for number in acc.values()}) == 1
    tested = scored["dyadic"][1]
    tested = tested[tested["split"] == "test"]
    # Of items of one sentence, sharing one and being joined by a chain are the same.
    assert acc["dyadic"].interval == pytest.approx(acc["components"].interval)
    spread = variance(
        mean_terms(tested["correct"].to_numpy()), Sharing.of(tested["sentence_a"], tested["sentence_b"])
    )
    low, high, _ = share_interval(tested["correct"].mean(), spread, len(tested))
    assert acc["dyadic"].interval == pytest.approx((low, high))
    apart = variance(mean_terms(tested["correct"].to_numpy()), Sharing.independent(len(tested)))
    narrow = share_interval(tested["correct"].mean(), apart, len(tested))
    assert acc["independent"].interval == pytest.approx((narrow.low, narrow.high))


@pytest.mark.parametrize("classifier", ["logreg", "mlp-adam"])
def test_what_was_scored_before_does_not_matter(toy, vectors_of, classifier):
    first, second = toy("kfold"), toy("split", classes=3)

    def score(data):
        return classify(data, vectors_of(data), classifier=classifier, kfold=3)

    forwards = [score(first), score(second)]
    backwards = [score(second), score(first)][::-1]
    for one, two in zip(forwards, backwards, strict=True):
        assert one.table.equals(two.table)
        assert (one.acc, one.devacc) == (two.acc, two.devacc)


def test_vectors_that_do_not_fit_are_refused(toy, vectors_of):
    data = toy("kfold")
    with pytest.raises(ValueError, match="expected 180 vectors"):
        classify(data, vectors_of(data)[:-1])
    with pytest.raises(ValueError, match="one sentence per item"):
        classify(data, vectors_of(data), vectors_of(data))
    with pytest.raises(ValueError, match="not a finite number"):
        classify(data, vectors_of(data) * np.nan)
    with pytest.raises(UserError, match="unknown classifier 'svm': choose one of logreg, mlp-adam"):
        classify(data, vectors_of(data), classifier="svm")
