"""sentence-transformers checkpoints: settings read and written, and the libraries for other modules."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stsbench.base.errors import UserError, require
from stsbench.encoders.checkpoint import AGAIN, Checkpoint, Module, quiet_transformers, reporting_failures
from stsbench.encoders.prompts import LIBRARY_CONFIG, SidedEncoder, in_sides, own_prompt
from stsbench.encoders.protocol import Identity
from stsbench.encoders.simple import CallableEncoder
from stsbench.encoders.tokenizer import model_limit, position_limit
from stsbench.encoders.transformer import TransformerSettings
from stsbench.encoders.use import PRECISIONS, USUAL, Use, option_of
from stsbench.encoders.weights import ACTIVATIONS, TailModule, described, require_own_weights

if TYPE_CHECKING:
    from torch import Tensor

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

_Encode = Callable[[list[str], str], Any]
"""From sentences and the prompt before them to vectors."""


def read_settings(checkpoint: Checkpoint) -> TransformerSettings | None:
    """Returns the checkpoint's own pooling, length, prompt, casing, and the modules after the pooling.

    Returns None if there are no modules, or if one of them, or an option, is not read natively: then the library
    itself encodes.
    """
    modules = checkpoint.modules()
    transformer = next(filter(None, map(checkpoint.json, _TRANSFORMER_CONFIGS)), {})
    kinds = [module.kind for module in modules]
    if (
        kinds[:2] != ["Transformer", "Pooling"]
        or modules[0].folder != ""
        or not _is_plain(checkpoint, transformer)
    ):
        return None
    pooling = _pooling(checkpoint, modules[1].folder)
    tail = [_tail_module(checkpoint, module) for module in modules[2:]]
    if pooling is None or None in tail:
        return None
    length, longest = transformer.get("max_seq_length"), position_limit(checkpoint)
    use = Use(
        pooling=pooling,
        max_length=min(length, longest or length) if length else model_limit(checkpoint),
        prompt=own_prompt(checkpoint),
    )
    lower_case = bool(transformer.get("do_lower_case"))
    closes = bool(tail) and tail[-1] == TailModule("normalize")
    natively = tuple(filter(None, tail[: len(tail) - closes]))
    return TransformerSettings(use, lower_case=lower_case, tail=natively, normalizes=closes)


def _is_plain(checkpoint: Checkpoint, transformer: dict[str, Any]) -> bool:
    """Returns whether the library would load the network as AutoModel does, and keep all dimensions."""
    config = checkpoint.json("config.json")
    # Newer configurations can name another task, modality or argument.
    others = {key: value for key, value in transformer.items() if key not in {"max_seq_length", "do_lower_case"}}
    return (
        bool(config)
        and not config.get("is_encoder_decoder")
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
    if not mode:
        modes = flags = [flag for flag in config if flag.startswith("pooling_mode_") and config[flag]]
    if not modes:
        raise UserError(f"{checkpoint.folder / folder / 'config.json'} names no pooling. {AGAIN}")
    known = [_POOLINGS[flag] for flag in flags if flag in _POOLINGS]
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


def is_of_model2vec(checkpoint: Checkpoint) -> bool:
    """Returns whether model2vec wrote the folder."""
    config, weights = checkpoint.json("config.json"), checkpoint.folder / "model.safetensors"
    kind = config.get("model_type")
    return kind == "model2vec" or (bool(config) and kind is None and "embeddings" in described(weights))


def load_with_library(checkpoint: Checkpoint, use: Use) -> CallableEncoder | SidedEncoder:
    """Returns an encoder that calls sentence-transformers, or model2vec for a folder that it wrote.

    Args:
        checkpoint: with modules that are not read natively.
        use: with its prompts as texts; the pooling is the checkpoint's.
    """
    is_model2vec = is_of_model2vec(checkpoint)
    library, load = ("model2vec", _load_model2vec) if is_model2vec else ("sentence-transformers", _load)
    not_obeyed = ["backend", "template", "attention", "attention_mask", *(["precision"] if is_model2vec else [])]
    if refused := [option_of(name) for name in not_obeyed if getattr(use, name) != getattr(USUAL, name)]:
        raise UserError(
            f"{', '.join(refused)}: not supported for {checkpoint.name}, which only the {library} library reads. "
            "Leave it out, or choose a --pooling."
        )

    @cache
    def model() -> _Encode:
        with reporting_failures(f"load {checkpoint.name}"):
            require(library, checkpoint.name)
            return load(checkpoint, use)

    def encode(prompt: str, sentences: list[str]) -> Any:
        vectors = model()(sentences, prompt)
        checkpoint.require_unchanged()
        return vectors

    own = replace(
        use,
        pooling="own",
        prompts=None,
        template=None,
        revision=checkpoint.revision,
        trust_remote_code=use.trust_remote_code and bool(checkpoint.named_code()),
        device="cpu" if is_model2vec else use.device,
    )
    # Any file may be read by a module of unknown kind.
    runs_code_elsewhere = checkpoint.code_elsewhere(with_code=use.trust_remote_code) is not None
    weights = None if runs_code_elsewhere else checkpoint.sha256(checkpoint.all_files())
    notes = (
        f"{checkpoint.name} is encoded by the {library} library, so truncated sentences are not counted.",
        *checkpoint.own_notes(with_code=use.trust_remote_code),
    )

    def prompted(prompt: str) -> CallableEncoder:
        identity = Identity(checkpoint.name, f"{library}-library", replace(own, prompt=prompt), weights)
        return CallableEncoder(partial(encode, prompt), identity, notes, model)

    return in_sides(prompted(own_prompt(checkpoint) if use.prompt is None else use.prompt), use, prompted)


def _load_model2vec(checkpoint: Checkpoint, use: Use) -> _Encode:
    from model2vec import StaticModel

    length = {} if use.max_length is None else {"max_length": use.max_length}
    model = StaticModel.from_pretrained(checkpoint.folder, **length)
    return lambda sentences, prompt: model.encode([prompt + text for text in sentences], use_multiprocessing=False)


def _load(checkpoint: Checkpoint, use: Use) -> _Encode:
    import torch
    from sentence_transformers import SentenceTransformer

    for module in (module for module in checkpoint.modules() if module.kind == "Dense"):
        # The library replaces a function that it does not trust by a default.
        function = checkpoint.json(module.folder, "config.json").get("activation_function")
        if not str(function).startswith("torch.") and not use.trust_remote_code:
            raise UserError(
                f"{checkpoint.name}: activation_function is {function!r}, expected a class of torch.nn."
            )
    with quiet_transformers(), loading_reports() as reports:
        model = SentenceTransformer(
            str(checkpoint.folder),
            device=use.device,
            trust_remote_code=use.trust_remote_code,
            local_files_only=True,
        )
    for network, report in reports:
        require_own_weights(checkpoint.name, network, report)
    if use.max_length is not None:
        try:
            model.max_seq_length = use.max_length
        except AttributeError as error:  # a module that reads whole sentences
            raise UserError(f"{checkpoint.name} has no maximum length. Leave out --max-length.") from error
    model.to(getattr(torch, PRECISIONS[use.precision]))
    # An empty prompt is passed too: otherwise the library takes the checkpoint's own.
    return lambda sentences, prompt: model.encode(
        sentences, prompt=prompt, show_progress_bar=False, convert_to_numpy=True
    )


@contextmanager
def loading_reports() -> Iterator[list[tuple[Any, Mapping[str, Any]]]]:
    """Collects Transformers' reports of missing and unexpected weights, which the library ignores."""
    from transformers import PreTrainedModel

    reports: list[tuple[Any, Mapping[str, Any]]] = []
    original = PreTrainedModel.__dict__["from_pretrained"]

    def load(cls: type, *arguments: Any, **options: Any) -> Any:
        model, report = original.__func__(cls, *arguments, **options | {"output_loading_info": True})
        reports.append((model, report))
        return model

    PreTrainedModel.from_pretrained = classmethod(load)
    try:
        yield reports
    finally:
        PreTrainedModel.from_pretrained = original


_PROMPT = "own"  # the name of the prompt that is put before every sentence


class Dense(NamedTuple):
    """A dense layer after the pooling: x W^T + b, then an activation.

    Attributes:
        tensors: `weight`, shape (outputs, inputs), and `bias` unless the layer has none.
        activation: the full name of a class of `torch.nn`.
    """

    tensors: "Mapping[str, Tensor]"
    activation: str = "torch.nn.modules.linear.Identity"


def write_modules(
    folder: Path, settings: TransformerSettings, width: int, after: Sequence[tuple[str, str, Dense | None]]
) -> None:
    """Writes pooling, maximum length, prompt, and the modules after the pooling into a network's folder.

    Args:
        folder: of the checkpoint.
        settings: the pooling, maximum length, prompt and casing.
        width: dimensions of the pooled vectors.
        after: what follows the pooling, as (folder, class, layer), with None for the layer if the folder has its
            files already or the class has no weights.
    """
    from safetensors.torch import save_file

    use = settings.use
    if use.pooling not in _POOLINGS.values():
        raise UserError(f"sentence-transformers has no pooling {use.pooling}: choose another.")
    places = [("", "Transformer"), ("1_Pooling", "Pooling"), *((place, kind) for place, kind, _ in after)]
    listing = [
        {"idx": number, "name": str(number), "path": place, "type": f"sentence_transformers.models.{kind}"}
        for number, (place, kind) in enumerate(places)
    ]
    _write_json(folder / "modules.json", listing)
    # The keys that every release of the library reads.
    pooling = {"word_embedding_dimension": width} | {flag: own == use.pooling for flag, own in _POOLINGS.items()}
    _write_json(folder / "1_Pooling" / "config.json", pooling)
    about = {"max_seq_length": use.max_length, "do_lower_case": settings.lower_case}
    _write_json(folder / "sentence_bert_config.json", about)
    if use.prompt:
        prompts = {"prompts": {_PROMPT: use.prompt}, "default_prompt_name": _PROMPT}
        _write_json(folder / LIBRARY_CONFIG, prompts)
    for place, _, layer in after:
        (folder / place).mkdir(parents=True, exist_ok=True)
        if layer is not None:
            outputs, inputs = layer.tensors["weight"].shape
            config = {"in_features": inputs, "out_features": outputs, "bias": "bias" in layer.tensors}
            _write_json(folder / place / "config.json", config | {"activation_function": layer.activation})
            tensors = {f"linear.{name}": tensor.detach().cpu().clone() for name, tensor in layer.tensors.items()}
            save_file(tensors, folder / place / "model.safetensors")


def _write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
