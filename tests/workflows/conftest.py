"""A tiny checkpoint that knows the sample's words, and small data in the benchmarks' layout."""

import re
import string
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stsbench.datasets import StsData, data_set
from stsbench.evaluation.tasks import STS_TASKS


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    from stsbench.datasets import sample_sentences

    # Not trained, as training breaks ties by chance: the commonest words, and letters for the rest.
    counts = Counter(word for text in sample_sentences() for word in re.findall(r"[a-z]+", text.lower()))
    words = sorted(counts, key=lambda word: (-counts[word], word))[:200]
    letters = sorted({*string.ascii_lowercase, *string.digits, *string.punctuation} - set(words))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [
        *special,
        *words,
        *letters,
        *(f"##{letter}" for letter in string.ascii_lowercase + string.digits),
    ]
    tokenizer = Tokenizer(models.WordPiece({word: n for n, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {name: f"[{name[:-6].upper()}]" for name in ("pad_token", "unk_token", "cls_token", "sep_token")}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, mask_token="[MASK]", **names)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a BERT with random weights whose poolers give different scores."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("checkpoints") / "tiny-bert"
    tokenizer = _tokenizer()
    torch.manual_seed(7)
    model = BertModel(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_hidden_layers=3,
            num_attention_heads=2,
            intermediate_size=48,
            max_position_embeddings=64,
        )
    )
    with torch.no_grad():
        # Fresh weights are so small that every sentence would get nearly the same vector.
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def benchmark_folder(tmp_path: Path, toy_data: Callable[..., StsData]) -> Path:
    """Return a data folder with the seven STS tasks in SentEval's layout and five raw, of invented sentences."""
    root = tmp_path / "data"
    for number, task in enumerate(STS_TASKS):
        for text, folder in (("senteval", root / "downstream"), ("raw", root / "sts-raw")):
            if text not in data_set(task).texts:
                continue
            variant = data_set(task).texts[text]
            for part_number, part in enumerate(variant.parts):
                pairs = toy_data(pairs=20, seed=100 * number + part_number).pairs
                # The raw text has a word more, so that it scores otherwise.
                firsts = [f"{one} again" if text == "raw" else one for one in pairs["sentence1"]]
                rows = list(zip(firsts, pairs["sentence2"], pairs["gold"], strict=True))
                _write(folder, variant, part, rows)
    return root


def _write(folder: Path, variant: Any, part: Any, rows: list[tuple[str, str, float]]) -> None:
    for file in part.files:
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
    if variant.layout == "pairs-and-gold":
        extra = "\tsource" * (variant.widths[0] - 2)
        pairs, golds = part.files
        (folder / pairs.path).write_text("".join(f"{a}\t{b}{extra}\n" for a, b, _ in rows), encoding="utf-8")
        (folder / golds.path).write_text("".join(f"{gold}\n" for _, _, gold in rows), encoding="utf-8")
        return
    columns, (file,) = variant.columns, part.files
    lines = ["\t".join("c" * variant.widths[0]) + "\n"] if variant.header else []
    for number, (a, b, gold) in enumerate(rows):
        cells = ["x"] * variant.widths[0]
        cells[columns.sentence1], cells[columns.sentence2], cells[columns.value] = a, b, str(gold)
        if columns.id is not None:
            cells[columns.id] = f"{part.split}{number}"
        lines.append("\t".join(cells) + "\n")
    (folder / file.path).write_text("".join(lines), encoding="utf-8")
