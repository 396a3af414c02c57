"""Wrong numbers planted in a checkpoint: weights, settings and modules that do not say alike, or are damaged.

`VARIANTS` change a copy of a small sentence-transformers checkpoint (BERT, mean pooling, a dense layer). `outcome`
plants one and measures. Weights with other numbers, or a configuration that names another function, are another
model: then its number is right if the hash that a record carries is another one, too.
"""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from damages import cut
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed

TEXTS = ["The dog ran home.", "Bread, milk and eggs!", "She reads."]

WEIGHTS, DENSE = "model.safetensors", "2_Dense/model.safetensors"
TANH = "torch.nn.modules.activation.Tanh"


Change = Callable[[dict[str, Any]], dict[str, Any]]
"""From the tensors of a file to others."""


class Variant(NamedTuple):
    """One wrong number: its name, what plants it, and whether what it makes may be another model."""

    name: str
    plant: Callable[[Path], None]
    may_be_another: bool = False


def add_modules(folder: Path) -> None:
    """Make a Transformers checkpoint of 32 dimensions one of sentence-transformers."""
    import torch
    from safetensors.torch import save_file

    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"}
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]
    modes = ("cls_token", "mean_tokens", "max_tokens")
    write(folder, "modules.json", modules)
    write(folder, "1_Pooling/config.json", {f"pooling_mode_{mode}": mode == "mean_tokens" for mode in modes})
    write(folder, "sentence_bert_config.json", {"max_seq_length": 40, "do_lower_case": False})
    write(folder, "config_sentence_transformers.json", {"prompts": {"query": "a "}, "default_prompt_name": None})
    dense = {"in_features": 32, "out_features": 8, "bias": True, "activation_function": TANH}
    write(folder, "2_Dense/config.json", dense)
    torch.manual_seed(5)
    save_file({"linear.weight": torch.randn(8, 32), "linear.bias": torch.randn(8)}, folder / DENSE)


def write(folder: Path, name: str, content: object) -> None:
    """Write a file, JSON unless it is text."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


class Measured(NamedTuple):
    """The vectors of a checkpoint, and what a record says that they depend on."""

    vectors: NDArray[np.float32]
    identity: dict[str, Any]


def measured(folder: Path) -> Measured:
    """Measure a checkpoint's vectors of `TEXTS`."""
    encoder = load(folder)
    found = embed(encoder, TEXTS, use_cache=False)
    apart = {"name", "revision"}
    identity = {name: value for name, value in encoder.identity.as_dict().items() if name not in apart}
    return Measured(found.vectors[encoder.identity.use.pooling][found.rows], identity)


def outcome(variant: Variant, whole: Path, before: Measured) -> str:
    """Plant a variant in a copy of a checkpoint and measure it.

    Returns:
        `right` for the vectors measured before, `another` for those of another model that is known as one, `told`
        for one sentence, else `wrong`.
    """
    folder = whole.with_name("planted")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    variant.plant(folder)
    try:
        after = measured(folder)
    except UserError as error:
        said = str(error)
        return "wrong" if "\n" in said or "weights_only" in said or "trust the source" in said else "told"
    if before.vectors.shape == after.vectors.shape and np.allclose(before.vectors, after.vectors, atol=1e-6):
        return "right"
    return "another" if variant.may_be_another and before.identity != after.identity else "wrong"


def _json(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
        write(folder, name, change(content))

    return plant


def _set(name: str, **entries: object) -> Callable[[Path], None]:
    return _json(name, lambda content: content | entries)


def _drop(name: str, key: str) -> Callable[[Path], None]:
    return _json(name, lambda content: {k: v for k, v in content.items() if k != key})


def _module(number: int, **entries: object) -> Callable[[Path], None]:
    def change(modules: list[dict[str, object]]) -> list[dict[str, object]]:
        modules[number] |= entries
        return [{key: value for key, value in module.items() if value is not None} for module in modules]

    return _json("modules.json", change)


def _tensors(name: str, change: Change) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        changed = change(load_file(folder / name))
        copies = {tensor: value.clone().contiguous() for tensor, value in changed.items()}
        save_file(copies, folder / name, metadata={"format": "pt"})

    return plant


def _without(tensor: str) -> Change:
    return lambda tensors: {name: value for name, value in tensors.items() if name != tensor}


def _renamed(tensor: str, to: str) -> Change:
    return lambda tensors: {to if name == tensor else name: value for name, value in tensors.items()}


def _with(tensor: str, make: Callable[[Any], Any]) -> Change:
    return lambda tensors: tensors | {tensor: make(tensors[tensor])}


def _swapped(a: str, b: str) -> Change:
    return lambda tensors: tensors | {a: tensors[b], b: tensors[a]}


def _added(like: str, *names: str) -> Change:
    return lambda tensors: tensors | dict.fromkeys(names, tensors[like])


def _whole_numbers(value: Any) -> Any:
    import torch

    return value.contiguous().view(torch.int32)


def _more_rows(value: Any) -> Any:
    import torch

    return torch.cat([value, value])


def _second_layer_again(tensors: dict[str, Any]) -> dict[str, Any]:
    again = {name.replace(".1.", ".2.", 1): value for name, value in tensors.items() if ".layer.1." in name}
    return tensors | again


def _cut(name: str, share: float) -> Callable[[Path], None]:
    return lambda folder: cut(folder / name, share)


def _flip(name: str, share: float, bit: int, *, within: str) -> Callable[[Path], None]:
    """Turn a bit of a safetensors file's header, which is JSON, or of its numbers."""

    def plant(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        header = 8 + int.from_bytes(content[:8], "little")
        start, end = (0, header) if within == "header" else (header, len(content))
        content[start + int(share * (end - start - 1))] ^= 1 << bit
        (folder / name).write_bytes(content)

    return plant


def _remove(name: str) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return plant


def _text(name: str, content: object) -> Callable[[Path], None]:
    return lambda folder: write(folder, name, content)


def _a_folder(name: str) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return plant


def _a_broken_link(name: str) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(folder / "nowhere")

    return plant


class Opens:
    """What a pickle would do if it were let: make a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return open, (str(self.path), "w")


def _pickled(
    name: str, make: Callable[[Path, dict[str, Any]], object], *, by: str = "torch"
) -> Callable[[Path], None]:
    """Put a pickled weight file in a safetensors file's place."""

    def plant(folder: Path) -> None:
        import torch
        from safetensors.torch import load_file

        content = make(folder, load_file(folder / name))
        (folder / name).unlink()
        target = (folder / name).with_name("pytorch_model.bin")
        if by == "torch":
            torch.save(content, target)
        else:
            target.write_bytes(pickle.dumps(content))

    return plant


_SOME = (
    "embeddings.word_embeddings.weight",
    "embeddings.LayerNorm.bias",
    "encoder.layer.0.attention.self.query.weight",
    "encoder.layer.0.attention.output.dense.bias",
    "encoder.layer.1.intermediate.dense.weight",
    "encoder.layer.1.output.LayerNorm.weight",
)
_QUERY, _KEY = (f"encoder.layer.0.attention.self.{name}.weight" for name in ("query", "key"))
_NOT_JSON = {"not JSON": "{", "empty": "", "a list": "[1]", "a number": "7", "deep": "[" * 20_000, "text": '"x"'}
_SHARES = (0, 0.01, 0.3, 0.9, 0.9999)
_KEYS = (
    "hidden_size",
    "model_type",
    "num_hidden_layers",
    "intermediate_size",
    "vocab_size",
    "num_attention_heads",
)
_CONFIGS = (
    "config.json",
    "modules.json",
    "1_Pooling/config.json",
    "2_Dense/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)

VARIANTS = [
    # Weights.
    *(Variant(f"{file} cut at {share}", _cut(file, share)) for file in (WEIGHTS, DENSE) for share in _SHARES),
    *(
        Variant(f"{WEIGHTS} header, place {n} of 24", _flip(WEIGHTS, n / 23, n % 7, within="header"), True)
        for n in range(24)
    ),
    *(
        Variant(f"{file} numbers, bit {bit}", _flip(file, 0.1 + bit / 40, bit, within="numbers"), True)
        for file in (WEIGHTS, DENSE)
        for bit in range(0, 8, 2)
    ),
    *(Variant(f"{tensor} dropped", _tensors(WEIGHTS, _without(tensor))) for tensor in _SOME),
    *(Variant(f"{tensor} renamed", _tensors(WEIGHTS, _renamed(tensor, f"{tensor}s"))) for tensor in _SOME),
    *(Variant(f"{tensor} doubled", _tensors(WEIGHTS, _with(tensor, _more_rows))) for tensor in _SOME),
    *(Variant(f"{tensor} as whole numbers", _tensors(WEIGHTS, _with(tensor, _whole_numbers))) for tensor in _SOME),
    *(
        Variant(f"{tensor} NaN", _tensors(WEIGHTS, _with(tensor, lambda value: value * float("nan"))))
        for tensor in _SOME[1:]
    ),
    Variant("query and key swapped", _tensors(WEIGHTS, _swapped(_QUERY, _KEY)), True),
    Variant("layers swapped", _tensors(WEIGHTS, _swapped(_SOME[2], _SOME[2].replace(".0.", ".1."))), True),
    Variant("a third layer", _tensors(WEIGHTS, _second_layer_again)),
    Variant("a bias more", _tensors(WEIGHTS, _added(_SOME[1], "encoder.layer.0.attention.self.query.scale"))),
    Variant("an adapter's weight", _tensors(WEIGHTS, _added(_QUERY, _QUERY.replace("weight", "lora_A.weight")))),
    Variant("an embedding more", _tensors(WEIGHTS, _added(_SOME[1], "embeddings.language_embeddings.weight"))),
    Variant("a tensor of no name", _tensors(WEIGHTS, _added(_SOME[1], "x"))),
    Variant("a masked-word head", _tensors(WEIGHTS, _added(_SOME[1], "cls.predictions.bias", "lm_head.bias"))),
    Variant("a classifier", _tensors(WEIGHTS, _added(_SOME[1], "classifier.bias"))),
    Variant("half of SimCSE's head", _tensors(WEIGHTS, _added(_QUERY, "mlp.dense.weight"))),
    Variant("a head of another width", _tensors(WEIGHTS, _added(_SOME[0], "mlp.dense.weight", "mlp.dense.bias"))),
    Variant("no weights", _remove(WEIGHTS)),
    Variant("weights that are a folder", _a_folder(WEIGHTS)),
    Variant("weights that are gone", _a_broken_link(WEIGHTS)),
    # Pickled weights.
    *(
        Variant(f"{file} pickled by {by}: {what}", _pickled(file, make, by=by))
        for file in (WEIGHTS, DENSE)
        for by in ("torch", "pickle")
        for what, make in {
            "code": lambda folder, tensors: tensors | {"x": Opens(folder / "it-ran")},
            "a list": lambda _, tensors: list(tensors.values()),
            "words": lambda _, tensors: dict.fromkeys(tensors, "word"),
        }.items()
    ),
    Variant("pickled tensors", _pickled(WEIGHTS, lambda _, tensors: tensors)),
    # Settings.
    *(
        Variant(f"{file}: {what}", _text(file, content))
        for file in _CONFIGS
        for what, content in _NOT_JSON.items()
    ),
    *(Variant(f"{file} is a folder", _a_folder(file)) for file in _CONFIGS),
    *(Variant(f"{file} is a broken link", _a_broken_link(file)) for file in _CONFIGS),
    *(Variant(f"{file} is gone", _remove(file)) for file in _CONFIGS),
    *(
        Variant(f"config.json: {key} {value!r}", _set("config.json", **{key: value}), another)
        for key, value, another in [
            ("num_hidden_layers", 1, False),
            ("num_hidden_layers", 3, False),
            ("num_hidden_layers", 0, False),
            ("num_hidden_layers", -1, False),
            ("num_hidden_layers", "2", False),
            ("num_hidden_layers", 1.5, False),
            ("num_hidden_layers", None, False),
            ("num_attention_heads", 4, True),
            ("num_attention_heads", 3, False),
            ("hidden_size", 64, False),
            ("intermediate_size", 47, False),
            ("vocab_size", 20, False),
            ("max_position_embeddings", 24, False),
            ("hidden_act", "relu", True),
            ("hidden_act", "gleu", False),
            ("hidden_act", 3, False),
            ("layer_norm_eps", 0.5, True),
            ("layer_norm_eps", "small", False),
            ("model_type", "roberta", True),
            ("model_type", "distilbert", False),
            ("model_type", "brt", False),
            ("is_encoder_decoder", True, False),
            ("auto_map", {"AutoModel": "own.Model"}, False),
            ("architectures", 3, False),
        ]
    ),
    *(Variant(f"config.json without {key}", _drop("config.json", key), True) for key in _KEYS),
    # Modules.
    *(
        Variant(f"modules.json: {what}", plant)
        for what, plant in {
            "null": _text("modules.json", "null"),
            "no modules": _text("modules.json", "[]"),
            "numbers": _text("modules.json", "[1, 2]"),
            "a pooling outside": _module(1, path="../1_Pooling"),
            "a pooling at a place of its own": _module(1, path="/1_Pooling"),
            "a pooling elsewhere": _module(1, path="3_Pooling"),
            "a pooling at the top": _module(1, path=""),
            "a pooling without a place": _module(1, path=None),
            "a place that is a number": _module(1, path=1),
            "a module without a class": _module(2, type=None),
            "a class that is a number": _module(2, type=2),
            "code of its own": _module(1, type="own.Pooling"),
            "a dense layer elsewhere": _module(2, path="2_Danse"),
            "a dense layer outside": _module(2, path="2_Dense/../../2_Dense"),
        }.items()
    ),
    Variant("modules.json without the dense layer", _json("modules.json", lambda modules: modules[:2]), True),
    *(
        Variant(f"pooling: {config}", _text("1_Pooling/config.json", config), another)
        for config, another in [
            ({"word_embedding_dimension": 32}, False),
            ({"pooling_mode_mean_tokens": False}, False),
            ({"pooling_mode_mean_tokens": "no"}, False),
            ({"pooling_mode_mean_tokens": 1}, False),
            ({"pooling_mode_middle_tokens": True}, False),
            ({"pooling_mode_cls_token": True}, True),
            ({"pooling_mode": "max"}, True),
        ]
    ),
    *(
        Variant(f"dense layer: {key} {value!r}", _set("2_Dense/config.json", **{key: value}), another)
        for key, value, another in [
            ("activation_function", "own.Function", False),
            ("activation_function", "tanh", False),
            ("activation_function", "", False),
            ("activation_function", 3, False),
            ("activation_function", None, False),
            ("activation_function", "torch.nn.modules.activation.ReLU", True),
            ("in_features", 31, False),
            ("out_features", 9, False),
            ("out_features", "8", False),
            ("bias", False, False),
        ]
    ),
    Variant("dense layer of no function", _drop("2_Dense/config.json", "activation_function")),
    Variant("no dense weights", _remove(DENSE)),
    Variant("no dense layer", _remove("2_Dense")),
    Variant("no pooling", _remove("1_Pooling")),
    *(
        Variant(f"dense weights: {what}", _tensors(DENSE, change))
        for what, change in {
            "no bias": _without("linear.bias"),
            "no weight": _without("linear.weight"),
            "one more": _added("linear.bias", "scale"),
            "bias twice": _with("linear.bias", _more_rows),
            "weight turned": _with("linear.weight", lambda value: value.T),
            "weight flat": _with("linear.weight", lambda value: value.flatten()),
            "weight doubled": _with("linear.weight", _more_rows),
            "whole numbers": _with("linear.weight", _whole_numbers),
            "NaN": _with("linear.bias", lambda value: value * float("nan")),
        }.items()
    ),
    *(
        Variant(f"sentence_bert_config.json: {key} {value!r}", _set("sentence_bert_config.json", **{key: value}))
        for key, value in [
            ("max_seq_length", "40"),
            ("max_seq_length", 0),
            ("max_seq_length", -1),
            ("max_seq_length", 40.5),
            ("max_seq_length", True),
            ("do_lower_case", "no"),
        ]
    ),
    *(
        Variant(f"prompts: {entries}", _set("config_sentence_transformers.json", **entries))
        for entries in (
            {"default_prompt_name": "passage"},
            {"default_prompt_name": 3},
            {"prompts": ["a "], "default_prompt_name": "query"},
            {"prompts": {"query": 3}, "default_prompt_name": "query"},
        )
    ),
    # The tokeniser.
    *(Variant(f"tokenizer.json cut at {share}", _cut("tokenizer.json", share)) for share in (0, 0.3, 0.99)),
    Variant("no tokeniser", _remove("tokenizer.json")),
    Variant("tokenizer_config.json: not JSON", _text("tokenizer_config.json", "{")),
]
"""All of them; none ends in a wrong number."""
