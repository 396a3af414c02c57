"""Sequences one behind the other, without padding: attention is told where each begins.

On a GPU in half precision that is faster than padding and a mask. It is for the models whose code was read for it:
they take the positions of tokens, and hand what else they are given on to the attention function.
"""

from typing import TYPE_CHECKING, Any

from stsbench.encoders.generation import has_attention_without_padding

if TYPE_CHECKING:
    from torch import Tensor, nn

MODEL_TYPES = frozenset({"bert", "camembert", "roberta", "xlm-roberta"})
"""Encoders that take positions and hand on what says where sequences begin."""

_ATTENTION = "stsbench_unpadded"
"""The name of our attention function in Transformers."""


def is_faster_unpadded(model: Any, device: str) -> bool:
    """Return whether a model computes faster without padding: one of `MODEL_TYPES`, in half precision, on CUDA.

    Not one whose tokens attend to nothing behind them, which our attention does not know. Where the libraries are
    too old for it, nothing does: padded, the vectors are the same but for rounding.
    """
    if device != "cuda" or not has_attention_without_padding() or getattr(model.config, "is_decoder", False):
        return False
    return str(model.dtype) in {"torch.bfloat16", "torch.float16"} and model.config.model_type in MODEL_TYPES


def make_unpadded(model: Any) -> None:
    """Set a model's attention to one that `run_unpadded` alone can use."""
    from transformers import AttentionInterface

    AttentionInterface.register(_ATTENTION, _attention)
    model.set_attn_implementation(_ATTENTION)


def run_unpadded(model: Any, ids: "Tensor", mask: "Tensor", positions: "Tensor", *, all_layers: bool) -> Any:
    """Run a model on the real tokens alone; return its output as of padded sequences, zeros at the padding.

    Args:
        model: of `MODEL_TYPES`, made ready by `make_unpadded`.
        ids: padded token ids, shape (rows, width).
        mask: of their shape, 1 for real tokens; at least one in each row.
        positions: of each token, as the model counts them, of their shape.
        all_layers: whether every layer's states are wanted.
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
    # Its own pooler took the first token of the first sequence for that of all.
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
    """Return attention within each of several sequences, its scores over sqrt(d).

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
    # On a CPU, to hold the packing against padding: a sequence at a time.
    lengths = cu_seq_lens_q.diff().tolist()
    blocks = zip(*(torch.split(states, lengths) for states in (query, key, value)), strict=True)
    sequences = [
        functional.scaled_dot_product_attention(*(states.transpose(0, 1) for states in block)) for block in blocks
    ]
    return torch.cat(sequences, dim=1).transpose(0, 1).unsqueeze(0), None
