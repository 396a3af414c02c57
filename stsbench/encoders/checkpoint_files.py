"""What the files of a checkpoint may say: one schema a kind of file, which `Checkpoint.json` holds them against.

A schema names the keys that are read here, or that Transformers, sentence-transformers and peft read first. All
other keys are the library's business, whose errors become sentences too (`checkpoint.told`). A null counts as no
value, as it does in those libraries.
"""

import reprlib
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Text = Annotated[str | None, Field(description="a text")]
Flag = Annotated[bool | None, Field(description="true or false")]
Whole = Annotated[int | None, Field(description="a whole number")]
Texts = Annotated[list[str] | None, Field(description="a list of texts")]
Named = Annotated[dict[str, Any] | None, Field(description="an object")]
NamedTexts = Annotated[dict[str, str] | None, Field(description="an object of texts")]
_Positive = Annotated[int, Field(ge=1)]
Size = Annotated[_Positive | list[int] | None, Field(description="a number above 0")]  # a list: layer by layer

POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""The older keys of a pooling's configuration, and what `pooling_mode` calls them."""


class CheckpointFile(BaseModel):
    """A kind of file; it may hold more keys than those that are named."""

    model_config = ConfigDict(strict=True, extra="allow", defer_build=True)


class ModelConfig(CheckpointFile):
    """`config.json`, of a network."""

    model_type: Text = None
    architectures: Texts = None
    auto_map: Named = None
    is_encoder_decoder: Flag = None
    pad_token_id: Whole = None
    max_position_embeddings: Whole = None
    n_positions: Whole = None
    vocab_size: Size = None
    hidden_size: Size = None
    intermediate_size: Size = None
    num_hidden_layers: Size = None
    num_attention_heads: Size = None
    dim: Size = None
    hidden_dim: Size = None
    n_heads: Size = None
    n_layers: Size = None
    n_embd: Size = None
    n_head: Size = None
    n_layer: Size = None
    hidden_act: Text = None
    layer_norm_eps: Annotated[float | None, Field(description="a number")] = None


class AddedToken(CheckpointFile):
    """A token with how it is found in a text."""

    content: str


Token = Annotated[str | AddedToken | None, Field(description="a token's text, or an object with it as content")]


class TokenizerConfig(CheckpointFile):
    """`tokenizer_config.json`, and `special_tokens_map.json`, which says a part of it."""

    tokenizer_class: Text = None
    auto_map: Named = None
    model_max_length: Annotated[float | None, Field(description="a number")] = None
    added_tokens_decoder: Annotated[dict[str, AddedToken] | None, Field(description="tokens by number")] = None
    unk_token: Token = None
    pad_token: Token = None
    mask_token: Token = None
    cls_token: Token = None
    sep_token: Token = None
    bos_token: Token = None
    eos_token: Token = None


class ModuleEntry(CheckpointFile):
    """An entry of `modules.json`."""

    type: Annotated[str, Field(min_length=1, description="the name of a class")]
    path: Annotated[str, Field(description="a folder")]


class TransformerFile(CheckpointFile):
    """`sentence_bert_config.json` and its kin."""

    max_seq_length: Annotated[_Positive | None, Field(description="a number of sub-words")] = None
    do_lower_case: Flag = None


class LibraryFile(CheckpointFile):
    """`config_sentence_transformers.json`."""

    prompts: NamedTexts = None
    default_prompt_name: Text = None
    truncate_dim: Whole = None


class PoolingFile(CheckpointFile):
    """The `config.json` of a pooling."""

    pooling_mode: Annotated[str | list[str] | None, Field(description="a pooling's name, or several")] = None
    include_prompt: Flag = None

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if self.pooling_mode:
            return self
        flags = {key: value for key, value in (self.model_extra or {}).items() if key.startswith("pooling_mode_")}
        if unknown := [key for key, value in flags.items() if value and key not in POOLING_FLAGS]:
            raise ValueError(f"asks for {unknown[0]}, which is no known pooling")
        if not all(isinstance(value, bool) for value in flags.values()):
            raise ValueError("says neither true nor false of a pooling")
        if not any(flags.values()):
            raise ValueError("names no pooling")
        return self


class DenseFile(CheckpointFile):
    """The `config.json` of a dense layer."""

    in_features: Whole = None
    out_features: Whole = None
    bias: Flag = None
    activation_function: Text = None
    use_residual: Flag = None
    module_input_name: Text = None
    module_output_name: Text = None


class Truncation(CheckpointFile):
    """Where a tokenizer cuts a text."""

    max_length: Annotated[int, Field(ge=0)]
    direction: Literal["Right", "Left"] = "Right"


class TokenizerFile(CheckpointFile):
    """`tokenizer.json`, of which `tokenizers` reads the rest."""

    truncation: Annotated[Truncation | None, Field(description="an object with a max_length")] = None


class Model2VecFile(CheckpointFile):
    """What model2vec reads of its `config.json`, or of the library's file where it finds that instead."""

    normalize: Flag = None
    max_length: Annotated[_Positive | None, Field(description="a number of sub-words")] = None


class AdapterFile(CheckpointFile):
    """`adapter_config.json`."""

    peft_type: Text = None
    base_model_name_or_path: Text = None
    revision: Text = None


class IndexFile(CheckpointFile):
    """The index of weights in several files."""

    weight_map: NamedTexts = None


class NotesFile(CheckpointFile):
    """`stsbench.json`."""

    notes: Texts = None


_BY_NAME: dict[str, type[CheckpointFile]] = {
    "config.json": ModelConfig,
    "tokenizer_config.json": TokenizerConfig,
    "special_tokens_map.json": TokenizerConfig,
    "config_sentence_transformers.json": LibraryFile,
    "adapter_config.json": AdapterFile,
    "stsbench.json": NotesFile,
}


def schema_of(parts: tuple[str, ...]) -> type[CheckpointFile]:
    """Return the schema of a file by its place in a checkpoint; for a module's file its reader names one.

    >>> schema_of(("sentence_roberta_config.json",)).__name__
    'TransformerFile'
    """
    *folder, name = parts
    if name.startswith("sentence_") and name.endswith("_config.json"):
        return TransformerFile
    if name.endswith(".index.json"):
        return IndexFile
    return CheckpointFile if any(folder) else _BY_NAME.get(name, CheckpointFile)


def mistake_in(content: Any, schema: type[CheckpointFile]) -> str:
    """Return what is wrong in what a file says, to stand behind its name; empty for nothing.

    >>> mistake_in({"architectures": 5}, ModelConfig)
    'gives architectures as 5, where a list of texts is expected'
    """
    try:
        schema.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "value_error":
            return str(first["ctx"]["error"])
        if not first["loc"]:
            return "holds no JSON object"
        key = str(first["loc"][0])
        expected = schema.model_fields[key].description
        mistake = f"gives {key} as {reprlib.repr(content[key])}" if key in content else f"gives no {key}"
        return f"{mistake}, where {expected} is expected"
    return ""
