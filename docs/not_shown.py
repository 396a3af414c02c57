"""What a score does not show, of three encoders side by side: a table of the findings.

    python docs/not_shown.py [FOLDER] > reports/examples/tables/not-shown.md

The folder is what `stsbench explain` or `reports/make_examples.py` wrote: a CSV file an analysis.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

EXAMPLES = Path(__file__).resolve().parents[1] / "reports" / "examples"

Cell = Callable[[pd.DataFrame], str]


def chosen(**where: object) -> Cell:
    """Return a function that formats the value and interval of the row with these values."""
    decimals = int(str(where.pop("decimals", 2)))
    times, value = float(str(where.pop("times", 1))), str(where.pop("value", "value"))

    def cell(rows: pd.DataFrame) -> str:
        for column, wanted in where.items():
            rows = rows[rows[column] == wanted]
        (row,) = rows.to_dict("records")
        said = f"{times * row[value]:.{decimals}f}"
        if "low" in row and pd.notna(row["low"]) and value in {"value", "difference"}:
            said += f" [{times * row['low']:.{decimals}f}, {times * row['high']:.{decimals}f}]"
        return said

    return cell


def smallest(rows: pd.DataFrame) -> str:
    """Return the fewest bytes whose average is within the margin of all dimensions in fp32."""
    fit = rows[(rows["task"] == "Avg.") & (rows["verdict"] == "within margin")]
    if not len(fit):
        return "none"
    best = fit.sort_values("bytes", kind="stable").iloc[0]
    return f"{best['bytes']:.0f} ({best['dimensions']} {best['kept']}, {best['stored']})"


def random_half(rows: pd.DataFrame) -> str:
    """Return the loss of a random half of the dimensions in fp32."""
    half = rows["dimensions"].max() // 2
    return chosen(task="Avg.", kept="random", stored="fp32", dimensions=half, value="difference")(rows)


def lines() -> Iterator[tuple[str, str, Cell]]:
    """Yield each question, its analysis, and the function that makes its cell."""
    full = {"task": "Avg.", "kept": "all", "times": 1}
    yield "Spearman on the seven tasks", "compress", chosen(**full, stored="fp32", value="score")
    every = {"task": "all tasks", "decimals": 1}
    few = "less than 25 % of their words shared"
    yield (
        "pairs that share few words are ranked too high by, %",
        "pair-kinds",
        chosen(**every, measure="shift", kind=few),
    )
    yield (
        "pairs with different numbers: times their share of the error",
        "pair-kinds",
        chosen(task="all tasks", measure="cost", kind="different numbers in both"),
    )
    yield (
        "rise of cosine from short to long unrelated sentences",
        "length-collapse",
        chosen(task="all tasks", measure="rise", decimals=3),
    )
    yield (
        "share of the mean cosine by the top dimension, %",
        "dimensions",
        chosen(task="Avg.", measure="share", group="1", times=100, decimals=1),
    )
    yield (
        "difference of the score without that dimension",
        "dimensions",
        chosen(task="Avg.", measure="difference", group="without top 1"),
    )
    yield "skewness of the k-occurrence", "hubness", chosen(task="Avg.", measure="skewness")
    yield "anti-hubs, %", "hubness", chosen(task="Avg.", measure="anti-hubs", times=100)
    yield "difference of the score of a random half of the dimensions", "compress", random_half
    yield (
        "difference of the score of one bit a dimension",
        "compress",
        chosen(**full, stored="binary", value="difference"),
    )
    yield "fewest bytes within 0.5 points of the full vectors", "compress", smallest
    yield "pairs tied in bf16, %", "ties", chosen(task="Avg.", precision="bf16", value="tied", decimals=1)
    for kind in ("negation", "number", "role-swap", "typo"):
        yield f"right order, {kind}, %", "probes", chosen(kind=kind, measure="order", times=100, decimals=0)
    yield (
        "difference of the score with typos in 5 % of the words of STS-B",
        "stability",
        chosen(change="typos 5 %", value="difference"),
    )
    yield (
        "pairs that these typos move, %",
        "stability",
        chosen(change="typos 5 %", value="moved", times=100, decimals=1),
    )


def table(folder: Path = EXAMPLES) -> list[str]:
    """Return a row for each question and a column for each model, in Markdown."""
    frames = {path.stem: pd.read_csv(path, dtype={"group": str}) for path in folder.glob("*.csv")}
    models = list(dict.fromkeys(frames["compress"]["model"]))
    rows = ["| asked | " + " | ".join(models) + " |", "| --- |" + " ---: |" * len(models)]
    for asked, name, cell in lines():
        frame = frames[name]
        if "against" in frame:
            frame = frame[frame["against"].isna()]
        cells = [cell(frame[frame["model"] == model]) for model in models]
        rows.append(f"| {asked} (`{name}`) | " + " | ".join(cells) + " |")
    return rows


if __name__ == "__main__":
    print("\n".join(table(Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES)))
