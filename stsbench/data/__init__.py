"""Benchmark data: what there is, where it is, getting it, reading it; corpora, people's own pairs, the sample.

Read `catalogue` (what there is), `locate` and `fetch` (with `download`), `rows` (one reader of files) and
`layouts` (the shapes of catalogued ones), then what gives tables (`tables`): `benchmarks` (`load_sts`,
`load_labelled`), `own_pairs` (`load_pairs`) and `corpus`.
`overview` answers `stsbench data list`, `verify` and `where` with a `DataOverview`; what sets share
is in `shared`, by the numbers of `sentence_ids`: `overlap` and `sharing` tell it, `views` leave it out.
"""
