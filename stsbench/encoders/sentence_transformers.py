"""sentence-transformers checkpoints: their settings, and the library itself for what is not read natively."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.extras import require
from stsbench.encoders.callables import CallableEncoder
from stsbench.encoders.checkpoint import AGAIN, Checkpoint, Module
from stsbench.encoders.hub import ADAPTER_CONFIG
from stsbench.encoders.libraries import quiet_transformers, reporting_failures
from stsbench.encoders.modules import ACTIVATIONS, TailModule
from stsbench.encoders.prompts import LIBRARY_CONFIG, own_prompt
from stsbench.encoders.protocol import Identity
from stsbench.encoders.sides import SidedEncoder
from stsbench.encoders.tokenizer import model_limit, position_limit
from stsbench.encoders.transformer import TransformerSettings
from stsbench.encoders.use import PRECISIONS, USUAL, Use, option_of
from stsbench.encoders.weights import require_own_weights

_POOLINGS = {
    "pooling_mode_cls_token": "cls_before_pooler",
    "pooling_mode_mean_tokens": "avg",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}
"""Poolings that are read natively, by the library's flags. Newer configurations have `pooling_mode: mean`."""

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
    """Returns the checkpoint's own pooling, length, prompt, casing, and what follows the pooling.

    Returns None if there are no modules, or if one of them, or an option, is not read natively: then the library
    itself encodes.
    """
    modules, transformer = checkpoint.modules(), _transformer_config(checkpoint)
    kinds = [module.kind for module in modules]
    if (
        kinds[:2] != ["Transformer", "Pooling"]
        or modules[0].folder != ""
        or not _is_plain(checkpoint, transformer)
    ):
        return None
    pooling = _pooling(checkpoint, modules[1].folder)
    tail = read_tail(checkpoint, modules[2:])
    if pooling is None or tail is None:
        return None
    length, longest = transformer.get("max_seq_length"), position_limit(checkpoint)
    use = Use(
        pooling=pooling,
        max_length=min(length, longest or length) if length else model_limit(checkpoint),
        prompt=own_prompt(checkpoint),
    )
    lower_case = bool(transformer.get("do_lower_case"))
    return TransformerSettings(use, lower_case=lower_case).with_modules(tail)


def read_tail(checkpoint: Checkpoint, modules: Sequence[Module]) -> list[TailModule] | None:
    """Returns the modules after the pooling, or None if one of them is not read natively."""
    tail = [_tail_module(checkpoint, module) for module in modules]
    return None if None in tail else [module for module in tail if module is not None]


def pooling_config(pooling: str, width: int) -> dict[str, Any] | None:
    """Returns the configuration of a pooling module, with the keys that every release of the library reads.

    >>> pooling_config("avg", 384)["pooling_mode_mean_tokens"]
    True
    """
    if pooling not in _POOLINGS.values():
        return None
    return {"word_embedding_dimension": width} | {flag: own == pooling for flag, own in _POOLINGS.items()}


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


def _transformer_config(checkpoint: Checkpoint) -> dict[str, Any]:
    files = [checkpoint.json(name) for name in _TRANSFORMER_CONFIGS]
    return next(filter(None, files), files[0])


def _is_plain(checkpoint: Checkpoint, transformer: dict[str, Any]) -> bool:
    """Returns whether the library would load the network as AutoModel does, and keep all dimensions."""
    config = checkpoint.json("config.json")
    adapted = (checkpoint.folder / ADAPTER_CONFIG).is_file()
    # Newer configurations can name another task, modality or argument.
    others = {key: value for key, value in transformer.items() if key not in {"max_seq_length", "do_lower_case"}}
    return (
        bool(config)
        and not config.get("is_encoder_decoder")
        and not adapted
        and not checkpoint.json(LIBRARY_CONFIG).get("truncate_dim")
        and all(not value or value == _PLAIN_TEXT.get(key) for key, value in others.items())
    )


def _pooling(checkpoint: Checkpoint, folder: str) -> str | None:
    """Returns the pooling of a configuration; None if it is not read natively.

    Raises:
        UserError: if it names none, for which the library has a default.
    """
    config = checkpoint.json(folder, "config.json")
    mode = config.get("pooling_mode")
    modes = [mode] if isinstance(mode, str) else mode or []
    flags = [f"pooling_mode_{name}{suffix}" for name in modes for suffix in ("", "_token", "_tokens")]
    known = [_POOLINGS[flag] for flag in flags if flag in _POOLINGS]
    if not mode:
        modes = [flag for flag in config if flag.startswith("pooling_mode_") and config[flag]]
        known = [_POOLINGS[flag] for flag in modes if flag in _POOLINGS]
    if not modes:
        raise UserError(f"{checkpoint.folder / folder / 'config.json'} names no pooling. {AGAIN}")
    return known[0] if len(modes) == len(known) == 1 and config.get("include_prompt") is not False else None


def _tail_module(checkpoint: Checkpoint, module: Module) -> TailModule | None:
    config = checkpoint.json(module.folder, "config.json")
    names = [config.get(key) or _SENTENCE for key in ("module_input_name", "module_output_name")]
    if config.get("use_residual") or names != [_SENTENCE] * 2:
        return None
    if module.kind == "Normalize":
        return TailModule("normalize")
    activation = ACTIVATIONS.get(str(config.get("activation_function")))
    is_dense = module.kind == "Dense" and activation is not None
    return TailModule("dense", module.folder, activation or "") if is_dense else None


def load_with_library(checkpoint: Checkpoint, use: Use) -> CallableEncoder | SidedEncoder:
    """Returns an encoder that calls `SentenceTransformer.encode`, pooled as the checkpoint says.

    Args:
        checkpoint: with modules that are not read natively.
        use: with its prompts as texts.
    """
    refused = [
        option_of(name)
        for name in ("backend", "template", "attention", "attention_mask")
        if getattr(use, name) != getattr(USUAL, name)
    ]
    if refused:
        raise UserError(
            f"{', '.join(refused)}: not for {checkpoint.name}, which has modules that only the "
            "sentence-transformers library reads. Leave it out, or choose a --pooling."
        )
    dense = [module for module in checkpoint.modules() if module.kind == "Dense"]
    for function in (checkpoint.json(module.folder, "config.json").get("activation_function") for module in dense):
        # The library replaces a function that it does not trust by a default.
        if not str(function).startswith("torch.") and not use.trust_remote_code:
            raise UserError(
                f"{checkpoint.name}: activation_function is {function!r}, expected a class of torch.nn."
            )

    @cache
    def model() -> Any:
        # Any file may be read by a module of unknown kind.
        with checkpoint.reading(checkpoint.all_files):
            return _load(checkpoint, use)

    def encode(prompt: str, sentences: list[str]) -> Any:
        # An empty prompt is passed too: otherwise the library takes the checkpoint's own.
        vectors = model().encode(sentences, prompt=prompt, show_progress_bar=False, convert_to_numpy=True)
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
        f"{checkpoint.name} is encoded by the sentence-transformers library, so truncated sentences are not "
        "counted.",
        *notes_on_code(checkpoint.name, elsewhere),
    )

    def prompted(prompt: str) -> CallableEncoder:
        identity = Identity(
            checkpoint.name, "sentence-transformers-library", replace(own, prompt=prompt), weights_sha256=weights
        )
        return CallableEncoder(partial(encode, prompt), identity, notes, model)

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

    with quiet_transformers(), reporting_failures(f"load {checkpoint.name}"), loading_reports() as reports:
        model = SentenceTransformer(
            str(checkpoint.folder),
            device=use.device,
            trust_remote_code=use.trust_remote_code,
            local_files_only=True,
        )
        if use.max_length is not None:
            try:
                model.max_seq_length = use.max_length
            except AttributeError as error:  # a module that reads whole sentences
                raise UserError(f"{checkpoint.name} has no maximum length. Leave out --max-length.") from error
    for report in reports:
        require_own_weights(checkpoint.name, report)
    return model.to(getattr(torch, PRECISIONS[use.precision]))


@contextmanager
def loading_reports() -> Iterator[list[Mapping[str, Any]]]:
    """Collects Transformers' reports of missing and unexpected weights, for which the library does not ask."""
    from transformers import PreTrainedModel

    reports: list[Mapping[str, Any]] = []
    original = PreTrainedModel.__dict__["from_pretrained"]

    def load(cls: type, *arguments: Any, **options: Any) -> Any:
        model, report = original.__func__(cls, *arguments, **options | {"output_loading_info": True})
        reports.append(report)
        return model

    PreTrainedModel.from_pretrained = classmethod(load)
    try:
        yield reports
    finally:
        PreTrainedModel.from_pretrained = original
