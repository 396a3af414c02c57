"""sentence-transformers checkpoints: their settings, and the library itself for what is not read natively."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.extras import require
from stsbench.encoders.callables import CallableEncoder
from stsbench.encoders.checkpoint import AGAIN, Checkpoint, JsonFile, Module
from stsbench.encoders.generation import report_of_loading
from stsbench.encoders.libraries import loading_reports, quiet_transformers, told
from stsbench.encoders.modules import ACTIVATIONS, TailModule
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.prompts import LIBRARY_CONFIG, own_prompt
from stsbench.encoders.protocol import Identity
from stsbench.encoders.sides import SidedEncoder
from stsbench.encoders.tokenizer import model_limit, position_limit
from stsbench.encoders.transformer import TransformerSettings
from stsbench.encoders.use import PRECISIONS, TORCH, Use
from stsbench.encoders.weights import require_own_weights

# Poolings that are read natively, by the library's names.
_POOLINGS = {"cls": "cls_before_pooler", "mean": "avg", "max": "max", "lasttoken": "last"}
_POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""The older keys of a pooling's configuration, with their newer names."""

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


def read_settings(checkpoint: Checkpoint, *, trust_remote_code: bool = False) -> TransformerSettings | None:
    """Returns the checkpoint's own pooling, length, prompt, casing, and what follows the pooling.

    Returns None if there are no modules, or if one of them, or an option, is not read natively: then the library
    itself encodes.
    """
    modules = checkpoint.modules()
    for module in modules:
        _require_config(checkpoint, module, trust_remote_code=trust_remote_code)
    kinds = [module.kind for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or modules[0].folder != "" or not _plain_checkpoint(checkpoint):
        return None
    transformer = _transformer_config(checkpoint)
    pooling = _pooling(checkpoint.json(modules[1].folder, "config.json"))
    tail = read_tail(checkpoint, modules[2:], trust_remote_code=trust_remote_code)
    length, lower_case = transformer.value("max_seq_length", int, 1), transformer.value("do_lower_case", bool)
    if pooling is None or tail is None or _unusual(transformer):
        return None
    longest = position_limit(checkpoint)
    use = Use(
        pooling=pooling,
        max_length=min(length, longest or length) if length else model_limit(checkpoint),
        prompt=own_prompt(checkpoint),
    )
    return TransformerSettings(use, lower_case=bool(lower_case)).with_modules(tail)


def read_tail(
    checkpoint: Checkpoint, modules: Sequence[Module], *, trust_remote_code: bool = False
) -> list[TailModule] | None:
    """Returns the modules after the pooling, or None if one of them is not read natively."""
    tail = []
    for module in modules:
        _require_config(checkpoint, module, trust_remote_code=trust_remote_code)
        tail.append(_tail_module(checkpoint, module))
    known = [module for module in tail if module is not None]
    return known if len(known) == len(tail) else None


def pooling_config(pooling: str, width: int) -> dict[str, Any] | None:
    """Returns the configuration of a pooling module, with the keys that every release of the library reads.

    >>> pooling_config("avg", 384)["pooling_mode_mean_tokens"]
    True
    """
    if pooling not in _POOLINGS.values():
        return None
    flags = {key: _POOLINGS[mode] == pooling for key, mode in _POOLING_FLAGS.items() if mode in _POOLINGS}
    return {"word_embedding_dimension": width, **flags}


def has_transformer_config(checkpoint: Checkpoint) -> bool:
    """Returns whether the checkpoint has the library's file with the maximum length."""
    return any((checkpoint.folder / name).is_file() for name in _TRANSFORMER_CONFIGS)


def transformer_config_files(checkpoint: Checkpoint) -> list[Path]:
    """Returns the library's configuration files at the top of the checkpoint."""
    names = (*_TRANSFORMER_CONFIGS, LIBRARY_CONFIG)
    return [path for path in (checkpoint.folder / name for name in names) if path.is_file()]


def pools_without_prompt(checkpoint: Checkpoint) -> bool:
    """Returns whether the checkpoint's own pooling leaves out the prompt's tokens."""
    poolings = [module for module in checkpoint.modules() if module.kind == "Pooling"]
    return any(checkpoint.json(module.folder, "config.json").get("include_prompt") is False for module in poolings)


def _transformer_config(checkpoint: Checkpoint) -> JsonFile:
    files = [checkpoint.json(name) for name in _TRANSFORMER_CONFIGS]
    return next(filter(None, files), files[0])


def _require_config(checkpoint: Checkpoint, module: Module, *, trust_remote_code: bool) -> None:
    """Raises a UserError for a pooling or dense layer without configuration, which would get a default."""
    if module.kind not in {"Pooling", "Dense"}:
        return
    config = checkpoint.json(module.folder, "config.json")
    if not config:
        raise UserError(f"{config.path} is missing or empty: the module has no configuration. {AGAIN}")
    if module.kind == "Pooling":
        _pooling_modes(config)
        return
    function = config.value("activation_function", str)
    if not function or not (function.startswith("torch.") or trust_remote_code):
        raise UserError(
            f"{config.path}: activation_function is {function!r}, expected a class of torch.nn. {AGAIN}"
        )


def _pooling_modes(config: JsonFile) -> list[str]:
    """Returns the poolings that a configuration names, by the library's names."""
    config.value("include_prompt", bool)
    if mode := config.get("pooling_mode"):
        return [mode] if isinstance(mode, str) else config.texts("pooling_mode")
    chosen = [key for key in config if key.startswith("pooling_mode_") and config.value(key, bool)]
    if not chosen or not set(chosen) <= _POOLING_FLAGS.keys():
        raise UserError(f"{config.path} names no known pooling. {AGAIN}")
    return [_POOLING_FLAGS[key] for key in chosen]


def _plain_checkpoint(checkpoint: Checkpoint) -> bool:
    """Returns whether the library would load the network as AutoModel does, and keep all dimensions."""
    config = checkpoint.json("config.json")
    adapted = (checkpoint.folder / "adapter_config.json").is_file()
    truncated = checkpoint.json(LIBRARY_CONFIG).value("truncate_dim", int)
    return bool(config) and not config.value("is_encoder_decoder", bool) and not adapted and not truncated


def _pooling(config: JsonFile) -> str | None:
    modes = _pooling_modes(config)
    native = len(modes) == 1 and config.get("include_prompt") is not False
    return _POOLINGS.get(modes[0]) if native else None


def _tail_module(checkpoint: Checkpoint, module: Module) -> TailModule | None:
    config = checkpoint.json(module.folder, "config.json")
    keys = ("module_input_name", "module_output_name")
    plain = not config.get("use_residual") and all((config.get(key) or _SENTENCE) == _SENTENCE for key in keys)
    if module.kind == "Normalize" and plain:
        return TailModule("normalize")
    activation = ACTIVATIONS.get(config.get("activation_function", ""))
    if module.kind != "Dense" or not plain or activation is None:
        return None
    return TailModule("dense", module.folder, activation)


def _unusual(transformer: JsonFile) -> bool:
    """Returns whether a newer configuration names another task, modality or argument."""
    rest = {key: value for key, value in transformer.items() if key not in {"max_seq_length", "do_lower_case"}}
    return any(value and value != _PLAIN_TEXT.get(key) for key, value in rest.items())


def load_with_library(checkpoint: Checkpoint, use: Use) -> CallableEncoder | SidedEncoder:
    """Returns an encoder that calls `SentenceTransformer.encode`, pooled as the checkpoint says.

    Args:
        checkpoint: with modules that are not read natively.
        use: with its prompts as texts.
    """
    for option, is_given, remedy in (
        ("--backend", use.backend != TORCH, "Leave it out"),
        ("--template", use.template is not None, "Use --prompt"),
        ("--attention", use.attention != AUTO, "Leave it out"),
        ("--attention-mask", use.attention_mask != AUTO, "Leave it out"),
    ):
        if is_given:
            raise UserError(
                f"{option} does not apply to {checkpoint.name}: it has modules that only the "
                f"sentence-transformers library reads. {remedy}, or choose a --pooling."
            )
    model: Any = None

    def load_model() -> None:
        nonlocal model
        if model is None:
            # Any file may be read by a module of unknown kind.
            with checkpoint.reading(checkpoint.all_files):
                model = _load(checkpoint, use)

    def encode(prompt: str, sentences: list[str]) -> Any:
        load_model()
        # An empty prompt is passed too: otherwise the library takes the checkpoint's own.
        vectors = model.encode(sentences, prompt=prompt, show_progress_bar=False, convert_to_numpy=True)
        checkpoint.hashed.require_unchanged()
        return vectors

    elsewhere = checkpoint.code_elsewhere() if use.trust_remote_code else None
    own = replace(
        use,
        pooling="own",
        prompts=None,
        template=None,
        revision=checkpoint.revision,
        trust_remote_code=use.trust_remote_code and bool(checkpoint.named_code()),
    )
    weights = None if elsewhere else checkpoint.sha256(checkpoint.all_files())
    notes = (
        f"{checkpoint.name} has modules that are not read natively: the sentence-transformers library encodes it, "
        "and sub-word lengths and truncated sentences are not counted.",
        *notes_on_code(checkpoint.name, elsewhere),
    )

    def prompted(prompt: str) -> CallableEncoder:
        identity = Identity(
            checkpoint.name, "sentence-transformers-library", replace(own, prompt=prompt), weights_sha256=weights
        )
        return CallableEncoder(partial(encode, prompt), identity, notes, load_model)

    if use.own_prompts is not None:
        first, second = map(prompted, use.own_prompts)
        return SidedEncoder((first, second), notes)
    return prompted(own_prompt(checkpoint) if use.prompt is None else use.prompt)


def notes_on_code(name: str, elsewhere: str | None) -> tuple[str, ...]:
    """Returns a note on a model whose code is in another repository; none if it is not."""
    note = (
        f"{name} runs code from another repository ({elsewhere}), which is not hashed: its vectors are not cached."
    )
    return () if elsewhere is None else (note,)


def _load(checkpoint: Checkpoint, use: Use) -> Any:
    require("sentence-transformers", checkpoint.name)
    import torch
    from sentence_transformers import SentenceTransformer

    with quiet_transformers(), told(f"load {checkpoint.name}"), loading_reports() as reports:
        model = SentenceTransformer(
            str(checkpoint.folder),
            device=use.device,
            trust_remote_code=use.trust_remote_code,
            local_files_only=True,
        )
    for network, report in reports:
        require_own_weights(checkpoint.name, report_of_loading(network, report))
    if use.max_length is not None:
        try:
            model.max_seq_length = use.max_length
        except AttributeError as error:  # a module that reads whole sentences
            raise UserError(f"{checkpoint.name} has no maximum length. Leave out --max-length.") from error
    return model.to(getattr(torch, PRECISIONS[use.precision]))
