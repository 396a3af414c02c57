"""Mathematics on arrays: similarities of pairs, correlations, aggregation, bootstrap intervals, tests."""

from stsbench.statistics.aggregation import Aggregation, TaskScores, aggregate, correlate_task
from stsbench.statistics.bootstrap import (
    LEVEL,
    RESAMPLES,
    SEED,
    TaskReplicates,
    bootstrap_correlation,
    bootstrap_task,
    percentile_interval,
    percentile_p_value,
)
from stsbench.statistics.correlations import CORRELATIONS, Metric, kendall, pearson, spearman
from stsbench.statistics.dependent import steiger, williams
from stsbench.statistics.mcnemar import mcnemar
from stsbench.statistics.means import compare_means, spread
from stsbench.statistics.multiple import holm
from stsbench.statistics.ranks import average_ranks
from stsbench.statistics.resampling import generator, resample_counts
from stsbench.statistics.similarity import SIMILARITIES, Similarity, pair_similarities, zero_rows

__all__ = [
    "CORRELATIONS",
    "LEVEL",
    "RESAMPLES",
    "SEED",
    "SIMILARITIES",
    "Aggregation",
    "Metric",
    "Similarity",
    "TaskReplicates",
    "TaskScores",
    "aggregate",
    "average_ranks",
    "bootstrap_correlation",
    "bootstrap_task",
    "compare_means",
    "correlate_task",
    "generator",
    "holm",
    "kendall",
    "mcnemar",
    "pair_similarities",
    "pearson",
    "percentile_interval",
    "percentile_p_value",
    "resample_counts",
    "spearman",
    "spread",
    "steiger",
    "williams",
    "zero_rows",
]
