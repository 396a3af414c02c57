"""Word-piece tokenizers over a given list of words: not trained, as training breaks ties by chance."""

import re
import string
from collections import Counter

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def word_pieces(pieces, **options):
    """Return a lower-casing tokenizer of the pieces behind the special tokens, with [CLS] and [SEP] around a text.

    Args:
        pieces: whole words, and inner pieces with ## before them.
        options: further ones of `PreTrainedTokenizerFast`.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = [*SPECIAL, *pieces]
    tokenizer = Tokenizer(models.WordPiece({name: n for n, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokens = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **tokens, **options)


def sample_word_pieces(size):
    """Return a tokenizer of so many of the sample's commonest words, and of letters for the rest."""
    from stsbench.data.corpus import load_corpus

    counts = Counter(word for text in load_corpus("sample") for word in re.findall(r"[a-z]+", text.lower()))
    words = sorted(counts, key=lambda word: (-counts[word], word))[:size]
    letters = sorted({*string.ascii_lowercase, *string.digits, *string.punctuation} - set(words))
    return word_pieces([*words, *letters, *(f"##{letter}" for letter in string.ascii_lowercase + string.digits)])
