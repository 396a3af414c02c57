"""Tiny networks, the plain computation of a training, and what trainings are compared by."""

import json
from typing import Any

import torch


def tiny(kind, **sizes):
    """Return a Transformer in training, two layers of two heads and 16 wide; `sizes` are its own."""
    import transformers

    common = {
        "vocab_size": 99,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
    }
    if kind == "xlm":
        common = {"emb_dim": 16, "n_layers": 2, "n_heads": 2, "vocab_size": 99, "pad_index": 0}
    if kind == "t5":
        common = {"vocab_size": 99, "d_model": 16, "num_layers": 2, "num_heads": 2, "d_ff": 24, "d_kv": 8}
    torch.manual_seed(3)
    config = transformers.AutoConfig.for_model(kind, **{**common, **sizes})
    model: Any = (
        transformers.T5EncoderModel(config) if kind == "t5" else transformers.AutoModel.from_config(config)
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model.train()


def plain_vectors(model, head, sequences):
    """Encode one sentence at a time by its token ids, without padding, chunks or embeddings given from outside."""
    rows = []
    for sequence in sequences:
        states = model.transformer(input_ids=torch.tensor(sequence).unsqueeze(0)).last_hidden_state[0]
        rows.append(head(states.mean(0)))
    return torch.stack(rows)


def left(folder):
    """Return the weights of the published checkpoint and of the last ones, and the log without times."""
    weights = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.safetensors"))}
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return weights, [{name: value for name, value in line.items() if name != "time"} for line in log]
