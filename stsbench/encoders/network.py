"""The loaded network of a Transformers checkpoint: token ids in, pooled vectors out."""

from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.encoders.checkpoint import Checkpoint, read_weights
from stsbench.encoders.poolers import NEEDS_ALL_LAYERS, POOLERS
from stsbench.encoders.protocol import DeviceOutOfMemory, FloatMatrix, TokenSequence
from stsbench.encoders.tail import TailModule, load_tail
from stsbench.foundation.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor, nn

_PRECISIONS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}

# SimCSE's training code stores its dense+tanh head under this name, beside the encoder.
_TRAINED_HEAD = "mlp.dense"


@dataclass
class Network:
    """A Transformers model on its device, with what turns hidden states into sentence vectors.

    Attributes:
        model: the encoder, in evaluation mode.
        head: the dense+tanh on the first token that SimCSE-style training left, if it did.
        has_pooler: whether the model's own pooler has trained weights.
        tail: modules after the pooling (dense layers, normalisation), in order.
        pad_id: the padding token.
    """

    model: Any
    head: "Callable[[Tensor], Tensor] | None"
    has_pooler: bool
    tail: "Callable[[Tensor], Tensor]"
    pad_id: int
    device: str

    def __call__(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return for each pooling an array of shape (len(sequences), dimensions), float32.

        Raises:
            DeviceOutOfMemory: if the batch does not fit.
            UserError: if a pooling needs what the checkpoint lacks.
        """
        import torch

        lengths = torch.tensor([len(sequence) for sequence in sequences])
        width = int(lengths.max())
        ids = torch.full((len(sequences), width), self.pad_id)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = torch.tensor(sequence)
        mask = (torch.arange(width) < lengths.unsqueeze(1)).long()
        # Without padding no mask is needed, and attention takes its fastest path to the same numbers.
        padded = bool((lengths < width).any())
        try:
            with torch.inference_mode():
                ids, mask = ids.to(self.device), mask.to(self.device)
                states = self.model(
                    input_ids=ids,
                    attention_mask=mask if padded else None,
                    output_hidden_states=not NEEDS_ALL_LAYERS.isdisjoint(poolings),
                )
                hidden = states.hidden_states or (states.last_hidden_state,)
                return {
                    pooling: self.tail(
                        self._through_head(states) if pooling == "cls" else POOLERS[pooling](hidden, mask)
                    )
                    .cpu()
                    .numpy()
                    for pooling in poolings
                }
        except torch.OutOfMemoryError as error:
            raise DeviceOutOfMemory(str(error)) from error

    def _through_head(self, states: Any) -> "Tensor":
        if self.head is not None:
            return self.head(states.last_hidden_state).float()
        if not self.has_pooler or states.pooler_output is None:
            raise UserError(
                "pooling cls needs a trained dense+tanh head, which this checkpoint lacks: "
                "use --pooling cls_before_pooler."
            )
        pooled: Tensor = states.pooler_output
        return pooled.float()


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

    folder = checkpoint.folder
    with _quiet_transformers():
        try:
            # Transformers reads safetensors, and .bin files with weights_only=True.
            model, info = AutoModel.from_pretrained(
                folder, output_loading_info=True, trust_remote_code=trust_remote_code
            )
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            first_line = str(error).strip().partition("\n")[0]
            raise UserError(f"cannot load {checkpoint.name}: {first_line}") from error
    missing = sorted(info["missing_keys"])
    without_pooler = [name for name in missing if not name.startswith("pooler.")]
    if without_pooler:
        raise UserError(
            f"{checkpoint.name} lacks the weights of {without_pooler[0]} and {len(without_pooler) - 1} more: "
            "they would be random. Give a checkpoint of this architecture."
        )
    dtype = getattr(torch, _PRECISIONS[precision])
    model = model.to(device=device, dtype=dtype).eval()
    head = _trained_head(checkpoint)
    if head is not None:
        head = head.to(device=device, dtype=dtype).eval()
    return Network(
        model=model,
        head=head,
        has_pooler=not missing and hasattr(model, "pooler"),
        tail=load_tail(checkpoint.folder, tail, device=device),
        pad_id=pad_id,
        device=device,
    )


def _trained_head(checkpoint: Checkpoint) -> "nn.Module | None":
    """Return the head that SimCSE-style training leaves in a checkpoint, if it did."""
    for path in checkpoint.weight_files():
        if path.suffix == ".safetensors" and not _names_head(path):
            continue
        tensors = read_weights(path)
        found = next((name for name in tensors if name.endswith(f"{_TRAINED_HEAD}.weight")), None)
        if found is not None:
            return _dense_tanh(tensors[found], tensors[found.removesuffix("weight") + "bias"])
    return None


def _names_head(path: Path) -> bool:
    # The names stand in the file's header: no need to read the weights to see that there is no head.
    from safetensors import safe_open

    with safe_open(path, framework="pt") as tensors:
        return any(name.endswith(f"{_TRAINED_HEAD}.weight") for name in tensors.keys())  # noqa: SIM118


def _dense_tanh(weight: "Tensor", bias: "Tensor") -> "nn.Module":
    import torch
    from torch import nn

    class DenseTanh(nn.Module):
        """The first token through a dense layer and tanh, as BERT's own pooler does it."""

        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Linear(weight.shape[1], weight.shape[0])

        def forward(self, hidden_states: "Tensor") -> "Tensor":
            output: Tensor = torch.tanh(self.dense(hidden_states[:, 0]))
            return output

    head = DenseTanh()
    head.dense.load_state_dict({"weight": weight, "bias": bias})
    return head


@contextmanager
def _quiet_transformers() -> "Iterator[None]":
    """Keep Transformers' own progress bars and advice off the person's screen while it loads."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        logging.enable_progress_bar()
