"""A checkpoint's tokenizer, and how many sub-words the checkpoint reads."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.files import files_in
from stsbench.encoders.checkpoint import VOCABULARY_PATTERNS, Checkpoint, quiet_transformers, reporting_failures

# Models whose position ids start after the padding id, so that this many positions cannot be used.
_OFFSET_POSITIONS = re.compile("roberta|camembert|mpnet|longformer|ernie_m|data2vec-text|luke|ibert|xmod|lilt|esm")
_OFFSET_PADDING_ID = 1

# Transformers writes a huge number for "unlimited".
NO_LIMIT = 1_000_000

# Offsets of tokens take much more memory than the text.
_LOCATED_AT_ONCE = 2048


def position_limit(checkpoint: Checkpoint) -> int | None:
    """Returns how many tokens the model has positions for, special tokens included; None if unlimited."""
    config = checkpoint.json("config.json")
    # GPT-2 and its relatives call it n_positions.
    positions: int | None = config.get("max_position_embeddings") or config.get("n_positions")
    if positions is None or positions <= 0:
        return None
    if not _OFFSET_POSITIONS.search(str(config.get("model_type"))):
        return positions
    padding_id: int | None = config.get("pad_token_id")
    return positions - (_OFFSET_PADDING_ID if padding_id is None else padding_id) - 1


def model_limit(checkpoint: Checkpoint) -> int | None:
    """Returns the default maximum length: the smaller of the tokenizer's limit and the number of positions."""
    own = checkpoint.json("tokenizer_config.json").get("model_max_length")
    limit = int(min(own if own and own > 0 else NO_LIMIT, position_limit(checkpoint) or NO_LIMIT))
    return limit if limit < NO_LIMIT else None


def stated_limits(checkpoint: Checkpoint) -> dict[int, list[str]]:
    """Returns every maximum length that a file of the checkpoint states, with the places that state it."""
    stated: dict[int, list[str]] = {}
    for file, key in (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
        ("config.json", "max_position_embeddings"),
    ):
        limit = position_limit(checkpoint) if file == "config.json" else checkpoint.json(file).get(key)
        if limit is not None and 0 < limit < NO_LIMIT:
            stated.setdefault(int(limit), []).append(f"{key} of {file}")
    return stated


class Tokenizer:
    """Turns texts into token ids.

    Attributes:
        pad_id: the padding token.
        special_tokens: the number of special tokens around a text.
        vocabulary: the number of token ids.
        mask_id: the mask token; like `begin_id` and `end_id` None if there is none.
        mask: the mask token's text.
        special_ids: the tokens that are not words: those around a text, padding, mask.
    """

    def __init__(self, checkpoint: Checkpoint, *, trust_remote_code: bool) -> None:
        self.name = checkpoint.name
        self._tokenizer = tokenizer = _load(checkpoint, trust_remote_code=trust_remote_code)
        self.begin_id = _first(tokenizer.bos_token_id, tokenizer.cls_token_id)
        self.end_id = _first(tokenizer.eos_token_id, tokenizer.sep_token_id)
        # Many language models have no padding token. It is never attended to, so any token works.
        self.pad_id = _first(tokenizer.pad_token_id, self.end_id, 0) or 0
        # Our own limit applies; the tokenizer's warnings about long texts are noise.
        tokenizer.model_max_length = NO_LIMIT
        tokenizer.padding_side = "right"
        with reporting_failures(f"tokenize with the tokenizer of {checkpoint.name}"):
            token_types = tokenizer("a").get("token_type_ids") or ()
            self.special_tokens = int(tokenizer.num_special_tokens_to_add())
        if any(token_types):
            raise UserError(
                f"the tokenizer of {checkpoint.name} marks token types in single sentences, which is not "
                "supported. Save its vectors and score them with --vectors."
            )
        self.vocabulary = len(tokenizer)
        self.mask_id: int | None = tokenizer.mask_token_id
        self.mask: str | None = tokenizer.mask_token
        self.special_ids: list[int] = sorted(tokenizer.all_special_ids)

    def __call__(
        self, texts: Sequence[str], limit: int | None = None, *, special_tokens: bool = True
    ) -> list[tuple[int, ...]]:
        """Returns the token ids of each text, truncated to `limit` if given."""
        if not texts:
            return []
        with reporting_tokenizing(self.name, texts):
            encoded = self._tokenizer(
                list(texts),
                add_special_tokens=special_tokens,
                truncation=limit is not None,
                max_length=limit,
                padding=False,
                return_attention_mask=False,
                return_token_type_ids=False,
            )
        return [tuple(ids) for ids in encoded["input_ids"]]

    def locate(
        self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]
    ) -> list[tuple[tuple[int, ...], list[tuple[int, int]]]]:
        """Returns the token ids of each text, and the tokens of some of its spans.

        Args:
            texts: to tokenise with special tokens.
            spans: for each text spans of characters, as (start, stop).

        Returns:
            For each text its ids, and for each span (start, stop) of its tokens. An empty span has the next token
            as start and stop.
        """
        located = []
        for start in range(0, len(texts), _LOCATED_AT_ONCE):
            block = slice(start, start + _LOCATED_AT_ONCE)
            for encoding, of_text in zip(self._with_offsets(texts[block]), spans[block], strict=True):
                located.append((tuple(encoding.ids), [_tokens_of(encoding, span) for span in of_text]))
        return located

    def ends(self, text: str) -> list[int]:
        """Returns the character at which each token of a text ends, without special tokens."""
        (encoding,) = self._with_offsets([text], special_tokens=False)
        return [end for _, end in encoding.offsets]

    def _with_offsets(self, texts: Sequence[str], *, special_tokens: bool = True) -> Sequence[Any]:
        if not texts:
            return []
        if not getattr(self._tokenizer, "is_fast", False):
            raise UserError(f"a template needs a checkpoint with a tokenizer.json, which {self.name} lacks.")
        backend = self._tokenizer.backend_tokenizer
        # A tokenizer.json may ask for both.
        backend.no_truncation()
        backend.no_padding()
        with reporting_tokenizing(self.name, texts):
            encodings: Sequence[Any] = backend.encode_batch(list(texts), add_special_tokens=special_tokens)
        return encodings

    def texts(self, tokens: Sequence[int]) -> list[str]:
        """Returns the text of each token, without marks of a word's start or middle."""
        return [self._tokenizer.decode([token]).strip().removeprefix("##") for token in tokens]


def _load(checkpoint: Checkpoint, *, trust_remote_code: bool) -> Any:
    from transformers import AutoTokenizer

    with quiet_transformers(), reporting_failures(f"load the tokenizer of {checkpoint.name}"):
        tokenizer: Any = AutoTokenizer.from_pretrained(checkpoint.folder, trust_remote_code=trust_remote_code)
    if tokenizer.vocab_files_names and not files_in(checkpoint.folder, *VOCABULARY_PATTERNS):
        # Transformers would use an empty vocabulary, in which every word is unknown.
        raise UserError(f"{checkpoint.folder} holds no tokenizer (such as tokenizer.json). Copy its files there.")
    return tokenizer


def _first(*tokens: int | None) -> int | None:
    """Returns the first token that exists."""
    return next((token for token in tokens if token is not None), None)


@contextmanager
def reporting_tokenizing(name: str, texts: Sequence[str]) -> Iterator[None]:
    """Turns a tokenizer's error into a UserError: about a text that is not UTF-8, or else about the tokenizer."""
    with reporting_failures(f"tokenize with the tokenizer of {name}"):
        try:
            yield
        except TypeError as error:
            if bad := [text for text in texts if text.encode(errors="ignore").decode() != text]:
                raise UserError(f"{bad[0]!r} contains characters that are not UTF-8.") from error
            raise


def _tokens_of(encoding: Any, span: tuple[int, int]) -> tuple[int, int]:
    start, stop = span
    # Spaces belong to no token.
    tokens = [token for place in range(start, stop) if (token := encoding.char_to_token(place)) is not None]
    if tokens:
        return tokens[0], tokens[-1] + 1
    following = next((token for token, (_, end) in enumerate(encoding.offsets) if end > start), len(encoding.ids))
    return following, following
