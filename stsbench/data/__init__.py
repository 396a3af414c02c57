"""Benchmark data: what there is, where it is, getting it, reading it; corpora, people's own pairs, the sample.

Read `catalogue` (what there is), `locate` and `fetch` (with `download`), `rows` (one reader of files) and
`layouts` (the shapes of catalogued ones), then what gives tables (`tables`): `benchmarks` (`load_sts`,
`load_labelled`), `own_pairs` (`load_pairs`) and `corpus`; `sentences` gives what a name stands for.
`overview` answers `stsbench data list`, `verify` and `where` with a `DataOverview`, `describe` what a table holds.
What sets share is counted on the numbers of `shared`: `overlap` shows it, `views` leave it out of a score.
"""
