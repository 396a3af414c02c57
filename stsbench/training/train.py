"""`train`: from a recipe and a corpus to a checkpoint with its record, card and dev curve; resumable.

What is missing or wrong is told before anything is begun, in the order in which a person names it: recipe,
folder, corpus, dev set, base.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from stsbench._version import __version__
from stsbench.base.errors import InterruptError, UserError, by_interrupt
from stsbench.base.files import atomic_path, sha256_of
from stsbench.base.options import Commas, NameOrPath, Spelled
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed
from stsbench.data.corpus import SAMPLE, corpus_file, read_rows
from stsbench.data.rows import ending_of
from stsbench.data.tables import StsData
from stsbench.encoders.checkpoint import MINILM, PACKAGED
from stsbench.encoders.device import resolve_device
from stsbench.encoders.load import load
from stsbench.encoders.transformer import TransformerEncoder
from stsbench.published.catalogue import known_checkpoint
from stsbench.records.card import model_card
from stsbench.records.parts import HeadScore
from stsbench.records.provenance import environment, redact, threads
from stsbench.records.record import RunRecord
from stsbench.records.store import load_run, save_run
from stsbench.render.figures import save_figure
from stsbench.scoring.kinds.sts import StsPairs
from stsbench.scoring.measure import measure_encoder
from stsbench.scoring.protocols import Protocol
from stsbench.scoring.run import RUNS
from stsbench.scoring.settings import Settings, Stages
from stsbench.scoring.tasks import read_data
from stsbench.training.batches import make_schedule
from stsbench.training.folder import RunFolder, Start, edits, read_start, started_recipe, write_start
from stsbench.training.labelled import LabelledTask, read_tasks, table_file
from stsbench.training.leakage import CorpusOverlap
from stsbench.training.log import Listener, Log, log_frame, read_log, tensorboard_listener, wandb_listener
from stsbench.training.recipe import Recipe
from stsbench.training.recipe_files import as_yaml, read_recipe
from stsbench.training.result import Training, draw_dev_curve
from stsbench.training.selection import Best, LiveEncoder, Selector, best_of
from stsbench.training.tasks import TaskHead
from stsbench.training.token_store import TokenStore, open_store, tokens_dir
from stsbench.training.views import TextView

if TYPE_CHECKING:
    from stsbench.training.base import Base
    from stsbench.training.distributed import World

_SELECTED = "The checkpoint was selected by this score, which therefore does not measure it on other data."


def train(
    recipe: NameOrPath | None = None,
    corpus: NameOrPath | None = None,
    out: str | Path | None = None,
    *,
    base: NameOrPath | None = None,
    seed: int | None = None,
    overrides: Annotated[Sequence[str], Spelled("--set", "KEY=VALUE")] = (),
    columns: Annotated[Sequence[str] | None, Commas()] = None,
    resume: str | Path | None = None,
    device: str = "auto",
    data_dirs: Sequence[str | Path] = (),
    tensorboard: bool = False,
    wandb: bool = False,
    progress: Progress = silent,
    listeners: Sequence[Listener] = (),
    notice: Callable[[str], None] = lambda _: None,
    command: str = "",
    shared: str | Path | None = None,
) -> Training:
    """Train a sentence encoder by a recipe, or go on with a training that was stopped.

    Started by `torchrun` or `accelerate launch`, the processes share the work; the first one scores and saves.

    Args:
        recipe: a known recipe's name, or a YAML file.
        corpus: text (one sentence a line), .csv, .tsv, .jsonl or .parquet, .gz and .zst too; by default the
            recipe's.
        out: folder of the training; by default `runs/<recipe>`.
        base: the checkpoint to start from; by default the recipe's.
        seed: of everything random; by default the recipe's.
        overrides: change a value of the recipe, as `key=value`.
        columns: columns of the corpus to read, in order, with commas; by default all.
        resume: go on with the training in this folder, in place of all of the above, to the same weights bit by
            bit.
        device: `auto`, `cpu`, `cuda` or `mps`.
        data_dirs: folders to look for the dev set in, before `STSBENCH_DATA` and the cache.
        tensorboard: whether to write TensorBoard's files, too.
        wandb: whether to send the log to Weights & Biases, too.
        progress: told how far it is.
        listeners: told each line of the log.
        notice: told what the person should know.
        command: the command line, for the record.
        shared: a folder where trainings from one base share what it gives on the dev set before the first step;
            None to encode that set.

    Returns:
        What was trained, where `.folder` is a checkpoint, `.record` its record on the dev set, `.plot()` its dev
        curve.

    Raises:
        UserError: for a person's mistake, in one sentence; nothing is overwritten.
    """
    from stsbench.training.distributed import join_world

    if (recipe is None) == (resume is None):
        raise UserError("name a recipe, or a folder with --resume, and not both; --list names the recipes.")
    began: Start | None = None
    if resume is not None:
        _refuse_with_resume(corpus=corpus, out=out, base=base, seed=seed, set=overrides, columns=columns)
        folder = RunFolder(Path(resume).expanduser())
        began = read_start(folder)
        if folder.is_finished:
            raise UserError(f"the training in {folder.path} is finished: its checkpoint is there.")
        chosen = started_recipe(began)
    else:
        changes = {"corpus.path": corpus, "base": base, "seed": seed, "corpus.names": columns}
        given = [f"{name}={_as_yaml_value(value)}" for name, value in changes.items() if value is not None]
        chosen = read_recipe(str(recipe), [*overrides, *given])
        folder = RunFolder(RUNS / chosen.name if out is None else Path(out).expanduser())
    device = resolve_device(device)
    for key, precision in {
        "precision": chosen.precision,
        "selection.precision": chosen.selection.precision,
    }.items():
        if precision == "fp16" and device == "cpu":
            raise UserError(f"{key} fp16 needs a GPU: use --set {key}=fp32.")
    world, device = join_world(device)
    if not world.leads:
        progress, listeners, notice = silent, (), lambda _: None
    if began is None and world.leads:
        folder.require_free()  # asked before anything is read, and again by the only one who is there
    job = _Job.prepare(
        chosen,
        folder,
        began,
        world=world,
        device=device,
        data_dirs=data_dirs,
        progress=progress,
        notice=notice,
        command=command,
        shared=None if shared is None else Path(shared),
    )
    with folder.alone() if world.leads else nullcontext():
        if began is None and world.leads:
            folder.require_free()
        if world.leads:
            listeners = [*listeners, *_trackers(folder, chosen, tensorboard=tensorboard, wandb=wandb)]
        with _told_how_to_go_on(folder):
            steps = job.run(listeners)
            if world.leads:
                job.publish(steps)
        world.wait()
    world.leave()
    log = read_log(folder.log)
    return Training(folder.path, job.recipe, best_of(log), steps, load_run(folder.path), log, world.leads)


@contextmanager
def _told_how_to_go_on(folder: RunFolder) -> Iterator[None]:
    """Tell an interrupt with the command that goes on: the same one would refuse, as the training has begun.

    Raises:
        InterruptError: once the start is written; before that the folder is as it was.
    """
    try:
        yield
    except BaseException as error:
        if not (by_interrupt(error) and folder.start.is_file()):
            raise
        place = "the last save" if folder.state.is_file() else "its first step"
        raise InterruptError(
            f"interrupted: `stsbench train --resume {folder.path}` goes on from {place}."
        ) from error


def prepare_training(
    recipe: Recipe, *, data_dirs: Sequence[str | Path] = (), device: str = "auto", progress: Progress = silent
) -> None:
    """Read what a training by a recipe needs, and tokenise its corpus, without starting it.

    Args:
        recipe: of the training, or of the first of several that share base and corpus.
        data_dirs: folders to look for the dev set in.
        device: `auto`, `cpu`, `cuda` or `mps`.
        progress: told how far tokenising is.

    Raises:
        UserError: if something is missing or does not fit together.
    """
    from stsbench.training.distributed import World

    _Job.prepare(
        recipe,
        RunFolder(Path()),
        None,
        world=World(),
        device=resolve_device(device),
        data_dirs=data_dirs,
        progress=progress,
        notice=lambda _: None,
        command="",
    )


@dataclass(frozen=True)
class _Job:
    """A prepared training: its data read, its base found.

    Attributes:
        recipe: in full, the corpus's path absolute.
        folder: of the training.
        start: what it starts from.
        resumed: whether it was begun before.
        dev: the set that checkpoints are selected on.
        tasks: with their labelled tables.
        base: what training starts from.
        store: the corpus.
        world: the processes.
        device: of this one.
        progress: told how far it is.
        notice: told what the person should know.
        shared: where the base's vectors of the dev set are; None for nowhere.
        data_dirs: folders to look for the tasks in that the corpus is held against.
    """

    recipe: Recipe
    folder: RunFolder
    start: Start
    resumed: bool
    dev: StsData
    tasks: Sequence[LabelledTask]
    base: "Base"
    store: TokenStore
    world: "World"
    device: str
    progress: Progress
    notice: Callable[[str], None]
    shared: Path | None
    data_dirs: Sequence[str | Path]

    @classmethod
    def prepare(
        cls,
        recipe: Recipe,
        folder: RunFolder,
        began: Start | None,
        *,
        world: "World",
        device: str,
        data_dirs: Sequence[str | Path],
        progress: Progress,
        notice: Callable[[str], None],
        command: str,
        shared: Path | None = None,
    ) -> "_Job":
        """Read what the training needs; of one that was begun before, make sure that it is the same.

        Raises:
            UserError: if something is missing, or not what the training began with.
        """
        recipe, file = _with_corpus(recipe)
        recipe = _with_tables(recipe)
        dev = _read_dev_set(recipe.selection.task, data_dirs)
        if began is None:
            _require_no_test_set(recipe, dev)
        tasks = read_tasks(recipe, data_dirs)

        from stsbench.training.base import find_base

        base = find_base(recipe, device.partition(":")[0])
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
            tasks_sha256=" ".join(task.sha256 for task in tasks),
            views_sha256=_views_sha256(recipe, device),
        )
        notes = [] if began is None else [*began.differences(now), *edits(folder, recipe)]
        for note in (*notes, *base.notes):
            notice(note)
        store = _open_store(recipe, base, file, now, world=world, progress=progress)
        make_schedule(recipe, store)  # which says so if the corpus is smaller than a batch
        notice(f"corpus: {store.counts.sentence()}")
        if world.size > 1:
            notice(f"{world.size} processes share each batch.")
        start, resumed = began or now, began is not None
        # Random layers, and a head that vectors are scored behind, are not the base's.
        is_base = not recipe.reinitialise and not recipe.scored_heads
        job = cls(
            recipe=recipe,
            folder=folder,
            start=start,
            resumed=resumed,
            dev=dev,
            tasks=tasks,
            base=base,
            store=store,
            world=world,
            device=device,
            progress=progress,
            notice=notice,
            shared=shared if is_base else None,
            data_dirs=data_dirs,
        )
        for remark in job.remarks:
            notice(remark)
        return job

    @property
    def remarks(self) -> list[str]:
        """What the person should know of the recipe, and everybody who reads the log."""
        return [*self.recipe.remarks(), *self.found, *self.test_remarks]

    @cached_property
    def found(self) -> list[str]:
        """What was found in the corpus and in the tables of the tasks, a sentence each."""
        of_tables = [task.sentence() for task in self.tasks]
        path = self.recipe.corpus.path
        if path is None or not self.world.leads:
            return of_tables
        corpus = self.recipe.corpus
        rows = islice(read_rows(corpus_file(path), corpus.columns, corpus.names), corpus.rows)
        texts = (sentence for _, sentences in rows for sentence in sentences)
        overlap = CorpusOverlap.count(texts, [Path(folder) for folder in self.data_dirs])
        return [*filter(None, [overlap.sentence()]), *of_tables]

    @property
    def test_remarks(self) -> list[str]:
        """How the training has met what encoders are measured on: as the recipe says, and as its tables show."""
        return [*self.recipe.test_remarks(), *filter(None, (task.test_remark() for task in self.tasks))]

    def run(self, listeners: Sequence[Listener]) -> int:
        """Take all steps that are left; return the number of all."""
        import torch

        from stsbench.training.base import told_if_not_compiled
        from stsbench.training.determinism import deterministic

        # What is drawn in training follows from the recipe's seed, and leaves the person's own draws as they were.
        with (
            torch.random.fork_rng(),
            deterministic(self.device, self.recipe.deterministic),
            told_if_not_compiled(self.recipe),
        ):
            return self._run(listeners)

    def _run(self, listeners: Sequence[Listener]) -> int:
        from stsbench.training.checkpoints import CheckpointWriter, Keeper
        from stsbench.training.trainer import Loop, assemble

        trainer = assemble(self.recipe, self.store, self.base, self.world, self.device, tasks=self.tasks)
        settings = self.base.encoder.settings
        writer = CheckpointWriter(
            trainer.model,
            self.base.checkpoint,
            self.recipe,
            settings.use.max_length,
            settings.lower_case,
            self.test_remarks,
            normalize=self.base.normalizes,
        )
        keeper = Keeper(self.folder, writer, self.recipe.saving.keep)
        log = Log(self.folder.log if self.world.leads else None, listeners)
        done = 0
        if self.resumed:
            state = keeper.load(self.device)
            if state is not None:
                trainer.load_state_dict(state)
                done = int(state["step"])
            log.cut_back(0 if state is None else int(state["log_size"]))
            self.notice(f"resumed after step {done} of {trainer.timetable.steps}.")
        elif self.world.leads:
            write_start(self.folder, self.start, self.recipe)
        chosen_by = self.recipe.selection
        encoder = LiveEncoder(
            self.base.encoder,
            trainer.evaluating,
            trainer.model,
            precision=chosen_by.precision,
            tokens=chosen_by.tokens,
        )
        selector = Selector(encoder, self.dev, chosen_by.geometry, self.shared)
        distance = self.recipe.traceable_sentence()
        remarks = [*self.remarks, *([] if distance is None else [distance])]
        Loop(self.recipe, trainer, selector, keeper, log, remarks, self.progress).run(done)
        return trainer.timetable.steps

    def publish(self, steps: int) -> None:
        """Publish the best checkpoint of a training that has taken all its steps, with its record on the dev set.

        Killed in between, it is done again when the training is resumed.
        """
        from stsbench.training.checkpoints import publish

        out, log = self.folder.path, read_log(self.folder.log)
        best = best_of(log)
        publish(self.folder.checkpoint(best.step), out)
        record = self._measure(out, log, best)
        with atomic_path(self.folder.card) as path:
            path.write_text(self._card(record, best, steps), encoding="utf-8")
        figure = draw_dev_curve(log_frame(log), self.recipe, steps)
        for path in (self.folder.curve, self.folder.curve.with_suffix(".svg")):
            save_figure(figure, path)
        write_start(self.folder, replace(self.start, finished=True), self.recipe)
        # There is nothing left to resume, and a state is several times the model.
        self.folder.state.unlink(missing_ok=True)

    def _measure(self, checkpoint: Path, log: Sequence[dict[str, Any]], best: Best) -> RunRecord:
        """Measure a checkpoint on the dev set as a person would: it says itself how it is pooled."""
        encoder = load(str(checkpoint), device=self.device.partition(":")[0])
        assert isinstance(encoder, TransformerEncoder)  # it was written as one
        encoder.notes = (*encoder.notes, *self.found)
        settings = Settings(use_cache=False, command=self.start.command)
        record = measure_encoder(encoder, [StsPairs(self.dev)], settings, Stages(self.progress))
        heads = self._heads(log, best)
        return save_run(record.model_copy(update={"heads": heads}), checkpoint, overwrite=True)

    def _heads(self, log: Sequence[dict[str, Any]], best: Best) -> tuple[HeadScore, ...]:
        """Return what the heads of the tasks reached at the step that was selected."""
        at_best = (line["tasks"] for line in log if line["step"] == best.step and "tasks" in line)
        scores: dict[str, Any] = next(at_best, {})
        return tuple(
            HeadScore(
                task=task.name,
                kind=task.part.kind,
                measure=task.part.measure,
                score=scores[task.name][task.part.measure],
                ntrain=len(task.train),
                ndev=len(task.dev),
            )
            for task in self.tasks
        )

    def _card(self, record: RunRecord, best: Best, steps: int) -> str:
        recipe, head, scored = self._public_recipe(), self.recipe.head, self.recipe.scored_heads
        behind = f"behind the {scored[-1]}" if scored else "before the head"
        about_head = (
            "" if head.kind == "none" and not scored else f" ({head.kind}, in training; vectors are {behind})"
        )
        return model_card(
            self.folder.path.resolve().name,
            # The command may name the person's folders.
            [record.model_copy(update={"command": ""})],
            base_model=recipe.base,
            library="sentence-transformers",
            about=[
                f"A sentence encoder: `{recipe.base}` trained with stsbench {__version__} by the recipe "
                f"`{recipe.name}` on {len(self.store):,} rows of text. The checkpoint is that of step {best.step} "
                f"of {steps}, the best on {recipe.selection.task}.",
                f"Pooling: `{recipe.pooling}`{about_head}. Read it with `SentenceTransformer(folder)`, "
                "`AutoModel`, or `stsbench run --model folder`.",
                *self._about_corpus(),
                *self._about_tasks(record),
            ],
            after_scores=" ".join([_SELECTED, *self.test_remarks]),
            recipe=as_yaml(recipe),
        )

    def _about_corpus(self) -> list[str]:
        """Return what the corpus shares with what encoders are scored on, where that was looked for."""
        return [f"T{said[1:]}" for said in self.found[: len(self.found) - len(self.tasks)]]

    def _about_tasks(self, record: RunRecord) -> list[str]:
        if not record.heads:
            return []
        reached = [
            f"{head.task} {head.measure} {'undefined' if head.score is None else f'{100 * head.score:.2f}'}"
            for head in record.heads
        ]
        tables = " ".join(f"T{task.sentence()[1:]}" for task in self.tasks)
        return [f"Heads trained with it, which are not in the checkpoint: on dev, {listed(reached)}. {tables}"]

    def _public_recipe(self) -> Recipe:
        """Return the recipe without the name of any folder of the person's."""
        path = self.recipe.corpus.path
        corpus = None if path is None else _file_name(path)
        return self.recipe.model_copy(
            update={
                "base": _public_name(self.recipe.base, self.start.base_sha256),
                "corpus": self.recipe.corpus.model_copy(update={"path": corpus}),
                "views": self.recipe.views.with_paths(_own_name),
                "tasks": {name: _named_table(part, _file_name) for name, part in self.recipe.tasks.items()},
            }
        )


def _absolute(name: str) -> str:
    """Return the absolute path of a file or folder; a name that is none stays."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.exists() else name


def _own_name(name: str) -> str:
    """Return the last part of a path; a name of the Hub stays."""
    return _file_name(name) if Path(name).expanduser().exists() else redact(name)


def _public_name(base: str, weights_sha256: str) -> str:
    """Return what others know a base by: of a folder its name on the Hub if the weights say it, else its own."""
    if base == PACKAGED:
        return MINILM
    folder = Path(base).expanduser()
    if not folder.is_dir():
        return redact(base)
    folder = folder.resolve()
    known = known_checkpoint(folder.name, weights_sha256=weights_sha256)
    if known is not None and known.weights_sha256 == weights_sha256:
        return known.hub or known.name
    # The Hub's own cache names a folder by the commit, below one that is named by the model.
    of_cache = [part.removeprefix("models--") for part in folder.parts if part.startswith("models--")]
    return of_cache[-1].replace("--", "/") if of_cache else folder.name


def _with_corpus(recipe: Recipe) -> tuple[Recipe, Path]:
    """Return the recipe with absolute paths of its corpus and of what its views read, and the corpus's file."""
    path = recipe.corpus.path
    if path is None:
        raise UserError("no corpus was named: use --corpus FILE.")
    file = corpus_file(path)
    if path != SAMPLE:
        corpus = recipe.corpus.model_copy(update={"path": str(file.resolve())})
        recipe = recipe.model_copy(update={"corpus": corpus})
    return recipe.model_copy(update={"views": recipe.views.with_paths(_absolute)}), file


def _with_tables(recipe: Recipe) -> Recipe:
    """Return the recipe with the absolute paths of its labelled tables."""
    folder = recipe.labelled.folder

    def absolute(name: str, path: str) -> str:
        return str(table_file(name, path, folder).resolve())

    tasks = {name: _named_table(part, partial(absolute, name)) for name, part in recipe.tasks.items()}
    labelled = recipe.labelled.model_copy(update={"folder": None})
    return recipe.model_copy(update={"tasks": tasks, "labelled": labelled}) if tasks else recipe


def _named_table(part: TaskHead, rename: Callable[[str], str]) -> TaskHead:
    """Return a task whose tables have other paths."""
    tables = {"train": rename(part.train), "dev": None if part.dev is None else rename(part.dev)}
    return part.model_copy(update=tables)


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _read_dev_set(task: str, data_dirs: Sequence[str | Path]) -> StsData:
    sets = read_data(task, protocol=Protocol(), data_dirs=data_dirs)
    if len(sets) != 1 or not isinstance(sets[0], StsPairs):
        raise UserError(f"selection.task {task!r}: name one task with similarity scores, such as STS-B:dev.")
    return sets[0].data


def _is_test_set(dev: StsData) -> bool:
    # Nothing is ever reported on the sample, which has one split.
    return dev.split == "test" and dev.task != SAMPLE


def _require_no_test_set(recipe: Recipe, dev: StsData) -> None:
    task = recipe.selection.task
    if _is_test_set(dev) and not recipe.selection.on_test:
        raise UserError(
            f"selection.task {task} is a test set, and a checkpoint that was chosen by its score there has no "
            "result to report on it: select on STS-B:dev, or ask for it with --set selection.on_test=true, and "
            "recipe, log, card and record say so."
        )
    if recipe.selection.on_test and not _is_test_set(dev):
        raise UserError(f"selection.on_test: {task} is no test set; remove it.")


def _views_sha256(recipe: Recipe, device: str) -> str:
    """Return a hash of what views of text read beside the corpus, "" for nothing; what is missing is told."""
    views = [view for view in (recipe.views.query, recipe.views.key) if isinstance(view, TextView)]
    hashes = [sha256_of(file) for view in views for file in view.require(device)]
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest() if hashes else ""


def _open_store(
    recipe: Recipe, base: "Base", file: Path, now: Start, *, world: "World", progress: Progress
) -> TokenStore:
    corpus, tokenizer = recipe.corpus, base.tokenizer
    if not world.leads:  # the first process builds what the others then find
        world.wait()
    store = open_store(
        tokens_dir(),
        {
            "corpus": now.corpus_sha256,
            # The same bytes are other sentences where they are read as a table.
            "format": ending_of(file),
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


def _trackers(folder: RunFolder, recipe: Recipe, *, tensorboard: bool, wandb: bool) -> list[Listener]:
    name = folder.path.resolve().name
    return [
        *([tensorboard_listener(folder.path / "tensorboard")] if tensorboard else []),
        *([wandb_listener(name, recipe.model_dump(mode="json"))] if wandb else []),
    ]


def _refuse_with_resume(**given: Any) -> None:
    named = [f"--{name}" for name, value in given.items() if value is not None and value != ()]
    if named:
        raise UserError(f"{' and '.join(named)}: not with --resume, which goes on as the training began.")


def _as_yaml_value(value: Any) -> str:
    plain = value if isinstance(value, int) else str(value) if isinstance(value, str | Path) else list(value)
    return json.dumps(plain)  # JSON is YAML
