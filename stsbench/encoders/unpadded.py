"""Batches without padding: sequences are concatenated, and attention gets their boundaries.

On a GPU in half precision this is faster than padding and a mask. It supports models that accept token positions
and pass further arguments on to the attention function.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

MODEL_TYPES = frozenset({"bert", "camembert", "roberta", "xlm-roberta"})
"""Encoders that accept positions and pass the boundaries on to attention."""

_ATTENTION = "stsbench_unpadded"
"""The name of our attention function in Transformers."""


def is_faster_unpadded(model: Any, device: str) -> bool:
    """Returns whether a model is faster without padding: one of `MODEL_TYPES`, in half precision, on CUDA.

    Causal models are not supported. Padded vectors are equal up to rounding.
    """
    return (
        device == "cuda"
        and str(model.dtype) in {"torch.bfloat16", "torch.float16"}
        and model.config.model_type in MODEL_TYPES
        and not getattr(model.config, "is_decoder", False)
        and find_spec("torch.nn.attention.varlen") is not None  # from torch 2.10 on
    )


def make_unpadded(model: Any) -> None:
    """Sets a model's attention to one that only `run_unpadded` can use."""
    from transformers import AttentionInterface

    AttentionInterface.register(_ATTENTION, _attention)
    model.set_attn_implementation(_ATTENTION)


def run_unpadded(model: Any, ids: "Tensor", mask: "Tensor", positions: "Tensor", *, all_layers: bool) -> Any:
    """Runs a model on the real tokens only; returns padded states, with zeros at the padding.

    Args:
        model: of `MODEL_TYPES`, prepared by `make_unpadded`.
        ids: padded token ids, shape (rows, width).
        mask: 1 for real tokens, at least one in each row, shape (rows, width).
        positions: of each token, as the model counts them, shape (rows, width).
        all_layers: whether to return the states of every layer.
    """
    import torch

    real = mask.bool()
    ends = torch.nn.functional.pad(mask.sum(1).cumsum(0), (1, 0)).to(torch.int32)
    states = model(
        input_ids=ids[real].unsqueeze(0),
        position_ids=positions[real].unsqueeze(0),
        output_hidden_states=all_layers,
        return_dict=True,
        cu_seq_lens_q=ends,
        max_length_q=ids.shape[1],
    )

    def padded(packed: "Tensor") -> "Tensor":
        return packed.new_zeros(*ids.shape, packed.shape[-1]).masked_scatter_(real.unsqueeze(-1), packed[0])

    states.last_hidden_state = padded(states.last_hidden_state)
    if all_layers:
        states.hidden_states = tuple(map(padded, states.hidden_states))
    # Its own pooler has read the first token of the first sequence only.
    if getattr(model, "pooler", None) is not None:
        states.pooler_output = model.pooler(states.last_hidden_state)
    return states


def _attention(
    _module: "nn.Module",
    query: "Tensor",
    key: "Tensor",
    value: "Tensor",
    _attention_mask: "Tensor | None",
    *,
    cu_seq_lens_q: "Tensor",
    max_length_q: int,
    **_others: Any,
) -> "tuple[Tensor, None]":
    """Returns scaled dot-product attention within each sequence.

    `query`, `key` and `value` have the shape (1, heads, tokens, d), the result (1, tokens, heads, d).
    """
    import torch
    from torch.nn import functional

    query, key, value = (states[0].transpose(0, 1) for states in (query, key, value))
    if query.is_cuda:
        from torch.nn.attention.varlen import varlen_attn

        ends = cu_seq_lens_q
        attended: Any = varlen_attn(query, key, value, ends, ends, max_length_q, max_length_q)
        return attended.unsqueeze(0), None
    # On a CPU, for tests: one sequence at a time.
    lengths = cu_seq_lens_q.diff().tolist()
    blocks = zip(*(torch.split(states, lengths) for states in (query, key, value)), strict=True)
    sequences = [
        functional.scaled_dot_product_attention(*(states.transpose(0, 1) for states in block)) for block in blocks
    ]
    return torch.cat(sequences, dim=1).transpose(0, 1).unsqueeze(0), None
