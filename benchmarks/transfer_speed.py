"""The transfer protocol of stsbench against the same protocol with scikit-learn's LogisticRegression, in one run.

    STSBENCH_DATA=FOLDER python benchmarks/transfer_speed.py [--tasks MR,...] [--classifier logreg|mlp-adam]
        [--against CR,TREC|none] [--share 0.1]

Vectors are all-MiniLM-L6-v2's (384 numbers), encoded beforehand and not counted. scikit-learn solves with
tol=1e-8 and as many iterations as it takes; `--share` times an evenly spread share of its fits and multiplies, and
the printed line says so. `--classifier mlp-adam` times SentEval's net, which is held against nothing.

Prints a line for each task, with seconds by the clock and of computing and the most memory that the process had
until then, and at last the totals of ours.

On a machine that does other work too, set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1: threads that wait for each
other make either side several times slower there, and the ratio means nothing.
"""

import argparse
import resource
import sys
import time

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from stsbench.data.benchmarks import load_labelled
from stsbench.data.catalogue import data_set
from stsbench.encoders.load import load
from stsbench.encoders.plan import embed
from stsbench.scoring.classifiers import NESTED_SEED, arrange, stratified
from stsbench.scoring.classifiers import LogisticRegression as Ours
from stsbench.scoring.kinds.classification import Classified, classify, pair_features
from stsbench.scoring.settings import KFOLD, SEED

TASKS = "MR,CR,SUBJ,MPQA,SST2,TREC,MRPC"


def vectors_of(data, encoder):
    columns = [name for name in ("sentence1", "sentence2") if data.items[name].notna().all()]
    texts = [" ".join(text.split()) for name in columns for text in data.items[name]]
    found = embed(encoder, texts, normalize=False)
    (vectors,) = found.vectors.values()
    return np.split(vectors[found.rows], len(columns))


def scikit_seconds(data, sides, result: Classified, share: float) -> tuple[float, int, int]:
    """Return the seconds that scikit-learn's fits take, how many were timed, and how many there are."""
    task = arrange(data)
    x = (pair_features(*sides) if len(sides) == 2 else sides[0])[task.order].astype(np.float64)
    y, grid = task.labels, Ours().grid(task.design)
    if task.design == "nested":
        outer = stratified(y, np.arange(len(x)), KFOLD, NESTED_SEED)
        inner = [fold for one in outer for fold in stratified(y, one.train, KFOLD, NESTED_SEED)]
        finals = list(zip([fold.train for fold in outer], result.training.chosen, strict=True))
    else:
        train = task.rows("train")
        inner = stratified(y, train, KFOLD, SEED) if task.design == "kfold" else []
        finals = [(train, c) for c in (result.training.chosen if inner else (*grid, *result.training.chosen))]
    fits = [(fold.train, c) for fold in inner for c in grid] + finals
    # A fit of a larger C takes longer: the sample takes the same number of each.
    folds = np.unique(np.linspace(0, len(inner) - 1, max(1, round(share * len(inner)))).round().astype(int))
    sample = fits if share >= 1 else [fits[len(grid) * fold + c] for fold in folds for c in range(len(grid))]
    start = time.perf_counter()
    for rows, c in sample:
        LogisticRegression(C=c, tol=1e-8, max_iter=100_000).fit(x[rows], y[rows])
    return (time.perf_counter() - start) * len(fits) / len(sample), len(sample), len(fits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=TASKS)
    parser.add_argument("--against", default="CR,TREC")
    parser.add_argument("--classifier", default="logreg", choices=("logreg", "mlp-adam"))
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()

    encoder, total, computed = load("minilm"), 0.0, 0.0
    print(f"threads {torch.get_num_threads()}, {sys.version.split()[0]}, torch {torch.__version__}")
    for name in options.tasks.split(","):
        # The sample has a text of its own.
        data = load_labelled(name, text=next(iter(data_set(name).texts)))
        sides = vectors_of(data, encoder)
        runs, cpu = [], []
        for _ in range(options.repeats):
            start, cpu_start = time.perf_counter(), time.process_time()
            result = classify(data, *sides, classifier=options.classifier)
            runs.append(time.perf_counter() - start)
            cpu.append(time.process_time() - cpu_start)
        seconds, computing = float(np.median(runs)), float(np.median(cpu))
        total, computed = total + seconds, computed + computing
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        spread = f"({min(runs):.1f} to {max(runs):.1f}), computing {computing:.1f}, up to {most:.0f} MiB"
        line = f"{name:5} {seconds:7.1f} s {spread}  acc {result.acc:.2f}  devacc {result.devacc:.2f}"
        if options.classifier == "logreg" and name in options.against.split(","):
            theirs, sample, fits = scikit_seconds(data, sides, result, options.share)
            measured = "in full" if sample == fits else f"from {sample} of {fits} fits"
            line += f"  scikit-learn {theirs:7.1f} s ({measured})  ratio {theirs / seconds:.1f}"
        print(line, flush=True)
    tasks = len(options.tasks.split(","))
    print(f"total {total:.1f} s for {tasks} tasks, computing {computed:.1f}, encoding excluded")


if __name__ == "__main__":
    main()
