"""The page of the coverage study and its table of results, from the results of its cells."""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

Stored = tuple[str, str, dict[str, Any], dict[str, Any] | None]
"""Name, kind and options of a cell, and its results; None if it has not been run."""

Row = dict[str, str]

COLUMNS = (
    "study",
    "task",
    "score",
    "effects",
    "strength",
    "design",
    "items",
    "truth",
    "quantity",
    "method",
    "value",
    "error",
    "holds",
)

EFFECTS = {"none": "none", "both": "each sentence", "hub": "hubs", "topic": "topics"}
METHODS = ("dyadic", "components", "independent")
QUANTITIES = {"above": "gate passes", "below": "gate fails"}
INTERVALS = {"share": "Wilson", "plain": "± t"}
SHOWN = ("4", "10", "49", "100")
OMITTED = (("each sentence", "0.4"), ("hubs", "0.4"))
RATIOS = {"ratio": "one model", "ratio of differences": "two models"}

PAGE = """\
# Coverage of the intervals

<!-- Written by benchmarks/interval_coverage.py --table: do not edit. -->

How often 95 % intervals contain the true value, and 5 % tests find a difference between equally good models, on
simulated scores, whose true values are known.
[coverage.csv](coverage.csv) has every result.

## Method

Each repetition draws gold scores, sentence effects and model errors on the real STS tasks: which pairs share a
sentence, and the released proportions of gold scores, with their ties. Effects have a strength, their share of the
variance:

- *none*: sentences have no effect;
- *each sentence*: a pair has the sum of its two sentences' effects;
- *hubs*: of a pair's two sentences, the one in more pairs has an effect;
- *topics*: each chain of pairs that share sentences has an effect.

Percentages are over 2,000 repetitions (standard error 0.5 points at 5 or 95 %). A method fails in a setting if,
beyond two of these errors, it is more than one point below 95 % or above 5 %. *Ratio* is the true
standard error divided by that of independent pairs; real encoders have 1.03 to 1.85.

## Result

Use `dyadic` (the default), or `components` if whole topics may vary together. Settings in which each holds:

{summary}

{nowhere}

## The seven tasks

The lowest and highest value over the tasks (Spearman over all pairs). Williams' test treats pairs as independent.

{tasks}

- **Average of the tasks**, which share sentences: {average}
- **Gates.** A model that lost exactly the margin passes `check --margin` in {passes} % of the repetitions,
  and counts as worse in {fails} % (with effects of topics up to {topic_passes} and {topic_fails} %).
- **Pearson and means over subsets** (hubs, 0.7): `dyadic` intervals contain the truth in {other_coverage} %,
  and tests reject in {other_size} %.

## Few pairs

Coverage of `dyadic` for correlations from 0 to 0.99 (Kendall: 0). Below 50 pairs, an interval is at least as wide
as Bonett and Wright's. Pairs in perfect order have none: for Spearman at 0.95, {undefined} % of the draws of 4
pairs. *Stars*: four pairs share a sentence (strength 0.7); in brackets `independent`. Tests: pairs that share no
sentence.

{few}

## Accuracies

Coverage of Wilson's interval for true accuracies of 50, 80, 95 and 99 %, and of the value ± t standard errors.

{accuracies}
"""


def rows(cells: Iterable[Stored]) -> list[Row]:
    """Return a row for each result of each finished cell."""
    return [{name: row.get(name, "") for name in COLUMNS} for cell in cells if cell[3] for row in _rows(cell)]


def write_rows(results: Iterable[Row], path: Path) -> None:
    """Write rows as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(results)


def page(results: Sequence[Row]) -> str:
    """Return the page in Markdown."""
    settings = [row for row in results if row["study"] in ("task", "average")]
    gates = [row for row in results if row["study"] == "task" and row["method"] == "dyadic"]
    few = [row for row in results if row["study"] == "few"]
    perfect = [
        row["value"] for row in few if (row["quantity"], row["items"], row["truth"]) == ("none", "4", "0.95")
    ]
    other = [row for row in results if row["study"] == "score" and row["method"] == "dyadic"]

    def gate(quantity: str, topics: bool) -> str:
        chosen = [row for row in gates if row["quantity"] == quantity and (row["effects"] == "topics") == topics]
        return _range(chosen).partition("–")[2] if topics else _range(chosen)

    return PAGE.format(
        summary=_summary(settings),
        nowhere=_nowhere(settings),
        tasks=_tasks([row for row in results if row["study"] == "task"]),
        average=_average([row for row in results if row["study"] == "average"]),
        passes=gate("gate passes", False),
        fails=gate("gate fails", False),
        topic_passes=gate("gate passes", True),
        topic_fails=gate("gate fails", True),
        other_coverage=_range(row for row in other if row["quantity"] == "coverage"),
        other_size=_range(row for row in other if row["quantity"] == "size"),
        undefined=perfect[0] if perfect else "–",
        few=_few(few, [row for row in results if row["study"] == "two"]),
        accuracies=_accuracies([row for row in results if row["study"] == "share"]),
    )


def _rows(cell: Stored) -> Iterator[Row]:
    name, kind, options, outcome = cell
    if outcome is None:
        return
    study = "score" if name.startswith("score-") else kind
    study = "task" if name.startswith("task-") else study
    setting = {"study": study}
    if kind in ("few", "two", "share"):
        setting["design"] = _design(kind, options)
        setting["truth"] = f"{options['share'] if kind == 'share' else options['rho']:g}"
        for size, results in outcome["results"].items():
            yield from _results(setting | {"items": size}, results)
        return
    setting |= {
        "task": options.get("task", "average"),
        "score": f"{options.get('metric', 'spearman')} {options.get('aggregation', 'all')}",
        "effects": EFFECTS[options["effects"]],
        "strength": f"{options['strength']:g}",
    }
    for ratio, method in RATIOS.items():
        yield setting | {"quantity": "ratio", "method": method, "value": f"{outcome[ratio]:.2f}"}
    yield from _results(setting, outcome["results"])


def _design(kind: str, options: dict[str, Any]) -> str:
    if kind == "two":
        return "spearman, pairs apart"
    if kind == "share":
        return "items apart" if options["cluster"] == 1 else f"groups of {options['cluster']}"
    gold = ", six gold scores" if options["levels"] else ""
    return f"{options['metric']}{gold}, " + (
        f"stars of {options['star']}" if options["star"] > 1 else "pairs apart"
    )


def _results(setting: Row, results: dict[str, Any]) -> Iterator[Row]:
    for name, (value, count) in results.items():
        quantity, _, method = name.partition(" ")
        if name == "df dyadic":
            yield setting | {"quantity": "degrees of freedom", "method": method, "value": f"{value:.0f}"}
        if quantity not in ("coverage", "size", "power", "none", *QUANTITIES) or value is None:
            continue
        error = _error(value, count)
        row = setting | {
            "quantity": QUANTITIES.get(quantity, quantity),
            "method": method,
            "value": f"{100 * value:.1f}",
            "error": f"{100 * error:.1f}",
        }
        if quantity not in ("power", "none"):
            row["holds"] = "no" if _missed(value, error, above=quantity != "coverage") else "yes"
        yield row


def _error(value: float, count: int) -> float:
    # The error of a share of 0 or 1 would be 0: half a draw is added on either side (Agresti and Coull 1998).
    share = (value * count + 0.5) / (count + 1)
    return math.sqrt(share * (1 - share) / count)


def _missed(value: float, error: float, *, above: bool) -> bool:
    return value - 2 * error > 0.05 + 0.01 if above else value + 2 * error < 0.95 - 0.01


def _summary(settings: Sequence[Row]) -> str:
    lines = []
    for method in METHODS:
        line = [f"`{method}`"]
        for topics in (False, True):
            for quantity in ("coverage", "size"):
                chosen = [
                    row
                    for row in settings
                    if (row["quantity"], row["method"]) == (quantity, method)
                    and (row["effects"] == "topics") == topics
                ]
                line.append(f"{sum(row['holds'] == 'yes' for row in chosen)} of {len(chosen)}")
        lines.append(line)
    return _table(["method", "interval", "test", "interval, topics", "test, topics"], lines)


def _nowhere(settings: Sequence[Row]) -> str:
    sentences = []
    for quantity, title in (("coverage", "No interval"), ("size", "No test")):
        failed: dict[str, set[str]] = {}
        for row in settings:
            if row["quantity"] == quantity and row["method"] in METHODS and row["holds"] == "no":
                place = f"{row['task']} with effects of {row['effects']} ({row['strength']})"
                failed.setdefault(place, set()).add(row["method"])
        places = [place for place, methods in failed.items() if len(methods) == len(METHODS)]
        sentences.append(f"{title} holds on: {'; '.join(places) or 'none'}.")
    return " ".join(sentences)


def _tasks(tasks: Sequence[Row]) -> str:
    lines = []
    for effects, strength in dict.fromkeys((row["effects"], row["strength"]) for row in tasks):
        if (effects, strength) in OMITTED:
            continue
        chosen = [row for row in tasks if (row["effects"], row["strength"]) == (effects, strength)]

        def cell(quantity: str, method: str, chosen: Sequence[Row] = chosen) -> str:
            return _range(row for row in chosen if (row["quantity"], row["method"]) == (quantity, method))

        lines.append(
            [
                effects if effects == "none" else f"{effects}, {strength}",
                cell("ratio", "one model"),
                *(cell("coverage", method) for method in METHODS),
                *(cell("size", method) for method in (*METHODS, "williams")),
            ]
        )
    head = [
        "effects",
        "ratio",
        *(f"95 %, {method}" for method in METHODS),
        *(f"5 %, {method}" for method in METHODS),
    ]
    return _table([*head, "5 %, Williams"], lines)


def _average(averages: Sequence[Row]) -> str:
    def text(quantity: str, method: str) -> str:
        return _range(_select(averages, quantity, method))

    return (
        f"`dyadic` intervals contain the truth in {text('coverage', 'dyadic')} %,\n"
        f"  and tests reject in {text('size', 'dyadic')} %. Without the sharing between tasks: "
        f"{text('coverage', 'dyadic by task')} and {text('size', 'dyadic by task')} %."
    )


def _few(few: Sequence[Row], two: Sequence[Row]) -> str:
    designs = list(dict.fromkeys(row["design"] for row in few))
    lines = []
    for size in SHOWN:
        line = [size]
        for design in designs:
            chosen = [row for row in few if (row["items"], row["design"]) == (size, design)]
            text = _range(_select(chosen, "coverage", "dyadic"))
            independent = _range(_select(chosen, "coverage", "independent"))
            line.append(f"{text} ({independent})" if "stars" in design and independent != "–" else text)
        of_size = [row for row in two if row["items"] == size]
        lines.append([*line, *(_range(_select(of_size, "size", test)) for test in ("dyadic", "williams"))])
    head = ["pairs", *(design.removesuffix(", pairs apart") for design in designs), "5 % test", "5 %, Williams"]
    return _table(head, lines)


def _accuracies(shares: Sequence[Row]) -> str:
    columns = [
        (design, method) for design in dict.fromkeys(row["design"] for row in shares) for method in INTERVALS
    ]
    lines = []
    for size in dict.fromkeys(row["items"] for row in shares):
        of_size = [row for row in shares if row["items"] == size]
        texts = (
            _range(_select((row for row in of_size if row["design"] == design), "coverage", method))
            for design, method in columns
        )
        lines.append([size, *texts])
    return _table(["number", *(f"{design}, {INTERVALS[method]}" for design, method in columns)], lines)


def _select(results: Iterable[Row], quantity: str, method: str) -> list[Row]:
    return [row for row in results if (row["quantity"], row["method"]) == (quantity, method)]


def _range(results: Iterable[Row]) -> str:
    """Return the lowest and the highest value, as printed."""
    values = sorted((row["value"] for row in results), key=float)
    if not values:
        return "–"
    return values[0] if values[0] == values[-1] else f"{values[0]}–{values[-1]}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])
