"""Back ends: the layers are another program's, all else is torch's, and what cannot be is told."""

import sys
from pathlib import Path

import numpy as np
import pytest

from stsbench.base.errors import UserError
from stsbench.base.extras import PACKAGES
from stsbench.data.benchmarks import load_sample, sample_sentences
from stsbench.encoders import backends
from stsbench.encoders.backends import CALIBRATION_SENTENCES, CompiledModel, calibration
from stsbench.encoders.device import require_backend
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.poolers import POOLING_NAMES
from stsbench.encoders.template import Template

TEXTS = ["A cat sat on the mat.", "Rain", "Two children carry a red boat down to the water.", "rain fell"]


def _as_numpy(model):
    """Return what a back end would compute, computed by torch."""
    import torch

    def compute(ids, mask):
        with torch.inference_mode():
            states = model(
                input_ids=torch.from_numpy(ids),
                attention_mask=torch.from_numpy(mask),
                output_hidden_states=True,
                return_dict=True,
            )
        return [state.numpy() for state in states.hidden_states]

    return compute


def test_all_but_the_layers_stays_as_it_is(tiny_bert: Path) -> None:
    encoder = load(tiny_bert)
    encoder.prepare(weights=True)
    sequences = encoder.tokenize(TEXTS).sequences
    poolings = [*POOLING_NAMES, "cls_before_pooler+head", "avg@-2"]
    expected = encoder.forward(sequences, poolings)
    network = encoder._network
    model = network.model
    known = model.get_input_embeddings().num_embeddings
    network.model = CompiledModel("tiny", _as_numpy(model), known, model.config, model.pooler)
    found = encoder.forward(sequences, poolings)
    for pooling in poolings:
        np.testing.assert_allclose(found[pooling], expected[pooling], atol=1e-6)
    with pytest.raises(UserError, match=f"the model has {known} tokens"):
        encoder.forward([(2, known, 3)], ["avg"])
    template = Template(name="t", texts=("of {sentence}",), pooling="last", subtract="template")
    subtracting = encoder.with_template(template)
    with pytest.raises(UserError, match="takes no positions, which a template with subtract needs"):
        subtracting.forward(subtracting.tokenize(TEXTS).sequences, ["last"])


def test_what_the_compiled_layers_do_not_read_is_refused() -> None:
    import torch

    ids = torch.ones((1, 3), dtype=torch.long)
    model = CompiledModel("tiny", lambda ids, mask: [np.zeros((1, 3, 2), np.float32)], 9)
    assert model(ids, output_hidden_states=True).last_hidden_state.shape == (1, 3, 2)
    with pytest.raises(UserError, match="tiny: position_ids is not supported by back ends"):
        model(ids, position_ids=ids)


@pytest.mark.parametrize(
    ("backend", "precision", "sentence"),
    [
        ("torch", "int8", "use --backend openvino --precision int8"),
        ("torch", "fp8", "unknown precision 'fp8'"),
        ("torch", "openvino-int8", "unknown precision 'openvino-int8'"),
        ("", "fp32", "unknown back end ''"),
        ("opnvino", "int8", "unknown back end 'opnvino': did you mean openvino"),
        ("openvino", "fp16", "openvino has no fp16: use fp32, bf16, int8"),
        ("onnx", "int8", r"onnx has no int8 \(ONNX Runtime's int8 depends on the batch"),
    ],
)
def test_a_precision_that_is_not_there_is_told(
    backend: str, precision: str, sentence: str, tiny_bert: Path
) -> None:
    with pytest.raises(UserError, match=sentence):
        load(tiny_bert, backend=backend, precision=precision)


def test_a_back_end_needs_its_packages_and_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("openvino", "nncf"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        UserError, match=r"needs the packages openvino and nncf: pip install 'stsbench\[openvino\]'"
    ):
        require_backend("openvino", "cpu")
    with pytest.raises(UserError, match="computes on the CPU: leave out --device cuda"):
        require_backend("onnx", "cuda")


def test_the_calibration_holds_no_sentence_that_is_scored() -> None:
    found = calibration()
    assert len(set(found.sentences)) == CALIBRATION_SENTENCES
    assert set(found.sentences) <= set(sample_sentences())
    pairs = load_sample().pairs
    assert not set(found.sentences) & {*pairs["sentence1"], *pairs["sentence2"]}


@pytest.mark.parametrize("backend", ["openvino", "onnx"])
def test_fp32_of_a_back_end_is_torchs(backend: str, tiny_bert: Path) -> None:
    _require(backend)
    expected = embed(load(tiny_bert), TEXTS, poolings=["avg", "avg_first_last"], use_cache=False)
    found = embed(load(tiny_bert, backend=backend), TEXTS, poolings=["avg", "avg_first_last"], use_cache=False)
    for pooling, vectors in expected.vectors.items():
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        assert (np.abs(found.vectors[pooling] - vectors) / norms).max() < 1e-5


def test_int8_gives_a_sentence_one_vector_and_says_what_it_is(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _require("openvino")
    encoder = load(tiny_bert, backend="openvino", precision="int8")
    assert encoder.identity.use.computed_in == f"openvino-int8#{calibration().digest}"
    together = embed(encoder, TEXTS, use_cache=False).vectors["avg"]
    exact = embed(load(tiny_bert), TEXTS, use_cache=False).vectors["avg"]
    assert np.abs(together - exact).max() > 1e-4

    # Compiled once: another process finds it.
    program = backends._PROGRAMS["openvino"]._replace(export=None)
    monkeypatch.setitem(backends._PROGRAMS, "openvino", program)
    again = load(tiny_bert, backend="openvino", precision="int8")
    alone = np.concatenate([embed(again, [text], use_cache=False).vectors["avg"] for text in TEXTS])
    np.testing.assert_allclose(alone, together, atol=1e-5)


def _require(backend: str) -> None:
    for module in PACKAGES[backend]:
        pytest.importorskip(module, reason=f"needs {module}: pip install 'stsbench[{backend}]'")
