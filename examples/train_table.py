"""Train variants of a recipe over several seeds and put them in one table, with the spread over seeds.

    STSBENCH_DATA=data/senteval python examples/train_table.py --corpus wiki.txt --out reports/minilm --seeds 1 2 3

Each variant and seed is trained once (a training that was stopped goes on, a finished one is kept), its best
checkpoint on STS-B dev is measured on the seven STS tasks, and `table.csv` and `seeds.csv` are written beside the
records from all that was measured so far, so that two processes may share the work by `--variants`. `base` is the
checkpoint that all of them started from.

The columns: `Avg.` and `STS-B`, Spearman x 100; `gap`, the length-bias gap of the signed difference, averaged over
the tasks (ESimCSE, table 7: 1.84 for SimCSE, 0.71 for ESimCSE); `alignment` and `uniformity` on STS-B test.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

import stsbench as sb
from stsbench.render.formats import to_markdown

VARIANTS = {
    "SimCSE": ("minilm-simcse",),
    "repetition only": ("minilm-esimcse", "negatives.queue=null"),
    "momentum only": ("minilm-esimcse", "views.key=identity"),
    "ESimCSE": ("minilm-esimcse",),
}
MEASURES = {"Avg.": 2, "STS-B": 2, "gap": 2, "alignment": 3, "uniformity": 3}
"""What is told of each checkpoint, and with how many decimals."""


def measures(model: str, record: sb.RunRecord) -> dict[str, float]:
    """Return the row of one checkpoint."""
    assert record.average is not None
    scores = {task.task: task.score for task in record.tasks}
    bias = sb.length_bias(record, bootstrap=sb.Bootstrap(resamples=0)).frame
    gap = bias[(bias["task"] == "Avg.") & (bias["measure"] == "signed difference") & (bias["group"] == "gap")]
    shape = sb.geometry(model, task="STS-B", split="test").frame.iloc[0]
    return {
        "Avg.": 100 * (record.average.score or np.nan),
        "STS-B": 100 * (scores["STS-B"] or np.nan),
        "gap": float(gap["value"].iloc[0]),
        "alignment": float(shape["alignment"]),
        "uniformity": float(shape["uniformity"]),
    }


def trained(folder: Path, recipe: str, corpus: str, seed: int, changes: list[str]) -> None:
    """Train into a folder, go on where it was stopped, or leave it where it is finished."""
    if (folder / "run.json").is_file() and not (folder / "training" / "state.pt").exists():
        return
    if (folder / "training" / "start.json").is_file():
        sb.train(resume=folder, notice=print)
    else:
        sb.train(recipe, corpus, folder, seed=seed, overrides=changes, notice=print)


def measured(out: Path, variant: str, seed: int, model: str) -> None:
    """Measure a checkpoint and write its record and its row, unless they are there."""
    folder = out / name_of(variant, seed)
    if not (folder / "row.json").is_file():
        record = sb.evaluate(model, "sts", bootstrap=sb.Bootstrap(resamples=0), out=folder, overwrite=True)
        row = {"variant": variant, "seed": seed, **measures(model, record)}
        (folder / "row.json").write_text(json.dumps(row) + "\n", encoding="utf-8")


def name_of(variant: str, seed: int) -> str:
    """Return the name of a folder."""
    return f"{variant.replace(' ', '-').lower()}-seed{seed}" if seed else variant


def write_tables(out: Path) -> None:
    """Write one row for each checkpoint that was measured, and their means and standard deviations."""
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in out.glob("*/row.json")]
    order = ["base", *VARIANTS]
    rows.sort(key=lambda row: (order.index(row["variant"]), row["seed"]))
    seeds = pd.DataFrame(rows)
    seeds.to_csv(out / "seeds.csv", index=False)
    table = seeds.groupby("variant", sort=False)[list(MEASURES)].agg(["mean", "std", "count"])
    table.round(4).to_csv(out / "table.csv")
    for_readers = pd.DataFrame(
        {
            "variant": table.index,
            **{
                name: [told(table[name].loc[variant], decimals) for variant in table.index]
                for name, decimals in MEASURES.items()
            },
            "seeds": table["Avg."]["count"].to_numpy(),
        }
    )
    (out / "table.md").write_text(to_markdown(for_readers) + "\n", encoding="utf-8")
    print(for_readers.to_string(index=False), flush=True)


def told(spread: "pd.Series[float]", decimals: int) -> str:
    """Return a mean with its standard deviation, if there is one; it does not break over lines."""
    mean, sd, count = map(float, spread)
    return f"{mean:.{decimals}f}" if count < 2 else f"{mean:.{decimals}f}\u00a0±\u00a0{sd:.{decimals}f}"


def main() -> None:
    """Train, measure, tabulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--out", type=Path, default=Path("reports/minilm"))
    parser.add_argument("--models", type=Path, default=Path("runs/train-table"), help="where the checkpoints go")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()

    measured(options.out, "base", 0, "minilm")
    for seed in options.seeds:
        for variant in options.variants:
            recipe, *changes = VARIANTS[variant]
            folder = options.models / name_of(variant, seed)
            trained(folder, recipe, options.corpus, seed, [*changes, *options.changes])
            measured(options.out, variant, seed, str(folder))
            write_tables(options.out)


if __name__ == "__main__":
    main()
