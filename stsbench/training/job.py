"""A prepared training: its data read and compared with its start, and its steps."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from stsbench.base.errors import UserError
from stsbench.base.files import fingerprint, sha256_of
from stsbench.base.progress import Progress
from stsbench.data.corpus import SAMPLE, Row, corpus_file, read_rows
from stsbench.data.rows import ending_of
from stsbench.data.tables import StsData
from stsbench.records.parts import environment, threads
from stsbench.scoring.settings import Protocol
from stsbench.scoring.tasks import read_data
from stsbench.training.batches import TokenStore, make_schedule, open_store, tokens_dir
from stsbench.training.folder import CheckpointWriter, Keeper, RunFolder, Start, write_start
from stsbench.training.labelled import LabelledTask, corpus_sentence, read_tasks, table_file
from stsbench.training.log import Listener, LiveEncoder, Log, Selector
from stsbench.training.recipe import Recipe, file_places, remarks_on_tests
from stsbench.training.views import TextView

if TYPE_CHECKING:
    from stsbench.training.base import Base
    from stsbench.training.distributed import World


@dataclass(frozen=True)
class Surroundings:
    world: "World"
    device: str
    data_dirs: Sequence[str | Path]
    progress: Progress
    notice: Callable[[str], None]
    command: str


@dataclass(frozen=True)
class Job:
    recipe: Recipe
    folder: RunFolder
    start: Start
    resumed: bool
    dev: StsData
    tasks: Sequence[LabelledTask]
    base: "Base"
    store: TokenStore
    around: Surroundings

    @property
    def findings(self) -> list[str]:
        return [*self.corpus_findings, *(task.finding for task in self.tasks)]

    @cached_property
    def corpus_findings(self) -> list[str]:
        """A sentence on scored sentences in the corpus; none if it was not checked."""
        path = self.recipe.corpus.path
        if path is None or not self.around.world.leads:
            return []
        texts = (sentence for _, sentences in _rows(self.recipe, corpus_file(path)) for sentence in sentences)
        sentence = corpus_sentence(texts, [Path(folder) for folder in self.around.data_dirs])
        return [sentence] if sentence else []

    @property
    def test_remarks(self) -> list[str]:
        return [*remarks_on_tests(self.recipe), *filter(None, (task.remark for task in self.tasks))]

    def run(self, listeners: Sequence[Listener]) -> int:
        import torch

        from stsbench.training.distributed import deterministic

        # Training's draws follow from the recipe's seed, and leave the caller's generator unchanged.
        with torch.random.fork_rng(), deterministic(self.around.device, self.recipe.deterministic):
            return self._run(listeners)

    def _run(self, listeners: Sequence[Listener]) -> int:
        from stsbench.training.trainer import Loop, Trainer

        recipe, around = self.recipe, self.around
        trainer = Trainer(recipe, self.store, self.base, around.world, around.device, tasks=self.tasks)
        writer = CheckpointWriter(trainer.model, self.base, recipe, self.test_remarks)
        keeper = Keeper(self.folder, writer, recipe.saving.keep)
        log = Log(self.folder.log if around.world.leads else None, listeners)
        steps, done = trainer.timetable.steps, 0
        if self.resumed:
            state = keeper.load(around.device)
            if state is not None:
                done = int(state["step"])
                if done < steps:
                    trainer.load_state_dict(state)
            log.cut_back(0 if state is None else int(state["log_size"]))
            around.notice(f"resumed after step {done} of {steps}.")
        elif around.world.leads:
            write_start(self.folder, self.start, recipe)
        encoder = LiveEncoder(self.base.encoder, trainer.evaluating, trainer.model)
        selector = Selector(encoder, self.dev)
        first_lines = [*self.findings, *self.test_remarks]
        Loop(recipe, trainer, selector, keeper, log, first_lines, around.progress).run(done)
        return steps


def prepare(recipe: Recipe, folder: RunFolder, began: Start | None, around: Surroundings) -> Job:
    """Reads the data of a training; raises a UserError if a resumed one started from other data."""
    recipe, file = _with_absolute_paths(recipe)
    dev = _dev_set(recipe, around.data_dirs)
    tasks = read_tasks(recipe, around.data_dirs)

    from stsbench.training.base import find_base

    base = find_base(recipe, around.device.partition(":")[0])
    identity = base.encoder.identity
    now = Start(
        recipe=recipe.model_dump(mode="json"),
        sha256={
            "corpus": sha256_of(file),
            "dev set": dev.sha256,
            "base checkpoint": str(identity.weights_sha256),
            "base's tokenizer": str(identity.tokenizer_sha256),
            "labelled table of a task": " ".join(task.sha256 for task in tasks),
            "model of a view": _views_sha256(recipe, around.device),
        },
        threads=threads(),
        world=around.world.size,
        command=around.command,
        environment=environment(),
    )
    changes = [] if began is None else began.differences(now)
    for remark in (*changes, *base.notes):
        around.notice(remark)
    store = _open_store(recipe, base, file, now, around)
    make_schedule(recipe, store)  # raises if the corpus is smaller than a batch
    around.notice(f"corpus: {store.counts.sentence()}")
    if around.world.size > 1:
        around.notice(f"{around.world.size} processes share each batch.")
    job = Job(recipe, folder, began or now, began is not None, dev, tasks, base, store, around)
    for remark in (*job.findings, *job.test_remarks):
        around.notice(remark)
    return job


def _with_absolute_paths(recipe: Recipe) -> tuple[Recipe, Path]:
    path, folder = recipe.corpus.path, recipe.labelled.folder
    if path is None:
        raise UserError("there is no corpus: use --corpus FILE.")
    file = corpus_file(path)
    values = recipe.model_dump()
    for part, key in file_places(values):
        if key in {"train", "dev"}:
            part[key] = str(table_file(part[key], folder).resolve())
        elif part[key] != SAMPLE and (named := Path(part[key]).expanduser()).exists():
            part[key] = str(named.resolve())
    values["labelled"]["folder"] = None
    return Recipe.model_validate(values), file


def _dev_set(recipe: Recipe, data_dirs: Sequence[str | Path]) -> StsData:
    task = recipe.selection.task
    sets = read_data(task, protocol=Protocol(), data_dirs=data_dirs)
    if len(sets) != 1 or (dev := sets[0].pairs) is None:
        raise UserError(f"selection.task {task!r}: name one task with similarity scores, such as STS-B:dev.")
    if dev.split == "test" and dev.task != SAMPLE:
        raise UserError(f"selection.task {task} is a test set: select on a dev set, such as STS-B:dev.")
    return dev


def _rows(recipe: Recipe, file: Path) -> Iterator[Row]:
    corpus = recipe.corpus
    return islice(read_rows(file, corpus.columns, corpus.names), corpus.rows)


def _views_sha256(recipe: Recipe, device: str) -> str:
    views = [view for view in (recipe.views.query, recipe.views.key) if isinstance(view, TextView)]
    hashes = [sha256_of(file) for view in views for file in view.require(device)]
    return fingerprint(hashes) if hashes else ""


def _open_store(recipe: Recipe, base: "Base", file: Path, now: Start, around: Surroundings) -> TokenStore:
    corpus, tokenizer, world = recipe.corpus, base.tokenizer, around.world
    if not world.leads:  # the first process builds the store, and the others then find it
        world.wait()
    store = open_store(
        tokens_dir(),
        {
            "corpus": now.sha256["corpus"],
            # With other columns, the same file has other sentences.
            "format": ending_of(file),
            "names": corpus.names,
            "columns": corpus.columns,
            "tokenizer": now.sha256["base's tokenizer"],
            **({} if corpus.rows is None else {"rows": corpus.rows}),
        },
        _rows(recipe, file),
        tokenizer,
        limit=corpus.max_length - tokenizer.special_tokens,
        lower_case=base.encoder.settings.lower_case,
        with_text=recipe.reads_text,
        progress=around.progress,
    )
    if world.leads:
        world.wait()
    return store
