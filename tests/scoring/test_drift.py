"""What a lower precision changes, recomputed by other means."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from stsbench.records.drift import drift_table
from typer.testing import CliRunner

from stsbench.base.errors import UserError
from stsbench.cli.app import app
from stsbench.data.benchmarks import load_sample
from stsbench.data.tables import StsData
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.records.record import RunRecord
from stsbench.scoring import drift
from stsbench.scoring.measure import measure_encoder
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.settings import Postprocessing, Settings, Stages

SETTINGS = Settings(use_cache=False, margin=0.5)


def _measured(checkpoint: Path, settings: Settings = SETTINGS, *, precision: str = "bf16") -> RunRecord:
    return measure_encoder(load(checkpoint, precision=precision), [load_sample()], settings, Stages())


def test_scores_cosines_and_neighbours_are_those_of_the_sample(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift, "PAIRS", 40)
    record = _measured(tiny_bert)
    found = record.drift
    assert found is not None
    (task,) = found.tasks
    assert task.pairs == 40

    data = load_sample()
    chosen = np.sort(drift.generator(drift.SEED, data.task, data.split).permutation(len(data.pairs))[:40])
    pairs = data.pairs.iloc[chosen]
    texts = list(dict.fromkeys([*pairs["sentence1"], *pairs["sentence2"]]))
    unit = {}
    for precision in ("fp32", "bf16"):
        # In batches as they were: of bf16 a sentence's vector depends on its batch by a last bit.
        asked = texts if precision == "fp32" else [*data.pairs["sentence1"], *data.pairs["sentence2"]]
        embedded = embed(load(tiny_bert, precision=precision), asked, use_cache=False)
        vectors = embedded.vectors["avg"][embedded.rows].astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        unit[precision] = dict(zip(asked, vectors, strict=True))
    scores = {}
    for precision, vectors in unit.items():
        cosines = [vectors[a] @ vectors[b] for a, b in zip(pairs["sentence1"], pairs["sentence2"], strict=True)]
        scores[precision] = spearmanr(pairs["gold"], cosines).statistic
    assert task.reference == pytest.approx(scores["fp32"], abs=1e-6)
    assert task.score == pytest.approx(scores["bf16"], abs=1e-6)

    one, other = (np.array([unit[precision][text] for text in texts]) for precision in ("bf16", "fp32"))
    # Texts that tokenise alike are one sentence.
    _, firsts = np.unique(other, axis=0, return_index=True)
    one, other = one[firsts], other[firsts]
    between = (one * other).sum(axis=1)
    assert found.sentences == len(between)
    assert found.cosine_lowest == pytest.approx(between.min(), abs=1e-6)
    assert found.cosine_mean == pytest.approx(between.mean(), abs=1e-6)
    nearest = [np.argsort(-(side @ side.T - 9 * np.eye(len(side))), axis=1)[:, :10] for side in (one, other)]
    shared = np.mean([len({*a} & {*b}) / 10 for a, b in zip(*nearest, strict=True)])
    # In float64; the last of two that are equally near may be the other one.
    assert found.overlap == pytest.approx(shared, abs=0.03)
    assert "bf16 against fp32, margin 0.5" in str(drift_table(found, record.model.precision))


def test_the_bound_decides(tiny_bert: Path) -> None:
    wide, narrow = (_measured(tiny_bert, replace(SETTINGS, margin=margin)).drift for margin in (50.0, 1e-6))
    assert wide is not None
    assert narrow is not None
    assert wide.passes
    assert not narrow.passes
    (task,) = wide.tasks
    assert task.interval is not None
    assert task.reference is not None
    assert task.score is not None
    assert task.interval[0] < task.reference - task.score < task.loss_high < task.interval[1]


def test_a_copy_of_itself_loses_nothing(tiny_bert: Path) -> None:
    encoder = load(tiny_bert)
    data = load_sample()
    embedded = embed(encoder, [*data.pairs["sentence1"], *data.pairs["sentence2"]], use_cache=False)
    vectors = embedded.vectors["avg"]
    table = drift.pair_table(data, vectors, embedded.rows, embedded.lengths)
    sampled = drift.sample(data, table, embedded.rows)
    again = drift.embed_sample(encoder, [sampled], SETTINGS, lambda *_: None)
    found = drift.drift_of([sampled], vectors, again, again.vectors["avg"], SETTINGS)
    assert found.tasks[0].verdict == "no worse"
    assert found.overlap > 0.99
    assert found.cosine_lowest == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "precision", "sentence"),
    [
        (SETTINGS, "fp32", "against fp32, which this is"),
        (replace(SETTINGS, postprocessing=Postprocessing(whiten=8)), "bf16", "whitening is of all"),
        (replace(SETTINGS, protocol=Protocol(metric="kendall")), "bf16", "spearman or pearson, not kendall"),
    ],
)
def test_what_has_no_gate_is_told(settings: Settings, precision: str, sentence: str, tiny_bert: Path) -> None:
    with pytest.raises(UserError, match=sentence):
        _measured(tiny_bert, settings, precision=precision)


def test_a_function_and_no_pairs_have_no_gate(toy_data: Callable[..., StsData], tiny_bert: Path) -> None:
    function = load(lambda texts: [[1.0, len(text)] for text in texts])
    with pytest.raises(UserError, match="no checkpoint that can be had in fp32"):
        drift.require_gate(function, [toy_data()], SETTINGS)
    with pytest.raises(UserError, match="no STS task is measured"):
        drift.require_gate(load(tiny_bert, precision="bf16"), [], SETTINGS)
    with pytest.raises(UserError, match="a margin of -1 points"):
        Settings(margin=-1.0)


def test_the_command_ends_with_the_verdict(tiny_bert: Path, tmp_path: Path) -> None:
    command = ["run", "-m", str(tiny_bert), "--tasks", "sample", "--precision", "bf16", "--no-cache"]
    runner = CliRunner()
    passed = runner.invoke(app, [*command, "--out", str(tmp_path / "a"), "--gate", "--margin", "50"])
    assert passed.exit_code == 0, passed.output
    assert "no worse" in passed.output
    failed = runner.invoke(app, [*command, "--out", str(tmp_path / "b"), "--gate", "--margin", "0.000001"])
    assert failed.exit_code == 3, failed.output
    assert (tmp_path / "b" / "run.json").is_file()
    alone = runner.invoke(app, [*command, "--margin", "1"])
    assert isinstance(alone.exception, UserError)
    assert "--margin is what --gate allows" in str(alone.exception)
