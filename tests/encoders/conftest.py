"""Tiny checkpoints with random weights, and the plain reference computation that encoders are compared with."""

import re
import shutil
import string
import sys
from pathlib import Path

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
