"""How many sub-words a checkpoint reads, from its files alone."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.encoders.checkpoint import Checkpoint, quiet_transformers, told
from stsbench.encoders.weights import tensor_names

# Position ids of RoBERTa-like models start after the padding index, so that many positions cannot be used.
_OFFSET_POSITIONS = re.compile("roberta|camembert|mpnet|longformer|ernie_m|data2vec-text|luke|ibert|xmod|lilt|esm")
_OFFSET_PADDING_ID = 1

_POSITIONS = re.compile(r"(^|\.)(position_embeddings|wpe|embed_positions)\.weight$")

# Transformers writes a huge number for "no limit known".
NO_LIMIT = 1_000_000

# What the tokenizer says of a text is much larger than the text.
_LOCATED_AT_ONCE = 2048


def position_limit(checkpoint: Checkpoint) -> int | None:
    """Return how many sub-words the model has positions for, special tokens included; None if unlimited."""
    config = checkpoint.json("config.json")
    # GPT-2 and its kin call it n_positions.
    positions: int | None = config.get("max_position_embeddings") or config.get("n_positions")
    if positions is None or positions <= 0:
        return None
    if not _OFFSET_POSITIONS.search(str(config.get("model_type"))):
        return positions
    padding_id: int | None = config.get("pad_token_id")
    return positions - (_OFFSET_PADDING_ID if padding_id is None else padding_id) - 1


def model_limit(checkpoint: Checkpoint) -> int | None:
    """Return how many sub-words are read if nobody says otherwise: the tokenizer's limit and the positions'."""
    own = checkpoint.json("tokenizer_config.json").get("model_max_length")
    limit = int(min(own if own and own > 0 else NO_LIMIT, position_limit(checkpoint) or NO_LIMIT))
    return limit if limit < NO_LIMIT else None


def stated_limits(checkpoint: Checkpoint) -> dict[int, list[str]]:
    """Return every number of sub-words at which a file of the checkpoint ends a text, and which files name it."""
    named: dict[int, list[str]] = {}
    for file, key in (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
        ("config.json", "max_position_embeddings"),
    ):
        limit = position_limit(checkpoint) if file == "config.json" else checkpoint.json(file).get(key)
        if limit is not None and 0 < limit < NO_LIMIT:
            named.setdefault(int(limit), []).append(f"{key} of {file}")
    return named


def counts_padding(checkpoint: Checkpoint) -> bool:
    """Return whether a token's position embedding changes with the padding before it.

    It does where positions are embedded and counted from the first column, as in BERT and GPT-2; not where they
    turn queries and keys, nor in RoBERTa and its kin, which count from the padding token on.
    """
    if _OFFSET_POSITIONS.search(str(checkpoint.json("config.json").get("model_type"))):
        return False
    return any(_POSITIONS.search(name) for file in checkpoint.weight_files() for name in tensor_names(file))


class Tokenizer:
    """Turns texts into the token ids that a model reads.

    Attributes:
        pad_id: the padding token.
        special_tokens: how many special tokens stand around a text.
        vocabulary: how many token ids there are.
        mask_id: the token that stands for a masked one, as `begin_id` and `end_id` None where there is none.
        mask: how that token is written in a text.
        special_ids: the tokens that are no words: those around a text, padding, mask.
    """

    def __init__(self, checkpoint: Checkpoint, *, trust_remote_code: bool) -> None:
        from transformers import AutoTokenizer

        def files() -> list[Path]:
            return [*checkpoint.tokenizer_files(), *checkpoint.config_files(with_code=trust_remote_code)]

        with checkpoint.reading(files), quiet_transformers():
            for name in ("tokenizer_config.json", "special_tokens_map.json"):
                checkpoint.json(name)
            with told(f"load the tokenizer of {checkpoint.name}"):
                tokenizer: Any = AutoTokenizer.from_pretrained(
                    checkpoint.folder, trust_remote_code=trust_remote_code
                )
        if tokenizer.vocab_files_names and not checkpoint.has_vocabulary():
            # Transformers would go on with an empty vocabulary, to which every word is unknown.
            raise UserError(
                f"{checkpoint.folder} holds no tokenizer (no tokenizer.json, vocab.txt or the like): "
                "copy the tokenizer's files there."
            )
        begins = (tokenizer.bos_token_id, tokenizer.cls_token_id)
        ends = (tokenizer.eos_token_id, tokenizer.sep_token_id)
        self.begin_id: int | None = next((token for token in begins if token is not None), None)
        self.end_id: int | None = next((token for token in ends if token is not None), None)
        # Many language models name none. It is never attended to, so any token does.
        pad_id = self.end_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        if pad_id is None:
            raise UserError(
                f"the tokenizer of {checkpoint.name} has neither a padding token nor an end-of-text token: "
                'name one in its tokenizer_config.json ("pad_token").'
            )
        # The person's limit is applied here; the tokenizer's own advice about long texts is noise.
        tokenizer.model_max_length = NO_LIMIT
        tokenizer.padding_side = "right"
        with told(f"tokenize with the tokenizer of {checkpoint.name}"):
            marks = tokenizer("a").get("token_type_ids")
            self.special_tokens = int(tokenizer.num_special_tokens_to_add())
        if any(marks or ()):
            raise UserError(
                f"the tokenizer of {checkpoint.name} marks token types in single sentences, as XLNet's does, "
                "which is not read here: save its vectors and score them with --vectors."
            )
        self._tokenizer = tokenizer
        self.pad_id = int(pad_id)
        self.vocabulary = len(tokenizer)
        self.mask_id: int | None = tokenizer.mask_token_id
        self.mask: str | None = tokenizer.mask_token
        self.name = checkpoint.name
        self.special_ids: list[int] = sorted(tokenizer.all_special_ids)

    def __call__(
        self, texts: Sequence[str], limit: int | None = None, *, special_tokens: bool = True
    ) -> list[tuple[int, ...]]:
        """Return the token ids of each text, the first `limit` of them where a limit is given."""
        if not texts:
            return []
        with told_tokenizing(self.name, texts):
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
        """Return the token ids of each text, and which of them some of its characters became.

        Args:
            texts: to tokenise, with special tokens around.
            spans: for each text spans of its characters: the first, and the one behind the last.

        Returns:
            For each text its ids, and for each span the first token that has a character of it and the one behind
            the last. Of a span without any, both are the token that comes next.
        """
        located = []
        for start in range(0, len(texts), _LOCATED_AT_ONCE):
            block = slice(start, start + _LOCATED_AT_ONCE)
            for encoding, wanted in zip(self._with_offsets(texts[block]), spans[block], strict=True):
                located.append((tuple(encoding.ids), [_tokens_of(encoding, span) for span in wanted]))
        return located

    def ends(self, text: str) -> list[int]:
        """Return where in a text each of its tokens ends, without special tokens."""
        (encoding,) = self._with_offsets([text], special_tokens=False)
        return [end for _, end in encoding.offsets]

    def _with_offsets(self, texts: Sequence[str], *, special_tokens: bool = True) -> Sequence[Any]:
        if not texts:
            return []
        if not getattr(self._tokenizer, "is_fast", False):
            raise UserError(
                f"the tokenizer of {self.name} does not say where its tokens stand in a text, which a template "
                "needs: give a checkpoint with a tokenizer.json."
            )
        backend = self._tokenizer.backend_tokenizer
        # A tokenizer.json may ask for both; and asking the library behind for these is twice as fast.
        backend.no_truncation()
        backend.no_padding()
        with told_tokenizing(self.name, texts):
            encodings: Sequence[Any] = backend.encode_batch(list(texts), add_special_tokens=special_tokens)
        return encodings

    def texts(self, tokens: Sequence[int]) -> list[str]:
        """Return each token as it is written in a text, without the marks of a word's end or middle."""
        return [self._tokenizer.decode([token]).strip().removeprefix("##") for token in tokens]


@contextmanager
def told_tokenizing(name: str, texts: Sequence[str]) -> Iterator[None]:
    """Raise a UserError for what the library raises: about a text that is none, else about a model's tokenizer."""
    with told(f"tokenize with the tokenizer of {name}"):
        try:
            yield
        except TypeError as error:
            for text in texts:
                # Halves of characters come of options and names that are not UTF-8; files are read as it.
                if text.encode(errors="ignore").decode() != text:
                    problem = f"{text!r} is no text: a character in it is not UTF-8; write it anew."
                    raise UserError(problem) from error
            raise


def _tokens_of(encoding: Any, span: tuple[int, int]) -> tuple[int, int]:
    start, stop = span
    # Spaces and the like belong to no token.
    tokens = (encoding.char_to_token(place) for place in range(start, stop))
    first = next((token for token in tokens if token is not None), None)
    if first is not None:
        last = next(
            token
            for place in range(stop - 1, start - 1, -1)
            if (token := encoding.char_to_token(place)) is not None
        )
        return first, last + 1
    behind = next((token for token, (_, end) in enumerate(encoding.offsets) if end > start), len(encoding.ids))
    return behind, behind
