"""Tiny checkpoints with random weights, and the plain reference computation that encoders are compared with."""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).parent))  # for `planted`

SENTENCES = [
    "A small cat sat on the old mat by the door.",
    "The dog ran home.",
    "Rain fell all night, and the river rose over the green field.",
    "She reads.",
    "Two children carry a red boat down to the cold water while their father waits.",
    "the dog ran home .",
    "Nobody knows why the bridge is closed today",
    "Bread, milk and eggs!",
    "A small cat sat on the old mat by the door.",
    "",
]

POSITIONS = 48
KINDS = ("bert", "roberta", "distilbert", "albert", "mpnet", "gpt2")


def _word_pieces() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    names = ("pad", "unk", "cls", "sep", "mask")
    special = {f"{name}_token": f"[{name.upper()}]" for name in names}
    trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=list(special.values()))
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def _byte_pairs(*, around: bool) -> Any:
    """Return a cased byte-level tokenizer, with `<s>` and `</s>` around a text or without."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=340,
        special_tokens=["<s>", "<pad>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    if around:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="</s>"
    )


def _model(kind: str, words: int) -> Any:
    import transformers

    deep = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    deep |= {"max_position_embeddings": POSITIONS}
    offset = deep | {"max_position_embeddings": POSITIONS + 2, "pad_token_id": 1}
    distil = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48, "max_position_embeddings": POSITIONS}
    gpt = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": POSITIONS}
    sizes = {
        "bert": deep,
        "roberta": offset | {"type_vocab_size": 1},
        "mpnet": offset,
        "albert": deep | {"embedding_size": 16, "pad_token_id": 0},
        "distilbert": distil,
        "gpt2": gpt | {"bos_token_id": 0, "eos_token_id": 2},
    }
    config = transformers.AutoConfig.for_model(kind, vocab_size=words, **sizes[kind])
    return transformers.AutoModel.from_config(config)


def _save_long(kind: str, folder: Path) -> None:
    """Save a model with room for a template, of byte-level tokens: a RoBERTa with a mask token, or a decoder."""
    import torch
    import transformers

    tokenizer = _byte_pairs(around=kind == "roberta")
    if kind == "roberta":
        tokenizer.add_special_tokens({"mask_token": transformers.AddedToken("<mask>", lstrip=True, special=True)})
    torch.manual_seed(11)
    sizes = {"vocab_size": len(tokenizer), "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2}
    tokens = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    model: Any
    match kind:
        case "roberta":
            longest = {"intermediate_size": 48, "max_position_embeddings": 1026, "type_vocab_size": 1}
            model = transformers.RobertaModel(transformers.RobertaConfig(**sizes, **longest, **tokens))
        case "gpt2":
            config = transformers.GPT2Config(**sizes, n_positions=1024, bos_token_id=0, eos_token_id=2)
            model = transformers.GPT2Model(config)
        case "llama":
            longest = {"intermediate_size": 48, "max_position_embeddings": 1024, "num_key_value_heads": 1}
            model = transformers.LlamaModel(transformers.LlamaConfig(**sizes, **longest, **tokens))
    with torch.no_grad():
        # Fresh weights are so small that every sentence would get nearly the same vector.
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="session")
def asked_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that gives the folder of a tiny `roberta`, `gpt2` or `llama` that reads 1024 tokens."""
    root = tmp_path_factory.mktemp("asked")

    def build(kind: str) -> Path:
        if not (root / kind).is_dir():
            _save_long(kind, root / kind)
        return root / kind

    return build


def _save(kind: str, folder: Path) -> None:
    import torch

    byte_level = kind in {"roberta", "mpnet", "gpt2"}
    tokenizer = _byte_pairs(around=kind != "gpt2") if byte_level else _word_pieces()
    torch.manual_seed(7)
    model = _model(kind, len(tokenizer))
    with torch.no_grad():
        # Fresh weights are so small that every sentence would get nearly the same vector.
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="session")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    root = tmp_path_factory.mktemp("checkpoints")

    def build(kind: str) -> Path:
        if not (root / kind).is_dir():
            _save(kind, root / kind)
        return root / kind

    return build


@pytest.fixture
def sentences() -> list[str]:
    """Return ten sentences of our own: two are equal, one is empty, two differ in case only."""
    return list(SENTENCES)


@pytest.fixture
def tiny(_built: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes a test's own copy of a tiny checkpoint."""

    def copy(kind: str = "bert", name: str = "") -> Path:
        return Path(shutil.copytree(_built(kind), tmp_path / (name or f"tiny-{kind}")))

    return copy


@pytest.fixture
def edit() -> Callable[..., None]:
    """Return a function that changes entries of a JSON file; None removes one."""

    def change(path: Path, **entries: object) -> None:
        content = json.loads(path.read_text(encoding="utf-8")) | entries
        path.write_text(json.dumps({k: v for k, v in content.items() if v is not None}), encoding="utf-8")

    return change


@pytest.fixture
def vectors_of() -> Callable[..., NDArray[np.float32]]:
    """Return a function that embeds texts and gives one vector a text, in order."""

    def vectors(encoder: Any, texts: Sequence[str], pooling: str | None = None, **options: Any) -> Any:
        from stsbench.encoders.plan import embed

        wanted = pooling or encoder.identity.use.pooling
        found = embed(encoder, texts, poolings=[wanted], **{"use_cache": False} | options)
        return found.vectors[wanted][found.rows]

    return vectors


@pytest.fixture
def reference() -> Callable[..., NDArray[np.float32]]:
    """Return a plain computation of sentence vectors: one sentence at a time, straight from AutoModel."""

    def compute(folder: Path, texts: Sequence[str], pooling: str, **options: Any) -> Any:
        import torch
        from transformers import AutoModel, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModel.from_pretrained(folder, **options).eval()
        rows = []
        for text in texts:
            encoded = tokenizer(text, return_tensors="pt", truncation=True, max_length=POSITIONS)
            with torch.no_grad():
                output = model(**encoded, output_hidden_states=True)
            layers = [layer[0] for layer in output.hidden_states]
            match pooling:
                case "cls":
                    row = output.pooler_output[0]
                case "cls_before_pooler":
                    row = layers[-1][0]
                case "avg":
                    row = layers[-1].mean(0)
                case "avg_top2":
                    row = ((layers[-1] + layers[-2]) / 2).mean(0)
                case "avg_first_last":
                    row = ((layers[1] + layers[-1]) / 2).mean(0)
                case "avg_static_last":
                    row = ((layers[0] + layers[-1]) / 2).mean(0)
                case "cls_avg":
                    row = (layers[-1][0] + layers[-1].mean(0)) / 2
                case "weighted_avg":
                    weights = torch.arange(1.0, len(layers[-1]) + 1).unsqueeze(1)
                    row = (layers[-1] * weights).sum(0) / weights.sum()
                case "max":
                    row = layers[-1].max(0).values
                case "last":
                    row = layers[-1][-1]
            rows.append(row.numpy())
        return np.stack(rows)

    return compute
