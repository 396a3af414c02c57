"""What MoCoSE's parts do to a small model: three questions that its paper raises, each tried in minutes.

    STSBENCH_DATA=data/senteval python examples/mocose_probes.py collapse --corpus wiki.txt --out reports/mocose

- `collapse` (appendix A.2): without a slow target, with and without the predictor; the uniformity of the sample's
  sentences over the steps, and the spectrum of their vectors at the end. Writes `collapse.csv`, `collapse.md`,
  `spectrum.csv`, and both as a figure.
- `fgsm` (table 9): do the weights differ after steps of 5e-9 on the embeddings, and by more than another seed's?
  Writes `fgsm.csv` and `fgsm.md`.
- `slices` (table 8): negatives from the newest, the middle and the oldest half of the queue, on the sample. Writes
  `slices.csv` and `slices.md`.

All start from all-MiniLM-L6-v2 read at its first token. Each training is made once: one that was stopped goes on,
a finished one is kept; the tables are written anew after each.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import load_file
from train_table import trained

import stsbench as sb
from stsbench.records.store import load_run
from stsbench.render.figures import colours, new_figure, save_figure, style
from stsbench.render.formats import to_markdown
from stsbench.training.log import read_log
from stsbench.training.recipe import read_recipe

SMALL = (
    "pooling=cls_before_pooler",
    "corpus.max_length=16",
    "optimiser.batch=16",
    "selection.task=sample",  # in seconds, and nothing is selected: the last step's checkpoint is read
    "saving.every=1000",
    "log_every=5",
)
QUEUE = ("negatives.queue.size=128", "negatives.queue.initial=32")
"""Eight batches, a quarter of them random at first, as the paper has it."""

SCHEDULE = "{kind: cosine, start: 0.75, end: 0.95}"
DECAYS = {"0": "0.0", "0.75 to 0.95": SCHEDULE, "0.99": "0.99"}
COLLAPSE = {
    "SimCSE": ("minilm-simcse",),
    **{
        f"decay {name}, {said} predictor": ("minilm-mocose", *QUEUE, f"target.decay={decay}", *change)
        for said, change in (("with", ()), ("without", ("predictor=null",)))
        for name, decay in DECAYS.items()
    },
    "decay 0, without predictor, batch too": (
        "minilm-mocose",
        *QUEUE,
        "target.decay=0.0",
        "predictor=null",
        "negatives.in_batch=true",  # SimCSE's negatives beside the queue's
    ),
}
FGSM = {
    "no step": ("noise.adversarial=null",),
    "no step, again": ("noise.adversarial=null",),
    "step 5e-9": ("noise.adversarial.step=5e-9",),
    "step 1e-5": ("noise.adversarial.step=1e-5",),
    "step 1e-2": ("noise.adversarial.step=1e-2",),
    "no step, another seed": ("noise.adversarial=null",),
}
SLICES = {
    "newest half": "[[0, 32]]",
    "middle half": "[[16, 48]]",
    "oldest half": "[[32, 64]]",
    "all": "null",
}
"""Of four batches, as table 8 has them: a queue of 1,024 with a batch of 256."""


def last_checkpoint(model: Path) -> Path:
    """Return the checkpoint of the last step, where the training's own is the best one's."""
    return max((model / "training" / "checkpoints").glob("step-*"))


def collapse(corpus: str, out: Path, models: Path, changes: list[str]) -> None:
    """Train with several decays, with and without the predictor; follow the uniformity."""
    looked_at = ("selection.every=10", "saving={every: 10, keep: 1000}", "noise.adversarial=null")
    curves, spectra = [], []
    for name, (recipe, *own) in COLLAPSE.items():
        model = models / folder_of(name)
        kept = own if recipe == "minilm-mocose" else []
        extra = looked_at if recipe == "minilm-mocose" else looked_at[:2]
        trained(model, recipe, corpus, 1, [*SMALL, *extra, *kept, *changes])
        curves += curve(name, model)
        spectrum = sb.spectrum(str(last_checkpoint(model)), task="sample").frame
        spectra.append(spectrum[~spectrum["centred"]].assign(training=name))
        frame, spectrum = pd.DataFrame(curves), pd.concat(spectra)
        frame.round(6).to_csv(out / "collapse.csv", index=False)
        kept_columns = ["training", "measure", "k", "value"]
        spectrum[kept_columns].round(6).to_csv(out / "spectrum.csv", index=False)
        (out / "collapse.md").write_text(to_markdown(collapse_table(frame, spectrum)) + "\n", encoding="utf-8")
        draw(frame, spectrum, out / "collapse")


def curve(name: str, model: Path) -> list[dict[str, float | str]]:
    """Return dev score, uniformity and alignment of a training's base and of its checkpoints, a row for each."""
    scores = {line["step"]: line["dev"] for line in read_log(model / "log.jsonl") if line["kind"] == "dev"}
    folders = (model / "training" / "checkpoints").glob("step-*")
    kept = {int(folder.name.removeprefix("step-")): str(folder) for folder in folders}
    kept[0] = read_recipe(model / "recipe.yaml").base
    frame = sb.geometry(
        [sb.load(kept[step], pooling="cls_before_pooler") for step in sorted(scores)], task="sample"
    ).frame
    rows = zip(sorted(scores), frame["uniformity"], frame["alignment"], strict=True)
    return [
        {"training": name, "step": step, "uniformity": uniformity, "alignment": alignment, "dev": scores[step]}
        for step, uniformity, alignment in rows
    ]


def collapse_table(curves: pd.DataFrame, spectra: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each training: before and after, on the sample."""
    rows = []
    for name, part in curves.groupby("training", sort=False):
        of_it = spectra[spectra["training"] == name].set_index(["measure", "k"])["value"]
        first, last = part.iloc[0], part.iloc[-1]
        rows.append(
            {
                "training": name,
                "uniformity": change(first["uniformity"], last["uniformity"], 2),
                "alignment": change(first["alignment"], last["alignment"], 2),
                "Spearman": change(100 * first["dev"], 100 * last["dev"], 1),
                "effective rank": f"{of_it['effective rank', 0]:.1f}",
                "largest direction": f"{100 * of_it['top share', 1]:.0f} %",
            }
        )
    return pd.DataFrame(rows)


def change(before: float, after: float, decimals: int) -> str:
    """Return two numbers as text that does not break over lines."""
    return f"{before:.{decimals}f}\u00a0→\u00a0{after:.{decimals}f}"


def draw(curves: pd.DataFrame, spectra: pd.DataFrame, path: Path) -> None:
    """Draw uniformity and score over steps, and the singular values at the end; dashed without a predictor."""
    names = list(dict.fromkeys(curves["training"]))
    palette = colours([name.partition(",")[0] for name in names])
    with style():
        figure = new_figure(2.9, least=6.8)
        left, middle, right = figure.subplots(1, 3)
        for name in names:
            look = {
                "color": palette[name.partition(",")[0]],
                "linestyle": ":" if "batch" in name else "--" if "without" in name else "-",
                "label": name,
            }
            curve = curves[curves["training"] == name]
            left.plot(curve["step"], curve["uniformity"], marker="o", markersize=2.5, **look)
            middle.plot(curve["step"], 100 * curve["dev"], marker="o", markersize=2.5, **look)
            values = spectra[(spectra["training"] == name) & (spectra["measure"] == "singular value")]
            # Below is rounding.
            seen = values[values["value"] > 1e-6]
            right.plot(seen["k"], seen["value"], **look)
        left.set_xlabel("step")
        left.set_ylabel("uniformity")
        middle.set_xlabel("step")
        middle.set_ylabel("Spearman × 100")
        right.set_yscale("log")
        right.yaxis.set_major_formatter("{x:g}")
        right.set_xlabel("singular value, in order")
        right.set_ylabel("size (largest = 1)")
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        for ending in (".png", ".svg"):
            save_figure(figure, path.with_suffix(ending))


def fgsm(corpus: str, out: Path, models: Path, changes: list[str]) -> None:
    """Train with steps of several sizes; hold the weights against those without a step."""
    rows: list[dict[str, object]] = []
    clean: Path | None = None
    for name, own in FGSM.items():
        model = models / folder_of(name)
        seed = 2 if name.endswith("another seed") else 1
        trained(model, "minilm-mocose", corpus, seed, [*SMALL, *QUEUE, "selection.every=1000", *own, *changes])
        clean = clean or model
        rows.append({"training": name, "dev": dev_score(out, model), **difference(clean, model)})
        frame = pd.DataFrame(rows)
        frame.to_csv(out / "fgsm.csv", index=False)
        (out / "fgsm.md").write_text(to_markdown(fgsm_table(frame)) + "\n", encoding="utf-8")


def difference(clean: Path, other: Path) -> dict[str, float]:
    """Return how far the layers of two checkpoints are apart, and how many weights are equal to the last bit."""
    one, two = (load_file(last_checkpoint(model) / "model.safetensors") for model in (clean, other))
    # Rows of the table of words that no batch had, and a pooler that nobody reads, are equal in all trainings.
    layers = [name for name in one if "encoder.layer" in name]
    squares = sum(float(((two[name].astype(np.float64) - one[name]) ** 2).sum()) for name in layers)
    size = sum(float((one[name].astype(np.float64) ** 2).sum()) for name in layers)
    return {
        "difference": float(np.sqrt(squares)),
        "relative": float(np.sqrt(squares / size)),
        "equal": sum(int((two[name] == one[name]).sum()) for name in layers),
        "weights": sum(one[name].size for name in layers),
    }


def fgsm_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the differences as text."""
    return pd.DataFrame(
        {
            "training": frame["training"],
            "‖difference‖": [f"{value:.3g}" for value in frame["difference"]],
            "relative to ‖weights‖": [f"{value:.2g}" for value in frame["relative"]],
            "equal to the last bit": [f"{100 * share:.1f} %" for share in frame["equal"] / frame["weights"]],
            "STS-B dev": [f"{value:.4f}" for value in frame["dev"]],
        }
    )


def slices(corpus: str, out: Path, models: Path, changes: list[str]) -> None:
    """Train with negatives from parts of the queue."""
    fixed = ("negatives.queue.size=64", "negatives.queue.initial=8", "target.decay=0.85")
    looked_at = ("noise.adversarial=null", "selection.every=1000")
    rows = []
    for seed in (1, 2):
        for name, part in SLICES.items():
            model = models / f"{folder_of(name)}-seed{seed}"
            own = (*fixed, f"negatives.queue.uses={part}", *looked_at)
            trained(model, "minilm-mocose", corpus, seed, [*SMALL, *own, *changes])
            last = [line for line in read_log(model / "log.jsonl") if line["kind"] == "dev"][-1]
            geometry = sb.geometry(str(last_checkpoint(model)), task="sample").frame.iloc[0]
            scores = {"Spearman": 100 * last["dev"], "uniformity": geometry["uniformity"]}
            rows.append({"negatives": name, "seed": seed, **scores})
            frame = pd.DataFrame(rows)
            frame.round(6).to_csv(out / "slices.csv", index=False)
            (out / "slices.md").write_text(to_markdown(slices_table(frame)) + "\n", encoding="utf-8")


def slices_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the scores and uniformities as text, a column a seed."""
    table = pd.DataFrame({"negatives": list(dict.fromkeys(frame["negatives"]))}).set_index("negatives")
    for measure, decimals in (("Spearman", 2), ("uniformity", 3)):
        for seed, part in frame.groupby("seed"):
            values = part.set_index("negatives")[measure]
            table[f"{measure}, seed {seed}"] = [
                f"{values[name]:.{decimals}f}" if name in values.index else "" for name in table.index
            ]
    return table.reset_index()


def dev_score(out: Path, model: Path) -> float:
    """Return the score x 100 of the last step's checkpoint on STS-B dev, measured once."""
    folder = out / "dev" / model.relative_to(model.parent)
    if not (folder / "run.json").is_file():
        sb.evaluate(str(last_checkpoint(model)), "STS-B:dev", intervals=sb.Intervals(None), out=folder)
    return 100 * (load_run(folder).scores[0].value or np.nan)


def folder_of(name: str) -> str:
    """Return the name of a training's folder."""
    return name.replace(",", "").replace(" ", "-").lower()


PROBES = {"collapse": collapse, "fgsm": fgsm, "slices": slices}


def main() -> None:
    """Train, look, tabulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probe", choices=PROBES)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--out", type=Path, default=Path("reports/mocose"))
    parser.add_argument("--models", type=Path, default=Path("runs/mocose"), help="where the checkpoints go")
    parser.add_argument("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    PROBES[options.probe](options.corpus, options.out, options.models / options.probe, options.changes)


if __name__ == "__main__":
    main()
