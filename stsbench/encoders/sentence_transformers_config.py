"""Reading a sentence-transformers checkpoint's own settings, so that they can be obeyed natively."""

from typing import Any

from stsbench.encoders.checkpoint import Checkpoint
from stsbench.encoders.tail import ACTIVATIONS, TailModule
from stsbench.encoders.transformer import TransformerSettings, model_limit

# The library's names for poolings that are read natively; any other goes through the library.
_POOLINGS = {"cls": "cls_before_pooler", "mean": "avg", "max": "max", "lasttoken": "last"}
_LEGACY_POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_TRANSFORMER_CONFIGS = tuple(
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)

_SENTENCE = "sentence_embedding"
_PLAIN_TEXT: dict[str, Any] = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
}


def read_settings(checkpoint: Checkpoint) -> TransformerSettings | None:
    """Return the checkpoint's own pooling, length, prompt, case and what follows the pooling.

    Returns None where a module or an option is not one that is read natively here: such a checkpoint is
    encoded by the sentence-transformers library itself.
    """
    modules = checkpoint.json_value("modules.json")
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    folders = [str(module.get("path", "")) for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or folders[0] != "":
        return None
    transformer = next(filter(None, map(checkpoint.json, _TRANSFORMER_CONFIGS)), {})
    pooling = _pooling(checkpoint.json(folders[1], "config.json"))
    tail = [_tail_module(checkpoint, *module) for module in zip(kinds[2:], folders[2:], strict=True)]
    prompt = own_prompt(checkpoint)
    excludes_prompt = checkpoint.json(folders[1], "config.json").get("include_prompt") is False
    if pooling is None or None in tail or (prompt and excludes_prompt) or _unusual(transformer):
        return None
    return TransformerSettings(
        pooling=pooling,
        max_length=transformer.get("max_seq_length") or model_limit(checkpoint),
        prompt=prompt,
        lower_case=bool(transformer.get("do_lower_case")),
        tail=tuple(module for module in tail if module is not None),
    )


def own_prompt(checkpoint: Checkpoint) -> str:
    """Return the prompt that the checkpoint itself puts before every sentence, if it names one."""
    config = checkpoint.json("config_sentence_transformers.json")
    return str((config.get("prompts") or {}).get(config.get("default_prompt_name")) or "")


def _pooling(config: dict[str, Any]) -> str | None:
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in _LEGACY_POOLING_KEYS.items() if config.get(key)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else list(modes)
    return _POOLINGS.get(modes[0]) if len(modes) == 1 else None


def _tail_module(checkpoint: Checkpoint, kind: str, folder: str) -> TailModule | None:
    config = checkpoint.json(folder, "config.json")
    keys = ("module_input_name", "module_output_name")
    plain = not config.get("use_residual") and all(config.get(key, _SENTENCE) == _SENTENCE for key in keys)
    if kind == "Normalize" and plain:
        return TailModule("normalize")
    activation = ACTIVATIONS.get(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    if kind != "Dense" or not plain or activation is None:
        return None
    return TailModule("dense", folder, activation)


def _unusual(transformer: dict[str, Any]) -> bool:
    # Newer configurations can name other tasks, modalities or arguments: those are the library's business.
    rest = {key: value for key, value in transformer.items() if key not in {"max_seq_length", "do_lower_case"}}
    return any(value != _PLAIN_TEXT.get(key) for key, value in rest.items())
