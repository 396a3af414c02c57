"""No wrong vector comes out of a checkpoint whose files are damaged or contradict each other.

Each variant changes a copy of a small sentence-transformers checkpoint (BERT, mean pooling, a dense layer): it is
refused in one sentence, gives the same vectors, or is identified as another model.
"""

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from damages import cut
from tiny_models import edit, list_modules, vectors_of

from stsbench.base.errors import UserError
from stsbench.encoders.load import load

TEXTS = ["The dog ran home.", "Bread, milk and eggs!", "She reads."]
WEIGHTS, DENSE = "model.safetensors", "2_Dense/model.safetensors"
TANH = "torch.nn.modules.activation.Tanh"
POOLING, LIBRARY = "1_Pooling/config.json", "config_sentence_transformers.json"
CONFIGS = ("config.json", "modules.json", POOLING, "2_Dense/config.json", "sentence_bert_config.json", LIBRARY)
QUERY, BIAS = "encoder.layer.0.attention.self.query.weight", "embeddings.LayerNorm.bias"
KEY, SECOND = QUERY.replace("query", "key"), QUERY.replace(".0.", ".1.")
SOME = ("embeddings.word_embeddings.weight", QUERY, "encoder.layer.1.output.LayerNorm.weight")


def write(folder, name, content):
    """Write a file, JSON unless it is text."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.fixture(scope="module")
def whole(_built, tmp_path_factory):
    """Return the undamaged checkpoint."""
    import torch
    from safetensors.torch import save_file

    folder = Path(shutil.copytree(_built("bert"), tmp_path_factory.mktemp("planted") / "whole"))
    list_modules(folder, "2_Dense")
    write(folder, POOLING, {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True})
    write(folder, "sentence_bert_config.json", {"max_seq_length": 40, "do_lower_case": False})
    write(folder, LIBRARY, {"prompts": {"query": "a "}, "default_prompt_name": None})
    write(folder, "stsbench.json", {"notes": ["a note"]})
    dense = {"in_features": 32, "out_features": 8, "bias": True, "activation_function": TANH}
    write(folder, "2_Dense/config.json", dense)
    torch.manual_seed(5)
    save_file({"linear.weight": torch.randn(8, 32), "linear.bias": torch.randn(8)}, folder / DENSE)
    return folder


def measured(folder):
    """Return the vectors of a checkpoint, and what a record states that they depend on."""
    encoder = load(folder)
    identity = {key: value for key, value in encoder.identity.as_dict().items() if key not in {"name", "revision"}}
    return vectors_of(encoder, TEXTS), identity


def outcome(plant, whole, before, *, may_be_another):
    """Return what a variant gives: `right`, `another` (identified as one), `refused` (one sentence) or `wrong`."""
    folder = whole.with_name("planted")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    plant(folder)
    try:
        after = measured(folder)
    except UserError as error:
        return "wrong" if "\n" in str(error) or "weights_only" in str(error) else "refused"
    if before[0].shape == after[0].shape and np.allclose(before[0], after[0], atol=1e-6):
        return "right"
    return "another" if may_be_another and before[1] != after[1] else "wrong"


def entries(name, **values):
    return lambda folder: edit(folder / name, **values)


def module(number, **values):
    def plant(folder):
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        modules[number] |= values
        write(folder, "modules.json", modules)

    return plant


def tensors(file, change):
    def plant(folder):
        from safetensors.torch import load_file, save_file

        changed = change(load_file(folder / file))
        save_file({name: t.clone().contiguous() for name, t in changed.items()}, folder / file, {"format": "pt"})

    return plant


def each(change, name):
    return lambda tensors: tensors | {name: change(tensors[name])}


def added(like, *names):
    return lambda tensors: tensors | dict.fromkeys(names, tensors[like])


def without(name):
    return lambda tensors: {other: tensor for other, tensor in tensors.items() if other != name}


def twice(tensor):
    return tensor.repeat(2, *[1] * (tensor.ndim - 1))


def whole_numbers(tensor):
    import torch

    return tensor.contiguous().view(torch.int32)


def flip(name, share, bit, *, header):
    """Turn a bit of a safetensors file's header, or of its numbers."""

    def plant(folder):
        content = bytearray((folder / name).read_bytes())
        length = 8 + int.from_bytes(content[:8], "little")
        start, end = (0, length) if header else (length, len(content))
        content[start + int(share * (end - start - 1))] ^= 1 << bit
        (folder / name).write_bytes(content)

    return plant


def instead(name, make):
    """Remove a file or folder, and make something in its place."""

    def plant(folder):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        make(path)

    return plant


class Opens:
    """What a pickle would do if it were let: make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def pickled(name, make, *, by_torch=True):
    """Replace a safetensors file by a pickled one."""

    def plant(folder):
        import torch
        from safetensors.torch import load_file

        content = make(folder, load_file(folder / name))
        (folder / name).unlink()
        target = (folder / name).with_name("pytorch_model.bin")
        torch.save(content, target) if by_torch else target.write_bytes(pickle.dumps(content))

    return plant


REFUSED = {
    **{
        f"{file} cut at {share}": lambda folder, file=file, share=share: cut(folder / file, share)
        for file in (WEIGHTS, DENSE, "tokenizer.json")
        for share in (0, 0.3, 0.99)
    },
    **{f"{name} dropped": tensors(WEIGHTS, without(name)) for name in SOME},
    **{f"{name} doubled": tensors(WEIGHTS, each(twice, name)) for name in SOME},
    **{f"{name} as whole numbers": tensors(WEIGHTS, each(whole_numbers, name)) for name in SOME},
    "NaN": tensors(WEIGHTS, each(lambda tensor: tensor * float("nan"), QUERY)),
    "a third layer": tensors(
        WEIGHTS,
        lambda all_: all_ | {name.replace(".1.", ".2."): t for name, t in all_.items() if ".layer.1." in name},
    ),
    "an embedding more": tensors(WEIGHTS, added(BIAS, "embeddings.language_embeddings.weight")),
    "half of SimCSE's head": tensors(WEIGHTS, added(QUERY, "mlp.dense.weight")),
    "a head of another width": tensors(WEIGHTS, added(SOME[0], "mlp.dense.weight", "mlp.dense.bias")),
    **{f"{name} is gone": instead(name, lambda path: None) for name in (WEIGHTS, DENSE, *CONFIGS[:4], "2_Dense")},
    **{f"{name} is a folder": instead(name, Path.mkdir) for name in (WEIGHTS, *CONFIGS)},
    **{
        f"{name} is a broken link": instead(name, lambda path: path.symlink_to("nowhere"))
        for name in (WEIGHTS, *CONFIGS)
    },
    **{
        f"{file} pickled, {what}, by torch {by_torch}": pickled(file, make, by_torch=by_torch)
        for file in (WEIGHTS, DENSE)
        for by_torch in (True, False)
        for what, make in {
            "code": lambda folder, all_: all_ | {"x": Opens(folder / "it-ran")},
            "words": lambda _, all_: dict.fromkeys(all_, "word"),
        }.items()
    },
    **{
        f"dense: {what}": tensors(DENSE, change)
        for what, change in {
            "no bias": without("linear.bias"),
            "no weight": without("linear.weight"),
            "one more": added("linear.bias", "scale"),
            "bias twice": each(twice, "linear.bias"),
            "weight turned": each(lambda tensor: tensor.T, "linear.weight"),
            "weight flat": each(lambda tensor: tensor.flatten(), "linear.weight"),
            "whole numbers": each(whole_numbers, "linear.weight"),
        }.items()
    },
    **{
        f"{file}: {content[:2]}": lambda folder, file=file, content=content: write(folder, file, content)
        for file in CONFIGS
        for content in ("{", "7", "[" * 20_000)
    },
    **{
        f"config.json: {key} {value}": entries("config.json", **{key: value})
        for key, value in {
            "num_hidden_layers": 3,
            "num_attention_heads": -1,
            "hidden_size": 64,
            "vocab_size": 20,
            "hidden_act": "gleu",
            "model_type": "distilbert",
            "is_encoder_decoder": True,
            "auto_map": {"AutoModel": "own.Model"},
        }.items()
    },
    "no modules": lambda folder: write(folder, "modules.json", "[]"),
    "a pooling outside": module(1, path="../1_Pooling"),
    "a dense layer outside": module(2, path="2_Dense/../../2_Dense"),
    "a pooling elsewhere": module(1, path="3_Pooling"),
    "code of its own": module(1, type="own.Pooling"),
    "no pooling named": lambda folder: write(folder, POOLING, {"word_embedding_dimension": 32}),
    "another activation": entries("2_Dense/config.json", activation_function="own.Function"),
    "another prompt": entries(LIBRARY, default_prompt_name="passage"),
}
"""Variants that are refused, or give the same vectors."""

ANOTHER = {
    **{f"header, place {n} of 12": flip(WEIGHTS, n / 11, n % 7, header=True) for n in range(12)},
    **{f"numbers, bit {bit}": flip(WEIGHTS, 0.1 + bit / 40, bit, header=False) for bit in range(0, 8, 2)},
    "query and key swapped": tensors(WEIGHTS, lambda all_: all_ | {QUERY: all_[KEY], KEY: all_[QUERY]}),
    "layers swapped": tensors(WEIGHTS, lambda all_: all_ | {QUERY: all_[SECOND], SECOND: all_[QUERY]}),
    "pickled tensors": pickled(WEIGHTS, lambda _, all_: all_),
    "four heads": entries("config.json", num_attention_heads=4),
    "another function": entries("config.json", hidden_act="relu"),
    "another pooling": lambda folder: write(folder, POOLING, {"pooling_mode": "max"}),
}
"""Variants that may also be another model."""


@pytest.fixture(scope="module")
def before(whole):
    return measured(whole)


@pytest.mark.parametrize("start", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_no_planted_fault_gives_a_wrong_vector(start, whole, before):
    variants = [*((name, plant, False) for name, plant in REFUSED.items())]
    variants += [(name, plant, True) for name, plant in ANOTHER.items()]
    assert len(variants) > 110
    outcomes = {
        name: outcome(plant, whole, before, may_be_another=may_be_another)
        for name, plant, may_be_another in variants[start::2]
    }
    assert [name for name, found in outcomes.items() if found == "wrong"] == []
    assert sum(found == "refused" for found in outcomes.values()) > len(outcomes) * 0.7
    assert not list(whole.parent.rglob("it-ran"))


def test_the_harness_sees_a_wrong_number(whole, before, monkeypatch):
    monkeypatch.setattr("stsbench.encoders.network.require_own_weights", lambda *_: None)
    assert outcome(entries("config.json", num_hidden_layers=1), whole, before, may_be_another=False) == "wrong"


@pytest.mark.parametrize("layout", ["safetensors", "bin", "old bin"])
def test_heads_and_constants_do_not_change_vectors(layout, whole, before, tmp_path):
    import torch
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(whole, tmp_path / "edited"))
    names = (
        "cls.predictions.bias",
        "classifier.weight",
        "embeddings.token_type_ids",
        "encoder.layer.0.masked_bias",
    )
    all_ = load_file(folder / WEIGHTS) | {name: torch.zeros(3) for name in names}
    if layout == "safetensors":
        save_file(all_, folder / WEIGHTS, metadata={"format": "pt"})
    else:
        torch.save(all_, folder / "pytorch_model.bin", _use_new_zipfile_serialization=layout == "bin")
        (folder / WEIGHTS).unlink()
    assert abs(measured(folder)[0] - before[0]).max() < 1e-6


@pytest.mark.parametrize(
    "name",
    [
        "a third layer",
        "another activation",
        f"{WEIGHTS} pickled, words, by torch True",
        "config.json: vocab_size 20",
    ],
)
def test_what_goes_through_the_library_is_refused_too(name, whole, tmp_path):
    pytest.importorskip("sentence_transformers")
    folder = Path(shutil.copytree(whole, tmp_path / "edited"))
    write(folder, POOLING, {"word_embedding_dimension": 32, "pooling_mode": "weightedmean"})
    assert measured(folder)[1]["kind"] == "sentence-transformers-library"
    REFUSED[name](folder)
    with pytest.raises(UserError, match=r"^(?!.*weights_only)"):
        measured(folder)
