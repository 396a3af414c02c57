"""`stsbench run`, `stsbench import` and `stsbench cite`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stsbench.base.errors import InterruptError, UserError
from stsbench.base.words import listed
from stsbench.cli.options import (
    DATA,
    INTERVAL_HELP,
    LARGEST,
    MODEL,
    OUTPUT,
    RUN,
    DataDirs,
    IntervalName,
    Loading,
    NoCache,
    Output,
    Sentences,
    any_seed,
    finite,
    grouped,
    new_folder,
    number_within,
)
from stsbench.cli.output import print_data, progress_bars, say, tell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stsbench.records.record import RunRecord
    from stsbench.scoring.run import LazyModel

_SCORE = "Scores"

Option = typer.Option


@grouped
def run(
    model: Annotated[
        list[str] | None,
        Option(
            "--model",
            "-m",
            help="What to measure: a Hub name, a folder, `minilm`, a published system (`esimcse-bert-base`, say), "
            "a file of word vectors, or `module:function`. "
            "Give it several times for several models. Default: the packaged `minilm`.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    encoder_module: Annotated[
        list[str] | None,
        Option(
            help="A function of your own, `list[str] -> array`: `mymodel:encode`. Repeatable.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    loading: Loading = Loading(),
    dimensions: Annotated[
        int | None,
        Option(
            callback=number_within(-LARGEST),
            help="Keep the first so many dimensions (Matryoshka).",
            rich_help_panel=MODEL,
        ),
    ] = None,
    whiten: Annotated[
        int | None,
        Option(
            callback=number_within(0),
            help="Whiten on each task's sentences, keep so many dimensions (0: all in which they vary).",
            rich_help_panel=MODEL,
        ),
    ] = None,
    normalize: Annotated[
        bool | None,
        Option(
            "--normalize/--no-normalize",
            help="Scale vectors to unit length. Default: as the checkpoint says for similarities, never for the "
            "classifiers of the transfer tasks.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    vectors: Annotated[
        Path | None,
        Option(help="Score saved vectors: a .npy matrix, with --sentences.", rich_help_panel=MODEL),
    ] = None,
    sentences: Sentences = None,
    similarities: Annotated[
        Path | None,
        Option(
            help="Score saved similarities: .npy or one number a line, per pair; or MTEB's predictions, a file "
            "or a folder of them, whose tasks are the default of --tasks.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    tasks: Annotated[
        str | None,
        Option(
            "--tasks",
            "-t",
            help="`sts` or `transfer` (seven each), `all` (both), `supervised`, `sample`, `sample-transfer`, or "
            "names with split and text: `STS12,STS-B:dev,STS16@raw,TREC`. Default: `sts` if its data is here, "
            "else the sample.",
            rich_help_panel=DATA,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        Option(help="Your own pairs instead: .tsv, .csv, .jsonl or .parquet.", rich_help_panel=DATA),
    ] = None,
    subset_column: Annotated[
        str, Option(help="The column of --data that names subsets.", rich_help_panel=DATA)
    ] = "subset",
    data_dir: DataDirs = None,
    exclude_overlap: Annotated[
        bool,
        Option(
            "--exclude-overlap",
            help="Count a pair in one task alone: the first of the seven, in the papers' order, keeps it.",
            rich_help_panel=DATA,
        ),
    ] = False,
    exclude: Annotated[
        list[Path] | None,
        Option(
            help="A training corpus: leave out pairs with a sentence that stands in it. Repeatable.",
            rich_help_panel=DATA,
        ),
    ] = None,
    protocol: Annotated[
        str, Option(help="`simcse`, `senteval` or `mteb`: sets the four choices below.", rich_help_panel=_SCORE)
    ] = "simcse",
    aggregation: Annotated[
        str | None, Option(help="Over subsets: `all`, `mean` or `wmean`.", rich_help_panel=_SCORE)
    ] = None,
    metric: Annotated[
        str | None, Option(help="`spearman`, `pearson` or `kendall`.", rich_help_panel=_SCORE)
    ] = None,
    similarity: Annotated[
        str | None,
        Option(help="`cosine`, `dot`, `euclidean` or `manhattan` (distances negative).", rich_help_panel=_SCORE),
    ] = None,
    text: Annotated[
        str | None,
        Option(help="`senteval` (tokenised, lower-cased) or `raw` text.", rich_help_panel=_SCORE),
    ] = None,
    classifier: Annotated[
        str,
        Option(
            help="Of the transfer tasks: `logreg` (converged) or `mlp-adam` (SentEval's net, the SimCSE papers').",
            rich_help_panel=_SCORE,
        ),
    ] = "logreg",
    kfold: Annotated[
        int, Option(callback=number_within(), help="Folds of the transfer tasks.", rich_help_panel=_SCORE)
    ] = 10,
    classifier_seed: Annotated[
        int, Option(callback=any_seed, help="Seed of folds and nets.", rich_help_panel=_SCORE)
    ] = 1111,
    interval: Annotated[
        IntervalName, Option(help=INTERVAL_HELP, metavar="METHOD", rich_help_panel=_SCORE)
    ] = "dyadic",
    no_intervals: Annotated[
        bool, Option("--no-intervals", help="Compute no intervals.", rich_help_panel=_SCORE)
    ] = False,
    out: Annotated[
        Path | None,
        Option(
            "--out",
            "-o",
            callback=new_folder,
            help="Folder of the record. Default: `runs/<model>-<pooling>-<tasks>`.",
            rich_help_panel=RUN,
        ),
    ] = None,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Replace another measurement in that folder.", rich_help_panel=RUN)
    ] = False,
    no_cache: NoCache = False,
    gate: Annotated[
        bool,
        Option(
            "--gate",
            help="Measure the same checkpoint in fp32 too (the folder's name ends in -fp32), and hold the lower "
            "precision against it, as `check --baseline --margin` does. Exit code 3 unless no score is worse by "
            "--margin.",
            rich_help_panel=RUN,
        ),
    ] = False,
    margin: Annotated[
        float | None,
        Option(callback=finite, help="Points that --gate allows to be lost. Default: 0.5.", rich_help_panel=RUN),
    ] = None,
    subsets: Annotated[
        bool, Option("--subsets", help="Print every subset too.", rich_help_panel="Output")
    ] = False,
    output: Output = Output(),
) -> None:
    """Measure models on the STS and transfer tasks and record it.

    With no arguments: the packaged model, on the seven tasks if their data is here, else on the sample.

    Examples:
    * `stsbench run --model princeton-nlp/unsup-simcse-bert-base-uncased`
    * `stsbench run -m my/checkpoint --pooling cls_before_pooler --tasks STS-B:dev`
    * `stsbench run -m minilm -m glove.6B.300d.txt --subsets --csv > scores.csv`
    * `stsbench run -m minilm --tasks all --out runs/minilm-all`
    * `stsbench run -m minilm --data pairs.tsv`
    * `stsbench run --encoder-module mymodel:encode --tasks MR,CR,TREC --json`
    * `stsbench run -m minilm --backend openvino --precision int8 --gate`
    """
    _ = output.style  # Two formats at once are a mistake: better told before the work than after.
    from stsbench.encoders.checkpoint import PACKAGED, hash_ahead

    if vectors is None and similarities is None:
        # Before the other imports, which take longer than the hash.
        hash_ahead((model or encoder_module or [PACKAGED])[0])
    from stsbench.data.views import PairView
    from stsbench.encoders.load import LoadOptions
    from stsbench.judging.margin import MARGIN, require_margin
    from stsbench.records.provenance import command_line
    from stsbench.records.record import RunRecord
    from stsbench.records.scores import Scores
    from stsbench.records.show import print_scores
    from stsbench.scoring.predictions import tasks_in
    from stsbench.scoring.protocols import choose_protocol
    from stsbench.scoring.run import (
        SAMPLE_BANNER,
        LazyModel,
        Request,
        choose_data,
        choose_models,
        measure_each,
        with_full_precision,
    )
    from stsbench.scoring.settings import Classification, Intervals, Postprocessing, Settings

    if margin is not None and not gate:
        raise UserError("--margin is what --gate allows to be lost: add --gate, or leave it out.")
    margin = MARGIN if margin is None else margin
    require_margin(margin)
    if tasks is None and data is None and similarities is not None:
        tasks = tasks_in(similarities)
    request = Request(
        tasks=tasks,
        data=data,
        subset_column=subset_column,
        data_dirs=tuple(data_dir or ()),
        view=PairView(exclude_overlap, tuple(exclude or ())),
        settings=Settings(
            protocol=choose_protocol(
                protocol, aggregation=aggregation, metric=metric, similarity=similarity, text=text
            ),
            postprocessing=Postprocessing(dimensions=dimensions, whiten=whiten, normalize=normalize),
            intervals=Intervals(None if no_intervals else interval),
            classification=Classification(classifier, kfold, classifier_seed),
            use_cache=not no_cache,
            out=out and out.expanduser(),
            overwrite=overwrite,
            command=command_line(["stsbench", *sys.argv[1:]]),
        ),
    )
    models = choose_models(
        model or [],
        LoadOptions(**loading.keywords()),
        functions=encoder_module or [],
        vectors=vectors,
        sentences=sentences,
        similarities=similarities,
    )
    chosen = choose_data(request)
    if chosen.is_sample:
        tell(SAMPLE_BANNER)
    failures: list[str] = []
    measured: list[tuple[LazyModel, RunRecord]] = []
    to_measure = [each for model in models for each in with_full_precision(model)] if gate else models
    with progress_bars(quiet=output.quiet) as progress:
        each_measured = measure_each(
            to_measure,
            chosen,
            request.settings,
            failed=lambda failing, error: failures.append(
                f"{failing.name}: {error}" if len(models) > 1 else str(error)
            ),
            progress=progress,
        )
        try:
            measured.extend(each_measured)
        except KeyboardInterrupt as error:
            if not measured:
                raise
            kept = listed([str(record.folder) for _, record in measured])
            raise InterruptError(
                f"interrupted: {kept} recorded, and the same command goes on from the cache."
            ) from error
    if records := [record for of, record in measured if not of.beside]:
        print_scores(Scores(records, subsets=subsets), output, as_list=len(models) > 1)
    for _, record in measured:
        replaced = ", where it replaced the record of the same measurement" if record.replaced else ""
        tell(f"recorded in {record.folder}{replaced}", quiet=output.quiet)
    passed = _judged(measured, margin, interval, output)
    if failures:
        raise UserError(*failures)
    if not passed:
        raise typer.Exit(3)


def _judged(
    measured: "Sequence[tuple[LazyModel, RunRecord]]", margin: float, interval: IntervalName, output: Output
) -> bool:
    """Hold each record against that of its model in fp32, if there is one; print and return the verdict."""
    from stsbench.judging.margin import check_margin

    references = {of.name: record for of, record in measured if of.beside}
    passed = True
    for of, record in measured:
        if of.beside or of.name not in references:
            continue
        check = check_margin(record, references[of.name], margin, interval=interval)
        if output.style == "terminal":
            say("", *str(check.table()).splitlines())
        tell(check.sentence, quiet=output.quiet and check.passed)
        passed = passed and check.passed
    return passed


@grouped
def import_(
    results: Annotated[
        Path,
        typer.Argument(
            help="SentEval's results saved as JSON, a JSON file of MTEB's, or a folder of those; or a table of "
            "items, `task, item, score` and `group...`: .csv, .tsv, .jsonl or .parquet."
        ),
    ],
    out: Annotated[Path, Option("--out", "-o", callback=new_folder, help="Folder of the record.")],
    model: Annotated[str, Option("--model", "-m", help="The model's name, if the files do not say.")] = "",
    aggregation: Annotated[
        str | None,
        Option(help="Over subsets: `all`, `mean` or `wmean`. Default: `all` if it is there, else `wmean`."),
    ] = None,
    metric: Annotated[str, Option(help="`spearman` or `pearson`.")] = "spearman",
    overwrite: Annotated[bool, Option("--overwrite", help="Replace another measurement in that folder.")] = False,
    output: Output = Output(),
) -> None:
    """Make a record of the results of another program: to check, show or compare.

    What those do not say (the data's files, the pooling) is marked as unknown. Of a table of items the score of a
    task is their mean; `group` columns say which items depend on each other.

    Examples:
    * `stsbench import results.json --out runs/senteval`
    * `stsbench import results/owner__model/revision --out runs/mteb`
    * `stsbench import ndcg.parquet --model my/retriever --out runs/ndcg`
    """
    _ = output.style  # Two formats at once are a mistake: better told before the work than after.
    from stsbench.records.imports.read import import_results
    from stsbench.records.provenance import command_line
    from stsbench.records.scores import Scores
    from stsbench.records.show import print_scores
    from stsbench.scoring.importing import import_items
    from stsbench.scoring.kinds.given import FORMATS_READ

    typed = command_line(["stsbench", *sys.argv[1:]])
    if any(suffix in FORMATS_READ for suffix in results.suffixes[-2:]):
        if aggregation is not None:
            raise UserError("--aggregation is over subsets, which a table of items has not: leave it out.")
        record = import_items(results, out=out, model=model, overwrite=overwrite, command=typed)
    else:
        record = import_results(
            results,
            out=out,
            model=model,
            aggregation=aggregation,
            metric=metric,
            overwrite=overwrite,
            command=typed,
        )
    print_scores(Scores([record]), output, as_list=False)
    tell(f"recorded in {record.folder}", quiet=output.quiet)


def cite(
    runs: Annotated[list[Path], typer.Argument(help="Run folders or run.json files.")],
    json: Annotated[bool, Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Print what to cite for the models and tasks of some records, as BibTeX.

    Example: `stsbench cite runs/minilm-avg-sts > references.bib`
    """
    from stsbench.scoring import cite as verb

    citations = verb.cite(runs)
    if json:
        import json as json_

        print_data(json_.dumps(citations, indent=1, ensure_ascii=False))
        return
    for subject, citation in citations.items():
        # BibTeX ignores what stands between entries: a heading is a comment there. But an @ begins an entry even
        # behind a %, and a model may be called anything.
        heading = f"% {subject}".replace("@", "(at)")
        if citation.startswith("@"):
            say(heading)
            print_data(f"{citation}\n")
        else:
            say(f"{heading}: {citation}".replace("@", "(at)"), "")
