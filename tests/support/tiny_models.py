"""Tiny checkpoints with random weights, and their tokenizers."""

import json
import re
import string
from collections import Counter
from pathlib import Path

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


def byte_pairs(texts, *, around, mask, size=340):
    """Return a cased byte-level tokenizer trained on texts, with `<s>` and `</s>` around a text or without."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import AddedToken, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "<pad>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(texts, trainer)
    if around:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    tokens = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "</s>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **tokens)
    if mask:
        fast.add_special_tokens({"mask_token": AddedToken("<mask>", lstrip=True, special=True)})
    return fast


SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}


def save_tiny(folder, tokenizer, kind="bert", *, build=None, draw=None, seed=7, **sizes):
    """Write a checkpoint with random weights and return its folder.

    Args:
        kind: the model type of Transformers.
        build: makes the network from its configuration; AutoModel by default.
        draw: changes a parameter; by default to numbers so large that sentences get different vectors.
        sizes: entries of the configuration beside `SIZES` and 64 positions.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    sizes = SIZES | {"max_position_embeddings": 64} | sizes
    torch.manual_seed(seed)
    network = (build or AutoModel.from_config)(AutoConfig.for_model(kind, vocab_size=len(tokenizer), **sizes))
    with torch.no_grad():
        for parameter in network.parameters():
            draw(parameter) if draw else parameter.normal_(std=0.3)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def edit(path, **entries):
    """Change entries of a JSON file, which need not exist; None removes one."""
    content = (json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}) | entries
    path.write_text(json.dumps({k: v for k, v in content.items() if v is not None}), encoding="utf-8")


def list_modules(folder, *after):
    """Write the list of modules of sentence-transformers: a Transformer, its pooling and, say, `2_Dense`."""
    places = ["", "1_Pooling", *after]
    kinds = ["Transformer", "Pooling", *(place.partition("_")[2] or place for place in after)]
    listing = [
        {"idx": number, "name": str(number), "path": place, "type": f"sentence_transformers.models.{kind}"}
        for number, (place, kind) in enumerate(zip(places, kinds, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(listing))


def vectors_of(encoder, texts, pooling=None, **options):
    """Embed texts with an encoder or the model in a folder: one vector a text, in order, not from the cache."""
    from stsbench.encoders.load import load
    from stsbench.encoders.plan import embed

    encoder = load(encoder) if isinstance(encoder, Path) else encoder
    found = embed(encoder, texts, **{"use_cache": False, "poolings": [pooling] if pooling else None} | options)
    (vectors,) = found.vectors.values()
    return vectors[found.rows]
