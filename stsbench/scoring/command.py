"""`stsbench run` and `stsbench import`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
    IntervalName,
    NoCache,
    OnRay,
    Output,
    SubsetColumn,
    Subsets,
    new_folder,
)
from stsbench.cli.output import print_lines, print_notes, progress_bars
from stsbench.encoders.use import Use

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stsbench.scoring.run import Measured


@expand
def run(
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="A Hub name, a folder, `minilm` (the default), a published system, a file of word vectors, "
            "`mteb:NAME` or `module:function`. Repeatable.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    functions: Annotated[
        list[str] | None,
        typer.Option(
            "--encoder-module",
            help="Your own function `list[str] -> array`: `mymodel:encode`. Repeatable.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(help="Saved vectors, a .npy matrix; needs --sentences.", rich_help_panel=MODEL),
    ] = None,
    sentences: Annotated[
        Path | None, typer.Option(help="The sentences of --vectors, one a line.", rich_help_panel=MODEL)
    ] = None,
    similarities: Annotated[
        Path | None,
        typer.Option(
            help="Saved similarities: .npy, one number a line, or prediction files of MTEB.", rich_help_panel=MODEL
        ),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            "--tasks",
            "-t",
            help="`sts` (the default), `transfer`, `all`, `supervised`, `sample`, or `STS12,STS-B:dev,TREC`.",
            rich_help_panel=DATA,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Your own pairs instead of --tasks: .tsv, .csv, .jsonl or .parquet.", rich_help_panel=DATA
        ),
    ] = None,
    subset_column: SubsetColumn = "subset",
    data_dirs: DataDirs = None,
    exclude_overlap: Annotated[
        bool,
        typer.Option(
            "--exclude-overlap", help="Count a pair that several tasks contain only once.", rich_help_panel=DATA
        ),
    ] = False,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(
            help="A training corpus; pairs with one of its sentences are left out. Repeatable.",
            rich_help_panel=DATA,
        ),
    ] = None,
    classifier: Annotated[
        str,
        typer.Option(
            help="The classifier of transfer tasks: `logreg` (converged) or `mlp-adam` (SentEval's net).",
            rich_help_panel=SCORES,
        ),
    ] = "logreg",
    kfold: Annotated[
        int, typer.Option(min=2, max=LARGEST, help="The folds of transfer tasks.", rich_help_panel=SCORES)
    ] = 10,
    classifier_seed: Annotated[
        int,
        typer.Option(
            min=0, max=LARGEST_SEED, help="The seed of folds, net and trained regressors.", rich_help_panel=SCORES
        ),
    ] = 1111,
    protocol: Annotated[
        str,
        typer.Option(
            help="The preset of the four options below: `simcse`, `senteval` or `mteb`.", rich_help_panel=SCORES
        ),
    ] = "simcse",
    aggregation: Annotated[
        str | None,
        typer.Option(help="How subsets become one score: `all`, `mean` or `wmean`.", rich_help_panel=SCORES),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="`spearman`, `pearson`, `kendall`, or `ap` (average precision) for pairs labelled 1 and 0.",
            rich_help_panel=SCORES,
        ),
    ] = None,
    similarity: Annotated[
        str | None,
        typer.Option(
            help="`cosine`, `dot`, `euclidean` or `manhattan` (distances are negated).", rich_help_panel=SCORES
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            help="The text to encode: `senteval` (tokenised, lower-cased) or `raw`.", rich_help_panel=SCORES
        ),
    ] = None,
    use: Use = Use(),
    no_cache: NoCache = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            callback=new_folder,
            help="The folder of the record; by default `runs/<model>-<pooling>-<tasks>`.",
            rich_help_panel=RUN,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace another measurement in that folder.", rich_help_panel=RUN)
    ] = False,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast",
            help="Use the fastest backend and precision that costs at most 0.5 points on the sample.",
            rich_help_panel=RUN,
        ),
    ] = False,
    devices: Devices = None,
    on: OnRay = None,
    gate: Annotated[
        bool,
        typer.Option(
            "--gate",
            help="Also measure in fp32 (into OUT-fp32); exit code 3 unless no score loses more than --margin.",
            rich_help_panel=RUN,
        ),
    ] = False,
    margin: Annotated[
        float | None,
        typer.Option(
            min=0, max=100, help="The loss in points that --gate allows; 0.5 by default.", rich_help_panel=RUN
        ),
    ] = None,
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
    if margin is not None and not gate:
        raise UserError("--margin needs --gate: add it, or leave --margin out.")
    from stsbench.data.views import PairView
    from stsbench.records.provenance import command_line
    from stsbench.records.scores import Scores
    from stsbench.records.show import print_scores
    from stsbench.scoring.run import (
        SAMPLE_BANNER,
        Request,
        choose_data,
        choose_models,
        computed_by,
        measure_each,
    )
    from stsbench.scoring.settings import (
        MARGIN,
        Classification,
        Intervals,
        Settings,
        choose_protocol,
        require_margin,
    )
    from stsbench.scoring.similarities import tasks_in

    margin = MARGIN if margin is None else margin
    require_margin(margin)
    chosen_protocol = choose_protocol(
        protocol, aggregation=aggregation, metric=metric, similarity=similarity, text=text
    )
    if tasks is None and data is None and similarities is not None:
        tasks = tasks_in(similarities)
    request = Request(
        tasks=tasks,
        data=data,
        subset_column=subset_column,
        data_dirs=tuple(data_dirs or ()),
        view=PairView(exclude_overlap, tuple(exclude or ())),
        settings=Settings(
            protocol=chosen_protocol,
            use=use,
            intervals=Intervals(intervals.dependence),
            classification=Classification(classifier, kfold, classifier_seed),
            use_cache=not no_cache,
            out=out and out.expanduser(),
            overwrite=overwrite,
            command=command_line(["stsbench", *sys.argv[1:]]),
        ),
    )
    chosen = choose_models(
        use,
        models=models or (),
        functions=functions or (),
        vectors=vectors,
        sentences=sentences,
        similarities=similarities,
    )
    data_sets = choose_data(request)
    if data_sets.is_sample:
        print_notes(SAMPLE_BANNER)
    failures: list[str] = []
    measured: list[Measured] = []
    with progress_bars(quiet=output.quiet) as progress:
        if fast or devices or on:
            chosen = [computed_by(model, progress, fast=fast, devices=devices, on=on) for model in chosen]
        records = measure_each(
            chosen,
            data_sets,
            request.settings,
            gate=gate,
            failed=lambda model, error: failures.append(
                f"{model.name}: {error}" if len(chosen) > 1 else str(error)
            ),
            progress=progress,
        )
        try:
            measured.extend(records)
        except KeyboardInterrupt as error:
            if not measured:
                raise
            kept = listed([str(each.record.folder) for each in measured])
            raise InterruptError(
                f"interrupted: {kept} recorded; the same command resumes from the cache."
            ) from error
    if measured:
        print_scores(Scores([each.record for each in measured], subsets=subsets), output, as_list=len(chosen) > 1)
    for record in [record for each in measured for record in (each.record, each.reference) if record is not None]:
        replaced = ", replacing the record of the same measurement" if record.replaced else ""
        print_notes(f"recorded in {record.folder}{replaced}", quiet=output.quiet)
    passed = _passes_gate(measured, margin, intervals.interval, output)
    if failures:
        raise UserError(*failures)
    if not passed:
        raise typer.Exit(3)


def _passes_gate(measured: "Sequence[Measured]", margin: float, interval: IntervalName, output: Output) -> bool:
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
def import_(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            help="Results of SentEval or MTEB, a table of items (`task, item, score`), or with "
            "--gold predictions of MTEB or a TREC run.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", callback=new_folder, help="The folder of the record.")],
    model: Annotated[str, typer.Option("--model", "-m", help="The model's name; by default from the files.")] = "",
    gold: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="What predictions are scored against: qrels, labels or pairs, a folder with a file per task, or "
            "`mteb` for mteb's own data.",
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
    identical_ids: Annotated[
        Literal["keep", "drop"] | None,
        typer.Option(help="Keep or drop documents with the id of their query; needed if there are any."),
    ] = None,
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
    """
    from stsbench.records.provenance import command_line
    from stsbench.records.scores import Scores
    from stsbench.records.show import print_scores
    from stsbench.scoring.evaluate import import_results

    record = import_results(
        path,
        out=out,
        model=model,
        gold=gold,
        aggregation=aggregation,
        metric=metric,
        identical_ids=identical_ids,
        overwrite=overwrite,
        command=command_line(["stsbench", *sys.argv[1:]]),
    )
    print_scores(Scores([record]), output, as_list=False)
    print_notes(f"recorded in {record.folder}", quiet=output.quiet)
