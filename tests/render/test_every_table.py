"""Every table that is printed: each distinct thing has its column and its row, whatever it is called.

The maker of a result builds one of three things with such names (tasks, models, axes, files), each number of it
another one, and says which numbers belong into one row and which into one column. In every format they stand so. A
kind of result, or a part of the report, that has no maker fails the last tests.
"""

import csv
import html
import inspect
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import count, pairwise
from pathlib import Path
from pkgutil import walk_packages
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import stsbench
import stsbench as sb
from stsbench.analysis.compress import Compressed
from stsbench.analysis.density import Density
from stsbench.analysis.dimensions import Dimensions
from stsbench.analysis.evalrank import EvalRank
from stsbench.analysis.explain import Explanation
from stsbench.analysis.geometry import Geometry
from stsbench.analysis.hubness import Hubs
from stsbench.analysis.length_bias import LengthBias
from stsbench.analysis.length_collapse import LengthCollapse
from stsbench.analysis.length_measures import ABSOLUTE, ALL, GAP, PARTIAL, RELATIVE, SIGNED, SLOPE, SPEARMAN
from stsbench.analysis.pair_kinds import COST, SHIFT, PairKinds
from stsbench.analysis.probes import CHANGED, ORDER, PARAPHRASE, Probes
from stsbench.analysis.probes import GAP as PROBED_GAP
from stsbench.analysis.repetition_bias import Q_S1, Q_S2, QUERIES, RISE, SEEDS, TOGETHER, RepetitionBias
from stsbench.analysis.retrieve import Retrieval
from stsbench.analysis.spectrum import Spectrum, spectrum_frame
from stsbench.analysis.stability import Stability
from stsbench.analysis.ties import TieRanges
from stsbench.browsing.board import Board
from stsbench.browsing.explore import Explored
from stsbench.browsing.items import TaskItems, Total
from stsbench.browsing.kept import Kept
from stsbench.browsing.sections import BoardColumn, BoardRun, BoardSection
from stsbench.data.benchmarks import load_sample
from stsbench.data.describe import Description
from stsbench.data.overlap import PAIRS, SENTENCES, DataOverlap
from stsbench.data.overview import DataOverview, DataVerification
from stsbench.data.shared import LETTERS, RELEASED
from stsbench.diagnosis.choices import POOLING
from stsbench.diagnosis.claim import Claim, Value
from stsbench.diagnosis.grid import Axis, Grid, axis_of_means
from stsbench.diagnosis.result import Diagnosis
from stsbench.diagnosis.search import Search
from stsbench.doctor.doctor import CacheContents, Examination, Finding
from stsbench.encoders.cache import CacheFile
from stsbench.encoders.embedded import About, Embedded
from stsbench.encoders.fit import Fitting
from stsbench.judging.best_of import BestOf
from stsbench.judging.comparison import Comparison, Difference
from stsbench.judging.overlap import Overlap
from stsbench.judging.planning import Plan, PlannedTask
from stsbench.judging.rank import RankedScore, RankedTask, RankResult
from stsbench.judging.seeds import SeedsComparison, SeedsDifference
from stsbench.judging.verdicts import CellCheck, Check
from stsbench.published import catalogue
from stsbench.published.catalogue import exhibits
from stsbench.published.lookup import Listing, PrintedRow, PrintedTable
from stsbench.published.resolution import PrintedDifference, ResolvedTable, facts
from stsbench.records.export import ExportedResults
from stsbench.records.hub import HubExport
from stsbench.records.labels import labels, task_labels
from stsbench.records.parts import AveragePart, HeadScore, Number, RaterPart
from stsbench.records.record import RunRecord
from stsbench.records.scores import Scores
from stsbench.render.cells import as_read
from stsbench.render.result import Result
from stsbench.render.section import Report, Section
from stsbench.render.table import Table, Tables
from stsbench.reports import papers, reproducibility
from stsbench.reports import people as report_people
from stsbench.reports import scores as report_scores
from stsbench.reports.write import to_html
from stsbench.reproduction.reproduce import Reproductions
from stsbench.reproduction.reproduced import Cost, Reproduction
from stsbench.reproduction.table_plan import PlannedColumn, plan_of
from stsbench.reproduction.tables import ReproducedCell
from stsbench.sweeps.experiment import Experiment
from stsbench.sweeps.forecast import Forecast
from stsbench.sweeps.jobs import GivenCheckpoint, Job
from stsbench.sweeps.result import Sweep
from stsbench.sweeps.states import DONE, Finished, JobState
from stsbench.training.result import Training

ONE_WORD = """
model task subset metric pairs score signature split text file status name Avg. STS16 sample minilm spearman
captions rank ranks groups first setting changes off row source median difference group all set cosine a b A B p
verdict measured job seed state seconds threads folder cell measure runs mean sd low high interval seed_share hours
value index level_0 Recipe Steps fp32 loss stsbench date ceiling a|b a&b 10.01
"""

NAMES = (
    *ONE_WORD.split(),
    *("Avg. transfer", "all tasks", "captions: captions", "model (task)", "captions (task)", "captions (subset)"),
    *("Avg. [2]", "model [2]", "2.5 %", "97.5 %", "95 %", "5 %", "best of", "B − A", "  devacc", "two\nwords"),
    *("two words", "ratings a pair"),
)
"""What things may be called: as other tasks, subsets, models, metrics and columns are."""

ROOT = Path(stsbench.__file__).parent

Names = tuple[str, str, str]
Grid_ = Sequence[Sequence[str]]
Made = tuple[Result | Tables, Sequence[tuple[int, Grid_]]]
"""A result, and of some of its tables their place and their numbers: a row for each thing that has a row."""


class Numbers:
    """Numbers no two of which are alike, neither as values nor as they are printed."""

    def __init__(self, first: int = 100_001) -> None:
        # Squares apart: no mean of some is one of them.
        self._next = (first + place**2 for place in count())

    def __call__(self) -> float:
        """Return one that is printed as it is."""
        return next(self._next) / 100

    def share(self) -> float:
        """Return one that is printed x 100."""
        return next(self._next) / 10_000

    def text(self) -> str:
        return f"{self():.2f}"


def grid(values: Sequence[Sequence[float]], scale: float = 1) -> Grid_:
    return [[f"{scale * value:.2f}" for value in line] for line in values]


def down(values: Sequence[float], scale: float = 1) -> Grid_:
    return grid([[value] for value in values], scale)


def of_markdown(text: str) -> list[list[str]]:
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    return of_html(page)


def of_html(page: str) -> list[list[str]]:
    rows = re.findall(r"<tr.*?</tr>", page, flags=re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL) for row in rows]
    return [[html.unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in row] for row in cells]


def of_latex(text: str) -> list[list[str]]:
    lines = text.partition(r"\toprule")[2].splitlines()
    rows = [line.removesuffix(r" \\") for line in lines if line.endswith(r" \\")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)&", row)] for row in rows]


def of_csv(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def of_json(text: str) -> list[list[Any]]:
    rows = json.loads(text, object_pairs_hook=list)
    assert all([name for name, _ in row] == [name for name, _ in rows[0]] for row in rows)
    return [[name for name, _ in rows[0]], *([value for _, value in row] for row in rows)] if rows else []


def of_terminal(text: str, heads: Sequence[str]) -> list[list[str]]:
    """Return the cells of a table without a caption: columns end where the rule and the widest cell do."""
    first, rule, *rows = text.split("\n")
    assert set(rule) == {"─"}
    # Two blanks separate columns; a cell has none, but for those at its beginning.
    lines = [first, *rows]
    width = max(map(len, lines))
    blank = [all(len(line) <= at or line[at] == " " for line in lines) for at in range(width)]
    cuts = [at for at in range(1, width) if blank[at] and blank[at - 1]]
    ends = [at for at in cuts if at + 1 < width and not blank[at + 1]]
    cells = [[line[a:b].strip() for a, b in pairwise([0, *(end + 1 for end in ends), width])] for line in lines]
    assert len(cells[0]) == len(heads), text
    return cells


def places(cells: list[list[Any]], numbers: Grid_) -> list[list[tuple[int, int]]]:
    """Return where each number stands; each stands once."""
    found: dict[str, list[tuple[int, int]]] = {}
    for row, line in enumerate(cells[1:]):
        for column, cell in enumerate(line):
            for token in re.findall(r"\d+(?:\.\d+)?", str(cell)):
                # Some formats have more digits.
                found.setdefault(f"{float(token):.2f}", []).append((row, column))
    where = []
    for line in numbers:
        where.append([])
        for number in line:
            (place,) = set(found.get(number, []))
            where[-1].append(place)
    return where


def require_in_place(cells: list[list[Any]], numbers: Grid_) -> None:
    where = places(cells, numbers)
    rows = [{row for row, _ in line} for line in where]
    columns = [{column for _, column in line} for line in zip(*where, strict=True)]
    assert all(len(each) == 1 for each in (*rows, *columns)), where
    assert len(set.union(*rows)) == len(rows), where
    assert len(set.union(*columns)) == len(columns), where


def require_distinct(heads: Sequence[Any]) -> None:
    assert len({as_read(str(head)) for head in heads}) == len(heads), heads


def check_table(plain: Table, page: str, numbers: Grid_ | None) -> None:
    heads = of_csv(plain.to("csv"))[0]
    formats: dict[str, list[list[Any]]] = {
        "terminal": of_terminal(plain.to("terminal"), heads) if numbers else [heads],
        "markdown": of_markdown(plain.to("markdown")),
        "latex": of_latex(plain.to("latex")),
        "csv": of_csv(plain.to("csv")),
        "json": of_json(plain.to("json")),
        "notebook": of_html(plain._repr_html_()),
        "report": of_html(page),
    }
    for name, cells in formats.items():
        if name == "json" and not cells:
            continue
        require_distinct(cells[0])
        assert len(cells[0]) == len(heads), name
        if numbers:
            require_in_place(cells, numbers)


@cache
def measured() -> RunRecord:
    def encode(sentences: list[str]) -> list[list[float]]:
        return [[1.0, len(text), text.count("e")] for text in sentences]

    return sb.evaluate(encode, load_sample(), intervals=sb.Intervals(None), use_cache=False)


def record(model: str, tasks: dict[str, tuple[float, dict[str, float]]]) -> RunRecord:
    """Return a record of a model with the scores of tasks and of their subsets."""
    base = measured()
    (part,) = base.scores
    scores = []
    for name, (value, subsets) in tasks.items():
        first, *others = part.numbers
        numbers = (
            first.model_copy(update={"value": value, "interval": (value - 1, value + 1)}),
            *(each.model_copy(update={"value": value}) for each in others if each.key == ("pearson", "all", "")),
            *(Number(statistic=first.statistic, value=of, items=36, subset=at) for at, of in subsets.items()),
        )
        raters = RaterPart(pairs=252, ratings=5.0, reliability=0.9, ceiling=0.95)
        scores.append(part.model_copy(update={"task": name, "numbers": numbers, "raters": raters}))
    average = AveragePart.of(part.kind, list(tasks), [value for value, _ in tasks.values()])
    changes = {
        "scores": tuple(scores),
        "averages": (average,) if average else (),
        "model": base.model.model_copy(update={"name": model, "kind": "vectors"}),
    }
    return base.model_copy(update=changes)


def records(
    names: Names, number: Numbers, *, subsets: Sequence[str] = ()
) -> tuple[list[RunRecord], list[list[float]]]:
    """Return a record a name, of a task a name; and their scores between 0 and 1, a row a model."""
    made, shares = [], []
    for model in names:
        tasks = {task: (number.share(), {of: number.share() for of in subsets}) for task in names}
        made.append(record(model, tasks))
        shares.append([score for score, _ in tasks.values()])
    return made, shares


def run_record(names: Names, number: Numbers) -> Made:
    found = {of: number.share() for of in names}
    of_task = number.share()
    result = record("model", {names[0]: (of_task, found)})
    return result, [(0, grid([[of_task, *found.values()]], 100))]


def scores(names: Names, number: Numbers) -> Made:
    made, shares = records(names, number, subsets=names)
    by_task = [
        [
            [share, *(number.value for number in score.subsets)]
            for share, score in zip(line, of.scores, strict=True)
        ]
        for line, of in zip(shares, made, strict=True)
    ]
    # A row a task and subset, a column a model.
    across = np.array(by_task, dtype=float).reshape(len(made), -1).T
    return Scores(made, subsets=True), [(0, grid(shares, 100)), (1, grid(across.tolist(), 100))]


def scores_of_several_tasks(names: Names, number: Numbers) -> Made:
    """Make records of a task each, all subsets of which have columns beside the tasks."""
    made, numbers = [], []
    for name in names:
        task, subsets = number.share(), {of: number.share() for of in names}
        made.append(record(name, {name: (task, subsets)}))
        numbers.append([task, *subsets.values()])
    whole = Scores(made, subsets=True)
    flat = [(1, grid([[value]], 100)) for line in numbers for value in line]
    return whole, [*((0, grid([line], 100)) for line in numbers), *flat]


def comparison(names: Names, number: Numbers) -> Made:
    rows, numbers = [], []
    for task in names:
        a, b, low = number(), number(), number()
        rows.append(Difference("sts", task, "", 10, a, b, b - a, low, low + 1, 0.5, 0.1, 0, 0.2))
        numbers.append([a, b, low])
    overlaps = tuple(Overlap(c, t, 100, 10, 0, 10, number.share()) for c in names for t in names)
    of_corpora = down([each.share_by_letters for each in overlaps], 100)
    return Comparison(*names[:2], tuple(rows), 0.95, (), overlaps), [(0, grid(numbers)), (1, of_corpora)]


def seeds_comparison(names: Names, number: Numbers) -> Made:
    rows = [SeedsDifference("sts", n, 3, number(), 1, 2, 3, 3, number(), 1, 2, 3) for n in names]
    return SeedsComparison(*names[:2], tuple(rows), 0.95), [(0, grid([[row.a_mean, row.b_mean] for row in rows]))]


def ranking(names: Names, number: Numbers) -> Made:
    def ranked(kind: str, task: str) -> RankedTask:
        rows = (RankedScore(m, number(), 1, 2, place, 1, 3, "a", 0.5) for place, m in enumerate(names, 1))
        return RankedTask(kind, task, 10, tuple(rows), ((1.0,) * 3,) * 3)

    # Of the second kind there is no average: each of its tasks has a table.
    averaged = [ranked("sts", task) for task in (*task_names(names), "Avg.")]
    others = [ranked("supervised", task) for task in names[:2]]
    whole = [[row.score for row in task.rows] for task in averaged]
    alone = [(place, down([row.score for row in task.rows])) for place, task in enumerate(others, 2)]
    result = RankResult(names, (*averaged, *others), True, "max", "dyadic", 0.95, 10, 0)
    return result, [(0, down(whole[-1])), (1, grid(np.array(whole).T.tolist())), *alone]


def best_of(names: Names, number: Numbers) -> Made:
    result = BestOf(names[0], names[1], tuple(number() for _ in range(5)), number=50.0)
    return result, [(0, down(result.expected[:3]))]


def explored(names: Names, number: Numbers) -> Made:
    totals = [Total(name, (number(), number())) for name in names]
    tasks = [TaskItems(total, "", "pairs", "", pd.DataFrame({"item_id": ["1", "2"]}), False) for total in totals]
    return Explored(names[:2], tuple(tasks)), [(0, grid([total.scores for total in totals]))]


def pushed(names: Names, number: Numbers) -> Made:
    card = "x" * int(number())
    return HubExport(names[0], {}, card), [(0, [[f"{len(card):.2f}"]])]


def boarded(names: Names, number: Numbers) -> Made:
    made, values = records(names, number)
    runs = tuple(BoardRun(name, record, Kept(""), {}) for name, record in zip(names, made, strict=True))
    labels = task_labels(made[0].scores)
    columns = tuple(BoardColumn("sts", name, name == "Avg.", name == "Avg.") for name in (*labels, "Avg."))
    letters = {"Avg.": dict.fromkeys(range(len(runs)), "a")}
    return Board((BoardSection("tasks", names[0], columns, runs, letters),), "dyadic", 0.95), [
        (0, grid(values, 100))
    ]


def planned(names: Names, number: Numbers) -> Made:
    rows = [PlannedTask("sts", n, 10, number(), number(), 1, 2, 30) for n in names]
    return Plan(*names[:2], tuple(rows), None, "", 0.95, 0.8, "dyadic"), [(0, grid([[r.a, r.b] for r in rows]))]


def check(names: Names, number: Numbers) -> Made:
    cells = [CellCheck(n, number(), number(), "pass", origin=n) for n in names]
    numbers = grid([[cell.expected or 0, cell.measured or 0] for cell in cells])
    return Check(names[0], names[1:], "published", 0.3, tuple(cells)), [(0, numbers)]


def sweep(names: Names, number: Numbers) -> Made:
    labels_of = [("u", "v", "w"), ("u", "v", "x"), ("y", "v", "x")]
    jobs, numbers = [], []
    for place, labelled in enumerate(labels_of):
        cell = dict(zip(names, labelled, strict=True))
        # The tasks are catalogued ones: the axes alone are named by people.
        values = {task: number() for task in ("STS16", "sample", "MR")}
        job = Job(cell, cell, place, None, GivenCheckpoint("minilm"), {"checkpoint": {}}, {}, {}, 1)
        jobs.append(JobState(job, DONE, Path("/nowhere") / str(place), Finished(None, values, None, 1.0)))
        numbers.append(list(values.values()))
    asked = Experiment.model_construct(name="e", axes={name: {} for name in names}, about="")
    return Sweep(asked, Path("/nowhere"), tuple(jobs)), [(0, grid(numbers))]


def forecast(names: Names, number: Numbers) -> Made:
    return Forecast(names[0], names[1], 1, 0, 0, 1, 1, 1.0, names[2], 1.0, 1.0, 1), []


def reproduction(names: Names, number: Numbers) -> Made:
    rows = ("dropout-0.0", "dropout-0.1", "fixed-0.1")
    columns = dict.fromkeys([*names, "STS-B"])
    cells = [ReproducedCell(row, c, number(), number(), 0.1, 70, 90, "seeds", 3) for row in rows for c in columns]
    planned = {column: PlannedColumn(measure=column) for column in columns}
    plan = plan_of("simcse-slides-dropout").model_copy(update={"columns": planned})
    table = exhibits()["simcse-slides-dropout"]
    cost = Cost(jobs=1, planned=1, failed=0, steps=1, hours=0.1, threads=1)
    values = [[cell.printed for cell in cells if cell.row == row] for row in rows]
    here = [[cell.here for cell in cells if cell.row == row] for row in rows]
    numbers = [line for pair in zip(values, here, strict=True) for line in pair]
    return Reproduction(table, plan, "laptop", tuple(cells), (), cost, Path(), {}), [(0, grid(numbers))]


def data_overlap(names: Names, number: Numbers) -> Made:
    rows = [
        {"a": a, "b": b, "unit": unit, "same": same, "distinct a": 50, "distinct b": 100}
        | {"shared a": round(100 * number()), "shared b": 1, "rows a": 1, "rows b": 1}
        for place, a in enumerate(names)
        for b in names[place:]
        for unit in ((SENTENCES, PAIRS) if a != b else (PAIRS,))
        for same in (RELEASED, LETTERS)
    ]
    between = [f"{row['shared a']:.2f}" for row in rows if row["a"] != row["b"]]
    return DataOverlap(pd.DataFrame(rows), None), [(0, [between[i : i + 4] for i in (0, 4, 8)])]


def overview(kind: type[DataOverview]) -> Callable[[Names, Numbers], Made]:
    def make(names: Names, number: Numbers) -> Made:
        values = [number() for _ in names]
        rows = pd.DataFrame({"task": names, "pairs": values})
        return kind(rows, rows), [(0, down(values))]

    return make


def description(names: Names, number: Numbers) -> Made:
    sizes = [number() for _ in names]
    subsets = pd.DataFrame({"subset": names, "pairs": sizes, "mean": 1.0, "sd": 1.0})
    histogram = pd.DataFrame({"from": [0.0], "to": [1.0], "pairs": [3]})
    numbers = pd.DataFrame([(names[0], "all", 3.0)], columns=["about", "what", "value"])
    shared_rows = [
        {"b": b, "unit": unit, "same": LETTERS, "shared a": round(100 * number())}
        for b in names
        for unit in (SENTENCES, PAIRS)
    ]
    made = SimpleNamespace(numbers=numbers, subsets=subsets, histogram=histogram, shared=pd.DataFrame(shared_rows))
    counts = [f"{row['shared a']:.2f}" for row in shared_rows]
    result = Description(names[0], made.numbers, made.subsets, made.histogram, made.shared, ())
    return result, [(1, down(sizes)), (3, [counts[i : i + 2] for i in (0, 2, 4)])]


def diagnosis(names: Names, number: Numbers) -> Made:
    values = {name: np.array([[number()], [number()]]) for name in task_names(names)}
    found = Grid((Axis(POOLING, ("avg", "cls")), axis_of_means(list(values), with_sample=False)), values)
    claim = Claim(tuple(Value(name, float(of[1, 0]), 2, 0.005) for name, of in values.items()))
    default = [[float(of[0, 0]) for of in values.values()]]
    return Diagnosis("toy", Search(found, claim)), [(0, grid(default))]


def examination(names: Names, number: Numbers) -> Made:
    values = [number.text() for _ in names]
    found = tuple(Finding(n, "ok", f"{n} {v}") for n, v in zip(names, values, strict=True))
    return Examination(found), [(0, [[v] for v in values])]


def cache_contents(names: Names, number: Numbers) -> Made:
    sizes = [number() for _ in names]
    about = {"pooling": "avg", "precision": "fp32", "device": "cpu", "weights_sha256": "0", "use": {}}
    files = [
        CacheFile(Path(n), {"name": n, **about}, 1, int(1e6 * s), 0) for n, s in zip(names, sizes, strict=True)
    ]
    return CacheContents(tuple(files), 0, 0, 0, 0), [(0, down(sizes))]


def exported(names: Names, number: Numbers) -> Made:
    values = [number.share() for _ in names]
    rows = pd.DataFrame({"task": names, "split": names, "score": values, "signature": "", "file": names})
    return ExportedResults(Path(), rows, ()), [(0, down(values, 100))]


def printed_entry(names: Names) -> tuple[Any, Grid_]:
    """Return a published table with columns of these names."""
    entry, number = catalogue.table("mocose-acl2022-1"), Numbers(2001)  # as percentages
    numbers = [[number.text() for _ in names] for _ in entry.rows[:3]]
    column = entry.columns[0]
    rows = [
        row.model_copy(update={"cells": tuple(cells), "restored": (), "lost": ()})
        for row, cells in zip(entry.rows, numbers, strict=False)
    ]
    columns = tuple(column.model_copy(update={"name": n, "label": n}) for n in names)
    return entry.model_copy(update={"columns": columns, "rows": tuple(rows)}), numbers


def printed_table(names: Names, number: Numbers) -> Made:
    entry, numbers = printed_entry(names)
    return PrintedTable(entry), [(0, numbers)]


def resolved_table(names: Names, number: Numbers) -> Made:
    rows = ("a/one", "a/two")
    values = [[number() for _ in names] for _ in rows]
    made = [
        PrintedDifference(row, name, "STS16", 0.0, "baseline", "a/base", 0.0, value, 0.0, 0.0, "real", math.nan)
        for row, of_row in zip(rows, values, strict=True)
        for name, value in zip(names, of_row, strict=True)
    ]
    return ResolvedTable(catalogue.table("mocose-acl2022-1"), tuple(made), facts()), [(1, grid(values))]


def printed_row(names: Names, number: Numbers) -> Made:
    entry, _ = printed_entry(names)
    return PrintedRow(next(catalogue.rows_of(entry))), []


def embedded(names: Names, number: Numbers) -> Made:
    rows = int(1e3 * number())
    about = About("1", names[0], names[1], "", names[2], "", rows, "fp32", 10_000)
    return Embedded(Path("v.npy"), about, 8, ()), [(0, [[f"{rows:.2f}"]])]


def fitted(names: Names, number: Numbers) -> Made:
    explained = number()
    about = SimpleNamespace(
        method="whitening",
        model=SimpleNamespace(name=names[0]),
        sentences=SimpleNamespace(name=names[1], count=1, distinct=1),
        dimensions=1,
        width=2,
    )
    return Fitting(Path(), cast(Any, about), [{"kept": True, "explained": explained}]), [
        (0, [[f"{explained:.2f}"]])
    ]


def trained(names: Names, number: Numbers) -> Made:
    values = [number.share() for _ in names]
    heads = tuple(
        HeadScore(task=n, kind="classification", measure="accuracy", score=None, ntrain=1, ndev=1).model_copy(
            update={"score": value}
        )
        for n, value in zip(names, values, strict=True)
    )
    result = Training(
        Path(),
        cast(Any, SimpleNamespace(name=names[0], selection=SimpleNamespace(task=names[1]))),
        cast(Any, SimpleNamespace(step=1)),
        2,
        measured().model_copy(update={"heads": heads}),
    )
    return result, [(0, grid([values], 100))]


def geometry(names: Names, number: Numbers) -> Made:
    rows = [
        {"model": n, "alignment": number(), "uniformity": number(), "mean_cosine": 1.0, "sts": number()}
        | {"positive_pairs": 1, "sentences": 2, "zero_sentences": 0}
        for n in names
    ]
    numbers = grid([[row["alignment"], row["uniformity"], row["sts"]] for row in rows])
    return Geometry(pd.DataFrame(rows)), [(0, numbers)]


def spectrum(names: Names, number: Numbers) -> Made:
    draws = np.random.default_rng(0)
    frame = spectrum_frame({name: draws.normal(size=(20, 4)) for name in names})
    frame.loc[frame["measure"] == "effective rank", "value"] = values = [number() for _ in range(6)]
    return Spectrum(frame), [(0, down(values))]


def density(names: Names, number: Numbers) -> Made:
    rows = [{"model": n, "bucket": b, "pairs": 3, "mean": number()} for n in names for b in ("0 to 1", "1 to 2")]
    frame = pd.DataFrame(rows).assign(q05=0.1, q25=0.2, median=0.3, q75=0.4, q95=0.5, cosine=0.0, density=0.0)
    return Density(frame), [(0, down(frame["mean"].tolist()))]


def evalrank(names: Names, number: Numbers) -> Made:
    about = {"mrr": 0.5, "mean_rank": 2.0, "tied": 0.0, "lost": 0, "pairs": 3, "sentences": 4}
    about |= {"share": 0.1, "lowest": 4.0, "centred": False}
    rows = [
        {"model": n, "k": k, "hits": number.share(), "spearman": 0.0} | about for n in names for k in (1, 2, 3)
    ]
    hits = [[row["hits"] for row in rows[i : i + 3 : 2]] for i in (0, 3, 6)]
    return EvalRank(pd.DataFrame(rows)), [(0, grid(hits, 100))]


def stability(names: Names, number: Numbers) -> Made:
    rows = [
        {"model": n, "change": c, "unchanged": number(), "score": number(), "difference": number()}
        for n in names
        for c in ("lower case", "typos 5 %")
    ]
    shown = [[row["unchanged"], row["score"], row["difference"]] for row in rows]
    frame = pd.DataFrame(rows).assign(low=-1.0, high=1.0, changed=0.5, moved=0.25, task="T", split="s", text="t")
    return Stability(frame), [(0, grid(shown))]


def compressed(names: Names, number: Numbers) -> Made:
    kept = (("all", 4), ("leading", 2))
    about = {"metric": "spearman", "margin": 0.5, "corpus": "c", "calibration": 9, "left_out": 0, "tied": 1.0}
    about |= {"low": math.nan, "high": math.nan, "spread": math.nan, "verdict": "", "difference": 0.0}
    about |= dict.fromkeys(("expected", "lowest", "highest"), math.nan)
    rows = [
        {"model": m, "task": names[0], "dimensions": d, "kept": k, "stored": stored, "similarity": similarity}
        | {"bytes": 8, "score": number()}
        | about
        for m in names
        for k, d in kept
        for stored, similarity in (("fp32", "cosine"), ("binary", "hamming"))
    ]
    scores = [[row["score"] for row in rows[i : i + 2]] for i in range(0, len(rows), 2)]
    # Without a verdict none is the smallest that is no worse, and there is no table of those.
    return Compressed(pd.DataFrame(rows)), [(0, grid(scores))]


def tie_ranges(names: Names, number: Numbers) -> Made:
    rows = [
        {"model": m, "precision": precision, "similarity": "cosine", "task": t, "pairs": 3, "distinct": 2}
        | {"tied": number(), "score": number(), "expected": number(), "lowest": number(), "highest": number()}
        for m in names
        for precision in ("as recorded", "fp16")
        for t in (*task_names(names), "Avg.")
    ]
    frame = pd.DataFrame(rows)
    numbers = ["tied", "score", "expected", "lowest", "highest"]
    average = frame.loc[frame["task"] == "Avg.", numbers]
    by_task = frame.loc[(frame["task"] != "Avg.") & (frame["precision"] == "as recorded"), numbers]
    return TieRanges(frame), [(0, grid(average.to_numpy().tolist())), (1, grid(by_task.to_numpy().tolist()))]


def retrieval(names: Names, number: Numbers) -> Made:
    rows = [
        {"model": m, "query": q, "rank": rank, "cosine": number(), "sentence": f"s {number.text()}", "number": 1}
        for q in names
        for m in names
        for rank in (1, 2)
    ]
    frame = pd.DataFrame(rows)
    numbers = []
    for place, query in enumerate(names):
        part = frame[frame["query"] == query]
        numbers.append(
            (
                place,
                [
                    [
                        text
                        for _, row in part[part["rank"] == rank].iterrows()
                        for text in (f"{row['cosine']:.2f}", row["sentence"].removeprefix("s "))
                    ]
                    for rank in (1, 2)
                ],
            )
        )
    return Retrieval(frame), numbers


def length_bias(names: Names, number: Numbers) -> Made:
    groups = ("<= 3", "> 3", GAP)
    rows = [
        {"model": m, "task": t, "measure": measure, "group": g, "pairs": 5, "value": number()}
        for measure in (SPEARMAN, SIGNED, ABSOLUTE)
        for m in names
        for g in groups
        for t in (*task_names(names), "Avg.")
    ]
    rows += [
        {"model": m, "task": "all tasks", "measure": RELATIVE, "group": g, "pairs": 50, "value": number()}
        for m in names
        for g in ("0", "1")
    ]
    curve = [[row["value"] for row in rows[i : i + 2]] for i in range(len(rows) - 6, len(rows), 2)]
    extra = [
        {"model": m, "task": t, "measure": measure, "group": ALL, "pairs": 5, "value": number()}
        for m in names
        for measure, t in ((SLOPE, "all tasks"), (SPEARMAN, "Avg."), (PARTIAL, "Avg."))
    ]
    values = [[row["value"] for row in rows[i : i + 4]] for i in range(0, 36, 4)]
    frame = pd.DataFrame([*rows, *extra]).assign(
        unit="words", low=math.nan, high=math.nan, length_difference=1.0, similarity="cosine"
    )
    return LengthBias(frame.astype({"pairs": "Int64"})), [(1, grid(values)), (5, grid(curve))]


def pair_kinds(names: Names, number: Numbers) -> Made:
    measures = (SHIFT, COST)
    about = {"task": "all tasks", "kind": "different numbers in both", "pairs": 50, "share": 0.1}
    about |= {"low": math.nan, "high": math.nan}
    rows = [{"model": m, "measure": of, "value": number()} | about for m in names for of in measures]
    of_models = [[row["value"] for row in rows if row["model"] == m] for m in names]
    return PairKinds(pd.DataFrame(rows).assign(similarity="cosine")), [(0, grid(of_models))]


def task_names(names: Names) -> list[str]:
    """Return what the labels of tasks of such names are: none is called as an average."""
    made, _ = records(names, Numbers())
    return task_labels(made[0].scores)


def length_collapse(names: Names, number: Numbers) -> Made:
    rows = [
        {"model": m, "task": "all tasks", "measure": measure, "group": group, "value": number()}
        for m in names
        for group in ("0-5", "6+")
        for measure in ("cosine", "norm")
    ]
    rises = [
        {"model": m, "task": t, "measure": "rise", "group": "6+ less 0-5", "value": number()}
        for m in names
        for t in (*task_names(names), "all tasks")
    ]
    frame = pd.DataFrame([*rows, *rises]).assign(unit="words", sentences=9, low=math.nan, high=math.nan, zero=0)
    values = [[row["value"] for row in rows[i : i + 2]] for i in range(0, len(rows), 2)]
    return LengthCollapse(frame), [(0, grid(values)), (1, down([row["value"] for row in rises]))]


def dimensions(names: Names, number: Numbers) -> Made:
    tasks = (*task_names(names), "Avg.")
    shares = [
        {"model": m, "task": t, "measure": measure, "group": group, "value": number.share()}
        for m in names
        for t in tasks
        for measure, group in (("mean cosine", ""), ("share", "1"))
    ]
    scores = [
        {"model": m, "task": t, "measure": "spearman", "group": way, "value": number()}
        for m in names
        for way in ("cosine", "ranks")
        for t in tasks
    ]
    differences = [
        {"model": m, "task": "Avg.", "measure": "difference", "group": "ranks", "value": number()} for m in names
    ]
    frame = pd.DataFrame([*shares, *scores, *differences]).assign(low=math.nan, high=math.nan, dimensions=8)
    made = [[row["value"] for row in shares[i : i + 2]] for i in range(0, len(shares), 2)]
    by_way = [[row["value"] for row in scores[i : i + 4]] for i in range(0, len(scores), 4)]
    return Dimensions(frame), [(0, grid(made, 100)), (1, grid(by_way))]


def hubness(names: Names, number: Numbers) -> Made:
    rows = [
        {"model": m, "task": t, "measure": measure, "value": number() if measure == "skewness" else number.share()}
        for m in names
        for t in (*task_names(names), "Avg.")
        for measure in ("skewness", "anti-hubs")
    ]
    frame = pd.DataFrame(rows).assign(k=10, low=math.nan, high=math.nan, sentences=9, largest=7, tied=0.0, zero=0)
    values = [[f"{rows[i]['value']:.2f}", f"{100 * rows[i + 1]['value']:.2f}"] for i in range(0, len(rows), 2)]
    return Hubs(frame), [(0, values)]


def repetition_bias(names: Names, number: Numbers) -> Made:
    rows = [
        {
            "model": m,
            "seed": TOGETHER,
            "measure": measure,
            "interval": over,
            "value": value,
            "low": 1.0,
            "high": 2.0,
        }
        for m in names
        for measure, value in ((Q_S1, number()), (Q_S2, number()), (RISE, number()))
        for over in (QUERIES, SEEDS)
    ]
    values = [[row["value"] for row in rows[i : i + 6 : 2]] for i in (0, 6, 12)]
    return RepetitionBias(pd.DataFrame(rows).assign(corpus="c")), [(0, grid(values))]


def probes(names: Names, number: Numbers) -> Made:
    own = [[number() for _ in range(5)] for _ in names]
    paired = [[number() for _ in range(2)] for _ in names[1:]]
    about = {"kind": "k", "low": 0.1, "high": 0.2, "triples": "t"}
    rows = [
        about | {"model": m, "against": "", "measure": measure, "items": items, "value": value / 100}
        for m, (items, *values) in zip(names, own, strict=True)
        for measure, value in zip((PARAPHRASE, CHANGED, PROBED_GAP, ORDER), values, strict=True)
    ]
    rows += [
        about | {"model": m, "against": names[0], "measure": measure, "items": 8, "value": value / 100}
        for m, values in zip(names[1:], paired, strict=True)
        for measure, value in zip((PROBED_GAP, ORDER), values, strict=True)
    ]
    return Probes(pd.DataFrame(rows)), [(0, grid(own)), (1, grid(paired))]


def explanation(names: Names, number: Numbers) -> Made:
    parts = {name: make(names, number) for name, make in (("geometry", geometry), ("density", density))}
    numbers = [(place, of[0][1]) for place, (_, of) in enumerate(parts.values())]
    return Explanation({name: cast(Any, result) for name, (result, _) in parts.items()}), numbers


RESULTS: dict[type[Result], Callable[[Names, Numbers], Made]] = {
    RunRecord: run_record,
    Scores: scores,
    Comparison: comparison,
    SeedsComparison: seeds_comparison,
    RankResult: ranking,
    BestOf: best_of,
    Explored: explored,
    HubExport: pushed,
    Board: boarded,
    Plan: planned,
    Check: check,
    Sweep: sweep,
    Forecast: forecast,
    Reproduction: reproduction,
    Reproductions: lambda names, number: (Reproductions(), []),
    DataOverlap: data_overlap,
    DataOverview: overview(DataOverview),
    DataVerification: overview(DataVerification),
    Description: description,
    Diagnosis: diagnosis,
    Examination: examination,
    CacheContents: cache_contents,
    Embedded: embedded,
    ExportedResults: exported,
    Listing: lambda names, number: (Listing("tables"), []),
    PrintedTable: printed_table,
    ResolvedTable: resolved_table,
    PrintedRow: printed_row,
    Fitting: fitted,
    Training: trained,
    Geometry: geometry,
    Spectrum: spectrum,
    Density: density,
    Dimensions: dimensions,
    Hubs: hubness,
    LengthCollapse: length_collapse,
    EvalRank: evalrank,
    Compressed: compressed,
    TieRanges: tie_ranges,
    Retrieval: retrieval,
    LengthBias: length_bias,
    PairKinds: pair_kinds,
    RepetitionBias: repetition_bias,
    Stability: stability,
    Probes: probes,
    Explanation: explanation,
}
"""Every kind of result, and how one is made of three names."""


def report(section: Section) -> Tables:
    """Return the tables of a part of a report."""
    return Tables([table for part in section.walk() for table in part.tables])


def report_of_scores(names: Names, number: Numbers) -> Made:
    made, shares = records(names, number)
    runs = dict(zip(labels(made), made, strict=True))
    across = np.array(shares).T.tolist()
    # The ceilings have a row a task, of Pearson's correlations.
    sections = filter(None, [report_scores.scores(runs), report_people.people(runs)])
    tables = Tables([table for section in sections for table in report(section)])
    return tables, [(0, grid(shares, 100)), (1, grid(across, 100))]


def report_of_subsets(names: Names, number: Numbers) -> Made:
    made, _ = records(names, number, subsets=names)
    values = [[number.value for score in of.scores for number in score.subsets] for of in made]
    tables = report(report_scores.subsets(dict(zip(labels(made), made, strict=True))))
    return tables, [(0, grid(np.array(values, dtype=float).T.tolist(), 100))]


def report_of_intervals(names: Names, number: Numbers) -> Made:
    made, shares = records(names, number)
    tables = report(report_scores.intervals(dict(zip(labels(made), made, strict=True))))
    return tables, [(0, down([share for line in shares for share in line], 100))]


def report_of_places(names: Names, number: Numbers) -> Made:
    values = [[number.text() for _ in range(4)] for _ in names]
    made = [
        record(name, {"t": (0.5, {})}).model_copy(
            update={"environment": {names[0]: a, names[1]: b, "packages": {names[0]: c, names[2]: d}}}
        )
        for name, (a, b, c, d) in zip(names, values, strict=True)
    ]
    tables = report(reproducibility.reproducibility(dict(zip(labels(made), made, strict=True))))
    return tables, [(len(tables) - 1, values)]


def report_of_papers(names: Names, number: Numbers) -> Made:
    entry, numbers = printed_entry(names)
    settings_of = {column.name: column.setting for column in entry.columns}
    filling = papers.Filling(entry, tuple(catalogue.rows_of(entry)), settings_of, {}, {}, {}, {})
    return Tables([papers.as_table(filling, every_column=True)]), [(0, numbers)]


OTHERS: dict[str, Callable[[Names, Numbers], Made]] = {
    "show, records of other tasks": scores_of_several_tasks,
    "reports/people.py": report_of_scores,
    "reports/scores.py": report_of_scores,
    "reports/scores.py, subsets": report_of_subsets,
    "reports/scores.py, intervals": report_of_intervals,
    "reports/reproducibility.py": report_of_places,
    "reports/papers.py": report_of_papers,
}
"""Further tables: those of a report that are of no result, and results of another kind of input."""

hostile = st.lists(st.sampled_from(NAMES), min_size=3, max_size=3, unique=True).map(tuple)


def checked(made: Made) -> None:
    result, numbers = made
    tables = result.table() if isinstance(result, Result) else result
    assert tables
    plain = [Table(of.content, decimals=of.decimals, hints=of.hints, name=f"t{n}") for n, of in enumerate(tables)]
    page = to_html(Report("r", "2026-01-01", "1", (Section("s", "S", tables=tuple(plain)),)))
    for place, (table, on_page) in enumerate(zip(plain, page.split("<table")[1:], strict=True)):
        for of_table in [each for at, each in numbers if at == place] or [None]:
            check_table(table, on_page, of_table)
    if isinstance(result, Result):
        require_distinct(of_csv(result.to("csv"))[0])


each_maker = pytest.mark.parametrize(
    "make", [*RESULTS.values(), *OTHERS.values()], ids=[*(kind.__name__ for kind in RESULTS), *OTHERS]
)


@each_maker
def test_things_may_be_called_as_the_columns_of_their_tables(make: Callable[[Names, Numbers], Made]) -> None:
    result, _ = make(("one", "another", "a third"), Numbers())
    tables = result.table() if isinstance(result, Result) else result
    heads = list(dict.fromkeys(head for table in tables for head in table.frame))
    own = [head for head in heads if not {"one", "another", "a third"} & set(head.split(": "))]
    for first in range(0, len(own), 3):
        names = tuple([*own[first : first + 3], "x", "y"][:3])
        checked(make(cast(Names, names), Numbers()))


@each_maker
@settings(max_examples=3, deadline=None)
@given(names=hostile)
@example(names=("model", "captions", "captions: captions"))
@example(names=("model", "model (task)", "Avg."))
@example(names=("all tasks", "two\nwords", "two words"))
def test_each_thing_has_its_column_and_row(make: Callable[[Names, Numbers], Made], names: Names) -> None:
    checked(make(names, Numbers()))


def test_every_kind_of_result_has_a_maker() -> None:
    for module in walk_packages(stsbench.__path__, "stsbench."):
        import_module(module.name)
    kinds = set(below(Result))
    public = {kind for kind in kinds if kind.__module__.startswith("stsbench.") and not inspect.isabstract(kind)}
    assert public == set(RESULTS)


def below(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield from (each, *below(each))


def test_every_part_of_a_report_that_makes_tables_has_a_maker() -> None:
    # Fixed columns and a row a run or task: what has no name for a heading.
    fixed = {"reports/training.py"}
    makers = {file for file in (ROOT / "reports").glob("*.py") if "Table(" in file.read_text(encoding="utf-8")}
    covered = {name.partition(",")[0] for name in OTHERS}
    assert {file.relative_to(ROOT).as_posix() for file in makers} == fixed | covered - {"show"}
