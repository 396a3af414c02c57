"""Attention masks: what a checkpoint's files state, the user's choice, and a check that the network obeys it.

A causal token attends to itself and earlier tokens, a bidirectional one to all tokens. A chosen mask is given to
every layer. Code of a checkpoint may ignore it, so its effect is tested.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.use import BIDIRECTIONAL, CAUSAL, MASKS

if TYPE_CHECKING:
    from torch import Tensor

_WINDOWS = ("sliding_window", "local_attention")


def attended(mask: "Tensor", kind: str, dtype: Any) -> "Tensor":
    """Returns the additive attention mask, shape (rows, 1, width, width): 0, or the lowest number.

    Args:
        mask: 1 for real tokens, shape (rows, width).
        kind: `causal` or `bidirectional`.
        dtype: of the model.
    """
    import torch

    allowed = mask.bool()[:, None, None, :].expand(-1, -1, mask.shape[1], -1)
    if kind == CAUSAL:
        allowed = allowed.tril()
    # Not minus infinity, which gives NaN for padding that attends to nothing.
    return torch.zeros(allowed.shape, dtype=dtype, device=mask.device).masked_fill(
        ~allowed, torch.finfo(dtype).min
    )


def other_masks(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Returns the masks that a decoder may lack (both if its files set one); none for an encoder."""
    from transformers.models.auto import modeling_auto

    config = checkpoint.json("config.json")
    if not (config.get("is_decoder") or config.get("auto_map")):
        kind = config.get("model_type")
        # The first mapping also lists encoders that can be used as decoders; the second, no language models.
        generates = kind in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        if not generates or kind in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
            return ()
    sets_mask = any(
        config.get(name) is not None for name in ("auto_map", "is_causal", "use_bidirectional_attention")
    )
    return MASKS if sets_mask else (BIDIRECTIONAL,)


def require_within_window(name: str, config: Any, width: int) -> None:
    """Refuses sequences longer than a window of attention, which our mask would ignore."""
    windows = [value for key in _WINDOWS if isinstance(value := getattr(config, key, None), int) and value > 0]
    if windows and width > min(windows):
        raise UserError(
            f"some layers of {name} attend within a window of {min(windows)} sub-words, which --attention-mask "
            f"ignores. Use --max-length {min(windows)}, or leave it out."
        )


def prove_mask(name: str, kind: str, run: "Callable[[Tensor, Tensor], Any]", vocabulary: int, device: str) -> None:
    """Refuses a network that does not obey its mask: whether the first token changes with the others.

    Args:
        name: the checkpoint's.
        kind: `causal` or `bidirectional`.
        run: maps token ids and a mask, shape (rows, width), to the model's output.
        vocabulary: number of tokens of the model.
        device: where it computes.
    """
    import torch

    middle = vocabulary // 2
    ids = torch.tensor([[middle - 1, *[token] * 7] for token in (middle, middle + 1)], device=device)
    try:
        with torch.inference_mode():
            first, second = run(ids, torch.ones_like(ids)).last_hidden_state[:, 0]
    except UserError:
        raise
    except Exception as error:  # the model's code may fail in any way on a mask of four dimensions
        raise UserError(f"{name} does not accept an attention mask: leave out --attention-mask.") from error
    if torch.equal(first, second) == (kind == BIDIRECTIONAL):
        raise UserError(f"{name} does not obey --attention-mask {kind}: its code makes its own mask.")
