"""A checkpoint's files from the Hugging Face Hub, or from an earlier download when it cannot be asked."""

import errno
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from stsbench.foundation.errors import UserError

_SETTINGS = ("*.json", "*.txt", "*.model", "*.tiktoken", "bpe.codes")
_CODE = ("*.py",)
_WEIGHTS = re.compile(r"(model|pytorch_model)(-\d+-of-\d+)?\.(safetensors|bin)")

# Beside the root, the folders of a sentence-transformers checkpoint's modules hold weights (`2_Dense`). Others
# hold what nothing here reads: exports for other runtimes, the optimiser of a training run.
_MODULE_FOLDER = re.compile(r"\d+_.*")

_PATIENCE_SECONDS = 20.0
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS}


def from_hub(name: str, revision: str | None, *, with_code: bool) -> Path:
    """Download what is needed of a model, and return the folder, which is named by the commit.

    Args:
        name: the model's name on the Hub.
        revision: a branch, tag or commit; None for the main branch.
        with_code: whether to fetch the Python code that comes with the model, too.

    Raises:
        UserError: if there is no such model, or it is not here and the Hub cannot be reached.
    """
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
        # Unlike listing the files, this is not tried again and again where there is no network.
        info = HfApi().model_info(name, revision=revision, timeout=_PATIENCE_SECONDS)
        files = [sibling.rfilename for sibling in info.siblings or []]
        wanted = needed_files(files, with_code=with_code)
        return Path(snapshot_download(name, revision=revision, allow_patterns=wanted))
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
        if isinstance(error, OSError) and error.errno in _DISK:
            raise UserError(
                f"cannot keep the files of {name} ({error.strerror}): free some space, or set HF_HOME to a "
                "folder that can be written."
            ) from error
        return _downloaded_before(name, revision, error)
    except Exception as error:
        # The HTTP client under huggingface_hub has changed more than once, and its exceptions with it.
        if type(error).__module__.partition(".")[0] not in {"httpx", "httpx2", "httpcore", "requests"}:
            raise
        return _downloaded_before(name, revision, error)


def needed_files(files: Sequence[str], *, with_code: bool = False) -> list[str]:
    """Return those of a repository's files that loading reads.

    Repositories often hold the same weights in several formats: of each folder's, only the one is wanted that
    will be read.

    >>> needed_files(["config.json", "model.safetensors", "pytorch_model.bin", "2_Dense/pytorch_model.bin"])
    ['config.json', 'model.safetensors', '2_Dense/pytorch_model.bin']
    """
    paths = [PurePosixPath(file) for file in files]
    paths = [path for path in paths if len(path.parts) == 1 or _MODULE_FOLDER.fullmatch(path.parts[0])]
    settings = (*_SETTINGS, *_CODE) if with_code else _SETTINGS
    weights = [path for path in paths if _WEIGHTS.fullmatch(path.name)]
    safe = {path.parent for path in weights if path.suffix == ".safetensors"}
    read = {path for path in weights if path.suffix == ".safetensors" or path.parent not in safe}
    return [str(path) for path in paths if path in read or any(map(path.match, settings))]


def _downloaded_before(name: str, revision: str | None, reason: Exception) -> Path:
    """Return the folder of an earlier download, when the Hub cannot be asked."""
    from huggingface_hub import try_to_load_from_cache

    # Asked for the snapshot itself, the library would miss the files that were not wanted.
    for anchor in ("config.json", "modules.json"):
        found = try_to_load_from_cache(name, anchor, revision=revision)
        if isinstance(found, str):
            return Path(found).parent
    raise UserError(
        f"no such model: {name} is not a folder here, and the Hugging Face Hub cannot be reached "
        f"({type(reason).__name__}): go online once, or give a local folder."
    ) from reason
