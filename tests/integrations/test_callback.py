"""The callback in Transformers' own `Trainer`: log, best model, early stopping, and no trace in the training."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import sample_word_pieces

import stsbench as sb
from stsbench.data.benchmarks import load_sts

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from stsbench.integrations import StsCallback  # noqa: E402
from stsbench.integrations.dev_scores import pooled, undisturbed  # noqa: E402

METRIC = "eval_sample_spearman_cosine"


@pytest.fixture(scope="module")
def scored():
    """Return the sample's pairs as token ids of both sides, with their gold between 0 and 1."""
    tokenizer = sample_word_pieces(300)
    table = load_sts("sample", text="sample").pairs
    sides = {
        side: tokenizer(table[f"sentence{n}"].tolist(), padding="max_length", truncation=True, max_length=24)
        for n, side in ((1, "first"), (2, "second"))
    }
    return [
        {side: encoded["input_ids"][row] for side, encoded in sides.items()} | {"gold": gold / 5}
        for row, gold in enumerate(table["gold"])
    ]


class Words(torch.nn.Module):  # type: ignore[misc]
    """Means of word vectors, trained to have the gold scores as cosines; with dropout."""

    def __init__(self, words):
        super().__init__()
        torch.manual_seed(5)
        self.bag = torch.nn.EmbeddingBag(words, 32, padding_idx=0)
        self.dropout = torch.nn.Dropout(0.2)

    def vectors(self, ids):
        return self.dropout(self.bag(ids))

    def forward(self, first, second, gold):
        cosines = torch.nn.functional.cosine_similarity(self.vectors(first), self.vectors(second))
        return {"loss": ((cosines - gold.float()) ** 2).mean(), "cosines": cosines}


def encode(model, sentences):
    """Return the vectors of sentences by a model of words."""
    ids = sample_word_pieces(300)(sentences, padding=True, return_tensors="pt")["input_ids"]
    return model.vectors(ids)


def words_trainer(scored, out, **changes):
    """Return a trainer of a model that is none of Transformers'."""
    arguments = {
        "output_dir": str(out),
        "max_steps": 48,
        "per_device_train_batch_size": 16,
        "learning_rate": 0.3,
        "lr_scheduler_type": "constant",
        "eval_strategy": "steps",
        "eval_steps": 8,
        "save_strategy": "no",
        "remove_unused_columns": False,
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": True,
        "seed": 3,
    }
    has_own = (arguments | changes)["eval_strategy"] != "no"
    return transformers.Trainer(
        model=Words(len(sample_word_pieces(300))),
        args=transformers.TrainingArguments(**arguments | changes),
        train_dataset=scored,
        eval_dataset=scored[:16] if has_own else None,
    )


def evaluations(trainer):
    """Return the lines of a trainer's log that hold a dev score."""
    return [line for line in trainer.state.log_history if METRIC in line]


def test_scores_are_in_the_log_and_choose_the_best_model(scored, tmp_path):
    trainer = words_trainer(
        scored,
        tmp_path,
        save_strategy="steps",
        save_steps=8,
        load_best_model_at_end=True,
        metric_for_best_model=METRIC,
        greater_is_better=True,
    )
    trainer.add_callback(StsCallback(trainer, "sample", encode=encode))
    trainer.train()
    lines = evaluations(trainer)
    assert [line["step"] for line in lines] == [8, 16, 24, 32, 40, 48]
    assert trainer.state.best_metric == max(line[METRIC] for line in lines)
    for line in lines:
        assert line[f"{METRIC}_low"] < line[METRIC] < line[f"{METRIC}_high"]
    # The best weights are loaded now: they are measured, whatever was measured at the last step.
    metrics = trainer.evaluate()
    assert metrics[METRIC] == trainer.state.best_metric
    plain = sb.evaluate(lambda sentences: encode(trainer.model.eval(), sentences), "sample")
    assert metrics[METRIC] == pytest.approx(plain.scores[0].value, abs=1e-12)


def test_a_training_stops_where_nothing_rises_and_goes_on_where_it_does(scored, tmp_path):
    def steps(learning_rate):
        trainer = words_trainer(scored, tmp_path, learning_rate=learning_rate)
        trainer.add_callback(StsCallback(trainer, "sample", encode=encode, patience=2))
        trainer.train()
        return int(trainer.state.global_step)

    assert steps(0.0) == 24
    assert steps(0.3) == 48


def test_a_training_without_evaluations_is_measured_every_so_many_steps(scored, tmp_path):
    trainer = words_trainer(scored, tmp_path, eval_strategy="no", max_steps=20)
    trainer.add_callback(StsCallback(trainer, "sample", encode=encode, every=6))
    trainer.train()
    assert [line["step"] for line in evaluations(trainer)] == [6, 12, 18]


def test_a_training_with_the_callback_ends_with_the_weights_of_one_without(scored, tmp_path):
    def careless(model, sentences):
        torch.rand(3)
        model.train()
        return encode(model.eval(), sentences)

    def weights(*, measured):
        trainer = words_trainer(scored, tmp_path, eval_strategy="no", max_steps=12)
        if measured:
            trainer.add_callback(StsCallback(trainer, "sample", encode=careless, every=1))
        trainer.train()
        state: dict[str, Any] = trainer.model.state_dict()
        return state

    plain, other = weights(measured=False), weights(measured=True)
    assert all(torch.equal(tensor, other[name]) for name, tensor in plain.items())


@pytest.mark.parametrize("head", [False, True], ids=["network", "task head"])
@pytest.mark.parametrize("pooling", ["avg", "cls", "cls_before_pooler", "avg_first_last", "max", "last"])
def test_a_pooling_reads_what_the_saved_checkpoint_gives(pooling, head, tiny_bert, tmp_path):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert, model_max_length=12)
    kind = transformers.BertForSequenceClassification if head else transformers.BertModel
    model = kind.from_pretrained(tiny_bert).train()
    live_encode = pooled(tokenizer, pooling)
    with undisturbed(model):
        live = sb.evaluate(lambda sentences: live_encode(model, sentences), "sample")
    for saved in (model, tokenizer):
        saved.save_pretrained(tmp_path / "saved")
    kept = sb.evaluate(sb.load(str(tmp_path / "saved"), pooling=pooling), "sample")
    assert kept.scores[0].truncated_sentences
    # Not the scores: two pairs of nearly one cosine change their ranks by rounding.
    assert np.abs(live.items["cosine"] - kept.items["cosine"]).max() < 1e-6


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "there is neither a `pooling` nor a function"),
        ({"encode": encode, "pooling": "avg"}, "there are both a `pooling` and a function"),
        ({"pooling": "avg"}, "a pooling needs the tokenizer: give it to the trainer as `processing_class`"),
        ({"encode": encode, "every": 0}, "an evaluation after every 0 steps: give 1 or more"),
        ({"encode": encode, "patience": 0}, "a patience of 0 evaluations: give 1 or more"),
        ({"encode": encode, "tasks": "STS99"}, "STS99"),
    ],
)
def test_a_mistake_is_told_before_the_training(options, sentence, scored, tmp_path):
    trainer = words_trainer(scored, tmp_path)
    with pytest.raises(sb.UserError, match=sentence):
        StsCallback(trainer, **{"tasks": "sample"} | options)


def test_a_pooling_of_what_is_no_model_of_transformers_is_refused(tiny_bert):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert)
    with pytest.raises(sb.UserError, match="is a Words"):
        pooled(tokenizer, "avg")(Words(10), ["a"])
    model = transformers.BertModel(transformers.AutoConfig.from_pretrained(tiny_bert), add_pooling_layer=False)
    with pytest.raises(sb.UserError, match="cls_before_pooler"):
        pooled(tokenizer, "cls")(model, ["a"])
    for pooling in ("mask", "avg.head", "avgg"):
        with pytest.raises(sb.UserError, match=f"pooling '?{pooling}"):
            pooled(tokenizer, pooling.replace(".", "+"))


@pytest.mark.slow
def test_of_two_processes_the_first_measures_and_both_stop(scored, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import json, os, sys\n"
        "from pathlib import Path\n"
        f"sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).parents[1] / 'support')!r}]\n"
        "import test_callback as training\n"
        "from stsbench.integrations import StsCallback\n"
        f"scored = json.loads(Path({str(tmp_path / 'scored.json')!r}).read_text())\n"
        f"trainer = training.words_trainer(scored, Path({str(tmp_path / 'out')!r}), learning_rate=0.0)\n"
        "callback = StsCallback(trainer, 'sample', encode=training.encode, patience=2)\n"
        "trainer.add_callback(callback)\n"
        "trainer.train()\n"
        "told = [line[training.METRIC] for line in training.evaluations(trainer)]\n"
        "said = {'steps': trainer.state.global_step, 'told': told, 'measured': len(callback.dev.history)}\n"
        f"Path({str(tmp_path)!r}, os.environ['RANK'] + '.json').write_text(json.dumps(said))\n",
        encoding="utf-8",
    )
    (tmp_path / "scored.json").write_text(json.dumps(scored), encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(sb.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first["steps"] == second["steps"] == 24
    assert first["told"] == second["told"]
    assert len(first["told"]) == 3
    assert (first["measured"], second["measured"]) == (3, 0)
