"""Transformers checkpoints as encoders. Files are looked at first; torch and the weights only when needed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack

from stsbench.base.errors import UserError
from stsbench.encoders.adapter import adapter_file, hash_with
from stsbench.encoders.backends import Calibration, calibration, compiled
from stsbench.encoders.checkpoint import ADAPTER_CONFIG, Checkpoint
from stsbench.encoders.misread import Misread
from stsbench.encoders.network import Network, TailModule, Without, load_network, weight_files
from stsbench.encoders.protocol import Encoder, FloatMatrix, Identity, Place, Tokenized, TokenSequence
from stsbench.encoders.rendering import alone, render
from stsbench.encoders.template import Template
from stsbench.encoders.tokenizer import Tokenizer, position_limit
from stsbench.encoders.use import FP32, TORCH, Use, UseOptions

# Padded tokens a batch. On a CPU a small batch stays in the cache of a core and is faster than a large one;
# a GPU wants to be filled.
_TOKEN_BUDGETS = {"cpu": 2048, "mps": 16_384, "cuda": 65_536}


@dataclass(frozen=True)
class TransformerSettings:
    """How a checkpoint is to be used, as its own files or the person say.

    Attributes:
        use: with nothing left open: a pooling of the checkpoint, a prompt, a device.
        lower_case: whether sentences (and what is around them) are lower-cased first.
        tail: modules after the pooling.
        normalizes: whether a normalisation closes it all.
    """

    use: Use
    lower_case: bool = False
    tail: tuple[TailModule, ...] = ()
    normalizes: bool = False

    @property
    def modules(self) -> tuple[TailModule, ...]:
        """Every module after the pooling, with a closing normalisation."""
        return (*self.tail, *([TailModule("normalize")] if self.normalizes else []))

    def with_modules(self, modules: Sequence[TailModule]) -> "TransformerSettings":
        """Return the settings with these modules after the pooling."""
        closing = [module.kind for module in modules[-1:]] == ["normalize"]
        return replace(self, tail=tuple(modules[: len(modules) - closing]), normalizes=closing)


@dataclass
class TransformerEncoder:
    """A Transformers checkpoint, loaded at the first forward pass.

    Attributes:
        checkpoint: where its files are.
        settings: how it is used, and what follows the pooling.
        kind: `transformer` or `sentence-transformers`.
        notes: choices and mismatches to tell the person about.
        adapter: the differences that are merged into its weights; None for none.
        loaded: another encoder of this checkpoint whose network is used, so that it is loaded once; None for none.
        places: where its batches are computed (`placed`); empty for here, one after the other.
    """

    checkpoint: Checkpoint
    settings: TransformerSettings
    kind: str = "transformer"
    notes: tuple[str, ...] = ()
    adapter: Checkpoint | None = None
    loaded: "TransformerEncoder | None" = None
    places: tuple[Place, ...] = ()

    @property
    def use(self) -> Use:
        """How it is used."""
        return self.settings.use

    @cached_property
    def identity(self) -> Identity:
        """What the vectors depend on; reads and hashes the checkpoint's files."""
        checkpoint, settings, use = self.checkpoint, self.settings, self.use
        weights_hash = checkpoint.sha256(weight_files(checkpoint, settings.tail))
        config_hash = checkpoint.sha256(checkpoint.config_files(with_code=use.trust_remote_code))
        modules = (*(["lower_case"] if settings.lower_case else []), *(module.label for module in settings.tail))
        if self.adapter is not None:
            weights_hash = hash_with(self.adapter, weights_hash, adapter_file(self.adapter))
            config_hash = hash_with(self.adapter, config_hash, self.adapter.folder / ADAPTER_CONFIG)
            modules = ("lora", *modules)
        calibrated = self._calibration
        runs_code_elsewhere = use.trust_remote_code and checkpoint.code_elsewhere() is not None
        return Identity(
            name=checkpoint.name,
            kind=self.kind,
            use=replace(
                use,
                revision=checkpoint.revision,
                precision=f"{use.precision}#{calibrated.digest}" if calibrated else use.precision,
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
        """How large the files of its weights are."""
        return sum(path.stat().st_size for path in weight_files(self.checkpoint, self.settings.tail))

    @property
    def token_budget(self) -> int:
        """Padded tokens in one batch."""
        return _TOKEN_BUDGETS[self.use.device]

    def prepare(self, *, weights: bool) -> None:
        """Load the tokeniser, and the weights if asked."""
        _ = self._network if weights else self._tokenizer

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return the token ids that the model reads of each text, its whole length, and if it was cut."""
        use, tokenizer = self.use, self._tokenizer
        if (template := self.use.own_template) is not None:
            rendered, cut = render(self._as_read(texts), template, tokenizer, use.max_length)
            return Tokenized(list(rendered), self._lengths(texts), cut)
        read = self._as_read([(use.prompt or "") + text for text in texts])
        sequences = tokenizer(read, use.max_length)
        lengths = [len(sequence) for sequence in sequences]
        # Only a sequence at the limit can have been cut: those few are tokenised again whole.
        full = [row for row, length in enumerate(lengths) if length == use.max_length]
        truncated = [False] * len(texts)
        for row, whole in zip(full, tokenizer([read[row] for row in full]), strict=True):
            truncated[row] = len(whole) > lengths[row]
            lengths[row] = len(whole)
        # A prompt can run into the first word's token, so it cannot be subtracted.
        plain = self._lengths(texts) if use.prompt else [length - tokenizer.special_tokens for length in lengths]
        return Tokenized(list(sequences), plain, truncated)

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return the vectors; refuse them if a file is not what it was when it was hashed."""
        template = self.use.own_template
        padding = "right" if template is None else template.padding
        vectors = self._network(sequences, poolings, padding=padding, without=self._without)
        # Weights may be mapped into memory: what is written into their file is written into the network.
        for checkpoint in filter(None, (self.checkpoint, self.adapter)):
            checkpoint.hashed.require_unchanged()
        return vectors

    def misread(self, sequences: Sequence[TokenSequence], pooling: str, misread: Misread) -> FloatMatrix:
        """Return the vectors that a program gives which mistakes the padding of this one batch."""
        return self._network(sequences, [pooling], padding=misread.padding, misread=misread)[pooling]

    @property
    def kernel(self) -> str:
        """The kernel of attention that computes, as Transformers calls it; loads the network."""
        return str(getattr(self._network.model.config, "_attn_implementation", "") or "eager")

    def with_template(self, template: Template | None) -> "TransformerEncoder":
        """Return the encoder with another template, or none, and its pooling; the network is loaded once for both.

        Without a template the pooling stays, and must be given where it is one of the template.
        """
        pooling = self.use.pooling if template is None else template.reading
        return self.with_use(template=template, prompt="", pooling=pooling)

    def with_use(self, **changes: Unpack[UseOptions]) -> "TransformerEncoder":
        """Return the encoder used otherwise; both share the network, unless it is to compute in another way."""
        settings = replace(self.settings, use=replace(self.use, **changes))
        apart = changes.keys() & {"backend", "precision", "device", "attention", "attention_mask"}
        return replace(self, settings=settings, loaded=None if apart else self.loaded or self)

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        """Return how many sub-words texts have, without special tokens and what is around them."""
        return [len(alone) for alone in self._tokenizer(self._as_read(texts), special_tokens=False)]

    def _as_read(self, texts: Sequence[str]) -> list[str]:
        return [text.lower() for text in texts] if self.settings.lower_case else list(texts)

    @cached_property
    def _network(self) -> Network:
        if self.loaded is not None:
            return self.loaded._network
        use, calibrated = self.use, self._calibration
        network = load_network(
            self.checkpoint,
            precision=use.precision if use.backend == TORCH else FP32,
            device=use.device,
            pad_id=self._tokenizer.pad_id,
            tail=self.settings.tail,
            trust_remote_code=use.trust_remote_code,
            adapter=self.adapter,
            attention=use.attention,
            mask=use.attention_mask,
        )
        if use.backend == TORCH:
            return network
        # Calibrated on plain sentences: encoders with other templates use the same network.
        samples = self._tokenizer(self._as_read(calibrated.sentences), 64) if calibrated else []
        about = (self.identity.weights_sha256, self.identity.config_sha256)
        if None in about:
            raise UserError(
                f"{self.checkpoint.name} runs code from another repository, which is not hashed, so what is "
                "compiled of it cannot be kept: leave out --backend."
            )
        return compiled(network, use.backend, use.precision, about, samples=samples)

    @property
    def _calibration(self) -> Calibration | None:
        return calibration() if self.use.precision == "int8" else None

    @cached_property
    def _without(self) -> Without | None:
        template = self.use.own_template
        if template is None or template.subtract == "no":
            return None
        return Without(
            alone(template, self._tokenizer),
            with_padding=template.subtract == "padded_template",
            positions=template.positions,
        )

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        if self.loaded is not None:
            return self.loaded._tokenizer
        return Tokenizer(self.checkpoint, trust_remote_code=self.use.trust_remote_code)


def recut(encoder: Encoder, max_length: int) -> Encoder | None:
    """Return the encoder reading at most so many sub-words; None if it cannot be told to, or has no such limit."""
    if not isinstance(encoder, TransformerEncoder):
        return None
    longest = position_limit(encoder.checkpoint)
    if longest is not None and max_length > longest:
        return None
    return encoder.with_use(max_length=max_length)
