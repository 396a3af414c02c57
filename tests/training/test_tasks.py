"""Heads on labelled tables: their losses, when they are trained, and what a training with them leaves."""

import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small_trainings import left, plain_vectors

import stsbench as sb
from stsbench.training.batches import make_timetable
from stsbench.training.recipe import read_recipe
from stsbench.training.tasks import CONTRASTIVE, Classification, Regression

TABLE = {"train": "t.csv", "columns": ("a", "b", "c")}


@pytest.fixture
def make(assembled, tasks, benchmark_folder):
    """Put a trainer with the three tasks together."""
    return lambda *more: assembled(*tasks.splitlines(), *more, data_dirs=[benchmark_folder])


def plain_loss(name, features, head, targets):
    """The loss of each head as an equation, row by row."""
    weight, bias = head[-1].weight, head[-1].bias
    losses = []
    for row, target in zip(features, targets, strict=True):
        numbers = [sum(w * x for w, x in zip(line, row, strict=True)) for line in weight]
        numbers = [number + b for number, b in zip(numbers, bias, strict=True)]
        if name == "mood":
            losses.append(-torch.log(torch.exp(numbers[int(target)]) / sum(map(torch.exp, numbers))))
        elif name == "same":
            yes = 1 / (1 + torch.exp(-numbers[0]))
            losses.append(-torch.log(yes if target == 1 else 1 - yes))
        else:
            losses.append((numbers[0] - target) ** 2)
    return torch.stack(losses).mean()


@pytest.mark.parametrize("name", ["mood", "same", "score"])
def test_a_heads_loss_and_gradients_equal_the_equations_one_sentence_at_a_time(name, make):
    trainer = make("dropout=0", "optimiser.chunk=3", *(f"tasks.{t}.dropout=0" for t in ("mood", "same", "score")))
    (term,) = [task for task in trainer.tasks if task.name == name]
    model, head = trainer.model.double(), term.head.double()
    model._pooler = lambda states, mask: (states[-1] * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
    loss, batch = term(0, lambda value: value)
    weights = {**dict(model.named_parameters()), **{f"task {n}": p for n, p in head.named_parameters()}}
    found = {n: p.grad.clone() for n, p in weights.items() if p.grad is not None}
    assert {"task 1.weight", "task 1.bias"} <= found.keys()
    for parameter in weights.values():
        parameter.grad = None

    sides = [plain_vectors(model, torch.nn.Identity(), side) for side in batch.sides]
    assert [len(side) for side in sides] == [{"mood": 6, "same": 4, "score": 8}[name]] * (1 + (name != "mood"))
    features = torch.cat(sides, dim=1)
    expected = plain_loss(name, features, head, batch.targets) * (0.5 if name == "score" else 1)
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), abs=1e-12)
    for key, gradient in found.items():
        torch.testing.assert_close(gradient, weights[key].grad, atol=1e-10, rtol=1e-8)


def batch_of(term, turn):
    return term(turn, lambda value: value)[1]


def test_the_batch_is_that_of_the_table_with_its_labels(make):
    trainer = make("optimiser.batch=5")
    (term,) = [task for task in trainer.tasks if task.name == "score"]
    seen, as_tuples = [], lambda pair: tuple(map(tuple, pair))
    for turn in range(term.schedule.steps_per_epoch):
        batch = batch_of(term, turn)
        seen += zip(map(as_tuples, zip(*batch.sides, strict=True)), batch.targets, strict=True)
    tokens = map(as_tuples, zip(*term.sides, strict=True))
    assert sorted(seen) == sorted(zip(tokens, term.task.train.targets, strict=True))
    assert {len(batch_of(term, turn).targets) for turn in range(term.schedule.steps_per_epoch)} == {
        5,
        4,
    }  # of 19 rows


def test_heads_have_dropout_one_logit_for_two_classes_and_their_measures(make):
    pair = Classification(kind="pair-classification", classes=(0, 1), **TABLE)
    more = Classification(kind="pair-classification", classes=(0, 1, 2), **TABLE)
    single = Classification(kind="classification", train="t.csv", columns=("a", "b"), classes=(0, 1, 2))
    assert [pair.outputs, more.outputs, single.outputs] == [1, 3, 3]
    (term,) = [task for task in make("tasks.same.dropout=0.4").tasks if task.name == "same"]
    dropout, linear = term.head
    assert (dropout.p, linear.in_features, linear.out_features) == (0.4, 32, 1)
    outputs, targets = torch.tensor([[2.0], [-1.0], [3.0], [-2.0]]), torch.tensor([1.0, 0, 0, 0])
    assert pair.score(outputs, targets) == 0.75
    assert single.score(torch.tensor([[0.0, 1, 5], [9, 1, 2]]), torch.tensor([2.0, 1])) == 0.5
    regression = Regression(kind="regression", scale=(0, 5), **TABLE)
    estimates, gold = torch.tensor([[1.0], [2], [4]]), torch.tensor([0.0, 0.5, 0.6])
    assert regression.score(estimates, gold) == pytest.approx(np.corrcoef([1, 2, 4], [0, 0.5, 0.6])[0, 1])
    assert math.isnan(regression.score(torch.ones((3, 1)), gold))


def timetable(phases, **rates):
    tasks = {
        name: f"{{kind: classification, train: t.csv, columns: [a, b], classes: [0, 1], rate: {rate}}}"
        for name, rate in rates.items()
    }
    overrides = [f"tasks.{name}={keys}" for name, keys in tasks.items()]
    recipe = read_recipe("demo", [*overrides, f"phases={phases}", "optimiser.epochs=2", "seed=5"])
    return make_timetable(recipe, {CONTRASTIVE: 1000, "a": 200, "b": 2500})


def test_together_each_step_takes_the_corpus_and_tasks_at_their_rates():
    plan = timetable([], a="once", b="always")
    assert (plan.steps, plan.epochs[-1]) == (2000, 2)
    assert plan.turns[CONTRASTIVE].tolist() == plan.turns["b"].tolist() == list(range(2000))
    taken = plan.turns["a"][plan.turns["a"] >= 0]
    assert taken.tolist() == list(range(len(taken)))
    assert len(taken) / 2000 == pytest.approx(0.2, abs=0.035)
    # A table that is longer than the epoch is in every step.
    assert (timetable([], a="always", b="once").turns["b"] >= 0).all()
    # Drawn independently, from the seed alone.
    plan, again = (timetable("[{takes: [b, contrastive, a]}]", a="once", b="once") for _ in range(2))
    assert all((plan.turns[name] == again.turns[name]).all() for name in plan.turns)
    assert plan.steps == 5000


def test_phases_follow_one_another_each_with_its_own_epochs():
    plan = timetable(
        "[{takes: [contrastive], epochs: 1}, {takes: [b, a]}, {takes: [a], epochs: 3}]", a="once", b="always"
    )
    assert plan.steps == 6600
    corpus, a, b = (plan.turns[name] >= 0 for name in (CONTRASTIVE, "a", "b"))
    assert corpus[:1000].all()
    assert not corpus[1000:].any()
    assert not (a | b)[:1000].any()
    assert b[1000:6000].all()
    assert a[1000:6000].mean() == pytest.approx(200 / 2500, abs=0.02)
    assert a[6000:].all()
    assert plan.turn("a", 6599) == a.sum() - 1
    assert plan.turn("b", 6000) is None
    assert plan.epochs[[0, 500, 1000, 3500, 6000, 6600]].tolist() == [0, 0.5, 1, 2, 3, 6]


@pytest.fixture
def together(train, tasks, benchmark_folder):
    return lambda *more, **options: train(*tasks.splitlines(), *more, data_dirs=[benchmark_folder], **options)


def test_a_training_with_tasks_says_their_scores_everywhere_and_keeps_its_heads_to_itself(together, tmp_path):
    notices = []
    done = together("selection.every=3", notice=notices.append)
    scored = [line for line in done.log if line["kind"] == "dev"]
    assert [set(line["tasks"]) for line in scored] == [{"mood", "same", "score"}] * 3  # before, at 3, at 6
    for line in (line for line in done.log if line["kind"] == "train"):
        assert {CONTRASTIVE, "mood"} <= line["losses"].keys() <= {CONTRASTIVE, "mood", "same", "score"}
    at_best = next(line["tasks"] for line in scored if line["step"] == done.best.step)
    record = sb.load_run(done.folder)
    assert [(head.task, head.kind, head.measure, head.score) for head in record.heads] == [
        ("mood", "classification", "accuracy", at_best["mood"]["accuracy"]),
        ("same", "pair-classification", "accuracy", at_best["same"]["accuracy"]),
        ("score", "regression", "pearson", at_best["score"]["pearson"]),
    ]
    assert [(head.ntrain, head.ndev) for head in record.heads] == [(27, 3), (19, 2), (19, 2)]
    assert done.frame["mood accuracy"].notna().sum() == 3
    assert done.frame["mood loss"].notna().sum() == 4  # at 2, 3, 4 and 6
    row = done.table()[0].frame.iloc[0]
    assert row["mood accuracy × 100"] == 100 * at_best["mood"]["accuracy"]
    assert done.to_dict()["training"]["heads"]["score"]["pearson"] == at_best["score"]["pearson"]
    assert len(done.plot().axes) == 2
    assert "head mood, trained with the encoder: accuracy" in str(sb.show(record).remarks)
    told = [notice for notice in notices if notice.startswith("task ")]
    assert [sentence.split(":")[0] for sentence in told] == ["task mood", "task same", "task score"]
    assert set(told) <= {line.get("remark") for line in done.log} & set(record.notes)
    assert not [note for note in record.notes if "Trained on test pairs" in note]
    card = (done.folder / "README.md").read_text(encoding="utf-8")
    assert f"mood accuracy {100 * at_best['mood']['accuracy']:.2f}" in card
    assert "Task same: 19 rows to train on, 2 to score" in card

    assert not [name for name in load_file(done.folder / "model.safetensors") if "tasks" in name]
    assert str(tmp_path) not in card
    assert "train: mood.tsv" in card
    # The recipe that it leaves trains the same again, from anywhere.
    assert read_recipe(done.folder / "recipe.yaml").tasks["mood"].train == str(tmp_path / "mood.tsv")


def test_a_training_with_phases_that_was_killed_goes_on_to_the_same_bits_with_the_same_tables(
    together, tmp_path, benchmark_folder
):
    more = (
        "phases=[{takes: [contrastive, mood]}, {takes: [mood, same, score]}]",
        "saving.every=3",
        "log_every=1",
        "selection.every=4",
    )
    whole = together(*more, out="whole")
    assert whole.steps == 6 + 5  # of 27 rows in batches of 6

    def die(line):
        if (line["step"], line["kind"]) == (8, "train"):
            raise KeyboardInterrupt

    with pytest.raises(sb.UserError, match="interrupted"):
        together(*more, out="killed", listeners=[die])
    table = tmp_path / "mood.tsv"
    text = table.read_text(encoding="utf-8")
    table.write_text(text + "one more\t1\n", encoding="utf-8")
    again = {"resume": tmp_path / "killed", "device": "cpu", "data_dirs": [benchmark_folder]}
    with pytest.raises(sb.UserError, match="the labelled table of a task differs from the one at the start of"):
        sb.train(**again)
    table.write_text(text, encoding="utf-8")
    resumed = sb.train(**again)
    assert resumed.record.heads == whole.record.heads
    assert left(tmp_path / "killed") == left(tmp_path / "whole")


def test_what_was_trained_on_test_pairs_says_so_everywhere(together, tmp_path, benchmark_folder):
    from stsbench.data.benchmarks import load_sts
    from stsbench.reports.scores import reproducibility

    test = load_sts("STS-B", "test", data_dirs=[benchmark_folder]).pairs
    with (tmp_path / "pairs.tsv").open("a", encoding="utf-8") as stream:
        for one, other in zip(test["sentence1"], test["sentence2"], strict=True):
            stream.write(f"{one}\t{other}\t1\t3\n")
    notices = []
    kept = together("labelled.test_pairs=kept", out="kept", notice=notices.append)
    assert [head.ntrain for head in kept.record.heads] == [27, 37, 37]
    said = "Trained on test pairs: "
    assert len([notice for notice in notices if notice.startswith(said)]) == 3  # the recipe, and of both tables
    assert "test_pairs: kept" in (kept.folder / "recipe.yaml").read_text(encoding="utf-8")
    assert said in (kept.folder / "README.md").read_text(encoding="utf-8")
    assert said in str(kept)
    assert len([line for line in kept.log if line.get("remark", "").startswith(said)]) == 3
    later = sb.evaluate(str(kept.folder), "STS-B", data_dirs=[benchmark_folder])
    for record in (sb.load_run(kept.folder), later):
        assert len([note for note in record.notes if note.startswith(said)]) == 3
    assert said in str(reproducibility({"kept": later}))
