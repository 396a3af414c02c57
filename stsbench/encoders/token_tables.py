"""Static embeddings: a tokenizer and a table with a vector for each token, whose mean is a sentence's vector.

sentence-transformers writes them (`StaticEmbedding`), and so does model2vec. Each reads the other's folders, but
not alike, and each way is a pooling here:

- `avg`, sentence-transformers': the mean over all tokens; cut as `tokenizer.json` says, mostly not at all; behind
  it the modules of `modules.json`.
- `avg_known`, model2vec's: the mean over all tokens but the unknown one; at most `max_length` tokens (512 where
  the configuration names no other number), of no more characters than so many tokens of the median length have;
  behind it a normalisation if the configuration says `normalize`.

A folder is read as the library that wrote it does. There is no network, so neither torch nor Transformers is
needed here but for a dense layer behind the mean, and for a table that torch pickled.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.machine import require_memory
from stsbench.encoders.checkpoint import Checkpoint, JsonFile
from stsbench.encoders.libraries import nothing_printed, told
from stsbench.encoders.modules import load_tail
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.prompts import LIBRARY_CONFIG, own_prompt
from stsbench.encoders.protocol import (
    FloatMatrix,
    Identity,
    Tokenized,
    TokenSequence,
    as_float32,
    require_own_pooling,
)
from stsbench.encoders.sentence_transformers import read_tail
from stsbench.encoders.tokenizer import told_tokenizing
from stsbench.encoders.transformer import TransformerSettings
from stsbench.encoders.use import Use, UseOptions
from stsbench.encoders.weights import described, read_arrays

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ALL, KNOWN = "avg", "avg_known"

TABLE_POOLINGS = (ALL, KNOWN)
"""The poolings of static embeddings."""

_KINDS = {ALL: "static-embedding", KNOWN: "model2vec"}
"""What an identity calls each way of reading them: beside the pooling, they differ in where a text is cut."""

_LIBRARY_WEIGHT, _EMBEDDINGS, _WEIGHTS, _MAPPING = "embedding.weight", "embeddings", "weights", "mapping"
_USUAL_LENGTH = 512
_ROUNDED = {"F16": "float16", "BF16": "bfloat16"}
_TOKENIZED_AT_ONCE = 4096


@dataclass
class TokenTable:
    """The files of static embeddings, each read when it is needed.

    Attributes:
        checkpoint: which they are of.
        folder: where the tokenizer and the table are, relative to the checkpoint.
    """

    checkpoint: Checkpoint
    folder: str = ""

    @property
    def file(self) -> Path:
        """The file that holds the table; a pickled one only where there is no other, as for the library."""
        names = ("model.safetensors", "pytorch_model.bin")
        files = [self.checkpoint.folder / self.folder / name for name in names]
        return next((file for file in files if file.is_file()), files[0])

    @property
    def tokenizer_file(self) -> Path:
        """The file that holds the tokenizer."""
        return self.checkpoint.folder / self.folder / "tokenizer.json"

    @property
    def is_of_model2vec(self) -> bool:
        """Whether model2vec wrote it: the table has its name, and its configuration lies beside it."""
        at_top = not Path(self.folder).parts and (self.checkpoint.folder / "config.json").is_file()
        return at_top and _LIBRARY_WEIGHT not in described(self.file)

    @cached_property
    def truncation(self) -> dict[str, Any]:
        """Where the tokenizer's file cuts a text: `max_length` and `direction`; empty for nowhere."""
        with self.checkpoint.reading(lambda: [self.tokenizer_file]):
            content = self.checkpoint.json(self.folder, self.tokenizer_file.name)
        truncation = JsonFile(content.path, content.value("truncation", dict) or {})
        truncation.value("max_length", int, 0)
        return truncation

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """The tokenizer, which neither cuts nor pads."""
        from tokenizers import Tokenizer

        attempt = told(f"load the tokenizer of {self.checkpoint.name}")
        with self.checkpoint.reading(lambda: [self.tokenizer_file]), nothing_printed(), attempt:
            tokenizer = Tokenizer.from_file(str(self.tokenizer_file))
            tokenizer.no_truncation()
            tokenizer.no_padding()
        if not tokenizer.get_vocab_size():
            raise UserError(f"{self.tokenizer_file} holds no tokens: fetch the checkpoint again.")
        return tokenizer

    @cached_property
    def token_length(self) -> int:
        """The median length of a token in characters, its marks included."""
        return int(np.median([len(token) for token in self.tokenizer.get_vocab()]))

    @cached_property
    def unknown(self) -> int | None:
        """The token that stands for what the tokenizer does not know; None if there is none."""
        model: Any = self.tokenizer.model
        if hasattr(model, "unk_token"):
            return None if model.unk_token is None else self.tokenizer.token_to_id(model.unk_token)
        unknown: int | None = json.loads(self.tokenizer.to_str())["model"].get("unk_id")  # of a Unigram model
        return unknown

    def ids(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """Return all tokens of each text."""
        ids: list[tuple[int, ...]] = []
        with told_tokenizing(self.checkpoint.name, texts):
            # What the tokenizer says of a text is much larger than the text.
            for start in range(0, len(texts), _TOKENIZED_AT_ONCE):
                block = list(texts[start : start + _TOKENIZED_AT_ONCE])
                encodings = self.tokenizer.encode_batch_fast(block, add_special_tokens=False)
                ids += [tuple(encoding.ids) for encoding in encodings]
        return ids

    def vectors(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the vectors of some tokens, shape (len(tokens), dimensions)."""
        rows = self._tensors[_MAPPING][tokens] if _MAPPING in self._tensors else tokens
        vectors: NDArray[np.float64] = self._tensors[_EMBEDDINGS][rows].astype(np.float64)
        return vectors * self._tensors[_WEIGHTS][tokens][:, None] if _WEIGHTS in self._tensors else vectors

    def prepare(self) -> int:
        """Read the table and return how many dimensions its vectors have."""
        return int(self._tensors[_EMBEDDINGS].shape[1])

    @cached_property
    def _tensors(self) -> dict[str, NDArray[Any]]:
        """The table by model2vec's name, with the tokens' weights and rows where they are given apart."""
        file, name = self.file, self.checkpoint.name
        if not file.is_file():
            raise UserError(f"{file} is not there, which holds the token vectors of {name}: fetch it again.")
        size = file.stat().st_size
        require_memory(size, f"the token vectors of {name}", "use a smaller model or a machine with more memory")
        with self.checkpoint.reading(lambda: [file]):
            held = set(described(file))
            arrays = read_arrays(file, held)
        of_library = _LIBRARY_WEIGHT in held
        places = {_LIBRARY_WEIGHT} if of_library else {_EMBEDDINGS, _WEIGHTS, _MAPPING}
        if not {_LIBRARY_WEIGHT, _EMBEDDINGS} & held:
            raise UserError(f"{file} holds no table of token vectors ({_LIBRARY_WEIGHT} or {_EMBEDDINGS}).")
        if unknown := sorted(held - places):
            raise UserError(
                f"{file} holds {unknown[0]}, for which static embeddings have no place: it would be left out in "
                "silence. Fetch the checkpoint again."
            )
        if of_library:
            arrays = {_EMBEDDINGS: arrays[_LIBRARY_WEIGHT]}
        if mistake := _mistake_in(arrays):
            raise UserError(f"{file} holds {mistake}: fetch the checkpoint again.")
        self._require_tokens(arrays)
        return arrays

    def _require_tokens(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Refuse a table that is not that of the tokenizer."""
        tokens = self.tokenizer.get_vocab().values()
        of_tokens = [arrays[name] for name in (_MAPPING, _WEIGHTS) if name in arrays]
        if _MAPPING not in arrays:
            of_tokens.append(arrays[_EMBEDDINGS])
        there, highest = min(map(len, of_tokens)), max(tokens)
        # The library leaves unused rows in peace; model2vec refuses another tokenizer by their number.
        too_few = self.is_of_model2vec and _MAPPING not in arrays and len(tokens) < there
        if highest >= there or too_few:
            raise UserError(
                f"{self.tokenizer_file} has {len(tokens)} tokens, up to number {highest}, but {self.file.name} "
                f"holds vectors for {there}: put the tokenizer there that belongs to them."
            )


def _mistake_in(arrays: dict[str, NDArray[Any]]) -> str:
    """Return what is wrong with a table, or with its tokens' weights and rows; empty for nothing."""
    table = arrays[_EMBEDDINGS]
    if table.ndim != 2 or not table.size:
        return f"a table of token vectors of shape {table.shape}, where a vector for each token is expected"
    if table.dtype.kind != "f" and table.dtype != np.int8:
        return f"token vectors in {table.dtype}, where floating-point numbers or int8 are expected"
    for name, kinds in ((_WEIGHTS, "f"), (_MAPPING, "iu")):
        if name in arrays and (arrays[name].ndim != 1 or arrays[name].dtype.kind not in kinds):
            array = arrays[name]
            return f"{name} of shape {array.shape} in {array.dtype}, where one number for each token is expected"
    rows = arrays.get(_MAPPING, np.zeros(1, dtype=np.int64))
    if not rows.size or rows.min() < 0 or rows.max() >= len(table):
        return f"a {_MAPPING} of tokens to rows that its table of {len(table)} does not have"
    return ""


def find_table(checkpoint: Checkpoint) -> TokenTable | None:
    """Return the table of token vectors that a checkpoint consists of; None if it is something else."""
    if modules := checkpoint.modules():
        first = modules[0]
        return TokenTable(checkpoint, first.folder) if first.kind == "StaticEmbedding" else None
    model_type, table = checkpoint.json("config.json").get("model_type"), TokenTable(checkpoint)
    is_table = model_type == "model2vec" or (model_type is None and _EMBEDDINGS in described(table.file))
    return table if is_table else None


def load_table(table: TokenTable, asked: Use) -> "TokenTableEncoder | None":
    """Return the encoder of static embeddings; None where they are followed by what only their library can do."""
    checkpoint, name = table.checkpoint, table.checkpoint.name
    if not table.tokenizer_file.is_file():
        raise UserError(f"{table.tokenizer_file} is not there: fetch the checkpoint again.")
    pooling = (KNOWN if table.is_of_model2vec else ALL) if asked.pooling == AUTO else asked.pooling
    settings, notes = _as_model2vec(table, asked) if pooling == KNOWN else _as_library(table, asked)
    if settings is None:
        return None
    kind = next(
        (kind for tensor, (kind, _) in described(table.file).items() if tensor not in {_WEIGHTS, _MAPPING}), ""
    )
    if kind in _ROUNDED:
        notes += (
            f"{name} holds its token vectors in {_ROUNDED[kind]}: they are averaged in fp32, and the mean is not "
            "rounded again, as its library may do.",
        )
    if kind == "I8":
        notes += (f"{name} holds its token vectors in int8: these whole numbers are averaged in fp32.",)
    notes += checkpoint.own_notes()
    settings = replace(settings, use=replace(settings.use, pooling=pooling))
    return TokenTableEncoder(table, settings, asked, notes)


def _as_library(table: TokenTable, asked: Use) -> tuple[TransformerSettings | None, tuple[str, ...]]:
    """Return how sentence-transformers uses a table; None where something in it is not read natively."""
    checkpoint = table.checkpoint
    tail = read_tail(checkpoint, checkpoint.modules()[1:])
    notes: tuple[str, ...] = ()
    if tail is None or checkpoint.json(LIBRARY_CONFIG).get("truncate_dim"):
        if asked.pooling == AUTO:
            return None, ()
        notes += (f"{checkpoint.name} has modules that are not read natively: --pooling {ALL} leaves them out.",)
    if unnamed := checkpoint.modules() and checkpoint.unnamed_modules():
        notes += (
            f"{checkpoint.name} holds {', '.join(unnamed)}, which its modules.json does not name: left out.",
        )
    length = table.truncation.get("max_length") if asked.max_length is None else asked.max_length
    prompt = own_prompt(checkpoint) if asked.prompt is None else asked.prompt
    settings = TransformerSettings(_used(asked, length, prompt)).with_modules(tail or ())
    if table.is_of_model2vec:
        notes += (f"{checkpoint.name} is model2vec's, and read as sentence-transformers does (--pooling {ALL}).",)
    return settings, notes


def _as_model2vec(table: TokenTable, asked: Use) -> tuple[TransformerSettings, tuple[str, ...]]:
    """Return how model2vec uses a table."""
    checkpoint = table.checkpoint
    said = checkpoint.json("config.json" if table.is_of_model2vec else LIBRARY_CONFIG)
    own_length = said.value("max_length", int, 1) if "max_length" in said else _USUAL_LENGTH
    length = own_length if asked.max_length is None else asked.max_length
    settings = TransformerSettings(
        _used(asked, length, asked.prompt or ""), normalizes=bool(said.value("normalize", bool))
    )
    name, modules = checkpoint.name, checkpoint.modules()
    if not table.is_of_model2vec:
        notes = [f"{name} is sentence-transformers', and read as model2vec does (--pooling {KNOWN})."]
    else:
        also = f"; sentence-transformers averages them too (--pooling {ALL})" if modules else ""
        notes = [f"{name} is read as model2vec does, without unknown tokens{also}."]
    own = {"Normalize"} if table.is_of_model2vec else set()
    if left_out := [module.kind for module in modules[1:] if module.kind not in own]:
        notes.append(f"{name} has modules that model2vec does not read, {', '.join(left_out)}: left out.")
    return settings, tuple(notes)


def _used(asked: Use, max_length: int | None, prompt: str) -> Use:
    return replace(
        asked, max_length=max_length, prompt=prompt, device="cpu", template=None, trust_remote_code=False
    )


@dataclass
class TokenTableEncoder:
    """Static embeddings in use. A sentence without tokens has the mean zero, and what the modules make of it.

    Attributes:
        table: the files.
        settings: how they are used, and what follows the mean.
        asked: what the person chose of that.
        notes: what the person should know.
    """

    table: TokenTable
    settings: TransformerSettings
    asked: Use
    notes: tuple[str, ...] = ()
    token_budget: int = 65_536

    @property
    def checkpoint(self) -> Checkpoint:
        """Whose files these are."""
        return self.table.checkpoint

    @property
    def use(self) -> Use:
        """How it is used."""
        return self.settings.use

    @cached_property
    def identity(self) -> Identity:
        """What the vectors depend on; hashes the files."""
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
        """How large the files of its weights are."""
        return sum(path.stat().st_size for path in self._weight_files())

    def _weight_files(self) -> list[Path]:
        dense = [module for module in self.settings.tail if module.kind == "dense"]
        return [self.table.file, *(module.weight_file(self.table.checkpoint.folder) for module in dense)]

    def prepare(self, *, weights: bool) -> None:
        """Load the tokenizer, and with `weights` the table and what follows."""
        _ = self.table.tokenizer
        if weights:
            _ = self._tail

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Return the tokens that are read of each text, the unknown among them, and how many it has."""
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
            sequences = [self._cut(ids, use.max_length) for ids in sequences]
        truncated = [ids != all_ids for ids, all_ids in zip(sequences, whole, strict=True)]
        # A prompt can run into the first word's token, so it cannot be subtracted.
        lengths = [len(ids) for ids in (self.table.ids(texts) if use.prompt else whole)]
        return Tokenized(list(sequences), lengths, truncated)

    def _cut(self, ids: tuple[int, ...], limit: int) -> tuple[int, ...]:
        keeps_end = self.use.pooling == ALL and self.table.truncation.get("direction") == "Left"
        return ids[max(0, len(ids) - limit) :] if keeps_end else ids[:limit]

    def forward(self, sequences: Sequence[TokenSequence], poolings: Sequence[str]) -> dict[str, FloatMatrix]:
        """Return the vectors; refuse them if a file is not what it was when it was hashed."""
        require_own_pooling(self.identity, poolings)
        vectors = self._tail(self._means(sequences))
        self.table.checkpoint.hashed.require_unchanged()
        return dict.fromkeys(poolings, vectors)

    def _means(self, sequences: Sequence[TokenSequence]) -> FloatMatrix:
        """Return the mean vector of each sequence, shape (len(sequences), dimensions).

        They are summed in float64, so that a vector does not depend on the order of the tokens.
        """
        from scipy.sparse import csr_array

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

    def used(self, **changes: Unpack[UseOptions]) -> "TokenTableEncoder":
        """Return the encoder used otherwise (pooling, maximum length, prompt); both share what was read."""
        other = load_table(self.table, replace(self.asked, **({"pooling": self.use.pooling} | changes)))
        assert other is not None, "only of itself is it left to its library"
        return other

    @cached_property
    def _tail(self) -> Any:
        """What follows the mean, as a function of the vectors."""
        width, tail, checkpoint = self.table.prepare(), self.settings.tail, self.table.checkpoint
        if not tail:
            return lambda vectors: vectors
        import torch

        with checkpoint.reading(self._weight_files):
            apply = load_tail(checkpoint, tail, width=width, device="cpu")

        def behind(vectors: FloatMatrix) -> FloatMatrix:
            with torch.inference_mode():
                behind: FloatMatrix = apply(torch.from_numpy(vectors)).numpy()
            return behind

        return behind
