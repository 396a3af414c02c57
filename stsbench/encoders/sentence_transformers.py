"""Checkpoints of sentence-transformers: their own settings, read so that they can be obeyed natively.

Where a module or an option is not one that is read here, the library itself encodes.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from stsbench.base.errors import UserError
from stsbench.base.extras import require
from stsbench.encoders.callables import CallableEncoder
from stsbench.encoders.checkpoint import Checkpoint, Module, quiet_transformers, told
from stsbench.encoders.checkpoint_files import POOLING_FLAGS, CheckpointFile, DenseFile, PoolingFile
from stsbench.encoders.generation import report_of_loading
from stsbench.encoders.network import ACTIVATIONS, TailModule
from stsbench.encoders.poolers import AUTO
from stsbench.encoders.prompts import LIBRARY_CONFIG, own_prompt
from stsbench.encoders.protocol import Identity
from stsbench.encoders.sides import SidedEncoder
from stsbench.encoders.tokenizer import model_limit, position_limit
from stsbench.encoders.transformer import TransformerSettings
from stsbench.encoders.use import PRECISIONS, TORCH, Use
from stsbench.encoders.weights import refuse_unlike

# The library's names for poolings that are read natively; any other goes through the library.
_POOLINGS = {"cls": "cls_before_pooler", "mean": "avg", "max": "max", "lasttoken": "last"}
_SCHEMAS: dict[str, type[CheckpointFile]] = {"Pooling": PoolingFile, "Dense": DenseFile}
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
    """Return the checkpoint's own pooling, length, prompt, case and what follows the pooling.

    Returns None where a module or an option is not one that is read natively here (such a checkpoint is
    encoded by the sentence-transformers library itself), or where there are no modules.
    """
    modules = checkpoint.modules()
    kinds, folders = [kind_of(module) for module in modules], [module.folder for module in modules]
    for kind, folder in zip(kinds, folders, strict=True):
        _require_config(checkpoint, kind, folder, trust_remote_code=trust_remote_code)
    if kinds[:2] != ["Transformer", "Pooling"] or folders[0] != "" or not _plain_checkpoint(checkpoint):
        return None
    transformer = _transformer_config(checkpoint)
    pooling = _pooling(checkpoint.json(folders[1], "config.json"))
    tail = read_tail(checkpoint, modules[2:], trust_remote_code=trust_remote_code)
    if pooling is None or tail is None or _unusual(transformer):
        return None
    longest, wanted = position_limit(checkpoint), transformer.get("max_seq_length")
    settings = TransformerSettings(
        Use(
            pooling=pooling,
            max_length=min(wanted, longest or wanted) if wanted else model_limit(checkpoint),
            prompt=own_prompt(checkpoint),
        ),
        lower_case=bool(transformer.get("do_lower_case")),
    )
    return settings.with_modules(tail)


def read_tail(
    checkpoint: Checkpoint, modules: Sequence[Module], *, trust_remote_code: bool = False
) -> list[TailModule] | None:
    """Return what modules behind the pooling do; None where one of them is not read natively here."""
    tail = []
    for module in modules:
        kind = kind_of(module)
        _require_config(checkpoint, kind, module.folder, trust_remote_code=trust_remote_code)
        tail.append(_tail_module(checkpoint, kind, module.folder))
    known = [module for module in tail if module is not None]
    return known if len(known) == len(tail) else None


def pooling_config(pooling: str, width: int) -> dict[str, Any] | None:
    """Return the configuration of a pooling module, in the names that every release of the library reads.

    >>> pooling_config("avg", 384)["pooling_mode_mean_tokens"]
    True
    """
    if pooling not in _POOLINGS.values():
        return None
    flags = {key: _POOLINGS[mode] == pooling for key, mode in POOLING_FLAGS.items() if mode in _POOLINGS}
    return {"word_embedding_dimension": width, **flags}


def has_transformer_config(checkpoint: Checkpoint) -> bool:
    """Return whether the checkpoint has the library's file on how many sub-words are read."""
    return any((checkpoint.folder / name).is_file() for name in _TRANSFORMER_CONFIGS)


def transformer_config_files(checkpoint: Checkpoint) -> list[Path]:
    """Return the library's own configuration files at the checkpoint's top, those that are there."""
    names = (*_TRANSFORMER_CONFIGS, LIBRARY_CONFIG)
    return [path for path in (checkpoint.folder / name for name in names) if path.is_file()]


def pools_without_prompt(checkpoint: Checkpoint) -> bool:
    """Return whether the checkpoint's own pooling leaves out the tokens of a prompt."""
    poolings = [module for module in checkpoint.modules() if kind_of(module) == "Pooling"]
    return any(checkpoint.json(module.folder, "config.json").get("include_prompt") is False for module in poolings)


def _transformer_config(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return what the library's file for the Transformer says; nothing if there is no such file."""
    return next(filter(None, map(checkpoint.json, _TRANSFORMER_CONFIGS)), {})


def _require_config(checkpoint: Checkpoint, kind: str, folder: str, *, trust_remote_code: bool) -> None:
    """Refuse a module without its configuration, for which the library or we would put in a default."""
    if kind not in _SCHEMAS:
        return
    file = checkpoint.folder / folder / "config.json"
    config = checkpoint.json(folder, "config.json", schema=_SCHEMAS[kind])
    if not config:
        raise UserError(
            f"{checkpoint.folder / 'modules.json'} names the module {folder or kind}, but {file} "
            f"{'says nothing' if file.is_file() else 'is not there'}: fetch the checkpoint again."
        )
    if kind == "Pooling":
        return
    function = config.get("activation_function")
    if not function or not (function.startswith("torch.") or trust_remote_code):
        raise UserError(
            f"{file} names {'no function' if function is None else repr(function)} as its activation_function, "
            "where a class of torch.nn is expected: another function would give other vectors."
        )


def kind_of(module: Module) -> str:
    """Return the name of a module's class; in full where another library's makes it another module."""
    is_own = module.type.startswith("sentence_transformers.")
    return module.type.rpartition(".")[2] if is_own else module.type


def _plain_checkpoint(checkpoint: Checkpoint) -> bool:
    """Return whether the library would load the network as AutoModel does, and keep its vectors whole."""
    config = checkpoint.json("config.json")
    adapted = (checkpoint.folder / "adapter_config.json").is_file()
    truncated = checkpoint.json(LIBRARY_CONFIG).get("truncate_dim")
    return bool(config) and not config.get("is_encoder_decoder") and not adapted and not truncated


def _pooling(config: dict[str, Any]) -> str | None:
    if config.get("include_prompt") is False:
        return None
    modes = config.get("pooling_mode") or [mode for key, mode in POOLING_FLAGS.items() if config.get(key)]
    modes = [modes] if isinstance(modes, str) else modes
    return _POOLINGS.get(modes[0]) if len(modes) == 1 else None


def _tail_module(checkpoint: Checkpoint, kind: str, folder: str) -> TailModule | None:
    config = checkpoint.json(folder, "config.json")
    keys = ("module_input_name", "module_output_name")
    plain = not config.get("use_residual") and all((config.get(key) or _SENTENCE) == _SENTENCE for key in keys)
    if kind == "Normalize" and plain:
        return TailModule("normalize")
    activation = ACTIVATIONS.get(config.get("activation_function", ""))
    if kind != "Dense" or not plain or activation is None:
        return None
    return TailModule("dense", folder, activation)


def _unusual(transformer: dict[str, Any]) -> bool:
    # Newer configurations can name other tasks, modalities or arguments: those are the library's business.
    rest = {key: value for key, value in transformer.items() if key not in {"max_seq_length", "do_lower_case"}}
    return any(value and value != _PLAIN_TEXT.get(key) for key, value in rest.items())


def load_with_library(checkpoint: Checkpoint, use: Use) -> CallableEncoder | SidedEncoder:
    """Return an encoder that calls `SentenceTransformer.encode`, pooled as the checkpoint says.

    Args:
        checkpoint: whose modules are not all read natively.
        use: whose prompts are texts.
    """
    for option, is_wanted, remedy in (
        ("--backend", use.backend != TORCH, "leave it out"),
        ("--template", use.template is not None, "give its text with --prompt"),
        ("--attention", use.attention != AUTO, "leave it out"),
        ("--attention-mask", use.attention_mask != AUTO, "leave it out"),
    ):
        if is_wanted:
            raise UserError(
                f"{checkpoint.name} has modules that are not read natively, so the sentence-transformers library "
                f"encodes it, and {option} is not for that: {remedy}, or choose a --pooling."
            )
    model: Any = None

    def load_model() -> None:
        nonlocal model
        if model is not None:
            return
        # Every file counts: which of them a module of unknown kind reads is not known here.
        with checkpoint.reading(checkpoint.all_files):
            model = _load(checkpoint, use)

    def encode(prompt: str, sentences: list[str]) -> Any:
        load_model()
        # An empty prompt is given too: without one, the library takes the checkpoint's own.
        vectors = model.encode(sentences, prompt=prompt, show_progress_bar=False, convert_to_numpy=True)
        checkpoint.hashed.require_unchanged()
        return vectors

    elsewhere = checkpoint.code_elsewhere() if use.trust_remote_code else None
    identity = Identity(
        name=checkpoint.name,
        kind="sentence-transformers-library",
        use=replace(
            use,
            pooling="own",
            prompts=None,
            template=None,
            revision=checkpoint.revision,
            trust_remote_code=use.trust_remote_code and bool(checkpoint.named_code()),
        ),
        weights_sha256=None if elsewhere else checkpoint.sha256(checkpoint.all_files()),
    )
    note = (
        f"{checkpoint.name} has modules that are not read natively: the sentence-transformers library "
        "encodes it; sub-word lengths and cut sentences are not counted."
    )
    notes = (note, *notes_on_code(checkpoint.name, elsewhere))

    def prompted(prompt: str) -> CallableEncoder:
        named = replace(identity, use=replace(identity.use, prompt=prompt))
        return CallableEncoder(partial(encode, prompt), named, notes, load_model)

    if use.own_prompts is not None:
        first, second = map(prompted, use.own_prompts)
        return SidedEncoder((first, second), notes)
    return prompted(own_prompt(checkpoint) if use.prompt is None else use.prompt)


def notes_on_code(name: str, elsewhere: str | None) -> tuple[str, ...]:
    """Return what should be known of a model whose code is in another repository; nothing where none is."""
    note = f"{name} runs code from another repository ({elsewhere}), which is not hashed here: no cache."
    return () if elsewhere is None else (note,)


def _load(checkpoint: Checkpoint, use: Use) -> Any:
    require("sentence-transformers", checkpoint.name)
    import torch
    from sentence_transformers import SentenceTransformer

    with quiet_transformers(), told(f"load {checkpoint.name}"):
        model = SentenceTransformer(
            str(checkpoint.folder),
            device=use.device,
            trust_remote_code=use.trust_remote_code,
            local_files_only=True,
        )
        _require_own_weights(checkpoint, model, use.trust_remote_code)
    if use.max_length is not None:
        try:
            model.max_seq_length = use.max_length
        except AttributeError as error:  # of a module that reads whole sentences
            raise UserError(
                f"sentence-transformers gives {checkpoint.name} no maximum length: leave out --max-length."
            ) from error
    return model.to(getattr(torch, PRECISIONS[use.precision]))


def _require_own_weights(checkpoint: Checkpoint, model: Any, trust_remote_code: bool) -> None:
    """Refuse a network of the library whose weights are not those of its configuration.

    The library does not ask Transformers what was missing and what was left over: it is loaded once more for that.
    """
    from transformers import PreTrainedModel

    for module, entry in zip(model, checkpoint.modules(), strict=False):
        network = getattr(module, "auto_model", None)
        if not isinstance(network, PreTrainedModel):
            continue
        folder = checkpoint.folder / entry.folder
        _, info = type(network).from_pretrained(
            folder, config=network.config, output_loading_info=True, trust_remote_code=trust_remote_code
        )
        refuse_unlike(checkpoint.name, str(network.config.model_type), report_of_loading(network, info))
