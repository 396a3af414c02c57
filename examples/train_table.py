"""Train variants of a recipe over several seeds and put them in one table, with intervals over seeds and pairs.

    STSBENCH_DATA=data/senteval python examples/train_table.py --corpus wiki.txt --out table --seeds 1 2 3 4 5

Each variant and seed is trained once (a training that was stopped goes on, a finished one is kept) and measured
once. The tables are written from all that was measured so far: two processes may share the work by `--variants`.
`base` is the checkpoint that all of them started from. `--set KEY=VALUE` changes all variants alike, `--set
VARIANT:KEY=VALUE` one of them, and `--tables` writes the tables and does nothing else.

What is written into the folder:

- `seeds.csv`, a row for each checkpoint: Spearman x 100 of each task and their average; `gap`, the length-bias gap
  of the signed difference, averaged over the tasks (ESimCSE, table 7: 1.84 for SimCSE, 0.71 for ESimCSE);
  `alignment` and `uniformity` on STS-B test;
- `table.csv`, `table.md`: means and standard deviations over seeds, and of the scores intervals over other seeds
  and other pairs;
- `seeds.png`, `seeds.svg`: each checkpoint as a dot;
- `pairs.csv`, `pairs.md`: the difference of each two variants, of the scores over other seeds and other pairs, of
  the rest over other seeds; p-values after Holm's correction over all of them (from five seeds of each on).
"""

import argparse
import json
import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import stsbench as sb
from stsbench.records.store import load_run
from stsbench.render.figures import colours, new_figure, save_figure, style
from stsbench.render.formats import to_markdown
from stsbench.statistics.estimate import compare_means, holm

VARIANTS = {
    "SimCSE": ("minilm-simcse",),
    "ESimCSE": ("minilm-esimcse",),
    "MoCoSE": ("minilm-mocose",),
    "Gaussian dropout": ("minilm-gaussian",),
    "repetition only": ("minilm-esimcse", "negatives.queue=null"),
    "momentum only": ("minilm-esimcse", "views.key=identity"),
}
BASE = ("minilm-simcse", "optimiser.learning_rate=1e-12", "corpus.rows=2", "optimiser.batch=2")
"""One step at a negligible rate, with the first seed only: the unchanged base."""

FOUR = ("base", "SimCSE", "ESimCSE", "MoCoSE", "Gaussian dropout")

DRAWN = ("gap", "alignment", "uniformity")
"""Beside the score."""

ENOUGH = 5
"""Seeds of each variant from which on two are compared."""


def trained(folder: Path, recipe: str, corpus: str, seed: int, changes: list[str]) -> None:
    """Train into a folder, go on where it was stopped, or leave it where it is finished."""
    if (folder / "run.json").is_file() and not (folder / "training" / "state.pt").exists():
        return
    if (folder / "training" / "start.json").is_file():
        sb.train(resume=folder, notice=print)
    else:
        sb.train(recipe, corpus, folder, seed=seed, overrides=changes, notice=print)


def measured(folder: Path, variant: str, seed: int, *, model: Path, tasks: str, corpus: Path) -> None:
    """Measure a checkpoint and write its record and its row; recipe and log go with them."""
    record = sb.evaluate(model, tasks, out=folder, overwrite=True)
    shutil.copyfile(model / "log.jsonl", folder / "log.jsonl")
    recipe = (model / "recipe.yaml").read_text(encoding="utf-8")
    # The name of the corpus, not where it is here.
    (folder / "recipe.yaml").write_text(recipe.replace(str(corpus.resolve()), corpus.name), encoding="utf-8")
    row = {"variant": variant, "seed": seed, **numbers(model, record)}
    (folder / "row.json").write_text(json.dumps(row) + "\n", encoding="utf-8")


def numbers(model: Path, record: sb.RunRecord) -> dict[str, float]:
    """Return what is told of a checkpoint."""
    scores = {score.task: 100 * (score.value or np.nan) for score in record.scores}
    bias = sb.length_bias(record, intervals=sb.Intervals(None)).frame
    gaps = bias[(bias["measure"] == "signed difference") & (bias["group"] == "gap") & (bias["task"] != "Avg.")]
    shape = sb.geometry(str(model), task="STS-B", split="test").frame.iloc[0]
    average = {"Avg.": float(np.mean(list(scores.values())))} if len(scores) > 1 else {}
    return {
        **scores,
        **average,
        "gap": float(gaps["value"].mean()),
        "alignment": float(shape["alignment"]),
        "uniformity": float(shape["uniformity"]),
    }


def changes_of(variant: str, changes: list[str]) -> list[str]:
    """Return the changes that are for a variant, of those for all and those for one.

    >>> changes_of("ESimCSE", ["optimiser.batch=32", "ESimCSE:dropout=0.2", "MoCoSE:dropout=0.3"])
    ['optimiser.batch=32', 'dropout=0.2']
    """
    split = [(change.partition("=")[0].rpartition(":")[0], change) for change in changes]
    return [change.removeprefix(f"{name}:") for name, change in split if name in {"", variant}]


def name_of(variant: str, seed: int) -> str:
    """Return the name of a folder."""
    return f"{variant.replace(' ', '-').lower()}-seed{seed}"


def write_tables(out: Path) -> None:
    """Write a row for each checkpoint that was measured, the variants, and the difference of each two of them."""
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in out.glob("*/row.json")]
    order = ["base", *VARIANTS]
    rows.sort(key=lambda row: (order.index(row["variant"]), row["seed"]))
    seeds = pd.DataFrame(rows)
    seeds.round(6).to_csv(out / "seeds.csv", index=False)
    runs = {
        variant: [load_run(out / name_of(variant, row["seed"])) for row in rows if row["variant"] == variant]
        for variant in dict.fromkeys(str(row["variant"]) for row in rows)
    }
    table = variant_table(seeds, runs)
    table.to_csv(out / "table.csv", index=False)
    for_readers = variants_for_readers(table)
    (out / "table.md").write_text(to_markdown(for_readers) + "\n", encoding="utf-8")
    print(for_readers.to_string(index=False), flush=True)
    draw(seeds, out / "seeds")
    compared = pair_table(seeds, {variant: held for variant, held in runs.items() if len(held) >= ENOUGH})
    if len(compared):
        compared.to_csv(out / "pairs.csv", index=False)
        (out / "pairs.md").write_text(to_markdown(pairs_for_readers(compared)) + "\n", encoding="utf-8")


def variant_table(seeds: pd.DataFrame, runs: dict[str, list[sb.RunRecord]]) -> pd.DataFrame:
    """Return a row for each variant and measure: mean and standard deviation, and intervals of the scores."""
    measures = [str(name) for name in seeds if name not in {"variant", "seed"}]
    rows = []
    for variant, held in runs.items():
        part = seeds[seeds["variant"] == variant]
        spread = sb.compare(a=held).frame.set_index("task") if len(held) > 1 else pd.DataFrame()
        for name in measures:
            row: dict[str, Any] = {"variant": variant, "measure": name, "seeds": len(part)}
            row |= {"mean": part[name].mean(), "sd": part[name].std()}
            if name in spread.index:
                kept = ("low", "high", "seed_share", "pair_share")
                row |= {column: spread.loc[name, f"a_{column}"] for column in kept}
            rows.append(row)
    return pd.DataFrame(rows).round(6)


def variants_for_readers(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of variants as text, a row each."""
    texts: dict[str, dict[str, object]] = {}
    score = summary(table["measure"])
    rows: list[dict[Any, Any]] = table.to_dict("records")
    for row in rows:
        text = texts.setdefault(row["variant"], {"variant": row["variant"], "seeds": row["seeds"]})
        decimals = 3 if row["measure"] in {"alignment", "uniformity"} else 2
        several = row["seeds"] > 1
        # No break between a mean and its deviation.
        spread = f"\u00a0±\u00a0{row['sd']:.{decimals}f}" if several else ""
        text[row["measure"]] = f"{row['mean']:.{decimals}f}{spread}"
        if row["measure"] == score:
            text[f"{score} 95 %"] = f"{row['low']:.2f} to {row['high']:.2f}" if several else ""
    return pd.DataFrame(list(texts.values()))


def summary(measures: pd.Series) -> str:
    """Return which measure sums up a checkpoint: the average, or the only task.

    >>> summary(pd.Series(["STS-B", "gap", "alignment"]))
    'STS-B'
    """
    return "Avg." if "Avg." in set(measures) else str(measures.iloc[0])


def draw(seeds: pd.DataFrame, path: Path) -> None:
    """Draw a dot for each checkpoint and a line at the mean of each variant, a panel a measure."""
    variants = list(dict.fromkeys(seeds["variant"]))
    palette = colours(variants)
    drawn = [summary(seeds.columns[2:].to_series()), *DRAWN]
    with style():
        figure = new_figure(2.2, least=6.8)
        panels = figure.subplots(1, len(drawn), sharey=True)
        for axes, measure in zip(panels, drawn, strict=True):
            for place, variant in enumerate(variants):
                values = seeds.loc[seeds["variant"] == variant, measure]
                axes.scatter(values, [place] * len(values), s=12, color=palette[variant], alpha=0.7, linewidths=0)
                axes.plot([values.mean()] * 2, [place - 0.3, place + 0.3], color=palette[variant])
            axes.set_xlabel(measure)
        panels[0].set_yticks(range(len(variants)), variants)
        panels[0].invert_yaxis()
        for ending in (".png", ".svg"):
            save_figure(figure, path.with_suffix(ending))


def pair_table(seeds: pd.DataFrame, runs: dict[str, list[sb.RunRecord]]) -> pd.DataFrame:
    """Return the differences of each two variants: the scores' over other seeds and pairs, others' over seeds."""
    score = summary(seeds.columns[2:].to_series())
    values = dict(list(seeds.groupby("variant", sort=False)))
    rows = []
    for one, other in combinations(runs, 2):
        last = sb.compare(a=runs[one], b=runs[other]).frame.iloc[-1]
        kept = ("difference", "low", "high", "p", "seed_share", "pair_share")
        rows.append({"A": one, "B": other, "measure": score, **{name: float(last[name]) for name in kept}})
        for measure in DRAWN:
            test = compare_means(values[one][measure], values[other][measure])
            about = {"difference": test.difference, "low": test.low, "high": test.high, "p": test.welch_p}
            rows.append({"A": one, "B": other, "measure": measure, **about})
    table = pd.DataFrame(rows)
    if len(table):
        # Each measure is a question of its own, asked of all pairs.
        table["p_holm"] = table.groupby("measure")["p"].transform(holm)
    return table.round(6)


def pairs_for_readers(table: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of scores and gaps as text, a row for each two variants."""
    score = table["measure"].iloc[0]
    rows = []
    for (one, other), part in table.groupby(["A", "B"], sort=False):
        by_measure = part.set_index("measure")
        text: dict[str, object] = {"A": one, "B": other}
        for measure in (score, "gap"):
            row = by_measure.loc[measure]
            text[f"{measure} B − A"] = f"{row['difference']:+.2f}"
            text[f"{measure} 95 %"] = f"{row['low']:+.2f} to {row['high']:+.2f}"
            text[f"{measure} p"] = "< 0.001" if row["p_holm"] < 0.001 else f"{row['p_holm']:.3f}"
            if measure == score:
                text |= {
                    "of seeds": f"{100 * row['seed_share']:.0f} %",
                    "of pairs": f"{100 * row['pair_share']:.0f} %",
                }
        rows.append(text)
    return pd.DataFrame(rows)


def main() -> None:
    """Train, measure, tabulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus")
    parser.add_argument("--out", type=Path, default=Path("reports/minilm"))
    parser.add_argument("--models", type=Path, default=Path("runs/train-table"), help="where the checkpoints go")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--variants", nargs="+", default=FOUR, choices=["base", *VARIANTS])
    parser.add_argument("--tasks", default="sts", help="as `stsbench run --tasks` has them")
    parser.add_argument("--set", dest="changes", action="append", default=[], metavar="[VARIANT:]KEY=VALUE")
    parser.add_argument("--tables", action="store_true", help="write the tables of what is there")
    options = parser.parse_args()

    if not options.tables:
        if options.corpus is None:
            parser.error("--corpus is missing")
        for seed in options.seeds:
            for variant in options.variants:
                if variant == "base" and seed != options.seeds[0]:
                    continue
                folder, model = (place / name_of(variant, seed) for place in (options.out, options.models))
                if (folder / "row.json").is_file():
                    continue
                recipe, *changes = BASE if variant == "base" else VARIANTS[variant]
                # The variant's own stand last: the base is to take one step, whatever the others take.
                all_changes = [*changes_of(variant, options.changes), *changes]
                trained(model, recipe, options.corpus, seed, all_changes)
                measured(folder, variant, seed, model=model, tasks=options.tasks, corpus=Path(options.corpus))
    write_tables(options.out)


if __name__ == "__main__":
    main()
