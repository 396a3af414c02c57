"""What is kept of a measurement: `show` and `import_results`, which return `Scores` and a `RunRecord`.

Read `signature` (what a score means), `parts` (the fields of `run.json`), `labels` and `scores` (tables of them),
`record` (what people hold), `store` (on disk), then the verbs in `show` and `imports`.
"""
