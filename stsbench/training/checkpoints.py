"""Checkpoints that Transformers and sentence-transformers load, whole or absent.

A folder holds the base's configuration and tokenizer, the trained weights, and what sentence-transformers reads:
pooling, maximum length, and the head where it is scored. Where the head stands behind the first token and the
model has a pooler of that shape, its weights are put there too, as in the checkpoints that the SimCSE authors
published: `pooling cls` is behind the head then, `cls_before_pooler` before it.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.files import atomic_folder, told_as_unwritable
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.device import quiet_transformers
from stsbench.training.recipe import Pooling, Recipe

if TYPE_CHECKING:
    from torch import Tensor

    from stsbench.training.model import SentenceModel

_POOLINGS: dict[Pooling, str] = {"cls_before_pooler": "cls", "avg": "mean", "max": "max", "last": "lasttoken"}

Weights = Mapping[str, "Tensor"]
"""The state of a `SentenceModel`."""


@dataclass(frozen=True)
class CheckpointWriter:
    """Writes the model's weights as a checkpoint.

    Attributes:
        model: the module whose weights they are.
        base: where tokenizer and configuration come from.
        recipe: names pooling and head.
        max_length: sub-words that the checkpoint reads.
        lower_case: whether text is lower-cased first.
    """

    model: "SentenceModel"
    base: Checkpoint
    recipe: Recipe
    max_length: int | None
    lower_case: bool = False

    def write(self, weights: Weights, folder: Path) -> None:
        """Write a checkpoint: complete in a folder beside, then renamed.

        Raises:
            UserError: if the disk is full or the folder cannot be written.
        """
        with atomic_folder(folder) as building:
            self._fill(weights, building)

    def _fill(self, weights: Weights, folder: Path) -> None:
        from safetensors.torch import save_file

        tensors = {n.removeprefix("transformer."): t for n, t in weights.items() if n.startswith("transformer.")}
        head = {n.removeprefix("head.0."): t for n, t in weights.items() if n.startswith("head.0.")}
        places = {"weight": "pooler.dense.weight", "bias": "pooler.dense.bias"}
        if self.recipe.pooling == "cls_before_pooler" and all(
            name in head and tensors.get(place) is not None and tensors[place].shape == head[name].shape
            for name, place in places.items()
        ):
            tensors |= {place: head[name] for name, place in places.items()}
        with quiet_transformers():
            # safetensors refuses tensors that share memory; those of a state dict may.
            own = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
            transformer: Any = self.model.transformer
            transformer.save_pretrained(folder, state_dict=own)
        for path in self.base.tokenizer_files():
            shutil.copyfile(path, folder / path.relative_to(self.base.folder))
        modules = ["Transformer", "Pooling"]
        width = self.model.width
        _json(folder / "1_Pooling" / "config.json", self._pooling(width))
        _json(
            folder / "sentence_bert_config.json",
            {"max_seq_length": self.max_length, "do_lower_case": self.lower_case},
        )
        if self.recipe.head.evaluate:
            modules.append("Dense")
            about = {
                "in_features": width,
                "out_features": width,
                "bias": True,
                "activation_function": "torch.nn.modules.activation.Tanh",
            }
            _json(folder / "2_Dense" / "config.json", about)
            linear = {f"linear.{name}": tensor.detach().cpu().clone() for name, tensor in head.items()}
            save_file(linear, folder / "2_Dense" / "model.safetensors")
        listing = [
            {
                "idx": number,
                "name": str(number),
                "path": f"{number}_{name}" if number else "",
                "type": f"sentence_transformers.models.{name}",
            }
            for number, name in enumerate(modules)
        ]
        _json(folder / "modules.json", listing)

    def _pooling(self, width: int) -> dict[str, Any]:
        # The names that every release of the library reads.
        modes = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "lasttoken": "lasttoken"}
        wanted = _POOLINGS[self.recipe.pooling]
        return {
            "word_embedding_dimension": width,
            **{f"pooling_mode_{key}": mode == wanted for mode, key in modes.items()},
        }


def publish(checkpoint: Path, folder: Path) -> None:
    """Copy a checkpoint's files into the folder of the training; what makes it a checkpoint comes last."""
    with told_as_unwritable(folder):
        files = sorted(path.relative_to(checkpoint) for path in checkpoint.rglob("*") if path.is_file())
        last = {Path("modules.json"), Path("config.json")}
        for path in [*(path for path in files if path not in last), *(path for path in files if path in last)]:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            beside = target.with_name(f".{target.name}")
            shutil.copyfile(checkpoint / path, beside)
            beside.replace(target)


def prune(folder: Path, kept: set[int]) -> None:
    """Remove the checkpoints of all steps but `kept`, and what killed writers left."""
    for path in folder.glob("step-*"):
        if int(path.name.removeprefix("step-")) not in kept:
            shutil.rmtree(path)
    for path in folder.glob(".step-*"):
        shutil.rmtree(path)


def _json(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
