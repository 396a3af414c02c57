"""The evaluator in the trainers of sentence-transformers themselves, and the code of the page on trainings."""

import numpy as np
import pytest
import small_mteb_tasks as island
from tiny_models import sample_word_pieces

import stsbench as sb
from stsbench.data.benchmarks import load_sts

library = pytest.importorskip("sentence_transformers")
pytest.importorskip("accelerate")

from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss  # noqa: E402

from stsbench.integrations import StopWithoutRise, StsEvaluator, WithIntervals  # noqa: E402

METRIC = "eval_sample_spearman_cosine"


@pytest.fixture(scope="session")
def rows():
    """Return the sample's pairs with their gold between 0 and 1, as the libraries take them."""
    datasets = pytest.importorskip("datasets")
    table = load_sts("sample", text="sample").pairs
    return datasets.Dataset.from_dict(
        {
            "sentence1": table["sentence1"].tolist(),
            "sentence2": table["sentence2"].tolist(),
            "score": (table["gold"] / 5).tolist(),
        }
    )


@pytest.fixture
def sentence_model(tiny_bert):
    """Return a maker of one and the same small model of sentence-transformers, with dropout."""

    def make():
        return library.SentenceTransformer(str(tiny_bert), device="cpu")

    return make


def trained(model, rows, out, *, evaluator=None, callbacks=(), **changes):
    """Return a trainer that has trained a model on the sample's pairs."""
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


def evaluations(trainer):
    """Return the lines of a trainer's log that hold a dev score."""
    return [line for line in trainer.state.log_history if METRIC in line]


def test_the_trainer_logs_scores_with_limits_and_loads_the_best_by_them(sentence_model, rows, tmp_path):
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


def test_a_training_leaves_a_card_and_records_that_compare(sentence_model, rows, tmp_path):
    from huggingface_hub import ModelCard

    evaluator = StsEvaluator("sample", out=tmp_path / "dev")
    trainer = trained(sentence_model(), rows, tmp_path / "out", evaluator=evaluator)
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

    comparison = sb.compare(tmp_path / "dev" / "step-000004", tmp_path / "dev" / "step-000008")
    rise = comparison.rows["difference"][0] / 100
    assert rise == pytest.approx(evaluator.dev.history[1]["rise"])
    assert sb.load_run(tmp_path / "dev" / "step-000004").model.name == "step 4"

    named = StsEvaluator("sample", name="held out")
    named(trainer.model, str(tmp_path / "none"))
    assert named.primary_metric == "held out_spearman_cosine"


def test_a_training_stops_where_nothing_rises_and_goes_on_where_it_does(rows, tmp_path):
    import torch
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    def steps(learning_rate):
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


def test_early_stopping_without_an_evaluator_is_told(sentence_model, rows, tmp_path):
    trainer = trained(sentence_model(), rows, tmp_path, callbacks=[StopWithoutRise()])
    with pytest.raises(sb.UserError, match="give the trainer an StsEvaluator"):
        trainer.evaluate(rows)


def of_library(name):
    """Return an evaluator of sentence-transformers on sentences about an island."""
    from sentence_transformers.sentence_transformer import evaluation

    relevant = {query: {key for key, value in of.items() if value} for query, of in island.QRELS.items()}
    if name == "NanoBEIR":
        parts = [of_library("InformationRetrieval"), of_library("InformationRetrieval")]
        parts[1].queries_ids, parts[1].queries = parts[1].queries_ids[:5], parts[1].queries[:5]
        for part, task in zip(parts, "ab", strict=True):
            part.name = task

        class Two(evaluation.NanoBEIREvaluator):
            def _validate_dataset_names(self):
                """Accepts any names."""

            def _load_dataset(self, dataset_name, **_):
                return parts["ab".index(dataset_name)]

        return Two(["a", "b"])
    texts = list(island.CORPUS.values())
    first, second, labels = zip(*island.PAIRS, strict=True)
    given = {
        "InformationRetrieval": (island.QUERIES, island.CORPUS, relevant),
        "Reranking": (
            [
                {
                    "query": text,
                    "positive": [island.CORPUS[key] for key in sorted(relevant[query])],
                    "negative": [island.CORPUS[key] for key in island.CORPUS if key not in relevant[query]],
                }
                for query, text in island.QUERIES.items()
            ],
        ),
        "EmbeddingSimilarity": (
            first,
            second,
            [label + len(text) / 50 for text, label in zip(first, labels, strict=True)],
        ),
        "BinaryClassification": (first, second, labels),
        "Triplet": (texts[:6], texts[1:7], texts[6:]),
    }[name]
    functions = {"similarity_fn_names": ["cosine", "dot"]} if name in {"BinaryClassification", "Triplet"} else {}
    return getattr(evaluation, f"{name}Evaluator")(*map(_listed, given), name="dev", **functions)


def _listed(values):
    return list(values) if isinstance(values, tuple) else values


@pytest.mark.parametrize(
    "name",
    ["InformationRetrieval", "NanoBEIR", "Reranking", "EmbeddingSimilarity", "BinaryClassification", "Triplet"],
)
def test_an_evaluator_of_the_library_gets_the_interval_and_the_rise_of_its_own_numbers(name, sentence_model):
    import torch

    model, plain, wrapped = sentence_model(), of_library(name), WithIntervals(of_library(name))
    before = plain(model)
    measured = [wrapped(model, steps=1)]
    key = wrapped.primary_metric
    assert (key, wrapped.description) == (plain.primary_metric, plain.description)
    assert {metric: measured[0][metric] for metric in before} == pytest.approx(before)
    assert not [
        part
        for part in getattr(wrapped.evaluator, "evaluators", [wrapped.evaluator])
        if "embed_inputs" in vars(part)
    ]
    assert measured[0][f"{key}_low"] <= before[key] <= measured[0][f"{key}_high"]
    assert wrapped.history[0][list(wrapped.history[0])[1]] == pytest.approx(before[key], abs=1e-6)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    measured.append(wrapped(model, steps=2))
    prefix = f"{plain.name}_"
    assert measured[1][f"{prefix}rise"] == pytest.approx(measured[1][key] - measured[0][key], abs=1e-6)
    assert measured[1][f"{prefix}rise_low"] <= measured[1][f"{prefix}rise"] <= measured[1][f"{prefix}rise_high"]
    assert measured[1][f"{prefix}evaluations_without_rise"] in {0, 1}


def test_an_evaluator_without_numbers_by_item_is_refused():
    from sentence_transformers.sentence_transformer.evaluation import MSEEvaluator

    with pytest.raises(sb.UserError, match="MSEEvaluator gives no numbers by item"):
        WithIntervals(MSEEvaluator.__new__(MSEEvaluator))
