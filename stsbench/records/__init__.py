"""Run records: their fields, files, tables, and imports and exports.

Read `kinds` and `signature` first (the meaning of a score), then `parts` (the fields of `run.json`), `record` and
`store` (on disk), `labels` and `scores` (tables), and the verbs in `show` and `export`. `imports` reads other
programs' results, and MTEB's prediction files.
"""
