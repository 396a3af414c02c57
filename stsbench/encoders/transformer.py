"""Transformers checkpoints as encoders. Files are looked at first; torch and the weights only when needed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stsbench.encoders.checkpoint import Checkpoint, combined_sha256
from stsbench.encoders.known import find_known
from stsbench.encoders.network import Network, load_network
from stsbench.encoders.poolers import AUTO, POOLING_NAMES
from stsbench.encoders.protocol import FloatMatrix, Identity, Tokenized, TokenSequence
from stsbench.encoders.tail import TailModule
from stsbench.foundation.errors import UserError

# Padded tokens a batch. On a CPU a small batch stays in the cache of a core and is faster than a large one;
# a GPU wants to be filled.
_TOKEN_BUDGETS = {"cpu": 2048, "mps": 16_384, "cuda": 65_536}

# Position ids of RoBERTa-like models start after the padding index, so that many positions cannot be used.
_OFFSET_POSITIONS = re.compile("roberta|camembert|mpnet|longformer|ernie_m|data2vec-text")

# Transformers writes this for "no limit known".
_NO_LIMIT = 1_000_000


@dataclass(frozen=True)
class TransformerSettings:
    """How a checkpoint is to be used, as its own files or the person say.

    Attributes:
        pooling: one of `POOLING_NAMES`.
        max_length: sub-words kept, special tokens included; None for a model without limit.
        prompt: text put before every sentence.
        lower_case: whether sentences are lower-cased first.
        tail: modules after the pooling.
    """

    pooling: str
    max_length: int | None
    prompt: str = ""
    lower_case: bool = False
    tail: tuple[TailModule, ...] = ()


@dataclass
class TransformerEncoder:
    """A Transformers checkpoint, loaded at the first forward pass.

    Attributes:
        checkpoint: where its files are.
        settings: pooling, length, prompt and what follows.
        kind: `transformer` or `sentence-transformers`.
        precision: `fp32`, `bf16` or `fp16`.
        device: `cpu`, `cuda` or `mps`.
        notes: choices and mismatches to tell the person about.
        trust_remote_code: whether model code from the checkpoint may run.
    """

    checkpoint: Checkpoint
    settings: TransformerSettings
    kind: str = "transformer"
    precision: str = "fp32"
    device: str = "cpu"
    notes: tuple[str, ...] = ()
    trust_remote_code: bool = False

    @cached_property
    def identity(self) -> Identity:
        """What the vectors depend on; reads and hashes the checkpoint's files."""
        folder, settings = self.checkpoint.folder, self.settings
        weights = self.checkpoint.weight_files()
        dense = [module.weight_file(folder) for module in settings.tail if module.kind == "dense"]
        return Identity(
            name=self.checkpoint.name,
            kind=self.kind,
            revision=self.checkpoint.revision,
            weights_sha256=combined_sha256([*weights, *dense]),
            tokenizer_sha256=self.checkpoint.tokenizer_sha256(),
            config_sha256=combined_sha256([folder / "config.json"]),
            pooling=settings.pooling,
            max_length=settings.max_length,
            prompt=settings.prompt,
            precision=self.precision,
            device=self.device,
            modules=(*(["lower_case"] if settings.lower_case else []), *(m.kind for m in settings.tail)),
        )

    @property
    def token_budget(self) -> int:
        """Padded tokens in one batch."""
        return _TOKEN_BUDGETS[self.device]

    def prepare(self, *, weights: bool) -> None:
        """Load the tokeniser, and the weights if asked."""
        _ = self._network if weights else self._tokenizer

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return the token ids that the model reads of each text, its whole length, and if it was cut."""
        limit, tokenizer = self.settings.max_length, self._tokenizer
        prompted = [self.settings.prompt + (text.lower() if self.settings.lower_case else text) for text in texts]
        sequences = self._token_ids(prompted, limit)
        lengths = [len(sequence) for sequence in sequences]
        # Only a sequence at the limit can have been cut: those few are tokenised again whole.
        full = [row for row, length in enumerate(lengths) if limit is not None and length >= limit]
        truncated = [False] * len(texts)
        for row, whole in zip(full, self._token_ids([prompted[row] for row in full], None), strict=True):
            truncated[row] = len(whole) > lengths[row]
            lengths[row] = len(whole)
        extra = tokenizer.num_special_tokens_to_add() + self._prompt_tokens
        return Tokenized(list(sequences), [max(0, length - extra) for length in lengths], truncated)

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return for each pooling an array of shape (len(sequences), dimensions), float32."""
        return self._network(sequences, poolings)

    @cached_property
    def _network(self) -> Network:
        pad_id = self._tokenizer.pad_token_id
        return load_network(
            self.checkpoint,
            precision=self.precision,
            device=self.device,
            pad_id=pad_id,
            tail=self.settings.tail,
            trust_remote_code=self.trust_remote_code,
        )

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(
                self.checkpoint.folder, trust_remote_code=self.trust_remote_code
            )
        except (OSError, ValueError, KeyError, ImportError) as error:
            first_line = str(error).strip().partition("\n")[0]
            raise UserError(f"cannot load the tokenizer of {self.checkpoint.name}: {first_line}") from error
        if tokenizer.pad_token_id is None:
            raise UserError(
                f"the tokenizer of {self.checkpoint.name} has no padding token: "
                'name one in its tokenizer_config.json (for example "pad_token": its end-of-text token).'
            )
        # The person's limit is applied here; the tokenizer's own advice about long texts is noise.
        tokenizer.model_max_length = _NO_LIMIT
        tokenizer.padding_side = "right"
        return tokenizer

    @cached_property
    def _prompt_tokens(self) -> int:
        if not self.settings.prompt:
            return 0
        return len(self._tokenizer(self.settings.prompt, add_special_tokens=False)["input_ids"])

    def _token_ids(self, texts: Sequence[str], limit: int | None) -> list[tuple[int, ...]]:
        if not texts:
            return []
        encoded = self._tokenizer(
            list(texts),
            truncation=limit is not None,
            max_length=limit,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        return [tuple(ids) for ids in encoded["input_ids"]]


def model_limit(checkpoint: Checkpoint) -> int | None:
    """Return how many sub-words the model reads at most, special tokens included; None if unlimited."""
    config = checkpoint.json("config.json")
    limits = [checkpoint.json("tokenizer_config.json").get("model_max_length") or _NO_LIMIT]
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and positions > 0:
        offset = (config.get("pad_token_id") or 0) + 1
        limits.append(positions - offset if _OFFSET_POSITIONS.search(config.get("model_type", "")) else positions)
    limit = int(min(limits))
    return limit if limit < _NO_LIMIT else None


def choose_pooling(checkpoint: Checkpoint, wanted: str, own: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the pooling to use and what the person should know about the choice.

    Args:
        checkpoint: the model.
        wanted: what the person asked for; `auto` follows the checkpoint, then the table of known ones.
        own: the pooling that the checkpoint's own configuration names, if it does.

    Raises:
        UserError: if the pooling is unknown.
    """
    if wanted not in (AUTO, *POOLING_NAMES):
        raise UserError(f"unknown pooling {wanted!r}: choose one of {', '.join((AUTO, *POOLING_NAMES))}.")
    known = find_known(checkpoint.name)
    expected = own or (known.pooling if known else None)
    said_by = "its own configuration says" if own else f"its paper used: {known.source}" if known else ""
    if wanted != AUTO:
        if expected is not None and wanted != expected:
            return wanted, (f"pooling {wanted} differs from {expected} for {checkpoint.name} ({said_by}).",)
        return wanted, ()
    if expected is not None:
        return expected, ()
    architectures = checkpoint.json("config.json").get("architectures") or []
    if any(name.endswith("ForCL") for name in architectures):
        return "cls_before_pooler", (
            f"{checkpoint.name} is a SimCSE training checkpoint: pooling cls_before_pooler, as unsupervised "
            "models are scored; a supervised one wants --pooling cls.",
        )
    return "avg", (
        f"{checkpoint.name} does not say how to pool: pooling avg was chosen; "
        "set --pooling if its paper used another.",
    )
