"""Tiny Transformers with random weights, of any kind that Transformers knows."""

from typing import Any


def tiny(kind: str, **sizes: Any) -> Any:
    """Return a Transformer in training, two layers of two heads and 16 wide; `sizes` are its own."""
    import torch
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
