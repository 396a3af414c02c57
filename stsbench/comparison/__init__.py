"""Is this difference real? `compare` returns a `Comparison` of two runs, or a `SeedsComparison` of two methods.

Read `compare` first, then `result`; `paired` holds the numbers of two models on the same pairs and items, `seeds`
those of methods over seeds, and `overlap` looks for test sentences in a training corpus.
"""
