"""One evaluation after the other: what counts as a rise, what is left in the model, which tasks there are."""

import random
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

import stsbench as sb
from stsbench.data.tables import StsData
from stsbench.integrations.dev_scores import DevScores

torch = pytest.importorskip("torch")

Toy = Callable[..., StsData]


def planted(data):
    """Return a maker of encoders of some pairs' own sentences: the gold scores, and as much noise as is asked."""
    table = data.pairs
    sentences = [*table["sentence1"], *table["sentence2"]]
    angles = dict(zip(sentences, [*np.zeros(len(table)), *(1 - table["gold"] / 5)], strict=True))

    def make(noise, seed=0):
        drawn = np.random.default_rng(seed).normal(size=len(sentences))
        noises = dict(zip(sentences, noise * drawn, strict=True))

        def encode(texts):
            turned = np.array([angles[text] + noises[text] for text in texts])
            return np.stack([np.cos(turned), np.sin(turned)], axis=1)

        return encode

    return make


def _of_numpy():
    return float(np.random.rand())  # noqa: NPY002 - the generator that others draw from


@pytest.fixture
def own(tmp_path):
    """Return 200 pairs none of whose sentences stands in another."""
    from stsbench.data.tables import load_pairs

    rng = np.random.default_rng(4)
    lines = [f"left {n}\tright {n}\t{rng.uniform(0, 5):.2f}" for n in range(200)]
    path = tmp_path / "own.tsv"
    path.write_text("sentence1\tsentence2\tscore\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return load_pairs(path)


def counts(own, noises):
    """Return after each evaluation for how many nothing rose."""
    dev, model, make = DevScores(own), torch.nn.Identity(), planted(own)
    return [
        dev.measure(model, make(noise), step).metrics["evaluations_without_rise"]
        for step, noise in enumerate(noises)
    ]


def test_a_clear_rise_counts_and_a_fall_or_the_same_again_does_not(own):
    assert counts(own, [0.6, 0.1, 0.6, 0.1, 0.02]) == [0, 0, 1, 2, 0]


def test_a_climb_whose_every_step_may_be_chance_adds_up_to_a_rise(own):
    make, dev, model = planted(own), DevScores(own), torch.nn.Identity()
    climb = [make(noise, seed) for seed, noise in enumerate((0.40, 0.36, 0.32, 0.28))]
    runs = [sb.evaluate(encode, own) for encode in climb]
    steps = [sb.compare(before, behind).rows.iloc[0] for before, behind in pairwise(runs)]
    assert all(step.difference > 0 > step.low for step in steps)
    assert [dev.measure(model, encode, step).without_rise for step, encode in enumerate(climb)] == [0, 1, 2, 0]


def test_an_undefined_score_is_risen_above_by_any_that_is_defined(own):
    dev, model, make = DevScores(own), torch.nn.Identity(), planted(own)
    collapsed = dev.measure(model, lambda texts: np.ones((len(texts), 2)), 0)
    assert np.isnan(collapsed.metrics["spearman_cosine"])
    assert dev.measure(model, make(0.5), 1).without_rise == 0
    assert dev.measure(model, lambda texts: np.ones((len(texts), 2)), 2).without_rise == 1


def test_a_step_measured_again_or_outside_of_a_training_is_measured_and_not_counted(own):
    dev, model, make = DevScores(own), torch.nn.Identity(), planted(own)
    dev.measure(model, make(0.4), 10)
    assert dev.measure(model, make(0.5), 20).without_rise == 1
    for step in (20, -1):
        again = dev.measure(model, make(0.2), step)
        assert again.without_rise is None
        assert again.scores["spearman_cosine"] == sb.evaluate(make(0.2), own).scores[0].value
    assert dev.measure(model, make(0.5), 30).without_rise == 2
    assert [line["step"] for line in dev.history] == [10, 20, 30]


def test_an_earlier_step_or_another_model_begins_anew(own):
    dev, make = DevScores(own), planted(own)
    model, other = torch.nn.Identity(), torch.nn.Identity()
    dev.measure(model, make(0.1), 10)
    assert dev.measure(model, make(0.4), 5).rise is None
    assert dev.measure(other, make(0.6), 20).rise is None
    assert [line["step"] for line in dev.history] == [20]


def test_a_measurement_leaves_modes_and_random_generators_as_they_were(own):
    class Careless(torch.nn.Module):  # type: ignore[misc]
        def __init__(self):
            super().__init__()
            self.frozen, self.dropout = torch.nn.Dropout(0.5), torch.nn.Dropout(0.5)
            self.weight = torch.nn.Parameter(torch.ones(2))

    model = Careless().train()
    model.frozen.eval()
    modes: list[bool] = []
    gradients: list[bool] = []

    def encode(texts):
        modes.extend(module.training for module in model.modules())
        vectors = model.dropout(torch.rand(len(texts), 2) + random.random() + _of_numpy()) * model.weight
        gradients.append(vectors.requires_grad)
        model.train()
        return vectors

    def drawn():
        return [random.random(), _of_numpy(), float(torch.rand(()))]

    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(11)
    expected = drawn()
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(11)
    DevScores(own).measure(model, encode, 0)
    assert drawn() == expected
    assert not any(modes[:4])
    assert not any(gradients)
    assert [module.training for module in model.modules()] == [True, False, True]


def test_a_mistake_in_encoding_leaves_the_model_as_it_was_too(own):
    model = torch.nn.Dropout().train()
    with pytest.raises(sb.UserError, match="step 3 returned float64 of shape"):
        DevScores(own).measure(model, lambda texts: np.ones((1, len(texts), 2)), 3)
    assert model.training


def test_nothing_of_a_live_model_is_read_from_the_cache_or_written_to_it(own, tmp_path, monkeypatch):
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "kept"))
    DevScores(own).measure(torch.nn.Identity(), planted(own)(0.1), 0)
    assert not list((tmp_path / "kept").rglob("*.vectors"))
    assert not [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]


def test_the_default_is_the_dev_set_of_sts_b_or_else_the_sample_with_a_warning(benchmark_folder):
    dev = DevScores(data_dirs=[benchmark_folder])
    assert (dev.name, dev.metric) == ("sts-b-dev", "spearman_cosine")
    with pytest.warns(UserWarning, match="SAMPLE"):
        assert DevScores().name == "sample"
    (benchmark_folder / "empty").mkdir()
    with pytest.raises(sb.UserError, match="was not found"):
        DevScores(data_dirs=[benchmark_folder / "empty"])


def test_several_tasks_are_judged_by_their_average(benchmark_folder, hash_encode):
    tasks, pearson, data = "STS12,STS-B:dev", sb.protocol(metric="pearson"), {"data_dirs": [benchmark_folder]}
    encoders = [hash_encode, lambda texts: hash_encode(texts)[:, :4]]
    dev, model = DevScores(tasks, pearson, **data), torch.nn.Identity()
    assert (dev.name, dev.metric) == ("sts", "average_pearson_cosine")
    _, found = (dev.measure(model, encode, step) for step, encode in enumerate(encoders))
    runs = [sb.evaluate(encode, tasks, protocol=pearson, **data) for encode in encoders]
    assert found.metrics["average_pearson_cosine"] == runs[1].averages[0].value
    assert found.metrics["sts-b-dev_pearson_cosine"] == runs[1].scores[1].value
    assert found.metrics["rise"] == pytest.approx(sb.compare(*runs).rows["difference"].iloc[-1] / 100)


def test_tasks_without_one_score_to_judge_by_are_refused(benchmark_folder):
    with pytest.raises(sb.UserError, match="one score, but 2 tasks"):
        DevScores(["sample", "sample-sentiment"])
    with pytest.raises(sb.UserError, match="choose how to compute intervals"):
        DevScores("sample", intervals=sb.Intervals(None))


def test_a_trained_task_can_be_the_dev_task(hash_encode):
    dev = DevScores("sample-sentiment")
    found = dev.measure(torch.nn.Identity(), hash_encode, 1)
    assert dev.metric == "accuracy"
    assert found.metrics["accuracy"] == sb.evaluate(hash_encode, "sample-sentiment").scores[0].value
