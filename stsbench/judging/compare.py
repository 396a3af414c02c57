"""`compare`: is the difference of two models, or of two methods over seeds, real?"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os.path import commonprefix
from pathlib import Path
from typing import Annotated

from stsbench.base.errors import UserError
from stsbench.base.options import DATA, Count, Panel, Spelled
from stsbench.base.progress import Progress, silent
from stsbench.base.words import listed
from stsbench.judging.aligned import aligned_scores, named_runs, records_of
from stsbench.judging.comparison import Comparison
from stsbench.judging.differences import dependence_notes, differences
from stsbench.judging.overlap import overlaps_of
from stsbench.judging.seeds import compare_seeds
from stsbench.judging.seeds_result import SeedsComparison
from stsbench.records.intervals import common_interval, recorded_intervals
from stsbench.records.labels import labels
from stsbench.records.record import RunRecord
from stsbench.scoring.recompute import require_recomputed
from stsbench.scoring.settings import Intervals
from stsbench.statistics.dependence import DEPENDENCE, Dependence
from stsbench.statistics.seeds import RESAMPLES, SEED

Run = RunRecord | str | Path
"""A record, or the folder or `run.json` that it is in."""


def compare(
    a: Run | Sequence[Run],
    b: Run | Sequence[Run] = (),
    *,
    corpora: Annotated[Sequence[str | Path], Spelled("--corpus"), Panel(DATA)] = (),
    data_dirs: Sequence[str | Path] = (),
    intervals: Intervals | None = None,
    resamples: Annotated[Count, Panel("Seeds")] = RESAMPLES,
    seed: Annotated[int, Panel("Seeds")] = SEED,
    progress: Progress = silent,
) -> Comparison | SeedsComparison:
    """Tell whether two models differ, or two methods over several seeds.

    Two runs are compared pair by pair: each task and the average, by what every pair contributes to the difference
    and which pairs share sentences; Holm's correction over the tasks; beside it Williams' and Steiger's tests of
    each task, which take pairs for independent. Two lists of runs are compared as samples of other seeds and other
    pairs: means with intervals, spread, and from five runs of each on tests.

    Args:
        a: a run, or a list of runs of one method with different seeds.
        b: the other run, or the other method's runs; without it, the spread of `a` alone is told.
        corpora: a training corpus in which to look for the test sentences: a file with one text per line, or a
            .csv file with a text in each cell; either may be compressed (.gz).
        data_dirs: folders to look for the test sentences in, before `STSBENCH_DATA` and the cache.
        intervals: how intervals and p-values are computed; by default as the records' own (`common_interval`).
        resamples: how often whole runs are drawn where methods are compared: for the interquartile mean and the
            probability of improvement.
        seed: the seed of these draws.
        progress: told how far it is.

    Returns:
        `.sentence` says it, `.table()` shows it, `.plot()` draws it, `.frame` holds all of the numbers.

    Raises:
        UserError: if the runs do not compare, naming the field; a record does not say what its tables give; or
            something cannot be read.

    >>> import stsbench as sb
    >>> run = sb.evaluate(lambda sentences: [[len(s), s.count("e")] for s in sentences], "sample")
    >>> compare(run, run).sentence
    'Neither is shown to be better on sample: the difference of 0.00 [0.00, 0.00] may be chance at 5 %.'
    """
    runs = records_of([a] if isinstance(a, Run) else a), records_of([b] if isinstance(b, Run) else b)
    intervals = intervals or Intervals(common_interval([*runs[0], *runs[1]]))
    if intervals.interval is None:
        raise UserError("no intervals were asked for, and a comparison rests on one: name how to compute it.")
    # A comparison shows no interval of a run's own: those need not be computed again.
    notes = require_recomputed(*runs[0], *runs[1], intervals=False)
    notes = (*notes, *_interval_notes([*runs[0], *runs[1]], intervals.interval))
    result: Comparison | SeedsComparison
    if isinstance(a, Run) and isinstance(b, Run):
        (one,), (other,) = runs
        result = _compare_models(one, other, intervals, progress)
    else:
        result = _compare_methods(*runs, intervals, resamples, seed)
    result = replace(result, notes=(*result.notes, *notes))
    if not corpora:
        return result
    overlaps, notes = overlaps_of([*runs[0], *runs[1]], corpora, data_dirs, progress)
    return replace(result, overlaps=overlaps, notes=(*result.notes, *notes))


def _interval_notes(records: Sequence[RunRecord], chosen: Dependence) -> Iterator[str]:
    methods = recorded_intervals(records)
    if set(methods) - {chosen}:
        yield f"the records' own intervals are {listed(methods)}, those of this comparison {chosen} (--interval)"


def matching_runs(patterns: Sequence[str | Path]) -> list[Path]:
    """Return the runs that are named, or that match a pattern with `*`, `?` or `[...]`, in order of their names.

    Raises:
        UserError: if nothing matches a pattern.
    """
    runs: list[Path] = []
    for pattern in map(Path, patterns):
        path = pattern.expanduser()
        if path.exists() or not re.search(r"[*?[]", str(path)):
            runs.append(path)
            continue
        root = Path(path.anchor)
        matches = sorted(root.glob(str(path.relative_to(root))))
        if not matches:
            raise UserError(f"no run matches {pattern}: check the pattern.")
        runs += matches
    return runs


def _compare_models(a: RunRecord, b: RunRecord, intervals: Intervals, progress: Progress) -> Comparison:
    runs = named_runs([a, b])
    aligned, notes = aligned_scores(runs, may_be_undefined=True, progress=progress)
    rows, (first, second) = differences(aligned, intervals), runs
    return Comparison(first, second, rows, intervals.level, notes=(*notes, *dependence_notes(rows, intervals)))


def _compare_methods(
    a: Sequence[RunRecord], b: Sequence[RunRecord], intervals: Intervals, resamples: int, seed: int
) -> SeedsComparison:
    if not a:
        raise UserError("there is no run to compare: name at least one.")
    names = _run_names([*a, *b])
    first = dict(zip(names[: len(a)], a, strict=True))
    second = dict(zip(names[len(a) :], b, strict=True))
    return compare_seeds(
        first,
        second,
        _method_names(first, second),
        level=intervals.level,
        interval=intervals.interval or DEPENDENCE,
        resamples=resamples,
        seed=seed,
    )


def _run_names(records: Sequence[RunRecord]) -> list[str]:
    """Return a name for each record: its folder, or what its model is called where it has none."""
    names = [
        str(record.folder) if record.folder else label
        for record, label in zip(records, labels(records), strict=True)
    ]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UserError(f"{repeated} is named twice: give each run once.")
    return names


def _method_names(a: Iterable[str], b: Iterable[str]) -> tuple[str, str]:
    """Return a name for each method: what the names of its runs have in common, or else the first of them."""
    runs = [list(a), list(b)]
    # Character by character, as folders are named simcse-seed1, simcse-seed2.
    alike = [commonprefix(names).rstrip("-_./0123456789") if len(names) > 1 else "" for names in runs]  # noqa: RUF071
    if alike[0] == alike[1]:
        alike = ["", ""]
    one, other = (name or next(iter(names), "") for name, names in zip(alike, runs, strict=True))
    return one, other
