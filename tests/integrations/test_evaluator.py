"""The evaluator in the trainers of sentence-transformers themselves: log, best model, card, CSV."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_words import sample_word_pieces

import stsbench as sb

library = pytest.importorskip("sentence_transformers")
pytest.importorskip("accelerate")

METRIC = "eval_sample_spearman_cosine"


def trained(
    model: Any, rows: Any, out: Path, *, evaluator: Any = None, callbacks: Any = (), **changes: Any
) -> Any:
    """Return a trainer that has trained a model on the sample's pairs."""
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    arguments = {
        "output_dir": str(out),
        "max_steps": 8,
        "per_device_train_batch_size": 16,
        "learning_rate": 1e-3,
        "logging_steps": 4,
        "eval_strategy": "no" if evaluator is None else "steps",
        "eval_steps": 4,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "use_cpu": True,
        "seed": 3,
    }
    trainer = library.SentenceTransformerTrainer(
        model=model,
        args=library.SentenceTransformerTrainingArguments(**arguments | changes),
        train_dataset=rows,
        loss=CosineSimilarityLoss(model),
        evaluator=evaluator,
        callbacks=list(callbacks),
    )
    trainer.train()
    return trainer


def evaluations(trainer: Any) -> list[dict[str, float]]:
    """Return the lines of a trainer's log that hold a dev score."""
    return [line for line in trainer.state.log_history if METRIC in line]


def test_the_trainer_logs_scores_with_limits_and_loads_the_best_by_them(
    sentence_model: Callable[[], Any], rows: Any, tmp_path: Path
) -> None:
    from stsbench.integrations import StsEvaluator

    evaluator = StsEvaluator("sample", out=tmp_path / "dev")
    trainer = trained(
        sentence_model(),
        rows,
        tmp_path / "out",
        evaluator=evaluator,
        save_strategy="steps",
        save_steps=4,
        load_best_model_at_end=True,
        metric_for_best_model=METRIC,
        greater_is_better=True,
    )
    lines = evaluations(trainer)
    assert [line["step"] for line in lines] == [4, 8]
    assert evaluator.primary_metric == "sample_spearman_cosine"
    for line in lines:
        assert line[f"{METRIC}_low"] < line[METRIC] < line[f"{METRIC}_high"]
    assert trainer.state.best_metric == max(line[METRIC] for line in lines)
    for line in lines:
        saved = sb.evaluate(str(tmp_path / "out" / f"checkpoint-{line['step']}"), "sample")
        live = sb.load_run(tmp_path / "dev" / f"step-00000{line['step']}")
        assert live.scores[0].value == line[METRIC]
        assert live.scores[0].interval == (line[f"{METRIC}_low"], line[f"{METRIC}_high"])
        # Not the scores: two pairs of nearly one cosine change their ranks by rounding.
        assert np.abs(live.items["cosine"] - saved.items["cosine"]).max() < 1e-6


def test_a_training_with_the_evaluator_ends_with_the_weights_of_one_that_measures_nothing(
    sentence_model: Callable[[], Any], rows: Any, tmp_path: Path
) -> None:
    from sentence_transformers.base.evaluation import BaseEvaluator

    from stsbench.integrations import StsEvaluator

    class Nothing(BaseEvaluator):  # type: ignore[misc]
        """The trainer itself draws a random number at each evaluation."""

        def __call__(self, *_: Any, **__: Any) -> float:
            return 0.0

    torch = pytest.importorskip("torch")
    plain, measured = sentence_model(), sentence_model()
    trained(plain, rows, tmp_path / "plain", evaluator=Nothing(), eval_steps=2)
    trained(measured, rows, tmp_path / "measured", evaluator=StsEvaluator("sample"), eval_steps=2)
    of_measured = measured.state_dict()
    for name, tensor in plain.state_dict().items():
        assert torch.equal(tensor, of_measured[name]), name


def test_the_card_parses_and_holds_the_last_scores_and_their_signature(
    sentence_model: Callable[[], Any], rows: Any, tmp_path: Path
) -> None:
    from huggingface_hub import ModelCard

    from stsbench.integrations import StsEvaluator

    trainer = trained(sentence_model(), rows, tmp_path / "out", evaluator=StsEvaluator("sample"))
    trainer.model.save_pretrained(str(tmp_path / "model"))
    card = ModelCard.load(tmp_path / "model" / "README.md")
    found = {result.metric_type: result for result in card.data.eval_results}
    last = evaluations(trainer)[-1]
    for metric in ("spearman_cosine", "spearman_cosine_low", "spearman_cosine_high"):
        assert found[metric].metric_value == pytest.approx(last[f"eval_sample_{metric}"])
        assert found[metric].dataset_name == "sample"
    assert not any("rise" in metric for metric in found)
    assert f"**{last[METRIC]:.4f}**" in card.text
    assert "sample:test:all|spearman|cosine" in card.text


def test_the_csv_has_a_row_for_each_evaluation_and_refuses_rows_of_another(
    sentence_model: Callable[[], Any], rows: Any, tmp_path: Path
) -> None:
    from stsbench.integrations import StsEvaluator

    trainer = trained(sentence_model(), rows, tmp_path / "out", evaluator=StsEvaluator("sample"))
    path = tmp_path / "out" / "eval" / "stsbench_sample_results.csv"
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [int(line["steps"]) for line in lines] == [4, 8]
    for line, logged in zip(lines, evaluations(trainer), strict=True):
        assert float(line["spearman_cosine"]) == logged[METRIC]
    assert lines[0]["rise"] == ""
    assert float(lines[1]["rise"]) == pytest.approx(
        float(lines[1]["spearman_cosine"]) - float(lines[0]["spearman_cosine"])
    )
    path.write_text("epoch,steps,other\n", encoding="utf-8")
    with pytest.raises(sb.UserError, match="has other columns than this evaluation: move it away"):
        StsEvaluator("sample")(trainer.model, str(path.parent))


def test_fit_evaluates_and_keeps_the_best_model(
    sentence_model: Callable[[], Any], rows: Any, tmp_path: Path
) -> None:
    from sentence_transformers import InputExample
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
    from torch.utils.data import DataLoader

    from stsbench.integrations import StsEvaluator

    model, evaluator = sentence_model(), StsEvaluator("sample")
    examples = [InputExample(texts=[row["sentence1"], row["sentence2"]], label=row["score"]) for row in rows]
    scores: list[float] = []
    model.fit(
        train_objectives=[(DataLoader(examples, batch_size=32, shuffle=True), CosineSimilarityLoss(model))],  # type: ignore[arg-type]
        evaluator=evaluator,
        epochs=2,
        output_path=str(tmp_path / "best"),
        optimizer_params={"lr": 1e-3},
        warmup_steps=0,
        show_progress_bar=False,
        callback=lambda score, epoch, steps: scores.append(score),
    )
    assert [line["step"] for line in evaluator.dev.history] == [8, 16]
    assert scores == [line["spearman_cosine"] for line in evaluator.dev.history]
    best = sb.evaluate(str(tmp_path / "best"), "sample")
    assert best.scores[0].value == pytest.approx(max(scores), abs=1e-3)


def test_a_training_stops_where_nothing_rises_and_goes_on_where_it_does(rows: Any, tmp_path: Path) -> None:
    import torch
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    from stsbench.integrations import StopWithoutRise, StsEvaluator

    def steps(learning_rate: float) -> int:
        torch.manual_seed(5)
        words = StaticEmbedding(sample_word_pieces(300).backend_tokenizer, embedding_dim=32)
        trainer = trained(
            library.SentenceTransformer(modules=[words], device="cpu"),
            rows,
            tmp_path / str(learning_rate),
            evaluator=StsEvaluator("sample"),
            callbacks=[StopWithoutRise(patience=2)],
            learning_rate=learning_rate,
            lr_scheduler_type="constant",
            max_steps=48,
            eval_steps=8,
        )
        last = evaluations(trainer)[-1]
        if trainer.state.global_step < 48:
            assert last["eval_sample_evaluations_without_rise"] == 2
        return int(trainer.state.global_step)

    assert steps(0.0) == 24
    assert steps(0.3) == 48


def test_early_stopping_without_an_evaluator_is_told(
    sentence_model: Callable[[], Any], rows: Any, tmp_path: Path
) -> None:
    from stsbench.integrations import StopWithoutRise

    with pytest.raises(sb.UserError, match="give the trainer an StsEvaluator"):
        trained(
            sentence_model(),
            rows,
            tmp_path,
            callbacks=[StopWithoutRise()],
        ).evaluate(rows)


def test_records_of_the_evaluations_compare(sentence_model: Callable[[], Any], rows: Any, tmp_path: Path) -> None:
    from stsbench.integrations import StsEvaluator

    evaluator = StsEvaluator("sample", out=tmp_path / "dev", name="held out", write_csv=False)
    trained(sentence_model(), rows, tmp_path / "out", evaluator=evaluator)
    comparison = sb.compare(tmp_path / "dev" / "step-000004", tmp_path / "dev" / "step-000008")
    assert comparison.rows["difference"][0] / 100 == pytest.approx(evaluator.dev.history[1]["rise"])
    assert not list((tmp_path / "out").rglob("*.csv"))
    assert evaluator.primary_metric == "held out_spearman_cosine"
    assert json.loads((tmp_path / "dev" / "step-000004" / "run.json").read_text())["model"]["name"] == "step 4"
