"""Transformers checkpoints as encoders. Files are read first; torch and the weights only when they are needed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from stsbench.base.errors import UserError
from stsbench.encoders.backends import calibration, compiled
from stsbench.encoders.checkpoint import ADAPTER_CONFIG, Checkpoint
from stsbench.encoders.network import Network, load_network
from stsbench.encoders.protocol import Encoder, FloatMatrix, Identity, Tokenized, TokenSequence
from stsbench.encoders.rendering import EmptyTemplate, alone, render
from stsbench.encoders.template import Template
from stsbench.encoders.tokenizer import Tokenizer, position_limit
from stsbench.encoders.use import FP32, TORCH, Use
from stsbench.encoders.weights import TailModule, adapter_file, hash_with, weight_files

# Padded tokens per batch. On a CPU small batches stay in a core's cache; a GPU needs large ones.
_TOKEN_BUDGETS = {"cpu": 2048, "mps": 16_384, "cuda": 65_536}

_NEEDS_ANOTHER_NETWORK = {"backend", "precision", "device", "attention", "attention_mask"}
"""The fields of `Use` that the network is loaded with."""


@dataclass(frozen=True)
class TransformerSettings:
    """The use of a checkpoint, with the settings of its own files.

    Attributes:
        use: with no choice left open.
        lower_case: whether texts are lower-cased first.
        tail: modules after the pooling.
        normalizes: whether a normalisation ends the modules.
    """

    use: Use
    lower_case: bool = False
    tail: tuple[TailModule, ...] = ()
    normalizes: bool = False


@dataclass
class TransformerEncoder:
    """A Transformers checkpoint, loaded at the first forward pass.

    Attributes:
        kind: `transformer` or `sentence-transformers`.
        adapter: merged into the weights; None for none.
        loaded: an encoder of the same checkpoint whose network is shared, or None.
    """

    checkpoint: Checkpoint
    settings: TransformerSettings
    kind: str = "transformer"
    notes: tuple[str, ...] = ()
    adapter: Checkpoint | None = None
    loaded: "TransformerEncoder | None" = None

    @property
    def use(self) -> Use:
        return self.settings.use

    @cached_property
    def identity(self) -> Identity:
        checkpoint, settings, use = self.checkpoint, self.settings, self.use
        weights_hash = checkpoint.sha256(weight_files(checkpoint, settings.tail))
        config_hash = checkpoint.sha256(checkpoint.config_files(with_code=use.trust_remote_code))
        modules = (*(["lower_case"] if settings.lower_case else []), *(module.label for module in settings.tail))
        if self.adapter is not None:
            weights_hash = hash_with(self.adapter, weights_hash, adapter_file(self.adapter))
            config_hash = hash_with(self.adapter, config_hash, self.adapter.folder / ADAPTER_CONFIG)
            modules = ("lora", *modules)
        runs_code_elsewhere = checkpoint.code_elsewhere(with_code=use.trust_remote_code) is not None
        return Identity(
            name=checkpoint.name,
            kind=self.kind,
            use=replace(
                use,
                revision=checkpoint.revision,
                precision=f"int8#{calibration()[1]}" if use.precision == "int8" else use.precision,
                trust_remote_code=use.trust_remote_code and bool(checkpoint.named_code()),
            ),
            weights_sha256=None if runs_code_elsewhere else weights_hash,
            tokenizer_sha256=checkpoint.sha256(checkpoint.tokenizer_files()),
            config_sha256=config_hash,
            modules=modules,
            normalizes=settings.normalizes,
        )

    @property
    def weight_bytes(self) -> int:
        """The size of its weight files."""
        return sum(path.stat().st_size for path in weight_files(self.checkpoint, self.settings.tail))

    @property
    def token_budget(self) -> int:
        return _TOKEN_BUDGETS[self.use.device]

    def prepare(self, *, weights: bool) -> None:
        _ = self.network if weights else self.tokenizer

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        use, tokenizer = self.use, self.tokenizer
        if (template := use.own_template) is not None:
            rendered, cut = render(self._cased(texts), template, tokenizer, use.max_length)
            return Tokenized(list(rendered), self._lengths(texts), cut)
        read = self._cased([(use.prompt or "") + text for text in texts])
        sequences = tokenizer(read, use.max_length)
        lengths = [len(sequence) for sequence in sequences]
        # Only sequences at the limit can have been truncated: those few are tokenised again in full.
        full = [row for row, length in enumerate(lengths) if length == use.max_length]
        truncated = [False] * len(texts)
        for row, whole in zip(full, tokenizer([read[row] for row in full]), strict=True):
            truncated[row] = len(whole) > lengths[row]
            lengths[row] = len(whole)
        # A prompt can merge with the first word, so its length cannot be subtracted.
        plain = self._lengths(texts) if use.prompt else [length - tokenizer.special_tokens for length in lengths]
        return Tokenized(list(sequences), plain, truncated)

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        template = self.use.own_template
        padding = "right" if template is None else template.padding
        vectors = self.network(sequences, poolings, padding=padding, without=self._empty_template)
        # Weights may be memory-mapped, so a change of the file changes the network.
        for checkpoint in filter(None, (self.checkpoint, self.adapter)):
            checkpoint.require_unchanged()
        return vectors

    @property
    def kernel(self) -> str:
        """The attention kernel, by its name in Transformers; loads the network."""
        return str(getattr(self.network.model.config, "_attn_implementation", "") or "eager")

    def with_template(self, template: Template | None) -> "TransformerEncoder":
        """Returns the encoder with another template and its pooling; without a template the pooling stays."""
        pooling = self.use.pooling if template is None else template.reading
        return self.with_use(template=template, prompt="", pooling=pooling)

    def with_use(self, **changes: Any) -> "TransformerEncoder":
        """Returns the encoder with other fields of `Use`; it shares the network if the network allows that."""
        settings = replace(self.settings, use=replace(self.use, **changes))
        shares = not changes.keys() & _NEEDS_ANOTHER_NETWORK
        return replace(self, settings=settings, loaded=(self.loaded or self) if shares else None)

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        """Returns the numbers of sub-words, without special tokens, prompt and template."""
        return [len(ids) for ids in self.tokenizer(self._cased(texts), special_tokens=False)]

    def _cased(self, texts: Sequence[str]) -> list[str]:
        return [text.lower() for text in texts] if self.settings.lower_case else list(texts)

    @cached_property
    def network(self) -> Network:
        if self.loaded is not None:
            return self.loaded.network
        use = self.use
        of_torch = use if use.backend == TORCH else replace(use, precision=FP32)
        network = load_network(self.checkpoint, of_torch, self.tokenizer.pad_id, self.settings.tail, self.adapter)
        if use.backend == TORCH:
            return network
        hashes = (self.identity.weights_sha256, self.identity.config_sha256)
        if None in hashes:
            raise UserError(
                f"{self.checkpoint.name} runs code from another repository, which is not hashed. Leave "
                "out --backend."
            )
        # Calibrated on plain sentences, because encoders with other templates share the network.
        is_int8 = use.precision == "int8"
        samples = self.tokenizer(self._cased(calibration()[0]), 64) if is_int8 else []
        return compiled(network, use, hashes, samples)

    @cached_property
    def _empty_template(self) -> EmptyTemplate | None:
        template = self.use.own_template
        if template is None or template.subtract == "no":
            return None
        return EmptyTemplate(
            alone(template, self.tokenizer),
            with_padding=template.subtract == "padded_template",
            positions=template.positions,
        )

    @cached_property
    def tokenizer(self) -> Tokenizer:
        if self.loaded is not None:
            return self.loaded.tokenizer
        _ = self.identity  # hashes the files before they are read
        return Tokenizer(self.checkpoint, trust_remote_code=self.use.trust_remote_code)


def recut(encoder: Encoder, max_length: int) -> Encoder | None:
    """Returns the encoder with another maximum length, or None if it cannot read that many sub-words."""
    if not isinstance(encoder, TransformerEncoder):
        return None
    longest = position_limit(encoder.checkpoint)
    if longest is not None and max_length > longest:
        return None
    return encoder.with_use(max_length=max_length)
