"""`stsbench run`."""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stsbench.base.errors import InterruptError, UserError
from stsbench.base.words import listed
from stsbench.cli.groups import expand
from stsbench.cli.options import (
    DATA,
    LARGEST,
    LARGEST_SEED,
    MODEL,
    RUN,
    SCORES,
    DataDirs,
    Devices,
    IntervalChoice,
    NoCache,
    OnRay,
    Output,
    SubsetColumn,
    Subsets,
    new_folder,
)
from stsbench.cli.output import print_lines, print_notes, progress_bars
from stsbench.encoders.use import Use
from stsbench.statistics import Dependence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stsbench.base.progress import Progress
    from stsbench.scoring.run import ChosenData, LazyModel, Measured
    from stsbench.scoring.settings import Protocol, Settings


_model, _data, _scores, _run = (partial(typer.Option, rich_help_panel=name) for name in (MODEL, DATA, SCORES, RUN))


@dataclass(frozen=True)
class ModelChoice:
    """The models to measure."""

    models: Annotated[
        list[str] | None,
        _model(
            "--model",
            "-m",
            help="A Hub name, a folder, `minilm` (the default), a published system, a file of word vectors, "
            "`mteb:NAME` or `module:function`. Repeatable.",
        ),
    ] = None
    functions: Annotated[
        list[str] | None,
        _model("--encoder-module", help="Your own function `list[str] -> array`: `mymodel:encode`. Repeatable."),
    ] = None
    vectors: Annotated[Path | None, _model(help="Saved vectors, a .npy matrix; needs --sentences.")] = None
    sentences: Annotated[Path | None, _model(help="The sentences of --vectors, one a line.")] = None
    similarities: Annotated[
        Path | None, _model(help="Saved similarities: .npy, one number a line, or prediction files of MTEB.")
    ] = None

    def choose(self, use: Use) -> "list[LazyModel]":
        """Returns the models, each of which is loaded when its turn comes."""
        from stsbench.scoring.run import choose_models

        return choose_models(
            use,
            models=self.models or (),
            functions=self.functions or (),
            vectors=self.vectors,
            sentences=self.sentences,
            similarities=self.similarities,
        )


@dataclass(frozen=True)
class DataChoice:
    """The tasks or pairs to measure on."""

    tasks: Annotated[
        str | None,
        _data(
            "--tasks",
            "-t",
            help="`sts` (the default), `transfer`, `all`, `supervised`, `sample`, or `STS12,STS-B:dev,TREC`.",
        ),
    ] = None
    data: Annotated[
        Path | None, _data(help="Your own pairs instead of --tasks: .tsv, .csv, .jsonl or .parquet.")
    ] = None
    subset_column: SubsetColumn = "subset"
    data_dirs: DataDirs = None
    exclude_overlap: Annotated[
        bool, _data("--exclude-overlap", help="Count a pair that several tasks contain only once.")
    ] = False
    exclude: Annotated[
        list[Path] | None,
        _data(help="A training corpus; pairs with one of its sentences are left out. Repeatable."),
    ] = None

    def read(self, protocol: "Protocol", similarities: Path | None) -> "ChosenData":
        """Reads the data; by default of `similarities` the tasks that its files name."""
        from stsbench.data.views import PairView
        from stsbench.scoring.run import choose_data
        from stsbench.scoring.similarities import tasks_in

        tasks = self.tasks
        if tasks is None and self.data is None and similarities is not None:
            tasks = tasks_in(similarities)
        return choose_data(
            tasks,
            protocol=protocol,
            data=self.data,
            subset_column=self.subset_column,
            data_dirs=self.data_dirs or (),
            view=PairView(self.exclude_overlap, tuple(self.exclude or ())),
        )


@dataclass(frozen=True)
class ScoreChoice:
    """How tasks are scored."""

    classifier: Annotated[
        str, _scores(help="The classifier of transfer tasks: `logreg` (converged) or `mlp-adam` (SentEval's net).")
    ] = "logreg"
    kfold: Annotated[int, _scores(min=2, max=LARGEST, help="The folds of transfer tasks.")] = 10
    classifier_seed: Annotated[
        int, _scores(min=0, max=LARGEST_SEED, help="The seed of folds, net and trained regressors.")
    ] = 1111
    protocol: Annotated[
        str, _scores(help="The preset of the four options below: `simcse`, `senteval` or `mteb`.")
    ] = "simcse"
    aggregation: Annotated[str | None, _scores(help="How subsets become one score: `all`, `mean` or `wmean`.")] = (
        None
    )
    metric: Annotated[
        str | None,
        _scores(help="`spearman`, `pearson`, `kendall`, or `ap` (average precision) for pairs labelled 1 and 0."),
    ] = None
    similarity: Annotated[
        str | None, _scores(help="`cosine`, `dot`, `euclidean` or `manhattan` (distances are negated).")
    ] = None
    text: Annotated[
        str | None, _scores(help="The text to encode: `senteval` (tokenised, lower-cased) or `raw`.")
    ] = None

    def values(self) -> dict[str, Any]:
        """Returns the protocol and the classification, as `Settings` has them."""
        from stsbench.scoring.settings import Classification, choose_protocol

        protocol = choose_protocol(
            self.protocol,
            aggregation=self.aggregation,
            metric=self.metric,
            similarity=self.similarity,
            text=self.text,
        )
        return {
            "protocol": protocol,
            "classification": Classification(self.classifier, self.kfold, self.classifier_seed),
        }


@dataclass(frozen=True)
class FolderChoice:
    """Where records and vectors are kept."""

    no_cache: NoCache = False
    out: Annotated[
        Path | None,
        _run(
            "--out",
            "-o",
            callback=new_folder,
            help="The folder of the record; by default `runs/<model>-<pooling>-<tasks>`.",
        ),
    ] = None
    overwrite: Annotated[bool, _run("--overwrite", help="Replace another measurement in that folder.")] = False


@dataclass(frozen=True)
class PlaceChoice:
    """What computes."""

    fast: Annotated[
        bool,
        _run("--fast", help="Use the fastest backend and precision that costs at most 0.5 points on the sample."),
    ] = False
    devices: Devices = None
    on: OnRay = None

    def applied(self, models: "list[LazyModel]", progress: "Progress") -> "list[LazyModel]":
        """Returns the models, computed there."""
        from stsbench.scoring.run import computed_by

        if not (self.fast or self.devices or self.on):
            return models
        return [computed_by(model, progress, fast=self.fast, devices=self.devices, on=self.on) for model in models]


@dataclass(frozen=True)
class GateChoice:
    """Whether to compare a lower precision with fp32, and the loss that is allowed."""

    gate: Annotated[
        bool,
        _run(
            "--gate",
            help="Also measure in fp32 (into OUT-fp32); exit code 3 unless no score loses more than --margin.",
        ),
    ] = False
    margin: Annotated[
        float | None, _run(min=0, max=100, help="The loss in points that --gate allows; 0.5 by default.")
    ] = None

    @property
    def allowed(self) -> float:
        """The allowed loss in points.

        Raises:
            UserError: if there is no gate, or the margin is 0.
        """
        from stsbench.scoring.settings import MARGIN, require_margin

        if self.margin is not None and not self.gate:
            raise UserError("--margin needs --gate: add it, or leave --margin out.")
        margin = MARGIN if self.margin is None else self.margin
        require_margin(margin)
        return margin

    def passes(self, measured: "Sequence[Measured]", margin: float, interval: Dependence, output: Output) -> bool:
        """Compares each record with its reference in fp32, if there is one, and prints the verdict."""
        from stsbench.judging.baseline import check_margin

        passed = True
        for _, record, reference in measured:
            if reference is None:
                continue
            check = check_margin(record, reference, margin, interval=interval)
            if output.style == "terminal":
                print_lines("", *str(check.table()).splitlines())
            print_notes(check.sentence, quiet=output.quiet and check.passed)
            passed = passed and check.passed
        return passed


@expand
def run(
    models: ModelChoice = ModelChoice(),
    data: DataChoice = DataChoice(),
    scores: ScoreChoice = ScoreChoice(),
    use: Use = Use(),
    folder: FolderChoice = FolderChoice(),
    place: PlaceChoice = PlaceChoice(),
    gate: GateChoice = GateChoice(),
    intervals: IntervalChoice = IntervalChoice(),
    subsets: Subsets = False,
    output: Output = Output(),
) -> None:
    """Measure models on STS and transfer tasks, and record the scores.

    Without options it measures the packaged model on the seven STS tasks, or on the sample if their data is not
    here.

    Examples:
    * `stsbench run --model princeton-nlp/unsup-simcse-bert-base-uncased`
    * `stsbench run -m my/checkpoint --pooling cls_before_pooler --tasks STS-B:dev`
    * `stsbench run -m minilm -m glove.6B.300d.txt --subsets --csv > scores.csv`
    * `stsbench run -m minilm --fast --data pairs.tsv --out runs/own`
    * `stsbench run --encoder-module mymodel:encode --tasks MR,CR,TREC --json`
    * `stsbench run -m minilm --backend openvino --precision int8 --gate`
    """
    from stsbench.records.provenance import command_line
    from stsbench.records.scores import Scores
    from stsbench.records.show import print_scores
    from stsbench.scoring.run import SAMPLE_BANNER
    from stsbench.scoring.settings import Intervals, Settings

    margin = gate.allowed
    settings = Settings(
        **scores.values(),
        intervals=Intervals(intervals.dependence),
        use_cache=not folder.no_cache,
        out=folder.out and folder.out.expanduser(),
        overwrite=folder.overwrite,
        command=command_line(["stsbench", *sys.argv[1:]]),
    )
    chosen = models.choose(use)
    found = data.read(settings.protocol, models.similarities)
    if found.is_sample:
        print_notes(SAMPLE_BANNER)
    failures: list[str] = []
    with progress_bars(quiet=output.quiet) as progress:
        chosen = place.applied(chosen, progress)
        measured = _measure(chosen, found, settings, gate, failures, progress)
    if measured:
        print_scores(Scores([each.record for each in measured], subsets=subsets), output, as_list=len(chosen) > 1)
    for record in [record for each in measured for record in (each.record, each.reference) if record is not None]:
        replaced = ", replacing the record of the same measurement" if record.replaced else ""
        print_notes(f"recorded in {record.folder}{replaced}", quiet=output.quiet)
    passed = gate.passes(measured, margin, intervals.interval, output)
    if failures:
        raise UserError(*failures)
    if not passed:
        raise typer.Exit(3)


def _measure(
    models: "Sequence[LazyModel]",
    data: "ChosenData",
    settings: "Settings",
    gate: GateChoice,
    failures: list[str],
    progress: "Progress",
) -> "list[Measured]":
    """Measures the models, appends what failed to `failures`, and returns the others' records."""
    from stsbench.scoring.run import measure_each

    def failed(model: "LazyModel", error: UserError) -> None:
        failures.append(f"{model.name}: {error}" if len(models) > 1 else str(error))

    measured: list[Measured] = []
    try:
        measured.extend(measure_each(models, data, settings, gate=gate.gate, failed=failed, progress=progress))
    except KeyboardInterrupt as error:
        if not measured:
            raise
        kept = listed([str(each.record.folder) for each in measured])
        raise InterruptError(f"interrupted: {kept} recorded; the same command resumes from the cache.") from error
    return measured
