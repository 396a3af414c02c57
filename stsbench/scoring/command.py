"""`stsbench run` and `stsbench import`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from stsbench.base.errors import InterruptError, UserError
from stsbench.base.words import listed
from stsbench.cli.options import (
    LARGEST,
    LARGEST_SEED,
    DataDirs,
    IntervalChoice,
    NoCache,
    Output,
    SubsetColumn,
    Subsets,
    data_option,
    expand,
    model_option,
    new_folder,
    run_option,
    scores_option,
)
from stsbench.cli.output import print_lines, print_next, print_notes, progress_bars
from stsbench.encoders.use import Use

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stsbench.records.record import RunRecord
    from stsbench.scoring.run import LazyModel
    from stsbench.scoring.settings import Protocol, Settings, Stages
    from stsbench.scoring.task import Task


@dataclass(frozen=True)
class ModelChoice:
    """The models to measure."""

    models: Annotated[
        list[str] | None,
        model_option(
            "--model",
            "-m",
            help="A Hub name, a folder, `minilm` (the default), a published system, a file of word vectors, "
            "`mteb:NAME`, `module:function`, or a server's `http://HOST:PORT/v1#NAME`. Repeatable.",
        ),
    ] = None
    functions: Annotated[
        list[str] | None,
        model_option(
            "--encoder-module", help="Your own function `list[str] -> array`: `mymodel:encode`. Repeatable."
        ),
    ] = None
    vectors: Annotated[Path | None, model_option(help="Saved vectors, a .npy matrix; needs --sentences.")] = None
    sentences: Annotated[Path | None, model_option(help="The sentences of --vectors, one per line.")] = None

    def choose(self, use: Use) -> "list[LazyModel]":
        """Returns the models; each is loaded when it is measured."""
        from stsbench.scoring.run import choose_models

        return choose_models(
            use,
            models=self.models or (),
            functions=self.functions or (),
            vectors=self.vectors,
            sentences=self.sentences,
        )


IdenticalIds = Annotated[
    Literal["keep", "drop"] | None,
    data_option(help="Keep or drop documents with the id of their query; needed if there are any."),
]


@dataclass(frozen=True)
class DataChoice:
    """The tasks, pairs or documents to measure on."""

    tasks: Annotated[
        str | None,
        data_option(
            "--tasks",
            "-t",
            help="`sts` (the default), `transfer`, `all`, `supervised`, `sample`, or `STS12,STS-B:dev,TREC`.",
        ),
    ] = None
    data: Annotated[
        Path | None,
        data_option(
            help="Your own data instead of --tasks: pairs (.tsv, .csv, .jsonl or .parquet, with the columns "
            "`sentence1`, `sentence2`, `score`), or a folder in BEIR's layout: `corpus.jsonl`, `queries.jsonl`, "
            "`qrels/test.tsv`."
        ),
    ] = None
    corpus: Annotated[Path | None, data_option(help="Documents, a table: `_id`, `text`, `title`.")] = None
    queries: Annotated[Path | None, data_option(help="Queries, a table: `_id`, `text`.")] = None
    qrels: Annotated[
        Path | None, data_option(help="Relevant documents, a table: `query-id`, `corpus-id`, `score`.")
    ] = None
    identical_ids: IdenticalIds = None
    subset_column: SubsetColumn = "subset"
    data_dirs: DataDirs = None
    exclude_overlap: Annotated[
        bool, data_option("--exclude-overlap", help="Count a pair that several tasks contain only once.")
    ] = False
    exclude: Annotated[
        list[Path] | None,
        data_option(help="A training corpus; pairs with one of its sentences are left out. Repeatable."),
    ] = None

    def read(self, protocol: "Protocol") -> "list[Task]":
        """Reads the data, and prints a note if it is the sample for lack of data."""
        from stsbench.data.qrels import load_retrieval
        from stsbench.data.views import PairView
        from stsbench.scoring.tasks import SAMPLE_USED, is_sample, read_data

        parts = {name: getattr(self, name) for name in ("corpus", "queries", "qrels", "identical_ids")}
        retrieval = load_retrieval(self.data, **parts) if any(parts.values()) else None
        tasks = read_data(
            self.tasks if retrieval is None else [*filter(None, [self.tasks]), retrieval],
            protocol=protocol,
            data=self.data if retrieval is None else None,
            subset_column=self.subset_column,
            data_dirs=self.data_dirs or (),
            view=PairView(self.exclude_overlap, tuple(self.exclude or ())),
        )
        if self.tasks is None and self.data is None and is_sample(tasks):
            print_notes(SAMPLE_USED)
        return tasks


@dataclass(frozen=True)
class ScoreChoice:
    """How tasks are scored."""

    classifier: Annotated[
        str,
        scores_option(
            help="The classifier of transfer tasks: `logreg` (converged) or `mlp-adam` (SentEval's net)."
        ),
    ] = "logreg"
    kfold: Annotated[int, scores_option(min=2, max=LARGEST, help="The folds of transfer tasks.")] = 10
    classifier_seed: Annotated[
        int, scores_option(min=0, max=LARGEST_SEED, help="The seed of folds, net and trained regressors.")
    ] = 1111
    protocol: Annotated[
        str, scores_option(help="The preset of the four options below: `simcse`, `senteval` or `mteb`.")
    ] = "simcse"
    aggregation: Annotated[
        str | None, scores_option(help="How subsets become one score: `all`, `mean` or `wmean`.")
    ] = None
    metric: Annotated[
        str | None,
        scores_option(
            help="`spearman`, `pearson`, `kendall`, or `ap` (average precision) for pairs labelled 1 and 0; for "
            "queries `ndcg_at_10` (the default), `mrr_at_10`, `recall_at_5`, `map_at_100`..."
        ),
    ] = None
    similarity: Annotated[
        str | None, scores_option(help="`cosine`, `dot`, `euclidean` or `manhattan` (distances are negated).")
    ] = None
    text: Annotated[
        str | None, scores_option(help="The text to encode: `senteval` (tokenised, lower-cased) or `raw`.")
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
class RunChoice:
    """Where records and vectors are kept."""

    no_cache: NoCache = False
    out: Annotated[
        Path | None,
        run_option(
            "--out",
            "-o",
            callback=new_folder,
            help="The folder of the record; by default `runs/<model>-<pooling>-<tasks>`.",
        ),
    ] = None
    overwrite: Annotated[bool, run_option("--overwrite", help="Replace another measurement in that folder.")] = (
        False
    )


@expand
def run(
    models: ModelChoice = ModelChoice(),
    data: DataChoice = DataChoice(),
    scores: ScoreChoice = ScoreChoice(),
    use: Use = Use(),
    how: RunChoice = RunChoice(),
    intervals: IntervalChoice = IntervalChoice(),
    subsets: Subsets = False,
    output: Output = Output(),
) -> None:
    """Measure models on STS and transfer tasks or your own data, and record the scores.

    Without options it measures the packaged model on the seven STS tasks, or on the sample if their data is not
    here.

    Examples:
    * `stsbench run --model princeton-nlp/unsup-simcse-bert-base-uncased`
    * `stsbench run -m my/checkpoint --pooling cls_before_pooler --tasks STS-B:dev`
    * `stsbench run -m minilm -m glove.6B.300d.txt --subsets --csv > scores.csv`
    * `stsbench run -m minilm --data pairs.tsv --out runs/own`
    * `stsbench run -m model-a -m model-b --data my-set/ --prompts "query: ,passage: "`
    * `stsbench run --encoder-module mymodel:encode --tasks MR,CR,TREC --json`
    * `stsbench run -m http://127.0.0.1:8000/v1#NAME --revision v1`
    """
    from stsbench.records.parts import command_line
    from stsbench.records.scores import Scores
    from stsbench.records.show import print_scores
    from stsbench.reports.summary import answer
    from stsbench.scoring.settings import Intervals, Settings, Stages

    settings = Settings(
        **scores.values(),
        intervals=Intervals(intervals.dependence),
        use_cache=not how.no_cache,
        out=how.out and how.out.expanduser(),
        overwrite=how.overwrite,
        command=command_line(["stsbench", *sys.argv[1:]]),
    )
    chosen = models.choose(use)
    if how.out is not None and len(chosen) > 1:
        raise UserError("--out is a single folder, but there are several models: leave it out.")
    stages = Stages()
    tasks = data.read(settings.protocol)
    stages.done("data")
    failures: list[str] = []
    with progress_bars(quiet=output.quiet) as progress:
        stages.progress = progress
        records = _measure(chosen, tasks, settings, stages, failures)
    if records:
        print_scores(Scores(records, subsets=subsets), output, as_list=len(chosen) > 1)
    for record in records:
        replaced = ", replacing the record of the same measurement" if record.replaced else ""
        # The name of a default folder is always printed.
        print_notes(f"recorded in {record.folder}{replaced}", quiet=output.quiet and how.out is not None)
    if records and output.style == "terminal" and not output.quiet:
        *sentences, following = answer(records)
        if sentences:
            print_lines("", *sentences)
        print_notes(following)
    if failures:
        raise UserError(*failures)


def _measure(
    models: "Sequence[LazyModel]",
    tasks: "Sequence[Task]",
    settings: "Settings",
    stages: "Stages",
    failures: list[str],
) -> "list[RunRecord]":
    """Measures the models, appends errors to `failures`, and returns the records of the others."""
    from stsbench.scoring.run import measure
    from stsbench.scoring.settings import Stages

    records: list[RunRecord] = []
    try:
        for model in models:
            try:
                taken = {record.folder for record in records if record.folder}
                of_model = Stages(stages.progress, dict(stages.seconds))
                records.append(measure(model.load(), tasks, settings, of_model, taken))
            except UserError as error:
                failures.append(f"{model.name}: {error}" if len(models) > 1 else str(error))
    except KeyboardInterrupt as error:
        if not records:
            raise
        kept = listed([str(record.folder) for record in records])
        raise InterruptError(f"interrupted: {kept} recorded; the same command resumes from the cache.") from error
    return records


@expand
def import_(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            help="Results of SentEval or MTEB, a table of items (`task, item, score`), or with --gold predictions "
            "of MTEB, a TREC run, or one similarity per pair (.npy, or one per line).",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", callback=new_folder, help="The folder of the record.")],
    model: Annotated[str, typer.Option("--model", "-m", help="The model's name; by default from the files.")] = "",
    gold: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="The gold data of predictions: tasks (`sts`, `STS-B:dev`), or a file of qrels or pairs.",
        ),
    ] = None,
    aggregation: Annotated[
        str | None,
        typer.Option(
            help="How subsets become one score: `all`, `mean` or `wmean`; by default `all` if available."
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="`spearman` (the default) or `pearson`; for queries `ndcg_at_10`, `map_at_5`, `mrr_at_10`..."
        ),
    ] = None,
    identical_ids: IdenticalIds = None,
    data_dirs: DataDirs = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace another measurement in that folder.")
    ] = False,
    output: Output = Output(),
) -> None:
    """Record the results of another program, to check, show or compare them.

    What the files do not contain (data hashes, pooling) is recorded as unknown. The score of a table of items is
    their mean; its `group` columns define which items depend on each other.

    Examples:
    * `stsbench import results.json --out runs/senteval`
    * `stsbench import results/owner__model/revision --out runs/mteb`
    * `stsbench import ndcg.parquet --model my/retriever --out runs/ndcg`
    * `stsbench import predictions --gold qrels/test.tsv --out runs/retrieval`
    * `stsbench import cosines.npy --gold STS-B --out runs/cosines`
    """
    from stsbench.records.parts import command_line
    from stsbench.records.scores import Scores
    from stsbench.records.show import print_scores
    from stsbench.scoring.import_results import import_results

    record = import_results(
        path,
        out=out,
        model=model,
        gold=gold,
        aggregation=aggregation,
        metric=metric,
        identical_ids=identical_ids,
        data_dirs=data_dirs or (),
        overwrite=overwrite,
        command=command_line(["stsbench", *sys.argv[1:]]),
    )
    print_scores(Scores([record]), output, as_list=False)
    print_notes(f"recorded in {record.folder}", quiet=output.quiet)
    print_next(output, "report", record.folder)
