"""LoRA adapters: small differences to a base model's weights, merged into them when it is loaded."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.extras import require
from stsbench.encoders.checkpoint import Checkpoint, find_checkpoint
from stsbench.encoders.hub import ADAPTER_CONFIG
from stsbench.encoders.libraries import reason_of
from stsbench.encoders.weights import read_weights

_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")


def is_adapter(checkpoint: Checkpoint) -> bool:
    """Returns whether a checkpoint is an adapter."""
    return (checkpoint.folder / ADAPTER_CONFIG).is_file()


def find_base(adapter: Checkpoint) -> Checkpoint:
    """Finds the model that an adapter was trained on, under the adapter's name."""
    config = adapter.json(ADAPTER_CONFIG)
    kind, base, place = config.get("peft_type"), base_of(adapter), adapter.folder / ADAPTER_CONFIG
    if kind != "LORA" or not base:
        raise UserError(
            f"{place}: expected peft_type LORA and a base_model_name_or_path, found {kind!r} and {base!r}. Merge "
            "the adapter into its base model and use that."
        )
    try:
        checkpoint = replace(find_checkpoint(base, revision=config.get("revision")), name=adapter.name)
    except UserError as error:
        raise UserError(
            f"{adapter.name} is an adapter for {base}, which cannot be loaded: {str(error).rstrip('.')}; download "
            f"it, or correct its path in {place}."
        ) from error
    if is_adapter(checkpoint):  # Transformers would merge that one silently
        raise UserError(
            f"{adapter.name} is an adapter for {base}, which is an adapter itself: merge that one, and name the "
            f"merged model in {place}."
        )
    return checkpoint


def adapter_file(adapter: Checkpoint) -> Path:
    """Returns the file of an adapter's weights."""
    for name in _WEIGHTS:
        if (path := adapter.folder / name).is_file():
            return path
    raise UserError(f"{adapter.folder} has no {_WEIGHTS[0]}: download the adapter again.")


def hash_with(adapter: Checkpoint, base: str, *files: Path) -> str:
    """Returns one hash of a base's hash and files of its adapter."""
    return hashlib.sha256(f"{base} {adapter.sha256(files)}".encode()).hexdigest()


def base_of(adapter: Checkpoint) -> str:
    """Returns the name of the model that an adapter was trained on, or ""."""
    return adapter.json(ADAPTER_CONFIG).get("base_model_name_or_path") or ""


def merge_adapter(model: Any, adapter: Checkpoint) -> Any:
    """Returns the base's network with an adapter's differences added to its weights.

    An adapter of a language model has its prefix in all names (`model.layers.0`), which the network without a head
    lacks (`layers.0`). peft silently skips such names, so they are matched here, and all must match.
    """
    require("peft", f"{adapter.name} is an adapter, which")
    from peft import LoraConfig, get_peft_model

    foreign = f"{adapter.name} is an adapter of another base than {base_of(adapter)}"
    advice = f"name the base that it was trained on in {adapter.folder / ADAPTER_CONFIG}"
    with adapter.reading(lambda: [adapter_file(adapter), adapter.folder / ADAPTER_CONFIG]):
        tensors = read_weights(adapter_file(adapter))
        try:
            config = LoraConfig.from_pretrained(str(adapter.folder))
            # The network has no head of a language model.
            config.task_type, config.inference_mode = None, True
            wrapped = get_peft_model(model, config)
            own = [name for name in wrapped.state_dict() if ".lora_" in name]
            matched = {full: name for full in own for name in tensors if name.endswith(_ending_of(full))}
            if unmatched := sorted({*tensors} - {*matched.values()}) or sorted({*own} - matched.keys()):
                raise UserError(f"{foreign}: only one of them has {unmatched[0]}; {advice}.")
            wrapped.load_state_dict({full: tensors[name] for full, name in matched.items()}, strict=False)
        except (ValueError, RuntimeError, KeyError, TypeError) as error:
            reason = "sizes of other layers" if "size mismatch" in str(error) else reason_of(error).rstrip(".")
            raise UserError(f"{foreign}, whose weights it does not fit ({reason}): {advice}.") from error
    return wrapped.merge_and_unload()


def _ending_of(name: str) -> str:
    """Returns how an adapter's file ends the name of a tensor of the wrapped network."""
    return "." + name.removeprefix("base_model.model.").replace(".default", "")
