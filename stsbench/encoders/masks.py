"""What a token attends to: what a checkpoint's files say of it, another choice, and the proof that it is obeyed.

A causal token attends to itself and what stands before it, a bidirectional one to every token. Language models
that are used as encoders are told to be bidirectional, by their configuration or by code of their own; where a
release of Transformers has renamed what that code overrides, they silently become causal again. So a mask that is
asked for is given to every layer whole, and what comes out is looked at.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stsbench.base.errors import UserError
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.use import BIDIRECTIONAL, CAUSAL

if TYPE_CHECKING:
    from torch import Tensor

_WINDOWS = ("sliding_window", "local_attention")
_PROBE_TOKENS = 8
_ALIKE = 0.02
"""What half precision may move a state by, as a share of the largest; padding that is seen moves it more."""


def attended(mask: "Tensor", kind: str, dtype: Any) -> "Tensor":
    """Return what is added to attention's scores, shape (rows, 1, width, width): 0, or the lowest number.

    Args:
        mask: 1 for real tokens, shape (rows, width).
        kind: `causal` or `bidirectional`.
        dtype: of the model.
    """
    import torch

    allowed = mask.bool()[:, None, None, :].expand(-1, -1, mask.shape[1], -1)
    if kind == CAUSAL:
        allowed = allowed.tril()
    # Not minus infinity: a row of padding may attend to nothing, which would give no number.
    return torch.zeros(allowed.shape, dtype=dtype, device=mask.device).masked_fill(
        ~allowed, torch.finfo(dtype).min
    )


def own_mask(checkpoint: Checkpoint) -> str | None:
    """Return the mask that a checkpoint's network has; None where its own code or setting asks for another.

    Whether that is obeyed depends on the release of Transformers: `is_causal` is read from version 5 on.
    """
    config = checkpoint.json("config.json")
    if any(config.get(name) is not None for name in ("auto_map", "is_causal", "use_bidirectional_attention")):
        return None
    return CAUSAL if has_causal_code(checkpoint) else BIDIRECTIONAL


def has_causal_code(checkpoint: Checkpoint) -> bool:
    """Return whether the network is a language model's, or an encoder's whose configuration makes it a decoder."""
    from transformers.models.auto import modeling_auto

    config = checkpoint.json("config.json")
    if config.get("is_decoder") or config.get("auto_map"):
        return True
    model_type = config.get("model_type")
    # Encoders stand in the first list too, as decoders can be made of them; language models not in the second.
    generates = model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return generates and model_type not in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES


def require_within_window(name: str, config: Any, width: int) -> None:
    """Refuse sequences that are longer than a window of attention, of which a mask of ours says nothing."""
    window = window_of(config)
    if window is not None and width > window:
        raise UserError(
            f"some layers of {name} attend within a window of {window} sub-words, which --attention-mask would "
            f"open: use --max-length {window}, or leave it out."
        )


def window_of(config: Any) -> int | None:
    """Return the narrowest window that a configuration names; None for none."""
    windows = [getattr(config, name, None) for name in _WINDOWS]
    return min((window for window in windows if isinstance(window, int) and window > 0), default=None)


def prove_mask(
    name: str, kind: str, run: "Callable[[Tensor, Tensor], Any]", vocabulary: int | None, device: str
) -> None:
    """Refuse a network that does not obey its mask.

    That is seen by whether its first token notices that the others change, and a sentence that it is padded.

    Args:
        name: the checkpoint's.
        kind: `causal` or `bidirectional`.
        run: from token ids and a mask of their shape to the model's output.
        vocabulary: how many tokens the model knows; None if it does not say.
        device: where it computes.
    """
    import torch

    first, one, other = ((vocabulary or 2 * _PROBE_TOKENS) // 2 + step for step in (-1, 0, 1))
    ids = torch.tensor([[first, *[token] * (_PROBE_TOKENS - 1)] for token in (one, other)], device=device)
    real = torch.ones_like(ids)
    half = _PROBE_TOKENS // 2
    real[1, half:] = 0
    try:
        with torch.inference_mode():
            whole = run(ids, torch.ones_like(ids)).last_hidden_state.float()
            padded = run(ids, real).last_hidden_state[1, :half].float()
            alone = run(ids[1:, :half], real[1:, :half]).last_hidden_state[0].float()
    except UserError:
        raise
    except Exception as error:  # whatever the model's code makes of a mask that is not of the usual shape
        raise UserError(f"{name} takes no attention mask but its own: leave out --attention-mask.") from error
    notices = not torch.equal(whole[0, 0], whole[1, 0])
    is_alike = float((padded - alone).abs().max()) <= _ALIKE * float(alone.abs().max())
    if notices != (kind == BIDIRECTIONAL) or not is_alike:
        raise UserError(f"{name} does not obey --attention-mask {kind}: its code makes a mask of its own.")
