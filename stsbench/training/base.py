"""The checkpoint that training starts from, and the networks made of it."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from stsbench.base.errors import UserError
from stsbench.base.words import listed
from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.load import load
from stsbench.encoders.network import Network, load_network
from stsbench.encoders.template import NO_TEMPLATE
from stsbench.encoders.tokenizer import Tokenizer, position_limit
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.encoders.use import Use
from stsbench.training.dropout import let_numpy_draw, set_dropout
from stsbench.training.guesses import masked_language_network
from stsbench.training.heads import HeadBase, dense_layers
from stsbench.training.model import SentenceModel
from stsbench.training.recipe import Recipe


@dataclass(frozen=True)
class Base:
    """A checkpoint to start from.

    Attributes:
        longest: the most sub-words that it has positions for; None for no limit.
        normalizes: whether its vectors have unit length; those of checkpoints trained from it then do, too.
        notes: what the user should know about it.
    """

    encoder: TransformerEncoder
    tokenizer: Tokenizer
    longest: int | None
    normalizes: bool = False
    notes: tuple[str, ...] = ()

    @property
    def checkpoint(self) -> Checkpoint:
        """Its files."""
        return self.encoder.checkpoint


def find_base(recipe: Recipe, device: str) -> Base:
    """Find the recipe's base, without loading its weights."""
    encoder = load(recipe.base, pooling=recipe.pooling, device=device, template=NO_TEMPLATE)
    if not isinstance(encoder, TransformerEncoder):
        raise UserError(f"{recipe.base} is not a Transformers checkpoint: choose another --base.")
    if encoder.adapter is not None:
        raise UserError(f"{recipe.base} is an adapter, which cannot be trained: choose another --base.")
    if encoder.use.prompt:
        raise UserError(
            f"{recipe.base} puts a prompt before every sentence, which cannot be trained: choose another --base."
        )
    longest = position_limit(encoder.checkpoint)
    if longest is not None and recipe.corpus.max_length > longest:
        raise UserError(
            f"{recipe.base} reads at most {longest} sub-words: corpus.max_length {recipe.corpus.max_length} is "
            "too long."
        )
    # A closing normalisation changes no cosine: training goes without it, and the checkpoint has it again. Other
    # modules after the pooling are not trained.
    tail, normalizes = encoder.settings.tail, encoder.settings.normalizes
    encoder.settings = replace(encoder.settings, tail=(), normalizes=False)
    notes = [*encoder.notes]
    if tail:
        kinds = listed([module.kind for module in tail])
        notes.append(
            f"{recipe.base} has modules behind its pooling ({kinds}): training does not read through them, so the "
            "checkpoint is without them."
        )
    tokenizer = Tokenizer(encoder.checkpoint, trust_remote_code=False)
    return Base(encoder, tokenizer, longest, normalizes, tuple(notes))


def load_model(base: Base, recipe: Recipe, device: str) -> tuple[SentenceModel, Network]:
    """Load the base for training; return the model, and the network that evaluates it."""
    network = load_network(base.checkpoint, Use(device=device), base.tokenizer.pad_id, tail=())
    transformer = network.model
    if recipe.dropout is not None:
        set_dropout(transformer, recipe.dropout)
    if device == "cpu":
        let_numpy_draw(transformer)
    model = SentenceModel(transformer, recipe.pooling, **_heads(transformer, recipe, network.has_pooler, device))
    model.train()
    if not recipe.head.evaluate:
        return model, network
    dense_layers(model.head)  # raises if a checkpoint cannot hold it
    return model, replace(network, tail=model.head)


def _heads(transformer: Any, recipe: Recipe, has_pooler: bool, device: str) -> dict[str, nn.Module]:
    """Return the recipe's heads by name, each with weights drawn from its own seed."""
    width, std = transformer.config.hidden_size, getattr(transformer.config, "initializer_range", 0.02)
    heads: dict[str, nn.Module] = {}
    for name in ("head", "projector", "predictor"):
        part = getattr(recipe, name)
        if part is None:
            continue
        torch.manual_seed(recipe.seed_of(name))
        pooler = transformer.pooler.dense if name == "head" and has_pooler else None
        heads[name] = part.build(HeadBase(width, std, pooler)).to(device)
        width = width if name == "head" else part.output_of(width)
    return heads


def random_copy(model: SentenceModel, recipe: Recipe) -> nn.Module:
    """Return the model's Transformer with fresh random weights."""
    from transformers import AutoModel

    torch.manual_seed(recipe.seed_of("momentum"))
    fresh: nn.Module = AutoModel.from_config(model.transformer.config)
    return fresh


def load_masked_language(base: Base, model: SentenceModel, device: str, *, tied: bool) -> nn.Module:
    """Return a masked-language model around the encoder that is being trained."""
    whole = masked_language_network(base.checkpoint)
    if whole is None or base.tokenizer.mask_id is None:
        raise UserError(
            f"{base.checkpoint.name} has no masked-language head (or no mask token), which objective.mlm needs: "
            "choose another --base, or --set objective.mlm=null."
        )
    # Unless it is tied, the head keeps the table that it was read with: a copy of the encoder's.
    setattr(whole, whole.base_model_prefix, model.transformer)
    if tied:
        whole.tie_weights()
    trained: nn.Module = whole.to(device).train()
    return trained
