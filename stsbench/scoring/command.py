"""`stsbench run` and `stsbench import`."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stsbench.base.errors import InterruptError, UserError
from stsbench.base.options import MODEL, RUN, Help, Panel
from stsbench.base.words import listed
from stsbench.cli.options import IntervalChoice, IntervalName, Output, SubsetsFlag
from stsbench.cli.output import progress_bars, say, tell
from stsbench.cli.verbs import Call, Verb
from stsbench.encoders.use import Use

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stsbench.records.record import RunRecord
    from stsbench.scoring.run import LazyModel, Request

_SCORE = "Scores"


def run(
    models: Annotated[Call, Verb("stsbench.scoring.run:choose_models", panel=MODEL)],
    asked: Annotated[Call, Verb("stsbench.scoring.evaluate:evaluate", without=("encoder",), panel=_SCORE)],
    protocol: Annotated[Call, Verb("stsbench.scoring.settings:choose_protocol", panel=_SCORE)],
    use: Use = Use(),
    intervals: IntervalChoice = IntervalChoice(),
    gate: Annotated[
        bool,
        Panel(RUN),
        Help(
            "Measure the checkpoint in fp32 too (into OUT-fp32) and check the lower precision against it: "
            "exit code 3 unless no score is worse by --margin."
        ),
    ] = False,
    margin: Annotated[
        float | None, Panel(RUN), Help("How many points --gate allows a score to lose. Default: 0.5.")
    ] = None,
    subsets: SubsetsFlag = False,
    output: Output = Output(),
) -> None:
    """Measure models on the STS and transfer tasks and record it.

    With no arguments: the packaged model, on the seven tasks if their data is here, else on the sample.

    Examples:
    * `stsbench run --model princeton-nlp/unsup-simcse-bert-base-uncased`
    * `stsbench run -m my/checkpoint --pooling cls_before_pooler --tasks STS-B:dev`
    * `stsbench run -m minilm -m glove.6B.300d.txt --subsets --csv > scores.csv`
    * `stsbench run -m minilm --fast --data pairs.tsv --out runs/own`
    * `stsbench run --encoder-module mymodel:encode --tasks MR,CR,TREC --json`
    * `stsbench run -m minilm --backend openvino --precision int8 --gate`
    """
    named = models.options
    from stsbench.records.record import RunRecord
    from stsbench.records.scores import Scores
    from stsbench.records.show import print_scores
    from stsbench.scoring.run import (
        SAMPLE_BANNER,
        LazyModel,
        choose_data,
        computed_by,
        measure_each,
        with_full_precision,
    )
    from stsbench.scoring.settings import MARGIN, Intervals, require_margin

    if margin is not None and not gate:
        raise UserError("--margin is what --gate allows to be lost: add --gate, or leave it out.")
    margin = MARGIN if margin is None else margin
    require_margin(margin)
    request = _request(
        asked,
        named.get("similarities"),
        protocol=protocol(),
        intervals=Intervals(intervals.dependence),
        use=use,
    )
    wanted = models(use=use)
    chosen = choose_data(request)
    if chosen.is_sample:
        tell(SAMPLE_BANNER)
    failures: list[str] = []
    measured: list[tuple[LazyModel, RunRecord]] = []
    with progress_bars(quiet=output.quiet) as progress:
        if how := {name: asked.options[name] for name in ("fast", "devices", "on") if asked.options.get(name)}:
            wanted = [computed_by(model, progress, **how) for model in wanted]
        to_measure = [each for model in wanted for each in with_full_precision(model)] if gate else wanted
        each_measured = measure_each(
            to_measure,
            chosen,
            request.settings,
            failed=lambda failing, error: failures.append(
                f"{failing.name}: {error}" if len(wanted) > 1 else str(error)
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
        print_scores(Scores(records, subsets=subsets), output, as_list=len(wanted) > 1)
    for _, record in measured:
        replaced = ", where it replaced the record of the same measurement" if record.replaced else ""
        tell(f"recorded in {record.folder}{replaced}", quiet=output.quiet)
    passed = _judged(measured, margin, intervals.interval, output)
    if failures:
        raise UserError(*failures)
    if not passed:
        raise typer.Exit(3)


def _judged(
    measured: "Sequence[tuple[LazyModel, RunRecord]]", margin: float, interval: IntervalName, output: Output
) -> bool:
    """Hold each record against that of its model in fp32, if there is one; print and return the verdict."""
    from stsbench.judging.baseline import check_margin

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


def import_(
    asked: Annotated[
        Call, Verb("stsbench.scoring.evaluate:import_results", without=("command",), required=("out",))
    ],
    output: Output = Output(),
) -> None:
    """Make a record of the results of another program: to check, show or compare.

    What those do not say (the data's files, the pooling) is marked as unknown. Of a table of items the score of a
    task is their mean; `group` columns say which items depend on each other. Predictions of MTEB's
    and runs of TREC's are scored against what `--gold` names.

    Examples:
    * `stsbench import results.json --out runs/senteval`
    * `stsbench import results/owner__model/revision --out runs/mteb`
    * `stsbench import ndcg.parquet --model my/retriever --out runs/ndcg`
    * `stsbench import predictions --gold qrels/test.tsv --out runs/retrieval`
    """
    from stsbench.records.provenance import command_line
    from stsbench.records.scores import Scores
    from stsbench.records.show import print_scores

    record = asked(command=command_line(["stsbench", *sys.argv[1:]]))
    print_scores(Scores([record]), output, as_list=False)
    tell(f"recorded in {record.folder}", quiet=output.quiet)


def _request(asked: Call, similarities: "Path | None", **chosen: Any) -> "Request":
    """Return what to measure on and how.

    Args:
        asked: the options of `evaluate` that were typed.
        similarities: a file of saved similarities, which may say of which tasks they are.
        chosen: other settings.
    """
    from stsbench.data.views import PairView
    from stsbench.records.provenance import command_line
    from stsbench.scoring.run import Request
    from stsbench.scoring.settings import Classification, Settings
    from stsbench.scoring.similarities import tasks_in

    options = asked.options
    tasks = options.get("tasks")
    if tasks is None and "data" not in options and similarities is not None:
        tasks = tasks_in(similarities)
    folder = options.get("out")
    classification = {
        word.removeprefix("classifier_"): value
        for word, value in asked.only("classifier", "kfold", "classifier_seed").items()
    }
    return Request(
        tasks=tasks,
        data_dirs=tuple(options.get("data_dirs", ())),
        view=PairView(options.get("exclude_overlap", False), tuple(options.get("exclude", ()))),
        settings=Settings(
            classification=Classification(**classification),
            out=folder and folder.expanduser(),
            command=command_line(["stsbench", *sys.argv[1:]]),
            **asked.only("use_cache", "overwrite"),
            **chosen,
        ),
        **asked.only("data", "subset_column"),
    )
