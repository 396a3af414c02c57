"""Measures a model in training with its current weights, without a trace in the training."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from stsbench.base.errors import UserError
from stsbench.encoders.network import Network
from stsbench.encoders.poolers import parse_pooling
from stsbench.encoders.protocol import Identity
from stsbench.encoders.rendering import Part
from stsbench.encoders.simple import CallableEncoder, EncodeFunction
from stsbench.encoders.tokenizer import NO_LIMIT
from stsbench.encoders.use import own_use

if TYPE_CHECKING:
    from torch import nn

ModelEncode = Callable[["nn.Module", list[str]], Any]
"""From the model in training and some sentences to an array or tensor of shape (sentences, dimensions)."""

_CHARACTERS = 16_384
"""The characters in a batch, which is small because the training's tensors are on the device, too."""


def live_encoder(encode: EncodeFunction, name: str) -> CallableEncoder:
    """Returns the encoder of one evaluation. Its vectors are not cached, as the weights have no hash."""
    return CallableEncoder(encode, Identity(name, "function", own_use("own")), token_budget=_CHARACTERS)


@contextmanager
def undisturbed(model: "nn.Module") -> Iterator[None]:
    """Evaluates a model without a trace in its training.

    Inside the block it is in evaluation mode, and no gradient is recorded. Afterwards the mode of every module and
    the states of the random generators of Python, NumPy and torch (on the CPU, and on all CUDA devices if the
    model is on one) are restored.
    """
    import torch

    modes = [(module, module.training) for module in model.modules()]
    parameter = next(model.parameters(), None)
    on_cuda = parameter is not None and parameter.device.type == "cuda"
    devices = list(range(torch.cuda.device_count())) if on_cuda else []
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    # No inference mode: a tensor that a network computes once and keeps could not be used in training.
    with torch.random.fork_rng(devices), torch.no_grad():
        model.eval()
        try:
            yield
        finally:
            for module, was_training in modes:
                module.training = was_training
            random.setstate(of_python)
            np.random.set_state(of_numpy)  # noqa: NPY002


def pooled(tokenizer: Any, pooling: str, max_length: int | None = None) -> ModelEncode:
    """Returns a function that encodes with a Transformers model in training as `stsbench run` does.

    A model with a task's head is encoded by the network below it (`base_model`).

    Args:
        tokenizer: the model's.
        pooling: a pooling of a Transformers checkpoint without a template.
        max_length: the maximum length in sub-words; by default the tokenizer's limit.

    Raises:
        UserError: if the pooling is unknown or not possible for a model in training.
    """
    reading = parse_pooling(pooling)
    if reading.is_of_template or (reading.head and pooling != "cls"):
        raise UserError(
            f"pooling {pooling} is not read of a model in training: choose another or give a function as `encode`."
        )
    if any(tokenizer("a").get("token_type_ids") or ()):
        raise UserError(
            "this tokenizer marks token types in single sentences, as XLNet's does: give a function as `encode`."
        )
    limit = min(max_length or NO_LIMIT, tokenizer.model_max_length or NO_LIMIT)
    padding = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id

    def encode(model: Any, sentences: list[str]) -> Any:
        network = _network_of(model, 0 if padding is None else padding)
        if pooling == "cls" and not network.has_pooler:
            raise UserError("pooling cls reads behind the model's pooler, and it has none: use cls_before_pooler.")
        ids = tokenizer(
            sentences,
            truncation=limit < NO_LIMIT,
            max_length=limit if limit < NO_LIMIT else None,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
        )["input_ids"]
        parts = [Part(tuple(of_sentence), (), ()) for of_sentence in ids]
        vectors = network.read(parts, {pooling: reading}, plain=True)[pooling].cpu().numpy()
        # Where a tokenizer adds no special tokens, an empty sentence has none at all.
        vectors[[not of_sentence for of_sentence in ids]] = 0
        return vectors

    return encode


def _network_of(model: Any, pad_id: int) -> Network:
    """Return the network of a Transformers model, as it is at this moment."""
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel) or model.config.is_encoder_decoder:
        kind = "an encoder-decoder" if isinstance(model, PreTrainedModel) else f"a {type(model).__name__}"
        raise UserError(
            f"a pooling is of a Transformers encoder or decoder, and the model in training is {kind}: give a "
            "function `encode(model, sentences)`."
        )
    network = model.base_model
    return Network(
        name=type(model).__name__,
        model=network,
        head=None,
        has_pooler=getattr(network, "pooler", None) is not None,
        tail=lambda vectors: vectors,
        pad_id=pad_id,
        device=str(model.device),
    )
