"""Mathematics on arrays: similarities of pairs, correlations, aggregation, bootstrap intervals, tests."""
