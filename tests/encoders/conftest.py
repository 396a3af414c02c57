"""Tiny checkpoints with random weights, and the plain reference computation that encoders are compared with."""

import json
import re
import shutil
import string
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_models import byte_pairs, save_tiny, word_pieces

sys.path.append(str(Path(__file__).parent))  # tests use the stubs of others

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
_ENDS = {"bos_token_id": 0, "eos_token_id": 2}
_PADDED = {"max_position_embeddings": POSITIONS + 2, "pad_token_id": 1}
_OF_KIND = {
    "roberta": _PADDED | {"type_vocab_size": 1},
    "mpnet": _PADDED,
    "albert": {"embedding_size": 16, "pad_token_id": 0},
    "distilbert": {"hidden_dim": 48},
    "gpt2": _ENDS,
    "long-roberta": _ENDS | _PADDED | {"max_position_embeddings": 1026, "type_vocab_size": 1},
    "long-gpt2": _ENDS | {"max_position_embeddings": 1024},
    "long-llama": _ENDS | {"max_position_embeddings": 1024, "num_key_value_heads": 1, "pad_token_id": 1},
}
_LONG = {"num_hidden_layers": 3}


def _words():
    words = sorted(set(re.findall(r"[a-z]+", " ".join(SENTENCES).lower())) - set(string.ascii_lowercase))
    letters = [*string.ascii_lowercase, *string.digits]
    return word_pieces([*words, *string.punctuation, *letters, *(f"##{letter}" for letter in letters)])


def _save(kind, folder):
    import torch

    long, name = kind.startswith("long-"), kind.removeprefix("long-")
    if name in {"bert", "distilbert", "albert"}:
        tokenizer = _words()
    else:
        tokenizer = byte_pairs(SENTENCES, around=name in {"roberta", "mpnet"}, mask=kind == "long-roberta")
    sizes = {"max_position_embeddings": POSITIONS} | (_LONG if long else {}) | _OF_KIND.get(kind, {})
    draw = (lambda parameter: parameter.add_(torch.randn_like(parameter) * 0.2)) if long else None
    save_tiny(folder, tokenizer, name, draw=draw, **sizes)


@pytest.fixture(scope="session")
def _built(tmp_path_factory):
    root = tmp_path_factory.mktemp("checkpoints")

    def build(kind):
        if not (root / kind).is_dir():
            _save(kind, root / kind)
        return root / kind

    return build


@pytest.fixture(scope="session")
def asked_model(_built):
    """Return a function that gives the folder of a tiny `roberta`, `gpt2` or `llama` that reads 1024 tokens."""
    return lambda kind: _built(f"long-{kind}")


@pytest.fixture
def sentences():
    """Return ten sentences of our own: two are equal, one is empty, two differ in case only."""
    return list(SENTENCES)


@pytest.fixture
def tiny(_built, tmp_path):
    """Return a function that makes a test's own copy of a tiny checkpoint."""

    def copy(kind="bert", name=""):
        return Path(shutil.copytree(_built(kind), tmp_path / (name or f"tiny-{kind}")))

    return copy


@pytest.fixture
def edit():
    """Return a function that changes entries of a JSON file; None removes one."""

    def change(path, **entries):
        content = json.loads(path.read_text(encoding="utf-8")) | entries
        path.write_text(json.dumps({k: v for k, v in content.items() if v is not None}), encoding="utf-8")

    return change


@pytest.fixture
def vectors_of():
    """Return a function that embeds texts and gives one vector a text, in order."""

    def vectors(encoder, texts, pooling=None, **options):
        from stsbench.encoders.plan import embed

        wanted = pooling or encoder.identity.use.pooling
        found = embed(encoder, texts, poolings=[wanted], **{"use_cache": False} | options)
        return found.vectors[wanted][found.rows]

    return vectors


@pytest.fixture
def reference():
    """Return a plain computation of sentence vectors: one sentence at a time, straight from AutoModel."""

    def compute(folder, texts, pooling, **options):
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
