"""Benchmark data: the catalogue, downloading and reading it; your own tables, corpora, and the bundled sample.

`catalogue` describes the data sets, `reading` finds and `fetch` downloads their files. `rows` streams a file, and
`read_table` (`reading`) checks your tables by a schema: `load_pairs` (`tables`), `load_triples` (`corpus`) and
`load_retrieval` (`qrels`). `layouts` and `benchmarks` read catalogued files (`load_sts`, `load_labelled`) into the
tables of `tables`, which also has the ids by which sentences are compared. `corpus` and `sentences` read
sentences; `sentences` counts what sets share, and `views` leaves out pairs. `describe` describes scored pairs, and
lists and verifies the data.
"""
