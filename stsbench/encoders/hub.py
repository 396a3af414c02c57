"""Downloading a checkpoint from the Hugging Face Hub: only the files that loading reads."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from stsbench.base.errors import UserError
from stsbench.base.words import closest

MINILM = "sentence-transformers/all-MiniLM-L6-v2"

PACKAGED = "minilm"
"""The name of the model that comes as a Python package: all-MiniLM-L6-v2."""

ADAPTER_CONFIG = "adapter_config.json"
"""The file that marks a folder as an adapter (LoRA) and names its base model."""

# Beside the root, the folders of sentence-transformers modules hold weights (`2_Dense`). Other folders hold
# exports for other runtimes, or a training's optimiser.
MODULE_FOLDER = re.compile(r"\d+_.*")

_SETTINGS = ("*.json", "*.txt", "*.model", "*.tiktoken", "bpe.codes")
_WEIGHTS = re.compile(r"(model|pytorch_model|adapter_model)(-\d+-of-\d+)?\.(safetensors|bin)")

_TIMEOUT_SECONDS = 20.0
_HTTP_CLIENTS = {"httpx", "httpx2", "httpcore", "requests"}


def from_hub(name: str, revision: str | None, *, with_code: bool) -> Path:
    """Downloads what is needed of a model and returns its folder, which is named after the commit."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        # Unlike listing the files, this is not retried again and again without a network.
        info = HfApi().model_info(name, revision=revision, timeout=_TIMEOUT_SECONDS)
        needed = needed_files([sibling.rfilename for sibling in info.siblings or []], with_code=with_code)
        return Path(snapshot_download(name, revision=revision, allow_patterns=needed))
    except RevisionNotFoundError as error:
        raise UserError(f"the model {name} has no revision {revision!r} on the Hugging Face Hub.") from error
    except (HFValidationError, RepositoryNotFoundError) as error:
        raise UserError(
            f"no such model: {name} is neither a folder nor a model visible to you on the Hugging Face Hub "
            f"(private and gated models need `hf auth login`).{_suggestion(name)}"
        ) from error
    except Exception as error:
        # No answer, offline mode or a full disk: an OSError, or an exception of the HTTP client.
        if not isinstance(error, OSError) and type(error).__module__.partition(".")[0] not in _HTTP_CLIENTS:
            raise
        return _downloaded_before(name, revision, error)


def needed_files(files: Sequence[str], *, with_code: bool = False) -> list[str]:
    """Returns the files of a repository that loading reads: of several formats of the same weights only one.

    >>> needed_files(["config.json", "model.safetensors", "pytorch_model.bin", "2_Dense/pytorch_model.bin"])
    ['config.json', 'model.safetensors', '2_Dense/pytorch_model.bin']
    """
    paths = [PurePosixPath(file) for file in files]
    paths = [path for path in paths if len(path.parts) == 1 or MODULE_FOLDER.fullmatch(path.parts[0])]
    settings = (*_SETTINGS, "*.py") if with_code else _SETTINGS
    weights = [path for path in paths if _WEIGHTS.fullmatch(path.name)]
    safe = {path.parent for path in weights if path.suffix == ".safetensors"}
    read = {path for path in weights if path.suffix == ".safetensors" or path.parent not in safe}
    return [str(path) for path in paths if path in read or any(map(path.match, settings))]


def _downloaded_before(name: str, revision: str | None, reason: Exception) -> Path:
    """Returns the folder of an earlier download if the Hub cannot be reached."""
    from huggingface_hub import try_to_load_from_cache

    # By a single file: the library takes a snapshot without the files we left out for incomplete.
    for file in ("config.json", "modules.json", ADAPTER_CONFIG):
        cached = try_to_load_from_cache(name, file, revision=revision)
        if isinstance(cached, str):
            return Path(cached).parent
    raise UserError(
        f"no such model: {name} is not a folder here, and cannot be downloaded from the Hugging Face Hub "
        f"({type(reason).__name__}). Go online, or give a local folder.{_suggestion(name)}"
    ) from reason


def _suggestion(name: str) -> str:
    """Returns " Did you mean ...?" for a known model with a similar name, or ""."""
    from stsbench.published.catalogue import checkpoints

    known = {checkpoint.hub for checkpoint in checkpoints().values() if checkpoint.hub} | {PACKAGED}
    near = [model for model in closest(name, sorted(known), cutoff=0.85) if model != name]
    return f" Did you mean {near[0]}?" if near else ""
