"""The loaded network of a Transformers checkpoint: token ids in, pooled vectors out."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.machine import is_of_memory
from stsbench.encoders.checkpoint import Checkpoint, quiet_transformers, reason_of, reporting_failures
from stsbench.encoders.poolers import AUTO, NoHeadError, Reading, parse_pooling, read_vectors
from stsbench.encoders.protocol import DeviceOutOfMemory, FloatMatrix, TokenSequence
from stsbench.encoders.rendering import EmptyTemplate, Part, Rendered
from stsbench.encoders.use import BIDIRECTIONAL, CAUSAL, PRECISIONS, Use
from stsbench.encoders.weights import (
    TailModule,
    load_tail,
    merge_adapter,
    require_floats,
    require_memory_for,
    require_own_weights,
    trained_head,
)

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Network:
    """A Transformers model on its device, with its head and the modules after the pooling.

    Attributes:
        head: the dense+tanh on the first token that SimCSE-style training left, or None.
        has_pooler: whether the model's own pooler has trained weights.
        tail: applies the modules after the pooling.
        mask: as `Use.attention_mask`.
    """

    name: str
    model: Any
    head: "Callable[[Tensor], Tensor] | None"
    has_pooler: bool
    tail: "Callable[[Tensor], Tensor]"
    pad_id: int
    device: str
    mask: str = AUTO

    def __call__(
        self,
        sequences: Sequence[TokenSequence],
        poolings: Sequence[str],
        *,
        padding: str = "right",
        without: EmptyTemplate | None = None,
    ) -> dict[str, FloatMatrix]:
        """Returns for each pooling an array of shape (len(sequences), dimensions), float32.

        A sequence without tokens has the zero vector. A sentence in several texts of a template has the mean of
        their vectors.

        Args:
            sequences: token ids, or sentences in a template.
            poolings: all read in one pass.
            padding: the side on which shorter rows are padded.
            without: the template without a sentence, whose vector is subtracted.
        """
        import torch

        readings = {pooling: self._reading(pooling) for pooling in poolings}
        parts = [part for sequence in sequences for part in _parts_of(sequence)]
        plain = padding == "right" and not any(isinstance(row, Rendered) for row in sequences)
        finished = {}
        try:
            with torch.inference_mode():
                read = self.read(parts, readings, plain=plain, padding=padding)
                for pooling, reading in readings.items():
                    vectors = read[pooling]
                    if without is not None:
                        # For an empty sentence the difference is noise, which a normalisation would enlarge.
                        empty = torch.tensor([without.is_alone(part) for part in parts], device=self.device)
                        vectors = vectors - without.vectors(self, pooling, reading, parts)
                        vectors = vectors.masked_fill(empty.unsqueeze(1), 0)
                    # For a plain sentence the model itself has applied its pooler.
                    if reading.head and not (pooling == "cls" and plain):
                        vectors = self._apply_head(vectors)
                    finished[pooling] = self._finish(vectors, parts, len(sequences))
        except RuntimeError as error:
            if is_of_memory(error):
                raise DeviceOutOfMemory(str(error)) from error
            raise UserError(f"cannot encode with {self.name}: {reason_of(error)}") from error
        return finished

    def read(
        self,
        parts: Sequence[Part],
        readings: "Mapping[str, Reading]",
        *,
        plain: bool = False,
        padding: str = "right",
        positions: Sequence[Sequence[int]] | None = None,
    ) -> "dict[str, Tensor]":
        """Returns for each pooling the vectors of token sequences before any head, shape (len(parts), dimensions).

        Args:
            parts: token ids, with the places that a template reads.
            readings: where to read the vector, by pooling.
            plain: whether there is no template: then `cls` is what the model itself returns.
            padding: the side on which shorter rows are padded.
            positions: of each token; None for those that the model's own code assigns to each row.
        """
        import torch

        ids, mask, starts, located = self.padded(parts, padding, positions)
        if (known := self.vocabulary) is not None and (token := int(ids.max())) >= known:
            raise UserError(
                f"the tokenizer of {self.name} returns token {token}, but the model has {known} tokens. Use its "
                "own tokenizer."
            )
        ids, mask, starts = (tensor.to(self.device) for tensor in (ids, mask, starts))
        if located is None and padding == "left" and not bool(mask.all()):
            located = self.own_positions(ids, mask)
        all_layers = any(reading.needs_all_layers for reading in readings.values())
        states = self.run(ids, mask, positions=located, padding=padding, all_layers=all_layers)
        hidden = states.hidden_states or (states.last_hidden_state,)
        vectors = {}
        for pooling, reading in readings.items():
            if pooling == "cls" and plain:
                head = self.head
                pooled = states.pooler_output if head is None else head(states.last_hidden_state[:, 0])
                vectors[pooling] = pooled.float()
                continue
            if any(not -len(hidden) <= layer < len(hidden) for layer in reading.layers):
                raise UserError(
                    f"pooling {pooling}: {self.name} has {len(hidden) - 1} layers. Use 0 (the embedding layer) to "
                    f"{len(hidden) - 1}, or -1 (the last) to -{len(hidden)}."
                )
            # A sequence without tokens has no vector to read.
            spans = [
                reading.span(len(part.ids), part.masks, part.copies) if part.ids else (0, 0) for part in parts
            ]
            placed = torch.tensor(spans, device=self.device) + starts.unsqueeze(1)
            vectors[pooling] = read_vectors(reading, hidden, placed)
        return vectors

    def padded(
        self, parts: Sequence[Part], padding: str, positions: Sequence[Sequence[int]] | None, width: int = 1
    ) -> "tuple[Tensor, Tensor, Tensor, Tensor | None]":
        """Returns token ids padded to at least `width`, their mask, each row's first column, and positions."""
        import torch

        lengths = torch.tensor([len(part.ids) for part in parts])
        width = max(1, width, int(lengths.max()))
        starts = torch.zeros_like(lengths) if padding == "right" else width - lengths.clamp(min=1)
        places = torch.arange(width) - starts.unsqueeze(1)
        ids = torch.full((len(parts), width), self.pad_id)
        filled = (places >= 0) & (places < lengths.unsqueeze(1))
        ids[filled] = _concatenated([part.ids for part in parts])
        located = None
        if positions is not None:
            located = torch.zeros_like(ids)
            located[filled] = _concatenated(positions)
        # A sequence without tokens attends to one padding token, because attention to nothing is undefined.
        mask = ((places >= 0) & (places < lengths.clamp(min=1).unsqueeze(1))).long()
        return ids, mask, starts, located

    def run(
        self,
        ids: "Tensor",
        mask: "Tensor",
        *,
        positions: "Tensor | None" = None,
        padding: str = "right",
        all_layers: bool = False,
    ) -> Any:
        """Returns the model's output for padded token ids; without `positions` its own code counts them.

        `ids`, `mask` (1 for real tokens, at least one per row) and `positions` have the shape (rows, width).
        """
        if positions is None and self.mask != AUTO and self._takes_positions:
            # Some models count positions from the mask, which has another shape here.
            positions = self.own_positions(ids, mask)
        given = {} if positions is None else self._position_argument(positions.to(self.device), padding)
        if self.mask == AUTO:
            # Without padding no mask is needed, and attention computes the same numbers faster.
            attention_mask = None if bool(mask.all()) else mask
        else:
            _require_within_window(self.name, self.model.config, ids.shape[1])
            attention_mask = attended(mask, self.mask, self.model.dtype)
        return self.model(
            input_ids=ids,
            attention_mask=attention_mask,
            output_hidden_states=all_layers,
            return_dict=True,
            **given,
        )

    def prove_mask(self) -> None:
        """Raises a UserError if a model ignores `mask`, judged by whether other tokens change the first."""
        import torch

        middle = (self.vocabulary or 16) // 2
        ids = torch.tensor([[middle - 1, *[token] * 7] for token in (middle, middle + 1)], device=self.device)
        try:
            with torch.inference_mode():
                first, second = self.run(ids, torch.ones_like(ids)).last_hidden_state[:, 0]
        except UserError:
            raise
        except Exception as error:  # the model's code may fail in any way on a mask of four dimensions
            raise UserError(
                f"{self.name} does not accept an attention mask: leave out --attention-mask."
            ) from error
        if torch.equal(first, second) == (self.mask == BIDIRECTIONAL):
            raise UserError(
                f"{self.name} does not obey --attention-mask {self.mask}: its code makes its own mask."
            )

    def _finish(self, vectors: "Tensor", parts: Sequence[Part], rows: int) -> FloatMatrix:
        """Averages over the texts of a template and applies the modules after the pooling."""
        import torch

        empty = torch.tensor([not part.ids for part in parts], device=vectors.device)
        vectors = vectors.masked_fill(empty.unsqueeze(1), 0)
        if len(parts) > rows:
            vectors = vectors.view(rows, len(parts) // rows, -1).mean(1)
            empty = empty.view(rows, -1).all(1)
        finished: FloatMatrix = self.tail(vectors).float().masked_fill(empty.unsqueeze(1), 0).cpu().numpy()
        return finished

    @property
    def vocabulary(self) -> int | None:
        """The number of tokens that the model knows, or None."""
        return getattr(self.model.get_input_embeddings(), "num_embeddings", None)

    def _reading(self, pooling: str) -> Reading:
        reading = parse_pooling(pooling)
        if reading.head and self.head is None and not self.has_pooler:
            instead = pooling.replace("+head", "") if "+head" in pooling else "cls_before_pooler"
            raise NoHeadError(
                f"pooling {pooling} needs a trained dense+tanh head, which {self.name} lacks. Use --pooling "
                f"{instead}."
            )
        return reading

    def _apply_head(self, vectors: "Tensor") -> "Tensor":
        head: Any = self.head or self.model.pooler
        vectors = vectors.to(next(head.parameters()).dtype)
        # A model's own pooler selects the first token of its input.
        pooled: Tensor = head(vectors.unsqueeze(1) if self.head is None else vectors)
        return pooled.float()

    @property
    def pad_position(self) -> int | None:
        """The padding id that offsets position ids (RoBERTa and its relatives, MPNet), or None."""
        embeddings = getattr(self.model, "embeddings", None)
        is_offset = hasattr(embeddings, "create_position_ids_from_inputs_embeds")
        return int(embeddings.padding_idx) if is_offset else None  # type: ignore[union-attr]

    def own_positions(self, ids: "Tensor", mask: "Tensor") -> "Tensor":
        """Returns the positions that the model's own code gives the tokens of each row without padding."""
        if (pad := self.pad_position) is None:
            return (mask.cumsum(1) - 1).clamp(min=0)
        counted = mask * (ids != pad)
        return counted.cumsum(1) * counted + pad

    @property
    def _takes_positions(self) -> bool:
        return "position_ids" in inspect.signature(self.model.forward).parameters

    def _position_argument(self, positions: "Tensor", padding: str) -> "dict[str, Tensor]":
        if self._takes_positions:
            return {"position_ids": positions}
        if padding == "left" and getattr(self.model.config, "max_position_embeddings", None) is None:
            # Models with relative positions, such as BLOOM and MPT.
            return {}
        raise UserError(f"{self.name} takes no positions, which this template needs. Use another template.")


def _parts_of(sequence: TokenSequence) -> Sequence[Part]:
    return sequence.parts if isinstance(sequence, Rendered) else [Part(cast(tuple[int, ...], sequence), (), ())]


def _concatenated(rows: Sequence[Sequence[int]]) -> "Tensor":
    import torch

    return torch.from_numpy(np.fromiter(chain.from_iterable(rows), dtype=np.int64))


def load_network(
    checkpoint: Checkpoint, use: Use, pad_id: int, tail: Sequence[TailModule], adapter: Checkpoint | None = None
) -> Network:
    """Loads a checkpoint's network for evaluation.

    Args:
        checkpoint: its files.
        use: precision, device, attention, and whether its own code may run.
        pad_id: the padding token.
        tail: modules after the pooling.
        adapter: merged into the weights.
    """
    import torch

    device, mask = use.device, use.attention_mask
    dtype = getattr(torch, PRECISIONS[use.precision])
    require_memory_for(checkpoint, use.precision)
    model, has_all_weights = _load_model(checkpoint, use, dtype)
    if adapter is not None:
        model = merge_adapter(model, adapter)
    width = getattr(model.config, "hidden_size", None)
    head = trained_head(checkpoint, width)
    with reporting_failures(f"load {checkpoint.name} on {device}"):
        model = model.to(device).eval()
        head = None if head is None else head.to(device=device, dtype=dtype).eval()
    network = Network(
        name=checkpoint.name,
        model=model,
        head=head,
        has_pooler=has_all_weights and getattr(model, "pooler", None) is not None,
        tail=load_tail(checkpoint, tail, width=width, device=device),
        pad_id=pad_id,
        device=device,
        mask=mask,
    )
    if mask != AUTO:
        network.prove_mask()
    return network


def _load_model(checkpoint: Checkpoint, use: Use, dtype: Any) -> tuple[Any, bool]:
    """Loads the model with Transformers; returns it, and whether its files have all of its weights."""
    from transformers import AutoModel, AutoModelForTextEncoding

    kind: Any = AutoModelForTextEncoding if checkpoint.is_half else AutoModel
    with quiet_transformers(), reporting_failures(f"load {checkpoint.name}"):
        # The precision is set while loading, because some models keep rotary angles and similar buffers in fp32.
        model, report = kind.from_pretrained(
            checkpoint.folder,
            output_loading_info=True,
            trust_remote_code=use.trust_remote_code,
            dtype=dtype,
            **({} if use.attention == AUTO else {"attn_implementation": use.attention}),
        )
    require_own_weights(checkpoint.name, model, report)
    if not getattr(model.config, "quantization_config", None):
        require_floats(model, checkpoint.weight_files())
    return model, not report["missing_keys"]


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


def _require_within_window(name: str, config: Any, width: int) -> None:
    """Raises a UserError for sequences longer than a window of attention, which our mask would ignore."""
    keys = ("sliding_window", "local_attention")
    windows = [value for key in keys if isinstance(value := getattr(config, key, None), int) and value > 0]
    if windows and width > min(windows):
        raise UserError(
            f"some layers of {name} attend within a window of {min(windows)} sub-words, which --attention-mask "
            f"ignores. Use --max-length {min(windows)}, or leave it out."
        )
