"""Is this number right? `check` returns a `Check`: a run against published rows, or against a predecessor's run.

Read `check` first, then `result`; `published` and `baseline` are the two kinds of check, and `fitting` finds what
a record has for an expected value.
"""
