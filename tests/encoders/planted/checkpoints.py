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
    "encoder.layer.0.attention.self.query.weight",
    "encoder.layer.0.attention.output.dense.bias",
    "encoder.layer.1.output.LayerNorm.weight",
)
_BIAS, _QUERY = "embeddings.LayerNorm.bias", _SOME[1]
_KEY, _SECOND = _QUERY.replace("query", "key"), _QUERY.replace(".0.", ".1.")
_CONFIGS = (
    "config.json",
    "modules.json",
    "1_Pooling/config.json",
    "2_Dense/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)


def _plant_code(folder: Path, tensors: dict[str, Any]) -> object:
    return tensors | {"x": Opens(folder / "it-ran")}


_OF_WEIGHTS: dict[str, Callable[[Path], None]] = {
    **{
        f"{file} cut at {share}": _cut(file, share)
        for file in (WEIGHTS, DENSE)
        for share in (0, 0.01, 0.3, 0.9999)
    },
    **{f"{name} dropped": _tensors(WEIGHTS, _without(name)) for name in _SOME},
    **{f"{name} renamed": _tensors(WEIGHTS, _renamed(name, f"{name}s")) for name in _SOME},
    **{f"{name} doubled": _tensors(WEIGHTS, _with(name, _more_rows)) for name in _SOME},
    **{f"{name} as whole numbers": _tensors(WEIGHTS, _with(name, _whole_numbers)) for name in _SOME},
    **{f"{name} NaN": _tensors(WEIGHTS, _with(name, lambda value: value * float("nan"))) for name in _SOME[1:]},
    "a third layer": _tensors(WEIGHTS, _second_layer_again),
    "a bias more": _tensors(WEIGHTS, _added(_BIAS, "encoder.layer.0.attention.self.query.scale")),
    "an adapter's weight": _tensors(WEIGHTS, _added(_QUERY, _QUERY.replace("weight", "lora_A.weight"))),
    "an embedding more": _tensors(WEIGHTS, _added(_BIAS, "embeddings.language_embeddings.weight")),
    "a tensor of no name": _tensors(WEIGHTS, _added(_BIAS, "x")),
    "half of SimCSE's head": _tensors(WEIGHTS, _added(_QUERY, "mlp.dense.weight")),
    "a head of another width": _tensors(WEIGHTS, _added(_SOME[0], "mlp.dense.weight", "mlp.dense.bias")),
    "no weights": _remove(WEIGHTS),
    "weights that are a folder": _a_folder(WEIGHTS),
    "weights that are gone": _a_broken_link(WEIGHTS),
    **{
        f"{file} pickled by {by}: {what}": _pickled(file, make, by=by)
        for file in (WEIGHTS, DENSE)
        for by in ("torch", "pickle")
        for what, make in {
            "code": _plant_code,
            "a list": lambda _, tensors: list(tensors.values()),
            "words": lambda _, tensors: dict.fromkeys(tensors, "word"),
        }.items()
    },
    **{
        f"dense weights: {what}": _tensors(DENSE, change)
        for what, change in {
            "no bias": _without("linear.bias"),
            "no weight": _without("linear.weight"),
            "one more": _added("linear.bias", "scale"),
            "bias twice": _with("linear.bias", _more_rows),
            "weight turned": _with("linear.weight", lambda value: value.T),
            "weight flat": _with("linear.weight", lambda value: value.flatten()),
            "whole numbers": _with("linear.weight", _whole_numbers),
        }.items()
    },
    "no dense weights": _remove(DENSE),
}

_OF_SETTINGS: dict[str, Callable[[Path], None]] = {
    **{f"{file}: not JSON": _text(file, "{") for file in _CONFIGS},
    **{f"{file}: a number": _text(file, "7") for file in _CONFIGS},
    **{f"{file}: deep": _text(file, "[" * 20_000) for file in _CONFIGS},
    **{f"{file} is a folder": _a_folder(file) for file in _CONFIGS},
    **{f"{file} is a broken link": _a_broken_link(file) for file in _CONFIGS},
    **{f"{file} is gone": _remove(file) for file in _CONFIGS[:4]},
    **{
        f"config.json: {key} {value!r}": _set("config.json", **{key: value})
        for key, value in [
            ("num_hidden_layers", 1),
            ("num_hidden_layers", 3),
            ("num_attention_heads", 3),
            ("hidden_size", 64),
            ("vocab_size", 20),
            ("max_position_embeddings", 24),
            ("hidden_act", "gleu"),
            ("model_type", "distilbert"),
            ("is_encoder_decoder", True),
            ("auto_map", {"AutoModel": "own.Model"}),
        ]
    },
    "no modules": _text("modules.json", "[]"),
    "a pooling outside": _module(1, path="../1_Pooling"),
    "a pooling elsewhere": _module(1, path="3_Pooling"),
    "code of its own": _module(1, type="own.Pooling"),
    "a dense layer outside": _module(2, path="2_Dense/../../2_Dense"),
    "no pooling named": _text("1_Pooling/config.json", {"word_embedding_dimension": 32}),
    "an unknown pooling": _text("1_Pooling/config.json", {"pooling_mode_middle_tokens": True}),
    "another activation": _set("2_Dense/config.json", activation_function="own.Function"),
    "no activation": _drop("2_Dense/config.json", "activation_function"),
    "another size": _set("2_Dense/config.json", in_features=31),
    "no dense layer": _remove("2_Dense"),
    "no pooling": _remove("1_Pooling"),
    "another prompt": _set("config_sentence_transformers.json", default_prompt_name="passage"),
    **{f"tokenizer.json cut at {share}": _cut("tokenizer.json", share) for share in (0, 0.3, 0.99)},
    "no tokenizer": _remove("tokenizer.json"),
}

_ANOTHER_MODEL: dict[str, Callable[[Path], None]] = {
    **{f"{WEIGHTS} header, place {n} of 12": _flip(WEIGHTS, n / 11, n % 7, within="header") for n in range(12)},
    **{
        f"{file} numbers, bit {bit}": _flip(file, 0.1 + bit / 40, bit, within="numbers")
        for file in (WEIGHTS, DENSE)
        for bit in range(0, 8, 2)
    },
    "query and key swapped": _tensors(WEIGHTS, _swapped(_QUERY, _KEY)),
    "layers swapped": _tensors(WEIGHTS, _swapped(_QUERY, _SECOND)),
    "a masked-word head": _tensors(WEIGHTS, _added(_BIAS, "cls.predictions.bias", "lm_head.bias")),
    "pickled tensors": _pickled(WEIGHTS, lambda _, tensors: tensors),
    "four heads": _set("config.json", num_attention_heads=4),
    "another function": _set("config.json", hidden_act="relu"),
    "without the dense layer": _json("modules.json", lambda modules: modules[:2]),
    "another pooling": _text("1_Pooling/config.json", {"pooling_mode": "max"}),
}

VARIANTS = [
    *(Variant(name, plant) for name, plant in (_OF_WEIGHTS | _OF_SETTINGS).items()),
    *(Variant(name, plant, may_be_another=True) for name, plant in _ANOTHER_MODEL.items()),
]
"""None of them ends in a wrong vector."""
