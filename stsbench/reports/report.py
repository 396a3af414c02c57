"""`report`: pages that people read, made of records."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from stsbench._version import __version__
from stsbench.analysis.explain import explain
from stsbench.analysis.pair_kinds import PairKinds
from stsbench.base.epoch import source_date
from stsbench.base.errors import UserError
from stsbench.base.progress import Progress, silent
from stsbench.judging.compare import compare
from stsbench.judging.published import AUTO, TOLERANCE, check_published, known_checkpoint, rows_to_check
from stsbench.published.catalogue import papers
from stsbench.records.imports import read_results
from stsbench.records.labels import labels
from stsbench.records.record import RunRecord
from stsbench.render.figures import keep_colours, look
from stsbench.render.section import Filled, Report, Section
from stsbench.reports.findings import findings
from stsbench.reports.in_short import IN_SHORT, TITLE, in_short
from stsbench.reports.papers import filled_papers, paper_named, whole_paper
from stsbench.reports.people import people
from stsbench.reports.reproducibility import reproducibility
from stsbench.reports.scores import Runs, intervals, scores, shared_sentences, subsets
from stsbench.reports.standing import standing
from stsbench.reports.training import seed_distributions, training
from stsbench.reports.write import require_replaceable, write_report
from stsbench.scoring.recompute import require_recomputed
from stsbench.scoring.settings import Intervals
from stsbench.statistics import DEPENDENCE, Dependence
from stsbench.sweeps.experiment import EXPERIMENT

if TYPE_CHECKING:
    from stsbench.reproduction.reproduced import Reproduction
    from stsbench.sweeps.result import Sweep

_RECOMPUTED = Section("recomputed", "Computed again from the tables")

FEW = 5
"""How many runs are analysed and compared: of more the curves hide one another, and it takes minutes."""


@look("page")
def report(
    runs: "Reproduction | RunRecord | str | Path | Sequence[RunRecord | str | Path]",
    out: str | Path = "report",
    *,
    paper: str | None = None,
    against: str = AUTO,
    tolerance: float = TOLERANCE,
    title: str = "",
    date: str = "",
    analyse: bool = True,
    interval: Dependence = DEPENDENCE,
    data_dirs: Sequence[str | Path] = (),
    progress: Progress = silent,
) -> Path:
    """Write a folder with a page about some runs, in HTML and in Markdown, with all tables and figures.

    Args:
        runs: folders of runs or experiments, `run.json`, files of results of SentEval or MTEB; one or several. In
            Python also records, or what `reproduce` returned, whose page takes `out` and `date` alone.
        out: the folder; a report that is in it already is replaced.
        paper: the layout of one paper (`esimcse`, `mocose`, `simcse`, `gaussian-dropout`, or a full name): all of
            its tables in its order, and nothing else but the verdicts and what is needed to repeat them.
        against: the published row to check against, as in `check`.
        tolerance: how many points a score may differ from its published value.
        title: the page's title; by default it names the models.
        date: the date that the page bears; by default `SOURCE_DATE_EPOCH`, or else the newest record's date, so
            that two reports of the same records are the same bytes.
        analyse: whether to analyse and compare up to five runs, which takes a minute or so each.
        interval: which pairs depend on each other, in analyses and comparisons. The runs' own intervals are
            shown as recorded.
        data_dirs: folders to look for the data of the analyses in.
        progress: told how far it is.

    Returns:
        The page, `index.html` in the folder.

    Raises:
        UserError: if a run or a paper cannot be found, a record does not say what its tables give, or the folder
            holds anything but a report.
    """
    source_date()  # A mistake in it is told before the work.
    if not isinstance(runs, RunRecord | str | Path | Sequence):
        return write_reproduction(runs, Path(out).expanduser(), date=date)
    several = [runs] if isinstance(runs, RunRecord | str | Path) else list(runs)
    if not several:
        raise UserError("nothing to report: name a run.")
    several, experiments = _with_experiments(several)
    folder = Path(out).expanduser()
    require_replaceable(folder)
    chosen = paper_named(paper) if paper else None
    records = [read_results(run) for run in several]
    # Of many runs the scores alone: their intervals take seconds.
    recomputed = Filled(_RECOMPUTED, require_recomputed(*records, intervals=len(records) <= FEW))
    dated, named = _date(date, records), dict(zip(labels(records), records, strict=True))
    keep_colours(list(named))
    checked = verdicts(named, against, tolerance)
    how, kinds = Intervals(interval), None
    measured = tuple(filter(None, [scores(named), people(named)]))
    if chosen:
        filled = [whole_paper(chosen, named, tolerance)]
        parts = [checked, *filled]
        sections = [*measured, checked.section, filled[0].section]
    else:
        filled = list(filled_papers(named, tolerance))
        curves, spread = training(named), seed_distributions(named)
        compared = comparisons(named, how, progress) if analyse or len(named) == 1 else _left_out("Comparisons")
        behind = analyses(named, how, data_dirs, progress) if analyse else _left_out("Analyses")
        kinds = behind.kinds if isinstance(behind, Analysed) else None
        parts = [checked, *filled, compared, behind, curves, spread]
        sections = [
            *(*measured, checked.section, _papers(filled), intervals(named), subsets(named)),
            shared_sentences(named),
            *(part.section for part in (compared, behind, curves, spread)),
        ]
    sections[:0] = [experiment.section() for experiment in experiments]
    sections += [reproducibility(named), _not_measured([*parts, recomputed])]
    standings = {label: standing(record) for label, record in named.items()} if len(named) <= FEW else {}
    found = findings(standings, kinds, how.level)
    sections.insert(0, in_short(named, sections, standings, found))
    heading = title or _title(named, chosen.title if chosen else "")
    page = Report(heading, dated, __version__, tuple(sections))
    return write_report(page, folder)


def _with_experiments(
    runs: Sequence[RunRecord | str | Path],
) -> "tuple[list[RunRecord | str | Path], list[Sweep]]":
    """Return the runs, those of experiments in their folders' place; and the experiments."""
    records: list[RunRecord | str | Path] = []
    experiments = []
    for run in runs:
        if isinstance(run, RunRecord) or not (Path(run).expanduser() / EXPERIMENT).is_file():
            records.append(run)
            continue
        from stsbench.sweeps.result import read_sweep

        experiment = read_sweep(run)
        if not experiment.records():
            raise UserError(f"{run} has no run yet: `stsbench sweep {run}` goes on with the experiment.")
        experiments.append(experiment)
        records += experiment.records()
    return records, experiments


def _papers(filled: Sequence[Filled]) -> Section:
    text = "Rows measured here stand under the published row that they reproduce, or at the end; they are shaded."
    parts = tuple(part.section for part in filled if part.section)
    return Section("papers", "The papers' tables", (text,) if parts else (), parts=parts)


def _left_out(title: str) -> Filled:
    return Filled(Section(title.lower(), title), (f"{title.lower()}: left out, as asked",))


def _not_measured(parts: Sequence[Filled]) -> Section:
    points = tuple(dict.fromkeys(point for part in parts for point in part.missing))
    return Section("not-measured", "Not measured", points=points)


def _title(runs: Runs, paper: str) -> str:
    names = list(runs)
    models = ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"
    return f"{models}: {paper}" if paper else f"Report on {models}"


def _date(asked: str, records: Sequence[RunRecord]) -> str:
    if asked:
        try:
            datetime.fromisoformat(asked)
        except ValueError as error:
            raise UserError(f"{asked!r} is no date: write it as 2026-01-31.") from error
        return asked
    epoch = source_date()
    return epoch.isoformat(timespec="seconds") if epoch else max(record.created for record in records)


def verdicts(runs: Runs, against: str = AUTO, tolerance: float = TOLERANCE) -> Filled:
    """Return a table of differences and verdicts for each run, and why others could not be checked."""
    tables, unknown, missing, sentences = [], [], [], []
    for number, (label, record) in enumerate(runs.items(), 1):
        if against == AUTO and known_checkpoint(record) is None:
            unknown.append(label)
            continue
        try:
            # By the report's name: of two runs of one model it says what tells them apart.
            check = replace(check_published(record, rows_to_check(record, against), tolerance), run=label)
        except UserError as error:
            if against != AUTO:
                raise
            missing.append(f"check of {label}: {error}")
            continue
        sentences.append(check.sentence)
        caption, notes = f"{label} against {' and '.join(check.against)}", check.notes
        tables += [replace(table, caption=caption, name=f"check-{number}", notes=notes) for table in check.table()]
    if unknown:
        missing.append(f"check: no published row is known for {', '.join(unknown)}; --against names one")
    text = f"A score passes if it is within {tolerance:g} points of the printed value, or prints as that does."
    section = Section("checks", "Verdicts", (text,) if tables else (), tuple(tables), points=tuple(sentences))
    return Filled(section, tuple(missing))


@dataclass(frozen=True)
class Analysed(Filled):
    """What is behind the scores, and which analyses were not possible.

    Attributes:
        kinds: the errors by kind of pair, of which findings are told; None without them.
    """

    kinds: PairKinds | None = None


def analyses(runs: Runs, how: Intervals, data_dirs: Sequence[str | Path], progress: Progress) -> Analysed:
    """Return what is behind the scores, and which analyses were not possible."""
    section = Section("analyses", "Analyses")
    if len(runs) > FEW:
        reason = f"analyses: made for at most {FEW} runs, here are {len(runs)}; `stsbench explain` takes more"
        return Analysed(section, (reason,))
    drawn: list[Future[Section]] = []
    # Drawing is Python's own work, which one core does; the next analysis has products, which need no Python.
    with ThreadPoolExecutor(1) as drawing:
        try:
            explanation = explain(
                list(runs.values()),
                published=True,
                intervals=how,
                data_dirs=data_dirs,
                leave_out=True,
                progress=progress,
                finished=lambda part: drawn.append(drawing.submit(copy_context().run, part.section)),
            )
        except UserError as error:
            return Analysed(section, (f"analyses: {error}",))
    missing = explanation.left_out()
    kinds = explanation.parts.get(PairKinds.name)
    if isinstance(kinds, PairKinds):
        missing += [f"kinds of pairs by their words: {why}" for why in dict.fromkeys(kinds.missing.values())]
    return Analysed(
        replace(section, parts=tuple(each.result() for each in drawn)),
        tuple(missing),
        kinds if isinstance(kinds, PairKinds) else None,
    )


def comparisons(runs: Runs, how: Intervals, progress: Progress) -> Filled:
    """Return each run compared with the first, pair by pair."""
    section, missing = Section("comparisons", "Comparisons"), []
    first, *others = runs
    if len(runs) > FEW:
        reason = f"comparisons: made for at most {FEW} runs, here are {len(runs)}; `stsbench compare` makes any"
        return Filled(section, (reason,))
    parts = []
    for number, other in enumerate(others, 1):
        try:
            comparison = compare(runs[first], runs[other], intervals=how, progress=progress)
        except UserError as error:
            missing.append(f"comparison of {first} and {other}: {error}")
            continue
        # The report's names: of two runs alone, labels may be shorter.
        parts.append(replace(comparison, a=first, b=other).section(number))
    text = (
        "Differences pair by pair or item by item, beside them Williams' or McNemar's test; Holm's correction "
        "over tasks."
    )
    return Filled(replace(section, text=(text,) if parts else (), parts=tuple(parts)), tuple(missing))


@look("page")
def write_reproduction(reproduction: "Reproduction", folder: Path | None = None, *, date: str = "") -> Path:
    """Write the page of a reproduction: HTML that needs no network, the same in Markdown, every table as a file.

    Args:
        reproduction: what `reproduce` returned.
        folder: where; by default `report` in the experiment's folder. A report that is in it is replaced.
        date: of the page; by default `SOURCE_DATE_EPOCH`, or else today.

    Returns:
        The page, `index.html` in the folder.
    """
    short = Section(IN_SHORT, TITLE, pointers=reproduction.pointers)
    name, scale = reproduction.exhibit.name, reproduction.scale
    text = "The experiment's folder has a record for each job, from which all numbers here can be computed again."
    commands = (f"stsbench reproduce {name} --scale {scale}",)
    repeated = Section("repeat", "How to repeat it", (text,), commands=commands)
    section = reproduction.section()
    section = replace(section, parts=(*section.parts, repeated))
    paper = papers()[reproduction.exhibit.paper]
    title = f"{reproduction.exhibit.heading} of {paper.title.partition(':')[0]} ({paper.venue}), made again"
    dated = date or (source_date() or datetime.now(UTC)).date().isoformat()
    page = Report(title, dated, __version__, (short, section))
    return write_report(page, folder or reproduction.folder / "report")
