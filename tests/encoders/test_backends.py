"""Back ends and devices: only the layers are another program's, and they compute what the processor does."""

import sys
from typing import Any

import numpy as np
import pytest
from tiny_models import vectors_of

from stsbench.base.errors import PACKAGES, UserError
from stsbench.data.benchmarks import load_sample
from stsbench.data.corpus import load_corpus
from stsbench.encoders import backends
from stsbench.encoders.backends import CALIBRATION_SENTENCES, CompiledModel, calibration, resolve_device
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.encoders.poolers import POOLING_NAMES
from stsbench.encoders.template import Template

TEXTS = ["A cat sat on the mat.", "Rain", "Two children carry a red boat down to the water.", "rain fell"]


def test_everything_but_the_layers_is_unchanged(tiny_bert):
    import torch

    encoder: Any = load(tiny_bert)
    encoder.prepare(weights=True)
    sequences, poolings = encoder.tokenize(TEXTS).sequences, [*POOLING_NAMES, "cls_before_pooler+head", "avg@-2"]
    expected = encoder.forward(sequences, poolings)
    model = encoder.network.model

    def compute(ids, mask):
        tensors = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        with torch.inference_mode():
            return [state.numpy() for state in model(**tensors, output_hidden_states=True).hidden_states]

    known = model.get_input_embeddings().num_embeddings
    encoder.network.model = CompiledModel(compute, known, model.config, model.pooler)
    compiled = encoder.forward(sequences, poolings)
    for pooling in poolings:
        np.testing.assert_allclose(compiled[pooling], expected[pooling], atol=1e-6)
    with pytest.raises(UserError, match=f"the model has {known} tokens"):
        encoder.forward([(2, known, 3)], ["avg"])
    template = Template(name="t", texts=("of {sentence}",), pooling="last", subtract="template")
    subtracting = encoder.with_template(template)
    with pytest.raises(UserError, match="takes no positions"):
        subtracting.forward(subtracting.tokenize(TEXTS).sequences, ["last"])


def test_a_back_end_that_is_not_installed_is_refused_with_the_command(tiny_bert, monkeypatch):
    for package in ("openvino", "nncf"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=r"openvino and nncf.*pip install 'stsbench\[openvino\]'"):
        load(tiny_bert, backend="openvino")


def test_the_calibration_has_no_sentence_that_is_scored():
    sentences, digest = calibration()
    assert len(set(sentences)) == CALIBRATION_SENTENCES
    assert len(digest) == 4
    assert set(sentences) <= set(load_corpus("sample"))
    pairs = load_sample().pairs
    assert not set(sentences) & {*pairs["sentence1"], *pairs["sentence2"]}


def test_fp32_of_openvino_is_torchs(tiny_bert):
    _require()
    expected, compiled = (
        embed(load(tiny_bert, backend=name), TEXTS, poolings=["avg", "avg_first_last"], use_cache=False).vectors
        for name in ("torch", "openvino")
    )
    for pooling, vectors in expected.items():
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        assert (np.abs(compiled[pooling] - vectors) / norms).max() < 1e-5


def test_int8_is_compiled_once_and_gives_a_sentence_one_vector(tiny_bert, monkeypatch):
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


def _require():
    for module in PACKAGES["openvino"]:
        pytest.importorskip(module, reason=f"needs {module}: pip install 'stsbench[openvino]'")


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_auto_takes_what_torch_finds_and_a_device_that_is_missing_is_refused(name, monkeypatch):
    import torch

    for device, module in (("cuda", torch.cuda), ("mps", torch.backends.mps)):
        monkeypatch.setattr(module, "is_available", lambda device=device: device == name)
    assert resolve_device("auto") == resolve_device(name) == name
    other = {"cuda": "mps", "mps": "cuda"}[name]
    with pytest.raises(UserError, match=f"device {other} .*--device cpu"):
        resolve_device(other)


@pytest.mark.gpu
@pytest.mark.parametrize("pooling", ["cls", "avg", "avg_static_last", "max", "last"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_cuda_equals_the_processor(kind, pooling, tiny, sentences):
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    folder = tiny(kind)
    there, here = (vectors_of(load(folder, pooling=pooling, device=name), sentences) for name in ("cuda", "cpu"))
    np.testing.assert_allclose(there, here, atol=1e-3)
