"""Transfer scores follow SentEval's protocol step by step; held against plain loops with scikit-learn."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.data.benchmarks import load_labelled
from stsbench.encoders.callables import CallableEncoder, from_function
from stsbench.records.scores import Scores
from stsbench.records.signature import Signature
from stsbench.records.store import load_run
from stsbench.scoring.classifiers import arrange, stratified
from stsbench.scoring.kinds.classification import Classification, choose, classify
from stsbench.scoring.settings import Intervals, Settings
from stsbench.scoring.task import Rows, Scoring, Vectors
from stsbench.statistics.dependence import Sharing, variance
from stsbench.statistics.influence import mean_terms
from stsbench.statistics.intervals import share_interval


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
def test_rows_are_sorted_by_tokens_then_label_and_ties_stay(toy, design, pairs):
    data = toy(design, pairs=pairs, classes=3)
    task = arrange(data)
    assert task.design == design
    assert task.order.tolist() == order_by_python(data)
    assert [data.classes[code] for code in task.labels] == data.items["label"].iloc[task.order].tolist()


@pytest.mark.shared
@pytest.mark.parametrize("name", ["CR", "TREC", "MRPC", "SICK-E"])
def test_real_tasks_are_sorted_as_senteval_sorts_them(senteval, name):
    data = load_labelled(name, [senteval])
    assert arrange(data).order.tolist() == order_by_python(data)


def test_folds_are_scikit_learns_and_number_the_tasks_own_rows(toy):
    task = arrange(toy("kfold"))
    among = task.rows("test")
    theirs = StratifiedKFold(5, shuffle=True, random_state=1111).split(among, task.labels[among])
    for ours, (train, held_out) in zip(stratified(task.labels, among, 5, 1111), theirs, strict=True):
        assert ours.train.tolist() == among[train].tolist()
        assert ours.held_out.tolist() == among[held_out].tolist()


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
def test_scores_are_those_of_the_protocol_written_out(toy, vectors_of, design, pairs, classes, seed):
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
    data = toy("kfold")
    assert data.items["sentence1"].nunique() == 6  # each is in fifteen items
    u = vectors_of(data, noise=2.0)
    methods = ("dyadic", "components", "independent")
    scored = {name: numbers(data, u, intervals=Intervals(interval=name)) for name in methods}
    acc, table = {name: of_method["acc"] for name, (of_method, _) in scored.items()}, scored["dyadic"][1]
    tested = table[table["split"] == "test"]
    shared, apart = Sharing.of(tested["sentence_a"], tested["sentence_b"]), Sharing.independent(len(tested))
    # For items of one sentence, sharing one and being linked by a chain are the same.
    for name, sharing in zip(methods, (shared, shared, apart), strict=True):
        spread = variance(mean_terms(tested["correct"].to_numpy()), sharing)
        limits = share_interval(tested["correct"].mean(), spread, len(tested))
        assert acc[name].interval == pytest.approx((limits.low, limits.high))


@pytest.mark.parametrize("classifier", ["logreg", "mlp-adam"])
def test_earlier_tasks_do_not_change_a_score(toy, vectors_of, classifier):
    first, second = toy("kfold"), toy("split", classes=3)

    def score(data):
        return classify(data, vectors_of(data), classifier=classifier, kfold=3)

    forwards, backwards = [score(first), score(second)], [score(second), score(first)][::-1]
    for one, two in zip(forwards, backwards, strict=True):
        assert one.table.equals(two.table)
        assert (one.acc, one.devacc) == (two.acc, two.devacc)


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
    ],
)
def test_mistakes_are_named(toy, vectors_of, change, error, words):
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


@pytest.fixture(scope="module")
def record(vectors, tmp_path_factory):
    return sb.evaluate(vectors, ["sample", *TASKS], out=tmp_path_factory.mktemp("run"))


def test_each_task_scores_as_it_does_alone_and_in_any_order(record, vectors):
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


def test_the_record_is_read_back_with_signatures_that_name_design_and_classifier(record):
    read = load_run(record.folder)
    assert read == record
    pd.testing.assert_frame_equal(read.items, record.items, check_dtype=False)
    protocols = [Signature.parse(part.signature).protocol.split("|data")[0] for part in record.scores]
    assert protocols[1:] == [
        "sample-products:all:nested10|acc|logreg|text:sample",
        "sample-questions:test:kfold10|acc|logreg|text:sample",
        "sample-paraphrases:test:kfold10|acc|logreg|text:sample",
        "sample-sentiment:test:split|acc|logreg|text:sample",
    ]


def test_tables_show_transfer_tasks_apart_with_their_own_average(record, vectors):
    sts, transfer = Scores([record]).table()
    assert "sample-products" not in sts.frame
    assert list(transfer.frame) == ["model", *TASKS, "Avg. transfer"]
    assert transfer.frame["model"].tolist()[1:] == ["  2.5 %", "  97.5 %", "  devacc"]
    scores, (low, high) = transfer.frame.iloc[0], transfer.frame["Avg. transfer"][1:3]
    assert low < scores["Avg. transfer"] < high
    assert scores["Avg. transfer"] == pytest.approx(scores[TASKS].mean())
    long = Scores([record]).frame
    trec = long[long["task"] == "sample-questions"]
    assert (trec["metric"].tolist(), set(trec["aggregation"])) == (["acc", "devacc"], {"kfold10"})
    other = sb.evaluate(vectors, TASKS[:2])
    assert "Avg. transfer" not in Scores([record, other]).table()[-1].frame  # the means are of other tasks


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
    nets = [sb.Classification(classifier="mlp-adam", kfold=2, seed=seed) for seed in (1, 1, 2)]
    one, again, other = (sb.evaluate(vectors, "sample-questions", classification=net).scores[0] for net in nets)
    assert one == again != other
    assert one.training.grid == (1e-5, 1e-4, 1e-3, 1e-2)
    assert Signature.parse(one.signature).similarity == "mlp-adam"
