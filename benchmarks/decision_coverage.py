"""How often rank intervals hold, and how often the gate lets a model through whose loss is the margin: a study.

    python benchmarks/decision_coverage.py [--data FOLDER] [--tasks STS12,STS16] [--simulations 2000]

Gold and models are drawn on the real graphs of the tasks (`synthetic_tasks.py`). Six models, three of one true
score and two of another, are ranked: how often the interval of a model holds all ranks that it shares (each by
itself: the worst of the six; all at once). Two models whose true difference is the margin are held against it: how
often they are `within margin`, and how often `worse` (goal: at most 5 %). The standard error of the simulation is
beside each share.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from synthetic_tasks import Effects, Task, World, read_tasks

from stsbench.judging.aligned import AlignedScores
from stsbench.judging.check import judged
from stsbench.judging.rank import ranking_of
from stsbench.scoring.statistic import Correlation
from stsbench.statistics.correlations import correlate_task
from stsbench.statistics.dependence import Sharing
from stsbench.statistics.influence import task_terms

GAINS = (0.0, 0.0, 0.0, -0.03, -0.03, -0.06)
LOWEST, HIGHEST = np.array([1, 1, 1, 4, 4, 6]), np.array([3, 3, 3, 5, 5, 6])

SPEARMAN = Correlation("spearman", "all", "cosine")

CELLS: tuple[tuple[Effects, float], ...] = (("none", 0.0), ("hub", 0.5), ("both", 0.5))


def drawn(world: World, task: Task, sharing: Sharing, rng: np.random.Generator) -> AlignedScores:
    gold, similarities = world.draw(GAINS, rng)
    scores = [correlate_task(gold, side, task.codes)["all"] for side in similarities]
    terms = np.array([task_terms(gold, side, task.codes) for side in similarities])
    return AlignedScores("sts", task.name, SPEARMAN, np.array(scores), terms, sharing, sharing)


def ranks_held(aligned: AlignedScores, seed: int) -> tuple[NDArray[np.bool_], bool]:
    """Return whether each marginal interval holds all ranks of its model, and whether all simultaneous ones do."""
    held = []
    for simultaneous in (False, True):
        found = ranking_of(aligned, simultaneous=simultaneous, draws=1000, seed=seed)
        held.append((found.best <= LOWEST) & (found.worst >= HIGHEST))
    return held[0], bool(held[1].all())


def share(hits: int, trials: int) -> str:
    value = hits / trials
    return f"{100 * value:5.1f} % (± {100 * np.sqrt(value * (1 - value) / trials):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("STSBENCH_DATA", "../shared/data/senteval"))
    )
    parser.add_argument("--tasks", default="STS12,STS16")
    parser.add_argument("--simulations", type=int, default=2000)
    options = parser.parse_args()
    graphs = read_tasks(options.data)
    for name in options.tasks.split(","):
        task, sharing, _ = graphs[name]
        for effects, strength in CELLS:
            world, rng = World((task,), sharing, effects, strength), np.random.default_rng(0)
            samples = [drawn(world, task, sharing, rng) for _ in range(options.simulations)]
            marginal, together = zip(
                *(ranks_held(sample, seed) for seed, sample in enumerate(samples)), strict=True
            )
            margin = 100 * (task.true_score(GAINS[0]) - task.true_score(GAINS[5]))
            verdicts = [judged([two(sample)], margin)[0].verdict for sample in samples]
            print(f"{name} {effects} {strength:g}: margin {margin:.2f}, {len(samples)} draws")
            print(f"  rank intervals, each by itself {share(min(np.sum(marginal, axis=0)), len(samples))}")
            print(f"  rank intervals, all at once    {share(sum(together), len(samples))}")
            print(f"  within margin at the margin    {share(verdicts.count('within margin'), len(samples))}")
            print(f"  worse at the margin            {share(verdicts.count('worse'), len(samples))}", flush=True)


def two(aligned: AlignedScores) -> AlignedScores:
    """Return the best model and the worst alone."""
    scores, terms = aligned.scores[[0, 5]], aligned.terms[[0, 5]]
    return AlignedScores("sts", aligned.task, SPEARMAN, scores, terms, aligned.sharing, aligned.folded)


if __name__ == "__main__":
    main()
