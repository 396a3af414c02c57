"""Mathematics on arrays: similarities of pairs, correlations, aggregation, intervals, tests."""
