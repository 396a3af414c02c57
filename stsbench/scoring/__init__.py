"""From sentence pairs to scores: `evaluate`, which returns a `RunRecord`, `import_results`, the command `run`.

A pair on its way to a score in `run.json`: `evaluate` or `run` (what was asked for, by `settings`), `tasks` (the
data), `measure` (encoded, scored, recorded), `kinds.sts` (compared) and `statistic` (correlated). Beside it
`kinds.classification` with `classifiers` and `mlp`, and `kinds.relatedness`, train on vectors. `recompute` holds a
record against its items. `subjects` is for analyses: records and models by name, and their vectors.
"""
