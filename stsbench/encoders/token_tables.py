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
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stsbench.base.errors import UserError
from stsbench.base.machine import require_memory
from stsbench.encoders.checkpoint import AGAIN, Checkpoint
from stsbench.encoders.libraries import nothing_printed, reporting_failures
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

_LIBRARY_WEIGHT, _EMBEDDINGS = "embedding.weight", "embeddings"
"""The name of the table in sentence-transformers' files, and in model2vec's."""

_DEFAULT_LENGTH = 512
_TOKENIZED_AT_ONCE = 4096  # encodings of the tokenizer need much more memory than the text


class _Vectors(NamedTuple):
    """Vectors, shape (rows, dimensions), and for each token the row of its vector, and a factor."""

    rows: NDArray[Any]
    of_token: NDArray[Any]
    factor: NDArray[Any]

    def mean(self, tokens: Sequence[int]) -> NDArray[np.float64]:
        """Returns the mean vector of one or more tokens."""
        chosen = list(tokens)
        vectors = self.rows[self.of_token[chosen]].astype(np.float64) * self.factor[chosen, None]
        mean: NDArray[np.float64] = vectors.mean(axis=0)
        return mean


@dataclass
class TokenTable:
    """The files of static embeddings, read when needed.

    Attributes:
        checkpoint: that they belong to.
        folder: of tokenizer and vectors, relative to the checkpoint.
    """

    checkpoint: Checkpoint
    folder: str = ""

    @property
    def file(self) -> Path:
        """The file of the vectors; a pickled one only if there is no other."""
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
    def tokenizer(self) -> "tuple[Tokenizer, dict[str, Any]]":
        """The tokenizer without truncation and padding, and how its file truncates (`max_length`, `direction`)."""
        from tokenizers import Tokenizer

        attempt = reporting_failures(f"load the tokenizer of {self.checkpoint.name}")
        with self.checkpoint.reading(lambda: [self.tokenizer_file]), nothing_printed(), attempt:
            tokenizer = Tokenizer.from_file(str(self.tokenizer_file))
            truncation = tokenizer.truncation or {}
            tokenizer.no_truncation()
            tokenizer.no_padding()
        if not tokenizer.get_vocab_size():
            raise UserError(f"{self.tokenizer_file} has no tokens. {AGAIN}")
        return tokenizer, truncation

    @cached_property
    def token_length(self) -> int:
        """The median length of a token in characters, as model2vec computes it."""
        return int(np.median([len(token) for token in self.tokenizer[0].get_vocab()]))

    @cached_property
    def unknown(self) -> int | None:
        """The unknown token, or None."""
        tokenizer, model = self.tokenizer[0], json.loads(self.tokenizer[0].to_str())["model"]
        if (token := model.get("unk_token")) is not None:
            return tokenizer.token_to_id(token)
        unknown: int | None = model.get("unk_id")  # of a Unigram model
        return unknown

    def ids(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        """Returns all tokens of each text."""
        ids: list[tuple[int, ...]] = []
        with told_tokenizing(self.checkpoint.name, texts):
            for start in range(0, len(texts), _TOKENIZED_AT_ONCE):
                block = list(texts[start : start + _TOKENIZED_AT_ONCE])
                encodings = self.tokenizer[0].encode_batch_fast(block, add_special_tokens=False)
                ids += [tuple(encoding.ids) for encoding in encodings]
        return ids

    @cached_property
    def vectors(self) -> _Vectors:
        """The vectors of all tokens; model2vec may store the tokens' rows and factors apart."""
        file, what = self.file, f"the token vectors of {self.checkpoint.name}"
        if not file.is_file():
            raise UserError(f"{file}, {what}, is missing. {AGAIN}")
        require_memory(file.stat().st_size, what, "use a smaller model or a machine with more memory")
        with self.checkpoint.reading(lambda: [file]):
            arrays = read_arrays(file)
        rows = arrays.get(_LIBRARY_WEIGHT, arrays.get(_EMBEDDINGS, np.empty(0)))
        of_token = arrays.get("mapping", np.arange(len(rows)))
        factor = arrays.get("weights", np.ones(len(of_token)))
        if not self._is_table(arrays.keys(), rows, of_token, factor):
            raise UserError(
                f"{file} does not have one vector for each of the {self.tokenizer[0].get_vocab_size()} tokens of "
                f"{self.tokenizer_file}. {AGAIN}"
            )
        return _Vectors(rows, of_token, factor)

    def _is_table(self, names: Set[str], rows: NDArray[Any], of_token: NDArray[Any], factor: NDArray[Any]) -> bool:
        tokens = self.tokenizer[0].get_vocab().values()
        known = {_LIBRARY_WEIGHT} if _LIBRARY_WEIGHT in names else {_EMBEDDINGS, "mapping", "weights"}
        # sentence-transformers ignores unused rows; model2vec takes them for another tokenizer's.
        is_too_long = self.is_of_model2vec and "mapping" not in names and len(rows) > len(tokens)
        return (
            names <= known
            and (rows.ndim, of_token.ndim, factor.ndim) == (2, 1, 1)
            and (rows.dtype.kind == "f" or rows.dtype == np.int8)
            and (of_token.dtype.kind in "iu" and factor.dtype.kind == "f")
            and min(len(of_token), len(factor)) > max(tokens)
            and 0 <= of_token.min() <= of_token.max() < len(rows)
            and not is_too_long
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
        raise UserError(f"{table.tokenizer_file} is missing. {AGAIN}")
    pooling = (KNOWN if table.is_of_model2vec else ALL) if asked.pooling == AUTO else asked.pooling
    own, notes = _as_model2vec(table) if pooling == KNOWN else _as_library(table, asked.pooling)
    if own is None:
        return None
    use = replace(
        asked,
        pooling=pooling,
        max_length=own.use.max_length if asked.max_length is None else asked.max_length,
        prompt=own.use.prompt if asked.prompt is None else asked.prompt,
        device="cpu",
        template=None,
        trust_remote_code=False,
    )
    return TokenTableEncoder(table, replace(own, use=use), asked, (*notes, *table.checkpoint.own_notes()))


def _as_library(table: TokenTable, pooling: str) -> tuple[TransformerSettings | None, list[str]]:
    """Returns how sentence-transformers uses a table, None if something in it is not read natively; and notes."""
    checkpoint, name = table.checkpoint, table.checkpoint.name
    tail = read_tail(checkpoint, checkpoint.modules()[1:])
    notes = []
    if tail is None or checkpoint.json(LIBRARY_CONFIG).get("truncate_dim"):
        if pooling == AUTO:
            return None, []
        notes.append(f"{name} has modules that are not read natively; --pooling {ALL} skips them.")
    if table.is_of_model2vec:
        notes.append(f"{name} is read as sentence-transformers does (--pooling {ALL}), not model2vec.")
    _, truncation = table.tokenizer
    own = Use(max_length=truncation.get("max_length"), prompt=own_prompt(checkpoint))
    return TransformerSettings(own).with_modules(tail or ()), notes


def _as_model2vec(table: TokenTable) -> tuple[TransformerSettings, list[str]]:
    """Returns how model2vec uses a table, and notes."""
    checkpoint, name = table.checkpoint, table.checkpoint.name
    config = checkpoint.json("config.json" if table.is_of_model2vec else LIBRARY_CONFIG)
    length = config.get("max_length", _DEFAULT_LENGTH)
    length = None if length is None else int(length)
    other = "" if table.is_of_model2vec else ", not sentence-transformers"
    notes = [f"{name} is read as model2vec does (--pooling {KNOWN}), without unknown tokens{other}."]
    own = {"Normalize"} if table.is_of_model2vec else set()
    if skipped := [module.kind for module in checkpoint.modules()[1:] if module.kind not in own]:
        notes.append(f"{name} has modules that model2vec does not read, {', '.join(skipped)}: skipped.")
    use = Use(max_length=length, prompt="")
    return TransformerSettings(use, normalizes=bool(config.get("normalize"))), notes


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
        checkpoint, settings = self.checkpoint, self.settings
        return Identity(
            name=checkpoint.name,
            kind=_KINDS[self.use.pooling],
            use=replace(self.use, revision=checkpoint.revision),
            weights_sha256=checkpoint.sha256(self._weight_files()),
            tokenizer_sha256=checkpoint.sha256([self.table.tokenizer_file]),
            config_sha256=checkpoint.sha256(checkpoint.config_files(with_code=False)),
            modules=tuple(module.label for module in settings.tail),
            normalizes=settings.normalizes,
        )

    @property
    def weight_bytes(self) -> int:
        """The size of its weight files."""
        return sum(path.stat().st_size for path in self._weight_files())

    def _weight_files(self) -> list[Path]:
        dense = [module for module in self.settings.tail if module.kind == "dense"]
        return [self.table.file, *(module.weight_file(self.checkpoint.folder) for module in dense)]

    def used(self, **changes: Any) -> "TokenTableEncoder":
        """Returns the encoder used differently (pooling, maximum length, prompt), with the same files."""
        other = load_table(self.table, replace(self.asked, **({"pooling": self.use.pooling} | changes)))
        assert other is not None, "it has been read natively"
        return other

    def prepare(self, *, weights: bool) -> None:
        _ = self.table.tokenizer
        if weights:
            _ = self._tail

    def tokenize(self, texts: Sequence[str]) -> Tokenized:
        """Returns the tokens read of each text, unknown ones included, and its number of tokens."""
        use, table = self.use, self.table
        read = [f"{use.prompt}{text}" for text in texts]
        whole = table.ids(read)
        sequences = list(whole)
        if use.max_length is not None:
            if use.pooling == KNOWN:
                most = use.max_length * table.token_length
                longer = [row for row, text in enumerate(read) if len(text) > most]
                for row, ids in zip(longer, table.ids([read[row][:most] for row in longer]), strict=True):
                    sequences[row] = ids
            _, truncation = table.tokenizer
            keeps_end = use.pooling == ALL and truncation.get("direction") == "left"
            cut = slice(-use.max_length, None) if keeps_end else slice(use.max_length)
            sequences = [ids[cut] for ids in sequences]
        truncated = [ids != all_ids for ids, all_ids in zip(sequences, whole, strict=True)]
        # A prompt can merge with the first word's token, so its length cannot be subtracted.
        lengths = [len(ids) for ids in (table.ids(texts) if use.prompt else whole)]
        return Tokenized(list(sequences), lengths, truncated)

    def vectors(self, sequences: Sequence[TokenSequence]) -> FloatMatrix:
        vectors, skipped = self.table.vectors, self.table.unknown if self.use.pooling == KNOWN else None
        means = np.zeros((len(sequences), vectors.rows.shape[1]))
        for row, sequence in enumerate(sequences):
            if tokens := [int(token) for token in sequence if token != skipped]:
                means[row] = vectors.mean(tokens)
        result = self._tail(as_float32(means, self.checkpoint.name))
        self.checkpoint.hashed.require_unchanged()
        return result

    @cached_property
    def _tail(self) -> Callable[[FloatMatrix], FloatMatrix]:
        """Applies what follows the mean."""
        width, tail = self.table.vectors.rows.shape[1], self.settings.tail
        if not tail:
            return lambda vectors: vectors
        import torch

        with self.checkpoint.reading(self._weight_files):
            apply = load_tail(self.checkpoint, tail, width=width, device="cpu")
        return torch.inference_mode()(lambda vectors: apply(torch.from_numpy(vectors)).numpy())
