"""`report`: a page about runs in HTML and Markdown, and the model card of a model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench._version import __version__
from stsbench.analysis.explain import explain
from stsbench.analysis.pair_kinds import PairKinds
from stsbench.base.errors import UserError
from stsbench.base.machine import source_date
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed
from stsbench.diagnosis.like import diagnose_vectors
from stsbench.encoders.load import Model, load
from stsbench.judging.compare import compare
from stsbench.judging.comparison import Comparison, difference_text
from stsbench.judging.published import AUTO, TOLERANCE, check_published, checkpoint_of_run, rows_to_check
from stsbench.judging.verdicts import Check
from stsbench.published.catalogue import papers
from stsbench.records.export import model_card as hub_card
from stsbench.records.imports import read_results
from stsbench.records.kinds import AVERAGES
from stsbench.records.labels import labels
from stsbench.records.record import RunRecord
from stsbench.render.figures import keep_colours, look
from stsbench.render.page import Filled, Pointer, Report, Section
from stsbench.reports.papers import filled_papers, paper_named, whole_paper
from stsbench.reports.scores import Runs, intervals, reproducibility, scores, subsets
from stsbench.reports.summary import SUMMARY, findings, human_raters, standing, summary
from stsbench.reports.training import seed_distributions, training
from stsbench.reports.write import require_replaceable, write_report
from stsbench.scoring.recompute import require_recomputed
from stsbench.scoring.settings import Intervals
from stsbench.scoring.subjects import RecordedModel
from stsbench.statistics import DEPENDENCE, Dependence
from stsbench.sweeps.experiment import EXPERIMENT

if TYPE_CHECKING:
    from stsbench.reproduction.reproduced import Reproduction
    from stsbench.sweeps.result import Sweep

FEW = 5
"""The largest number of runs that are analysed and compared."""

Run = RunRecord | str | Path


@look("page")
def report(
    runs: "Reproduction | RunRecord | str | Path | Sequence[RunRecord | str | Path]",
    out: str | Path = "report",
    *,
    paper: str | None = None,
    against: str = AUTO,
    tolerance: float = TOLERANCE,
    like: Model | None = None,
    title: str = "",
    analyse: bool = True,
    interval: Dependence = DEPENDENCE,
    data: Sequence[str | Path] = (),
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Path:
    """Writes a page about runs, in HTML and Markdown, with every table and figure as a file.

    The page's date is `SOURCE_DATE_EPOCH` or that of the newest record: two reports of the same records are the
    same bytes.

    Args:
        runs: folders of runs or experiments, `run.json`, or results of SentEval or MTEB; one or several. In Python
            also records, or the result of `reproduce`, for which only `out` applies.
        out: the folder; a report in it is replaced.
        paper: the layout of a paper (`esimcse`, `mocose`, `simcse`, `gaussian-dropout`, or a full name): all its
            tables in its order.
        against: the published row to check against, as in `check`.
        tolerance: the allowed difference from a published value, in points.
        like: the checkpoint whose vectors the runs' models, such as servers, should give; the page names the
            setting that gives theirs, as `diagnose_vectors` does.
        title: the page's title; by default the models' names.
        analyse: whether to analyse and compare up to five runs.
        interval: which pairs depend on each other, in analyses and comparisons. The intervals of the runs are
            shown as recorded.
        data: files with the sentences of runs on your own pairs, for the analyses; records hold no sentences.
        data_dirs: folders with the data of the analyses.
        progress: receives the progress.

    Returns:
        The page, `index.html` in the folder.

    Raises:
        UserError: if a run or paper cannot be found, the scores of a record differ from its items, or the folder
            contains anything but a report.
    """
    source_date()  # Checks SOURCE_DATE_EPOCH before the work.
    if not isinstance(runs, RunRecord | str | Path | Sequence):
        return write_reproduction(runs, Path(out).expanduser())
    several, experiments = _with_experiments(_listed(runs))
    folder = Path(out).expanduser()
    require_replaceable(folder)
    chosen = paper_named(paper) if paper else None
    records = [read_results(run) for run in several]
    # With many runs only the scores are recomputed: intervals take seconds each.
    unknown = require_recomputed(*records, intervals=len(records) <= FEW)
    dated, named = _date(records), dict(zip(labels(records), records, strict=True))
    keep_colours(list(named))
    how = Intervals(interval)
    checks, unchecked = _checks(named, against, tolerance)
    likened = [] if like is None else [likenesses(named, load(like), progress)]
    parts = [verdicts(checks, unchecked, tolerance), *map(Filled, likened)]
    kinds = None
    differences: dict[str, str] = {}
    if chosen:
        parts += [whole_paper(chosen, named, tolerance)]
    else:
        if analyse and len(named) <= FEW:
            compared, differences = comparisons(named, how, progress)
            options = {"intervals": how, "data": data, "data_dirs": data_dirs, "progress": progress}
            analysed, kinds = analyses(named, **options)
        else:
            reason = f"there are {len(named)} runs; the limit is {FEW}" if analyse else "--no-analyses"
            compared, analysed = (_left_out(title, reason) for title in ("Comparisons", "Analyses"))
        parts += map(Filled, (_papers(named, tolerance), intervals(named), subsets(named)))
        parts += [compared, analysed, training(named), seed_distributions(named)]
    missing = Section("not-measured", "Not measured", points=_missing([*parts, Filled(Section("", ""), unknown)]))
    details = [
        *(experiment.section() for experiment in experiments),
        *(scores(named), human_raters(named)),
        *(part.section for part in parts),
        *(reproducibility(named), missing),
    ]
    standings = {label: standing(record) for label, record in named.items()} if len(named) <= FEW else {}
    causes = [Pointer(part.text[0], part.name) for section in likened for part in section.parts]
    pointers = [*causes, *findings(standings, kinds, how.level)]
    top = summary(named, standings, checks, differences, pointers)
    folded = (replace(part, fold="open" if part.name == "scores" else "closed") for part in details if part)
    sections = (_with_known_links(top, details), *folded)
    heading = title or _title(named, chosen.title if chosen else "")
    return write_report(Report(heading, dated, __version__, sections), folder)


def model_card(runs: Run | Sequence[Run]) -> str:
    """Returns the Hub's model card of a model, with its scores as `model-index`.

    Args:
        runs: a record, its folder or `run.json`; or several of one model (STS and transfer tasks, for example).

    Raises:
        UserError: if a run cannot be found, its scores differ from its items, or the runs are of several models.
    """
    records = [read_results(run) for run in _listed(runs)]
    require_recomputed(*records)
    return hub_card(labels(records[:1])[0], records)


def _listed(runs: Run | Sequence[Run]) -> list[Run]:
    several = [runs] if isinstance(runs, RunRecord | str | Path) else list(runs)
    if not several:
        raise UserError("no run is named: name at least one.")
    return several


def _with_experiments(runs: Sequence[Run]) -> "tuple[list[Run], list[Sweep]]":
    """Returns the runs, with the folders of experiments replaced by their runs; and the experiments."""
    records: list[Run] = []
    experiments = []
    for run in runs:
        if isinstance(run, RunRecord) or not (Path(run).expanduser() / EXPERIMENT).is_file():
            records.append(run)
            continue
        from stsbench.sweeps.result import read_sweep

        experiment = read_sweep(run)
        if not experiment.records():
            raise UserError(f"{run} has no run yet: `stsbench sweep {run}` resumes the experiment.")
        experiments.append(experiment)
        records += experiment.records()
    return records, experiments


def _papers(runs: Runs, tolerance: float) -> Section:
    parts = tuple(filled_papers(runs, tolerance))
    text = ("Your runs are shaded; a run is below the published row that it reproduces, or at the end.",)
    return Section("papers", "The papers' tables", text if parts else (), parts=parts)


def _left_out(title: str, reason: str) -> Filled:
    return Filled(Section(title.lower(), title), (f"{title.lower()} are left out: {reason}",))


def _missing(parts: Sequence[Filled]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentence for part in parts for sentence in part.missing))


def _with_known_links(top: Section, details: Sequence[Section | None]) -> Section:
    """Returns the summary without links to sections that the report does not have."""
    anchors = Report("", "", "", (top, *filter(None, details))).anchors
    pointers = (pointer if pointer.to in anchors else Pointer(pointer.text) for pointer in top.pointers)
    return replace(top, pointers=tuple(pointers))


def _title(runs: Runs, paper: str) -> str:
    names = list(dict.fromkeys(record.model.name for record in runs.values()))
    models = listed(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"
    models = models if len(names) == len(runs) else f"{len(runs)} runs of {models}"
    return f"{models}: {paper}" if paper else f"Report on {models}"


def _date(records: Sequence[RunRecord]) -> str:
    epoch = source_date()
    return epoch.isoformat(timespec="seconds") if epoch else max(record.created for record in records)


def _checks(runs: Runs, against: str, tolerance: float) -> tuple[dict[str, Check], list[str]]:
    """Returns the comparison of each run with its published row, and why other runs have none."""
    checks, unknown, missing = {}, [], []
    for label, record in runs.items():
        if against == AUTO and checkpoint_of_run(record) is None:
            unknown.append(label)
            continue
        try:
            check = check_published(record, rows_to_check(record, against), tolerance)
        except UserError as error:
            if against != AUTO:
                raise
            missing.append(f"check of {label}: {error}")
            continue
        # Two runs of one model differ in the label of the report only.
        checks[label] = replace(check, run=label)
    if unknown:
        missing.append(f"check: no published row is known for {', '.join(unknown)}; name one with --against")
    return checks, missing


def verdicts(checks: Mapping[str, Check], missing: Sequence[str], tolerance: float = TOLERANCE) -> Filled:
    """Returns the published and measured scores of each checked run."""
    tables = [
        replace(
            table,
            caption=f"{label} against {' and '.join(check.against)}",
            name=f"check-{number}",
            notes=check.notes,
        )
        for number, (label, check) in enumerate(checks.items(), 1)
        for table in check.table()
    ]
    text = f"A score passes within {tolerance:g} points of the printed value, or if it rounds to it."
    points = tuple(check.sentence for check in checks.values())
    section = Section("checks", "Verdicts", (text,) if tables else (), tuple(tables), points=points)
    return Filled(section, tuple(missing))


def likenesses(runs: Runs, reference: Model, progress: Progress) -> Section:
    """Returns which way of using a checkpoint gives the vectors of each run's model."""
    parts, captions = [], ("Settings, the nearest first", "Sentences that differ most")
    for number, (label, record) in enumerate(runs.items(), 1):
        likeness = diagnose_vectors(reference, RecordedModel(record.model).base, progress=progress)
        tables = (
            replace(table, name=f"like-{number}-{place}", caption=f"{caption}: {label}")
            for place, (table, caption) in enumerate(zip(likeness.table(), captions, strict=True), 1)
        )
        text = (replace(likeness, subject=label).sentence, *likeness.notes)
        parts.append(Section(f"like-{number}", label, text, tuple(tables)))
    return Section("like", "Vectors compared with the checkpoint's", parts=tuple(parts))


def analyses(runs: Runs, **options: Any) -> tuple[Filled, PairKinds | None]:
    """Returns the analyses by `explain`, which of them were not possible, and the kinds of pairs for findings."""
    section, records = Section("analyses", "Analyses"), list(runs.values())
    try:
        explanation = explain(records, published=True, **options)
    except UserError as error:
        return Filled(section, (f"analyses: {error}",)), None
    missing = explanation.left_out()
    kinds = explanation.parts.get(PairKinds.name)
    if isinstance(kinds, PairKinds):
        missing += [f"kinds of pairs by their words: {why}" for why in dict.fromkeys(kinds.missing.values())]
    parts = tuple(part.section() for part in explanation.parts.values())
    return Filled(replace(section, parts=parts), tuple(missing)), kinds if isinstance(kinds, PairKinds) else None


def comparisons(runs: Runs, how: Intervals, progress: Progress) -> tuple[Filled, dict[str, str]]:
    """Returns each run compared with the first, and by run the difference of their averages, or only scores."""
    section = Section("comparisons", "Comparisons")
    first, *others = runs
    parts, missing, differences = [], [], {}
    for number, other in enumerate(others, 1):
        try:
            comparison = compare(runs[first], runs[other], intervals=how, progress=progress)
        except UserError as error:
            missing.append(f"comparison of {first} and {other}: {error}")
            continue
        assert isinstance(comparison, Comparison)
        whole = comparison.rows[comparison.rows["subset"] == ""]
        averages = whole[whole["task"].isin(AVERAGES)]
        differences[other] = difference_text(next((averages if len(averages) else whole).itertuples()))
        parts.append(replace(comparison, a=first, b=other).section(number))
    text = ("Williams' or McNemar's test; p-values with Holm's correction over tasks.",) if parts else ()
    return Filled(replace(section, text=text, parts=tuple(parts)), tuple(missing)), differences


@look("page")
def write_reproduction(reproduction: "Reproduction", folder: Path | None = None) -> Path:
    """Writes the page of a reproduction: HTML, the same in Markdown, every table as a file.

    Args:
        reproduction: the result of `reproduce`.
        folder: by default `report` in the folder of the experiment; a report in it is replaced.

    Returns:
        The page, `index.html` in the folder.
    """
    short = Section(SUMMARY, "Summary", pointers=reproduction.pointers)
    name, scale = reproduction.exhibit.name, reproduction.scale
    text = "The experiment's folder has a record for each job, from which all numbers here can be recomputed."
    commands = (f"stsbench reproduce {name} --scale {scale}",)
    repeated = Section("repeat", "How to repeat it", (text,), commands=commands)
    section = reproduction.section()
    section = replace(section, parts=(*section.parts, repeated))
    paper = papers()[reproduction.exhibit.paper]
    title = f"{reproduction.exhibit.heading} of {paper.title.partition(':')[0]} ({paper.venue}), reproduced"
    dated = (source_date() or datetime.now(UTC)).date().isoformat()
    page = Report(title, dated, __version__, (short, section))
    return write_report(page, folder or reproduction.folder / "report")
