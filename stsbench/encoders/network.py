"""The loaded network of a Transformers checkpoint: token ids in, pooled vectors out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.base.words import suggestion
from stsbench.encoders.checkpoint import Checkpoint, quiet_transformers, why
from stsbench.encoders.device import PRECISIONS
from stsbench.encoders.poolers import NEEDS_ALL_LAYERS, POOLERS, POOLING_NAMES
from stsbench.encoders.protocol import DeviceOutOfMemory, FloatMatrix, TokenSequence
from stsbench.encoders.weights import read_weights, refuse_unlike, require_floats, tensor_names

if TYPE_CHECKING:
    from torch import Tensor, nn

# SimCSE's training code stores its dense+tanh head under these names, beside the encoder.
_HEAD_WEIGHT, _HEAD_BIAS = "mlp.dense.weight", "mlp.dense.bias"


ACTIVATIONS = {
    "torch.nn.modules.linear.Identity": "Identity",
    "torch.nn.modules.activation.Tanh": "Tanh",
    "torch.nn.modules.activation.ReLU": "ReLU",
    "torch.nn.modules.activation.GELU": "GELU",
    "torch.nn.modules.activation.Sigmoid": "Sigmoid",
}
"""The activations of a dense module that are read natively, by the name its configuration gives them."""


@dataclass(frozen=True)
class TailModule:
    """One module after the pooling.

    Attributes:
        kind: `dense` or `normalize`.
        folder: where a dense module's weights are, relative to the checkpoint.
        activation: the class name in `torch.nn` of a dense module's activation.
    """

    kind: str
    folder: str = ""
    activation: str = "Identity"

    def config_file(self, checkpoint: Path) -> Path:
        """Return the file that names a dense module's activation."""
        return checkpoint / self.folder / "config.json"

    def weight_file(self, checkpoint: Path) -> Path:
        """Return the file that holds a dense module's weights.

        Raises:
            UserError: if there is none.
        """
        for name in ("model.safetensors", "pytorch_model.bin"):
            if (path := checkpoint / self.folder / name).is_file():
                return path
        raise UserError(f"{checkpoint / self.folder} holds no weights for its dense layer: fetch it again.")


@dataclass
class Network:
    """A Transformers model on its device, with what turns hidden states into sentence vectors.

    Attributes:
        name: the checkpoint's, for messages.
        model: the encoder, in evaluation mode.
        head: the dense+tanh on the first token that SimCSE-style training left, if it did.
        has_pooler: whether the model's own pooler has trained weights.
        tail: modules after the pooling (dense layers, normalisation), in order.
        pad_id: the padding token.
    """

    name: str
    model: Any
    head: "Callable[[Tensor], Tensor] | None"
    has_pooler: bool
    tail: "Callable[[Tensor], Tensor]"
    pad_id: int
    device: str

    def __call__(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return for each pooling an array of shape (len(sequences), dimensions), float32.

        A sequence without tokens (an empty sentence, where no special token is added) has the zero vector.

        Raises:
            DeviceOutOfMemory: if the batch does not fit.
            UserError: if a pooling is unknown or needs what the checkpoint lacks.
        """
        import torch

        self._require(poolings)
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        width = max(1, int(lengths.max()))
        ids = torch.full((len(sequences), width), self.pad_id)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = torch.tensor(sequence, dtype=torch.long)
        # One padding token stands for a sequence without tokens, as attention to nothing is undefined.
        mask = (torch.arange(width) < lengths.clamp(min=1).unsqueeze(1)).long()
        empty = (lengths == 0).to(self.device)
        # Without padding no mask is needed, and attention takes its fastest path to the same numbers.
        padded = bool((lengths < width).any())
        self._require_known(int(ids.max()))
        try:
            with torch.inference_mode():
                ids, mask = ids.to(self.device), mask.to(self.device)
                states = self.model(
                    input_ids=ids,
                    attention_mask=mask if padded else None,
                    output_hidden_states=not NEEDS_ALL_LAYERS.isdisjoint(poolings),
                    return_dict=True,
                )
                pooled = {pooling: self._pool(pooling, states, mask) for pooling in poolings}
                return {
                    pooling: self.tail(vectors).masked_fill(empty.unsqueeze(1), 0).cpu().numpy()
                    for pooling, vectors in pooled.items()
                }
        except RuntimeError as error:
            if not _out_of_memory(error):
                raise
            raise DeviceOutOfMemory(str(error)) from error

    def _pool(self, pooling: str, states: Any, mask: "Tensor") -> "Tensor":
        if pooling != "cls":
            return POOLERS[pooling](states.hidden_states or (states.last_hidden_state,), mask)
        if self.head is not None:
            return self.head(states.last_hidden_state[:, 0]).float()
        pooled: Tensor = states.pooler_output
        return pooled.float()

    def _require_known(self, token: int) -> None:
        known = getattr(self.model.get_input_embeddings(), "num_embeddings", None)
        if known is not None and token >= known:
            raise UserError(
                f"the tokenizer of {self.name} gives token {token}, but the model knows {known}: "
                "put the tokenizer there that it was trained with."
            )

    def _require(self, poolings: Sequence[str]) -> None:
        for pooling in poolings:
            if pooling not in POOLING_NAMES:
                raise UserError(f"unknown pooling {pooling!r}: {suggestion(pooling, POOLING_NAMES)}")
        if "cls" in poolings and self.head is None and not self.has_pooler:
            raise UserError(
                f"pooling cls needs a trained dense+tanh head, which {self.name} lacks: "
                "use --pooling cls_before_pooler."
            )


def load_network(
    checkpoint: Checkpoint,
    *,
    precision: str,
    device: str,
    pad_id: int,
    tail: Sequence[TailModule],
    trust_remote_code: bool,
) -> Network:
    """Load a checkpoint's network for evaluation, without running code that comes with its weights.

    Raises:
        UserError: if weights are missing (they would be random), or the model type is unknown.
    """
    import torch
    from transformers import AutoModel

    dtype = getattr(torch, PRECISIONS[precision])
    with quiet_transformers():
        try:
            # Transformers reads safetensors, and .bin files with weights_only=True. The precision is given here
            # and not set afterwards, as some models keep rotary angles and the like in fp32.
            model, info = AutoModel.from_pretrained(
                checkpoint.folder,
                output_loading_info=True,
                trust_remote_code=trust_remote_code,
                torch_dtype=dtype,
            )
        except Exception as error:  # whatever it is, it is about the files of this checkpoint
            raise UserError(f"cannot load {checkpoint.name}: {why(error)}") from error
    missing, model_type = info["missing_keys"], str(model.config.model_type)
    refuse_unlike(
        checkpoint.name,
        model_type,
        missing=[name for name in missing if not name.startswith("pooler.")],
        unexpected=info["unexpected_keys"],
    )
    if not getattr(model.config, "quantization_config", None):
        require_floats(checkpoint.weight_files(), model_type)
    width = getattr(model.config, "hidden_size", None)
    head = _trained_head(checkpoint, width)
    try:
        model = model.to(device).eval()
        head = None if head is None else head.to(device=device, dtype=dtype).eval()
    except RuntimeError as error:
        if not _out_of_memory(error):
            raise
        raise UserError(
            f"{checkpoint.name} does not fit in the memory of {device}: use --precision bf16 or --device cpu."
        ) from error
    return Network(
        name=checkpoint.name,
        model=model,
        head=head,
        has_pooler=not missing and getattr(model, "pooler", None) is not None,
        tail=load_tail(checkpoint, tail, width=width, device=device),
        pad_id=pad_id,
        device=device,
    )


def _out_of_memory(error: RuntimeError) -> bool:
    # Only CUDA's has a class of its own.
    return "out of memory" in str(error) or "not enough memory" in str(error)


def _trained_head(checkpoint: Checkpoint, width: int | None) -> "nn.Module | None":
    """Return the head that SimCSE-style training leaves in a checkpoint, if it did.

    Raises:
        UserError: if only a part of it is there, or it does not fit the network.
    """
    from torch import nn

    tensors: dict[str, Tensor] = {}
    for path in checkpoint.weight_files():
        # The names are read first: no need to read the weights to see that there is no head.
        if names := {_HEAD_WEIGHT, _HEAD_BIAS} & tensor_names(path):
            content = read_weights(path)
            tensors |= {name: content[name] for name in names if name in content}
    if not tensors:
        return None
    shapes = [tuple(tensors[name].shape) if name in tensors else () for name in (_HEAD_WEIGHT, _HEAD_BIAS)]
    if len(shapes[0]) != 2 or shapes[1] != shapes[0][:1] or shapes[0][1] != (width or shapes[0][1]):
        raise UserError(
            f"{checkpoint.name} holds {' and '.join(sorted(tensors))}, which is no dense layer on its vectors: "
            "fetch the checkpoint again."
        )
    return nn.Sequential(_dense(tensors[_HEAD_WEIGHT], tensors[_HEAD_BIAS]), nn.Tanh())


def _dense(weight: "Tensor", bias: "Tensor | None") -> "nn.Linear":
    from torch import nn

    dense = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    dense.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
    return dense


def load_tail(
    checkpoint: Checkpoint, modules: Sequence[TailModule], *, width: int | None, device: str
) -> "Callable[[Tensor], Tensor]":
    """Return one function that applies the modules in order to vectors of shape (rows, dimensions).

    Dense layers compute in float32 whatever the precision of the network: they see one vector a sentence.

    Args:
        checkpoint: where the modules' files are.
        modules: what follows the pooling, in order.
        width: the dimensions of what the pooling gives; None if that is not known.
        device: where to compute.

    Raises:
        UserError: if a dense layer's weights are not there, or are not those that its configuration describes.
    """
    from torch import nn
    from torch.nn import functional

    steps: list[Callable[[Tensor], Tensor]] = []
    for module in modules:
        if module.kind == "normalize":
            steps.append(lambda vectors: functional.normalize(vectors, dim=-1))
            continue
        file = module.weight_file(checkpoint.folder)
        weights = {name.removeprefix("linear."): tensor for name, tensor in read_weights(file).items()}
        weight, bias = weights.get("weight"), weights.get("bias")
        if weight is None or weight.ndim != 2 or not weights.keys() <= {"weight", "bias"}:
            raise UserError(f"{file} does not hold the weights of one dense layer: fetch it again.")
        if not all(tensor.is_floating_point() for tensor in weights.values()):
            raise UserError(
                f"{file} holds whole numbers, where weights are floating-point numbers: fetch it again."
            )
        outputs, inputs = weight.shape
        said = checkpoint.json(module.folder, "config.json")
        held = {"in_features": inputs, "out_features": outputs, "bias": bias is not None}
        for name, value in held.items():
            if said.get(name, value) != value:
                raise UserError(
                    f"{file} holds a dense layer with {name} {value!r}, but its config.json says {said[name]!r}: "
                    "fetch the checkpoint again."
                )
        if inputs != (width or inputs) or (bias is not None and tuple(bias.shape) != (outputs,)):
            raise UserError(
                f"{file} holds a dense layer from {inputs} to {outputs} dimensions, which does not fit what comes "
                f"before it ({width} dimensions) or its own bias: fetch the checkpoint again."
            )
        dense = _dense(weight.float(), None if bias is None else bias.float())
        steps += [dense.to(device).eval(), getattr(nn, module.activation)()]
        width = outputs

    def apply(vectors: "Tensor") -> "Tensor":
        for step in steps:
            vectors = step(vectors)
        return vectors

    return apply
