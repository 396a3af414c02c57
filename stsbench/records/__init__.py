"""What is kept of a measurement: `show`, `cite`, `export_results`.

Read `kinds` and `signature` (what a score means), `parts` (fields of `run.json`), `labels` and `scores` (tables
of them), `items` (the items table), `record` (what people hold), `store` (on disk), then the verbs in `show` and
`export`, and `imports`.
"""
