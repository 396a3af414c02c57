"""Back ends: only the layers are another program's. `--fast`: the fastest that loses little, stated and kept."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import stsbench as sb
from stsbench.base.errors import UserError
from stsbench.base.extras import PACKAGES
from stsbench.base.files import cache_dir
from stsbench.cli.app import app
from stsbench.data.benchmarks import load_sample, sample_sentences
from stsbench.encoders import backends
from stsbench.encoders.backends import CALIBRATION_SENTENCES, CompiledModel, calibration, quickest
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.poolers import POOLING_NAMES
from stsbench.encoders.template import Template

TEXTS = ["A cat sat on the mat.", "Rain", "Two children carry a red boat down to the water.", "rain fell"]


def test_everything_but_the_layers_is_unchanged(tiny_bert: Path) -> None:
    import torch

    encoder: Any = load(tiny_bert)
    encoder.prepare(weights=True)
    sequences, poolings = encoder.tokenize(TEXTS).sequences, [*POOLING_NAMES, "cls_before_pooler+head", "avg@-2"]
    expected = encoder.forward(sequences, poolings)
    model = encoder._network.model

    def compute(ids: Any, mask: Any) -> Any:
        tensors = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        with torch.inference_mode():
            return [state.numpy() for state in model(**tensors, output_hidden_states=True).hidden_states]

    known = model.get_input_embeddings().num_embeddings
    encoder._network.model = CompiledModel(compute, known, model.config, model.pooler)
    compiled = encoder.forward(sequences, poolings)
    for pooling in poolings:
        np.testing.assert_allclose(compiled[pooling], expected[pooling], atol=1e-6)
    with pytest.raises(UserError, match=f"the model has {known} tokens"):
        encoder.forward([(2, known, 3)], ["avg"])
    template = Template(name="t", texts=("of {sentence}",), pooling="last", subtract="template")
    subtracting = encoder.with_template(template)
    with pytest.raises(UserError, match="takes no positions"):
        subtracting.forward(subtracting.tokenize(TEXTS).sequences, ["last"])


@pytest.mark.parametrize(
    ("use", "words"),
    [
        ({"precision": "int8"}, ("torch", "'int8'", "bf16")),
        ({"precision": "fp8"}, ("'fp8'",)),
        ({"backend": ""}, ("back end ''",)),
        ({"backend": "opnvino", "precision": "int8"}, ("'opnvino'", "openvino")),
        ({"backend": "openvino", "precision": "fp16"}, ("openvino", "'fp16'", "int8")),
        ({"backend": "openvino", "device": "cuda"}, ("openvino", "--device cuda")),
        ({"backend": "openvino"}, ("openvino and nncf", "pip install 'stsbench[openvino]'")),
    ],
)
def test_what_a_back_end_cannot_do_is_refused(
    use: dict[str, Any], words: tuple[str, ...], tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("openvino", "nncf"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError) as error:
        load(tiny_bert, **use)
    assert all(word in str(error.value) for word in words)


def test_the_calibration_has_no_sentence_that_is_scored() -> None:
    sentences, digest = calibration()
    assert len(set(sentences)) == CALIBRATION_SENTENCES
    assert len(digest) == 4
    assert set(sentences) <= set(sample_sentences())
    pairs = load_sample().pairs
    assert not set(sentences) & {*pairs["sentence1"], *pairs["sentence2"]}


def test_fp32_of_openvino_is_torchs(tiny_bert: Path) -> None:
    _require()
    expected, compiled = (
        embed(load(tiny_bert, backend=name), TEXTS, poolings=["avg", "avg_first_last"], use_cache=False).vectors
        for name in ("torch", "openvino")
    )
    for pooling, vectors in expected.items():
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        assert (np.abs(compiled[pooling] - vectors) / norms).max() < 1e-5


def test_int8_is_compiled_once_and_gives_a_sentence_one_vector(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _require()
    encoder = load(tiny_bert, backend="openvino", precision="int8")
    assert encoder.identity.use.computed_in == f"openvino-int8#{calibration()[1]}"
    together = embed(encoder, TEXTS, use_cache=False).vectors["avg"]
    exact = embed(load(tiny_bert), TEXTS, use_cache=False).vectors["avg"]
    assert np.abs(together - exact).max() > 1e-4
    monkeypatch.setattr(backends, "_export", None)
    again = load(tiny_bert, backend="openvino", precision="int8")
    alone = np.concatenate([embed(again, [text], use_cache=False).vectors["avg"] for text in TEXTS])
    np.testing.assert_allclose(alone, together, atol=1e-5)


def _require() -> None:
    for module in PACKAGES["openvino"]:
        pytest.importorskip(module, reason=f"needs {module}: pip install 'stsbench[openvino]'")


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets the precisions to try, and how many times as fast as fp32 each is."""

    def pace(**ratios: float) -> None:
        monkeypatch.setattr(backends, "CANDIDATES", tuple(("torch", precision) for precision in ratios))
        monkeypatch.setattr(backends, "_times_as_fast", lambda _, other: ratios[other.use.precision])

    return pace


def test_the_fastest_that_passes_is_used_recorded_and_kept(
    tiny_bert: Path, paced: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    paced(bf16=1.5, fp16=1.2)
    # With random weights the sample cannot decide about half a point.
    monkeypatch.setattr(backends, "LARGEST_LOSS", 1)
    record = sb.evaluate(quickest(sb.load(tiny_bert, device="cpu")), "sample")
    lower, full = (
        sb.evaluate(sb.load(tiny_bert, precision=p, device="cpu"), "sample").scores[0] for p in ("bf16", "fp32")
    )
    assert (record.scores[0].signature, record.scores[0].value) == (lower.signature, lower.value)
    (note,) = [note for note in record.notes if note.startswith("--fast: ")]
    assert note.startswith("--fast: bf16 instead of fp32, 1.5 times as fast; ")
    assert f"{100 * ((lower.value or 0) - (full.value or 0)):+.2f} points on the sample" in note

    def chosen(precision: str | None) -> str:
        monkeypatch.setattr(backends, "_choose", lambda *_: ("torch", precision, "--fast: again"))
        return str(quickest(sb.load(tiny_bert, device="cpu")).use.precision)

    assert chosen(None) == "bf16", "it is kept"
    (kept,) = (cache_dir() / "compiled").glob("*.json")
    kept.write_text("{")
    assert chosen("fp16") == chosen(None) == "fp16", "a damaged choice is made again"
    monkeypatch.setattr(backends.platform, "node", lambda: "another")
    assert chosen("fp32") == "fp32", "another machine chooses for itself"


@pytest.mark.parametrize(
    ("ratios", "loss", "chosen", "words"),
    [
        ({"bf16": 1.5, "fp16": 3.0}, 0.001, "fp16", ("3.0 times",)),
        ({"bf16": 1.5, "fp16": 1.3}, 0.001, "bf16", ("fp16 is 1.30 times as fast",)),
        ({"bf16": 0.9, "fp16": 1.05}, 0.001, "fp32", ("bf16 is 0.90", "fp16 is 1.05")),
        ({"bf16": 3.0}, 0.0061, "fp32", ("bf16: -0.40 points on the sample, a loss of at most 0.61",)),
    ],
)
def test_what_loses_too_much_or_is_not_faster_is_rejected_with_its_numbers(
    tiny_bert: Path,
    paced: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    ratios: dict[str, float],
    loss: float,
    chosen: str,
    words: tuple[str, ...],
) -> None:
    paced(**ratios)
    monkeypatch.setattr(backends, "_change", lambda *_: (-0.004, loss))
    encoder = quickest(sb.load(tiny_bert, device="cpu"))
    assert encoder.use.precision == chosen
    assert all(word in encoder.notes[-1] for word in words)


def test_the_loss_is_the_gates_and_the_times_are_of_encoding(tiny_bert: Path, tmp_path: Path) -> None:
    plain, lower = (
        sb.evaluate(sb.load(tiny_bert, precision=precision, device="cpu"), "sample", out=tmp_path / precision)
        for precision in ("fp32", "bf16")
    )
    encoders = [sb.load(tiny_bert, precision=precision, device="cpu") for precision in ("fp32", "bf16")]
    change, loss = backends._change(*encoders)
    (cell,) = sb.check(lower, baseline=plain, margin=0.5).cells
    assert (100 * change, 100 * loss) == pytest.approx((cell.difference, cell.loss_high))
    assert 0.01 < backends._times_as_fast(encoders[0], encoders[0]) < 100


def test_fast_is_refused_for_what_was_chosen_and_for_what_is_not_a_checkpoint(
    tiny_bert: Path, tmp_path: Path, paced: Callable[..., None]
) -> None:
    paced()
    for options, words in ((["-m", str(tiny_bert), "--precision", "bf16"], "bf16 is given"),):
        result = CliRunner().invoke(app, ["run", "--tasks", "sample", "--fast", *options, "--out", "run"])
        assert isinstance(result.exception, UserError)
        assert words in str(result.exception)
    prompted: Any = sb.load(tiny_bert, prompts="query: ,passage: ")
    for encoder in (sb.load(lambda texts: [[len(text), 1] for text in texts]), prompted):
        with pytest.raises(UserError, match="is not a Transformers checkpoint with a hash and one prompt"):
            quickest(encoder)
