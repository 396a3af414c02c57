"""The loaded network of a Transformers checkpoint: token ids in, pooled vectors out."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from stsbench.base.errors import UserError
from stsbench.base.machine import is_of_memory
from stsbench.encoders.adapter import merge_adapter
from stsbench.encoders.checkpoint import Checkpoint, quiet_transformers, told
from stsbench.encoders.generation import (
    report_of_loading,
    require_named_weights_are_read,
    require_pickles_are_safe,
    require_torch_is_used,
)
from stsbench.encoders.masks import attended, prove_mask, require_within_window
from stsbench.encoders.misread import Misread
from stsbench.encoders.poolers import AUTO, NoHeadError, Reading, parse_pooling, read_vectors
from stsbench.encoders.protocol import DeviceOutOfMemory, FloatMatrix, TokenSequence
from stsbench.encoders.rendering import Alone, Part, Rendered
from stsbench.encoders.template import FROM_ZERO, OWN
from stsbench.encoders.unpadded import is_faster_unpadded, make_unpadded, run_unpadded
from stsbench.encoders.use import PRECISIONS
from stsbench.encoders.weights import (
    read_weights,
    refuse_unlike,
    require_floats,
    require_memory_for,
    tensor_names,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

# SimCSE's training code stores its dense+tanh head under these names, beside the encoder.
_HEAD_WEIGHT, _HEAD_BIAS = "mlp.dense.weight", "mlp.dense.bias"

ACTIVATIONS = {
    "torch.nn.modules.linear.Identity": "Identity",
    "torch.nn.modules.activation.Tanh": "Tanh",
    "torch.nn.modules.activation.ReLU": "ReLU",
    "torch.nn.modules.activation.GELU": "GELU",
    "torch.nn.modules.activation.Sigmoid": "Sigmoid",
}
"""The activations of a dense module that are read natively, by the name its configuration gives them."""


@dataclass(frozen=True)
class TailModule:
    """One module after the pooling.

    Attributes:
        kind: `dense` or `normalize`.
        folder: where a dense module's weights are, relative to the checkpoint.
        activation: the class name in `torch.nn` of a dense module's activation.
    """

    kind: str
    folder: str = ""
    activation: str = "Identity"

    @property
    def label(self) -> str:
        """What it does, apart from its weights."""
        return f"{self.kind}:{self.activation}" if self.kind == "dense" else self.kind

    def weight_file(self, checkpoint: Path) -> Path:
        """Return the file that holds a dense module's weights."""
        for name in ("model.safetensors", "pytorch_model.bin"):
            if (path := checkpoint / self.folder / name).is_file():
                return path
        raise UserError(f"{checkpoint / self.folder} holds no weights for its dense layer: fetch it again.")


@dataclass
class Network:
    """A Transformers model on its device, with what turns hidden states into sentence vectors.

    Attributes:
        name: the checkpoint's, for messages.
        model: the encoder, in evaluation mode.
        head: the dense+tanh on the first token that SimCSE-style training left, if it did.
        has_pooler: whether the model's own pooler has trained weights.
        tail: modules after the pooling (dense layers, normalisation), in order.
        pad_id: the padding token.
        device: where it computes.
        is_unpadded: whether it computes without padding; None for where that is faster.
        mask: what a token attends to, as in `Use.attention_mask`.
    """

    name: str
    model: Any
    head: "Callable[[Tensor], Tensor] | None"
    has_pooler: bool
    tail: "Callable[[Tensor], Tensor]"
    pad_id: int
    device: str
    is_unpadded: bool | None = None
    mask: str = AUTO

    def __call__(
        self,
        sequences: Sequence[TokenSequence],
        poolings: Sequence[str],
        *,
        padding: str = "right",
        without: "Without | None" = None,
        misread: Misread | None = None,
    ) -> dict[str, FloatMatrix]:
        """Return for each pooling an array of shape (len(sequences), dimensions), float32.

        A sequence without tokens (an empty sentence, where no special token is added) has the zero vector. That of
        a sentence in several texts of a template is the mean over them. Where the padding is misread, the vectors
        are those that a mistake of other programs gives: they depend on what else is in the batch.
        """
        import torch

        readings = {pooling: self._require(pooling) for pooling in poolings}
        parts = [part for sequence in sequences for part in _parts_of(sequence)]
        try:
            with torch.inference_mode():
                plain = padding == "right" and not any(isinstance(sequence, Rendered) for sequence in sequences)
                plain = plain and misread is None
                finished = {}
                read_parts = self.read(parts, readings, plain=plain, padding=padding, misread=misread)
                for pooling, read in read_parts.items():
                    vectors = read
                    if without is not None:
                        # The rest of an empty sentence is rounding, to which a normalisation would give a length.
                        empty = torch.tensor([without.is_alone(part) for part in parts], device=self.device)
                        vectors = vectors - without.vectors(self, pooling, readings[pooling], parts)
                        vectors = vectors.masked_fill(empty.unsqueeze(1), 0)
                    # Of a plain sentence, the network itself gives what is behind its pooler.
                    if not (pooling == "cls" and plain):
                        vectors = self._behind_head(vectors, readings[pooling])
                    finished[pooling] = self._finished(vectors, parts, len(sequences))
                return finished
        except RuntimeError as error:
            if not is_of_memory(error):
                raise
            raise DeviceOutOfMemory(str(error)) from error

    def read(
        self,
        parts: Sequence[Part],
        readings: "Mapping[str, Reading]",
        *,
        plain: bool = False,
        padding: str = "right",
        positions: Sequence[Sequence[int]] | None = None,
        misread: Misread | None = None,
    ) -> "dict[str, Tensor]":
        """Return for each pooling the vectors of token sequences, before any head, shape (len(parts), dimensions).

        Args:
            parts: the token ids, and where what is read stands among them.
            readings: what to read, by the poolings' names.
            plain: whether there is no template, so that the model itself gives what `cls` reads.
            padding: the side on which shorter rows are padded.
            positions: of each token, as the model's position embeddings are numbered; None for those that the
                model's own code gives each row alone (`own_positions`).
            misread: how the padding is mistaken; None for not.
        """
        import torch

        lengths = torch.tensor([len(part.ids) for part in parts])
        width = max(1, int(lengths.max()))
        padded = bool((lengths < width).any())
        starts = torch.zeros_like(lengths) if padding == "right" else width - lengths.clamp(min=1)
        places = torch.arange(width) - starts.unsqueeze(1)
        ids = torch.full((len(parts), width), self.pad_id)
        filled = (places >= 0) & (places < lengths.unsqueeze(1))
        ids[filled] = _in_a_row([part.ids for part in parts])
        located = None
        if positions is not None:
            located = torch.zeros_like(ids)
            located[filled] = _in_a_row(positions)
        # One padding token stands for a sequence without tokens, as attention to nothing is undefined.
        mask = ((places >= 0) & (places < lengths.clamp(min=1).unsqueeze(1))).long()
        self._require_known(int(ids.max()))
        ids, mask, starts = (tensor.to(self.device) for tensor in (ids, mask, starts))
        if located is None and padded and padding == "left" and misread is None:
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
            else:
                self._require_layers(pooling, reading, len(hidden))
                # Nothing is read of a sequence without tokens.
                spans = [
                    reading.span(len(part.ids), part.masks, part.copies) if part.ids else (0, 0) for part in parts
                ]
                placed = torch.tensor(spans, device=self.device) + starts.unsqueeze(1)
                if misread is not None:
                    placed = misread.spans(reading.place, placed, mask)
                vectors[pooling] = read_vectors(reading, hidden, placed)
        return vectors

    def run(
        self,
        ids: "Tensor",
        mask: "Tensor",
        *,
        positions: "Tensor | None" = None,
        padding: str = "right",
        all_layers: bool = False,
    ) -> Any:
        """Return what the model makes of token ids.

        Args:
            ids: padded, shape (rows, width).
            mask: of their shape, 1 for real tokens; at least one in each row.
            positions: of each token; None for what the model's own code gives these columns.
            padding: the side that is padded.
            all_layers: whether every layer's states are wanted.
        """
        if self.is_unpadded is None:
            self.is_unpadded = self.mask == AUTO and is_faster_unpadded(self.model, self.device)
            if self.is_unpadded:
                make_unpadded(self.model)
        if positions is None and (self.is_unpadded or (self.mask != AUTO and self._takes_positions)):
            # Some code counts them from the mask, which is not of the shape that it expects then.
            positions = self.own_positions(ids, mask)
        told = {} if positions is None else self._told_positions(positions.to(self.device), padding)
        if self.is_unpadded:
            return run_unpadded(self.model, ids, mask, told["position_ids"], all_layers=all_layers)
        if self.mask == AUTO:
            # Without padding no mask is needed, and attention takes its fastest path to the same numbers.
            given = None if bool(mask.all()) else mask
        else:
            require_within_window(self.name, self.model.config, ids.shape[1])
            given = attended(mask, self.mask, self.model.dtype)
        return self.model(
            input_ids=ids, attention_mask=given, output_hidden_states=all_layers, return_dict=True, **told
        )

    def _finished(self, vectors: "Tensor", parts: Sequence[Part], rows: int) -> FloatMatrix:
        """Return vectors behind the mean over the texts of a template and what follows the pooling."""
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
        """How many tokens the model knows; None if it does not say."""
        return getattr(self.model.get_input_embeddings(), "num_embeddings", None)

    def _require_known(self, token: int) -> None:
        known = self.vocabulary
        if known is not None and token >= known:
            raise UserError(
                f"the tokenizer of {self.name} gives token {token}, but the model knows {known}: "
                "put the tokenizer there that it was trained with."
            )

    def _require(self, pooling: str) -> Reading:
        """Return what a pooling's name says."""
        reading = parse_pooling(pooling)
        if reading.head and self.head is None and not self.has_pooler:
            raise NoHeadError(
                f"pooling {pooling} needs a trained dense+tanh head, which {self.name} lacks: "
                f"use --pooling {pooling.replace('+head', '') if '+head' in pooling else 'cls_before_pooler'}."
            )
        return reading

    def _require_layers(self, pooling: str, reading: Reading, there: int) -> None:
        for layer in reading.layers:
            if not -there <= layer < there and reading.needs_all_layers:
                raise UserError(
                    f"pooling {pooling} reads layer {layer}, and {self.name} has {there - 1}: choose one of 0 "
                    f"(the embedding layer's output) to {there - 1}, or of -1 (the last) to -{there}."
                )

    def _behind_head(self, vectors: "Tensor", reading: Reading) -> "Tensor":
        if not reading.head:
            return vectors
        if self.head is None and not hasattr(self.model.pooler, "dense"):
            raise UserError(f"{self.name} has a head for its first token alone: choose a --pooling without +head.")
        head: Any = self.model.pooler if self.head is None else self.head
        vectors = vectors.to(next(head.parameters()).dtype)
        # A model's own pooler takes the first token of what it is given.
        behind: Tensor = head(vectors.unsqueeze(1) if self.head is None else vectors)
        return behind.float()

    @property
    def uncounted(self) -> int | None:
        """The token without a position, from whose number on the others' positions are counted; None for none.

        RoBERTa and its kin, and MPNet, have such a token: their padding.
        """
        embeddings = getattr(self.model, "embeddings", None)
        counts_on = hasattr(embeddings, "create_position_ids_from_inputs_embeds")
        return int(embeddings.padding_idx) if counts_on else None  # type: ignore[union-attr]

    def own_positions(self, ids: "Tensor", mask: "Tensor") -> "Tensor":
        """Return the position that the model's own code gives every token of a row that is not padded.

        This is the one rule for positions: sequences that are padded on the left, or not at all, get them, and
        those of a template without its sentence are derived from them.
        """
        if (uncounted := self.uncounted) is None:
            return (mask.cumsum(1) - 1).clamp(min=0)
        counted = mask * (ids != uncounted)
        return counted.cumsum(1) * counted + uncounted

    @property
    def _takes_positions(self) -> bool:
        return "position_ids" in inspect.signature(self.model.forward).parameters

    def _told_positions(self, positions: "Tensor", padding: str) -> "dict[str, Tensor]":
        """Return the argument that tells the network its tokens' positions."""
        if self._takes_positions:
            return {"position_ids": positions}
        if padding == "left" and getattr(self.model.config, "max_position_embeddings", None) is None:
            # It has no positions but distances between tokens, as BLOOM and MPT.
            return {}
        what = "padding left" if padding == "left" else "subtract"
        raise UserError(
            f"{self.name} takes no positions of tokens, which {what} in a template needs: choose another template."
        )


def _parts_of(sequence: TokenSequence) -> Sequence[Part]:
    return sequence.parts if isinstance(sequence, Rendered) else [Part(cast(tuple[int, ...], sequence), (), ())]


def _in_a_row(rows: Sequence[Sequence[int]]) -> "Tensor":
    """Return the numbers of all rows, one row behind the other."""
    import torch

    return torch.from_numpy(np.fromiter(chain.from_iterable(rows), dtype=np.int64))


class _Gap(NamedTuple):
    """What a sentence adds to its template: tokens, and positions, which are fewer where some take none."""

    tokens: int
    positions: int

    @classmethod
    def of(cls, ids: Sequence[int], alone: Sequence[int], uncounted: int | None) -> "_Gap":
        tokens = max(0, len(ids) - len(alone))
        return cls(tokens, max(0, tokens - ids.count(uncounted) + alone.count(uncounted)))


@dataclass
class Without:
    """The vectors of a template without its sentence, which are subtracted (`Template.subtract`).

    Each is computed once for a length of the sentence, as the positions behind it depend on that; alone, so that
    its last bits do not depend on which lengths came with it, or before.

    Attributes:
        texts: the template's texts without the sentence.
        with_padding: whether attended padding stands in the sentence's place.
        positions: `Template.positions`.
    """

    texts: Sequence[Alone]
    with_padding: bool
    positions: str
    _known: "dict[tuple[str, int, _Gap], Tensor]" = field(default_factory=dict)

    def is_alone(self, part: Part) -> bool:
        """Return whether there is no sentence in the template."""
        return any(part.ids == text.part.ids for text in self.texts)

    def vectors(self, network: Network, pooling: str, reading: Reading, parts: Sequence[Part]) -> "Tensor":
        """Return what is to be subtracted from the vectors of sentences, shape (len(parts), dimensions).

        In `parts`, all texts of the first sentence stand before those of the second.
        """
        import torch

        vectors = []
        for number, part in enumerate(parts):
            text = number % len(self.texts)
            alone = self.texts[text]
            key = pooling, text, _Gap.of(part.ids, alone.part.ids, network.uncounted)
            if key not in self._known:
                self._known[key] = self._computed(network, pooling, reading, alone, key[-1])
            vectors.append(self._known[key])
        return torch.stack(vectors)

    def _computed(self, network: Network, pooling: str, reading: Reading, alone: Alone, gap: _Gap) -> "Tensor":
        import torch

        ids, at = alone.part.ids, alone.gap
        from_zero = self.positions == FROM_ZERO
        row = torch.tensor([ids])
        places = range(len(ids)) if from_zero else network.own_positions(row, torch.ones_like(row))[0].tolist()
        first = at if from_zero or network.uncounted is None else at + network.uncounted + 1
        fill = gap.tokens if self.with_padding else 0
        masks = tuple(place + fill if place >= at else place for place in alone.part.masks)
        part = Part((*ids[:at], *[network.pad_id] * fill, *ids[at:]), masks, ((at, at + fill),))
        shift = gap.tokens if from_zero else gap.positions
        behind = [place + shift for place in places[at:]]
        located = [*places[:at], *range(first, first + fill), *behind]
        positions = None if self.positions == OWN else [located]
        return network.read([part], {pooling: reading}, positions=positions)[pooling][0]


def weight_files(checkpoint: Checkpoint, tail: Sequence[TailModule]) -> list[Path]:
    """Return the files of a network's weights: the checkpoint's, then those of each dense module in order."""
    dense = [module.weight_file(checkpoint.folder) for module in tail if module.kind == "dense"]
    return [*checkpoint.weight_files(), *dense]


def load_network(
    checkpoint: Checkpoint,
    *,
    precision: str,
    device: str,
    pad_id: int,
    tail: Sequence[TailModule],
    trust_remote_code: bool,
    adapter: Checkpoint | None = None,
    attention: str = AUTO,
    mask: str = AUTO,
) -> Network:
    """Load a checkpoint's network for evaluation, without running code that comes with its weights.

    `attention` and `mask` are as in `Use`: which kernel computes attention, and what a token attends to.
    """
    import torch
    from transformers import AutoModel

    def files() -> list[Path]:
        return [*weight_files(checkpoint, tail), *checkpoint.config_files(with_code=trust_remote_code)]

    with checkpoint.reading(files):
        dtype = getattr(torch, PRECISIONS[precision])
        require_memory_for(checkpoint, precision, device)
        require_torch_is_used()
        for file in checkpoint.weight_files():
            require_pickles_are_safe(file)
        config = checkpoint.json("config.json")
        require_named_weights_are_read(config, checkpoint.name)
        if not config.get("model_type") and not checkpoint.own_code():
            # Older versions of Transformers guess it from the name of the folder.
            raise UserError(
                f"{checkpoint.folder / 'config.json'} names no model_type: fetch the checkpoint again, or write "
                'there which architecture it is ("bert").'
            )
        with quiet_transformers(), told(f"load {checkpoint.name}"):
            # Transformers reads safetensors, and .bin files with weights_only=True. The precision is given here
            # and not set afterwards, as some models keep rotary angles and the like in fp32.
            model, info = AutoModel.from_pretrained(
                checkpoint.folder,
                output_loading_info=True,
                trust_remote_code=trust_remote_code,
                torch_dtype=dtype,
                **({} if attention == AUTO else {"attn_implementation": attention}),
            )
        model_type = str(model.config.model_type)
        info = report_of_loading(model, info)
        refuse_unlike(checkpoint.name, model_type, info)
        if not getattr(model.config, "quantization_config", None):
            require_floats(checkpoint.weight_files(), model_type)
        if adapter is not None:
            model = merge_adapter(model, adapter)
        width = getattr(model.config, "hidden_size", None)
        head = _trained_head(checkpoint, width)
        try:
            model = model.to(device).eval()
            head = None if head is None else head.to(device=device, dtype=dtype).eval()
        except RuntimeError as error:
            if not is_of_memory(error):
                raise
            raise UserError(
                f"{checkpoint.name} does not fit in the memory of {device}: use --precision bf16 or --device cpu."
            ) from error
        network = Network(
            name=checkpoint.name,
            model=model,
            head=head,
            has_pooler=not info["missing_keys"] and getattr(model, "pooler", None) is not None,
            tail=load_tail(checkpoint, tail, width=width, device=device),
            pad_id=pad_id,
            device=device,
            is_unpadded=None if attention == AUTO else False,
            mask=mask,
        )
        if mask != AUTO:
            prove_mask(checkpoint.name, mask, network.run, network.vocabulary, device)
        return network


def _trained_head(checkpoint: Checkpoint, width: int | None) -> "nn.Module | None":
    """Return the head that SimCSE-style training leaves in a checkpoint, if it did."""
    from torch import nn

    tensors: dict[str, Tensor] = {}
    for path in checkpoint.weight_files():
        # The names are read first: no need to read the weights to see that there is no head.
        if names := {_HEAD_WEIGHT, _HEAD_BIAS} & tensor_names(path):
            content = read_weights(path)
            tensors |= {name: content[name] for name in names if name in content}
    if not tensors:
        return None
    shapes = [tuple(tensors[name].shape) if name in tensors else () for name in (_HEAD_WEIGHT, _HEAD_BIAS)]
    if len(shapes[0]) != 2 or shapes[1] != shapes[0][:1] or shapes[0][1] != (width or shapes[0][1]):
        raise UserError(
            f"{checkpoint.name} holds {' and '.join(sorted(tensors))}, which is no dense layer on its vectors: "
            "fetch the checkpoint again."
        )
    return nn.Sequential(_dense(tensors[_HEAD_WEIGHT], tensors[_HEAD_BIAS]), nn.Tanh())


def _dense(weight: "Tensor", bias: "Tensor | None") -> "nn.Linear":
    from torch import nn

    dense = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    dense.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
    return dense


def load_tail(
    checkpoint: Checkpoint, modules: Sequence[TailModule], *, width: int | None, device: str
) -> "Callable[[Tensor], Tensor]":
    """Return one function that applies the modules in order to vectors of shape (rows, dimensions).

    Dense layers compute in float32 whatever the precision of the network: they see one vector a sentence.
    """
    from torch import nn
    from torch.nn import functional

    steps: list[Callable[[Tensor], Tensor]] = []
    for module in modules:
        if module.kind == "normalize":
            steps.append(lambda vectors: functional.normalize(vectors, dim=-1))
            continue
        file = module.weight_file(checkpoint.folder)
        weights = {name.removeprefix("linear."): tensor for name, tensor in read_weights(file).items()}
        weight, bias = weights.get("weight"), weights.get("bias")
        if weight is None or weight.ndim != 2 or not weights.keys() <= {"weight", "bias"}:
            raise UserError(f"{file} does not hold the weights of one dense layer: fetch it again.")
        if not all(tensor.is_floating_point() for tensor in weights.values()):
            raise UserError(
                f"{file} holds whole numbers, where weights are floating-point numbers: fetch it again."
            )
        outputs, inputs = weight.shape
        config = checkpoint.json(module.folder, "config.json")
        held = {"in_features": inputs, "out_features": outputs, "bias": bias is not None}
        for name, value in held.items():
            if config.get(name, value) != value:
                raise UserError(
                    f"{file} holds a dense layer with {name} {value!r}, but its config.json says "
                    f"{config[name]!r}: fetch the checkpoint again."
                )
        if inputs != (width or inputs) or (bias is not None and tuple(bias.shape) != (outputs,)):
            raise UserError(
                f"{file} holds a dense layer from {inputs} to {outputs} dimensions, which does not fit what comes "
                f"before it ({width} dimensions) or its own bias: fetch the checkpoint again."
            )
        dense = _dense(weight.float(), None if bias is None else bias.float())
        steps += [dense.to(device).eval(), getattr(nn, module.activation)()]
        width = outputs

    def apply(vectors: "Tensor") -> "Tensor":
        for step in steps:
            vectors = step(vectors)
        return vectors

    return apply
