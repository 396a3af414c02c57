"""A training that is prepared: its data read, its base found, its folder begun; and taking its steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.base.files import sha256_of
from stsbench.base.progress import Progress
from stsbench.data.corpus import SAMPLE, corpus_file, read_rows
from stsbench.data.tables import StsData
from stsbench.records.provenance import environment, threads
from stsbench.scoring.evaluate import read_data
from stsbench.scoring.protocols import Protocol
from stsbench.training.batches import make_schedule
from stsbench.training.log import Listener, Log
from stsbench.training.recipe import Recipe
from stsbench.training.selection import LiveEncoder, Selector
from stsbench.training.state import RunFolder, Start, write_start
from stsbench.training.token_store import TokenStore, open_store, tokens_dir

if TYPE_CHECKING:
    from stsbench.training.base import Base
    from stsbench.training.distributed import World


@dataclass(frozen=True)
class Job:
    """A prepared training.

    Attributes:
        recipe: in full, the corpus's path absolute.
        folder: of the training.
        start: what it starts from.
        resumed: whether it was begun before.
        dev: the set that checkpoints are selected on.
        base: what training starts from.
        store: the corpus.
        world: the processes.
        device: of this one.
        progress: told how far it is.
        notice: told what the person should know.
    """

    recipe: Recipe
    folder: RunFolder
    start: Start
    resumed: bool
    dev: StsData
    base: "Base"
    store: TokenStore
    world: "World"
    device: str
    progress: Progress
    notice: Callable[[str], None]

    @classmethod
    def prepare(
        cls,
        recipe: Recipe,
        folder: RunFolder,
        then: Start | None,
        *,
        world: "World",
        device: str,
        data_dirs: Sequence[str | Path],
        progress: Progress,
        notice: Callable[[str], None],
        command: str,
    ) -> "Job":
        """Read what the training needs; of one that was begun before, make sure that it is the same.

        Raises:
            UserError: if something is missing, or not what the training began with.
        """
        from stsbench.training.base import find_base

        dev = _read_dev_set(recipe.selection.task, data_dirs)
        base = find_base(recipe, device.partition(":")[0])
        recipe, file = _with_corpus(recipe)
        identity = base.encoder.identity
        now = Start(
            recipe=recipe.model_dump(mode="json"),
            corpus_sha256=sha256_of(file),
            dev_sha256=dev.sha256,
            base_sha256=str(identity.weights_sha256),
            tokenizer_sha256=str(identity.tokenizer_sha256),
            threads=threads(),
            world=world.size,
            command=command,
            environment=environment(),
        )
        if then is not None:
            for note in then.held_against(now):
                notice(note)
        for note in base.encoder.notes:
            notice(note)
        store = _open(recipe, base, file, now, world=world, progress=progress)
        make_schedule(recipe, len(store))  # which says so if the corpus is smaller than a batch
        notice(f"corpus: {store.counts.told()}")
        if world.size > 1:
            notice(f"{world.size} processes share each batch.")
        return cls(
            recipe, folder, then or now, then is not None, dev, base, store, world, device, progress, notice
        )

    def run(self, listeners: Sequence[Listener]) -> int:
        """Take all steps that are left; return the number of all."""
        import torch

        # What is drawn in training follows from the recipe's seed, and leaves the person's own draws as they were.
        with torch.random.fork_rng():
            return self._run(listeners)

    def _run(self, listeners: Sequence[Listener]) -> int:
        from stsbench.training.checkpoints import CheckpointWriter
        from stsbench.training.keeping import Keeper
        from stsbench.training.trainer import Loop, assemble

        trainer = assemble(self.recipe, self.store, self.base, self.world, self.device)
        settings = self.base.encoder.settings
        writer = CheckpointWriter(
            trainer.model, self.base.checkpoint, self.recipe, settings.max_length, settings.lower_case
        )
        keeper = Keeper(self.folder, writer, self.recipe.saving.keep)
        log = Log(self.folder.log if self.world.leads else None, listeners)
        done = 0
        if self.resumed:
            done, size = keeper.resume(trainer, self.device)
            log.cut_back(size)
            self.notice(f"resumed after step {done} of {trainer.schedule.steps}.")
        elif self.world.leads:
            write_start(self.folder, self.start, self.recipe)
        encoder = LiveEncoder(self.base.encoder, trainer.evaluating, trainer.model)
        selector = Selector(encoder, self.dev, self.recipe.selection.geometry)
        Loop(self.recipe, trainer, selector, keeper, log, self.progress).run(done)
        return trainer.schedule.steps


def _read_dev_set(task: str, data_dirs: Sequence[str | Path]) -> StsData:
    sets = read_data(task, protocol=Protocol(), data_dirs=data_dirs)
    if len(sets) != 1 or not isinstance(sets[0], StsData):
        raise UserError(f"selection.task {task!r}: name one task with similarity scores, such as STS-B:dev.")
    return sets[0]


def _with_corpus(recipe: Recipe) -> tuple[Recipe, Path]:
    """Return the recipe with its corpus's absolute path, and the file."""
    path = recipe.corpus.path
    if path is None:
        raise UserError("no corpus was named: use --corpus FILE.")
    file = corpus_file(path)
    if path != SAMPLE:
        corpus = recipe.corpus.model_copy(update={"path": str(file.resolve())})
        recipe = recipe.model_copy(update={"corpus": corpus})
    return recipe, file


def _open(
    recipe: Recipe, base: "Base", file: Path, now: Start, *, world: "World", progress: Progress
) -> TokenStore:
    corpus, tokenizer = recipe.corpus, base.tokenizer
    if not world.leads:  # the first process builds what the others then find
        world.wait()
    store = open_store(
        tokens_dir(),
        {
            "corpus": now.corpus_sha256,
            "names": corpus.names,
            "columns": corpus.columns,
            "tokenizer": now.tokenizer_sha256,
            **({} if corpus.rows is None else {"rows": corpus.rows}),
        },
        islice(read_rows(file, corpus.columns, corpus.names), corpus.rows),
        tokenizer,
        limit=corpus.max_length - tokenizer.special_tokens,
        lower_case=base.encoder.settings.lower_case,
        with_text=recipe.reads_text,
        progress=progress,
    )
    if world.leads:
        world.wait()
    return store
