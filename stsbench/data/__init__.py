"""Benchmark data: the catalogue, downloading and reading it; your own tables, corpora, and the bundled sample.

`catalogue` describes the data sets, `locate` finds and `fetch` downloads their files. `rows` streams a file, and
`read_table` (`reading`) checks a user's table against a schema: `own_pairs`, `triples`, `qrels`. `layouts` and
`benchmarks` read catalogued files (`load_sts`, `load_labelled`) into the tables of `tables`. `corpus` and
`sentences` read sentences; `shared` compares them, for `overlap` and `views`. `overview` lists and verifies the
data, `describe` describes scored pairs.
"""
