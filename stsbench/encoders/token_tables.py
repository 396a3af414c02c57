"""Static embeddings: a tokenizer and one vector per token; a sentence has the mean of its tokens' vectors.

sentence-transformers (`StaticEmbedding`) and model2vec write such folders. A folder is read as its own library
reads it; the other's way is a pooling:

- `avg` (sentence-transformers): the mean over all tokens, truncated as `tokenizer.json` says, then the modules of
  `modules.json`.
- `avg_known` (model2vec): the mean over all but the unknown token, of at most `max_length` tokens (512 by default)
  and as many characters as that many tokens of median length have; then scaled if the configuration says
  `normalize`.

The libraries sum in float32, so their vectors depend on the order of the tokens in the last bits. Here the mean is
taken in float64. Neither torch nor Transformers is imported, except for a dense layer or a pickled table.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stsbench.base.errors import UserError
from stsbench.base.machine import require_memory
from stsbench.encoders.checkpoint import Checkpoint, JsonFile
from stsbench.encoders.libraries import nothing_printed, told
from stsbench.encoders.modules import load_tail
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.prompts import LIBRARY_CONFIG, own_prompt
from stsbench.encoders.protocol import FloatMatrix, Identity, OwnPooling, Tokenized, TokenSequence, as_float32
from stsbench.encoders.sentence_transformers import read_tail
from stsbench.encoders.tokenizer import told_tokenizing
from stsbench.encoders.transformer import TransformerSettings
from stsbench.encoders.use import Use
from stsbench.encoders.weights import described, read_arrays

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ALL, KNOWN = "avg", "avg_known"

TABLE_POOLINGS = (ALL, KNOWN)
"""The poolings of static embeddings."""

_KINDS = {ALL: "static-embedding", KNOWN: "model2vec"}

_LIBRARY_WEIGHT, _EMBEDDINGS, _WEIGHTS, _MAPPING = "embedding.weight", "embeddings", "weights", "mapping"
_DEFAULT_LENGTH = 512
_TOKENIZED_AT_ONCE = 4096  # encodings of the tokenizer need much more memory than the text


@dataclass
class TokenTable:
    """The files of static embeddings, read when needed.

    Attributes:
        checkpoint: that they belong to.
        folder: of tokenizer and table, relative to the checkpoint.
    """

    checkpoint: Checkpoint
    folder: str = ""

    @property
    def file(self) -> Path:
        """The file of the table; a pickled one only if there is no other."""
        names = ("model.safetensors", "pytorch_model.bin")
        files = [self.checkpoint.folder / self.folder / name for name in names]
        return next((file for file in files if file.is_file()), files[0])

    @property
    def tokenizer_file(self) -> Path:
        """The file of the tokenizer."""
        return self.checkpoint.folder / self.folder / "tokenizer.json"

    @property
    def is_of_model2vec(self) -> bool:
        """Whether model2vec wrote it."""
        at_top = not Path(self.folder).parts and (self.checkpoint.folder / "config.json").is_file()
        return at_top and _LIBRARY_WEIGHT not in described(self.file)

    @cached_property
    def truncation(self) -> dict[str, Any]:
        """How the tokenizer's file truncates texts: `max_length` and `direction`; empty if it does not."""
        with self.checkpoint.reading(lambda: [self.tokenizer_file]):
            content = self.checkpoint.json(self.folder, self.tokenizer_file.name)
        truncation = JsonFile(content.path, content.value("truncation", dict) or {})
        truncation.value("max_length", int, 0)
        return truncation

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The tokenizer, without truncation and padding."""
        from tokenizers import Tokenizer

        attempt = told(f"load the tokenizer of {self.checkpoint.name}")
        with self.checkpoint.reading(lambda: [self.tokenizer_file]), nothing_printed(), attempt:
            tokenizer = Tokenizer.from_file(str(self.tokenizer_file))
            tokenizer.no_truncation()
            tokenizer.no_padding()
        if not tokenizer.get_vocab_size():
            raise UserError(f"{self.tokenizer_file} has no tokens: download the checkpoint again.")
        return tokenizer

    @cached_property
    def token_length(self) -> int:
        """The median length of a token in characters, as model2vec computes it."""
        return int(np.median([len(token) for token in self.tokenizer.get_vocab()]))

    @cached_property
    def unknown(self) -> int | None:
        """The unknown token, or None."""
        model: Any = self.tokenizer.model
        if hasattr(model, "unk_token"):
            return None if model.unk_token is None else self.tokenizer.token_to_id(model.unk_token)
        unknown: int | None = json.loads(self.tokenizer.to_str())["model"].get("unk_id")  # of a Unigram model
        return unknown

    def ids(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """Returns all tokens of each text."""
        ids: list[tuple[int, ...]] = []
        with told_tokenizing(self.checkpoint.name, texts):
            for start in range(0, len(texts), _TOKENIZED_AT_ONCE):
                block = list(texts[start : start + _TOKENIZED_AT_ONCE])
                encodings = self.tokenizer.encode_batch_fast(block, add_special_tokens=False)
                ids += [tuple(encoding.ids) for encoding in encodings]
        return ids

    def vectors(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the vectors of some tokens, shape (len(tokens), dimensions)."""
        rows = self.tensors[_MAPPING][tokens] if _MAPPING in self.tensors else tokens
        vectors: NDArray[np.float64] = self.tensors[_EMBEDDINGS][rows].astype(np.float64)
        return vectors * self.tensors[_WEIGHTS][tokens][:, None] if _WEIGHTS in self.tensors else vectors

    @cached_property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The table, and model2vec's weights and rows of tokens if they are separate, by model2vec's names."""
        file, name = self.file, self.checkpoint.name
        if not file.is_file():
            raise UserError(f"{file}, the token vectors of {name}, is missing: download it again.")
        size = file.stat().st_size
        require_memory(size, f"the token vectors of {name}", "use a smaller model or a machine with more memory")
        with self.checkpoint.reading(lambda: [file]):
            arrays = read_arrays(file)
        known = {_LIBRARY_WEIGHT} if _LIBRARY_WEIGHT in arrays else {_EMBEDDINGS, _WEIGHTS, _MAPPING}
        if not arrays.keys() <= known or not arrays.keys() & {_LIBRARY_WEIGHT, _EMBEDDINGS}:
            raise UserError(
                f"{file} has {', '.join(sorted(arrays))}, expected {_LIBRARY_WEIGHT} or {_EMBEDDINGS}: "
                "download the checkpoint again."
            )
        if _LIBRARY_WEIGHT in arrays:
            arrays = {_EMBEDDINGS: arrays[_LIBRARY_WEIGHT]}
        self._require_table(arrays)
        return arrays

    def _require_table(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Checks that there is one vector of numbers per token of the tokenizer."""
        table, tokens = arrays[_EMBEDDINGS], self.tokenizer.get_vocab().values()
        is_table = table.ndim == 2 and table.size and (table.dtype.kind == "f" or table.dtype == np.int8)
        of_tokens = [arrays[name] for name in (_MAPPING, _WEIGHTS) if name in arrays]
        rows = arrays.get(_MAPPING, np.zeros(1, dtype=np.int64))
        if (
            not is_table
            or any(array.ndim != 1 for array in of_tokens)
            or rows.dtype.kind not in "iu"
            or arrays.get(_WEIGHTS, np.zeros(0)).dtype.kind != "f"
            or not rows.size
            or not 0 <= rows.min() <= rows.max() < len(table)
        ):
            shapes = ", ".join(f"{name} of shape {array.shape} ({array.dtype})" for name, array in arrays.items())
            raise UserError(
                f"{self.file} is not a table of token vectors: {shapes}. Download the checkpoint again."
            )
        if _MAPPING not in arrays:
            of_tokens.append(table)
        vectors = min(map(len, of_tokens))
        # sentence-transformers ignores unused rows; model2vec takes them for another tokenizer's.
        too_few = self.is_of_model2vec and _MAPPING not in arrays and len(tokens) < vectors
        if max(tokens) >= vectors or too_few:
            raise UserError(
                f"{self.tokenizer_file} has {len(tokens)} tokens, the last is {max(tokens)}, but {self.file.name} "
                f"has vectors for {vectors}: use the tokenizer that belongs to them."
            )


def find_table(checkpoint: Checkpoint) -> TokenTable | None:
    """Returns the table that a checkpoint consists of; None if it is another kind of model."""
    if modules := checkpoint.modules():
        first = modules[0]
        return TokenTable(checkpoint, first.folder) if first.kind == "StaticEmbedding" else None
    model_type, table = checkpoint.json("config.json").get("model_type"), TokenTable(checkpoint)
    is_table = model_type == "model2vec" or (model_type is None and _EMBEDDINGS in described(table.file))
    return table if is_table else None


def load_table(table: TokenTable, asked: Use) -> "TokenTableEncoder | None":
    """Returns the encoder of static embeddings; None if modules follow that only their library can compute."""
    if not table.tokenizer_file.is_file():
        raise UserError(f"{table.tokenizer_file} is missing: download the checkpoint again.")
    pooling = (KNOWN if table.is_of_model2vec else ALL) if asked.pooling == AUTO else asked.pooling
    settings, notes = _as_model2vec(table, asked) if pooling == KNOWN else _as_library(table, asked)
    if settings is None:
        return None
    notes += table.checkpoint.own_notes()
    settings = replace(settings, use=replace(settings.use, pooling=pooling))
    return TokenTableEncoder(table, settings, asked, notes)


def _as_library(table: TokenTable, asked: Use) -> tuple[TransformerSettings | None, tuple[str, ...]]:
    """Returns how sentence-transformers uses a table; None if something in it is not read natively."""
    checkpoint = table.checkpoint
    tail = read_tail(checkpoint, checkpoint.modules()[1:])
    notes: tuple[str, ...] = ()
    if tail is None or checkpoint.json(LIBRARY_CONFIG).get("truncate_dim"):
        if asked.pooling == AUTO:
            return None, ()
        notes += (f"{checkpoint.name} has modules that are not read natively; --pooling {ALL} skips them.",)
    if unnamed := checkpoint.modules() and checkpoint.unnamed_modules():
        notes += (f"{checkpoint.name} has {', '.join(unnamed)}, which is not in its modules.json: skipped.",)
    length = table.truncation.get("max_length") if asked.max_length is None else asked.max_length
    prompt = own_prompt(checkpoint) if asked.prompt is None else asked.prompt
    if table.is_of_model2vec:
        notes += (f"{checkpoint.name} is read as sentence-transformers does (--pooling {ALL}), not model2vec.",)
    return TransformerSettings(_used(asked, length, prompt)).with_modules(tail or ()), notes


def _as_model2vec(table: TokenTable, asked: Use) -> tuple[TransformerSettings, tuple[str, ...]]:
    """Returns how model2vec uses a table."""
    checkpoint, name = table.checkpoint, table.checkpoint.name
    config = checkpoint.json("config.json" if table.is_of_model2vec else LIBRARY_CONFIG)
    own_length = config.value("max_length", int, 1) if "max_length" in config else _DEFAULT_LENGTH
    length = own_length if asked.max_length is None else asked.max_length
    settings = TransformerSettings(
        _used(asked, length, asked.prompt or ""), normalizes=bool(config.get("normalize"))
    )
    other = "" if table.is_of_model2vec else ", not sentence-transformers"
    notes = [f"{name} is read as model2vec does (--pooling {KNOWN}), without unknown tokens{other}."]
    own = {"Normalize"} if table.is_of_model2vec else set()
    if skipped := [module.kind for module in checkpoint.modules()[1:] if module.kind not in own]:
        notes.append(f"{name} has modules that model2vec does not read, {', '.join(skipped)}: skipped.")
    return settings, tuple(notes)


def _used(asked: Use, max_length: int | None, prompt: str) -> Use:
    return replace(
        asked, max_length=max_length, prompt=prompt, device="cpu", template=None, trust_remote_code=False
    )


@dataclass
class TokenTableEncoder(OwnPooling):
    """Static embeddings as an encoder. A sentence without tokens has the zero vector before further modules.

    Attributes:
        table: the files.
        settings: how they are used, and what follows the mean.
        asked: the user's choices.
        notes: for the user.
    """

    table: TokenTable
    settings: TransformerSettings
    asked: Use
    notes: tuple[str, ...] = ()

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint of the files."""
        return self.table.checkpoint

    @property
    def use(self) -> Use:
        """How it is used."""
        return self.settings.use

    @cached_property
    def identity(self) -> Identity:  # type: ignore[override]
        checkpoint, tail = self.table.checkpoint, self.settings.tail
        return Identity(
            name=checkpoint.name,
            kind=_KINDS[self.use.pooling],
            use=replace(self.use, revision=checkpoint.revision),
            weights_sha256=checkpoint.sha256(self._weight_files()),
            tokenizer_sha256=checkpoint.sha256([self.table.tokenizer_file]),
            config_sha256=checkpoint.sha256(checkpoint.config_files(with_code=False)),
            modules=tuple(module.label for module in tail),
            normalizes=self.settings.normalizes,
        )

    @property
    def weight_bytes(self) -> int:
        """The size of its weight files."""
        return sum(path.stat().st_size for path in self._weight_files())

    def _weight_files(self) -> list[Path]:
        dense = [module for module in self.settings.tail if module.kind == "dense"]
        return [self.table.file, *(module.weight_file(self.table.checkpoint.folder) for module in dense)]

    def prepare(self, *, weights: bool) -> None:
        _ = self.table.tokenizer
        if weights:
            _ = self._tail

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Returns the tokens read of each text, unknown ones included, and its number of tokens."""
        use = self.use
        read = [f"{use.prompt}{text}" for text in texts]
        whole = self.table.ids(read)
        sequences = list(whole)
        if use.max_length is not None:
            if use.pooling == KNOWN:
                most = use.max_length * self.table.token_length
                longer = [row for row, text in enumerate(read) if len(text) > most]
                for row, ids in zip(longer, self.table.ids([read[row][:most] for row in longer]), strict=True):
                    sequences[row] = ids
            sequences = [self._truncated(ids, use.max_length) for ids in sequences]
        truncated = [ids != all_ids for ids, all_ids in zip(sequences, whole, strict=True)]
        # A prompt can merge with the first word's token, so its length cannot be subtracted.
        lengths = [len(ids) for ids in (self.table.ids(texts) if use.prompt else whole)]
        return Tokenized(list(sequences), lengths, truncated)

    def _truncated(self, ids: tuple[int, ...], limit: int) -> tuple[int, ...]:
        keeps_end = self.use.pooling == ALL and self.table.truncation.get("direction") == "Left"
        return ids[max(0, len(ids) - limit) :] if keeps_end else ids[:limit]

    def vectors(self, sequences: Sequence[TokenSequence]) -> FloatMatrix:
        vectors: FloatMatrix = self._tail(self._means(sequences))
        self.table.checkpoint.hashed.require_unchanged()
        return vectors

    def _means(self, sequences: Sequence[TokenSequence]) -> FloatMatrix:
        """Returns the mean vector of each sequence, summed in float64."""
        ids = np.fromiter(chain.from_iterable(sequences), dtype=np.int64)
        rows = np.repeat(np.arange(len(sequences)), [len(sequence) for sequence in sequences])
        if self.use.pooling == KNOWN and self.table.unknown is not None:
            kept = ids != self.table.unknown
            ids, rows = ids[kept], rows[kept]
        counts = np.bincount(rows, minlength=len(sequences))
        tokens, columns = np.unique(ids, return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(counts)])
        occurring = csr_array((np.ones(len(ids)), columns, starts), shape=(len(sequences), len(tokens)))
        sums = occurring @ self.table.vectors(tokens)
        return as_float32(sums / np.maximum(counts, 1)[:, None], self.table.checkpoint.name)

    def used(self, **changes: Any) -> "TokenTableEncoder":
        """Returns the encoder used differently (pooling, maximum length, prompt), with the same files."""
        other = load_table(self.table, replace(self.asked, **({"pooling": self.use.pooling} | changes)))
        assert other is not None, "it has been read natively"
        return other

    @cached_property
    def _tail(self) -> Any:
        """What follows the mean, as a function of the vectors."""
        width, tail = int(self.table.tensors[_EMBEDDINGS].shape[1]), self.settings.tail
        if not tail:
            return lambda vectors: vectors
        import torch

        with self.checkpoint.reading(self._weight_files):
            apply = load_tail(self.checkpoint, tail, width=width, device="cpu")

        def behind(vectors: FloatMatrix) -> FloatMatrix:
            with torch.inference_mode():
                result: FloatMatrix = apply(torch.from_numpy(vectors)).numpy()
            return result

        return behind
