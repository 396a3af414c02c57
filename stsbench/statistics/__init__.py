"""Mathematics on arrays: similarities of pairs, correlations, aggregation, bootstrap intervals."""

from stsbench.statistics.aggregation import Aggregation, TaskScores, aggregate, correlate_task
from stsbench.statistics.bootstrap import (
    LEVEL,
    RESAMPLES,
    SEED,
    TaskReplicates,
    bootstrap_correlation,
    bootstrap_task,
    percentile_interval,
)
from stsbench.statistics.correlations import CORRELATIONS, Metric, kendall, pearson, spearman
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
    "correlate_task",
    "generator",
    "kendall",
    "pair_similarities",
    "pearson",
    "percentile_interval",
    "resample_counts",
    "spearman",
    "zero_rows",
]
