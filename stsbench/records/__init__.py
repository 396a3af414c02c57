"""What is kept of a measurement: `show`, `export_results`.

Read `signature` (what a score means), `parts` (the fields of `run.json`), `labels` and `scores` (tables of them),
`record` (what people hold), `store` (on disk), then the verbs in `show`, `imports` and `export`.
"""
