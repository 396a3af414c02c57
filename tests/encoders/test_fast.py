"""`run --fast`: the quickest at hand that passes the gate, said and recorded; fp32 where none does."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import stsbench as sb
from stsbench.base.files import cache_dir
from stsbench.cli.app import app
from stsbench.encoders import fast
from stsbench.encoders.fast import Candidate, quickest

BF16, FP16 = Candidate("torch", "bf16"), Candidate("torch", "fp16")


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[Candidate, float]], None]:
    """Return a function that sets the candidates and how many times as fast as fp32 each is."""

    def pace(ratios: dict[Candidate, float]) -> None:
        def times_as_fast(_encoder: Any, other: Any) -> float:
            return ratios[Candidate(other.use.backend, other.use.precision)]

        monkeypatch.setattr(fast, "CANDIDATES", tuple(ratios))
        monkeypatch.setattr(fast, "_times_as_fast", times_as_fast)

    return pace


def test_the_quickest_that_passes_measures_and_is_recorded_and_kept(
    tiny_bert: Path, paced: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    paced({BF16: 1.5, FP16: 1.2})
    # Of a model that knows nothing the sample cannot tell half a point.
    monkeypatch.setattr(fast, "LARGEST_LOSS", 1)
    record = sb.evaluate(quickest(sb.load(tiny_bert, device="cpu")), "sample")
    plain = sb.evaluate(sb.load(tiny_bert, precision="bf16", device="cpu"), "sample")
    assert record.scores[0].signature == plain.scores[0].signature
    assert "|bf16|" in record.scores[0].signature
    assert record.scores[0].value == plain.scores[0].value
    (said,) = [note for note in record.notes if note.startswith("--fast: ")]
    assert said.startswith("--fast: bf16 instead of fp32, 1.5 times as fast; ")
    full = sb.evaluate(sb.load(tiny_bert, device="cpu"), "sample")
    moved = 100 * ((plain.scores[0].value or 0) - (full.scores[0].value or 0))
    assert f"{moved:+.2f} points on the sample" in said
    # It is not chosen again, unless what was kept is damaged.
    monkeypatch.setattr(fast, "_choose", lambda *_: pytest.fail("it was chosen before"))
    assert quickest(sb.load(tiny_bert, device="cpu")).use.precision == "bf16"
    (kept,) = (cache_dir() / "compiled").glob("*.json")
    kept.write_text("{")
    again = fast.Choice("torch", "fp16", 1.3, "--fast: again")
    monkeypatch.setattr(fast, "_choose", lambda *_: again)
    assert quickest(sb.load(tiny_bert, device="cpu")).use.precision == "fp16"
    assert json.loads(kept.read_text())["precision"] == "fp16"
    # In a cache that several machines share, another processor chooses for itself.
    monkeypatch.setattr(fast, "processor", lambda: "another with other instructions")
    monkeypatch.setattr(fast, "_choose", lambda *_: fast.Choice("torch", "bf16", 1.4, "--fast: elsewhere"))
    assert quickest(sb.load(tiny_bert, device="cpu")).use.precision == "bf16"


@pytest.mark.parametrize(
    ("ratios", "chosen"),
    [
        ({BF16: 1.9, FP16: 3.0}, "bf16"),
        ({BF16: 1.5, FP16: 3.0}, "fp16"),
        ({BF16: 1.5, FP16: 1.3}, "bf16"),
        ({BF16: 0.9, FP16: 1.2}, "fp16"),
    ],
)
def test_the_search_ends_at_a_candidate_that_is_fast_enough(
    tiny_bert: Path,
    paced: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    ratios: dict[Candidate, float],
    chosen: str,
) -> None:
    paced(ratios)
    monkeypatch.setattr(fast, "_change", lambda *_: (0.0, 0.001))
    assert quickest(sb.load(tiny_bert, device="cpu")).use.precision == chosen


def test_a_choice_is_for_what_is_done_to_the_vectors(
    tiny_bert: Path, paced: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    paced({BF16: 1.5})
    tried = []
    change = fast._change
    monkeypatch.setattr(fast, "_change", lambda a, b: tried.append(b.use.whiten) or change(a, b))
    monkeypatch.setattr(fast, "LARGEST_LOSS", 1)
    for whiten, expected in ((None, [None]), (4, [4]), (4, [])):
        tried.clear()
        quickest(sb.load(tiny_bert, device="cpu", whiten=whiten))
        assert tried == expected, "the third finds the choice of the second"


def test_a_choice_for_weights_that_are_not_hashed_is_made_each_time(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = sb.load(tiny_bert, device="cpu")
    monkeypatch.setattr(encoder, "identity", replace(encoder.identity, weights_sha256=None), raising=False)
    for precision in ("bf16", "fp16"):
        monkeypatch.setattr(fast, "_choose", lambda *_, it=precision: fast.Choice("torch", it, 1.3, "--fast: it"))
        assert quickest(encoder).use.precision == precision


def test_what_loses_more_than_the_gate_allows_or_takes_longer_is_left_out_and_said(
    tiny_bert: Path, paced: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    paced({BF16: 3.0, FP16: 0.5})
    monkeypatch.setattr(fast, "_change", lambda *_: (-0.004, 0.0061))
    record = sb.evaluate(quickest(sb.load(tiny_bert, device="cpu")), "sample")
    assert "|fp32|" in record.scores[0].signature
    (said,) = [note for note in record.notes if note.startswith("--fast: ")]
    assert said.startswith(
        "--fast: fp32; nothing is faster at the same score (bf16: -0.40 points on the sample, a loss of at most"
    )
    assert "fp16 is 0.50 times as fast" in said


def test_the_loss_is_the_gates(tiny_bert: Path, tmp_path: Path) -> None:
    plain, other = (
        sb.evaluate(sb.load(tiny_bert, precision=precision, device="cpu"), "sample", out=tmp_path / precision)
        for precision in ("fp32", "bf16")
    )
    change, loss = fast._change(*(sb.load(tiny_bert, precision=p, device="cpu") for p in ("fp32", "bf16")))
    check = sb.check(other, baseline=plain, margin=0.5)
    (cell,) = check.cells
    assert 100 * change == pytest.approx(cell.difference)
    assert 100 * loss == pytest.approx(cell.loss_high)


def test_the_times_are_of_both_encoding_the_same(tiny_bert: Path) -> None:
    encoder = sb.load(tiny_bert, device="cpu", whiten=8)
    assert 0.01 < fast._times_as_fast(encoder, encoder) < 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--precision", "bf16"], "--fast chooses the precision, but bf16 is given: leave out --fast, or"),
        (["--gate"], "--gate compares a lower precision with fp32"),
    ],
)
def test_what_was_chosen_already_is_told(
    tiny_bert: Path, tmp_path: Path, paced: Callable[..., None], options: list[str], message: str
) -> None:
    paced({})
    command = ["run", "-m", str(tiny_bert), "--tasks", "sample", "--fast", "--device", "cpu", *options]
    result = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "run")])
    assert isinstance(result.exception, sb.UserError)
    assert message in str(result.exception)
    assert not (tmp_path / "run").exists()


def test_what_is_no_checkpoint_of_layers_is_told(tmp_path: Path) -> None:
    with pytest.raises(sb.UserError, match="is not a Transformers checkpoint"):
        quickest(sb.load(lambda texts: [[len(text), 1] for text in texts]))
    similarities = tmp_path / "own.txt"
    similarities.write_text("1\n" * 252)
    result = CliRunner().invoke(app, ["run", "--similarities", str(similarities), "--tasks", "sample", "--fast"])
    assert isinstance(result.exception, sb.UserError)
    assert "holds saved numbers: leave" in str(result.exception)
