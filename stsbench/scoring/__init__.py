"""From sentence pairs to scores: `evaluate`, which returns a `RunRecord`, `import_results`, and their commands.

The path from a pair to a score in `run.json`: `evaluate` or `run` (choices, by `settings`), `tasks` (the data),
`measure` (encodes, scores, records), `kinds.sts` (similarities) and `statistic` (correlations).
`kinds.classification` (with `classifiers` and `mlp`) and `kinds.relatedness` train on vectors, `kinds.retrieval`
searches documents. `recompute` compares a record with its items. `subjects` is for analyses: records and models by
name, and their vectors.
"""
