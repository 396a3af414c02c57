"""`export_hub`: the files and the model card of a checkpoint, ready for the Hub.

It writes a folder; `hf upload` of huggingface_hub pushes it.
"""

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from stsbench.base.errors import UserError
from stsbench.base.extras import MODELS, require
from stsbench.base.files import atomic_folder, files_in, writing
from stsbench.base.words import listed, storable
from stsbench.encoders.checkpoint import NOTES, Checkpoint, find_checkpoint
from stsbench.encoders.load import load_with
from stsbench.encoders.sentence_transformers import read_settings, transformer_config_files
from stsbench.encoders.token_tables import find_table
from stsbench.encoders.use import USUAL, names, option_of
from stsbench.records.card import card_with_scores, model_card
from stsbench.records.provenance import redact
from stsbench.records.record import RECORD, RunRecord
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
        """Return name, files, card, notes and the command as plain data."""
        files = self.frame.to_dict(orient="records")
        return {
            "name": self.name,
            "files": files,
            "card": self.card,
            "notes": list(self.notes),
            "command": self.command,
        }


def export_hub(
    checkpoint: str | Path,
    runs: Sequence[RunRecord | str | Path] = (),
    *,
    model: str = "",
    out: str | Path | None = None,
) -> HubExport:
    """Collect the files of a checkpoint and a card with its scores for the Hub.

    Logs and records are left out. The card is the checkpoint's `README.md`, as `stsbench train` and
    sentence-transformers write it, with the scores of the runs added; without one, a card is made from the runs.

    Args:
        checkpoint: the folder of a checkpoint that Transformers and sentence-transformers load alike, such as one
            from `stsbench train`; or a run of such a checkpoint, which is then the first of the runs.
        runs: run folders, or in Python records, of the checkpoint with its own settings.
        model: the repository's name, `owner/name`; by default the folder's.
        out: a new folder to write into; by default nothing is written.

    Raises:
        UserError: if the libraries would not load the checkpoint alike, a run is of other weights or settings,
            there is nothing to make a card of, or the folder exists or cannot be written.
    """
    require(MODELS, "a checkpoint for the Hub")
    found, runs = _checkpoint_and_runs(Path(checkpoint).expanduser(), runs)
    records = [run if isinstance(run, RunRecord) else load_run(run) for run in runs]
    name = model or found.folder.resolve().name
    if storable(name) != name:
        raise UserError(f"{name!r} is no text: a character in it is not UTF-8; write the model's name anew.")
    files = dict(_files(found))
    if records:
        identity = load_with(str(found.folder), USUAL).identity
        for record in records:
            _require_as_loaded(record, identity)
    # The command may contain the user's folders.
    card = _card(found, [record.model_copy(update={"command": ""}) for record in records], name)
    export = HubExport(name, files, card, tuple(_notes(name, files, card)))
    return export if out is None else _written(export, Path(out).expanduser())


def _checkpoint_and_runs(
    folder: Path, runs: Sequence[RunRecord | str | Path]
) -> tuple[Checkpoint, Sequence[RunRecord | str | Path]]:
    """Return the checkpoint of a folder, or of the run in the folder."""
    if (folder / RECORD).is_file() and not (folder / "config.json").is_file():
        measured = Path(load_run(folder).model.name).expanduser()
        if not measured.is_dir():
            raise UserError(
                f"{folder} is a run of {measured}, which is no folder here: name the checkpoint's folder, then "
                "the run's."
            )
        return find_checkpoint(str(measured)), [folder, *runs]
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: name that of a checkpoint.")
    return find_checkpoint(str(folder)), runs


def _files(checkpoint: Checkpoint) -> Iterator[tuple[str, Path]]:
    """Yield the files that loading reads; raise for checkpoints that the libraries would not load alike."""
    folder, modules = checkpoint.folder, checkpoint.modules()
    if not modules:
        raise UserError(
            f"{folder} has no modules.json, so sentence-transformers would take the mean of the tokens, whatever "
            "the model was trained with: export a checkpoint that `stsbench train` or sentence-transformers wrote."
        )
    if find_table(checkpoint) is not None:
        raise UserError(
            f"{folder} holds static embeddings, of which no card is made here: push the folder with `hf upload`."
        )
    if checkpoint.own_code() is not None or read_settings(checkpoint) is None:
        raise UserError(
            f"{folder} has modules or code that stsbench does not read itself, so whether both libraries give the "
            "same vectors is not known: push it with `hf upload`."
        )
    found = [
        *checkpoint.config_files(with_code=False),
        *checkpoint.weight_files(),
        *files_in(folder, "*.index.json"),
        *checkpoint.tokenizer_files(),
        *transformer_config_files(checkpoint),
        *(path for path in (folder / "modules.json", folder / NOTES) if path.is_file()),
        *(
            path
            for module in modules
            if module.folder
            for path in (folder / module.folder / name for name in _MODULE_FILES)
            if path.is_file()
        ),
    ]
    for path in sorted(set(found)):
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
            f"{run} used the model otherwise than the checkpoint says ({options}), so whoever loads it would not "
            "get those scores: measure it without."
        )


def _card(checkpoint: Checkpoint, records: Sequence[RunRecord], name: str) -> str:
    path = checkpoint.folder / CARD
    if not path.is_file():
        if not records:
            raise UserError(f"{checkpoint.folder} holds no {CARD}, and no run is named: name a run of it.")
        return model_card(name, records, library="sentence-transformers")
    try:
        return card_with_scores(path.read_text(encoding="utf-8"), name, records)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as a model card ({error}): mend it, or move it away.") from error


def _notes(name: str, files: Mapping[str, Path], card: str) -> Iterator[str]:
    """Yield what the author should check."""
    from huggingface_hub import ModelCard

    page: Any = ModelCard(card)
    data = page.data.to_dict()
    if lacking := [field for field in ("license", "language") if not data.get(field)]:
        yield f"the card says nothing of {listed(lacking)}: that is for the author to add."
    base = data.get("base_model")
    if isinstance(base, str) and "/" not in base:
        yield f"the card's base_model {base} is no name on the Hub (owner/name): write the one that it has there."
    if "/" not in name:
        yield f"a repository is called owner/name: give it with --model owner/{name}."
    texts = [(CARD, card)]
    texts += [
        (place, path.read_text("utf-8", "replace")) for place, path in files.items() if path.suffix == ".json"
    ]
    for place, text in texts:
        if redact(text) != text:
            yield f"{place} names a folder or a user of this machine: look at it before you push it."


def _written(export: HubExport, folder: Path) -> HubExport:
    """Write files and card into a new folder, completely or not at all."""
    with writing(folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} is there already, and not empty: choose another folder with --out.")
    with atomic_folder(folder) as building:
        for place, path in export.files.items():
            (building / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, building / place)
        (building / CARD).write_text(export.card, encoding="utf-8")
    return HubExport(export.name, export.files, export.card, export.notes, folder)
