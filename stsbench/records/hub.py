"""`export_hub`: the files and the model card of a checkpoint, ready for the Hub.

It writes a folder; `hf upload` of huggingface_hub pushes it.
"""

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.extras import MODELS, require
from stsbench.base.files import atomic_folder, files_in, writing
from stsbench.base.words import listed
from stsbench.encoders.checkpoint import NOTES, Checkpoint, find_checkpoint
from stsbench.encoders.load import load_with
from stsbench.encoders.sentence_transformers import read_settings, transformer_config_files
from stsbench.encoders.use import USUAL, names, option_of
from stsbench.records.card import card_with_scores, model_card, require_storable
from stsbench.records.provenance import redact
from stsbench.records.record import RunRecord
from stsbench.records.store import load_run
from stsbench.render.result import Result
from stsbench.render.table import Table, Tables

if TYPE_CHECKING:
    from stsbench.encoders.protocol import Identity

CARD = "README.md"
"""The model card's file name."""

_MODULE_FILES = ("config.json", "model.safetensors", "pytorch_model.bin")


@dataclass(frozen=True)
class HubExport(Result):
    """The content of a repository on the Hub.

    Attributes:
        name: the repository's name, `owner/name`.
        files: the local path of each file, by its path in the repository; without the card.
        card: the text of `README.md`.
        notes: what the author should check first.
        folder: where it was written; None if it was not.
    """

    name: str
    files: Mapping[str, Path]
    card: str
    notes: tuple[str, ...] = ()
    folder: Path | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """The files and their sizes in bytes, one row each."""
        sizes = {CARD: len(self.card.encode()), **{name: path.stat().st_size for name, path in self.files.items()}}
        return pd.DataFrame(list(sizes.items()), columns=["file", "bytes"])

    @property
    def command(self) -> str:
        """The command that pushes the folder."""
        folder = "FOLDER" if self.folder is None else shlex.quote(str(self.folder))
        return f"hf upload {self.name if '/' in self.name else f'OWNER/{self.name}'} {folder}"

    def table(self) -> Tables:
        """Return the files and their sizes."""
        return Tables([Table(self.frame, notes=self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return name, card, notes, command and files as plain data."""
        fields = {"name": self.name, "card": self.card, "notes": list(self.notes), "command": self.command}
        return fields | {"files": super().to_dict()}


def export_hub(
    checkpoint: str | Path,
    runs: Sequence[RunRecord | str | Path] = (),
    *,
    model: str = "",
    out: str | Path | None = None,
) -> HubExport:
    """Collect the files of a checkpoint and a card with its scores for the Hub.

    Logs and records are left out. The card is the checkpoint's `README.md` (`stsbench train` and
    sentence-transformers write one) with the scores of the runs added. Without one, a card is made from the runs.

    Args:
        checkpoint: the folder of a checkpoint that Transformers and sentence-transformers load alike, such as one
            from `stsbench train`.
        runs: run folders, or in Python records, of the checkpoint with its own settings.
        model: the repository's name, `owner/name`; by default the folder's.
        out: a new folder to write into; by default nothing is written.

    Raises:
        UserError: if the libraries would not load the checkpoint alike, a run has other weights or settings, there
            is neither a card nor a run, or the folder exists or cannot be written.
    """
    require(MODELS, "a checkpoint for the Hub")
    folder = Path(checkpoint).expanduser()
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: name the folder of a checkpoint.")
    name = require_storable(model or folder.resolve().name)
    files = dict(_files(find_checkpoint(str(folder))))
    records = [run if isinstance(run, RunRecord) else load_run(run) for run in runs]
    if records:
        identity = load_with(str(folder), USUAL).identity
        for record in records:
            _require_as_loaded(record, identity)
    # The command may contain your folders.
    card = _card(folder, [record.model_copy(update={"command": ""}) for record in records], name)
    export = HubExport(name, files, card, tuple(_notes(name, files, card)))
    return export if out is None else _written(export, Path(out).expanduser())


def _files(checkpoint: Checkpoint) -> Iterator[tuple[str, Path]]:
    """Yield the files that loading reads; raise for checkpoints that the libraries would not load alike."""
    folder, modules = checkpoint.folder, checkpoint.modules()
    if not modules:
        raise UserError(
            f"{folder} has no modules.json, so sentence-transformers would use the mean of the tokens, whatever "
            "pooling the model was trained with: export a checkpoint of `stsbench train` or sentence-transformers."
        )
    if checkpoint.own_code() is not None or read_settings(checkpoint) is None:
        raise UserError(
            f"{folder} has modules or code that stsbench does not load itself, so the libraries may give other "
            "vectors: use `hf upload`."
        )
    paths = [
        *checkpoint.config_files(with_code=False),
        *checkpoint.weight_files(),
        *files_in(folder, "*.index.json", "modules.json", NOTES),
        *checkpoint.tokenizer_files(),
        *transformer_config_files(checkpoint),
    ]
    for module in modules:
        paths += files_in(folder / module.folder, *_MODULE_FILES) if module.folder else []
    for path in sorted(set(paths)):
        yield path.relative_to(folder).as_posix(), path


def _require_as_loaded(record: RunRecord, identity: "Identity") -> None:
    """Raise for a run of other weights, or with other settings than loading the checkpoint gives."""
    run = record.folder or record.model.name
    if record.model.weights_sha256 != identity.weights_sha256:
        raise UserError(
            f"{run} is not a run of the weights in {identity.name}: measure them with "
            f"`stsbench run --model {identity.name}`."
        )
    fields = names("encoding", "afterwards")
    differing = [field for field in fields if getattr(record.model.use, field) != getattr(identity.use, field)]
    if differing:
        options = listed([option_of(field) for field in differing])
        raise UserError(
            f"{run} was measured with other settings than the checkpoint's own ({options}), so users would get "
            "other scores: measure it without these options."
        )


def _card(folder: Path, records: Sequence[RunRecord], name: str) -> str:
    path = folder / CARD
    if not path.is_file():
        if not records:
            raise UserError(f"{folder} has no {CARD}, and no run is named: name a run of the checkpoint.")
        return model_card(name, records, library="sentence-transformers")
    try:
        return card_with_scores(path.read_text(encoding="utf-8"), name, records)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as a model card ({error}): fix it, or move it away.") from error


def _notes(name: str, files: Mapping[str, Path], card: str) -> Iterator[str]:
    """Yield what the author should check."""
    from huggingface_hub import ModelCard

    page: Any = ModelCard(card)
    data = page.data.to_dict()
    if lacking := [field for field in ("license", "language") if not data.get(field)]:
        yield f"the card has no {listed(lacking)}: add them."
    base = data.get("base_model")
    if isinstance(base, str) and "/" not in base:
        yield f"the card's base_model {base} is not a name on the Hub (owner/name): replace it."
    if "/" not in name:
        yield f"a repository is named owner/name: give it with --model owner/{name}."
    texts = {place: path.read_text("utf-8", "replace") for place, path in files.items() if path.suffix == ".json"}
    for place, text in {CARD: card, **texts}.items():
        if redact(text) != text:
            yield f"{place} names a folder or a user of this machine: check it before you push."


def _written(export: HubExport, folder: Path) -> HubExport:
    """Write files and card into a new folder, completely or not at all."""
    with writing(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} exists and is not empty: choose another folder with --out.")
    with atomic_folder(folder) as building:
        for place, path in export.files.items():
            (building / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, building / place)
        (building / CARD).write_text(export.card, encoding="utf-8")
    return replace(export, folder=folder)
