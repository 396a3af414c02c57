"""From sentence pairs to scores: `evaluate`, which returns a `RunRecord`, the command `run`, and `cite`.

A pair on its way to a score in `run.json`: `evaluate` or `run` (what was asked for), `tasks` (the data),
`measure` (encoded, compared), `sts` (correlated), `recording` (recorded). Beside it `transfer` with
`classifiers` and `mlp`, and `relatedness`, train on vectors; `protocols` and `settings` are the choices.
`subjects` and `vectors` are for analyses: records and models by name, and their vectors.
"""
