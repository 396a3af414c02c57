"""The tables of the coverage study, as a page of the documentation, from what its cells gave."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

Stored = tuple[str, str, dict[str, Any], dict[str, Any] | None]
"""Name, kind and options of a cell, and what it gave; None if it has not been run."""

UNFINISHED = "not run"

EFFECTS = {
    "none": "none",
    "both": "each sentence",
    "hub": "hubs",
    "topic": "topics",
}

INTRODUCTION = """\
# Coverage of the intervals

<!-- Written by benchmarks/interval_coverage.py --table: do not edit. -->

An interval of 95 % should hold the truth in 95 of 100 repetitions, and a test at 5 % should find a difference
where there is none in 5 of 100. Whether they do can be seen where the truth is known: on made-up scores. Here
these lie on the real graphs of the STS tasks (which pair shares which sentence), with the released proportions
of gold scores, so that ties are real. Gold is drawn anew each time, with sentence effects of its own, and so
are the errors of the models; pairs of the same two sentences have the same error. A repetition is what the
intervals are of: new pairs from the same subsets, with new sentences and the same pattern of sharing.

Sentences act in one of four ways, with a strength that is the share of the variance that they make up: not at
all (*none*); *each sentence* has an effect, and a pair the sum of two; *hubs*: of a pair's two sentences the
one that stands in more pairs has one; *topics*: each chain of pairs that share sentences has one. The column
*ratio* is how much larger the standard error really is than that of independent pairs. The strengths are such
that the ratios estimated on real encoders, 1.03 to 1.85, are among them.

Beside each figure, in percent, stands the standard error that the simulation itself leaves. A figure is marked
with **!** where it is, beyond two of these standard errors, more than one point short of 95 % or above 5 %.
"""


def tables(cells: Sequence[Stored]) -> str:
    """Return the page."""
    tasks = [cell for cell in cells if cell[0].startswith("task-")]
    averages = [cell for cell in cells if cell[1] == "average"]
    parts = [
        INTRODUCTION,
        _verdict([*tasks, *averages]),
        _one_model(tasks),
        _difference(tasks),
        _bounds(tasks),
        _average(averages),
        _other_scores([cell for cell in cells if cell[0].startswith("score-")]),
        _few([cell for cell in cells if cell[1] == "few"]),
        _two([cell for cell in cells if cell[1] == "two"]),
        _items([cell for cell in cells if cell[1] == "share"]),
    ]
    return "\n".join(parts)


def _verdict(cells: Sequence[Stored]) -> str:
    """Say how often each method holds, and where none does."""
    done = [cell for cell in cells if cell[3] is not None]
    lines = [
        "## In short",
        "",
        f"{len(done)} of {len(cells)} cells of the tasks and their average are finished. In how many of these the "
        "interval of one model and the test of two equally good ones hold, that is, are not marked:",
        "",
    ]
    rows = []
    for method in ("dyadic", "components", "independent"):
        row = [f"`{method}`"]
        for topics in (False, True):
            chosen = [cell for cell in done if (cell[2]["effects"] == "topic") == topics]
            for kind in ("coverage", "size"):
                good = sum(not _misses(cell, f"{kind} {method}") for cell in chosen)
                row.append(f"{good} of {len(chosen)}")
        rows.append(row)
    lines += _table(["method", "interval", "test", "interval, topics", "test, topics"], rows)
    nowhere = {
        kind: [
            _where(cell)
            for cell in done
            if all(_misses(cell, f"{kind} {method}") for method in ("dyadic", "components", "independent"))
        ]
        for kind in ("coverage", "size")
    }
    lines += [
        "",
        f"No interval of one model holds: {_listed(nowhere['coverage'])}. "
        f"No test of two models holds: {_listed(nowhere['size'])}.",
        "",
    ]
    return "\n".join(lines)


def _one_model(cells: Sequence[Stored]) -> str:
    rows = [
        [*_labels(cell), _ratio(cell, "ratio")]
        + [_percent(cell, f"coverage {method}") for method in ("dyadic", "components", "independent")]
        + [_number(cell, "df dyadic")]
        for cell in cells
    ]
    head = ["task", "effects of", "strength", "ratio", "dyadic", "components", "independent", "df"]
    return _section(
        "One model: coverage of the 95 % interval",
        "Spearman over all pairs of a task. *df*: the mean degrees of freedom of `dyadic`.",
        head,
        rows,
    )


def _difference(cells: Sequence[Stored]) -> str:
    methods = ("dyadic", "components", "independent", "williams")
    rows = [
        [*_labels(cell), _ratio(cell, "ratio of differences")]
        + [_percent(cell, f"size {method}") for method in methods]
        for cell in cells
    ]
    head = ["task", "effects of", "strength", "ratio", *methods[:3], "Williams"]
    return _section(
        "Two equally good models: size of the 5 % test",
        "How often the paired test finds a difference where there is none. Williams' test takes pairs as "
        "independent.",
        head,
        rows,
    )


def _bounds(cells: Sequence[Stored]) -> str:
    methods = ("dyadic", "components", "independent", "williams")
    rows = []
    for cell in cells:
        row = _labels(cell)
        row += [_percent(cell, f"{kind} {method}") for kind in ("above", "below") for method in methods[:1]]
        rows.append(row + [_percent(cell, f"power {method}", holds=None) for method in methods])
    head = ["task", "effects of", "strength", "passes", "fails", *(f"power, {name}" for name in methods[:3])]
    return _section(
        "Gates and power",
        "The second model is better, by so much that about half of the tests find it. *passes* and *fails*: how "
        "often a gate (`dyadic`) whose margin is exactly the loss from the better to the other says no worse, or "
        "worse: at most 5 % each. Power says something only where the size holds (above).",
        [*head, "power, Williams"],
        rows,
    )


def _average(cells: Sequence[Stored]) -> str:
    methods = ("dyadic", "dyadic by task", "components", "independent")
    text = (
        "The mean of the seven tasks' scores, whose pairs share sentences across tasks (by letters and digits). "
        "*by task*: `dyadic`, as if no task shared a sentence with another."
    )
    rows = []
    for kind, what, ratio in (
        ("coverage", "one model, 95 %", "ratio"),
        ("size", "two models, 5 %", "ratio of differences"),
    ):
        rows += [
            [what, *_labels(cell)[1:], _ratio(cell, ratio)]
            + [_percent(cell, f"{kind} {method}") for method in methods]
            for cell in cells
        ]
    head = ["", "effects of", "strength", "ratio", "dyadic", "by task", "components", "independent"]
    return _section("The average of the seven tasks", text, head, rows)


def _other_scores(cells: Sequence[Stored]) -> str:
    rows = [
        [cell[2]["task"], f"{cell[2]['metric']}, `{cell[2]['aggregation']}`", _ratio(cell, "ratio")]
        + [
            _percent(cell, f"{kind} {method}")
            for kind in ("coverage", "size")
            for method in ("dyadic", "components", "independent")
        ]
        for cell in cells
    ]
    head = ["task", "score", "ratio"] + [
        f"{kind}, {method}" for kind in ("95 %", "5 %") for method in ("dyadic", "components", "independent")
    ]
    return _section(
        "Other scores", "Pearson, and means over subsets; effects of hubs with a strength of 0.7.", head, rows
    )


def _few(cells: Sequence[Stored]) -> str:
    lines = ["## Few pairs and near the bound", ""]
    lines += [
        "Coverage of the 95 % interval of a correlation from 4 pairs up, and in brackets how often there is none "
        "because the pairs are in perfect order (or all gold scores are equal). Below 50 pairs an interval is at "
        "least as wide as Bonett and Wright's: few pairs are covered rather too often than too rarely.",
        "",
    ]

    def design(cell: Stored) -> tuple[str, int, int]:
        return cell[2]["metric"], cell[2]["levels"], cell[2]["star"]

    for (metric, levels, star), group in groupby(cells, design):
        chosen = list(group)
        sizes = sorted({int(size) for cell in chosen if cell[3] for size in cell[3]["results"]})
        what = f"{metric.capitalize()}, " + ("six gold scores" if levels else "gold without ties")
        what += f", in stars of {star} pairs around one sentence (strength 0.7)" if star > 1 else ", pairs apart"
        rows = []
        for size in sizes or [4]:
            row = [str(size)]
            for cell in chosen:
                results = (cell[3] or {"results": {}})["results"].get(str(size))
                text = UNFINISHED
                if results:
                    text = _figure(*results.get("coverage dyadic", (None, 0)), high=None)
                    text += f" [{100 * results['none'][0]:.0f} %]" if results["none"][0] >= 0.01 else ""
                    if star > 1:
                        text += f", independent {_figure(*results['coverage independent'], high=None)}"
                row.append(text)
            rows.append(row)
        head = ["pairs", *(f"correlation {cell[2]['rho']:g}" for cell in chosen)]
        lines += [f"{what}:", "", *_table(head, rows), ""]
    return "\n".join(lines)


def _two(cells: Sequence[Stored]) -> str:
    sizes = sorted({int(size) for cell in cells if cell[3] for size in cell[3]["results"]})
    rows = []
    for size in sizes or [4]:
        row = [str(size)]
        for cell in cells:
            results = (cell[3] or {"results": {}})["results"].get(str(size))
            row += [
                _figure(*results[f"size {test}"], high=0.05) if results else UNFINISHED
                for test in ("dyadic", "williams")
            ]
        rows.append(row)
    head = ["pairs"]
    for cell in cells:
        head += [f"correlation {cell[2]['rho']:g}", f"Williams, {cell[2]['rho']:g}"]
    return _section(
        "Two models on few pairs",
        "How often the 5 % test finds a difference where there is none, on pairs that share nothing. From few "
        "pairs the test rather finds too little, and Williams' too much.",
        head,
        rows,
    )


def _items(cells: Sequence[Stored]) -> str:
    lines = ["## Accuracies", ""]
    lines += [
        "Coverage of Wilson's interval with an effective number of items, and in brackets of the value -+ t times "
        "its standard error.",
        "",
    ]
    for cluster, group in groupby(cells, lambda cell: int(cell[2]["cluster"])):
        chosen = list(group)
        what = "Items apart" if cluster == 1 else f"Items in groups of {cluster} that tend to be right together"
        sizes = sorted({int(size) for cell in chosen if cell[3] for size in cell[3]["results"]})
        rows = []
        for size in sizes or [12]:
            row = [str(size)]
            for cell in chosen:
                results = (cell[3] or {"results": {}})["results"].get(str(size))
                text = UNFINISHED
                if results:
                    plain = _figure(*results["coverage plain"], high=None)
                    text = f"{_figure(*results['coverage share'], high=None)} [{plain}]"
                row.append(text)
            rows.append(row)
        head = ["items", *(f"accuracy {100 * cell[2]['share']:g} %" for cell in chosen)]
        lines += [f"{what}:", "", *_table(head, rows), ""]
    return "\n".join(lines)


def _section(title: str, text: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([f"## {title}", "", text, "", *_table(head, rows), ""])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _labels(cell: Stored) -> list[str]:
    options = cell[2]
    return [options.get("task", "average"), EFFECTS[options["effects"]], f"{options['strength']:g}"]


def _where(cell: Stored) -> str:
    task, effects, strength = _labels(cell)
    return f"{task} with effects of {effects} ({strength})"


def _listed(places: Sequence[str]) -> str:
    return "; ".join(places) if places else "nowhere"


def _ratio(cell: Stored, name: str) -> str:
    return f"{cell[3][name]:.2f}" if cell[3] else UNFINISHED


def _number(cell: Stored, name: str) -> str:
    return f"{cell[3]['results'][name][0]:.0f}" if cell[3] else UNFINISHED


def _percent(cell: Stored, name: str, *, holds: bool | None = True) -> str:
    if not cell[3]:
        return UNFINISHED
    value, count = cell[3]["results"].get(name, (None, 0))
    return _figure(value, count, high=None if name.startswith("coverage") else 0.05, mark=holds is not None)


def _figure(value: float | None, count: int, *, high: float | None, mark: bool = True) -> str:
    """Return a share in percent, with its standard error; marked where it is short of 95 % or above `high`."""
    if value is None:
        return "none"
    error = _error(value, count)
    missed = mark and _missed(value, error, high)
    return f"{100 * value:.1f} ({100 * error:.1f})" + (" **!**" if missed else "")


def _error(value: float, count: int) -> float:
    # Of a share of 0 or 1 the error would be 0: half a draw is added on either side (Agresti and Coull 1998).
    share = (value * count + 0.5) / (count + 1)
    return math.sqrt(share * (1 - share) / count)


def _missed(value: float, error: float, high: float | None) -> bool:
    if high is None:
        return value + 2 * error < 0.95 - 0.01
    return value - 2 * error > high + 0.01


def _misses(cell: Stored, name: str) -> bool:
    value, count = cell[3]["results"][name] if cell[3] else (0.0, 1)
    return _missed(value, _error(value, count), None if name.startswith("coverage") else 0.05)
